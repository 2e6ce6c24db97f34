//! Looking without touching, once for both databases.

use async_trait::async_trait;
use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Artifact, ArtifactId, Event, EventSeq, Factory, FactoryId, FeedPos, Job, JobId, Leadership, ProductId,
    RequestId, Run, Timestamp,
};
use giga_ports::store::{JobFilter, JobText, QueueState, Waiting};
use giga_ports::{StoreError, StoreReads};
use serde_json::Value;

use super::{
    Decode, Driver, Query, RETIRABLE_TAIL, SqlBackend, retirable, select, select_jobs, select_jobs_from,
};
use crate::rows::{self, Cell, JOB_READ, Kind, Table, text};

type Result<T> = std::result::Result<T, StoreError>;

/// Well below what either database takes as parameters of one statement.
pub(super) const IDS_PER_QUERY: usize = 500;

const FEED: Table = Table { name: "feed", key: 0, columns: &[("last_pos", Kind::Int)] };

async fn jobs(driver: &impl Driver, tail: &str, values: Vec<Cell>) -> Result<Vec<Job>> {
    let query = Query { sql: select_jobs(tail), values, table: &JOB_READ };
    driver.query(query, rows::leased_job).await
}

pub(super) async fn rows_of<T: Send + 'static>(
    driver: &impl Driver,
    table: &'static Table,
    tail: &str,
    values: Vec<Cell>,
    decode: Decode<T>,
) -> Result<Vec<T>> {
    driver.query(Query { sql: select(table, tail), values, table }, decode).await
}

#[async_trait]
impl<D: Driver> StoreReads for SqlBackend<D> {
    async fn now(&self) -> Result<Timestamp> {
        self.driver.now().await
    }

    async fn ping(&self) -> Result<()> {
        self.driver.ping().await
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        Ok(jobs(&self.driver, "WHERE jobs.id = $1", vec![text(id)]).await?.pop())
    }

    async fn jobs_by_id(&self, ids: &[JobId]) -> Result<Vec<Job>> {
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(IDS_PER_QUERY) {
            let places: Vec<_> = (1..=ids.len()).map(|n| format!("${n}")).collect();
            let tail = format!("WHERE jobs.id IN ({})", places.join(", "));
            found.extend(jobs(&self.driver, &tail, ids.iter().map(text).collect()).await?);
        }
        Ok(found)
    }

    async fn job_text(&self, id: JobId) -> Result<Option<JobText>> {
        let found =
            rows_of(&self.driver, &rows::JOB_TEXTS, "WHERE job_id = $1", vec![text(id)], rows::job_text);
        Ok(found.await?.pop())
    }

    async fn job_by_key(&self, product: &ProductId, key: &str) -> Result<Option<Job>> {
        let tail = "WHERE jobs.product_id = $1 AND jobs.idempotency_key = $2";
        Ok(jobs(&self.driver, tail, vec![text(product), key.into()]).await?.pop())
    }

    async fn list_jobs(&self, filter: &JobFilter, before: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        let (tail, values) = rows::list_query(filter, before, limit, D::NAME_CONTAINS);
        jobs(&self.driver, &tail, values).await
    }

    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>> {
        let query =
            Query { sql: super::graph::subtree(), values: vec![text(root), limit.into()], table: &JOB_READ };
        self.driver.query(query, rows::leased_job).await
    }

    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        // The stages are written as in the index `jobs_live`, which answers this without sorting.
        let tail = "WHERE jobs.stage IN ('queued', 'assigned', 'building') AND jobs.id > $1 \
                    ORDER BY jobs.id LIMIT $2";
        let after = after.map_or_else(|| Cell::from(""), text);
        let sql = select_jobs_from(D::LIVE_JOBS, tail);
        let query = Query { sql, values: vec![after, limit.into()], table: &JOB_READ };
        self.driver.query(query, rows::leased_job).await
    }

    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>> {
        let tail = "WHERE leases.factory_id = $1 AND leases.request_id = $2 ORDER BY jobs.id DESC";
        Ok(jobs(&self.driver, tail, vec![text(factory), text(request)]).await?.pop())
    }

    async fn runs(&self, job: JobId) -> Result<Vec<Run>> {
        rows_of(
            &self.driver,
            &rows::RUNS,
            "WHERE job_id = $1 ORDER BY lease_epoch",
            vec![text(job)],
            rows::run,
        )
        .await
    }

    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>> {
        let tail = "WHERE job_id = $1 ORDER BY lease_epoch, name";
        rows_of(&self.driver, &rows::ARTIFACTS, tail, vec![text(job)], rows::artifact).await
    }

    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>> {
        let found = rows_of(&self.driver, &rows::ARTIFACTS, "WHERE id = $1", vec![text(id)], rows::artifact);
        Ok(found.await?.pop())
    }

    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>> {
        let tail = "WHERE created_at < $1 AND EXISTS ( \
             SELECT 1 FROM jobs WHERE jobs.id = artifacts.job_id AND jobs.ended_at < $1) ORDER BY id LIMIT $2";
        let values = vec![before.into(), limit.into()];
        rows_of(&self.driver, &rows::ARTIFACTS, tail, values, rows::artifact).await
    }

    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>> {
        let values = vec![before.into(), limit.into()];
        let query = Query { sql: retirable(RETIRABLE_TAIL), values, table: &rows::JOBS };
        self.driver.query(query, rows::id).await
    }

    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>> {
        let tail = "WHERE job_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        rows_of(&self.driver, &rows::EVENTS, tail, vec![text(job), after.0.into(), limit.into()], rows::event)
            .await
    }

    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        let tail = "WHERE pos > $1 ORDER BY pos LIMIT $2";
        rows_of(&self.driver, &rows::EVENTS, tail, vec![after.0.into(), limit.into()], rows::event).await
    }

    async fn feed_head(&self) -> Result<FeedPos> {
        let head = rows_of(&self.driver, &FEED, "", Vec::new(), rows::number).await?.pop();
        head.map(FeedPos).ok_or_else(|| StoreError::broken_because("feed has lost its row"))
    }

    async fn queue_state(&self, product: &ProductId) -> Result<QueueState> {
        let values = vec![text(product)];
        let found =
            rows_of(&self.driver, &rows::QUEUE_STATE, "WHERE product_id = $1", values, rows::queue_state);
        Ok(found.await?.pop().map(|(_, state)| state).unwrap_or_default())
    }

    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>> {
        rows_of(&self.driver, &rows::QUEUE_STATE, "ORDER BY product_id", Vec::new(), rows::queue_state).await
    }

    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>> {
        let found = rows_of(&self.driver, &rows::FACTORIES, "WHERE id = $1", vec![text(id)], rows::factory);
        Ok(found.await?.pop())
    }

    async fn factories(&self) -> Result<Vec<Factory>> {
        rows_of(&self.driver, &rows::FACTORIES, "ORDER BY id", Vec::new(), rows::factory).await
    }

    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>> {
        let values = vec![hash.to_hex().into()];
        Ok(rows_of(&self.driver, &rows::TOKENS, "WHERE hash = $1", values, rows::token).await?.pop())
    }

    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        rows_of(&self.driver, &rows::TOKENS, "ORDER BY created_at, id", Vec::new(), rows::token).await
    }

    async fn outbox(&self, limit: usize) -> Result<Vec<Waiting>> {
        let tail = "ORDER BY since, job_id, dispatch_seq LIMIT $1";
        rows_of(&self.driver, &rows::OUTBOX, tail, vec![limit.into()], rows::waiting).await
    }

    async fn leader(&self) -> Result<Option<Leadership>> {
        let found = rows_of(&self.driver, &rows::LEADER, "", Vec::new(), rows::leader);
        Ok(found.await?.pop().flatten())
    }

    async fn flags(&self) -> Result<Vec<(String, Value)>> {
        rows_of(&self.driver, &rows::FLAGS, "ORDER BY name", Vec::new(), rows::flag).await
    }
}
