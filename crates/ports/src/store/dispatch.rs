//! Who leads, which job is offered to whom, and who is asked to give its seat up.

use std::time::Duration;

use giga_domain::{Actor, DispatchSeq, FactoryId, JobId, Leadership, NodeId, Offer, Rev, Term, Timestamp};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! dispatch {
    ($make:ident) => {
        $make! {
            writes DispatchStore {
                /// Takes the lead where nobody has it, keeps it where this node has it, and says who has it. A new leader
                /// gets a new term.
                lead(TakeLead) -> Leadership;

                /// Gives the lead up, so that another need not wait for its end. Fine where the term is over anyway.
                step_down(StepDown) -> ();

                /// Targets of the dispatcher, each by compare-and-set on what it saw, with its offer in the same
                /// transaction. In the order given: the offer, or `None` for a job that changed since. A term that is
                /// over is refused whole, as [`super::StoreError::StaleTerm`].
                offer(MakeOffers) -> Vec<Option<Offer>>;

                /// The broker has these; their rows can go. Those that are gone are fine.
                sent(Sent) -> ();

                /// Records what shadow mode would have done differently, in the history of the jobs that are not over yet.
                diverged(RecordDivergences) -> ();

                /// Asks holders to let go, each by compare-and-set on what the asker saw: whether it was asked. With a
                /// term, as the dispatcher, which is refused whole when its term is over.
                evict(EvictJobs) -> Vec<bool>;
            }
            reads DispatchReads {
                /// Offers that the broker may not have yet, oldest first.
                unsent_offers(limit: usize) -> Vec<Waiting>;

                /// Who leads, where somebody ever did; it may be over.
                leader() -> Option<Leadership>;
            }
        }
    };
}
dispatch!(traits);
pub(super) use dispatch;

#[derive(Debug, Clone)]
pub struct TakeLead {
    pub node: NodeId,
    pub lease: Duration,
}

#[derive(Debug, Clone)]
pub struct StepDown {
    pub node: NodeId,
    pub term: Term,
}

#[derive(Debug, Clone)]
pub struct MakeOffers {
    pub term: Term,
    pub chosen: Vec<NewOffer>,
    pub pickup: Duration,
}

/// A placement that the dispatcher wants to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOffer {
    pub job: JobId,
    /// What the dispatcher saw.
    pub rev: Rev,
    pub factory: FactoryId,
}

#[derive(Debug, Clone)]
pub struct Sent {
    pub offers: Vec<(JobId, DispatchSeq)>,
}

#[derive(Debug, Clone)]
pub struct RecordDivergences {
    pub divergences: Vec<Divergence>,
}

/// Where the dispatcher would have sent a job that another factory claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    pub job: JobId,
    pub routed_to: FactoryId,
    pub claimed_by: FactoryId,
    /// From the plan to the claim.
    pub lag_ms: u64,
}

#[derive(Debug, Clone)]
pub struct EvictJobs {
    pub term: Option<Term>,
    pub asked: Vec<NewEviction>,
    pub grace: Duration,
    pub actor: Actor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewEviction {
    pub job: JobId,
    /// What the asker saw.
    pub rev: Rev,
    /// Who needs the seat; `None` where its product's budget is paused.
    pub for_job: Option<JobId>,
}

/// An offer that the broker may not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub offer: Offer,
    pub since: Timestamp,
}
