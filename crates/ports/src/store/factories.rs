//! Worker hosts: who is enrolled, what each has, when it was last seen.

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::token::TokenRecord;
use giga_domain::{Actor, Factory, FactoryId, FactoryState, Timestamp};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! factories {
    ($make:ident) => {
        $make! {
            writes FactoryStore {
                /// A new factory with its first token. A known id is refused, except for a repetition of the same call.
                enroll(Enroll) -> Factory;

                /// What the factory says it has. Appends an event only when something changed.
                advertise(Advertise) -> Factory;

                /// Nobody listens at the end of its stream any more: it counts as polling until it says otherwise. No sign
                /// of life.
                stream_lost(StreamLost) -> ();

                /// Signs of life of many factories in one write. Unknown ones are passed over.
                touch(Touch) -> ();

                set_factory_state(SetFactoryState) -> Factory;

                /// Forgets the factory and revokes its tokens. What it holds comes back when its leases end. One that is
                /// not there is fine: it may be the same call again.
                deregister(Deregister) -> ();

                /// Deregisters every factory that was not seen since `before` and holds nothing.
                prune(Prune) -> Vec<FactoryId>;
            }
            reads FactoryReads {
                factory(id: &FactoryId) -> Option<Factory>;

                /// By id.
                factories() -> Vec<Factory>;
            }
        }
    };
}
factories!(traits);
pub(super) use factories;

#[derive(Debug, Clone)]
pub struct Enroll {
    pub id: FactoryId,
    pub scope: FactoryScope,
    pub token: TokenRecord,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct Advertise {
    pub factory: FactoryId,
    pub advertised: Advertised,
}

#[derive(Debug, Clone)]
pub struct StreamLost {
    pub factory: FactoryId,
}

#[derive(Debug, Clone)]
pub struct Touch {
    pub seen: Vec<(FactoryId, Timestamp)>,
}

#[derive(Debug, Clone)]
pub struct SetFactoryState {
    pub factory: FactoryId,
    pub state: FactoryState,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct Deregister {
    pub factory: FactoryId,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct Prune {
    pub before: Timestamp,
    pub actor: Actor,
}
