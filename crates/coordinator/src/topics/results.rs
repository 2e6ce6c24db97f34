//! What workers say: results and heartbeats. Each call is its own; the store writes many of them in one transaction.
//!
//! A caller's word counts for the products of its token only, and for what its own worker was sent: any other job is
//! unknown to it, and nothing is written about it.

use std::time::Duration;

use giga_domain::topic::{Outcome, TopicStage};
use giga_domain::{Epoch, JobId, ProductId, WorkerId, limits};
use giga_ports::broker::Hint;
use giga_ports::topics::{Settle, Settled, TopicOwner};

use super::Topics;
use crate::{Error, FieldProblem};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportStatus {
    Recorded,
    /// The lease had ended and the job is another's by now, or nobody's; or something else was reported before.
    Fenced,
    UnknownJob,
}

impl Topics {
    /// What became of jobs, in the order given; durable when it is answered. `within` are the caller's products, `None`
    /// for all of them.
    pub async fn report(
        &self,
        within: Option<&[ProductId]>,
        worker: &WorkerId,
        mut results: Vec<Settle>,
    ) -> Result<Vec<ReportStatus>, Error> {
        at_most_a_batch("results", results.len())?;
        let ids: Vec<(JobId, Epoch)> = results.iter().map(|result| (result.id, result.epoch)).collect();
        let allowed = self.allowed(within, worker, &ids).await?;
        if let Some(allowed) = &allowed {
            let mut verdicts = allowed.iter();
            results.retain(|_| verdicts.next().copied().unwrap_or(false));
        }
        for result in &mut results {
            if let Outcome::Failure { error, .. } = &mut result.outcome {
                *error = shortened(error);
            }
        }
        let settled = self.store.settle(results.clone()).await?;
        self.after_settling(worker, &results, &settled);
        let mut statuses = settled.iter().map(|settled| match settled {
            Settled::Applied { .. } => ReportStatus::Recorded,
            Settled::Fenced => ReportStatus::Fenced,
            Settled::Unknown => ReportStatus::UnknownJob,
        });
        Ok(match allowed {
            None => statuses.collect(),
            Some(allowed) => allowed
                .into_iter()
                .map(|allowed| {
                    if allowed { statuses.next() } else { None }.unwrap_or(ReportStatus::UnknownJob)
                })
                .collect(),
        })
    }

    /// Frees slots, and lets everybody know who has to look at something: also for a word that was heard before, because
    /// whoever heard it may not have got to this. Only what must not happen twice is left out then.
    fn after_settling(&self, worker: &WorkerId, results: &[Settle], settled: &[Settled]) {
        let mut elsewhere = Vec::new();
        let mut ready = Vec::new();
        let mut due = None;
        let mut died = Vec::new();
        let mut registry = self.registry();
        for (result, settled) in results.iter().zip(settled) {
            let known_here = registry.free(result.id, result.epoch);
            let Settled::Applied { key, stage, due: later, repeated } = settled else { continue };
            if !known_here {
                elsewhere.push(result.id);
            }
            match stage {
                TopicStage::Ready => ready.push((key, result.id)),
                TopicStage::Scheduled => due = due.into_iter().chain(*later).min(),
                TopicStage::Dead if !repeated => died.push((key, result)),
                TopicStage::Dead | TopicStage::Running | TopicStage::Done => {}
            }
        }
        drop(registry);
        self.core.metrics.topics.settled(results, settled);
        self.wake.notify_one();
        self.ready(ready, false);
        if let Some(at) = due {
            self.learn_due(at);
            self.hints.send(Hint::Due { at });
        }
        for (key, result) in died {
            let reason = match &result.outcome {
                Outcome::Failure { error, .. } => error.clone(),
                Outcome::Success | Outcome::Release => String::new(),
            };
            self.died(key, result.id, reason);
        }
        if !elsewhere.is_empty() {
            self.hints.send(Hint::Settled { worker: worker.clone(), jobs: elsewhere });
        }
    }

    /// Keeps leases alive. Answers which jobs are no longer the worker's, and how long a lease is.
    pub async fn renew(
        &self,
        within: Option<&[ProductId]>,
        worker: &WorkerId,
        held: Vec<(JobId, Epoch)>,
    ) -> Result<(Vec<JobId>, Duration), Error> {
        at_most_a_batch("held", held.len())?;
        let lease = self.lease();
        let allowed = self.allowed(within, worker, &held).await?;
        let mut lost = Vec::new();
        let mut own = Vec::with_capacity(held.len());
        for (index, job) in held.into_iter().enumerate() {
            if allowed.as_ref().is_none_or(|allowed| allowed[index]) {
                own.push(job);
            } else {
                lost.push(job.0);
            }
        }
        if own.is_empty() {
            return Ok((lost, lease));
        }
        let still_held = self.store.renew(own.clone(), lease).await?;
        let until = self.core.clock.now().plus(lease);
        let mut registry = self.registry();
        for ((id, epoch), still_held) in own.into_iter().zip(still_held) {
            if still_held {
                registry.renewed(id, epoch, until);
            } else {
                registry.free(id, epoch);
                lost.push(id);
            }
        }
        drop(registry);
        if !lost.is_empty() {
            self.wake.notify_one();
        }
        Ok((lost, lease))
    }

    /// Which of the jobs are the worker's, and of the caller's products; `None` where all of them are. A job that has gone on
    /// to another epoch is left to the fence. What was sent from here is known here; the rest is asked for, all at once.
    async fn allowed(
        &self,
        within: Option<&[ProductId]>,
        worker: &WorkerId,
        jobs: &[(JobId, Epoch)],
    ) -> Result<Option<Vec<bool>>, Error> {
        let allows = |given: Epoch, owner: &TopicOwner| {
            let is_other = owner.epoch == given && owner.worker.as_ref().is_some_and(|own| own != worker);
            within.is_none_or(|within| within.contains(&owner.product)) && !is_other
        };
        let mut verdicts: Vec<Option<bool>> = {
            let registry = self.registry();
            let known = |(id, epoch): &(JobId, Epoch)| Some(allows(*epoch, &registry.owner_of(*id)?));
            jobs.iter().map(known).collect()
        };
        let unknown = jobs.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_none());
        let unknown: Vec<JobId> = unknown.map(|((id, _), _)| *id).collect();
        if !unknown.is_empty() {
            let found = self.store.owners_of(&unknown).await?;
            for ((id, epoch), verdict) in jobs.iter().zip(&mut verdicts) {
                // What is not there is unknown to the store too.
                let owned = || found.get(id).map_or(within.is_none(), |owner| allows(*epoch, owner));
                verdict.get_or_insert_with(owned);
            }
        }
        if verdicts.iter().all(|verdict| *verdict == Some(true)) {
            return Ok(None);
        }
        Ok(Some(verdicts.into_iter().map(|verdict| verdict.unwrap_or(false)).collect()))
    }
}

fn at_most_a_batch(field: &str, count: usize) -> Result<(), Error> {
    if count <= limits::TOPIC_BATCH {
        return Ok(());
    }
    let message =
        format!("at most {} in one call, not {count}; send the rest in another", limits::TOPIC_BATCH);
    Err(FieldProblem::new(field, message).into())
}

/// What operators are shown: bounded, and without what no database takes.
fn shortened(error: &str) -> String {
    error.chars().filter(|c| *c != '\0').take(limits::REASON_CHARS).collect()
}
