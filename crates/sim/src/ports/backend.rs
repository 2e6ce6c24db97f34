//! One coordinator's connection to the database that all of them share.
//!
//! A transaction may fail before it began, or commit and then lose its answer: the writer above it has to cope with both,
//! as with a real database. Each call waits at the gate first.

mod governance;

use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Artifact, ArtifactId, Event, EventSeq, Factory, FactoryId, FeedPos, Job, JobId, Leadership, ProductId,
    RequestId, Run, Timestamp,
};
use giga_ports::store::{JobFilter, JobText, QueueState, Waiting};
use giga_ports::{StoreError, StoreReads};
use giga_store::engine::{Backend, Batch, Committed};
use serde_json::Value;

use super::{books, cut_off};
use crate::bug::Bug;
use crate::gate::{Kind, Node, Verdict};
use crate::world::World;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug)]
pub(crate) struct NodeBackend {
    pub node: Node,
    pub world: Arc<World>,
}

impl NodeBackend {
    async fn reading<T>(&self, what: &'static str, read: impl Future<Output = Result<T>>) -> Result<T> {
        match self.world.gate.pass(self.node, Kind::Read, what).await {
            Verdict::FailBefore | Verdict::FailAfter => Err(cut_off(what)),
            Verdict::Go => read.await,
            Verdict::GoAndWait => {
                let answer = read.await;
                self.world.gate.pass(self.node, Kind::Answer, what).await;
                answer
            }
        }
    }
}

#[async_trait]
impl Backend for NodeBackend {
    async fn transact(&self, batch: Batch) -> (Batch, Result<Committed>) {
        let verdict = self.world.gate.pass(self.node, Kind::Write, "transact").await;
        if verdict == Verdict::FailBefore {
            return (batch, Err(cut_off("a transaction")));
        }
        let (batch, committed) = self.world.database.transact(batch).await;
        books::look(&self.world).await;
        if verdict == Verdict::GoAndWait {
            self.world.gate.pass(self.node, Kind::Answer, "transact").await;
        }
        let told = if verdict == Verdict::FailAfter { Err(cut_off("a commit's answer")) } else { committed };
        (batch, told)
    }

    async fn any_to_reconsider(&self) -> Result<bool> {
        self.reading("any_to_reconsider", self.world.database.any_to_reconsider()).await
    }
}

#[async_trait]
impl StoreReads for NodeBackend {
    async fn now(&self) -> Result<Timestamp> {
        self.reading("now", self.world.database.now()).await
    }

    async fn ping(&self) -> Result<()> {
        self.reading("ping", self.world.database.ping()).await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.reading("job", self.world.database.job(id)).await
    }

    async fn jobs_by_id(&self, ids: &[JobId]) -> Result<Vec<Job>> {
        self.reading("jobs_by_id", self.world.database.jobs_by_id(ids)).await
    }

    async fn job_text(&self, id: JobId) -> Result<Option<JobText>> {
        self.reading("job_text", self.world.database.job_text(id)).await
    }

    async fn job_by_key(&self, product: &ProductId, key: &str) -> Result<Option<Job>> {
        self.reading("job_by_key", self.world.database.job_by_key(product, key)).await
    }

    async fn list_jobs(&self, filter: &JobFilter, before: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        self.reading("list_jobs", self.world.database.list_jobs(filter, before, limit)).await
    }

    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>> {
        self.reading("subtree", self.world.database.subtree(root, limit)).await
    }

    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        self.reading("live_jobs", self.world.database.live_jobs(after, limit)).await
    }

    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>> {
        self.reading("grant", self.world.database.grant(factory, request)).await
    }

    async fn runs(&self, job: JobId) -> Result<Vec<Run>> {
        self.reading("runs", self.world.database.runs(job)).await
    }

    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>> {
        self.reading("artifacts", self.world.database.artifacts(job)).await
    }

    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>> {
        self.reading("artifact", self.world.database.artifact(id)).await
    }

    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>> {
        self.reading("expired_artifacts", self.world.database.expired_artifacts(before, limit)).await
    }

    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>> {
        self.reading("retirable", self.world.database.retirable(before, limit)).await
    }

    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>> {
        self.reading("job_events", self.world.database.job_events(job, after, limit)).await
    }

    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        let mut page = self.reading("feed", self.world.database.feed(after, limit)).await?;
        if self.world.has(Bug::FeedGap) && page.len() > 2 && after.0 % 5 == 3 {
            page.remove(1);
        }
        Ok(page)
    }

    async fn feed_head(&self) -> Result<FeedPos> {
        self.reading("feed_head", self.world.database.feed_head()).await
    }

    async fn queue_state(&self, product: &ProductId) -> Result<QueueState> {
        self.reading("queue_state", self.world.database.queue_state(product)).await
    }

    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>> {
        self.reading("queue_states", self.world.database.queue_states()).await
    }

    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>> {
        self.reading("factory", self.world.database.factory(id)).await
    }

    async fn factories(&self) -> Result<Vec<Factory>> {
        self.reading("factories", self.world.database.factories()).await
    }

    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>> {
        self.reading("token_by_hash", self.world.database.token_by_hash(hash)).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.reading("tokens", self.world.database.tokens()).await
    }

    async fn outbox(&self, limit: usize) -> Result<Vec<Waiting>> {
        self.reading("outbox", self.world.database.outbox(limit)).await
    }

    async fn leader(&self) -> Result<Option<Leadership>> {
        self.reading("leader", self.world.database.leader()).await
    }

    async fn flags(&self) -> Result<Vec<(String, Value)>> {
        self.reading("flags", self.world.database.flags()).await
    }
}
