//! Merges what is shipping, beside the jobs of its factory: with a repository that may be away, and now and then so slowly
//! that somebody else takes over.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{MergeHolder, TakenMerge};
use giga_domain::job::MergeCandidate;
use giga_domain::{FactoryId, JobId, MergeOutcome, MergeState};

use super::nap;
use crate::bug::Bug;
use crate::ports::{Landed, Push, conflicts, pass_together};
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
                self.world.call(&mut self.prng, |one| async move { one.take_merges(factory).await }).await;
            match asked {
                Ok(taken) if !taken.is_empty() => self.merge(taken).await,
                _ => nap(&mut self.prng, 200, 1_500).await,
            }
        }
    }

    async fn merge(&mut self, taken: Vec<TakenMerge>) {
        let members: Vec<Member> = taken.into_iter().filter_map(Member::of).collect();
        let mut left = vec![members];
        while let Some(batch) = left.pop() {
            if batch.is_empty() {
                continue;
            }
            match self.together(&batch).await {
                Tried::Settled(outcomes) => {
                    for (member, outcome) in batch.into_iter().zip(outcomes) {
                        self.settle(&member, outcome).await;
                    }
                }
                Tried::Split(at) => {
                    let (before, after) = batch.split_at(at.max(1));
                    left.extend([after.to_vec(), before.to_vec()]);
                }
                Tried::Lost => return,
            }
        }
    }

    async fn together(&mut self, batch: &[Member]) -> Tried {
        let repo = &batch[0].repo;
        if let Some(announced) = batch[0].announced.clone() {
            let pushed = self.push(batch, repo, &announced).await;
            return Tried::Settled(batch.iter().map(|member| member.outcome(&pushed)).collect());
        }
        nap(&mut self.prng, 10, 200).await;
        let branch = self.world.repositories.branch(repo);
        if self.prng.chance(self.world.rates().request_lost) {
            let away = MergeOutcome::Unreachable { detail: "the origin is away".to_owned() };
            return Tried::Settled(vec![away; batch.len()]);
        }
        let mut with = branch.landed.clone();
        for (at, member) in batch.iter().enumerate() {
            let outcome = if let Some(commit) = branch.holding(member.landed) {
                MergeOutcome::Merged { commit, into: "main".to_owned(), note: None }
            } else if conflicts(&with, member.landed) {
                MergeOutcome::Conflict { detail: "the same lines".to_owned() }
            } else {
                with.push(member.landed);
                continue;
            };
            return if batch.len() == 1 { Tried::Settled(vec![outcome]) } else { Tried::Split(at) };
        }
        nap(&mut self.prng, 50, 1_500).await;
        self.freeze().await;
        let landed: Vec<Landed> = batch.iter().map(|member| member.landed).collect();
        if !pass_together(&branch.landed, &landed) && !self.world.has(Bug::UncheckedMerge) {
            let failed = MergeOutcome::ChecksFailed { detail: "not together".to_owned() };
            return if batch.len() == 1 {
                Tried::Settled(vec![failed])
            } else {
                Tried::Split(batch.len() / 2)
            };
        }
        let commits: Vec<String> =
            batch.iter().map(|_| format!("{:016x}", self.prng.between(1, u64::MAX / 2))).collect();
        let head = commits.last().cloned();
        self.world.repositories.make(head.as_deref().unwrap_or_default(), &landed);
        let candidates: Vec<MergeCandidate> = commits
            .into_iter()
            .map(|commit| MergeCandidate {
                head: head.clone().filter(|head| *head != commit),
                commit,
                tip: Some(branch.tip.clone()).filter(|tip| !tip.is_empty()),
                into: "main".to_owned(),
            })
            .collect();
        if !self.world.has(Bug::UnannouncedPush) && !self.announce(batch, &candidates).await {
            return Tried::Lost;
        }
        let pushed = self.push(batch, repo, &candidates[0]).await;
        let outcomes = batch.iter().zip(&candidates);
        let outcomes = outcomes
            .map(|(member, own)| Member { announced: Some(own.clone()), ..member.clone() }.outcome(&pushed));
        Tried::Settled(outcomes.collect())
    }

    /// Whether it is known to be announced; otherwise whoever has it next will find out.
    async fn announce(&mut self, batch: &[Member], candidates: &[MergeCandidate]) -> bool {
        let merges = batch.iter().map(|member| (member.job, member.attempt)).collect();
        let holder = MergeHolder { factory: self.factory.clone(), merges };
        for _ in 0..6 {
            let (holder, candidates) = (holder.clone(), candidates.to_vec());
            let said = self
                .world
                .call(&mut self.prng, |one| async move { one.push_merges(holder, &candidates).await })
                .await;
            match said {
                Ok(()) => return true,
                Err(Trouble::Refused(_)) => return false,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
        false
    }

    async fn push(&mut self, batch: &[Member], repo: &str, candidate: &MergeCandidate) -> MergeOutcome {
        nap(&mut self.prng, 5, 100).await;
        self.freeze().await;
        let rates = self.world.rates();
        if self.prng.chance(rates.request_lost) {
            return MergeOutcome::Unreachable { detail: "the origin is away".to_owned() };
        }
        let commit = candidate.pushed().to_owned();
        let mut announced = true;
        for member in batch {
            announced &= self.is_announced(member.job, &commit).await;
        }
        // What it was made of, by whoever made it.
        let results = self.world.repositories.made(&commit);
        let push = Push { commit: commit.clone(), results, announced };
        let arrived = self.world.repositories.push(repo, candidate.tip.as_deref().unwrap_or_default(), push);
        if self.prng.chance(rates.reply_lost) {
            return MergeOutcome::Unreachable { detail: "the connection broke".to_owned() };
        }
        let is_in = arrived || self.world.repositories.branch(repo).pushes.iter().any(|p| p.commit == commit);
        if is_in {
            MergeOutcome::Merged { commit, into: candidate.into.clone(), note: None }
        } else {
            MergeOutcome::Outrun
        }
    }

    async fn is_announced(&self, job: JobId, commit: &str) -> bool {
        let stored = self.world.reads().job(job).await.ok().flatten();
        match stored.and_then(|job| job.merge).map(|merge| merge.state) {
            Some(MergeState::Pushing { candidate, .. }) => candidate.pushed() == commit,
            // Somebody else has finished it.
            Some(MergeState::Done { .. }) => true,
            _ => false,
        }
    }

    async fn settle(&mut self, member: &Member, outcome: MergeOutcome) {
        let holder = MergeHolder::one(self.factory.clone(), member.job, member.attempt);
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
            tokio::time::sleep(Duration::from_secs(self.prng.between(40, 70))).await;
        }
    }
}

enum Tried {
    Settled(Vec<MergeOutcome>),
    Split(usize),
    Lost,
}

/// One of a batch.
#[derive(Clone)]
struct Member {
    job: JobId,
    attempt: u32,
    repo: String,
    landed: Landed,
    announced: Option<MergeCandidate>,
}

impl Member {
    fn of(taken: TakenMerge) -> Option<Self> {
        let job = taken.job;
        let merge = job.merge.as_ref()?;
        Some(Self {
            job: job.id,
            attempt: merge.attempt,
            landed: (job.id, job.result.as_ref()?.epoch),
            announced: merge.candidate().cloned(),
            repo: job.merging()?.repo.to_owned(),
        })
    }

    /// Of its own, where its batch was pushed.
    fn outcome(&self, pushed: &MergeOutcome) -> MergeOutcome {
        match (pushed, &self.announced) {
            (MergeOutcome::Merged { into, .. }, Some(own)) => {
                MergeOutcome::Merged { commit: own.commit.clone(), into: into.clone(), note: None }
            }
            (other, _) => other.clone(),
        }
    }
}
