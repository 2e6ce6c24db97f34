//! Looking at budgets, products, profiles and effects, once for both databases.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Budget, Charge, Effect, EffectId, EffectReceiver, FeedPos, JobId, Product, ProductId, Profile, Timestamp,
    Usd, Webhook,
};
use giga_ports::StoreError;
use giga_ports::store::{EffectCounts, EffectFilter, GovernanceReads, SpendBucket, SubtreeTotals};

use super::reads::rows_of;
use super::{Driver, Query, SqlBackend};
use crate::rows::{self, Cell, Fields, text};

type Result<T> = std::result::Result<T, StoreError>;

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

#[async_trait]
impl<D: Driver> GovernanceReads for SqlBackend<D> {
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
        for jobs in jobs.chunks(super::reads::IDS_PER_QUERY) {
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

    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals> {
        let query =
            Query { sql: super::graph::subtree_totals(), values: vec![text(root)], table: &rows::JOBS };
        let row = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.count()?, fields.amount()?));
        Ok(super::graph::totals(self.driver.query(query, row).await?))
    }

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
