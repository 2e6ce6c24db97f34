//! The part about budgets, products, profiles and effects.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Actor, Budget, Effect, EffectId, EffectOutcome, EffectReceiver, FeedPos, NewEffect, Product, Profile,
    Term, Timestamp, Webhook, WebhookId,
};
use giga_ports::StoreError;
use giga_ports::store::{BudgetWrite, Governance, NewEviction, NewProfile, NewWebhook, ProductWrite};

use super::{NodeStore, brief};
use crate::bug::Bug;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl Governance for NodeStore {
    async fn change_budget(&self, write: BudgetWrite) -> Result<Budget> {
        let told = self.world.trace.is_kept().then(|| format!("{} {:?}", write.product, write.change));
        let answer = self.inner.change_budget(write).await;
        self.note(|| {
            let told = told.unwrap_or_default();
            let left = |budget: &Budget| format!("{:?}, reserved {}", budget.paused, budget.reserved);
            format!("budget {told} -> {}", brief(&answer, left))
        });
        answer
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
        let told = self.world.trace.is_kept().then(|| format!("{asked:?}"));
        let answer = self.inner.evict(term, asked, grace, actor).await;
        self.note(|| {
            format!("evict {} -> {}", told.unwrap_or_default(), brief(&answer, |asked| format!("{asked:?}")))
        });
        answer
    }

    async fn add_webhook(&self, new: NewWebhook, actor: Actor) -> Result<Webhook> {
        self.inner.add_webhook(new, actor).await
    }

    async fn remove_webhook(&self, id: WebhookId, actor: Actor) -> Result<()> {
        self.inner.remove_webhook(id, actor).await
    }

    async fn fan_out(&self, from: FeedPos, to: FeedPos, mut effects: Vec<NewEffect>) -> Result<bool> {
        if self.every(3, Bug::EffectLost) {
            effects.pop();
        }
        let count = effects.len();
        let answer = self.inner.fan_out(from, to, effects).await;
        self.note(|| {
            format!("fan out {from} to {to}: {count} -> {}", brief(&answer, |moved| format!("{moved}")))
        });
        answer
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
