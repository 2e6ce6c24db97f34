//! The part about budgets, products, profiles and effects: always well.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Actor, Budget, Charge, Effect, EffectId, EffectOutcome, EffectReceiver, FeedPos, JobId, NewEffect,
    Product, ProductId, Profile, Term, Timestamp, Usd, Webhook, WebhookId,
};
use giga_ports::StoreError;
use giga_ports::store::{
    BudgetWrite, EffectCounts, EffectFilter, Governance, GovernanceReads, NewEviction, NewProfile,
    NewWebhook, ProductWrite, SpendBucket, SubtreeTotals,
};

use super::Probe;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl GovernanceReads for Probe {
    async fn budget(&self, product: &ProductId) -> Result<Option<Budget>> {
        self.inner.read().budget(product).await
    }
    async fn budgets(&self) -> Result<Vec<Budget>> {
        self.inner.read().budgets().await
    }
    async fn burndown(
        &self,
        product: &ProductId,
        from: Timestamp,
        to: Timestamp,
        bucket: Duration,
    ) -> Result<Vec<SpendBucket>> {
        self.inner.read().burndown(product, from, to, bucket).await
    }
    async fn charges(&self, job: JobId) -> Result<Vec<Charge>> {
        self.inner.read().charges(job).await
    }
    async fn charged_to(&self, jobs: &[JobId]) -> Result<Vec<(JobId, Usd)>> {
        self.inner.read().charged_to(jobs).await
    }

    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals> {
        self.inner.read().subtree_totals(root).await
    }
    async fn products(&self) -> Result<Vec<Product>> {
        self.inner.read().products().await
    }
    async fn profiles(&self, product: &ProductId) -> Result<Vec<Profile>> {
        self.inner.read().profiles(product).await
    }
    async fn profile(
        &self,
        product: &ProductId,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<Profile>> {
        self.inner.read().profile(product, name, version).await
    }
    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.inner.read().webhooks().await
    }
    async fn fan_out_cursor(&self) -> Result<FeedPos> {
        self.inner.read().fan_out_cursor().await
    }
    async fn effect(&self, id: &EffectId) -> Result<Option<Effect>> {
        self.inner.read().effect(id).await
    }
    async fn effects(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Result<Vec<Effect>> {
        self.inner.read().effects(filter, before, limit).await
    }
    async fn effect_receivers(&self) -> Result<Vec<(EffectReceiver, Timestamp)>> {
        self.inner.read().effect_receivers().await
    }

    async fn effect_counts(&self) -> Result<EffectCounts> {
        self.inner.read().effect_counts().await
    }
}

#[async_trait]
impl Governance for Probe {
    async fn change_budget(&self, write: BudgetWrite) -> Result<Budget> {
        self.inner.change_budget(write).await
    }
    async fn set_product(&self, write: ProductWrite) -> Result<Product> {
        self.inner.set_product(write).await
    }
    async fn add_profile(&self, new: NewProfile, actor: Actor) -> Result<Profile> {
        self.inner.add_profile(new, actor).await
    }
    async fn evict(
        &self,
        term: Option<Term>,
        asked: Vec<NewEviction>,
        grace: Duration,
        actor: Actor,
    ) -> Result<Vec<bool>> {
        self.inner.evict(term, asked, grace, actor).await
    }
    async fn add_webhook(&self, new: NewWebhook, actor: Actor) -> Result<Webhook> {
        self.inner.add_webhook(new, actor).await
    }
    async fn remove_webhook(&self, id: WebhookId, actor: Actor) -> Result<()> {
        self.inner.remove_webhook(id, actor).await
    }
    async fn fan_out(&self, from: FeedPos, to: FeedPos, effects: Vec<NewEffect>) -> Result<bool> {
        self.inner.fan_out(from, to, effects).await
    }
    async fn add_effect(&self, new: NewEffect) -> Result<Effect> {
        self.inner.add_effect(new).await
    }
    async fn take_effects(
        &self,
        receiver: EffectReceiver,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Effect>> {
        self.inner.take_effects(receiver, limit, lease).await
    }
    async fn settle_effect(&self, id: EffectId, attempt: u32, outcome: EffectOutcome) -> Result<Effect> {
        self.inner.settle_effect(id, attempt, outcome).await
    }
    async fn revive_effect(&self, id: EffectId, actor: Actor) -> Result<Effect> {
        self.inner.revive_effect(id, actor).await
    }
    async fn retire_effects(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.inner.retire_effects(before, limit).await
    }
    async fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Result<[u8; 32]> {
        self.inner.secret(name, fresh).await
    }
}
