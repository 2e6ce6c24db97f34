//! A server of one's own, a clock that stands still, and something to deliver.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use giga_domain::{Effect, EffectTarget, FeedPos, NewEffect, SigningKey, Timestamp, Webhook, WebhookId};
use giga_effects::{Allowed, Config, HttpEffects};
use giga_ports::Clock;
use serde_json::json;

/// Seconds since 1970, for ever.
pub(crate) struct At(pub(crate) i64);

impl Clock for At {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0 * 1_000)
    }
}

pub(crate) const NOW: i64 = 1_700_000_000;

pub(crate) async fn listen(app: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    base
}

pub(crate) fn world(allowed: &[&str]) -> HttpEffects {
    with(Config { allowed: Allowed::read(allowed.iter().copied()).unwrap(), ..Config::default() })
}

/// One that waits for a tenth of a second only.
pub(crate) fn impatient(allowed: &[&str]) -> HttpEffects {
    let allowed = Allowed::read(allowed.iter().copied()).unwrap();
    with(Config { allowed, timeout: Some(Duration::from_millis(100)), ..Config::default() })
}

pub(crate) fn with(config: Config) -> HttpEffects {
    HttpEffects::new(config, Arc::new(At(NOW))).unwrap()
}

pub(crate) fn effect() -> Effect {
    let new = NewEffect {
        id: "wh:1:7".parse().unwrap(),
        product: None,
        target: EffectTarget::Webhook(WebhookId::from_u128(1)),
        job: None,
        payload: json!({ "id": "wh:1:7", "type": "job.shipped", "data": { "a": 1 } }),
    };
    Effect::new(new, Timestamp::ZERO)
}

pub(crate) fn webhook(url: &str) -> Webhook {
    Webhook {
        id: WebhookId::from_u128(1),
        product: None,
        url: url.to_owned(),
        kinds: Vec::new(),
        secret: SigningKey([9; 32]),
        created_at: Timestamp::ZERO,
        since: FeedPos(0),
    }
}
