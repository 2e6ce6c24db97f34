//! Claims of factories that choose for themselves: the queue as it stands, and a claim of the first that can be had.
//!
//! Nothing is scored here and nobody is preferred. Whether the factory may hold a job at all is judged by the store, as
//! it is for every claim.

use std::collections::{HashSet, VecDeque};

use giga_domain::{
    Capability, CapabilitySet, FactoryId, FactoryState, Job, JobId, Priority, ProductId, RequestId, Timestamp,
};
use giga_ports::StoreError;
use giga_ports::store::Lost;

use super::{Basis, Claims};
use crate::Error;
use crate::view::{ViewState, Whom};

/// A job that waits, as a factory sees it that chooses for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub job: JobId,
    pub product: ProductId,
    pub priority: Priority,
    pub capabilities: CapabilitySet,
    pub repo: Option<String>,
    pub more_repos: Vec<String>,
    pub enqueued_at: Timestamp,
}

impl Claims {
    /// Ready jobs of the factory's products that ask for nothing that it lacks, by priority and age.
    pub async fn candidates(&self, factory: &FactoryId, limit: usize) -> Result<Vec<Candidate>, Error> {
        self.fleet.refresh().await?;
        let now = self.core.store_now();
        self.fleet.presence.touch(factory, now);
        let mut state = self.fleet.view.lock();
        state.queue.settle(now);
        let Some(known) = state.factories.get(factory) else {
            return Err(StoreError::NoSuchFactory(factory.clone()).into());
        };
        if known.advertised.seat_limit == 0 {
            return Err(Error::NoHeartbeat(factory.clone()));
        }
        if known.state == FactoryState::Draining {
            return Ok(Vec::new());
        }
        let scope = known.scope.clone();
        let only = HashSet::from([factory.clone()]);
        let snapshot = self.fleet.snapshot(&state, now, Whom::Asking(&only));
        let suits = |job: &giga_scheduler::JobView| {
            snapshot.factories.iter().any(|factory| giga_scheduler::can_run(job, factory))
        };
        let policy = state.policy(now, Whom::Everyone);
        let suited = state.queue.ready_in_order(|job| {
            scope.allows_product(&job.product)
                && suits(job)
                && !job.unfit().contains(factory)
                && ViewState::is_affordable(&policy, job)
        });
        let candidate = |job: &giga_scheduler::JobView| Candidate {
            job: job.id,
            product: job.product.clone(),
            priority: job.priority,
            // A factory knows no such capability of its own; that it has it was judged here.
            capabilities: job
                .capabilities
                .without(|needed| needed.as_engine() == Some(Capability::ANY_ENGINE)),
            repo: job.repo.clone(),
            more_repos: job.more_repos.clone(),
            enqueued_at: job.enqueued_at,
        };
        Ok(suited.take(limit).map(candidate).collect())
    }

    /// Claims the first `max` of these jobs that can be had, in their order. Repeating a request returns what it was
    /// granted, and no more.
    pub async fn claim_from(
        &self,
        factory: FactoryId,
        request: &RequestId,
        jobs: &[JobId],
        max: usize,
    ) -> Result<Vec<Job>, Error> {
        self.fleet.refresh().await?;
        self.fleet.may_claim(&factory)?;
        let named: Vec<(JobId, RequestId)> =
            jobs.iter().map(|job| Ok((*job, part_of(request, *job)?))).collect::<Result<_, StoreError>>()?;
        let mut granted = self.granted_before(&factory, &named).await?;
        if !granted.is_empty() {
            return Ok(granted);
        }
        let mut left: VecDeque<(JobId, RequestId)> = named.into();
        while granted.len() < max && !left.is_empty() {
            let next = left.drain(..left.len().min(max - granted.len()));
            let claims =
                next.map(|(job, request)| self.take_job(job, Basis::Chosen, factory.clone(), request));
            for taken in futures::future::join_all(claims).await {
                match taken {
                    Ok(Ok(job)) => granted.push(job),
                    Ok(Err(Lost::NoSeat)) => left.clear(),
                    // One that is gone is as good as taken. Of what was won so far nothing may be lost: an error
                    // would have the caller ask again, and the repetition finds it.
                    Ok(Err(_)) | Err(StoreError::NoSuchJob(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(granted)
    }

    async fn granted_before(
        &self,
        factory: &FactoryId,
        named: &[(JobId, RequestId)],
    ) -> Result<Vec<Job>, StoreError> {
        let known: Vec<&RequestId> = {
            let state = self.fleet.view.lock();
            let won = named.iter().filter(|(_, request)| state.granted(factory, request).is_some());
            won.map(|(_, request)| request).collect()
        };
        let mut granted = Vec::new();
        for request in known {
            granted.extend(self.core.store.read().grant(factory, request).await?);
        }
        Ok(granted)
    }
}

/// One claim of many has a name of its own, made from the whole's and the job's.
fn part_of(request: &RequestId, job: JobId) -> Result<RequestId, StoreError> {
    format!("{request}:{job}").parse().map_err(StoreError::broken)
}
