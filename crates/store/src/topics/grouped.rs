//! A topic store over a database: writes are grouped, reads go straight.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::topic::{TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, Epoch, JobId, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::StoreStats;
use giga_ports::topics::{
    Assignment, Enqueued, NewTopicJob, PauseScope, Settle, Settled, Swept, TopicClaim, TopicCounts,
    TopicOwner, TopicPause, TopicStore,
};
use tokio::sync::oneshot;

use super::command::{Asked, Renewal, Retirement, RetryDead, Round, SetPause, TopicCall};
use crate::grouping::{Group, Transact, Tuning, shutting_down};

type Result<T> = std::result::Result<T, StoreError>;

/// A database, as the topic store sees it.
#[async_trait]
pub(super) trait TopicBackend: Send + Sync + 'static {
    /// Runs the round, decides all of it and commits. On an error nothing of it is known to have stayed.
    async fn run(&self, round: Round) -> (Round, Result<()>);

    async fn pauses(&self) -> Result<Vec<TopicPause>>;
    async fn topics(&self) -> Result<Vec<TopicCounts>>;
    async fn job(&self, id: JobId) -> Result<Option<TopicJob>>;
    async fn owners_of(&self, ids: &[JobId]) -> Result<HashMap<JobId, TopicOwner>>;
    async fn list(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>>;

    fn ready_below(&self, key: &TopicKey, lowest: JobId);
}

struct Target<B>(Arc<B>);

#[async_trait]
impl<B: TopicBackend> Transact<TopicCall> for Target<B> {
    async fn transact(&self, calls: Vec<TopicCall>) -> (Vec<TopicCall>, Result<()>) {
        let (round, result) = self.0.run(Round::of(calls)).await;
        (round.into_calls(), result)
    }
}

pub(super) struct Grouped<B> {
    backend: Arc<B>,
    group: Group<TopicCall>,
}

impl<B: TopicBackend> Grouped<B> {
    pub(super) fn start(backend: B, tuning: Tuning) -> Self {
        let backend = Arc::new(backend);
        Self { group: Group::start(Arc::new(Target(backend.clone())), tuning), backend }
    }

    async fn ask<Q, R>(&self, call: fn(Asked<Q, R>) -> TopicCall, question: Q) -> Result<R> {
        let (asked, answer): (_, oneshot::Receiver<_>) = Asked::new(question);
        self.group.send(call(asked)).await?;
        answer.await.map_err(|_| shutting_down())?
    }
}

#[async_trait]
impl<B: TopicBackend> TopicStore for Grouped<B> {
    async fn enqueue(&self, jobs: Vec<NewTopicJob>) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(TopicCall::Enqueue, jobs).await
    }

    async fn claim(&self, claim: TopicClaim) -> Result<Vec<Assignment>> {
        if claim.slots() == 0 {
            return Ok(Vec::new());
        }
        self.ask(TopicCall::Claim, claim).await
    }

    async fn settle(&self, results: Vec<Settle>) -> Result<Vec<Settled>> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(TopicCall::Settle, results).await
    }

    async fn renew(&self, held: Vec<(JobId, Epoch)>, lease: Duration) -> Result<Vec<bool>> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(TopicCall::Renew, Renewal { held, lease }).await
    }

    async fn expire(&self, limit: usize) -> Result<Swept> {
        self.ask(TopicCall::Expire, limit).await
    }

    async fn promote(&self, limit: usize) -> Result<Swept> {
        self.ask(TopicCall::Promote, limit).await
    }

    async fn retry_dead(&self, key: TopicKey, jobs: Vec<JobId>, limit: usize) -> Result<Vec<JobId>> {
        self.ask(TopicCall::Retry, RetryDead { key, jobs, limit }).await
    }

    async fn set_pause(&self, scope: PauseScope, paused: bool, actor: Actor) -> Result<()> {
        self.ask(TopicCall::Pause, SetPause { scope, paused, actor }).await
    }

    async fn retire(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.ask(TopicCall::Retire, Retirement { before, limit }).await
    }

    async fn pauses(&self) -> Result<Vec<TopicPause>> {
        self.backend.pauses().await
    }

    async fn topics(&self) -> Result<Vec<TopicCounts>> {
        self.backend.topics().await
    }

    async fn job(&self, id: JobId) -> Result<Option<TopicJob>> {
        self.backend.job(id).await
    }

    async fn owners_of(&self, ids: &[JobId]) -> Result<HashMap<JobId, TopicOwner>> {
        self.backend.owners_of(ids).await
    }

    async fn list(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>> {
        self.backend.list(key, stage, before, limit).await
    }

    fn stats(&self) -> StoreStats {
        self.group.stats()
    }

    fn ready_below(&self, key: &TopicKey, lowest: JobId) {
        self.backend.ready_below(key, lowest);
    }
}
