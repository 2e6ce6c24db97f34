//! Commands about effects that share a transaction. On one thread, as in `batches`.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use giga_domain::{EffectId, EffectOutcome, EffectState, EventKind, FeedPos};
use giga_ports::StoreError;
use giga_ports::store::{
    AddEffect, AddProfile, FanOut, RemoveWebhook, RetireEffects, ReviveEffect, SetProduct, SettleEffect,
    ShareKey, TakeEffects,
};

use super::World;
use super::webhooks::{effects, filled, for_webhook, listening, new_webhook, receiver, webhook_id};
use super::world::{product, user};

const LEASE: Duration = Duration::from_mins(1);

fn delivered() -> EffectOutcome {
    EffectOutcome::Delivered { detail: "204".to_owned() }
}

pub async fn two_hundred_settlements_are_one_transaction(world: &World) {
    filled(world, 200).await;
    let taken = world
        .store
        .take_effects(TakeEffects { receiver: receiver(1), limit: 200, lease: LEASE })
        .await
        .unwrap();
    assert_eq!(taken.len(), 200);
    let before = world.store.stats();
    let settled = taken.iter().map(|effect| {
        world.store.settle_effect(SettleEffect { id: effect.id.clone(), attempt: 1, outcome: delivered() })
    });
    // Past the share of one task, after which the runtime would let the writer have its turn.
    let answers = tokio::task::unconstrained(join_all(settled)).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().state == EffectState::Delivered));
    let after = world.store.stats();
    assert_eq!((after.commands - before.commands, after.commits - before.commits), (200, 1));
    assert!(effects(world).await.iter().all(|effect| effect.state == EffectState::Delivered));
}

pub async fn two_takers_get_different_ones(world: &World) {
    filled(world, 5).await;
    let take = |limit| world.store.take_effects(TakeEffects { receiver: receiver(1), limit, lease: LEASE });
    let (one, two, three) = tokio::join!(take(2), take(2), take(2));
    let batches = [one.unwrap(), two.unwrap(), three.unwrap()];
    assert_eq!(batches.each_ref().map(Vec::len), [2, 2, 1]);
    let ids: BTreeSet<EffectId> = batches.iter().flatten().map(|effect| effect.id.clone()).collect();
    assert_eq!(ids.len(), 5);
}

pub async fn what_waits_for_a_webhook_goes_with_it(world: &World) {
    listening(world, 1).await;
    let from = world.store.read().fan_out_cursor().await.unwrap();
    let second = vec![for_webhook(1, 2)];
    let (filled, removed, late) = tokio::join!(
        world.store.fan_out(FanOut { from, to: FeedPos(from.0 + 1), effects: vec![for_webhook(1, 1)] }),
        world.store.remove_webhook(RemoveWebhook { id: webhook_id(1), actor: user() }),
        world.store.fan_out(FanOut { from: FeedPos(from.0 + 1), to: FeedPos(from.0 + 2), effects: second }),
    );
    assert!(filled.unwrap() && late.unwrap());
    removed.unwrap();
    let left = effects(world).await;
    assert_eq!(left.len(), 1, "none was made for one that is gone");
    assert_eq!((&left[0].id, left[0].state), (&for_webhook(1, 1).id, EffectState::Dead));
    // One that is added and removed at once leaves nothing but its history.
    let (added, removed) = tokio::join!(
        world.store.add_webhook(new_webhook(2)),
        world.store.remove_webhook(RemoveWebhook { id: webhook_id(2), actor: user() })
    );
    assert_eq!((added.unwrap().id, removed.unwrap()), (webhook_id(2), ()));
    assert_eq!(world.store.read().webhooks().await.unwrap(), []);
    let kinds: Vec<_> = world.feed().await.iter().rev().take(2).map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::WebhookRemoved, EventKind::WebhookAdded]);
}

pub async fn what_was_brought_back_is_not_retired(world: &World) {
    filled(world, 2).await;
    let taken = world
        .store
        .take_effects(TakeEffects { receiver: receiver(1), limit: 2, lease: LEASE })
        .await
        .unwrap();
    let refused = || EffectOutcome::Refused { detail: "410".to_owned() };
    for effect in &taken {
        world
            .store
            .settle_effect(SettleEffect { id: effect.id.clone(), attempt: 1, outcome: refused() })
            .await
            .unwrap();
    }
    world.advance(LEASE);
    let (first, second) = (taken[0].id.clone(), taken[1].id.clone());
    let (revived, retired, too_late, added) = tokio::join!(
        world.store.revive_effect(ReviveEffect { id: first.clone(), actor: user() }),
        world.store.retire_effects(RetireEffects { before: world.now(), limit: 10 }),
        world.store.revive_effect(ReviveEffect { id: second.clone(), actor: user() }),
        world.store.add_effect(AddEffect { effect: for_webhook(1, 1) }),
    );
    assert_eq!((revived.unwrap().id, retired.unwrap()), (first.clone(), 1));
    assert!(matches!(too_late, Err(StoreError::NoSuchEffect(id)) if id == second));
    assert_eq!(added.unwrap().created_at, world.now(), "a new one under the old id");
    assert_eq!(effects(world).await.len(), 2);
    let (one, two) = tokio::join!(
        world.store.retire_effects(RetireEffects { before: world.now(), limit: 10 }),
        world.store.retire_effects(RetireEffects { before: world.now(), limit: 10 })
    );
    assert_eq!((one.unwrap(), two.unwrap()), (0, 0));
}

pub async fn two_retirements_count_each_once(world: &World) {
    filled(world, 3).await;
    for effect in
        world.store.take_effects(TakeEffects { receiver: receiver(1), limit: 3, lease: LEASE }).await.unwrap()
    {
        world
            .store
            .settle_effect(SettleEffect { id: effect.id, attempt: 1, outcome: delivered() })
            .await
            .unwrap();
    }
    world.advance(LEASE);
    let retire = |limit| world.store.retire_effects(RetireEffects { before: world.now(), limit });
    let (one, two, three) = tokio::join!(retire(1), retire(10), retire(10));
    assert_eq!((one.unwrap(), two.unwrap(), three.unwrap()), (1, 2, 0));
    assert_eq!(effects(world).await, []);
}

pub async fn products_and_profiles_see_each_other(world: &World) {
    let owning = |id: &str| {
        let settings = giga_domain::ProductSettings {
            repos: vec!["wanted".to_owned()],
            ..giga_domain::ProductSettings::default()
        };
        world.store.set_product(SetProduct { product: product(id), settings, if_rev: None, actor: user() })
    };
    let profile = |persona: &str| {
        let content =
            giga_domain::ProfileContent { persona: persona.to_owned(), defaults: serde_json::Map::new() };
        let new = AddProfile { product: product("demo"), name: "coder".to_owned(), content, actor: user() };
        world.store.add_profile(new)
    };
    let (first, second, one, same, two, secret, other) = tokio::join!(
        owning("demo"),
        owning("app"),
        profile("one"),
        profile("one"),
        profile("two"),
        world.store.share_key(ShareKey { name: "links", fresh: [1; 32] }),
        world.store.share_key(ShareKey { name: "links", fresh: [2; 32] }),
    );
    assert!(first.is_ok());
    assert!(matches!(second, Err(StoreError::RepoOwned { owner, .. }) if owner == product("demo")));
    assert_eq!([one, same, two].map(|profile| profile.unwrap().version), [1, 1, 2]);
    assert_eq!((secret.unwrap(), other.unwrap()), ([1; 32], [1; 32]));
    assert_eq!(world.feed().await.len(), 3);
}
