//! Claims of polling factories: the right job, once, and never an error for whoever was slower.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{Fleet, advertised, factory_id, operator, request};
use giga_coordinator::{Directive, Error};
use giga_domain::factory::{Advertised, FactoryScope, Instance};
use giga_domain::{FactoryId, FactoryState, FailReason, Failure, Holder, HolderAction, Stage, Timestamp};
use giga_ports::StoreError;

#[tokio::test]
async fn a_claim_takes_the_most_urgent_job_that_fits() {
    let fleet = Fleet::start().await;
    fleet.submit("name: low\npriority: low").await;
    fleet.submit("name: elsewhere\npriority: critical\ncapabilities: [gpu]").await;
    let urgent = fleet.submit("name: urgent\npriority: high").await;
    let mac = fleet.factory("mac-1", &["os:macos"], 4).await;
    let first = fleet.claim(&mac, "r1").await.unwrap();
    assert_eq!((first.id, first.stage(), first.epoch.0), (urgent.id, Stage::Assigned, 1));
    assert_eq!(fleet.claim(&mac, "r2").await.unwrap().spec.name, "low");
    assert_eq!(fleet.claim(&mac, "r3").await, None, "the last one needs a capability that it lacks");
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_grant() {
    let fleet = Fleet::start().await;
    fleet.submit("name: one").await;
    fleet.submit("name: two").await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let granted = fleet.claim(&mac, "r1").await.unwrap();
    let again = fleet.claim(&mac, "r1").await.unwrap();
    assert_eq!((granted.id, granted.epoch), (again.id, again.epoch));
    assert_eq!(fleet.store.read().runs(granted.id).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_claimers_share_the_queue_without_a_conflict_that_they_could_see() {
    let fleet = Fleet::start().await;
    for n in 0..300 {
        fleet.submit(&format!("name: job-{n}")).await;
    }
    let mut factories = Vec::new();
    for n in 0..16 {
        factories.push(fleet.factory(&format!("f-{n}"), &[], 100).await);
    }
    let mut claimers = tokio::task::JoinSet::new();
    for n in 0..64 {
        let (coordinator, factory) = (fleet.coordinator.clone(), factories[n % 16].clone());
        claimers.spawn(async move {
            let mut won = Vec::new();
            for round in 0.. {
                match coordinator
                    .claims()
                    .claim(factory.clone(), request(format!("r-{n}-{round}")))
                    .await
                    .unwrap()
                {
                    Some(job) => won.push((job.id, job.epoch)),
                    None => return won,
                }
            }
            won
        });
    }
    let mut holders: BTreeMap<_, u32> = BTreeMap::new();
    while let Some(won) = claimers.join_next().await {
        for (id, epoch) in won.unwrap() {
            *holders.entry(id).or_default() += 1;
            assert_eq!(epoch.0, 1);
        }
    }
    assert_eq!(holders.len(), 300, "every job found a holder");
    assert!(holders.values().all(|count| *count == 1), "and no job two");
}

#[tokio::test]
async fn seats_and_concurrency_keys_are_limits() {
    let fleet = Fleet::start().await;
    for n in 0..3 {
        fleet.submit(&format!("name: keyed-{n}\nconcurrency: {{key: \"repo:hello\", limit: 1}}")).await;
    }
    let plain = fleet.submit("name: plain\npriority: low").await;
    let mac = fleet.factory("mac-1", &[], 2).await;
    assert!(fleet.claim(&mac, "r1").await.unwrap().spec.name.starts_with("keyed"));
    assert_eq!(fleet.claim(&mac, "r2").await.unwrap().id, plain.id, "the key is busy, the rest is not");
    assert_eq!(fleet.claim(&mac, "r3").await, None, "both seats are taken");
}

#[tokio::test]
async fn a_draining_factory_gets_nothing_and_is_told_so() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 2).await;
    fleet.submit("name: one").await;
    fleet.submit("name: two").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet.coordinator.set_factory_state(mac.clone(), FactoryState::Draining, operator()).await.unwrap();
    assert_eq!(fleet.claim(&mac, "r2").await, None);
    let holder = Holder { factory: mac.clone(), epoch: held.epoch };
    let renewal = fleet.coordinator.renew(held.id, holder, None).await.unwrap();
    assert_eq!(renewal.directives, [Directive::Drain]);
    fleet.coordinator.set_factory_state(mac.clone(), FactoryState::Active, operator()).await.unwrap();
    assert!(fleet.claim(&mac, "r3").await.is_some());
}

#[tokio::test]
async fn whoever_was_never_heard_of_is_told_what_to_do() {
    let fleet = Fleet::start().await;
    let unknown = fleet.coordinator.claims().claim(factory_id("ghost"), request("r1")).await.unwrap_err();
    assert!(matches!(unknown, Error::Store(StoreError::NoSuchFactory(_))), "{unknown}");
    fleet.coordinator.enroll(factory_id("mute"), FactoryScope::default(), operator()).await.unwrap();
    let mute = fleet.coordinator.claims().claim(factory_id("mute"), request("r1")).await.unwrap_err();
    assert_eq!(mute.to_string(), "factory mute has not sent a heartbeat yet; send one first");
}

#[tokio::test]
async fn a_cancelled_job_tells_its_holder_to_stop_and_takes_nothing_more_from_it() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 1).await;
    fleet.submit("name: one").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet
        .coordinator
        .operate(held.id, giga_domain::OperatorAction::Cancel, Some("not needed".into()), None, operator())
        .await
        .unwrap();
    let holder = Holder { factory: mac.clone(), epoch: held.epoch };
    let renewal = fleet.coordinator.renew(held.id, holder, None).await.unwrap();
    assert_eq!(renewal.directives, [Directive::Cancel]);
    let late = fleet.hold(&held, vec![HolderAction::Start]).await.unwrap_err();
    assert!(late.to_string().starts_with("fenced"), "{late}");
    assert_eq!(fleet.job(held.id).await.stage(), Stage::Cancelled);
    fleet.submit("name: two").await;
    assert!(fleet.claim(&mac, "r2").await.is_some(), "its seat is free again");
}

#[tokio::test]
async fn a_heartbeat_that_says_nothing_new_writes_nothing() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &["os:macos"], 2).await;
    let before = fleet.store.stats();
    for step in 1..=50 {
        fleet.clock.advance(Duration::from_secs(10));
        let mut says = advertised(&["os:macos"], 2);
        says.load = f64::from(step) / 10.0;
        let answer = fleet.coordinator.heartbeat(mac.clone(), says).await.unwrap();
        assert_eq!(answer.stale_after, answer.heartbeat_interval * 3);
    }
    assert_eq!(fleet.store.stats(), before, "fifty heartbeats, no transaction");
    let factory = fleet.store.read().factory(&mac).await.unwrap().unwrap();
    assert!(fleet.coordinator.is_live(&factory), "yet it counts as alive");
    fleet.coordinator.heartbeat(mac.clone(), advertised(&["os:macos", "gpu"], 2)).await.unwrap();
    assert_eq!(fleet.store.stats().commits, before.commits + 1, "something new is written at once");
}

/// A machine that lacks something does not get the job again; without another one the job fails with the reason.
#[tokio::test]
async fn a_job_without_its_engine_is_tried_elsewhere_or_not_at_all() {
    let fleet = Fleet::start().await;
    let (mac, linux) = (fleet.factory("mac-1", &[], 4).await, fleet.factory("linux-1", &[], 4).await);
    let job = fleet.submit("name: one").await.id;
    let fail = async |who: &FactoryId, name: &str| {
        let held = fleet.claim(who, name).await.expect("it is offered");
        let failure = Failure { reason: FailReason::NoEngine, detail: Some("claude is gone".to_owned()) };
        let holder = Holder { factory: who.clone(), epoch: held.epoch };
        let failed = HolderAction::Fail { failure, retryable: true };
        fleet.coordinator.hold(job, holder, vec![failed]).await.unwrap()
    };
    assert_eq!(fail(&mac, "r1").await.stage(), Stage::Queued);
    assert_eq!(fleet.claim(&mac, "r2").await, None, "it has shown that it cannot");
    assert_eq!(fleet.coordinator.claims().candidates(&mac, 9).await.unwrap(), [], "nor may it choose it");
    let (_, told) = fleet.coordinator.explain(job).await.unwrap();
    assert!(
        told.summary.contains("attempt 2 of 4; the last one failed: no engine: claude is gone"),
        "{told:?}"
    );
    let failed = fail(&linux, "r3").await;
    assert_eq!((failed.stage(), failed.attempts), (Stage::Failed, 2), "nobody is left");
    assert_eq!(failed.failure().unwrap().reason, FailReason::NoEngine);
}

fn speaking(id: &str, host: &str) -> Advertised {
    let instance = Instance { id: id.to_owned(), host: host.to_owned(), since: Timestamp::ZERO };
    Advertised { instance: Some(instance), ..advertised(&[], 2) }
}

#[tokio::test]
async fn a_name_is_one_process_at_a_time() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 2).await;
    let beat = |says| fleet.coordinator.heartbeat(mac.clone(), says);
    beat(speaking("a", "here")).await.unwrap();
    let since = fleet.store.read().now().await.unwrap();
    for (id, host) in [("b", "here"), ("a", "there")] {
        let refused = beat(speaking(id, host)).await.unwrap_err();
        let Error::FactoryInUse { factory, host, since: known, .. } = &refused else { panic!("{refused}") };
        assert_eq!((factory, host.as_str(), *known), (&mac, "here", since));
    }
    beat(speaking("a", "here")).await.expect("a restart on the same machine");
    let seen = fleet.store.read().factory(&mac).await.unwrap().unwrap().advertised.instance.unwrap();
    assert_eq!((seen.id.as_str(), seen.since), ("a", since), "and still the same");

    fleet.coordinator.take_over(mac.clone(), speaking("b", "there")).await.unwrap();
    assert!(beat(speaking("a", "here")).await.is_err(), "it was replaced");
    fleet.clock.advance(Duration::from_hours(1));
    beat(speaking("a", "here")).await.expect("the other one is silent");
}
