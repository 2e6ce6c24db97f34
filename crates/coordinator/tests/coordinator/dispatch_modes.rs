//! Delivery modes: set for the fleet or for one factory, mixed, switched while jobs run, and never in each other's way.

use std::time::Duration;

use crate::common::{Fleet, factory_id, request};
use giga_coordinator::{Accept, Coordinator, NewItem, Options, StreamEvent};
use giga_domain::{Delivery, EventKind, FactoryId, FeedPos, HolderAction, JobId, Stage};
use giga_ports::Broker;
use giga_scheduler::Filter;
use serde_json::{Value, json};

const PICKUP: Duration = Duration::from_secs(10);

async fn led_by_hand() -> Fleet {
    let fleet = Fleet::by_hand().await;
    assert!(fleet.coordinator.dispatch().lead_once().await.unwrap().is_some());
    fleet
}

async fn dispatch(fleet: &Fleet) -> Vec<(JobId, FactoryId)> {
    let done = fleet.coordinator.dispatch().dispatch_once().await.unwrap();
    done.offered.iter().map(|offer| (offer.job_id, offer.target_factory_id.clone())).collect()
}

/// No test waits for ever.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("it never came")
}

async fn events_of(fleet: &Fleet, kind: EventKind) -> Vec<Value> {
    let feed = fleet.store.read().feed(FeedPos::ZERO, 10_000).await.unwrap();
    feed.into_iter().filter(|e| e.kind == kind).map(|e| Value::Object(e.data)).collect()
}

#[tokio::test]
async fn targets_are_set_only_for_factories_that_work_the_way_they_should() {
    let fleet = led_by_hand().await;
    for (id, actual) in [
        ("f-poll", Delivery::Poll),
        ("f-self", Delivery::SelfSelect),
        ("f-shadow", Delivery::Shadow),
        ("f-broker", Delivery::Broker),
    ] {
        fleet.factory_by(actual, id, 4).await;
    }
    let job = fleet.submit("name: one").await;
    assert_eq!(dispatch(&fleet).await, [], "the wish is stream, and nobody is reached by it yet");
    fleet.set_flag("delivery.f-broker", "broker").await;
    assert_eq!(dispatch(&fleet).await, [(job.id, factory_id("f-broker"))]);
}

#[tokio::test]
async fn a_poll_claim_leaves_alone_what_is_on_offer_to_another_until_the_deadline() {
    let fleet = led_by_hand().await;
    let streaming = fleet.factory_by(Delivery::Stream, "a-stream", 1).await;
    let polling = fleet.factory_by(Delivery::Poll, "b-poll", 4).await;
    let offered = fleet.submit("name: offered").await;
    assert_eq!(dispatch(&fleet).await, [(offered.id, streaming.clone())]);
    let free = fleet.submit("name: free").await;

    assert_eq!(fleet.claim(&polling, "r1").await.unwrap().id, free.id, "the older one is spoken for");
    assert_eq!(fleet.claim(&polling, "r2").await, None);
    let ids = [offered.id];
    let picked =
        fleet.coordinator.claims().claim_from(polling.clone(), &request("r3"), &ids, 1).await.unwrap();
    assert_eq!(picked, [], "whatever the way of claiming");
    fleet.clock.advance(PICKUP);
    assert_eq!(fleet.claim(&polling, "r4").await.unwrap().id, offered.id, "nobody picked it up");
}

#[tokio::test]
async fn a_factory_that_falls_back_to_polling_takes_what_is_on_offer_to_it() {
    let fleet = led_by_hand().await;
    let only = fleet.factory_by(Delivery::Stream, "only", 1).await;
    let job = fleet.submit("name: one").await;
    assert_eq!(dispatch(&fleet).await.len(), 1);
    let claimed = fleet.claim(&only, "r1").await.unwrap();
    assert_eq!((claimed.id, claimed.dispatch_seq.0), (job.id, 1));

    // And what it missed: who asks is there.
    fleet.hold(&claimed, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(dispatch(&fleet).await.len(), 1);
    fleet.clock.advance(PICKUP);
    assert_eq!(fleet.claim(&only, "r2").await.unwrap().id, job.id);
}

#[tokio::test]
async fn modes_are_mixed_in_one_fleet() {
    let fleet = Fleet::start().await;
    let streaming = fleet.factory_by(Delivery::Stream, "f-stream", 2).await;
    let broking = fleet.factory_by(Delivery::Broker, "f-broker", 2).await;
    let polling = fleet.factory_by(Delivery::Poll, "f-poll", 2).await;
    let choosing = fleet.factory_by(Delivery::SelfSelect, "f-self", 2).await;
    fleet.set_flag("delivery.f-broker", "broker").await;
    fleet.set_flag("delivery.f-poll", "poll").await;
    fleet.set_flag("delivery.f-self", "self_select").await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(streaming).unwrap();
    let mut offers = fleet.broker.consume(&broking).await.unwrap();

    let mut held = std::collections::BTreeSet::new();
    for n in 0..8 {
        fleet.submit(&format!("name: job-{n}")).await;
    }
    for _ in 0..2 {
        let Some(StreamEvent::Grant(grant)) = soon(stream.next()).await else { panic!("no grant") };
        held.insert(grant.job().id);
        grant.delivered();
        let delivered = soon(offers.next()).await.unwrap();
        let job = fleet.coordinator.claims().take_offer(&broking, &delivered.offer).await.unwrap().unwrap();
        offers.ack(&delivered).await.unwrap();
        held.insert(job.id);
    }
    for n in 0..2 {
        held.insert(fleet.claim(&polling, &format!("r{n}")).await.unwrap().id);
    }
    let left: Vec<JobId> =
        fleet.coordinator.claims().candidates(&choosing, 10).await.unwrap().iter().map(|c| c.job).collect();
    assert_eq!(left.len(), 2);
    for job in fleet.coordinator.claims().claim_from(choosing, &request("many"), &left, 2).await.unwrap() {
        held.insert(job.id);
    }
    assert_eq!(held.len(), 8, "every job is held, and by one way");
}

#[tokio::test]
async fn switching_the_mode_at_run_time_disturbs_no_running_job() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 3).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    let first = fleet.submit("name: first").await;
    assert_eq!(dispatch(&fleet).await, [(first.id, f1.clone())]);
    let Some(StreamEvent::Grant(grant)) = soon(stream.next()).await else { panic!("no grant") };
    let running = grant.job().clone();
    grant.delivered();
    fleet.hold(&running, vec![HolderAction::Start]).await.unwrap();

    fleet.set_flag("delivery", "poll").await;
    let second = fleet.submit("name: second").await;
    assert_eq!(dispatch(&fleet).await, [], "no target from the moment on at which the wish changed");
    fleet.reached_by(&f1, Delivery::Poll, 3).await;
    assert_eq!(fleet.claim(&f1, "r1").await.unwrap().id, second.id);

    fleet.set_flag("delivery", "stream").await;
    let third = fleet.submit("name: third").await;
    assert_eq!(dispatch(&fleet).await, [], "nor before the factory has followed");
    fleet.reached_by(&f1, Delivery::Stream, 3).await;
    assert_eq!(dispatch(&fleet).await, [(third.id, f1)]);

    assert_eq!(fleet.job(first.id).await.stage(), Stage::Building);
    fleet.hold(&running, vec![HolderAction::Report(giga_domain::RunReport::default())]).await.unwrap();
    let changes = events_of(&fleet, EventKind::FlagChanged).await;
    assert_eq!(changes.len(), 2, "each change is on record: {changes:?}");
}

#[tokio::test]
async fn the_mode_of_one_factory_stands_above_the_fleets_until_it_is_unset() {
    let fleet = Fleet::by_hand().await;
    let f1 = fleet.factory_by(Delivery::Poll, "f1", 1).await;
    let wished = || fleet.coordinator.wished_delivery(&f1);
    assert_eq!(wished(), Delivery::Stream);
    fleet.set_flag("delivery.f1", "broker").await;
    fleet.set_flag("delivery", "shadow").await;
    assert_eq!(wished(), Delivery::Broker);
    let flags = fleet.coordinator.flags().await.unwrap();
    let own: Vec<_> = flags.iter().filter(|f| f.name.starts_with("delivery")).collect();
    assert_eq!(
        own.iter().map(|f| (f.name.as_str(), &f.value, &f.default, f.is_default)).collect::<Vec<_>>(),
        [
            ("delivery", &json!("shadow"), &json!("stream"), false),
            ("delivery.f1", &json!("broker"), &json!("shadow"), false)
        ]
    );
    let restarted = fleet.another_by_hand().await;
    assert_eq!(restarted.wished_delivery(&f1), Delivery::Broker, "it is kept");

    let unset =
        fleet.coordinator.set_flag("delivery.f1", Value::Null, crate::common::operator()).await.unwrap();
    assert_eq!((unset.value, unset.is_default), (json!("shadow"), true));
    assert_eq!(wished(), Delivery::Shadow);
    restarted.refresh_once().await.unwrap();
    assert_eq!(restarted.wished_delivery(&f1), Delivery::Shadow, "and so is that it was unset");

    let unknown =
        fleet.coordinator.set_flag("delivery.ghost", json!("poll"), crate::common::operator()).await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("no factory `ghost`") && unknown.contains("giga factory list"), "{unknown}");
    let wrong = fleet.coordinator.set_flag("delivery.f1", json!("push"), crate::common::operator()).await;
    assert!(wrong.unwrap_err().to_string().contains("one of poll, shadow, stream"));
}

#[tokio::test]
async fn shadow_mode_records_what_it_would_have_done_and_does_nothing() {
    let fleet = led_by_hand().await;
    fleet.set_flag("delivery", "shadow").await;
    // The plan prefers the idle one; the busy one asks first.
    let idle = fleet.factory_by(Delivery::Shadow, "a-idle", 4).await;
    let busy = fleet.factory_by(Delivery::Shadow, "b-busy", 4).await;
    let job = fleet.submit("name: one").await;
    assert_eq!(dispatch(&fleet).await, []);
    assert_eq!(fleet.job(job.id).await.target(), None, "nothing acts on a plan of the shadow");

    fleet.clock.advance(Duration::from_millis(40));
    assert_eq!(fleet.claim(&busy, "r1").await.unwrap().id, job.id);
    dispatch(&fleet).await;
    assert_eq!(
        events_of(&fleet, EventKind::Diverged).await,
        [json!({"routedTo": "a-idle", "claimedBy": "b-busy", "lagMs": 40})]
    );
    fleet.submit("name: two").await;
    dispatch(&fleet).await;
    assert!(fleet.claim(&idle, "r2").await.is_some());
    dispatch(&fleet).await;

    let report = fleet.coordinator.dispatch().shadow_report();
    assert_eq!((report.agreements, report.divergences, report.recent.len()), (1, 1, 1));
    assert_eq!((report.recent[0].routed_to.as_str(), report.recent[0].lag_ms), ("a-idle", 40));
}

#[tokio::test]
async fn every_coordinator_shows_the_divergences_and_a_real_offer_is_no_repetition_of_a_shadow() {
    let fleet = led_by_hand().await;
    let other = fleet.another_by_hand().await;
    fleet.set_flag("delivery", "shadow").await;
    fleet.factory_by(Delivery::Shadow, "a-idle", 4).await;
    let busy = fleet.factory_by(Delivery::Shadow, "b-busy", 4).await;
    let job = fleet.submit("name: one").await;
    dispatch(&fleet).await;
    let claimed = fleet.claim(&busy, "r1").await.unwrap();
    dispatch(&fleet).await;
    other.refresh_once().await.unwrap();
    assert_eq!(other.dispatch().shadow_report().divergences, 1);

    fleet.hold(&claimed, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    fleet.set_flag("delivery", "stream").await;
    fleet.reached_by(&busy, Delivery::Stream, 4).await;
    let mut offers = fleet.broker.consume(&busy).await.unwrap();
    assert_eq!(dispatch(&fleet).await, [(job.id, busy)]);
    let delivered = soon(offers.next()).await.expect("the broker took it for a shadow");
    assert_eq!(delivered.offer.job_id, job.id);
}

#[tokio::test]
async fn a_factory_that_chooses_for_itself_sees_the_queue_in_order_and_takes_the_first_it_can() {
    let fleet = Fleet::by_hand().await;
    let f1 = fleet.factory("f1", &["os:linux"], 2).await;
    let low = fleet.submit("name: low\npriority: low").await;
    let normal = fleet.submit("name: normal\ncapabilities: [\"os:linux\"]").await;
    fleet.submit("name: other\npriority: critical\ncapabilities: [gpu]").await;
    let high = fleet.submit("name: high\npriority: high").await;
    let seen = fleet.coordinator.claims().candidates(&f1, 10).await.unwrap();
    let ids: Vec<JobId> = seen.iter().map(|c| c.job).collect();
    assert_eq!(ids, [high.id, normal.id, low.id]);
    assert_eq!(seen[1].capabilities.iter().map(ToString::to_string).collect::<Vec<_>>(), ["os:linux"]);

    // Somebody is faster with the first.
    let f2 = fleet.factory("f2", &[], 1).await;
    let faster = fleet.claim(&f2, "r1").await.unwrap();
    assert_eq!(faster.id, high.id);
    let granted = fleet.coordinator.claims().claim_from(f1.clone(), &request("r2"), &ids, 1).await.unwrap();
    assert_eq!(granted.iter().map(|job| job.id).collect::<Vec<_>>(), [normal.id]);
    fleet.hold(&faster, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    let again = fleet.coordinator.claims().claim_from(f1.clone(), &request("r2"), &ids, 1).await.unwrap();
    assert_eq!(again, granted, "a repetition gets the same and no more, though the first is free again");
    let rest = fleet.coordinator.claims().claim_from(f1, &request("r3"), &ids, 9).await.unwrap();
    assert_eq!(rest.iter().map(|job| job.id).collect::<Vec<_>>(), [high.id], "it has no seat for more");
}

#[tokio::test]
async fn dead_letters_are_mirrored_by_the_leader() {
    let fleet = Fleet::start().await;
    let f1 = fleet.factory("f1", &[], 1).await;
    let mut letters = fleet.broker.dead_letters().await.unwrap();
    fleet.until_it_leads().await;
    let job = fleet.submit("name: one\nretry: {max: 0}").await;
    let held = fleet.claim(&f1, "r1").await.unwrap();
    let failure = giga_domain::Failure { reason: giga_domain::FailReason::Crash, detail: None };
    fleet
        .hold(&held, vec![HolderAction::Start, HolderAction::Fail { failure, retryable: true }])
        .await
        .unwrap();
    let letter = soon(letters.next()).await.unwrap();
    assert_eq!((letter.job_id, letter.product_id.as_str()), (job.id, "demo"));
}

#[tokio::test]
async fn explain_says_to_whom_a_job_is_on_offer() {
    let fleet = led_by_hand().await;
    fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    dispatch(&fleet).await;
    let (_, explained) = fleet.coordinator.explain(job.id).await.unwrap();
    assert!(
        explained.summary.starts_with("on offer to f1, which may take it until"),
        "{}",
        explained.summary
    );
    assert_eq!(explained.blockers.iter().map(|b| b.code).collect::<Vec<_>>(), [Filter::Offered.into()]);
}

#[tokio::test]
async fn a_started_coordinator_offers_again_when_the_clock_says_so() {
    let fleet = Fleet::by_hand().await;
    let options = Options { lead_lease: Duration::from_hours(1), ..Options::default() };
    let started = Coordinator::start(fleet.ports.clone(), options).await.unwrap();
    let silent = fleet.factory_by(Delivery::Stream, "a-silent", 4).await;
    let job = fleet.submit("name: one").await;
    let mut offers = fleet.broker.consume(&silent).await.unwrap();
    assert_eq!(soon(offers.next()).await.unwrap().offer.dispatch_seq.0, 1);
    let other = fleet.factory_by(Delivery::Stream, "b-other", 4).await;
    fleet.clock.advance(PICKUP);
    let mut offers = fleet.broker.consume(&other).await.unwrap();
    let next = soon(offers.next()).await.unwrap();
    assert_eq!((next.offer.job_id, next.offer.dispatch_seq.0), (job.id, 2));
    started.stop().await;
}

#[tokio::test]
async fn no_factory_may_be_called_what_the_reader_of_shadow_offers_is_called() {
    let fleet = Fleet::by_hand().await;
    let scope = giga_domain::factory::FactoryScope::default();
    let id = factory_id("shadow");
    let refused = fleet.coordinator.enroll(id, scope, crate::common::operator()).await.unwrap_err();
    assert!(refused.to_string().starts_with("id: `shadow` is reserved"), "{refused}");
}

#[tokio::test]
async fn an_accepted_offer_is_held_as_far_as_the_view_knows_at_once() {
    let fleet = led_by_hand().await;
    let streaming = fleet.factory_by(Delivery::Stream, "a-stream", 1).await;
    let job = fleet.submit("name: one").await;
    let offered = fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered;
    let accept = Accept {
        job: job.id,
        factory: streaming.clone(),
        dispatch_seq: offered[0].dispatch_seq,
        request: request("r1"),
    };
    fleet.coordinator.claims().accept(accept).await.unwrap();
    assert_eq!(fleet.coordinator.held_by(&streaming), [job.id]);
}

#[tokio::test]
async fn what_is_explained_of_a_child_is_what_is_planned_for_it() {
    let fleet = led_by_hand().await;
    let cold = fleet.factory_by(Delivery::Stream, "a-cold", 4).await;
    let warm = fleet.factory_by(Delivery::Stream, "b-warm", 4).await;
    let parent = fleet.submit("name: parent").await;
    fleet.claim(&warm, "r1").await.unwrap();
    fleet.submit("name: as much load elsewhere").await;
    fleet.claim(&cold, "r2").await.unwrap();
    let text = "---\nname: child\n---\nDo it.\n";
    let (manifest, body) = giga_domain::manifest::parse_markdown(text.as_bytes()).unwrap();
    let item = NewItem { product: parent.product.clone(), manifest, body };
    let made =
        fleet.coordinator.submit_children(parent.id, vec![item], crate::common::operator()).await.unwrap();
    let child = made[0].job.id;
    let (_, why) = fleet.coordinator.explain(child).await.unwrap();
    let best = &why.factories[0];
    assert_eq!(best.factory_id, warm, "its parent's files are warm there: {:?}", why.factories);
    assert!(best.score > why.factories[1].score, "{:?}", why.factories);
    assert_eq!(dispatch(&fleet).await, [(child, warm)], "and so the plan has it");
}
