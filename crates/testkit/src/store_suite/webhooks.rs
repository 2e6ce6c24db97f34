//! Webhooks, and how the feed gets into the outbox for them.

use std::time::Duration;

use futures::future::join_all;
use giga_domain::{
    Effect, EffectOutcome, EffectReceiver, EffectState, EffectTarget, EventKind, FeedPos, NewEffect,
    NewEvent, SigningKey, Webhook, WebhookId, limits,
};
use giga_ports::StoreError;
use giga_ports::store::{AddWebhook, EffectFilter, FanOut, Note, RemoveWebhook, SettleEffect, TakeEffects};
use serde_json::json;

use super::World;
use super::world::{product, user};

pub(super) fn webhook_id(number: u128) -> WebhookId {
    WebhookId::from_u128(number)
}

pub(super) fn new_webhook(number: u128) -> AddWebhook {
    AddWebhook {
        id: webhook_id(number),
        product: Some(product("demo")),
        url: format!("https://example.org/{number}"),
        kinds: vec![EventKind::Shipped, EventKind::Failed],
        secret: SigningKey([0xab; 32]),
        actor: user(),
    }
}

pub(super) async fn listening(world: &World, number: u128) -> Webhook {
    world.store.add_webhook(new_webhook(number)).await.unwrap()
}

/// A message to a webhook.
pub(super) fn for_webhook(number: u128, what: u64) -> NewEffect {
    NewEffect {
        id: format!("wh:{}:{what:04}", webhook_id(number)).parse().unwrap(),
        product: Some(product("demo")),
        target: EffectTarget::Webhook(webhook_id(number)),
        job: None,
        payload: json!({ "pos": what, "text": "naïve \u{0} — 🦀" }),
    }
}

pub(super) async fn effects(world: &World) -> Vec<Effect> {
    world.store.read().effects(&EffectFilter::default(), None, 100_000).await.unwrap()
}

/// The receiver of what [`for_webhook`] makes.
pub(super) fn receiver(number: u128) -> EffectReceiver {
    EffectReceiver::Webhook(webhook_id(number))
}

async fn cursor(world: &World) -> FeedPos {
    world.store.read().fan_out_cursor().await.unwrap()
}

async fn something_happens(world: &World) -> FeedPos {
    world.store.note(Note { event: NewEvent::topic_paused(None), actor: user() }).await.unwrap();
    world.store.read().feed_head().await.unwrap()
}

/// The outbox with so many effects that are due, all for webhook 1.
pub(super) async fn filled(world: &World, count: u64) {
    listening(world, 1).await;
    let from = cursor(world).await;
    let effects = (0..count).map(|what| for_webhook(1, what)).collect();
    assert!(world.store.fan_out(FanOut { from, to: FeedPos(from.0 + 1), effects }).await.unwrap());
}

pub async fn a_webhook_is_kept_and_told_without_its_secret(world: &World) {
    let head = something_happens(world).await;
    let made = listening(world, 2).await;
    let of_all = AddWebhook { product: None, kinds: Vec::new(), ..new_webhook(1) };
    let of_all = world.store.add_webhook(of_all).await.unwrap();
    let AddWebhook { id, product: of, url, kinds, secret, .. } = new_webhook(2);
    let expected = Webhook { id, product: of, url, kinds, secret, created_at: world.now(), since: head };
    assert_eq!(made, expected);
    for store in world.handles().await {
        let known = store.read().webhooks().await.unwrap();
        assert_eq!(known, [of_all.clone(), made.clone()], "by id");
    }
    let feed = world.feed().await;
    let reported: Vec<_> =
        feed.iter().skip(1).map(|e| (e.kind, e.product.clone(), e.actor.clone())).collect();
    let added = EventKind::WebhookAdded;
    assert_eq!(reported, [(added, Some(product("demo")), user()), (added, None, user())]);
    assert_eq!(feed[1].data["webhookId"], json!(made.id.to_string()));
    assert_eq!(feed[1].data["url"], json!("https://example.org"), "what follows the host may be a secret");
    let text = format!("{feed:?}");
    assert!(!text.contains("abab") && !text.contains("171"), "the secret is nowhere: {text}");
}

pub async fn the_first_webhook_starts_at_the_head(world: &World) {
    assert_eq!(cursor(world).await, FeedPos::ZERO);
    let head = something_happens(world).await;
    assert_eq!(cursor(world).await, FeedPos::ZERO, "nobody listens, and nobody pays for that");
    let first = listening(world, 1).await;
    assert_eq!(first.since, head);
    assert_eq!(cursor(world).await, FeedPos::ZERO, "trackers may not have been told yet what came before");
    let added = world.feed().await.pop().unwrap();
    assert!(added.pos > first.since, "its own beginning is behind it");
    let later = something_happens(world).await;
    assert_eq!(listening(world, 2).await.since, later);
}

pub async fn a_repeated_add_is_answered_with_what_is_there(world: &World) {
    let made = listening(world, 1).await;
    let before = (world.feed().await, cursor(world).await);
    world.advance(Duration::from_secs(1));
    let again = AddWebhook { url: "https://elsewhere.example".to_owned(), ..new_webhook(1) };
    assert_eq!(world.store.add_webhook(again).await.unwrap(), made);
    assert_eq!((world.feed().await, cursor(world).await), before);
    assert_eq!(world.store.read().webhooks().await.unwrap(), [made]);
}

pub async fn a_product_has_so_many_webhooks_and_no_more(world: &World) {
    let most = limits::WEBHOOKS_PER_PRODUCT as u128;
    for number in 2..=most {
        listening(world, number).await;
    }
    let racing = [most + 1, most + 2, most + 3].map(|number| world.store.add_webhook(new_webhook(number)));
    let made = join_all(racing).await;
    let refused =
        |answer: &&Result<Webhook, StoreError>| matches!(answer, Err(StoreError::TooManyWebhooks(100)));
    assert_eq!((made.iter().flatten().count(), made.iter().filter(refused).count()), (1, 2), "{made:?}");
    listening(world, 2).await;
    let of_all = AddWebhook { product: None, ..new_webhook(most + 9) };
    world.store.add_webhook(of_all).await.expect("another product has its own");
    world.store.remove_webhook(RemoveWebhook { id: webhook_id(2), actor: user() }).await.unwrap();
    listening(world, 2).await;
}

pub async fn a_removed_webhook_gets_nothing_more(world: &World) {
    filled(world, 3).await;
    listening(world, 2).await;
    let from = cursor(world).await;
    let others = vec![for_webhook(2, 0)];
    assert!(world.store.fan_out(FanOut { from, to: from.next(), effects: others }).await.unwrap());
    let taken = world
        .store
        .take_effects(TakeEffects { receiver: receiver(1), limit: 2, lease: Duration::from_mins(1) })
        .await
        .unwrap();
    let delivered = EffectOutcome::Delivered { detail: "204".to_owned() };
    world
        .store
        .settle_effect(SettleEffect { id: taken[0].id.clone(), attempt: 1, outcome: delivered.clone() })
        .await
        .unwrap();
    world.advance(Duration::from_secs(1));
    world.store.remove_webhook(RemoveWebhook { id: webhook_id(1), actor: user() }).await.unwrap();

    let mut known = effects(world).await;
    known.sort_by(|a, b| a.id.cmp(&b.id));
    let states: Vec<_> = known.iter().map(|effect| effect.state).collect();
    let untouched = world.store.read().effect(&for_webhook(2, 0).id).await.unwrap().unwrap();
    assert!(matches!(untouched.state, EffectState::Pending { .. }));
    assert_eq!(states, [EffectState::Delivered, EffectState::Dead, EffectState::Dead, untouched.state]);
    assert_eq!(known[1].detail.as_deref(), Some("the webhook was removed"));
    assert_eq!(known[1].updated_at, world.now());
    // Whoever is still sending is not listened to.
    let late = world
        .store
        .settle_effect(SettleEffect { id: taken[1].id.clone(), attempt: 1, outcome: delivered })
        .await
        .unwrap();
    assert_eq!(late, known[1]);
    let feed = world.feed().await;
    let reported = feed.last().unwrap();
    assert_eq!((reported.kind, &reported.actor), (EventKind::WebhookRemoved, &user()));
    assert_eq!((&reported.product, &reported.data["givenUp"]), (&Some(product("demo")), &json!(2)));
    // It may be the same call again.
    world.store.remove_webhook(RemoveWebhook { id: webhook_id(1), actor: user() }).await.unwrap();
    world.store.remove_webhook(RemoveWebhook { id: webhook_id(9), actor: user() }).await.unwrap();
    assert_eq!(world.feed().await, feed);
    let left: Vec<_> = world.store.read().webhooks().await.unwrap().into_iter().map(|w| w.id).collect();
    assert_eq!(left, [webhook_id(2)]);
    // A dispatcher that has not heard of it yet puts nothing in for it, and is not held up.
    let from = cursor(world).await;
    assert!(
        world
            .store
            .fan_out(FanOut { from, to: from.next(), effects: vec![for_webhook(1, 77), for_webhook(2, 77)] })
            .await
            .unwrap()
    );
    assert_eq!(world.store.read().effect(&for_webhook(1, 77).id).await.unwrap(), None);
    assert!(world.store.read().effect(&for_webhook(2, 77).id).await.unwrap().is_some());
}

pub async fn a_stretch_of_the_feed_goes_into_the_outbox_once(world: &World) {
    listening(world, 1).await;
    let from = cursor(world).await;
    let to = FeedPos(from.0 + 10);
    let stretch = || vec![for_webhook(1, 1), for_webhook(1, 2)];
    assert!(world.store.fan_out(FanOut { from, to, effects: stretch() }).await.unwrap());
    assert_eq!(cursor(world).await, to);
    let made = effects(world).await;
    assert_eq!(made.len(), 2);
    let expected = Effect::new(for_webhook(1, 2), world.now());
    assert_eq!(made[0], expected, "newest first, byte for byte");
    world.advance(Duration::from_secs(1));
    // The same call after a lost reply, and one whose cursor is another.
    assert!(world.store.fan_out(FanOut { from, to, effects: stretch() }).await.unwrap());
    assert!(!world.store.fan_out(FanOut { from, to, effects: vec![for_webhook(1, 3)] }).await.unwrap());
    assert!(
        !world
            .store
            .fan_out(FanOut { from, to: FeedPos(to.0 + 1), effects: vec![for_webhook(1, 3)] })
            .await
            .unwrap()
    );
    assert!(
        !world.store.fan_out(FanOut { from: to, to: from, effects: Vec::new() }).await.unwrap(),
        "never back"
    );
    assert_eq!((effects(world).await, cursor(world).await), (made.clone(), to));
    // One that is known is passed over, whatever became of it; the rest of its stretch is not.
    let taken = world
        .store
        .take_effects(TakeEffects { receiver: receiver(1), limit: 1, lease: Duration::from_mins(1) })
        .await
        .unwrap()
        .remove(0);
    let refused = EffectOutcome::Refused { detail: "410".to_owned() };
    let dead = world
        .store
        .settle_effect(SettleEffect { id: taken.id.clone(), attempt: 1, outcome: refused })
        .await
        .unwrap();
    let next = FeedPos(to.0 + 5);
    let mixed = vec![for_webhook(1, 1), for_webhook(1, 2), for_webhook(1, 3)];
    assert!(world.store.fan_out(FanOut { from: to, to: next, effects: mixed }).await.unwrap());
    assert_eq!(world.store.read().effect(&taken.id).await.unwrap(), Some(dead));
    assert_eq!((effects(world).await.len(), cursor(world).await), (3, next));
    for store in world.handles().await {
        assert_eq!(store.read().fan_out_cursor().await.unwrap(), next);
    }
}

pub async fn two_leaders_put_nothing_in_twice(world: &World) {
    listening(world, 1).await;
    let start = cursor(world).await.0;
    let handles = world.handles().await;
    let leaders = (0..4).map(|n| {
        let store = handles[n % handles.len()].clone();
        tokio::spawn(async move {
            let mut moved = 0;
            loop {
                let from = store.read().fan_out_cursor().await.unwrap();
                let done = from.0 - start;
                if done >= 100 {
                    return moved;
                }
                // Each with strides of its own, so that they meet in the middle of each other's.
                let to = (done + 3 + n as u64).min(100);
                let effects = (done + 1..=to).map(|pos| for_webhook(1, pos)).collect();
                moved += u64::from(
                    store.fan_out(FanOut { from, to: FeedPos(start + to), effects }).await.unwrap(),
                );
            }
        })
    });
    let moved: u64 = join_all(leaders).await.into_iter().map(Result::unwrap).sum();
    assert!(moved >= 100 / 6, "{moved}");
    assert_eq!(cursor(world).await, FeedPos(start + 100));
    let mut ids: Vec<_> = effects(world).await.into_iter().map(|effect| effect.id).collect();
    ids.sort_unstable();
    let expected: Vec<_> = (1..=100).map(|pos| for_webhook(1, pos).id).collect();
    assert_eq!(ids, expected);
    assert!(handles.iter().all(|store| store.stats().retries == 0), "they took turns");
}

pub async fn a_webhook_that_goes_while_the_feed_is_read_is_left_nothing(world: &World) {
    let handles = world.handles().await;
    for round in 1..=10u128 {
        listening(world, round).await;
        let from = cursor(world).await;
        let store = handles[handles.len() - 1].clone();
        let effects: Vec<_> = (0..20).map(|what| for_webhook(round, what)).collect();
        let filling =
            tokio::spawn(async move { store.fan_out(FanOut { from, to: from.next(), effects }).await });
        world.store.remove_webhook(RemoveWebhook { id: webhook_id(round), actor: user() }).await.unwrap();
        assert!(filling.await.unwrap().unwrap());
    }
    let waiting: Vec<_> = effects(world).await.into_iter().filter(|effect| !effect.is_over()).collect();
    assert_eq!(waiting, []);
}
