//! The part about budgets, products, profiles and effects.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Budget, Charge, Effect, EffectId, EffectReceiver, FeedPos, JobId, Product, ProductId, Profile, Timestamp,
    Usd, Webhook,
};
use giga_ports::StoreError;
use giga_ports::store::{EffectCounts, EffectFilter, GovernanceReads, SpendBucket, SubtreeTotals};

use super::NodeBackend;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl GovernanceReads for NodeBackend {
    async fn budget(&self, product: &ProductId) -> Result<Option<Budget>> {
        self.reading("budget", self.world.database.budget(product)).await
    }

    async fn budgets(&self) -> Result<Vec<Budget>> {
        self.reading("budgets", self.world.database.budgets()).await
    }

    async fn burndown(
        &self,
        product: &ProductId,
        from: Timestamp,
        to: Timestamp,
        bucket: Duration,
    ) -> Result<Vec<SpendBucket>> {
        self.reading("burndown", self.world.database.burndown(product, from, to, bucket)).await
    }

    async fn charges(&self, job: JobId) -> Result<Vec<Charge>> {
        self.reading("charges", self.world.database.charges(job)).await
    }

    async fn charged_to(&self, jobs: &[JobId]) -> Result<Vec<(JobId, Usd)>> {
        self.reading("charged_to", self.world.database.charged_to(jobs)).await
    }

    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals> {
        self.reading("subtree_totals", self.world.database.subtree_totals(root)).await
    }

    async fn products(&self) -> Result<Vec<Product>> {
        self.reading("products", self.world.database.products()).await
    }

    async fn profiles(&self, product: &ProductId) -> Result<Vec<Profile>> {
        self.reading("profiles", self.world.database.profiles(product)).await
    }

    async fn profile(
        &self,
        product: &ProductId,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<Profile>> {
        self.reading("profile", self.world.database.profile(product, name, version)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.reading("webhooks", self.world.database.webhooks()).await
    }

    async fn fan_out_cursor(&self) -> Result<FeedPos> {
        self.reading("fan_out_cursor", self.world.database.fan_out_cursor()).await
    }

    async fn effect(&self, id: &EffectId) -> Result<Option<Effect>> {
        self.reading("effect", self.world.database.effect(id)).await
    }

    async fn effects(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Result<Vec<Effect>> {
        self.reading("effects", self.world.database.effects(filter, before, limit)).await
    }

    async fn effect_receivers(&self) -> Result<Vec<(EffectReceiver, Timestamp)>> {
        self.reading("effect_receivers", self.world.database.effect_receivers()).await
    }

    async fn effect_counts(&self) -> Result<EffectCounts> {
        self.reading("effect_counts", self.world.database.effect_counts()).await
    }
}
