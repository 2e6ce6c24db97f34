//! One coordinator's way to the topic jobs that all of them share, behind the turnstile and written down for the checkers.

use std::sync::Arc;

use giga_domain::topic::Outcome;
use giga_domain::{Actor, WorkerId};
use giga_ports::topics::{Assignment, PauseScope, Settle, Settled, TopicClaim};
use giga_ports::{InterceptTopics, StoreError, TopicStore};

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
}

impl InterceptTopics for NodeTopics {
    fn inner(&self) -> &dyn TopicStore {
        &self.world.topics
    }

    async fn around<T: Send>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.through(Kind::Write, call, answer).await
    }

    async fn around_read<T: Send>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.through(Kind::Read, call, answer).await
    }

    async fn claim(&self, claim: TopicClaim) -> Result<Vec<Assignment>> {
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

    async fn settle(&self, results: Vec<Settle>) -> Result<Vec<Settled>> {
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
