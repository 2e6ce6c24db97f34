//! Merges of what is shipping, each carried out by one factory at a time.

use std::time::Duration;

use giga_domain::{FactoryId, Job, JobId, MergeAction};

use super::noun::Result;
use super::{Execute, Intercept, Write};

macro_rules! merges {
    ($make:ident) => {
        $make! {
            writes MergeStore {
                /// The first job of a queue that nobody is at, and that the factory can serve: taken by it.
                take_merge(TakeMerge) -> Option<Job>;

                /// What its holder does. A merge that is no longer the factory's is refused as `NotClaimable`.
                hold_merge(HoldMerge) -> Job;
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
pub struct HoldMerge {
    pub job: JobId,
    pub factory: FactoryId,
    pub attempt: u32,
    pub action: MergeAction,
}
