//! Merges of what is shipping, each carried out by one factory at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use giga_domain::job::MergeCandidate;
use giga_domain::{FactoryId, Job, JobId, MergeAction, MergeOutcome, ProductId, ProductSettings, Refusal};
use giga_ports::StoreError;
use giga_ports::effects::ForgeRepo;
use giga_ports::store::{HoldMerge, HoldMerges, TakeMerges};

use crate::{Coordinator, Error};

/// A merge that a factory took, with what it takes to carry it out.
#[derive(Debug)]
pub struct TakenMerge {
    pub job: Job,
    /// The checks of the job's own manifest, and then its product's.
    pub checks: Vec<String>,
}

/// Whose merges are meant: the jobs by the attempts that were taken, and who holds them.
#[derive(Debug, Clone)]
pub struct MergeHolder {
    pub factory: FactoryId,
    pub merges: Vec<(JobId, u32)>,
}

/// A result on the branch of its pull request.
#[derive(Debug, Clone)]
pub struct ProposedMerge {
    pub commit: String,
    pub into: String,
    pub branch: String,
    /// Host and path of the repository, where it is on a host.
    pub origin: Option<String>,
}

impl MergeHolder {
    pub fn one(factory: FactoryId, job: JobId, attempt: u32) -> Self {
        Self { factory, merges: vec![(job, attempt)] }
    }
}

impl Coordinator {
    /// What is merged and checked together, in this order; nothing where there is nothing to do.
    pub async fn take_merges(&self, factory: FactoryId) -> Result<Vec<TakenMerge>, Error> {
        let products: BTreeMap<ProductId, ProductSettings> = {
            let view = self.fleet.view.lock();
            let set = view.tenants.products();
            set.map(|product| (product.id.clone(), product.settings.clone())).collect()
        };
        let batches = products.iter().map(|(id, settings)| (id.clone(), settings.merge_batch)).collect();
        let lease = self.merge_lease();
        let jobs = self.core.store.take_merges(TakeMerges { factory, lease, batches }).await?;
        let mut taken = Vec::with_capacity(jobs.len());
        for job in jobs {
            let text = self.core.store.read().job_text(job.id).await?;
            let manifest = text.and_then(|text| giga_domain::manifest::from_json(&text.manifest).ok());
            let own = manifest.map(|manifest| manifest.verify).unwrap_or_default();
            let of_product = products.get(&job.product).map(|settings| settings.merge_checks.clone());
            let checks = own.into_iter().chain(of_product.unwrap_or_default()).collect();
            taken.push(TakenMerge { job, checks });
        }
        Ok(taken)
    }

    /// Renewed while they are merged and checked; whoever is silent for so long has them taken over.
    pub fn merge_lease(&self) -> Duration {
        self.fleet.flag_millis("merge_lease_ms")
    }

    /// Those that are still its.
    pub async fn renew_merges(&self, holder: MergeHolder) -> Result<Vec<(JobId, u32)>, Error> {
        let MergeHolder { factory, merges } = holder;
        let lease = self.merge_lease();
        let mut held = Vec::with_capacity(merges.len());
        for (job, attempt) in merges {
            let one = MergeHolder::one(factory.clone(), job, attempt);
            match self.hold_merges(one, |_| MergeAction::Renew { lease }).await {
                Ok(_) => held.push((job, attempt)),
                Err(Error::NotYours(_) | Error::Store(StoreError::NoSuchJob(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(held)
    }

    /// From here on these are pushed, whoever does it. The candidates stand in the order of the holder's merges.
    pub async fn push_merges(&self, holder: MergeHolder, candidates: &[MergeCandidate]) -> Result<(), Error> {
        let lease = self.merge_lease();
        let push = |at: usize| MergeAction::Push { candidate: candidates[at].clone(), lease };
        self.hold_merges(holder, push).await.map(drop)
    }

    pub async fn settle_merge(&self, holder: MergeHolder, outcome: MergeOutcome) -> Result<Job, Error> {
        let settled = self.hold_merges(holder, |_| MergeAction::Settle(outcome.clone())).await?;
        settled.into_iter().next().ok_or(Error::NotYours("there is no such merge"))
    }

    /// The result is on the branch of its pull request, which is opened from here; where nobody here can open it, that is
    /// said as a refusal.
    pub async fn propose_merge(&self, holder: MergeHolder, proposed: ProposedMerge) -> Result<Job, Error> {
        let id = holder.merges.first().map(|(id, _)| *id).ok_or(Error::NotYours("there is no such merge"))?;
        let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        let ProposedMerge { commit, into, branch, origin } = proposed;
        let outcome = match self.effects.forge_of(&job, origin.as_deref()) {
            Ok(ForgeRepo { forge, repo }) => MergeOutcome::Proposed { commit, into, forge, repo, branch },
            Err(detail) => MergeOutcome::Refused { detail },
        };
        self.settle_merge(holder, outcome).await
    }

    async fn hold_merges(
        &self,
        holder: MergeHolder,
        action: impl Fn(usize) -> MergeAction,
    ) -> Result<Vec<Job>, Error> {
        let MergeHolder { factory, merges } = holder;
        let holds = merges.into_iter().enumerate();
        let holds = holds.map(|(at, (job, attempt))| HoldMerge { job, attempt, action: action(at) });
        match self.core.store.hold_merges(HoldMerges { factory, holds: holds.collect() }).await {
            Err(StoreError::Refused(Refusal::NotClaimable(why))) => Err(Error::NotYours(why)),
            other => Ok(other?),
        }
    }
}
