//! One coordinator's way to the topic jobs that all of them share, behind the turnstile and written down for the checkers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::topic::{Outcome, TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, Epoch, JobId, ProductId, Timestamp, WorkerId};
use giga_ports::store::StoreStats;
use giga_ports::topics::{
    Assignment, Enqueued, NewTopicJob, PauseScope, Settle, Settled, Swept, TopicClaim, TopicCounts,
    TopicPause,
};
use giga_ports::{StoreError, TopicStore};

use super::cut_off;
use crate::bug::Bug;
use crate::history::Record;
use crate::turnstile::{Kind, Node, Verdict};
use crate::world::World;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug)]
pub(crate) struct NodeTopics {
    pub node: Node,
    pub world: Arc<World>,
}

impl NodeTopics {
    async fn through<T>(
        &self,
        kind: Kind,
        what: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let verdict = self.world.turnstile.pass(self.node, kind, what).await;
        if verdict == Verdict::FailBefore {
            return Err(cut_off(what));
        }
        let answer = work.await;
        match verdict {
            Verdict::FailAfter => return Err(cut_off(what)),
            Verdict::GoAndWait => {
                self.world.turnstile.pass(self.node, Kind::Answer, what).await;
            }
            _ => {}
        }
        answer
    }

    async fn claimed(&self, claim: TopicClaim) -> Result<Vec<Assignment>> {
        let asked: Vec<(WorkerId, u32)> = claim.workers.clone();
        let (all, one) = (PauseScope::Everything, PauseScope::Topic(claim.key.clone()));
        let closed = self.world.topics.pauses().await?;
        let closed: Vec<PauseScope> = closed
            .into_iter()
            .map(|pause| pause.scope)
            .filter(|scope| *scope == all || *scope == one)
            .collect();
        let ignored = self.world.has(Bug::PauseIgnored);
        for scope in closed.iter().filter(|_| ignored) {
            self.world.topics.set_pause(scope.clone(), false, Actor::system("bug")).await?;
        }
        let assignments = self.world.topics.claim(claim).await?;
        for scope in closed.iter().filter(|_| ignored) {
            self.world.topics.set_pause(scope.clone(), true, Actor::system("bug")).await?;
        }
        if !closed.is_empty() && !assignments.is_empty() {
            self.world.history.add(Record::PauseIgnored { job: assignments[0].id });
        }
        for Assignment { id, worker, epoch, .. } in &assignments {
            self.world.history.add(Record::TopicAssigned { job: *id, worker: worker.clone(), epoch: *epoch });
        }
        self.world.trace.note(|| {
            let dealt: Vec<String> = assignments
                .iter()
                .map(|a| format!("{} to {} at epoch {}", a.id, a.worker, a.epoch))
                .collect();
            format!("n{} topic claim for {asked:?} -> {}", self.node.0, dealt.join(", "))
        });
        Ok(assignments)
    }

    async fn settled(&self, results: Vec<Settle>) -> Result<Vec<Settled>> {
        let mut written = results.clone();
        if self.world.has(Bug::TopicFenceOff) {
            for settle in &mut written {
                if let Some(job) = self.world.topics.job(settle.id).await? {
                    settle.epoch = job.head.epoch;
                }
            }
        }
        let answers = self.world.topics.settle(written).await?;
        for (asked, answer) in results.iter().zip(&answers) {
            if let Settled::Applied { stage, .. } = answer {
                let success = asked.outcome == Outcome::Success;
                let record =
                    Record::TopicSettled { job: asked.id, epoch: asked.epoch, success, stage: *stage };
                self.world.history.add(record);
            }
            self.world.trace.note(|| {
                format!(
                    "n{} topic settle {} {} {:?} -> {answer:?}",
                    self.node.0, asked.id, asked.epoch, asked.outcome
                )
            });
        }
        Ok(answers)
    }
}

#[async_trait]
impl TopicStore for NodeTopics {
    async fn enqueue(&self, jobs: Vec<NewTopicJob>) -> Result<Vec<Enqueued>> {
        self.through(Kind::Write, "topic enqueue", self.world.topics.enqueue(jobs)).await
    }

    async fn claim(&self, claim: TopicClaim) -> Result<Vec<Assignment>> {
        self.through(Kind::Write, "topic claim", self.claimed(claim)).await
    }

    async fn settle(&self, results: Vec<Settle>) -> Result<Vec<Settled>> {
        self.through(Kind::Write, "topic settle", self.settled(results)).await
    }

    async fn renew(&self, held: Vec<(JobId, Epoch)>, lease: Duration) -> Result<Vec<bool>> {
        self.through(Kind::Write, "topic renew", self.world.topics.renew(held, lease)).await
    }

    async fn expire(&self, limit: usize) -> Result<Swept> {
        self.through(Kind::Write, "topic expire", self.world.topics.expire(limit)).await
    }

    async fn promote(&self, limit: usize) -> Result<Swept> {
        self.through(Kind::Write, "topic promote", self.world.topics.promote(limit)).await
    }

    async fn retry_dead(&self, key: TopicKey, jobs: Vec<JobId>, limit: usize) -> Result<Vec<JobId>> {
        self.through(Kind::Write, "topic retry", self.world.topics.retry_dead(key, jobs, limit)).await
    }

    async fn set_pause(&self, scope: PauseScope, paused: bool, actor: Actor) -> Result<()> {
        self.through(Kind::Write, "topic pause", self.world.topics.set_pause(scope, paused, actor)).await
    }

    async fn retire(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.through(Kind::Write, "topic retire", self.world.topics.retire(before, limit)).await
    }

    async fn pauses(&self) -> Result<Vec<TopicPause>> {
        self.through(Kind::Read, "topic pauses", self.world.topics.pauses()).await
    }

    async fn topics(&self) -> Result<Vec<TopicCounts>> {
        self.through(Kind::Read, "topics", self.world.topics.topics()).await
    }

    async fn job(&self, id: JobId) -> Result<Option<TopicJob>> {
        self.through(Kind::Read, "topic job", self.world.topics.job(id)).await
    }

    async fn products_of(&self, ids: &[JobId]) -> Result<HashMap<JobId, ProductId>> {
        self.through(Kind::Read, "topic products", self.world.topics.products_of(ids)).await
    }

    async fn list(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>> {
        self.through(Kind::Read, "topic list", self.world.topics.list(key, stage, before, limit)).await
    }

    fn stats(&self) -> StoreStats {
        self.world.topics.stats()
    }
}
