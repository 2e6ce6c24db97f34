//! Merges what is shipping, beside the jobs of its factory: with a repository that may be away, and now and then so slowly
//! that somebody else takes over.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{MergeHolder, TakenMerge};
use giga_domain::job::MergeCandidate;
use giga_domain::{FactoryId, MergeOutcome, MergeState};

use super::nap;
use crate::bug::Bug;
use crate::ports::{Landed, Push, conflicts, passes};
use crate::prng::Prng;
use crate::world::{Trouble, World};

pub(crate) struct Merger {
    pub world: Arc<World>,
    pub factory: FactoryId,
    pub prng: Prng,
}

impl Merger {
    pub(crate) async fn run(mut self) {
        loop {
            let factory = self.factory.clone();
            let asked =
                self.world.call(&mut self.prng, |one| async move { one.take_merge(factory).await }).await;
            match asked {
                Ok(Some(taken)) => self.merge(taken).await,
                _ => nap(&mut self.prng, 200, 1_500).await,
            }
        }
    }

    async fn merge(&mut self, taken: TakenMerge) {
        let job = taken.job;
        let (Some(merge), Some(result), Some(repo)) = (&job.merge, &job.result, &job.spec.repo) else {
            return;
        };
        let holder = MergeHolder { job: job.id, factory: self.factory.clone(), attempt: merge.attempt };
        let landed: Landed = (job.id, result.epoch);
        let announced = match &merge.state {
            MergeState::Pushing { candidate, .. } => Some(candidate.clone()),
            _ => None,
        };
        let candidate = match announced {
            Some(candidate) => candidate,
            None => match self.prepare(&holder, repo, landed).await {
                Ok(candidate) => candidate,
                Err(Some(outcome)) => return self.settle(holder, outcome).await,
                Err(None) => return,
            },
        };
        let outcome = self.push(&holder, repo, landed, &candidate).await;
        self.settle(holder, outcome).await;
    }

    /// Merged, checked and announced; otherwise what came of it, or nothing where it is no longer ours.
    async fn prepare(
        &mut self,
        holder: &MergeHolder,
        repo: &str,
        landed: Landed,
    ) -> Result<MergeCandidate, Option<MergeOutcome>> {
        nap(&mut self.prng, 10, 200).await;
        let branch = self.world.repositories.branch(repo);
        if branch.landed.contains(&landed) {
            let commit = branch.pushes.iter().find(|push| push.result == landed);
            let commit = commit.map_or_else(String::new, |push| push.commit.clone());
            return Err(Some(MergeOutcome::Merged { commit, into: "main".to_owned() }));
        }
        if self.prng.chance(self.world.rates().request_lost) {
            return Err(Some(MergeOutcome::Unreachable { detail: "the origin is away".to_owned() }));
        }
        if conflicts(&branch.landed, landed) {
            return Err(Some(MergeOutcome::Conflict { detail: "the same lines".to_owned() }));
        }
        nap(&mut self.prng, 50, 1_500).await;
        self.freeze().await;
        let passed = passes(&branch.landed, landed) || self.world.has(Bug::UncheckedMerge);
        if !passed {
            return Err(Some(MergeOutcome::ChecksFailed { detail: "not together".to_owned() }));
        }
        let commit = format!("{:016x}", self.prng.between(1, u64::MAX / 2));
        let candidate = MergeCandidate {
            commit,
            tip: Some(branch.tip).filter(|tip| !tip.is_empty()),
            into: "main".to_owned(),
        };
        if self.world.has(Bug::UnannouncedPush) {
            return Ok(candidate);
        }
        for _ in 0..6 {
            let (holder, announced) = (holder.clone(), candidate.clone());
            let said = self
                .world
                .call(&mut self.prng, |one| async move { one.push_merge(holder, announced).await })
                .await;
            match said {
                Ok(_) => return Ok(candidate),
                Err(Trouble::Refused(_)) => return Err(None),
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
        // Nobody knows whether it is announced: whoever has it next will.
        Err(None)
    }

    async fn push(
        &mut self,
        holder: &MergeHolder,
        repo: &str,
        landed: Landed,
        candidate: &MergeCandidate,
    ) -> MergeOutcome {
        nap(&mut self.prng, 5, 100).await;
        self.freeze().await;
        let rates = self.world.rates();
        if self.prng.chance(rates.request_lost) {
            return MergeOutcome::Unreachable { detail: "the origin is away".to_owned() };
        }
        let before = self.world.repositories.branch(repo);
        let stored = self.world.reads().job(holder.job).await.ok().flatten();
        let known = stored.and_then(|job| job.merge).map(|merge| merge.state);
        let announced = match &known {
            Some(MergeState::Pushing { candidate: known, .. }) => known.commit == candidate.commit,
            Some(MergeState::Done { commit, .. }) => *commit == candidate.commit,
            _ => false,
        };
        let passed = passes(&before.landed, landed);
        let push = Push { commit: candidate.commit.clone(), result: landed, passed, announced };
        let arrived = self.world.repositories.push(repo, candidate.tip.as_deref().unwrap_or_default(), push);
        if self.prng.chance(rates.reply_lost) {
            return MergeOutcome::Unreachable { detail: "the connection broke".to_owned() };
        }
        let is_in = arrived
            || self.world.repositories.branch(repo).pushes.iter().any(|p| p.commit == candidate.commit);
        if is_in {
            MergeOutcome::Merged { commit: candidate.commit.clone(), into: candidate.into.clone() }
        } else {
            MergeOutcome::Outrun
        }
    }

    async fn settle(&mut self, holder: MergeHolder, outcome: MergeOutcome) {
        for _ in 0..6 {
            let (holder, outcome) = (holder.clone(), outcome.clone());
            let said = self
                .world
                .call(&mut self.prng, |one| async move { one.settle_merge(holder, outcome).await })
                .await;
            match said {
                Ok(_) | Err(Trouble::Refused(_)) => return,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
    }

    /// Longer than a merge is its holder's without a word.
    async fn freeze(&mut self) {
        if self.prng.chance(self.world.rates().zombie) {
            self.world.trace.note(|| format!("{} freezes in a merge", self.factory));
            tokio::time::sleep(Duration::from_secs(self.prng.between(40, 100))).await;
        }
    }
}
