//! Merges of what is shipping, each carried out by one factory at a time.

use std::time::Duration;

use giga_domain::job::MergeCandidate;
use giga_domain::{FactoryId, Job, JobId, MergeAction, MergeOutcome, Refusal};
use giga_ports::StoreError;
use giga_ports::store::{HoldMerge, TakeMerge};

use crate::{Coordinator, Error};

/// Renewed while it is merged and checked; whoever is silent for so long has it taken over.
const MERGE_LEASE: Duration = Duration::from_secs(45);

/// A merge that a factory took, with what it takes to carry it out.
#[derive(Debug)]
pub struct TakenMerge {
    pub job: Job,
    /// The checks of the job's own manifest.
    pub verify: Vec<String>,
}

/// Whose merge is meant: the job, who holds it, and by which attempt.
#[derive(Debug, Clone)]
pub struct MergeHolder {
    pub job: JobId,
    pub factory: FactoryId,
    pub attempt: u32,
}

impl Coordinator {
    pub async fn take_merge(&self, factory: FactoryId) -> Result<Option<TakenMerge>, Error> {
        let taken = self.core.store.take_merge(TakeMerge { factory, lease: MERGE_LEASE }).await?;
        let Some(job) = taken else { return Ok(None) };
        let text = self.core.store.read().job_text(job.id).await?;
        let manifest = text.and_then(|text| giga_domain::manifest::from_json(&text.manifest).ok());
        Ok(Some(TakenMerge { job, verify: manifest.map(|manifest| manifest.verify).unwrap_or_default() }))
    }

    pub async fn renew_merge(&self, holder: MergeHolder) -> Result<Job, Error> {
        self.hold_merge(holder, MergeAction::Renew { lease: MERGE_LEASE }).await
    }

    /// From here on the candidate is pushed, whoever does it.
    pub async fn push_merge(&self, holder: MergeHolder, candidate: MergeCandidate) -> Result<Job, Error> {
        self.hold_merge(holder, MergeAction::Push { candidate, lease: MERGE_LEASE }).await
    }

    pub async fn settle_merge(&self, holder: MergeHolder, outcome: MergeOutcome) -> Result<Job, Error> {
        self.hold_merge(holder, MergeAction::Settle(outcome)).await
    }

    async fn hold_merge(&self, holder: MergeHolder, action: MergeAction) -> Result<Job, Error> {
        let MergeHolder { job, factory, attempt } = holder;
        match self.core.store.hold_merge(HoldMerge { job, factory, attempt, action }).await {
            Err(StoreError::Refused(Refusal::NotClaimable(why))) => Err(Error::NotYours(why)),
            other => Ok(other?),
        }
    }
}
