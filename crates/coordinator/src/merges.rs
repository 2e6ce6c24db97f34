//! Orders to merge what has shipped, given to factories one at a time.

use std::time::Duration;

use giga_domain::{FactoryId, Job, MergeOutcome, Refusal};
use giga_ports::StoreError;
use giga_ports::store::{SettleMerge, TakeMerge};

use crate::{Coordinator, Error};

/// A merge is a fetch, a commit and a push; whoever takes longer than this has it taken over.
const PATIENCE: Duration = Duration::from_mins(5);

impl Coordinator {
    pub async fn take_merge(&self, factory: FactoryId) -> Result<Option<Job>, Error> {
        Ok(self.core.store.take_merge(TakeMerge { factory, lease: PATIENCE }).await?)
    }

    pub async fn settle_merge(
        &self,
        job: giga_domain::JobId,
        factory: FactoryId,
        attempt: u32,
        outcome: MergeOutcome,
    ) -> Result<Job, Error> {
        match self.core.store.settle_merge(SettleMerge { job, factory, attempt, outcome }).await {
            Err(StoreError::Refused(Refusal::NotClaimable(why))) => Err(Error::NotYours(why)),
            other => Ok(other?),
        }
    }
}
