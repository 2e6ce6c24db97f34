//! The way of an effect through the outbox.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use giga_domain::{
    Effect, EffectId, EffectOutcome, EffectReceiver, EffectState, EffectStateName, EffectTarget, EventKind,
    FeedPos, JobId, NewEffect, Timestamp,
};
use giga_ports::StoreError;
use giga_ports::store::{
    AddEffect, EffectCounts, EffectFilter, FanOut, RetireEffects, ReviveEffect, SettleEffect, TakeEffects,
};
use serde_json::json;

use super::World;
use super::webhooks::{effects, filled, for_webhook, listening, receiver, webhook_id};
use super::world::{product, user};

const LEASE: Duration = Duration::from_mins(1);

fn delivered() -> EffectOutcome {
    EffectOutcome::Delivered { detail: "204 No Content".to_owned() }
}

fn failed() -> EffectOutcome {
    EffectOutcome::Failed { detail: "500 Internal Server Error".to_owned(), after: None }
}

fn refused() -> EffectOutcome {
    EffectOutcome::Refused { detail: "410 Gone".to_owned() }
}

/// A message to a tracker.
fn for_tracker(job: JobId, what: u64) -> NewEffect {
    NewEffect {
        id: format!("tracker:{job}:{what}").parse().unwrap(),
        product: Some(product("app")),
        target: EffectTarget::Tracker { tracker: "github".to_owned(), item: "acme/app#12".to_owned() },
        job: Some(job),
        payload: json!({ "stage": "building" }),
    }
}

/// Receiver by receiver, whoever has waited longest first.
async fn take(world: &World, limit: usize) -> Vec<Effect> {
    let mut taken = Vec::new();
    for (receiver, _) in waiting(world).await {
        let rest = limit - taken.len();
        taken.extend(
            world.store.take_effects(TakeEffects { receiver, limit: rest, lease: LEASE }).await.unwrap(),
        );
    }
    taken
}

async fn waiting(world: &World) -> Vec<(EffectReceiver, Timestamp)> {
    world.store.read().effect_receivers().await.unwrap()
}

async fn settle(world: &World, taken: &Effect, outcome: EffectOutcome) -> Effect {
    world
        .store
        .settle_effect(SettleEffect { id: taken.id.clone(), attempt: taken.attempts, outcome })
        .await
        .unwrap()
}

async fn effect(world: &World, id: &EffectId) -> Effect {
    world.store.read().effect(id).await.unwrap().expect("the effect is known")
}

async fn counts(world: &World) -> EffectCounts {
    world.store.read().effect_counts().await.unwrap()
}

pub async fn what_is_due_is_taken_longest_due_first(world: &World) {
    assert_eq!(take(world, 10).await, []);
    filled(world, 2).await;
    world.advance(Duration::from_secs(1));
    let younger = world.store.add_effect(AddEffect { effect: for_tracker(JobId::MIN, 1) }).await.unwrap();
    assert_eq!(take(world, 0).await, []);
    let first = take(world, 2).await;
    let ids: Vec<_> = first.iter().map(|effect| effect.id.clone()).collect();
    assert_eq!(ids, [for_webhook(1, 0).id, for_webhook(1, 1).id]);
    let due = world.now().plus(LEASE);
    assert!(first.iter().all(|e| (e.attempts, e.state) == (1, EffectState::Pending { due })));
    let second = take(world, 10).await;
    assert_eq!(second.len(), 1);
    assert_eq!((&second[0].id, second[0].attempts), (&younger.id, 1));
    assert_eq!((&second[0].payload, second[0].job), (&younger.payload, Some(JobId::MIN)));
    assert_eq!(take(world, 10).await, [], "somebody has each of them");
    assert_eq!(effect(world, &younger.id).await, second[0]);
}

pub async fn whoever_takes_and_dies_holds_it_up_for_the_lease_alone(world: &World) {
    filled(world, 1).await;
    let first = take(world, 1).await.remove(0);
    // Another process, as after a crash of the first one.
    let other = world.handles().await.pop().unwrap();
    world.advance(Duration::from_millis(59_999));
    assert_eq!(
        other.take_effects(TakeEffects { receiver: receiver(1), limit: 1, lease: LEASE }).await.unwrap(),
        []
    );
    world.advance(Duration::from_millis(1));
    let second = other
        .take_effects(TakeEffects { receiver: receiver(1), limit: 1, lease: LEASE })
        .await
        .unwrap()
        .remove(0);
    assert_eq!((&second.id, second.attempts), (&first.id, 2), "the same key, another attempt");
    // The first one was only slow. What it says counts no more.
    for outcome in [delivered(), failed(), refused()] {
        assert_eq!(settle(world, &first, outcome).await, second);
    }
    assert_eq!(effect(world, &first.id).await, second);
    let over = other
        .settle_effect(SettleEffect { id: second.id.clone(), attempt: 2, outcome: delivered() })
        .await
        .unwrap();
    assert_eq!((over.state, over.detail.as_deref()), (EffectState::Delivered, Some("204 No Content")));
    assert_eq!(effect(world, &first.id).await, over);
    // Nothing follows a delivery, and the same word again is answered the same way.
    for outcome in [delivered(), failed(), refused()] {
        assert_eq!(settle(world, &second, outcome).await, over);
    }
    world.advance(LEASE * 100);
    assert_eq!(take(world, 1).await, []);
}

pub async fn a_failure_is_tried_again_later(world: &World) {
    filled(world, 2).await;
    let taken = take(world, 2).await;
    let soon = settle(world, &taken[0], failed()).await;
    let EffectState::Pending { due } = soon.state else { panic!("{soon:?}") };
    assert!(due > world.now() && due < world.now().plus(LEASE), "its own pause, not the lease: {soon:?}");
    let asked = Duration::from_hours(1);
    let outcome = EffectOutcome::Failed { detail: "429 \0 slow down".to_owned(), after: Some(asked) };
    let later = settle(world, &taken[1], outcome).await;
    assert_eq!(later.state, EffectState::Pending { due: world.now().plus(asked) });
    assert_eq!(later.detail.as_deref(), Some("429 \u{fffd} slow down"), "a receiver may say anything");
    assert_eq!(effect(world, &later.id).await, later);
    world.advance(due.since(world.now()));
    let again = take(world, 10).await;
    assert_eq!((again.len(), &again[0].id, again[0].attempts), (1, &soon.id, 2));
    world.advance(asked);
    assert_eq!(take(world, 10).await.len(), 2);
    let kinds: Vec<_> = world.feed().await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::WebhookAdded], "a failure that is tried again is not an event");
}

pub async fn what_was_not_sent_after_all_has_lost_no_attempt(world: &World) {
    filled(world, 1).await;
    let taken = take(world, 1).await.remove(0);
    let after = Duration::from_secs(3);
    let postponed = settle(world, &taken, EffectOutcome::Postponed { after }).await;
    let due = world.now().plus(after);
    assert_eq!((postponed.state, postponed.attempts), (EffectState::Pending { due }, 0));
    assert_eq!(settle(world, &taken, EffectOutcome::Postponed { after }).await, postponed, "a repetition");
    assert_eq!(effect(world, &taken.id).await, postponed);
    assert_eq!(take(world, 1).await, []);
    world.advance(after);
    assert_eq!(take(world, 1).await.remove(0).attempts, 1);
}

pub async fn what_cannot_be_told_is_given_up_and_told(world: &World) {
    filled(world, 1).await;
    let tracked = world.store.add_effect(AddEffect { effect: for_tracker(JobId::MIN, 1) }).await.unwrap().id;
    let mut attempts = 0;
    loop {
        let Some((_, next)) = waiting(world).await.first().cloned() else { break };
        world.advance(next.since(world.now()));
        for taken in take(world, 10).await {
            attempts += 1;
            settle(world, &taken, if taken.id == tracked { refused() } else { failed() }).await;
        }
    }
    assert_eq!(attempts, Effect::ATTEMPTS + 1, "one was refused at once");
    let dead = effect(world, &for_webhook(1, 0).id).await;
    assert_eq!((dead.state, dead.attempts), (EffectState::Dead, Effect::ATTEMPTS));
    let feed = world.feed().await;
    let reported: Vec<_> = feed.iter().filter(|event| event.kind == EventKind::EffectGivenUp).collect();
    assert_eq!(reported.len(), 2);
    let of: Vec<_> = reported.iter().map(|event| event.product.clone().unwrap()).collect();
    assert_eq!(of, [product("app"), product("demo")]);
    assert_eq!(reported[0].data["effectId"], json!(tracked.as_str()));
    assert_eq!(reported[0].data["detail"], json!("410 Gone"));
    assert_eq!(reported[1].data["target"], json!({ "kind": "webhook", "id": webhook_id(1).to_string() }));
    // Repeating the final report tells nobody again.
    assert_eq!(settle(world, &dead, failed()).await, dead);
    assert_eq!(world.feed().await, feed);
}

pub async fn somebody_may_give_it_another_chance(world: &World) {
    filled(world, 2).await;
    let taken = take(world, 2).await;
    let (dead, done) =
        (settle(world, &taken[0], refused()).await, settle(world, &taken[1], delivered()).await);
    world.advance(LEASE);
    let before = world.feed().await;
    assert_eq!(
        world.store.revive_effect(ReviveEffect { id: done.id.clone(), actor: user() }).await.unwrap(),
        done
    );
    assert_eq!(world.feed().await, before, "only what was given up");
    let revived =
        world.store.revive_effect(ReviveEffect { id: dead.id.clone(), actor: user() }).await.unwrap();
    assert_eq!((revived.state, revived.attempts), (EffectState::Pending { due: world.now() }, 0));
    assert_eq!(revived.detail, dead.detail, "what came of the last attempt is still to be read");
    let feed = world.feed().await;
    let reported = feed.last().unwrap();
    assert_eq!((reported.kind, &reported.actor), (EventKind::EffectRevived, &user()));
    assert_eq!((&reported.product, &reported.data["effectId"]), (&dead.product, &json!(dead.id.as_str())));
    assert_eq!(
        world.store.revive_effect(ReviveEffect { id: dead.id.clone(), actor: user() }).await.unwrap(),
        revived
    );
    assert_eq!(world.feed().await, feed, "a repetition");
    assert_eq!(take(world, 10).await.len(), 1);
}

pub async fn an_unknown_effect_is_not_found(world: &World) {
    let id: EffectId = "nothing:1".parse().unwrap();
    let error = world
        .store
        .settle_effect(SettleEffect { id: id.clone(), attempt: 1, outcome: delivered() })
        .await
        .unwrap_err();
    assert!(matches!(&error, StoreError::NoSuchEffect(named) if *named == id), "{error:?}");
    let error = world.store.revive_effect(ReviveEffect { id: id.clone(), actor: user() }).await.unwrap_err();
    assert!(matches!(&error, StoreError::NoSuchEffect(named) if *named == id), "{error:?}");
    assert_eq!(world.store.read().effect(&id).await.unwrap(), None);
    assert_eq!(world.feed().await, []);
}

pub async fn what_somebody_asks_for_is_sent_again(world: &World) {
    let new = || for_tracker(JobId::MIN, 1);
    let made = world.store.add_effect(AddEffect { effect: new() }).await.unwrap();
    assert_eq!(made, Effect::new(new(), world.now()));
    world.advance(Duration::from_secs(1));
    let other = NewEffect { payload: json!("another"), ..new() };
    assert_eq!(
        world.store.add_effect(AddEffect { effect: other.clone() }).await.unwrap(),
        made,
        "it waits already"
    );
    let taken = take(world, 1).await.remove(0);
    assert_eq!(world.store.add_effect(AddEffect { effect: new() }).await.unwrap(), taken, "it is being sent");
    for outcome in [delivered(), refused()] {
        let taken = effect(world, &made.id).await;
        settle(world, &taken, outcome).await;
        let again = world.store.add_effect(AddEffect { effect: other.clone() }).await.unwrap();
        assert_eq!((again.state, again.attempts), (EffectState::Pending { due: world.now() }, 0));
        assert_eq!(again.payload, made.payload, "one id, one message, for ever");
        assert_eq!(take(world, 10).await.len(), 1);
    }
    assert_eq!(effects(world).await.len(), 1);
    assert_eq!(world.feed().await.len(), 1, "only the giving up");
}

pub async fn racing_senders_take_disjoint_batches(world: &World) {
    filled(world, 200).await;
    let handles = world.handles().await;
    let senders = (0..8).map(|n| {
        let store = handles[n % handles.len()].clone();
        tokio::spawn(async move {
            let mut sent = Vec::new();
            loop {
                let taken = store
                    .take_effects(TakeEffects { receiver: receiver(1), limit: 7, lease: LEASE })
                    .await
                    .unwrap();
                if taken.is_empty() {
                    return sent;
                }
                for effect in taken {
                    store
                        .settle_effect(SettleEffect {
                            id: effect.id.clone(),
                            attempt: effect.attempts,
                            outcome: delivered(),
                        })
                        .await
                        .unwrap();
                    sent.push(effect);
                }
            }
        })
    });
    let sent: Vec<Effect> = join_all(senders).await.into_iter().flat_map(Result::unwrap).collect();
    assert!(sent.iter().all(|effect| effect.attempts == 1));
    let ids: BTreeSet<_> = sent.iter().map(|effect| effect.id.clone()).collect();
    // Whoever found only what others had locked has left early; nothing is lost by that.
    let rest = take(world, 1_000).await;
    assert_eq!((ids.len(), sent.len() + rest.len()), (sent.len(), 200));
    assert_eq!(counts(world).await.pending, rest.len() as u64);
    assert!(handles.iter().all(|store| store.stats().retries == 0), "nobody waited in a circle");
}

pub async fn one_settlement_of_many_counts(world: &World) {
    filled(world, 1).await;
    let taken = take(world, 1).await.remove(0);
    let handles = world.handles().await;
    let racers = (0..16).map(|n| {
        let (store, id) = (handles[n % handles.len()].clone(), taken.id.clone());
        let detail = n.to_string();
        tokio::spawn(async move {
            store
                .settle_effect(SettleEffect { id, attempt: 1, outcome: EffectOutcome::Refused { detail } })
                .await
                .unwrap()
        })
    });
    let answers: Vec<Effect> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "all are told what the first one said");
    let feed = world.feed().await;
    assert_eq!(feed.iter().filter(|event| event.kind == EventKind::EffectGivenUp).count(), 1);
}

pub async fn what_is_over_is_retired_oldest_first(world: &World) {
    filled(world, 6).await;
    let taken = take(world, 5).await;
    // The last of them is over first.
    let outcomes = [delivered(), refused(), delivered(), delivered(), failed()];
    for (taken, outcome) in taken.iter().rev().zip(outcomes) {
        world.advance(Duration::from_secs(1));
        settle(world, taken, outcome).await;
    }
    let third = effect(world, &taken[2].id).await.updated_at;
    assert_eq!(world.store.retire_effects(RetireEffects { before: third, limit: 1 }).await.unwrap(), 1);
    assert_eq!(world.store.read().effect(&taken[4].id).await.unwrap(), None);
    assert_eq!(
        world.store.retire_effects(RetireEffects { before: third, limit: 10 }).await.unwrap(),
        1,
        "before, not at, that time"
    );
    assert_eq!(world.store.read().effect(&taken[3].id).await.unwrap(), None, "the dead go too");
    world.advance(Duration::from_hours(1_000));
    let before = world.feed().await;
    assert_eq!(
        world.store.retire_effects(RetireEffects { before: world.now(), limit: 10 }).await.unwrap(),
        2
    );
    assert_eq!(
        world.store.retire_effects(RetireEffects { before: world.now(), limit: 10 }).await.unwrap(),
        0
    );
    let mut left: Vec<_> = effects(world).await.into_iter().map(|effect| effect.id).collect();
    left.sort_unstable();
    assert_eq!(left, [for_webhook(1, 0).id, for_webhook(1, 5).id], "what waits is never retired");
    assert_eq!(world.feed().await, before);
}

/// What a filter is to find.
type Holds = Box<dyn Fn(&Effect) -> bool>;

pub async fn each_filter_alone_and_pages_cover_all(world: &World) {
    listening(world, 1).await;
    let job = JobId::from_parts(world.now(), 7);
    for what in 0..3 {
        let from = world.store.read().fan_out_cursor().await.unwrap();
        let fleet = NewEffect { product: None, ..for_webhook(1, 10 + what) };
        let stretch = vec![for_webhook(1, what), fleet];
        assert!(
            world.store.fan_out(FanOut { from, to: FeedPos(from.0 + 1), effects: stretch }).await.unwrap()
        );
        world.store.add_effect(AddEffect { effect: for_tracker(job, what) }).await.unwrap();
        world.advance(Duration::from_millis(1));
    }
    for taken in
        world.store.take_effects(TakeEffects { receiver: receiver(1), limit: 2, lease: LEASE }).await.unwrap()
    {
        settle(world, &taken, if taken.id == for_webhook(1, 0).id { delivered() } else { refused() }).await;
    }
    let all = effects(world).await;
    assert_eq!(all.len(), 9);
    let place = |effect: &Effect| (effect.created_at, effect.id.clone());
    assert!(all.windows(2).all(|pair| place(&pair[0]) > place(&pair[1])), "newest first");

    let none = EffectFilter::default;
    let tracker = EffectTarget::Tracker { tracker: "github".to_owned(), item: "acme/app#12".to_owned() };
    let of = |products: &[&str]| products.iter().map(|id| product(id)).collect::<Vec<_>>();
    let mut filters: Vec<(EffectFilter, usize, Holds)> = vec![
        (
            EffectFilter { products: of(&["demo"]), ..none() },
            3,
            Box::new(|e| e.product == Some(product("demo"))),
        ),
        (EffectFilter { products: of(&["demo", "app"]), ..none() }, 6, Box::new(|e| e.product.is_some())),
        (EffectFilter { products: of(&["none"]), ..none() }, 0, Box::new(|_| false)),
        (EffectFilter { target: Some(tracker.clone()), ..none() }, 3, Box::new(move |e| e.target == tracker)),
        (
            EffectFilter { target: Some(EffectTarget::Webhook(webhook_id(1))), ..none() },
            6,
            Box::new(|e| e.target == EffectTarget::Webhook(webhook_id(1))),
        ),
        (EffectFilter { job: Some(job), ..none() }, 3, Box::new(move |e| e.job == Some(job))),
    ];
    for (state, count) in EffectStateName::ALL.into_iter().zip([7, 1, 1]) {
        let holds: Holds = Box::new(move |e| e.state.name() == state);
        filters.push((EffectFilter { state: Some(state), ..none() }, count, holds));
    }
    for (filter, count, holds) in filters {
        let found = world.store.read().effects(&filter, None, 100).await.unwrap();
        let expected: Vec<_> = all.iter().filter(|effect| holds(effect)).cloned().collect();
        assert_eq!((&found, found.len()), (&expected, count), "{filter:?}");
    }
    let mut paged: Vec<Effect> = Vec::new();
    for _ in 0..all.len() {
        let after = paged.last().map(place);
        paged.extend(world.store.read().effects(&none(), after, 2).await.unwrap());
    }
    assert_eq!(paged, all);
}

pub async fn a_backlog_is_in_nobody_elses_way(world: &World) {
    assert_eq!(waiting(world).await, []);
    filled(world, 50).await;
    let made = world.now();
    world.advance(Duration::from_secs(1));
    let other = world.store.add_effect(AddEffect { effect: for_tracker(JobId::MIN, 1) }).await.unwrap();
    let tracker = EffectReceiver::Tracker("github".to_owned());
    assert_eq!(waiting(world).await, [(receiver(1), made), (tracker.clone(), world.now())]);
    let before = effects(world).await;
    let taken = world
        .store
        .take_effects(TakeEffects { receiver: tracker.clone(), limit: 10, lease: LEASE })
        .await
        .unwrap();
    assert_eq!(taken.iter().map(|effect| &effect.id).collect::<Vec<_>>(), [&other.id]);
    let due = world.now().plus(LEASE);
    assert_eq!(waiting(world).await, [(receiver(1), made), (tracker.clone(), due)]);
    let untouched = |effect: &&Effect| effect.target.receiver() == receiver(1);
    let after = effects(world).await;
    assert!(after.iter().filter(untouched).eq(before.iter().filter(untouched)), "not even looked at");
    settle(world, &taken[0], delivered()).await;
    assert_eq!(waiting(world).await, [(receiver(1), made)]);
    let nobody = world
        .store
        .take_effects(TakeEffects { receiver: receiver(9), limit: 10, lease: LEASE })
        .await
        .unwrap();
    assert_eq!(nobody, []);
    for store in world.handles().await {
        assert_eq!(store.read().effect_receivers().await.unwrap(), [(receiver(1), made)]);
    }
}

pub async fn the_outbox_is_counted(world: &World) {
    assert_eq!(counts(world).await, EffectCounts::default());
    filled(world, 4).await;
    let made: Timestamp = world.now();
    world.advance(Duration::from_secs(10));
    world.store.add_effect(AddEffect { effect: for_tracker(JobId::MIN, 1) }).await.unwrap();
    let all = EffectCounts { pending: 5, dead: 0, oldest_pending: Some(made) };
    assert_eq!(counts(world).await, all);
    let taken = take(world, 3).await;
    settle(world, &taken[0], delivered()).await;
    settle(world, &taken[1], refused()).await;
    let some = EffectCounts { pending: 3, dead: 1, ..all };
    assert_eq!(counts(world).await, some, "one of them was not taken");
    take(world, 10).await;
    assert_eq!(counts(world).await, some);
    for store in world.handles().await {
        assert_eq!(store.read().effect_counts().await.unwrap(), counts(world).await);
    }
}
