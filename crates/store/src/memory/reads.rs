//! Looking without touching: plain scans.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Artifact, ArtifactId, Budget, Charge, Effect, EffectId, EffectReceiver, Event, EventSeq, Factory,
    FactoryId, FeedPos, Job, JobId, JobKind, Leadership, Member, Pool, Product, ProductId, Profile,
    RequestId, Run, SealedSecret, Secret, SecretName, Timestamp, Usd, Webhook,
};
use giga_ports::StoreError;
use giga_ports::store::{
    ArtifactReads, BudgetReads, DispatchReads, EffectCounts, EffectFilter, EventReads, FactoryReads,
    GraphReads, HealthReads, HistoryOf, JobFilter, JobReads, JobText, OutboxReads, PoolReads, QueueState,
    RegistryReads, SecretReads, SpendBucket, SubtreeTotals, TokenReads, Waiting,
};
use serde_json::Value;

use super::MemoryBackend;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl HealthReads for MemoryBackend {
    async fn now(&self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl JobReads for MemoryBackend {
    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        Ok(self.tables().jobs.get(&id).cloned())
    }

    async fn jobs_by_id(&self, ids: &[JobId]) -> Result<Vec<Job>> {
        let tables = self.tables();
        Ok(ids.iter().filter_map(|id| tables.jobs.get(id).cloned()).collect())
    }

    async fn job_text(&self, id: JobId) -> Result<Option<JobText>> {
        Ok(self.tables().texts.get(&id).cloned())
    }

    async fn job_by_key(&self, product: &ProductId, key: &str) -> Result<Option<Job>> {
        let tables = self.tables();
        let made = tables.keys.get(&(product.clone(), key.to_owned()));
        Ok(made.and_then(|(id, _)| tables.jobs.get(id).cloned()))
    }

    async fn list_jobs(&self, filter: &JobFilter, before: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        let tables = self.tables();
        let older = tables.jobs.values().rev().filter(|job| before.is_none_or(|end| job.id < end));
        Ok(older.filter(|job| filter.matches(job)).take(limit).cloned().collect())
    }

    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        let tables = self.tables();
        let newer = tables.jobs.values().filter(|job| after.is_none_or(|start| job.id > start));
        let live = newer.filter(|job| job.stage().is_live());
        Ok(live.take(limit).cloned().collect())
    }

    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>> {
        Ok(self.tables().grant(factory, request).cloned())
    }

    async fn asking(&self, limit: usize) -> Result<Vec<(JobId, Timestamp)>> {
        let due = |job: &Job| Some((job.conversation.as_ref()?.due()?, job.id));
        let mut asking: Vec<_> = self.tables().jobs.values().filter_map(due).collect();
        asking.sort_unstable();
        Ok(asking.into_iter().take(limit).map(|(due, id)| (id, due)).collect())
    }

    async fn runs(&self, job: JobId) -> Result<Vec<Run>> {
        Ok(self.tables().runs.values().filter(|run| run.job == job).cloned().collect())
    }

    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>> {
        Ok(self.tables().retirable(before, limit))
    }

    async fn queue_state(&self, product: &ProductId) -> Result<QueueState> {
        Ok(self.tables().queue.get(product).copied().unwrap_or_default())
    }

    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>> {
        Ok(self.tables().queue.iter().map(|(product, state)| (product.clone(), *state)).collect())
    }
}

#[async_trait]
impl ArtifactReads for MemoryBackend {
    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>> {
        Ok(self.tables().artifacts.values().filter(|artifact| artifact.job == job).cloned().collect())
    }

    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>> {
        Ok(self.tables().artifacts.values().find(|artifact| artifact.id == id).cloned())
    }

    async fn artifact_bytes(&self, product: &ProductId) -> Result<u64> {
        let tables = self.tables();
        let own = tables.artifacts.values().filter(|artifact| artifact.product == *product);
        Ok(own.map(|artifact| artifact.size).sum())
    }

    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>> {
        let tables = self.tables();
        let over = |job: &Job| job.stage().is_terminal() && job.updated_at < before;
        let of_over = |artifact: &&Artifact| tables.jobs.get(&artifact.job).is_some_and(over);
        let mut old: Vec<Artifact> = tables.artifacts.values().filter(of_over).cloned().collect();
        old.sort_by_key(|artifact| artifact.id);
        old.truncate(limit);
        Ok(old)
    }
}

#[async_trait]
impl GraphReads for MemoryBackend {
    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>> {
        Ok(self.tables().subtree(root, limit))
    }

    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals> {
        let tables = self.tables();
        let mut totals = SubtreeTotals::default();
        let tree = tables.subtree(root, usize::MAX);
        for job in tree.iter().filter(|job| job.spec.kind == JobKind::Agent) {
            totals.by_stage[job.stage()] += 1;
            totals.spent += job.lease().map_or(Usd::ZERO, |lease| lease.spent.usd);
            let of_job = |charge: &&Charge| charge.run.is_some_and(|(id, _)| id == job.id);
            let charged: Usd = tables.charges.iter().filter(of_job).map(|charge| charge.usd).sum();
            totals.spent += charged.max(Usd::ZERO);
        }
        Ok(totals)
    }
}

#[async_trait]
impl FactoryReads for MemoryBackend {
    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>> {
        Ok(self.tables().factories.get(id).cloned())
    }

    async fn factories(&self) -> Result<Vec<Factory>> {
        Ok(self.tables().factories.values().cloned().collect())
    }
}

#[async_trait]
impl TokenReads for MemoryBackend {
    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>> {
        Ok(self.tables().tokens.values().find(|token| token.hash == *hash).cloned())
    }

    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        let mut tokens: Vec<_> = self.tables().tokens.values().cloned().collect();
        tokens.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(tokens)
    }
}

#[async_trait]
impl DispatchReads for MemoryBackend {
    async fn unsent_offers(&self, limit: usize) -> Result<Vec<Waiting>> {
        let mut waiting: Vec<_> = self.tables().offers.values().cloned().collect();
        // Stable: those of one time stay in the order of their keys.
        waiting.sort_by_key(|waiting| waiting.since);
        waiting.truncate(limit);
        Ok(waiting)
    }

    async fn leader(&self) -> Result<Option<Leadership>> {
        Ok(self.tables().leader.clone())
    }
}

#[async_trait]
impl BudgetReads for MemoryBackend {
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
}

#[async_trait]
impl OutboxReads for MemoryBackend {
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

#[async_trait]
impl PoolReads for MemoryBackend {
    async fn pools(&self) -> Result<Vec<Pool>> {
        Ok(self.tables().pools.values().cloned().collect())
    }

    async fn pool_members(&self) -> Result<Vec<Member>> {
        Ok(self.tables().members.values().cloned().collect())
    }
}

#[async_trait]
impl SecretReads for MemoryBackend {
    async fn secrets(&self, product: &ProductId) -> Result<Vec<Secret>> {
        let tables = self.tables();
        let own = tables.secrets.values().filter(|sealed| sealed.secret.product == *product);
        Ok(own.map(|sealed| sealed.secret.clone()).collect())
    }

    async fn sealed_secret(&self, product: &ProductId, name: &SecretName) -> Result<Option<SealedSecret>> {
        Ok(self.tables().secrets.get(&(product.clone(), name.clone())).cloned())
    }

    async fn all_secrets(&self) -> Result<Vec<Secret>> {
        Ok(self.tables().secrets.values().map(|sealed| sealed.secret.clone()).collect())
    }
}

#[async_trait]
impl RegistryReads for MemoryBackend {
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

    async fn flags(&self) -> Result<Vec<(String, Value)>> {
        Ok(self.tables().flags.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

#[async_trait]
impl EventReads for MemoryBackend {
    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>> {
        let tables = self.tables();
        let of_job =
            tables.events.iter().filter(|event| event.job.is_some_and(|(id, seq)| id == job && seq > after));
        Ok(of_job.take(limit).cloned().collect())
    }

    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        let tables = self.tables();
        let start = tables.events.partition_point(|event| event.pos <= after);
        Ok(tables.events[start..].iter().take(limit).cloned().collect())
    }

    async fn history(&self, of: &HistoryOf, before: Option<FeedPos>, limit: usize) -> Result<Vec<Event>> {
        let tables = self.tables();
        let end = before.map_or(tables.events.len(), |end| tables.events.partition_point(|e| e.pos < end));
        let backwards = tables.events[..end].iter().rev();
        Ok(backwards.filter(|event| of.includes(event)).take(limit).cloned().collect())
    }

    async fn feed_head(&self) -> Result<FeedPos> {
        Ok(self.tables().last_pos)
    }
}
