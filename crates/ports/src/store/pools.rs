//! Pools and their members: factories that the coordinator has started, or that somebody else starts for it.
//!
//! What the leader does names its term, so that two that take themselves for it cannot start twice what is wanted once.

use giga_domain::factory::FactoryScope;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Factory, FactoryId, Member, Pool, PoolName, PoolSettings, PoolTemplate, ProductId, Rev, Term,
};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! pools {
    ($make:ident) => {
        $make! {
            writes PoolStore {
                /// Makes it, or replaces its settings; what was learned of the starts of other settings is forgotten. One
                /// pool too many is refused as [`super::StoreError::TooManyPools`].
                set_pool(SetPool) -> Pool;

                /// Whether there was one. Refused as [`super::StoreError::PoolInUse`] while it has members.
                remove_pool(RemovePool) -> bool;

                /// Members that are to be started: as many of them, in order, as the pool may have now. None while it is paused, waits after a failure, or the budget that pays it is
                /// closed. Known ones are answered again.
                order_members(OrderMembers) -> Vec<Member>;

                /// What the driver calls it. One that is gone is fine.
                note_member(NoteMember) -> ();

                /// The factory of a member enrols, or does so again after a restart: its older tokens end. In a pool that
                /// somebody else scales it becomes a member by this.
                enroll_member(EnrollMember) -> Factory;

                /// What its factories are like, where that was learned for these very settings.
                learn_pool(LearnPool) -> Option<Pool>;

                /// It has left, or is given up: its factory is no factory any more, and its credentials end. Before it has
                /// enrolled this is a failed start. One that is stopping or gone is fine.
                stop_member(StopMember) -> ();

                /// Nothing is left of it, its tokens included. Its hours are charged.
                forget_member(ForgetMember) -> ();

                /// Charges the hours of all members up to now, where somebody pays them.
                charge_pool(ChargePool) -> ();
            }
            reads PoolReads {
                /// By name.
                pools() -> Vec<Pool>;

                /// By factory.
                pool_members() -> Vec<Member>;
            }
        }
    };
}
pools!(traits);
pub(super) use pools;

#[derive(Debug, Clone)]
pub struct SetPool {
    pub name: PoolName,
    pub settings: PoolSettings,
    pub if_rev: Option<Rev>,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RemovePool {
    pub name: PoolName,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct OrderMembers {
    pub term: Term,
    pub pool: PoolName,
    /// Of the settings that this was decided by. Others by now are a [`super::StoreError::RevMismatch`].
    pub rev: Rev,
    /// Who pays, by those settings.
    pub charge_to: Option<ProductId>,
    pub factories: Vec<FactoryId>,
}

#[derive(Debug, Clone)]
pub struct NoteMember {
    pub pool: PoolName,
    pub factory: FactoryId,
    pub handle: String,
}

#[derive(Debug, Clone)]
pub struct EnrollMember {
    pub pool: PoolName,
    pub factory: FactoryId,
    pub scope: FactoryScope,
    pub token: TokenRecord,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct LearnPool {
    pub pool: PoolName,
    /// Of the settings that the factory was started by.
    pub rev: Rev,
    pub template: PoolTemplate,
}

#[derive(Debug, Clone)]
pub struct StopMember {
    pub term: Term,
    pub pool: PoolName,
    pub factory: FactoryId,
    pub reason: String,
}

#[derive(Debug, Clone)]
pub struct ForgetMember {
    pub term: Term,
    pub pool: PoolName,
    pub rev: Rev,
    pub charge_to: Option<ProductId>,
    pub factory: FactoryId,
}

#[derive(Debug, Clone)]
pub struct ChargePool {
    pub term: Term,
    pub pool: PoolName,
    pub rev: Rev,
    pub charge_to: ProductId,
}
