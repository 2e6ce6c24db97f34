//! The writer: one task that turns many callers' commands into few transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::factory::Advertised;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Artifact, Factory, FactoryId, FactoryState, FeedPos, Job, JobId, Timestamp, TokenId,
};
use giga_ports::store::{
    ArtifactPut, Claim, Claimed, HolderWrite, NewFactory, NewJob, PutArtifact, Reaped, SettleMerge,
    SteerWrite, StoreStats, Submitted,
};
use giga_ports::{Store, StoreError, StoreReads};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Asked, Backend, Batch, Op, Pending, ops};

#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// The most commands in one transaction.
    pub batch: usize,
    /// Callers past so many waiting commands wait to be let in.
    pub queue: usize,
    /// How long a passing error is retried before callers hear of it.
    pub patience: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { batch: 256, queue: 4096, patience: Duration::from_secs(8) }
    }
}

/// A store over any backend. Dropping the last handle ends the writer after what it has taken on.
#[derive(Debug)]
pub struct BatchStore<B> {
    backend: Arc<B>,
    queue: mpsc::Sender<Box<dyn Pending>>,
    head: watch::Receiver<FeedPos>,
    stats: Arc<Stats>,
}

#[derive(Debug, Default)]
struct Stats {
    commits: AtomicU64,
    commands: AtomicU64,
    retries: AtomicU64,
}

impl<B: Backend> BatchStore<B> {
    /// Starts the writer on the current runtime.
    pub async fn start(backend: B, tuning: Tuning) -> Result<Self, StoreError> {
        let backend = Arc::new(backend);
        let (queue, waiting) = mpsc::channel(tuning.queue);
        let (head_sender, head) = watch::channel(backend.feed_head().await?);
        let stats = Arc::new(Stats::default());
        let writer = Writer { backend: backend.clone(), tuning, head: head_sender, stats: stats.clone() };
        tokio::spawn(writer.run(waiting));
        Ok(Self { backend, queue, head, stats })
    }

    async fn ask<O: Op>(&self, op: O) -> Result<O::Reply, StoreError> {
        let (caller, answer) = oneshot::channel();
        let gone = || StoreError::Unavailable { reason: "the store is shutting down".into(), source: None };
        self.queue.send(Box::new(Asked { op, decided: None, caller })).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

struct Writer<B> {
    backend: Arc<B>,
    tuning: Tuning,
    head: watch::Sender<FeedPos>,
    stats: Arc<Stats>,
}

impl<B: Backend> Writer<B> {
    async fn run(self, mut waiting: mpsc::Receiver<Box<dyn Pending>>) {
        let mut ops = Vec::new();
        // While a transaction is under way others queue up behind it and share the next one: the busier, the
        // fewer transactions per command, and nobody waits for a timer.
        while waiting.recv_many(&mut ops, self.tuning.batch).await > 0 {
            self.commit(Batch { ops: std::mem::take(&mut ops) }).await;
        }
    }

    async fn commit(&self, batch: Batch) {
        let size = batch.len();
        match self.persevere(batch).await {
            Ok(batch) => batch.ops.into_iter().for_each(Pending::answer),
            Err((batch, error)) if size == 1 || error.is_transient() => {
                let text = error.to_string();
                tracing::error!(error = %text, commands = size, "a write failed");
                for op in batch.ops {
                    op.fail(copy_of(&error, &text));
                }
            }
            // One command that the database cannot take must not fail its neighbours.
            Err((batch, _)) => {
                for op in batch.ops {
                    Box::pin(self.commit(Batch { ops: vec![op] })).await;
                }
            }
        }
    }

    /// Runs the batch until it is committed, a lasting error comes up, or patience ends.
    async fn persevere(&self, mut batch: Batch) -> Result<Batch, (Batch, StoreError)> {
        let size = batch.len() as u64;
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_millis(5);
        loop {
            let (returned, result) = self.backend.transact(batch).await;
            match result {
                Ok(committed) => {
                    self.stats.commits.fetch_add(1, Ordering::Relaxed);
                    self.stats.commands.fetch_add(size, Ordering::Relaxed);
                    if let Some(head) = committed.head {
                        self.head.send_replace(head);
                    }
                    return Ok(returned);
                }
                Err(error) if error.is_transient() && waited < self.tuning.patience => {
                    self.stats.retries.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "a write is tried again");
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    pause = (pause * 2).min(Duration::from_millis(500));
                    batch = returned;
                }
                Err(error) => return Err((returned, error)),
            }
        }
    }
}

fn copy_of(error: &StoreError, text: &str) -> StoreError {
    if error.is_transient() {
        StoreError::Unavailable { reason: text.to_owned(), source: None }
    } else {
        StoreError::broken_because(text)
    }
}

#[async_trait]
impl<B: Backend> Store for BatchStore<B> {
    fn read(&self) -> &dyn StoreReads {
        &*self.backend
    }

    fn head(&self) -> watch::Receiver<FeedPos> {
        self.head.clone()
    }

    fn stats(&self) -> StoreStats {
        StoreStats {
            commits: self.stats.commits.load(Ordering::Relaxed),
            commands: self.stats.commands.load(Ordering::Relaxed),
            retries: self.stats.retries.load(Ordering::Relaxed),
        }
    }

    async fn submit(&self, jobs: Vec<NewJob>, actor: Actor) -> Result<Vec<Submitted>, StoreError> {
        self.ask(ops::Submit { jobs, actor }).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.ask(ops::ClaimJob(claim)).await
    }

    async fn hold(&self, write: HolderWrite) -> Result<Job, StoreError> {
        self.ask(ops::Hold(write)).await
    }

    async fn steer(&self, write: SteerWrite) -> Result<Job, StoreError> {
        self.ask(ops::Steer(write)).await
    }

    async fn take_merge(&self, factory: FactoryId, lease: Duration) -> Result<Option<Job>, StoreError> {
        self.ask(ops::TakeMerge { factory, lease }).await
    }

    async fn settle_merge(&self, settled: SettleMerge) -> Result<Job, StoreError> {
        self.ask(ops::Settle(settled)).await
    }

    async fn expire_leases(&self, limit: usize) -> Result<Reaped, StoreError> {
        self.ask(ops::ExpireLeases { limit }).await
    }

    async fn unblock(&self, limit: usize) -> Result<Vec<JobId>, StoreError> {
        self.ask(ops::Unblock { limit }).await
    }

    async fn put_artifact(&self, put: PutArtifact) -> Result<ArtifactPut, StoreError> {
        self.ask(ops::PutArtifact(put)).await
    }

    async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::DeleteArtifact { artifact, actor }).await
    }

    async fn retire(&self, before: Timestamp, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        self.ask(ops::Retire { before, jobs }).await
    }

    async fn enroll(&self, factory: NewFactory, actor: Actor) -> Result<Factory, StoreError> {
        self.ask(ops::Enroll { factory, actor }).await
    }

    async fn advertise(&self, factory: FactoryId, advertised: Advertised) -> Result<Factory, StoreError> {
        self.ask(ops::Advertise { factory, advertised }).await
    }

    async fn touch(&self, seen: Vec<(FactoryId, Timestamp)>) -> Result<(), StoreError> {
        self.ask(ops::Touch { seen }).await
    }

    async fn set_factory_state(
        &self,
        factory: FactoryId,
        state: FactoryState,
        actor: Actor,
    ) -> Result<Factory, StoreError> {
        self.ask(ops::SetFactoryState { factory, state, actor }).await
    }

    async fn deregister(&self, factory: FactoryId, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::Deregister { factory, actor }).await
    }

    async fn prune(&self, before: Timestamp, actor: Actor) -> Result<Vec<FactoryId>, StoreError> {
        self.ask(ops::Prune { before, actor }).await
    }

    async fn rotate_token(
        &self,
        factory: FactoryId,
        token: TokenRecord,
        grace: Duration,
        actor: Actor,
    ) -> Result<(), StoreError> {
        self.ask(ops::RotateToken { factory, token, grace, actor }).await
    }

    async fn revoke_factory_tokens(&self, factory: FactoryId, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::RevokeFactoryTokens { factory, actor }).await
    }

    async fn issue_token(&self, token: TokenRecord, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::IssueToken { token, actor }).await
    }

    async fn revoke_token(&self, token: TokenId, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::RevokeToken { token, actor }).await
    }

    async fn set_flag(&self, name: &'static str, value: Value, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::SetFlag { name, value, actor }).await
    }
}
