//! The steps about products, profiles, webhooks and effects. They name everything by small numbers, so that steps meet.

use std::time::Duration;

use giga_domain::{
    Actor, Effect, EffectId, EffectOutcome, EffectReceiver, EffectTarget, EventKind, FeedPos, NewEffect,
    Product, ProductId, ProductSettings, Profile, ProfileContent, Rev, SigningKey, Timestamp, Webhook,
    WebhookId,
};
use giga_ports::Store;
use giga_ports::store::{
    AddEffect, AddProfile, AddWebhook, EffectCounts, EffectFilter, FanOut, RemoveWebhook, RetireEffects,
    ReviveEffect, SetProduct, SettleEffect, ShareKey, TakeEffects,
};
use proptest::prelude::*;
use serde_json::{Map, json};

use super::call::Answer;

#[derive(Debug, Clone, Copy)]
pub(super) enum Outside {
    SetProduct {
        product: u8,
        repo: u8,
        rev: Option<u8>,
    },
    AddProfile {
        product: u8,
        text: u8,
    },
    AddWebhook {
        webhook: u8,
    },
    RemoveWebhook {
        webhook: u8,
    },
    /// From where the cursor stands, or from elsewhere.
    FanOut {
        off: u8,
        first: u8,
        count: u8,
    },
    Ask {
        what: u8,
    },
    /// For the receiver of an effect of that number.
    Take {
        of: u8,
        limit: u8,
        lease_ms: u32,
    },
    /// The last attempt, or one before it.
    Settle {
        what: u8,
        late: bool,
        outcome: u8,
    },
    Revive {
        what: u8,
    },
    Retire {
        age_ms: u32,
    },
    Key {
        value: u8,
    },
}

const EFFECTS: u8 = 12;
const WEBHOOKS: u8 = 3;

pub(super) fn outside() -> impl Strategy<Value = Outside> {
    let what = 0..EFFECTS;
    let off = prop_oneof![5 => Just(0), 1 => 1..3u8];
    prop_oneof![
        2 => (0..3u8, 0..3u8, prop::option::weighted(0.3, 0..3u8))
            .prop_map(|(product, repo, rev)| Outside::SetProduct { product, repo, rev }),
        1 => (0..2u8, 0..2u8).prop_map(|(product, text)| Outside::AddProfile { product, text }),
        3 => (0..WEBHOOKS).prop_map(|webhook| Outside::AddWebhook { webhook }),
        1 => (0..WEBHOOKS).prop_map(|webhook| Outside::RemoveWebhook { webhook }),
        5 => (off, what.clone(), 0..4u8).prop_map(|(off, first, count)| Outside::FanOut { off, first, count }),
        1 => what.clone().prop_map(|what| Outside::Ask { what }),
        6 => (what.clone(), 1..5u8, 0..5_000u32)
            .prop_map(|(of, limit, lease_ms)| Outside::Take { of, limit, lease_ms }),
        8 => (what.clone(), prop::bool::weighted(0.1), 0..6u8)
            .prop_map(|(what, late, outcome)| Outside::Settle { what, late, outcome }),
        2 => what.prop_map(|what| Outside::Revive { what }),
        1 => (0..20_000u32).prop_map(|age_ms| Outside::Retire { age_ms }),
        1 => any::<u8>().prop_map(|value| Outside::Key { value }),
    ]
}

fn product_id(number: u8) -> ProductId {
    format!("product-{number}").parse().unwrap()
}

fn webhook_id(number: u8) -> WebhookId {
    WebhookId::from_u128(number.into())
}

fn effect_id(what: u8) -> EffectId {
    format!("effect:{:02}", what % EFFECTS).parse().unwrap()
}

/// The same number is always for the same receiver.
fn new_effect(what: u8) -> NewEffect {
    let what = what % EFFECTS;
    let target = match what % (WEBHOOKS + 1) {
        WEBHOOKS => EffectTarget::Tracker { tracker: "github".to_owned(), item: format!("acme/app#{what}") },
        webhook => EffectTarget::Webhook(webhook_id(webhook)),
    };
    let product = Some(what % 3).filter(|number| *number > 0).map(product_id);
    NewEffect { id: effect_id(what), product, target, job: None, payload: json!({ "what": what }) }
}

fn outcome(number: u8) -> EffectOutcome {
    let detail = format!("answer {number}");
    match number {
        0 | 1 => EffectOutcome::Delivered { detail },
        2 => EffectOutcome::Failed { detail, after: None },
        3 => EffectOutcome::Failed { detail, after: Some(Duration::from_secs(9)) },
        4 => EffectOutcome::Postponed { after: Duration::from_secs(2) },
        _ => EffectOutcome::Refused { detail },
    }
}

impl Outside {
    pub(super) async fn make(self, store: &dyn Store, now: Timestamp) -> Answer {
        let ana = || Actor::Token("ana".parse().unwrap());
        match self {
            Self::SetProduct { product, repo, rev } => {
                let repos = vec![format!("repo-{repo}")];
                let settings = ProductSettings { repos, ..ProductSettings::default() };
                let if_rev = rev.map(|rev| Rev(rev.into()));
                let write = SetProduct { product: product_id(product), settings, if_rev, actor: ana() };
                Answer::of(store.set_product(write).await)
            }
            Self::AddProfile { product, text } => {
                let content = ProfileContent { persona: format!("text {text}"), defaults: Map::new() };
                let new = AddProfile {
                    product: product_id(product),
                    name: "coder".to_owned(),
                    content,
                    actor: ana(),
                };
                Answer::of(store.add_profile(new).await)
            }
            Self::AddWebhook { webhook } => {
                let new = AddWebhook {
                    id: webhook_id(webhook),
                    product: (webhook > 0).then(|| product_id(webhook)),
                    url: format!("https://example.org/{webhook}"),
                    kinds: vec![EventKind::Shipped],
                    secret: SigningKey([webhook; 32]),
                    actor: ana(),
                };
                Answer::of(store.add_webhook(new).await.map(unplaced))
            }
            Self::RemoveWebhook { webhook } => Answer::of(
                store.remove_webhook(RemoveWebhook { id: webhook_id(webhook), actor: ana() }).await,
            ),
            Self::FanOut { off, first, count } => {
                let from = FeedPos(store.read().fan_out_cursor().await.unwrap().0 + u64::from(off));
                let effects = (first..first + count).map(new_effect).collect();
                Answer::of(store.fan_out(FanOut { from, to: FeedPos(from.0 + 2), effects }).await)
            }
            Self::Ask { what } => Answer::of(store.add_effect(AddEffect { effect: new_effect(what) }).await),
            Self::Take { of, limit, lease_ms } => {
                let lease = Duration::from_millis(lease_ms.into());
                let receiver = new_effect(of).target.receiver();
                Answer::of(store.take_effects(TakeEffects { receiver, limit: limit.into(), lease }).await)
            }
            Self::Settle { what, late, outcome: number } => {
                let id = effect_id(what);
                let known = store.read().effect(&id).await.unwrap();
                let attempt = known.map_or(1, |effect| effect.attempts).saturating_sub(u32::from(late));
                Answer::of(store.settle_effect(SettleEffect { id, attempt, outcome: outcome(number) }).await)
            }
            Self::Revive { what } => {
                Answer::of(store.revive_effect(ReviveEffect { id: effect_id(what), actor: ana() }).await)
            }
            Self::Retire { age_ms } => {
                let before = now.minus(Duration::from_millis(age_ms.into()));
                Answer::of(store.retire_effects(RetireEffects { before, limit: 3 }).await)
            }
            Self::Key { value } => {
                Answer::of(store.share_key(ShareKey { name: "links", fresh: [value; 32] }).await)
            }
        }
    }
}

fn unplaced(webhook: Webhook) -> Webhook {
    Webhook { since: FeedPos::ZERO, ..webhook }
}

/// What one can see of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outbox {
    products: Vec<Product>,
    profiles: Vec<Profile>,
    webhooks: Vec<Webhook>,
    cursor: FeedPos,
    effects: Vec<Effect>,
    receivers: Vec<(EffectReceiver, Timestamp)>,
    counts: EffectCounts,
}

impl Outbox {
    pub(super) async fn of(store: &dyn Store) -> Self {
        let read = store.read();
        let products = read.products().await.unwrap();
        let owned: Vec<&String> = products.iter().flat_map(|product| &product.settings.repos).collect();
        let mut owners = owned.clone();
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(owners.len(), owned.len(), "a repository has one owner");
        let mut profiles = Vec::new();
        for product in 0..2 {
            profiles.extend(read.profiles(&product_id(product)).await.unwrap());
            profiles.extend(read.profile(&product_id(product), "coder", Some(1)).await.unwrap());
        }
        Self {
            products,
            profiles,
            webhooks: read.webhooks().await.unwrap().into_iter().map(unplaced).collect(),
            cursor: read.fan_out_cursor().await.unwrap(),
            effects: read.effects(&EffectFilter::default(), None, 100).await.unwrap(),
            receivers: read.effect_receivers().await.unwrap(),
            counts: read.effect_counts().await.unwrap(),
        }
    }
}
