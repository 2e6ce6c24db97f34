//! Use cases about webhooks and the outbox: who is notified, what is pending, what failed.

use giga_domain::Timestamp;
use std::time::Duration;

use giga_domain::{
    Actor, Effect, EffectId, EffectTarget, EventKind, NewEffect, ProductId, SigningKey, Webhook, WebhookId,
};
use giga_ports::StoreError;
use giga_ports::store::{AddEffect, EffectCounts, EffectFilter, RemoveWebhook, ReviveEffect};
use serde_json::json;

use super::Effects;
use super::fan_out::tells_of_more_than_effects;
use crate::{Error, FieldProblem};

/// The type of the message that a test sends. No event has it.
pub const WEBHOOK_TEST: &str = "webhook.test";

#[derive(Debug, Clone)]
pub struct AddWebhook {
    /// `None`: of every product, and of the fleet.
    pub product: Option<ProductId>,
    pub url: String,
    /// Empty: every kind.
    pub kinds: Vec<EventKind>,
    pub actor: Actor,
}

impl Effects {
    /// Events from here on are sent there. The secret is in the answer, and never shown again.
    pub async fn add_webhook(&self, add: AddWebhook) -> Result<Webhook, Error> {
        self.add_webhook_once(add, None).await
    }

    /// The same, where the same call of the same caller with the same key makes one, and is answered with that.
    pub async fn add_webhook_once(&self, add: AddWebhook, key: Option<&str>) -> Result<Webhook, Error> {
        let AddWebhook { product, url, kinds, actor } = add;
        if let Some(index) = kinds.iter().position(|kind| !tells_of_more_than_effects(*kind)) {
            let message = format!("`{}` is not sent: it would lead to itself", kinds[index]);
            return Err(FieldProblem::new(format!("types[{index}]"), message).into());
        }
        self.port.check_url(&url).await.map_err(|error| FieldProblem::new("url", error.to_string()))?;
        let id = match key {
            Some(key) => Webhook::id_of_request(key, &actor.to_string(), product.as_ref()),
            None => WebhookId::from_u128(self.core.random.job_id(self.core.clock.now()).as_u128()),
        };
        let secret = SigningKey(self.core.random.bytes());
        let new = giga_ports::store::AddWebhook { id, product, url, kinds, secret, actor };
        let webhook = self.core.store.add_webhook(new.clone()).await?;
        if webhook.url != new.url || webhook.kinds != new.kinds {
            let message = "it made a webhook with another address or other types; use another key";
            return Err(FieldProblem::new("idempotency-key", message).into());
        }
        self.known().forget_webhooks();
        Ok(webhook)
    }

    /// By id.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        Ok(self.core.store.read().webhooks().await?)
    }

    pub async fn remove_webhook(&self, id: WebhookId, actor: Actor) -> Result<(), Error> {
        self.core.store.remove_webhook(RemoveWebhook { id, actor }).await?;
        self.known().forget_webhooks();
        Ok(())
    }

    /// Sends it something that is no event. What comes of it stands in the outbox.
    pub async fn test_webhook(&self, webhook: &Webhook, actor: &Actor) -> Result<Effect, Error> {
        let tag = const_hex::encode(&self.core.random.bytes()[..6]);
        let id = format!("wh:{}:test-{tag}", webhook.id);
        let new = NewEffect {
            payload: json!({
                "id": id,
                "type": WEBHOOK_TEST,
                "at": self.core.store_now(),
                "productId": webhook.product,
                "actor": actor,
                "cause": "a test of this webhook",
                "data": {},
            }),
            id: id.parse().expect("ids and digits between colons are an effect id"),
            product: webhook.product.clone(),
            target: EffectTarget::Webhook(webhook.id),
            job: None,
        };
        self.put_into_outbox(new).await
    }

    pub(super) async fn put_into_outbox(&self, new: NewEffect) -> Result<Effect, Error> {
        let effect = self.core.store.add_effect(AddEffect { effect: new }).await?;
        self.may_wait();
        self.hints.send(giga_ports::broker::Hint::Effects);
        Ok(effect)
    }

    /// Newest first.
    pub async fn list(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Result<Vec<Effect>, Error> {
        Ok(self.core.store.read().effects(filter, before, limit).await?)
    }

    pub async fn get(&self, id: &EffectId) -> Result<Effect, Error> {
        let effect = self.core.store.read().effect(id).await?;
        effect.ok_or_else(|| StoreError::NoSuchEffect(id.clone()).into())
    }

    /// Retries one that was given up.
    pub async fn revive(&self, id: EffectId, actor: Actor) -> Result<Effect, Error> {
        let effect = self.core.store.revive_effect(ReviveEffect { id, actor }).await?;
        self.may_wait();
        Ok(effect)
    }

    /// How the outbox stands, and for how long the longest waiting effect has waited.
    pub async fn counts(&self) -> Result<(EffectCounts, Duration), Error> {
        let counts = self.core.store.read().effect_counts().await?;
        let oldest = counts.oldest_pending.map(|at| self.core.store_now().since(at));
        Ok((counts, oldest.unwrap_or_default()))
    }
}
