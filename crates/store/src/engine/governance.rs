//! Budgets, products, profiles and effects, asked for in the one group like every other write.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Actor, Budget, Effect, EffectId, EffectOutcome, EffectReceiver, FeedPos, NewEffect, Product, Profile,
    Term, Timestamp, Webhook, WebhookId,
};
use giga_ports::StoreError;
use giga_ports::store::{BudgetWrite, Governance, NewEviction, NewProfile, NewWebhook, ProductWrite};

use super::{Backend, BatchStore, ops};

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl<B: Backend> Governance for BatchStore<B> {
    async fn change_budget(&self, write: BudgetWrite) -> Result<Budget> {
        self.ask(ops::ChangeBudget(write)).await
    }

    async fn evict(
        &self,
        term: Option<Term>,
        asked: Vec<NewEviction>,
        grace: Duration,
        actor: Actor,
    ) -> Result<Vec<bool>> {
        self.ask(ops::EvictJobs { term, asked, grace, actor }).await
    }

    async fn set_product(&self, write: ProductWrite) -> Result<Product> {
        self.ask(ops::SetProduct(write)).await
    }

    async fn add_profile(&self, new: NewProfile, actor: Actor) -> Result<Profile> {
        self.ask(ops::AddProfile { new, actor }).await
    }

    async fn add_webhook(&self, new: NewWebhook, actor: Actor) -> Result<Webhook> {
        self.ask(ops::AddWebhook { new, actor }).await
    }

    async fn remove_webhook(&self, id: WebhookId, actor: Actor) -> Result<()> {
        self.ask(ops::RemoveWebhook { id, actor }).await
    }

    async fn fan_out(&self, from: FeedPos, to: FeedPos, effects: Vec<NewEffect>) -> Result<bool> {
        self.ask(ops::FanOut { from, to, effects }).await
    }

    async fn add_effect(&self, new: NewEffect) -> Result<Effect> {
        self.ask(ops::AddEffect(new)).await
    }

    async fn take_effects(
        &self,
        receiver: EffectReceiver,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Effect>> {
        self.ask(ops::TakeEffects { receiver, limit, lease }).await
    }

    async fn settle_effect(&self, id: EffectId, attempt: u32, outcome: EffectOutcome) -> Result<Effect> {
        self.ask(ops::SettleEffect { id, attempt, outcome }).await
    }

    async fn revive_effect(&self, id: EffectId, actor: Actor) -> Result<Effect> {
        self.ask(ops::ReviveEffect { id, actor }).await
    }

    async fn retire_effects(&self, before: Timestamp, limit: usize) -> Result<usize> {
        self.ask(ops::RetireEffects { before, limit }).await
    }

    async fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Result<[u8; 32]> {
        self.ask(ops::ShareSecret { name, fresh }).await
    }
}
