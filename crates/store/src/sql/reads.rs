//! Looking without touching, once for both databases.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Artifact, ArtifactId, Budget, Charge, Effect, EffectId, EffectReceiver, Event, EventSeq, Factory,
    FactoryId, FeedPos, Job, JobId, Leadership, Member, Pool, Product, ProductId, Profile, RequestId, Run,
    SealedSecret, Secret, SecretName, Stage, Timestamp, Usd, Webhook,
};
use giga_ports::StoreError;
use giga_ports::store::{
    ArtifactReads, BudgetReads, DispatchReads, EffectCounts, EffectFilter, EventReads, FactoryReads,
    GraphReads, HealthReads, HistoryOf, JobFilter, JobReads, JobText, OutboxReads, PoolReads, QueueState,
    RegistryReads, SecretReads, SpendBucket, SubtreeTotals, TokenReads, Waiting,
};
use serde_json::Value;

use super::{
    Decode, Driver, FIRST_ASKING, Query, RETIRABLE_TAIL, SqlBackend, graph, retirable, select, select_jobs,
    select_jobs_from, stages,
};
use crate::rows::{self, Cell, Fields, JOB_READ, Kind, Table, text};

type Result<T> = std::result::Result<T, StoreError>;

/// Well below what either database takes as parameters of one statement.
const IDS_PER_QUERY: usize = 500;

/// Whole stretches of `$2` milliseconds from `$1` on.
const BURNDOWN: &str = "\
    SELECT at - (at - $1) % $2, CAST(sum(usd) AS BIGINT), CAST(sum(tokens) AS BIGINT), count(job_id) \
    FROM charges WHERE product_id = $3 AND at >= $1 AND at < $4 GROUP BY 1 ORDER BY 1";

/// From one receiver to the next, and for each the first that is due: two looks into an index each, however much waits.
const RECEIVERS: &str = "\
    WITH RECURSIVE known (receiver) AS ( \
        SELECT min(receiver) FROM effects WHERE due_at IS NOT NULL \
        UNION ALL \
        SELECT (SELECT min(effects.receiver) FROM effects \
                WHERE effects.due_at IS NOT NULL AND effects.receiver > known.receiver) \
        FROM known WHERE known.receiver IS NOT NULL) \
    SELECT receiver, due_at FROM ( \
        SELECT known.receiver AS receiver, (SELECT min(effects.due_at) FROM effects \
            WHERE effects.receiver = known.receiver AND effects.due_at IS NOT NULL) AS due_at \
        FROM known WHERE known.receiver IS NOT NULL) AS waiting \
    WHERE due_at IS NOT NULL ORDER BY due_at, receiver";

/// How an actor begins that is a token. The index `events_by_people` is made with the same words.
pub(crate) const BY_PEOPLE: &str = r#"substr(actor, 1, 15) = '{"kind":"token"'"#;

const FEED: Table = Table { name: "feed", key: 0, columns: &[("last_pos", Kind::Int)] };

/// As the indexes have it, so that each part is found without looking at the others.
pub(crate) fn history_query(of: HistoryOf, before: Option<FeedPos>, limit: usize) -> (String, Vec<Cell>) {
    let mut values = vec![before.map_or(Cell::Int(i64::MAX), |pos| pos.0.into())];
    let (which, order) = match of {
        HistoryOf::Everything => (String::new(), "pos"),
        HistoryOf::People => (format!(" AND {BY_PEOPLE}"), "pos"),
        // Not by `job_id`: the index by job would be taken for it, and all that is in there sorted.
        HistoryOf::NoJob => (" AND seq IS NULL".to_owned(), "pos"),
        HistoryOf::Job(job) => {
            values.push(text(job));
            (" AND job_id = $2".to_owned(), "seq")
        }
    };
    values.push(limit.into());
    (format!("WHERE pos < $1{which} ORDER BY {order} DESC LIMIT ${}", values.len()), values)
}

async fn jobs(driver: &impl Driver, tail: &str, values: Vec<Cell>) -> Result<Vec<Job>> {
    let query = Query { sql: select_jobs(tail), values, table: &JOB_READ };
    driver.query(query, rows::leased_job).await
}

async fn rows_of<T: Send + 'static>(
    driver: &impl Driver,
    table: &'static Table,
    tail: &str,
    values: Vec<Cell>,
    decode: Decode<T>,
) -> Result<Vec<T>> {
    driver.query(Query { sql: select(table, tail), values, table }, decode).await
}

#[async_trait]
impl<D: Driver> HealthReads for SqlBackend<D> {
    async fn now(&self) -> Result<Timestamp> {
        self.driver.now().await
    }

    async fn ping(&self) -> Result<()> {
        self.driver.ping().await
    }
}

#[async_trait]
impl<D: Driver> JobReads for SqlBackend<D> {
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

    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        // The stages are written as in the index `jobs_live`, which answers this without sorting.
        let live = stages(Stage::is_live);
        let tail = format!("WHERE jobs.stage IN {live} AND jobs.id > $1 ORDER BY jobs.id LIMIT $2");
        let after = after.map_or_else(|| Cell::from(""), text);
        let sql = select_jobs_from(D::LIVE_JOBS, &tail);
        let query = Query { sql, values: vec![after, limit.into()], table: &JOB_READ };
        self.driver.query(query, rows::leased_job).await
    }

    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>> {
        let tail = "WHERE leases.factory_id = $1 AND leases.request_id = $2 ORDER BY jobs.id DESC";
        Ok(jobs(&self.driver, tail, vec![text(factory), text(request)]).await?.pop())
    }

    async fn asking(&self, limit: usize) -> Result<Vec<(JobId, Timestamp)>> {
        let query = Query { sql: FIRST_ASKING.to_owned(), values: vec![limit.into()], table: &rows::JOBS };
        self.driver.query(query, |fields| Ok((fields.parse()?, fields.time()?))).await
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

    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>> {
        let values = vec![before.into(), limit.into()];
        let query = Query { sql: retirable(RETIRABLE_TAIL), values, table: &rows::JOBS };
        self.driver.query(query, rows::id).await
    }

    async fn queue_state(&self, product: &ProductId) -> Result<QueueState> {
        let values = vec![text(product)];
        let found =
            rows_of(&self.driver, &rows::QUEUE_COUNTS, "WHERE product_id = $1", values, rows::queue_count);
        Ok(rows::queue_states(found.await?).pop().map(|(_, state)| state).unwrap_or_default())
    }

    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>> {
        let found =
            rows_of(&self.driver, &rows::QUEUE_COUNTS, "ORDER BY product_id", Vec::new(), rows::queue_count);
        Ok(rows::queue_states(found.await?))
    }
}

#[async_trait]
impl<D: Driver> ArtifactReads for SqlBackend<D> {
    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>> {
        let tail = "WHERE job_id = $1 ORDER BY lease_epoch, name";
        rows_of(&self.driver, &rows::ARTIFACTS, tail, vec![text(job)], rows::artifact).await
    }

    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>> {
        let found = rows_of(&self.driver, &rows::ARTIFACTS, "WHERE id = $1", vec![text(id)], rows::artifact);
        Ok(found.await?.pop())
    }

    async fn artifact_bytes(&self, product: &ProductId) -> Result<u64> {
        let sql = "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM artifacts WHERE product_id = $1";
        let query = Query { sql: sql.to_owned(), values: vec![text(product)], table: &rows::ARTIFACT_BYTES };
        Ok(self.driver.query(query, rows::artifact_bytes).await?.pop().unwrap_or(0))
    }

    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>> {
        let tail = "WHERE created_at < $1 AND EXISTS ( \
             SELECT 1 FROM jobs WHERE jobs.id = artifacts.job_id AND jobs.ended_at < $1) ORDER BY id LIMIT $2";
        let values = vec![before.into(), limit.into()];
        rows_of(&self.driver, &rows::ARTIFACTS, tail, values, rows::artifact).await
    }
}

#[async_trait]
impl<D: Driver> GraphReads for SqlBackend<D> {
    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>> {
        let query = Query { sql: graph::subtree(), values: vec![text(root), limit.into()], table: &JOB_READ };
        self.driver.query(query, rows::leased_job).await
    }

    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals> {
        let query = Query { sql: graph::subtree_totals(), values: vec![text(root)], table: &rows::JOBS };
        let row = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.count()?, fields.amount()?));
        Ok(graph::totals(self.driver.query(query, row).await?))
    }
}

#[async_trait]
impl<D: Driver> FactoryReads for SqlBackend<D> {
    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>> {
        let found = rows_of(&self.driver, &rows::FACTORIES, "WHERE id = $1", vec![text(id)], rows::factory);
        Ok(found.await?.pop())
    }

    async fn factories(&self) -> Result<Vec<Factory>> {
        rows_of(&self.driver, &rows::FACTORIES, "ORDER BY id", Vec::new(), rows::factory).await
    }
}

#[async_trait]
impl<D: Driver> TokenReads for SqlBackend<D> {
    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>> {
        let values = vec![hash.to_hex().into()];
        Ok(rows_of(&self.driver, &rows::TOKENS, "WHERE hash = $1", values, rows::token).await?.pop())
    }

    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        rows_of(&self.driver, &rows::TOKENS, "ORDER BY created_at, id", Vec::new(), rows::token).await
    }
}

#[async_trait]
impl<D: Driver> DispatchReads for SqlBackend<D> {
    async fn unsent_offers(&self, limit: usize) -> Result<Vec<Waiting>> {
        let tail = "ORDER BY since, job_id, dispatch_seq LIMIT $1";
        rows_of(&self.driver, &rows::OFFERS, tail, vec![limit.into()], rows::waiting).await
    }

    async fn leader(&self) -> Result<Option<Leadership>> {
        let found = rows_of(&self.driver, &rows::LEADER, "", Vec::new(), rows::leader);
        Ok(found.await?.pop().flatten())
    }
}

#[async_trait]
impl<D: Driver> BudgetReads for SqlBackend<D> {
    async fn budget(&self, product: &ProductId) -> Result<Option<Budget>> {
        let found =
            rows_of(&self.driver, &rows::BUDGETS, "WHERE product_id = $1", vec![text(product)], rows::budget);
        Ok(found.await?.pop().filter(|row| !row.is_blank()).map(|row| row.budget))
    }

    async fn budgets(&self) -> Result<Vec<Budget>> {
        let found = rows_of(&self.driver, &rows::BUDGETS, "ORDER BY product_id", Vec::new(), rows::budget);
        Ok(found.await?.into_iter().filter(|row| !row.is_blank()).map(|row| row.budget).collect())
    }

    async fn burndown(
        &self,
        product: &ProductId,
        from: Timestamp,
        to: Timestamp,
        bucket: Duration,
    ) -> Result<Vec<SpendBucket>> {
        let width = i64::try_from(bucket.as_millis()).unwrap_or(i64::MAX).max(1);
        let values = vec![from.into(), Cell::Int(width), text(product), to.into()];
        let query = Query { sql: BURNDOWN.to_owned(), values, table: &rows::BUCKETS };
        self.driver.query(query, rows::bucket).await
    }

    async fn charges(&self, job: JobId) -> Result<Vec<Charge>> {
        let tail = "WHERE job_id = $1 ORDER BY lease_epoch, id";
        rows_of(&self.driver, &rows::CHARGES, tail, vec![text(job)], rows::charge).await
    }

    async fn charged_to(&self, jobs: &[JobId]) -> Result<Vec<(JobId, Usd)>> {
        let mut sums = Vec::new();
        for jobs in jobs.chunks(IDS_PER_QUERY) {
            let places: Vec<_> = (1..=jobs.len()).map(|n| format!("${n}")).collect();
            let places = places.join(", ");
            // A run is never charged less than nothing.
            let sql = format!(
                "SELECT job_id, CAST(sum(usd) AS BIGINT) FROM charges WHERE job_id IN ({places}) GROUP BY job_id"
            );
            let values = jobs.iter().map(text).collect();
            let query = Query { sql, values, table: &rows::CHARGES };
            let row = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.amount()?));
            sums.extend(self.driver.query(query, row).await?);
        }
        Ok(sums)
    }
}

#[async_trait]
impl<D: Driver> OutboxReads for SqlBackend<D> {
    async fn fan_out_cursor(&self) -> Result<FeedPos> {
        let cursor = rows_of(&self.driver, &rows::FAN_OUT, "", Vec::new(), rows::cursor).await?.pop();
        cursor.ok_or_else(|| StoreError::broken_because("fan_out has lost its row"))
    }

    async fn effect(&self, id: &EffectId) -> Result<Option<Effect>> {
        Ok(rows_of(&self.driver, &rows::EFFECTS, "WHERE id = $1", vec![text(id)], rows::effect).await?.pop())
    }

    async fn effects(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Result<Vec<Effect>> {
        let (tail, values) = rows::effects_query(filter, before, limit);
        rows_of(&self.driver, &rows::EFFECTS, &tail, values, rows::effect).await
    }

    async fn effect_receivers(&self) -> Result<Vec<(EffectReceiver, Timestamp)>> {
        let query = Query { sql: RECEIVERS.to_owned(), values: Vec::new(), table: &rows::EFFECT_RECEIVERS };
        self.driver.query(query, rows::effect_receiver).await
    }

    async fn effect_counts(&self) -> Result<EffectCounts> {
        // Each in an index that holds exactly what is counted; what was delivered is in neither.
        let most = EffectCounts::MOST;
        let counted = |what: &str| {
            format!("(SELECT count(*) FROM (SELECT 1 FROM effects WHERE {what} LIMIT {most}) AS counted)")
        };
        let (pending, dead) = (counted("due_at IS NOT NULL"), counted("state = 'dead'"));
        let sql = format!("SELECT {pending}, {dead}, min(created_at) FROM effects WHERE due_at IS NOT NULL");
        let query = Query { sql, values: Vec::new(), table: &rows::EFFECT_COUNTS };
        Ok(self.driver.query(query, rows::effect_counts).await?.pop().unwrap_or_default())
    }
}

#[async_trait]
impl<D: Driver> PoolReads for SqlBackend<D> {
    async fn pools(&self) -> Result<Vec<Pool>> {
        rows_of(&self.driver, &rows::POOLS, "ORDER BY name", Vec::new(), rows::pool).await
    }

    async fn pool_members(&self) -> Result<Vec<Member>> {
        rows_of(&self.driver, &rows::MEMBERS, "ORDER BY factory_id", Vec::new(), rows::member).await
    }
}

#[async_trait]
impl<D: Driver> SecretReads for SqlBackend<D> {
    async fn secrets(&self, product: &ProductId) -> Result<Vec<Secret>> {
        let tail = "WHERE product_id = $1 ORDER BY name";
        rows_of(&self.driver, &rows::JOB_SECRET_LABELS, tail, vec![text(product)], rows::secret).await
    }

    async fn sealed_secret(&self, product: &ProductId, name: &SecretName) -> Result<Option<SealedSecret>> {
        let (tail, values) = ("WHERE product_id = $1 AND name = $2", vec![text(product), text(name)]);
        Ok(rows_of(&self.driver, &rows::JOB_SECRETS, tail, values, rows::sealed_secret).await?.pop())
    }

    async fn all_secrets(&self) -> Result<Vec<Secret>> {
        let tail = "ORDER BY product_id, name";
        rows_of(&self.driver, &rows::JOB_SECRET_LABELS, tail, Vec::new(), rows::secret).await
    }
}

#[async_trait]
impl<D: Driver> RegistryReads for SqlBackend<D> {
    async fn products(&self) -> Result<Vec<Product>> {
        rows_of(&self.driver, &rows::PRODUCTS, "ORDER BY product_id", Vec::new(), rows::product).await
    }

    async fn profiles(&self, product: &ProductId) -> Result<Vec<Profile>> {
        let tail = "WHERE product_id = $1 AND NOT EXISTS ( \
                        SELECT 1 FROM profiles AS newer WHERE newer.product_id = profiles.product_id \
                        AND newer.name = profiles.name AND newer.version > profiles.version) \
                    ORDER BY name";
        rows_of(&self.driver, &rows::PROFILES, tail, vec![text(product)], rows::profile).await
    }

    async fn profile(
        &self,
        product: &ProductId,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<Profile>> {
        let mut values = vec![text(product), name.into()];
        values.extend(version.map(|version| u64::from(version).into()));
        let tail = match version {
            Some(_) => "WHERE product_id = $1 AND name = $2 AND version = $3",
            None => "WHERE product_id = $1 AND name = $2 ORDER BY version DESC LIMIT 1",
        };
        Ok(rows_of(&self.driver, &rows::PROFILES, tail, values, rows::profile).await?.pop())
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        rows_of(&self.driver, &rows::WEBHOOKS, "ORDER BY id", Vec::new(), rows::webhook).await
    }

    async fn flags(&self) -> Result<Vec<(String, Value)>> {
        rows_of(&self.driver, &rows::FLAGS, "ORDER BY name", Vec::new(), rows::flag).await
    }
}

#[async_trait]
impl<D: Driver> EventReads for SqlBackend<D> {
    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>> {
        let tail = "WHERE job_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        rows_of(&self.driver, &rows::EVENTS, tail, vec![text(job), after.0.into(), limit.into()], rows::event)
            .await
    }

    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        let tail = "WHERE pos > $1 ORDER BY pos LIMIT $2";
        rows_of(&self.driver, &rows::EVENTS, tail, vec![after.0.into(), limit.into()], rows::event).await
    }

    async fn history(&self, of: &HistoryOf, before: Option<FeedPos>, limit: usize) -> Result<Vec<Event>> {
        let (tail, values) = history_query(*of, before, limit);
        rows_of(&self.driver, &rows::EVENTS, &tail, values, rows::event).await
    }

    async fn feed_head(&self) -> Result<FeedPos> {
        let head = rows_of(&self.driver, &FEED, "", Vec::new(), rows::number).await?.pop();
        head.map(FeedPos).ok_or_else(|| StoreError::broken_because("feed has lost its row"))
    }
}
