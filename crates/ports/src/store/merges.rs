//! Merges of what is shipping, each carried out by one factory at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use giga_domain::{FactoryId, Job, JobId, MergeAction, ProductId, RequestNews};

use super::noun::Result;
use super::{Execute, Intercept, Write};

macro_rules! merges {
    ($make:ident) => {
        $make! {
            writes MergeStore {
                /// The first jobs of a queue that nobody is at, and that the factory can serve: taken by it.
                take_merges(TakeMerges) -> Vec<Job>;

                /// What their holder does, with all of them or with none. A merge that is no longer the factory's is
                /// refused as `NotClaimable`.
                hold_merges(HoldMerges) -> Vec<Job>;

                /// What became of a job's pull request. What is not about its result is refused as `NotClaimable`.
                request_news(TakeRequestNews) -> Job;
            }
        }
    };
}
merges!(traits);
pub(super) use merges;

#[derive(Debug, Clone)]
pub struct TakeMerges {
    pub factory: FactoryId,
    pub lease: Duration,
    /// How many of a product's may be taken together, where that is not [`giga_domain::product::MERGE_BATCH`].
    pub batches: BTreeMap<ProductId, u32>,
}

#[derive(Debug, Clone)]
pub struct HoldMerges {
    pub factory: FactoryId,
    pub holds: Vec<HoldMerge>,
}

#[derive(Debug, Clone)]
pub struct HoldMerge {
    pub job: JobId,
    pub attempt: u32,
    pub action: MergeAction,
}

#[derive(Debug, Clone)]
pub struct TakeRequestNews {
    pub job: JobId,
    pub news: RequestNews,
}
