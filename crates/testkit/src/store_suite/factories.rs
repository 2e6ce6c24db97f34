//! Worker hosts: enrolled, seen, drained, removed.

use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryRepo, FactoryScope, Instance};
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, CapabilitySet, Delivery, Event, EventKind, Factory, FactoryId, FactoryState, Health, HolderAction,
    Timestamp, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{
    Advertise, Claimed, Deregister, Enroll, ExpireLeases, Prune, RevokeFactoryTokens, RotateToken,
    SetFactoryState, StreamLost, Touch,
};

use super::World;
use super::world::{LEASE, advertised, factory, product, user};

fn scope() -> FactoryScope {
    let capabilities = CapabilitySet::parse(["has:git", "os:linux"]).ok();
    FactoryScope { products: vec![product("demo"), product("other")], capabilities }
}

fn new_factory(world: &World, name: &str) -> Enroll {
    Enroll { id: factory(name), scope: scope(), token: world.factory_token(name), actor: user() }
}

async fn kinds(world: &World) -> Vec<EventKind> {
    world.feed().await.iter().map(|event| event.kind).collect()
}

async fn token(world: &World, record: &TokenRecord) -> TokenRecord {
    world.store.read().token_by_hash(&record.hash).await.unwrap().expect("the token is known")
}

pub async fn enrolls_with_its_token(world: &World) {
    let new = new_factory(world, "mac-1");
    let enrolled = world.store.enroll(new.clone()).await.unwrap();
    assert_eq!((&enrolled.id, enrolled.state, &enrolled.scope), (&new.id, FactoryState::Active, &scope()));
    assert_eq!((enrolled.enrolled_at, enrolled.last_seen_at), (world.now(), None));
    assert_eq!(enrolled.advertised, Advertised::default());
    assert_eq!(world.store.read().factory(&new.id).await.unwrap(), Some(enrolled.clone()));
    assert_eq!(world.store.read().factories().await.unwrap(), [enrolled]);
    let expected = TokenRecord { created_at: world.now(), ..new.token.clone() };
    assert_eq!(token(world, &new.token).await, expected);
    assert_eq!(kinds(world).await, [EventKind::FactoryEnrolled, EventKind::TokenIssued]);
}

pub async fn a_known_factory_is_refused(world: &World) {
    let mac = world.factory("mac-1").await;
    let before = (world.store.read().factories().await.unwrap(), world.feed().await);
    let new = new_factory(world, "mac-1");
    let error = world.store.enroll(new.clone()).await.unwrap_err();
    assert!(matches!(&error, StoreError::FactoryExists(id) if *id == mac), "{error:?}");
    assert_eq!((world.store.read().factories().await.unwrap(), world.feed().await), before);
    assert_eq!(world.store.read().token_by_hash(&new.token.hash).await.unwrap(), None);
}

pub async fn a_repeated_enrolment_is_answered(world: &World) {
    let new = new_factory(world, "mac-1");
    let first = world.store.enroll(new.clone()).await.unwrap();
    let before = world.feed().await;
    world.advance(Duration::from_secs(1));
    assert_eq!(world.store.enroll(new).await.unwrap(), first);
    assert_eq!(world.feed().await, before);
}

fn everything() -> Advertised {
    Advertised {
        capabilities: CapabilitySet::parse(["engine:shell", "gpu"]).unwrap(),
        repos: vec![
            FactoryRepo {
                url: Some("https://example.org/team/hello".to_owned()),
                last_used_at: Some(Timestamp::from_millis(1_000)),
                merges_into: Some("origin/main".to_owned()),
                ..FactoryRepo::named("hello")
            },
            FactoryRepo::named("world"),
        ],
        can_clone: true,
        clones: vec!["https://example.org/team".to_owned()],
        instance: Some(Instance {
            id: "0123456789abcdef".to_owned(),
            host: "mac".to_owned(),
            since: Timestamp::from_millis(900),
        }),
        seat_limit: 4,
        load: 0.3,
        health: Health::Degraded,
        health_reason: Some("1.2 GB of disk are free".to_owned()),
        delivery: Some(Delivery::Broker),
        cost_per_hour: Some(Usd::from_micros(1_500_000)),
        accounts: vec![giga_domain::Account {
            engine: "claude".to_owned(),
            account: "3f9a0c1b77de".parse().unwrap(),
            state: giga_domain::AccountState::OutOfQuota,
            until: Some(Timestamp::from_millis(5_000)),
            windows: vec![giga_domain::AccountWindow {
                name: "five_hour".to_owned(),
                used_percent: Some(100),
                resets_at: Some(Timestamp::from_millis(5_000)),
            }],
        }],
    }
}

pub async fn advertising_is_kept(world: &World) {
    let new = new_factory(world, "mac-1");
    world.store.enroll(new.clone()).await.unwrap();
    world.advance(Duration::from_secs(7));
    let reported =
        world.store.advertise(Advertise { factory: new.id.clone(), advertised: everything() }).await.unwrap();
    assert_eq!((&reported.advertised, reported.last_seen_at), (&everything(), Some(world.now())));
    assert_eq!(world.store.read().factory(&new.id).await.unwrap(), Some(reported));
    let last: Event = world.feed().await.pop().unwrap();
    assert_eq!((last.kind, last.job, last.product), (EventKind::FactoryChanged, None, None));
}

pub async fn the_same_again_appends_no_event(world: &World) {
    let mac = world.factory("mac-1").await;
    world.store.advertise(Advertise { factory: mac.clone(), advertised: everything() }).await.unwrap();
    let before = world.feed().await;
    world.advance(Duration::from_secs(5));
    let seen =
        world.store.advertise(Advertise { factory: mac.clone(), advertised: everything() }).await.unwrap();
    assert_eq!(seen.last_seen_at, Some(world.now()), "it is a sign of life all the same");
    assert_eq!(world.feed().await, before);
    world
        .store
        .advertise(Advertise { factory: mac, advertised: Advertised { seat_limit: 5, ..everything() } })
        .await
        .unwrap();
    assert_eq!(world.feed().await.len(), before.len() + 1);
}

pub async fn a_lost_stream_changes_how_it_is_reached_and_is_no_sign_of_life(world: &World) {
    let mac = world.factory("mac-1").await;
    let streams = Advertised { delivery: Some(Delivery::Stream), ..everything() };
    let reported =
        world.store.advertise(Advertise { factory: mac.clone(), advertised: streams }).await.unwrap();
    world.advance(Duration::from_secs(5));
    world.store.stream_lost(StreamLost { factory: mac.clone() }).await.unwrap();
    let advertised = Advertised { delivery: Some(Delivery::Poll), ..reported.advertised.clone() };
    assert_eq!(world.store.read().factory(&mac).await.unwrap(), Some(Factory { advertised, ..reported }));
    let feed = world.feed().await;
    let last = feed.last().unwrap();
    assert_eq!((last.kind, &last.actor), (EventKind::FactoryChanged, &Actor::system("dispatcher")));
    world.store.stream_lost(StreamLost { factory: mac }).await.unwrap();
    assert_eq!(world.feed().await, feed, "nothing to lose");
}

pub async fn an_unknown_factory_is_not_found(world: &World) {
    let (id, store) = (factory("nobody"), &world.store);
    let token = world.factory_token("nobody");
    let errors = [
        store.advertise(Advertise { factory: id.clone(), advertised: everything() }).await.unwrap_err(),
        store
            .set_factory_state(SetFactoryState {
                factory: id.clone(),
                state: FactoryState::Draining,
                actor: user(),
            })
            .await
            .unwrap_err(),
        store
            .rotate_token(RotateToken { factory: id.clone(), token, grace: Duration::ZERO, actor: user() })
            .await
            .unwrap_err(),
        store
            .revoke_factory_tokens(RevokeFactoryTokens { factory: id.clone(), actor: user() })
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, StoreError::NoSuchFactory(named) if *named == id), "{error:?}");
    }
    assert_eq!(world.feed().await, []);
    assert_eq!(world.store.read().tokens().await.unwrap(), []);
}

async fn last_seen(world: &World, id: &FactoryId) -> Option<Timestamp> {
    world.store.read().factory(id).await.unwrap().unwrap().last_seen_at
}

pub async fn a_touch_only_moves_forward(world: &World) {
    let mac = world.factory("mac-1").await;
    let before = world.feed().await;
    let (start, later) = (world.now(), world.now().plus(Duration::from_secs(9)));
    for (touched, expected) in [(later, later), (start, later), (later, later)] {
        world.store.touch(Touch { seen: vec![(mac.clone(), touched)] }).await.unwrap();
        assert_eq!(last_seen(world, &mac).await, Some(expected));
    }
    // Twice in one write counts once, with the later time.
    let (early, late) = (later.plus(Duration::from_secs(1)), later.plus(Duration::from_secs(2)));
    world.store.touch(Touch { seen: vec![(mac.clone(), late), (mac.clone(), early)] }).await.unwrap();
    assert_eq!(last_seen(world, &mac).await, Some(late));
    // An advertisement is a sign of life too, but not an older one than what is known.
    world.store.advertise(Advertise { factory: mac.clone(), advertised: everything() }).await.unwrap();
    assert_eq!(last_seen(world, &mac).await, Some(late));
    assert_eq!(world.feed().await.len(), before.len() + 1, "signs of life are no events");
}

pub async fn a_touch_passes_over_unknown_ones(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let later = world.now().plus(Duration::from_secs(9));
    let seen = vec![(mac.clone(), later), (factory("nobody"), later), (linux.clone(), later)];
    world.store.touch(Touch { seen }).await.unwrap();
    assert_eq!((last_seen(world, &mac).await, last_seen(world, &linux).await), (Some(later), Some(later)));
    assert_eq!(world.store.read().factory(&factory("nobody")).await.unwrap(), None);
    world.store.touch(Touch { seen: Vec::new() }).await.unwrap();
}

pub async fn draining_and_resuming(world: &World) {
    let mac = world.factory("mac-1").await;
    let before = kinds(world).await.len();
    for (state, events) in [
        (FactoryState::Draining, vec![EventKind::FactoryDraining]),
        (FactoryState::Draining, vec![EventKind::FactoryDraining]),
        (FactoryState::Active, vec![EventKind::FactoryDraining, EventKind::FactoryResumed]),
        (FactoryState::Active, vec![EventKind::FactoryDraining, EventKind::FactoryResumed]),
    ] {
        let reported = world
            .store
            .set_factory_state(SetFactoryState { factory: mac.clone(), state, actor: user() })
            .await
            .unwrap();
        assert_eq!(reported.state, state);
        assert_eq!(world.store.read().factory(&mac).await.unwrap(), Some(reported));
        assert_eq!(kinds(world).await[before..], events);
    }
    // What it advertises does not make it active again.
    world
        .store
        .set_factory_state(SetFactoryState {
            factory: mac.clone(),
            state: FactoryState::Draining,
            actor: user(),
        })
        .await
        .unwrap();
    assert_eq!(
        world.store.advertise(Advertise { factory: mac, advertised: everything() }).await.unwrap().state,
        FactoryState::Draining
    );
}

pub async fn deregistering_revokes_tokens_and_spares_leases(world: &World) {
    let new = new_factory(world, "mac-1");
    world.store.enroll(new.clone()).await.unwrap();
    world.store.advertise(Advertise { factory: new.id.clone(), advertised: advertised(5) }).await.unwrap();
    let second = world.factory_token("mac-1");
    world
        .store
        .rotate_token(RotateToken {
            factory: new.id.clone(),
            token: second.clone(),
            grace: LEASE,
            actor: user(),
        })
        .await
        .unwrap();
    let other = new_factory(world, "linux-1");
    world.store.enroll(other.clone()).await.unwrap();
    let (job, holder) = world.assigned(&new.id, |_| ()).await;
    let before = kinds(world).await.len();

    world.store.deregister(Deregister { factory: new.id.clone(), actor: user() }).await.unwrap();
    assert_eq!(world.store.read().factory(&new.id).await.unwrap(), None);
    for record in [&new.token, &second] {
        assert!(!token(world, record).await.is_live(world.now()), "it must not work any more");
    }
    assert!(token(world, &other.token).await.is_live(world.now()), "another's tokens stay");
    let mut reported = kinds(world).await.split_off(before);
    reported.sort_unstable();
    let revoked = EventKind::TokenRevoked;
    assert_eq!(reported, [EventKind::FactoryDeregistered, revoked, revoked]);
    // What it holds comes back when the lease ends, not before.
    assert_eq!(world.job(job.id).await, job);
    world.hold(job.id, &holder, [HolderAction::Start]).await.unwrap();
    world.advance(LEASE);
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs, [job.id]);
}

pub async fn a_name_can_be_enrolled_again(world: &World) {
    let mac = world.factory("mac-1").await;
    world.store.deregister(Deregister { factory: mac.clone(), actor: user() }).await.unwrap();
    let feed = world.feed().await;
    world.store.deregister(Deregister { factory: mac.clone(), actor: user() }).await.unwrap();
    assert_eq!(world.feed().await, feed, "the same call again does nothing");
    world.advance(Duration::from_secs(1));
    let new = new_factory(world, "mac-1");
    let factory = world.store.enroll(new.clone()).await.unwrap();
    assert_eq!((factory.enrolled_at, factory.last_seen_at), (world.now(), None));
    assert_eq!(factory.advertised, Advertised::default(), "nothing of its former life stays");
    assert!(token(world, &new.token).await.is_live(world.now()));
}

pub async fn prune_takes_the_unseen(world: &World) {
    let never_seen = new_factory(world, "never");
    world.store.enroll(never_seen.clone()).await.unwrap();
    let silent = world.factory("silent").await;
    world.advance(Duration::from_hours(1));
    let cut = world.now();
    let alive = world.factory("alive").await;
    let mut pruned = world.store.prune(Prune { before: cut, actor: user() }).await.unwrap();
    pruned.sort_unstable();
    assert_eq!(pruned, [never_seen.id.clone(), silent]);
    let left: Vec<_> = world.store.read().factories().await.unwrap().into_iter().map(|f| f.id).collect();
    assert_eq!(left, [alive]);
    assert!(!token(world, &never_seen.token).await.is_live(world.now()));
    assert_eq!(world.store.prune(Prune { before: cut, actor: user() }).await.unwrap(), []);
}

pub async fn prune_spares_holders(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.assigned(&mac, |_| ()).await;
    world.advance(Duration::from_hours(1));
    assert_eq!(world.store.prune(Prune { before: world.now(), actor: user() }).await.unwrap(), []);
    world.hold(job.id, &holder, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(
        world.store.prune(Prune { before: world.now(), actor: user() }).await.unwrap(),
        std::slice::from_ref(&mac)
    );
    assert!(matches!(world.claim(job.id, &mac).await, Claimed::Lost(_)));
}
