//! Orders to merge what has shipped, each carried out by one factory.

use std::time::Duration;

use giga_domain::{FactoryId, Job, JobId, MergeOutcome};

use super::noun::Result;
use super::{Execute, Intercept, Write};

macro_rules! merges {
    ($make:ident) => {
        $make! {
            writes MergeStore {
                /// The first due order to merge that the factory may carry out: the job, with the order taken by it.
                take_merge(TakeMerge) -> Option<Job>;

                /// What came of it. An order that is no longer the factory's is refused as `NotClaimable`.
                settle_merge(SettleMerge) -> Job;
            }
        }
    };
}
merges!(traits);
pub(super) use merges;

#[derive(Debug, Clone)]
pub struct TakeMerge {
    pub factory: FactoryId,
    pub lease: Duration,
}

#[derive(Debug, Clone)]
pub struct SettleMerge {
    pub job: JobId,
    pub factory: FactoryId,
    pub attempt: u32,
    pub outcome: MergeOutcome,
}
