//! Looking at budgets, products, profiles and effects: plain scans.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Budget, Charge, Effect, EffectId, EffectReceiver, FeedPos, JobId, JobKind, Product, ProductId, Profile,
    Timestamp, Usd, Webhook,
};
use giga_ports::StoreError;
use giga_ports::store::{EffectCounts, EffectFilter, GovernanceReads, SpendBucket, SubtreeTotals};

use super::MemoryBackend;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl GovernanceReads for MemoryBackend {
    async fn budget(&self, product: &ProductId) -> Result<Option<Budget>> {
        let tables = self.tables();
        let known = tables.budgets.get(product).filter(|row| !row.is_blank());
        Ok(known.map(|row| row.budget.clone()))
    }

    async fn budgets(&self) -> Result<Vec<Budget>> {
        let tables = self.tables();
        let known = tables.budgets.values().filter(|row| !row.is_blank());
        Ok(known.map(|row| row.budget.clone()).collect())
    }

    async fn burndown(
        &self,
        product: &ProductId,
        from: Timestamp,
        to: Timestamp,
        bucket: Duration,
    ) -> Result<Vec<SpendBucket>> {
        let width = i64::try_from(bucket.as_millis()).unwrap_or(i64::MAX).max(1);
        let mut buckets: BTreeMap<Timestamp, SpendBucket> = BTreeMap::new();
        let tables = self.tables();
        let inside = |charge: &&Charge| charge.product == *product && charge.at >= from && charge.at < to;
        for charge in tables.charges.iter().filter(inside) {
            let since = (charge.at.as_millis() - from.as_millis()) % width;
            let from = Timestamp::from_millis(charge.at.as_millis() - since);
            let empty = SpendBucket { from, usd: Usd::ZERO, tokens: 0, runs: 0 };
            let sum = buckets.entry(from).or_insert(empty);
            sum.usd += charge.usd;
            sum.tokens += charge.tokens;
            sum.runs += u64::from(charge.run.is_some());
        }
        Ok(buckets.into_values().collect())
    }

    async fn charges(&self, job: JobId) -> Result<Vec<Charge>> {
        let tables = self.tables();
        let of_job = |charge: &&Charge| charge.run.is_some_and(|(id, _)| id == job);
        let mut charges: Vec<_> = tables.charges.iter().filter(of_job).cloned().collect();
        // Stable: those of one epoch stay in the order in which they were charged.
        charges.sort_by_key(|charge| charge.run.map(|(_, epoch)| epoch));
        Ok(charges)
    }

    async fn charged_to(&self, jobs: &[JobId]) -> Result<Vec<(JobId, Usd)>> {
        let mut sums: BTreeMap<JobId, Usd> = BTreeMap::new();
        for charge in &self.tables().charges {
            if let Some((job, _)) = charge.run.filter(|(job, _)| jobs.contains(job)) {
                *sums.entry(job).or_default() += charge.usd;
            }
        }
        Ok(sums.into_iter().map(|(job, sum)| (job, sum.max(Usd::ZERO))).collect())
    }

    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals> {
        let tables = self.tables();
        let mut totals = SubtreeTotals::default();
        let tree = tables.subtree(root, usize::MAX);
        for job in tree.iter().filter(|job| job.spec.kind == JobKind::Agent) {
            totals.by_stage[job.stage() as usize] += 1;
            totals.spent += job.lease().map_or(Usd::ZERO, |lease| lease.spent.usd);
            let of_job = |charge: &&Charge| charge.run.is_some_and(|(id, _)| id == job.id);
            let charged: Usd = tables.charges.iter().filter(of_job).map(|charge| charge.usd).sum();
            totals.spent += charged.max(Usd::ZERO);
        }
        Ok(totals)
    }

    async fn products(&self) -> Result<Vec<Product>> {
        Ok(self.tables().registry.products.values().cloned().collect())
    }

    async fn profiles(&self, product: &ProductId) -> Result<Vec<Profile>> {
        Ok(self.tables().registry.newest_of(product))
    }

    async fn profile(
        &self,
        product: &ProductId,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<Profile>> {
        let tables = self.tables();
        Ok(match version {
            Some(version) => {
                tables.registry.profiles.get(&(product.clone(), name.to_owned(), version)).cloned()
            }
            None => tables.registry.newest(product, name).cloned(),
        })
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        Ok(self.tables().effects.webhooks.values().cloned().collect())
    }

    async fn fan_out_cursor(&self) -> Result<FeedPos> {
        Ok(self.tables().effects.cursor)
    }

    async fn effect(&self, id: &EffectId) -> Result<Option<Effect>> {
        Ok(self.tables().effects.effects.get(id).cloned())
    }

    async fn effects(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Result<Vec<Effect>> {
        Ok(self.tables().effects.list(filter, before, limit))
    }

    async fn effect_receivers(&self) -> Result<Vec<(EffectReceiver, Timestamp)>> {
        Ok(self.tables().effects.receivers())
    }

    async fn effect_counts(&self) -> Result<EffectCounts> {
        Ok(self.tables().effects.counts())
    }
}
