//! Tokens come to an end and signing keys are replaced, by the clock that was handed in.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Coordinator, Options, Ports};
use giga_domain::factory::FactoryScope;
use giga_domain::token::{Lifetime, Role, TokenRecord, TokenSecret};
use giga_domain::{EventKind, JobToken};

use crate::common::{Fleet, factory_id, operator};

const DAY: Duration = Duration::from_hours(24);

async fn live(fleet: &Fleet, secret: &TokenSecret) -> Option<TokenRecord> {
    fleet.coordinator.authenticate(secret).await.unwrap()
}

#[tokio::test]
async fn a_token_ends_and_says_when_and_can_be_renewed() {
    let fleet = Fleet::start().await;
    let hour = Lifetime::For(Duration::from_hours(1));
    let issued =
        fleet.coordinator.issue_token_for(hour, Role::Viewer, Vec::new(), "v".into(), operator()).await;
    let (token, secret) = issued.unwrap();
    let end = token.expires_at.unwrap();
    fleet.clock.advance(Duration::from_millis(3_599_999));
    assert!(live(&fleet, &secret).await.is_some());
    assert_eq!(fleet.coordinator.ended(&secret), None);
    fleet.clock.advance(Duration::from_millis(1));
    assert!(live(&fleet, &secret).await.is_none(), "remembered or not");
    assert_eq!(fleet.coordinator.ended(&secret), Some((token.id.clone(), end)));
    fleet.coordinator.renew_token(&token, hour, operator()).await.unwrap();
    assert!(live(&fleet, &secret).await.is_some());

    fleet.coordinator.revoke_token(token.id.clone(), operator()).await.unwrap();
    let refused = fleet.coordinator.renew_token(&token, hour, operator()).await.unwrap_err().to_string();
    assert!(refused.contains("was revoked") && refused.contains("giga token create"), "{refused}");
    assert!(live(&fleet, &secret).await.is_none());
    assert_eq!(fleet.coordinator.ended(&secret), None, "it did not end, it was ended");
    let stranger = TokenSecret::from_random("user", [9; 32]);
    assert_eq!((live(&fleet, &stranger).await, fleet.coordinator.ended(&stranger)), (None, None));
}

#[tokio::test]
async fn a_token_ends_unless_somebody_said_never() {
    let fleet = Fleet::start().await;
    let issue = |lifetime: Lifetime| {
        fleet.coordinator.issue_token_for(lifetime, Role::Viewer, Vec::new(), "v".into(), operator())
    };
    let (_, never) = issue(Lifetime::Never).await.unwrap();
    let (_, usual) =
        fleet.coordinator.issue_token(Role::Viewer, Vec::new(), "v".into(), operator()).await.unwrap();
    fleet.clock.advance(90 * DAY);
    assert!(live(&fleet, &never).await.is_some() && live(&fleet, &usual).await.is_none());
}

#[tokio::test]
async fn a_living_factory_keeps_its_token_and_a_silent_one_loses_it() {
    let fleet = Fleet::start().await;
    let id = factory_id("mac-1");
    let (_, secret) =
        fleet.coordinator.enroll(id.clone(), FactoryScope::default(), operator()).await.unwrap();
    let first = live(&fleet, &secret).await.unwrap().expires_at;
    let beat = async |secret: &TokenSecret| {
        fleet.coordinator.keep_alive(secret, operator()).await.unwrap();
    };
    fleet.clock.advance(14 * DAY);
    beat(&secret).await;
    assert_eq!(live(&fleet, &secret).await.unwrap().expires_at, first, "not every time");
    for _ in 0..10 {
        fleet.clock.advance(10 * DAY);
        beat(&secret).await;
    }
    assert!(live(&fleet, &secret).await.is_some(), "after 114 days");

    // Replaced: the old one ends with its grace, however often it is used.
    let new = fleet.coordinator.rotate_factory_token(id, operator()).await.unwrap();
    fleet.clock.advance(Duration::from_secs(5));
    beat(&secret).await;
    fleet.clock.advance(Duration::from_mins(15));
    beat(&secret).await;
    assert!(live(&fleet, &secret).await.is_none() && live(&fleet, &new).await.is_some());

    fleet.clock.advance(30 * DAY);
    beat(&new).await;
    assert!(live(&fleet, &new).await.is_none(), "too late");
}

#[tokio::test]
async fn a_place_has_one_admin() {
    let fleet = Fleet::start().await;
    let coordinator = &fleet.coordinator;
    let (first, was_there) = coordinator.replace_local_admin("here:/data").await.unwrap();
    assert!(!was_there);
    let (elsewhere, _) = coordinator.replace_local_admin("there:/data").await.unwrap();
    let (second, was_there) = coordinator.replace_local_admin("here:/data").await.unwrap();
    assert!(was_there && live(&fleet, &first).await.is_none());
    assert!(live(&fleet, &second).await.is_some() && live(&fleet, &elsewhere).await.is_some());

    fleet.clock.advance(31 * DAY);
    assert!(live(&fleet, &elsewhere).await.is_none(), "nobody came back for it");
    assert!(coordinator.revive_local_admin(&second).await.unwrap());
    assert!(live(&fleet, &second).await.is_some());
    assert!(!coordinator.revive_local_admin(&first).await.unwrap(), "it was revoked");
    let issued = coordinator.issue_token(Role::Operator, Vec::new(), "o".into(), operator()).await;
    assert!(!coordinator.revive_local_admin(&issued.unwrap().1).await.unwrap(), "no admin");
}

/// Another coordinator on the same store.
async fn second(fleet: &Fleet) -> Arc<Coordinator> {
    let random = Arc::new(giga_testkit::SeededRandomness::new(8));
    Coordinator::start(Ports { random, ..fleet.ports.clone() }, Options::default()).await.unwrap()
}

#[tokio::test]
async fn what_a_replaced_key_signed_stays_good_until_the_next_time() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 2).await;
    fleet.submit("name: one").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    let (here, there) = (&fleet.coordinator, second(&fleet).await);
    let token = async |coordinator: &Coordinator| {
        let secret = coordinator.job_token(held.id, held.epoch).await.unwrap();
        JobToken::parse(secret.reveal()).unwrap()
    };
    let good = async |coordinator: &Coordinator, token: &JobToken| {
        coordinator.authenticate_job(token).await.unwrap().is_some()
    };
    let old = token(here).await;
    assert!(good(&there, &old).await);

    here.rotate_keys(operator()).await.unwrap();
    let new = token(here).await;
    assert_ne!(new.secret().reveal(), old.secret().reveal());
    // The other one has not heard of it yet, and looks.
    fleet.clock.advance(Duration::from_secs(3));
    assert!(good(&there, &new).await && good(&there, &old).await && good(here, &old).await);

    there.rotate_keys(operator()).await.unwrap();
    fleet.clock.advance(Duration::from_secs(3));
    assert!(good(&there, &new).await && good(here, &new).await);
    assert!(!good(&there, &old).await);
    assert!(good(here, &token(&there).await).await);
    fleet.clock.advance(Duration::from_mins(1));
    assert!(!good(here, &old).await);
}

#[tokio::test]
async fn keys_are_replaced_every_month() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 2).await;
    fleet.submit("name: one").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    let mut signed = Vec::new();
    for _ in 0..61 {
        let secret = fleet.coordinator.job_token(held.id, held.epoch).await.unwrap();
        signed.push(secret.reveal().to_owned());
        fleet.clock.advance(DAY);
    }
    signed.dedup();
    assert_eq!(signed.len(), 3, "on the first day, after 30 and after 60");
    let head = fleet.store.read().feed_head().await.unwrap();
    let feed = fleet.store.read().feed(giga_domain::FeedPos::ZERO, head.0 as usize + 1).await.unwrap();
    assert_eq!(feed.iter().filter(|event| event.kind == EventKind::KeyRotated).count(), 2);
}
