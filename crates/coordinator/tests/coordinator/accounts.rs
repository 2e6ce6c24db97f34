//! Accounts of engines: one login is closed for every factory that has it, until its time.

use std::time::Duration;

use giga_coordinator::Sight;
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::{
    Account, AccountId, AccountState, AlertKind, CapabilitySet, Delivery, FactoryId, FailReason, Failure,
    HolderAction, Stage, Timestamp,
};

use crate::common::{Fleet, factory_id, operator};

fn login(engine: &str, key: &str) -> Account {
    let account = AccountId::fingerprint(engine, key.as_bytes());
    Account {
        engine: engine.to_owned(),
        account,
        state: AccountState::Open,
        until: None,
        windows: Vec::new(),
    }
}

fn out(account: &Account, until: Timestamp) -> Account {
    Account { state: AccountState::OutOfQuota, until: Some(until), ..account.clone() }
}

fn says(accounts: &[Account], delivery: Delivery) -> Advertised {
    let engines = accounts.iter().filter(|account| account.state != AccountState::SignedOut);
    let capabilities =
        CapabilitySet::parse(engines.map(|account| format!("engine:{}", account.engine))).unwrap();
    let has_choice = ["has:engine-choice".parse().unwrap()];
    Advertised {
        capabilities: capabilities.iter().cloned().chain(has_choice).collect(),
        seat_limit: 4,
        accounts: accounts.to_vec(),
        delivery: Some(delivery),
        ..Advertised::default()
    }
}

async fn joined(fleet: &Fleet, id: &str, accounts: &[Account]) -> FactoryId {
    let id = factory_id(id);
    fleet.coordinator.enroll(id.clone(), FactoryScope::default(), operator()).await.unwrap();
    fleet.coordinator.heartbeat(id.clone(), says(accounts, Delivery::Poll)).await.unwrap();
    id
}

#[tokio::test]
async fn an_account_that_one_factory_finds_used_up_is_closed_for_all_until_its_time() {
    let fleet = Fleet::by_hand().await;
    let (shared, own) = (login("claude", "team"), login("claude", "own"));
    let a = joined(&fleet, "a", std::slice::from_ref(&shared)).await;
    let b = joined(&fleet, "b", std::slice::from_ref(&shared)).await;
    let c = joined(&fleet, "c", std::slice::from_ref(&own)).await;
    let first = fleet.submit("name: first\nengine: claude").await;
    let held = fleet.claim(&a, "r-1").await.unwrap();
    let until = fleet.coordinator.store_time().plus(Duration::from_mins(30));
    fleet.coordinator.report_accounts(&a, vec![out(&shared, until)]).await.unwrap();
    let failure = Failure { reason: FailReason::OutOfQuota, detail: None };
    let fail = HolderAction::Fail { failure, retryable: true };
    let back = fleet.hold(&held, vec![HolderAction::Start, fail]).await.unwrap();
    assert_eq!((back.id, back.attempts, back.stage()), (first.id, 0, Stage::Queued));
    assert!(fleet.claim(&a, "r-2").await.is_none(), "it is its own account");
    assert!(fleet.claim(&b, "r-3").await.is_none(), "it is the same account");

    let views = fleet.coordinator.accounts_for(&Sight::Everything).await.unwrap();
    let view = views.iter().find(|view| view.account == shared.account).unwrap();
    assert_eq!((view.state, view.until), (AccountState::OutOfQuota, Some(until)));
    assert_eq!(view.factories, [a.clone(), b.clone()]);
    assert_eq!(view.waiting, 0, "c could run it");
    let alerts = fleet.coordinator.alerts().await.unwrap();
    let alert = alerts.iter().find(|alert| alert.kind == AlertKind::AccountOutOfQuota).unwrap();
    assert!(alert.message.contains("claude is out of quota until"), "{}", alert.message);

    let taken = fleet.claim(&c, "r-4").await.unwrap();
    assert_eq!(taken.id, first.id, "another account goes on with it");
    fleet.finish(&taken).await;

    let second = fleet.submit("name: second\nengine: claude").await;
    fleet
        .coordinator
        .heartbeat(c.clone(), says(&[out(&own, until.plus(Duration::from_mins(5)))], Delivery::Poll))
        .await
        .unwrap();
    let views = fleet.coordinator.accounts_for(&Sight::Everything).await.unwrap();
    assert_eq!(views.iter().map(|view| view.waiting).collect::<Vec<_>>(), [1, 1], "either would do");
    fleet.clock.advance(Duration::from_mins(30));
    // Nobody said that it is open: its time has come.
    let reopened = fleet.claim(&b, "r-5").await.unwrap();
    assert_eq!(reopened.id, second.id);
}

#[tokio::test]
async fn the_same_deadline_again_is_no_news() {
    let fleet = Fleet::by_hand().await;
    let account = login("claude", "team");
    let a = joined(&fleet, "a", std::slice::from_ref(&account)).await;
    let until = fleet.coordinator.store_time().plus(Duration::from_mins(30));
    let beat = |until| fleet.coordinator.heartbeat(a.clone(), says(&[out(&account, until)], Delivery::Poll));
    beat(until).await.unwrap();
    let head = fleet.store.read().feed_head().await.unwrap();
    beat(until.plus(Duration::from_millis(700))).await.unwrap();
    assert_eq!(fleet.store.read().feed_head().await.unwrap(), head);
    beat(until.plus(Duration::from_mins(5))).await.unwrap();
    assert_ne!(fleet.store.read().feed_head().await.unwrap(), head);
}

#[tokio::test]
async fn who_chooses_for_himself_is_not_shown_what_his_account_cannot_run() {
    let fleet = Fleet::by_hand().await;
    let (claude, codex) = (login("claude", "team"), login("codex", "team"));
    let a = joined(&fleet, "a", &[claude.clone(), codex.clone()]).await;
    let only = fleet.submit("name: only\nengine: claude").await;
    fleet.clock.advance(Duration::from_secs(1));
    let either = fleet.submit("name: either\nengine: [claude, codex]").await;
    let shown = || async {
        let candidates = fleet.coordinator.claims().candidates(&a, 10).await.unwrap();
        candidates.into_iter().map(|candidate| candidate.job).collect::<Vec<_>>()
    };
    assert_eq!(shown().await, [only.id, either.id]);
    let until = fleet.coordinator.store_time().plus(Duration::from_mins(30));
    fleet.coordinator.report_accounts(&a, vec![out(&claude, until), codex]).await.unwrap();
    assert_eq!(shown().await, [either.id]);
}

#[tokio::test]
async fn the_dispatcher_offers_again_when_the_window_is_over() {
    let fleet = Fleet::by_hand().await;
    fleet.set_flag("delivery", "broker").await;
    let account = login("claude", "team");
    let a = joined(&fleet, "a", std::slice::from_ref(&account)).await;
    let until = fleet.coordinator.store_time().plus(Duration::from_mins(30));
    fleet.coordinator.heartbeat(a.clone(), says(&[out(&account, until)], Delivery::Broker)).await.unwrap();
    fleet.coordinator.dispatch().lead_once().await.unwrap();
    let job = fleet.submit("name: only\nengine: claude").await;
    assert_eq!(fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered, []);
    fleet.clock.advance(Duration::from_mins(30));
    // It is alive, and still says the same: its time alone has come.
    fleet.coordinator.heartbeat(a.clone(), says(&[out(&account, until)], Delivery::Broker)).await.unwrap();
    fleet.coordinator.dispatch().lead_once().await.unwrap();
    let offered = fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered;
    assert_eq!(offered.iter().map(|offer| offer.job_id).collect::<Vec<_>>(), [job.id]);
}
