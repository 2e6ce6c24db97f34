//! Critical jobs that find every seat taken: one holder is asked, lets go, and its seat goes where it was asked for.

use std::time::Duration;

use crate::common::Fleet;
use giga_coordinator::{Directive, StreamEvent};
use giga_domain::{
    Checkpoint, Delivery, EventKind, Evict, FactoryId, FeedPos, Holder, HolderAction, Job, JobId, Offer,
    Stage,
};
use giga_ports::Clock as _;
use giga_ports::store::{EvictJobs, NewEviction};

const GRACE: Duration = Duration::from_mins(1);
const LEASE: Duration = Duration::from_mins(1);
const LONG: Duration = Duration::from_secs(20);

async fn led_by_hand() -> Fleet {
    let fleet = Fleet::by_hand().await;
    assert!(fleet.coordinator.dispatch().lead_once().await.unwrap().is_some());
    fleet.set_flag("preemption", true).await;
    fleet
}

async fn dispatch(fleet: &Fleet) -> Vec<Offer> {
    fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered
}

/// Dispatches, and takes everything that is offered.
async fn taken(fleet: &Fleet) -> Vec<Job> {
    let mut jobs = Vec::new();
    for offer in dispatch(fleet).await {
        let taken =
            fleet.coordinator.claims().take_offer(&offer.target_factory_id, &offer).await.unwrap().unwrap();
        jobs.push(taken);
    }
    jobs
}

async fn evict(fleet: &Fleet, job: JobId) -> Option<Evict> {
    fleet.job(job).await.lease().and_then(|lease| lease.evict)
}

async fn directives(fleet: &Fleet, job: &Job) -> Vec<Directive> {
    let holder = Holder { factory: job.last_factory.clone().unwrap(), epoch: job.epoch };
    fleet.coordinator.renew(job.id, holder, None).await.unwrap().directives
}

async fn let_go(fleet: &Fleet, job: &Job) -> Job {
    let checkpoint = Checkpoint { wip_ref: Some(format!("giga/wip/{}", job.id)), ..Checkpoint::default() };
    fleet.hold(job, vec![HolderAction::Release { checkpoint: Some(checkpoint) }]).await.unwrap()
}

async fn asked(fleet: &Fleet) -> usize {
    let events = fleet.coordinator.feed(FeedPos(0), 1_000).await.unwrap();
    events.iter().filter(|event| event.kind == EventKind::EvictionAsked).count()
}

#[tokio::test]
async fn the_seat_goes_to_the_critical_job_and_the_victim_goes_on_elsewhere() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 2).await;
    let low = fleet.submit("name: low\npriority: low").await;
    let high = fleet.submit("name: high\npriority: high").await;
    let held = taken(&fleet).await;
    let held_low = held.iter().find(|job| job.id == low.id).unwrap().clone();
    fleet.hold(&held_low, vec![HolderAction::Start]).await.unwrap();

    let urgent = fleet.submit("name: urgent\npriority: critical").await;
    assert_eq!(dispatch(&fleet).await, []);
    // Time for its next renewal, by which it hears of it, and then to save its work.
    let deadline = fleet.clock.now().plus(GRACE + LEASE / 3);
    assert_eq!(evict(&fleet, low.id).await, Some(Evict::new(Some(urgent.id), deadline)));
    assert_eq!(evict(&fleet, high.id).await, None);
    let (_, explanation) = fleet.coordinator.explain(urgent.id).await.unwrap();
    assert!(explanation.summary.contains(&low.id.to_string()), "{}", explanation.summary);
    // However often the leader looks: one seat is coming free, and that is enough.
    for _ in 0..3 {
        assert_eq!(dispatch(&fleet).await, []);
    }
    assert_eq!(asked(&fleet).await, 1);

    assert_eq!(directives(&fleet, &held_low).await, [Directive::Preempt]);
    let back = let_go(&fleet, &held_low).await;
    assert_eq!((back.stage(), back.attempts, back.evictions), (Stage::Queued, 0, 1));
    let granted = taken(&fleet).await;
    assert_eq!(granted.iter().map(|job| job.id).collect::<Vec<_>>(), [urgent.id]);
    assert_eq!(granted[0].last_factory, Some(f1));

    let f2 = fleet.factory_by(Delivery::Stream, "f2", 1).await;
    let resumed = taken(&fleet).await;
    assert_eq!((resumed[0].id, &resumed[0].last_factory), (low.id, &Some(f2)));
    assert_eq!(resumed[0].checkpoint.as_ref().unwrap().wip_ref, Some(format!("giga/wip/{}", low.id)));
}

/// By its product's share somebody else would be next: the seat is kept for whom it was given up.
#[tokio::test]
async fn nobody_overtakes_the_job_that_a_seat_was_given_up_for() {
    for delivery in [Delivery::Stream, Delivery::Poll] {
        let fleet = led_by_hand().await;
        let f1 = fleet.factory_by(delivery, "f1", 2).await;
        fleet.submit("name: high\npriority: high").await;
        let low = fleet.submit("name: low\npriority: low").await;
        let held = match delivery {
            Delivery::Poll => {
                vec![fleet.claim(&f1, "r0").await.unwrap(), fleet.claim(&f1, "r1").await.unwrap()]
            }
            _ => taken(&fleet).await,
        };
        let held = held.into_iter().find(|job| job.id == low.id).unwrap();
        let urgent = fleet.submit("name: urgent\npriority: critical").await;
        dispatch(&fleet).await;
        assert!(evict(&fleet, low.id).await.is_some());
        // A product that holds nothing comes first by its share: this one still holds a seat.
        fleet.clock.advance(Duration::from_millis(1));
        fleet.try_submit_for("other", "name: theirs\npriority: critical").await.unwrap();
        let_go(&fleet, &held).await;
        let won = match delivery {
            Delivery::Poll => fleet.claim(&f1, "r2").await.unwrap(),
            _ => taken(&fleet).await.remove(0),
        };
        assert_eq!(won.id, urgent.id, "{delivery}");
    }
}

#[tokio::test]
async fn a_job_that_was_evicted_often_enough_is_left_alone() {
    let fleet = led_by_hand().await;
    fleet.set_flag("max_evictions", 2).await;
    fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let low = fleet.submit("name: low\npriority: low").await;
    for round in 1..=2 {
        let held = taken(&fleet).await.remove(0);
        assert_eq!(held.id, low.id);
        fleet.submit(&format!("name: urgent-{round}\npriority: critical")).await;
        dispatch(&fleet).await;
        assert_eq!(let_go(&fleet, &held).await.evictions, round);
        let urgent = taken(&fleet).await.remove(0);
        fleet.finish(&urgent).await;
    }
    let held = taken(&fleet).await.remove(0);
    assert_eq!(held.id, low.id);
    fleet.submit("name: urgent-3\npriority: critical").await;
    assert_eq!(dispatch(&fleet).await, []);
    assert_eq!(evict(&fleet, low.id).await, None, "it has given its seat up twice");
}

#[tokio::test]
async fn two_critical_jobs_have_two_victims_and_no_third() {
    let fleet = led_by_hand().await;
    fleet.factory_by(Delivery::Stream, "f1", 3).await;
    for n in 0..3 {
        fleet.submit(&format!("name: low-{n}\npriority: low")).await;
    }
    let held = taken(&fleet).await;
    assert_eq!(held.len(), 3);
    fleet.submit("name: urgent-1\npriority: critical").await;
    fleet.submit("name: urgent-2\npriority: critical").await;
    for _ in 0..3 {
        dispatch(&fleet).await;
    }
    assert_eq!(asked(&fleet).await, 2);
    // One that is not needed any more leaves its seat to whoever comes.
    let mut victims = Vec::new();
    for job in &held {
        victims.extend(evict(&fleet, job.id).await.and_then(|evict| evict.for_job));
    }
    let cancel = giga_domain::OperatorAction::Cancel;
    fleet.coordinator.operate(victims[0], cancel, None, None, crate::common::operator()).await.unwrap();
    fleet.submit("name: urgent-3\npriority: critical").await;
    dispatch(&fleet).await;
    assert_eq!(asked(&fleet).await, 2, "the seat that is coming free is enough");
}

#[tokio::test]
async fn a_holder_that_does_not_let_go_loses_the_job_at_the_deadline() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let low = fleet.submit("name: low\npriority: low").await;
    let held = taken(&fleet).await.remove(0);
    // From its next renewal on, which comes after a third of a lease.
    fleet.set_flag("eviction_grace_ms", 4_000).await;
    fleet.set_flag("lease_ms", 3_000).await;
    let urgent = fleet.submit("name: urgent\npriority: critical").await;
    dispatch(&fleet).await;
    fleet.clock.advance(Duration::from_secs(4));
    fleet.coordinator.reap_once().await.unwrap();
    assert_eq!(fleet.job(low.id).await.stage(), Stage::Assigned, "it still has a second");
    fleet.clock.advance(Duration::from_secs(1));
    fleet.coordinator.reap_once().await.unwrap();
    let back = fleet.job(low.id).await;
    assert_eq!((back.stage(), back.attempts, back.evictions), (Stage::Queued, 0, 1));
    let late = fleet.hold(&held, vec![HolderAction::Release { checkpoint: None }]).await;
    assert!(late.is_err(), "its epoch is over");
    fleet.reached_by(&f1, Delivery::Stream, 1).await;
    assert_eq!(taken(&fleet).await.remove(0).id, urgent.id);
    let mut text = String::new();
    let mut registry = prometheus_client::registry::Registry::default();
    fleet.coordinator.metrics().register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in ["evictions_asked_total 1", "evictions_forced_total 1"] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[tokio::test]
async fn while_it_is_off_nobody_is_asked_and_explain_names_the_flag() {
    let fleet = led_by_hand().await;
    fleet.set_flag("preemption", false).await;
    fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let low = fleet.submit("name: low\npriority: low").await;
    taken(&fleet).await;
    let urgent = fleet.submit("name: urgent\npriority: critical").await;
    dispatch(&fleet).await;
    assert_eq!(evict(&fleet, low.id).await, None);
    let (_, explanation) = fleet.coordinator.explain(urgent.id).await.unwrap();
    let remedy = &explanation.remedies[0];
    assert_eq!(remedy.command.as_deref(), Some("giga flags set preemption true"));
    assert!(remedy.message.contains(&low.id.to_string()), "{}", remedy.message);
}

#[tokio::test]
async fn an_old_leader_asks_nobody() {
    let fleet = led_by_hand().await;
    fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let low = fleet.submit("name: low\npriority: low").await;
    taken(&fleet).await;
    let heir = fleet.another_by_hand().await;
    // The store has moved on while this node's own clock, and with it its belief, stands still.
    let term = fleet.coordinator.dispatch().leading().unwrap();
    fleet.coordinator.dispatch().step_down_once().await.unwrap();
    assert!(heir.dispatch().lead_once().await.unwrap().is_some());
    let refused = fleet
        .store
        .evict(EvictJobs {
            term: Some(term),
            asked: vec![NewEviction { job: low.id, rev: fleet.job(low.id).await.rev, for_job: None }],
            grace: GRACE,
            actor: crate::common::operator(),
        })
        .await;
    assert!(matches!(refused, Err(giga_ports::StoreError::StaleTerm { .. })), "{refused:?}");
    assert_eq!(evict(&fleet, low.id).await, None);
}

/// Without the word down the stream it would be told with its next renewal, a third of a lease later.
#[tokio::test]
async fn a_holder_with_a_stream_is_called_at_once() {
    let fleet = Fleet::start().await;
    fleet.until_it_leads().await;
    fleet.set_flag("preemption", true).await;
    let f1: FactoryId = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1).unwrap();
    let low = fleet.submit("name: low\npriority: low").await;
    let Some(StreamEvent::Grant(grant)) = tokio::time::timeout(LONG, stream.next()).await.unwrap() else {
        panic!("no grant")
    };
    let held = grant.job().clone();
    assert_eq!(held.id, low.id);
    grant.delivered();
    let urgent = fleet.submit("name: urgent\npriority: critical").await;
    let word = tokio::time::timeout(LONG, stream.next()).await.unwrap();
    assert!(matches!(word, Some(StreamEvent::News)), "{word:?}");
    assert_eq!(directives(&fleet, &held).await, [Directive::Preempt]);
    let_go(&fleet, &held).await;
    let Some(StreamEvent::Grant(grant)) = tokio::time::timeout(LONG, stream.next()).await.unwrap() else {
        panic!("no grant")
    };
    assert_eq!(grant.job().id, urgent.id);
    grant.delivered();
    fleet.coordinator.stop().await;
}
