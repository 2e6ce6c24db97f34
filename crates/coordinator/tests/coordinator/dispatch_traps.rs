//! The five ways in which broker-backed dispatch has stranded jobs before, each by hand and one step at a time.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Fleet, factory_id};
use futures::FutureExt as _;
use giga_domain::{Delivery, DispatchSeq, FactoryId, HolderAction, Job, Offer, Stage};
use giga_ports::broker::{Delivered, Offers};
use giga_ports::store::{MakeOffers, NewOffer};
use giga_ports::{Broker, Clock as _, StoreError};
use giga_testkit::ManualClock;

const PICKUP: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_mins(1);
const LEASE: Duration = Duration::from_secs(20);

/// The offers that the broker has for the factory now; the embedded one has them at once.
fn delivered(offers: &mut Box<dyn Offers>) -> Vec<Delivered> {
    std::iter::from_fn(|| offers.next().now_or_never()).map(Result::unwrap).collect()
}

fn ids(delivered: &[Delivered]) -> Vec<String> {
    delivered.iter().map(|d| d.offer.message_id()).collect()
}

async fn led_by_hand() -> Fleet {
    let fleet = Fleet::by_hand().await;
    assert!(fleet.coordinator.dispatch().lead_once().await.unwrap().is_some());
    fleet
}

async fn dispatch(fleet: &Fleet) -> Vec<(String, FactoryId)> {
    let done = fleet.coordinator.dispatch().dispatch_once().await.unwrap();
    done.offered.iter().map(|offer| (offer.message_id(), offer.target_factory_id.clone())).collect()
}

/// What a leader does before it dies between the offer and its publication. The offer outlives its lease.
async fn offered_and_died(fleet: &Fleet, job: &Job, factory: &FactoryId) -> Offer {
    let term = fleet.coordinator.dispatch().leading().unwrap();
    let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: factory.clone() }];
    fleet.store.offer(MakeOffers { term, chosen, pickup: LEASE * 2 }).await.unwrap().remove(0).unwrap()
}

#[tokio::test]
async fn a_job_that_comes_back_inside_the_duplicate_window_is_delivered_again() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    let mut offers = fleet.broker.consume(&f1).await.unwrap();

    assert_eq!(dispatch(&fleet).await, [(format!("{}:1", job.id), f1.clone())]);
    let first = delivered(&mut offers);
    let held = fleet.coordinator.claims().take_offer(&f1, &first[0].offer).await.unwrap().unwrap();
    offers.ack(&first[0]).await.unwrap();
    fleet.hold(&held, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();

    assert_eq!(dispatch(&fleet).await, [(format!("{}:2", job.id), f1.clone())]);
    let second = delivered(&mut offers);
    assert_eq!(ids(&second), [format!("{}:2", job.id)], "the broker must not take it for the first one");
    assert!(fleet.coordinator.claims().take_offer(&f1, &second[0].offer).await.unwrap().is_some());
}

#[tokio::test]
async fn what_was_offered_but_never_published_is_published_by_the_next_leader() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    let lost = offered_and_died(&fleet, &job, &f1).await;

    let heir = fleet.another_by_hand().await;
    assert_eq!(heir.dispatch().lead_once().await.unwrap(), None, "the dead leader's lease still runs");
    assert_eq!(
        heir.dispatch().offers_once().await.unwrap(),
        0,
        "and without the lead unsent offers are not its affair"
    );
    fleet.clock.advance(LEASE);
    assert!(heir.dispatch().lead_once().await.unwrap().is_some());
    assert_eq!(heir.dispatch().offers_once().await.unwrap(), 1);
    assert_eq!(ids(&delivered(&mut offers)), [lost.message_id()]);
    assert_eq!(fleet.store.read().unsent_offers(9).await.unwrap(), []);
}

#[tokio::test]
async fn what_was_published_but_not_marked_goes_out_again_under_the_same_id_and_arrives_once() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    let sent = offered_and_died(&fleet, &job, &f1).await;
    fleet.broker.publish(std::slice::from_ref(&sent)).await.unwrap();

    fleet.clock.advance(LEASE);
    let heir = fleet.another_by_hand().await;
    heir.dispatch().lead_once().await.unwrap();
    assert_eq!(heir.dispatch().offers_once().await.unwrap(), 1, "it cannot know that the broker has it");
    assert_eq!(ids(&delivered(&mut offers)), [sent.message_id()], "the broker tells the repetition");
    assert_eq!(fleet.store.read().unsent_offers(9).await.unwrap(), []);
}

#[tokio::test]
async fn an_offer_that_no_longer_stands_is_dropped_unpublished() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    let offer = offered_and_died(&fleet, &job, &f1).await;
    // Found in the view by the stream's coordinator, without the broker.
    fleet.coordinator.claims().take_offer(&f1, &offer).await.unwrap().unwrap();

    assert_eq!(fleet.coordinator.dispatch().offers_once().await.unwrap(), 0);
    assert_eq!(fleet.store.read().unsent_offers(9).await.unwrap(), []);
    assert_eq!(delivered(&mut offers), []);
}

#[tokio::test]
async fn a_factory_that_never_picks_up_loses_the_job_to_another() {
    let fleet = led_by_hand().await;
    let silent = fleet.factory_by(Delivery::Stream, "a-silent", 4).await;
    let job = fleet.submit("name: one").await;
    assert_eq!(dispatch(&fleet).await, [(format!("{}:1", job.id), silent.clone())]);
    let other = fleet.factory_by(Delivery::Stream, "b-other", 4).await;
    assert_eq!(dispatch(&fleet).await, [], "it is on offer");

    fleet.clock.advance(Duration::from_millis(9_999));
    assert_eq!(dispatch(&fleet).await, [], "to the last moment");
    fleet.clock.advance(Duration::from_millis(1));
    assert_eq!(dispatch(&fleet).await, [(format!("{}:2", job.id), other.clone())]);

    // The silent one wakes up with its old offer, and gets nothing by it.
    let mut late = fleet.broker.consume(&silent).await.unwrap();
    let stale = delivered(&mut late);
    assert_eq!(fleet.coordinator.claims().take_offer(&silent, &stale[0].offer).await.unwrap(), None);
    assert_eq!(fleet.job(job.id).await.stage(), Stage::Queued);
}

#[tokio::test]
async fn however_many_are_silent_the_one_that_listens_gets_the_job() {
    let fleet = led_by_hand().await;
    let mut factories = Vec::new();
    for n in 0..5 {
        factories.push(fleet.factory_by(Delivery::Stream, &format!("f{n}"), 4).await);
    }
    fleet.submit("name: one").await;
    let mut asked = Vec::new();
    for _ in &factories {
        for factory in &factories {
            fleet.reached_by(factory, Delivery::Stream, 4).await;
        }
        fleet.coordinator.dispatch().lead_once().await.unwrap();
        asked.extend(dispatch(&fleet).await.into_iter().map(|(_, factory)| factory));
        fleet.clock.advance(PICKUP);
    }
    asked.sort();
    assert_eq!(asked, factories, "each of them once");
}

#[tokio::test]
async fn a_store_whose_clock_differs_gets_each_job_offered_once_and_again_at_its_deadline() {
    for store_is_ahead in [false, true] {
        let clock = Arc::new(ManualClock::default());
        let (early, late) = (clock.now().minus(MINUTE), clock.now().plus(MINUTE));
        let other = Arc::new(ManualClock::at(if store_is_ahead { late } else { early }));
        let fleet = Fleet::by_hand_with(clock, other).await;
        fleet.coordinator.dispatch().lead_once().await.unwrap().unwrap();
        offered_once_and_again(&fleet).await;
    }
}

#[tokio::test]
async fn a_clock_that_went_wrong_is_noticed_with_the_next_renewal_of_the_lead() {
    for store_is_ahead in [false, true] {
        let clocks = (Arc::new(ManualClock::default()), Arc::new(ManualClock::default()));
        let fleet = Fleet::by_hand_with(clocks.0, clocks.1).await;
        fleet.coordinator.dispatch().lead_once().await.unwrap().unwrap();
        if store_is_ahead { &fleet.store_clock } else { &fleet.clock }.advance(MINUTE);
        fleet.coordinator.dispatch().lead_once().await.unwrap().unwrap();
        offered_once_and_again(&fleet).await;
    }
}

async fn offered_once_and_again(fleet: &Fleet) {
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    assert_eq!(dispatch(fleet).await, [(format!("{}:1", job.id), f1)]);
    let f2 = fleet.factory_by(Delivery::Stream, "f2", 1).await;
    for clock in [&fleet.clock, &fleet.store_clock] {
        clock.advance(Duration::from_millis(9_999));
    }
    assert_eq!(dispatch(fleet).await, [], "to the last moment");
    for clock in [&fleet.clock, &fleet.store_clock] {
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(dispatch(fleet).await, [(format!("{}:2", job.id), f2)]);
}

#[tokio::test]
async fn the_silent_factory_is_asked_again_only_after_a_while() {
    let fleet = led_by_hand().await;
    let only = fleet.factory_by(Delivery::Stream, "only", 4).await;
    let job = fleet.submit("name: one").await;
    dispatch(&fleet).await;
    fleet.clock.advance(PICKUP);
    fleet.reached_by(&only, Delivery::Stream, 4).await;
    fleet.coordinator.dispatch().lead_once().await.unwrap();
    assert_eq!(dispatch(&fleet).await, [], "left out for three times the span that it had");
    let (_, explained) = fleet.coordinator.explain(job.id).await.unwrap();
    assert!(explained.summary.contains("did not pick it up"), "{}", explained.summary);
    fleet.clock.advance(PICKUP * 3);
    fleet.reached_by(&only, Delivery::Stream, 4).await;
    fleet.coordinator.dispatch().lead_once().await.unwrap();
    assert_eq!(dispatch(&fleet).await, [(format!("{}:2", job.id), only)]);
}

/// Frozen, not dead: its stream stays open, and whatever goes down it loses an attempt.
#[tokio::test]
async fn a_factory_that_let_a_lease_end_is_offered_nothing_until_it_is_heard() {
    let fleet = led_by_hand().await;
    fleet.set_flag("lease_ms", 2_000).await;
    let frozen = fleet.factory_by(Delivery::Stream, "frozen", 1).await;
    let job = fleet.submit("name: one").await;
    let mut offers = fleet.broker.consume(&frozen).await.unwrap();
    dispatch(&fleet).await;
    let offer = delivered(&mut offers).remove(0).offer;
    fleet.coordinator.claims().take_offer(&frozen, &offer).await.unwrap().unwrap();

    fleet.clock.advance(Duration::from_secs(3));
    fleet.coordinator.reap_once().await.unwrap();
    assert_eq!(fleet.job(job.id).await.stage(), Stage::Queued);
    assert_eq!(dispatch(&fleet).await, [], "it would only lose another attempt there");
    fleet.clock.advance(Duration::from_millis(1));
    fleet.reached_by(&frozen, Delivery::Stream, 1).await;
    assert_eq!(dispatch(&fleet).await, [(format!("{}:2", job.id), frozen)]);
}

#[tokio::test]
async fn death_between_receipt_and_claim_is_made_good_by_the_next_consumer() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    dispatch(&fleet).await;
    let mut dies = fleet.broker.consume(&f1).await.unwrap();
    assert_eq!(delivered(&mut dies).len(), 1);
    drop(dies);

    let mut next = fleet.broker.consume(&f1).await.unwrap();
    let again = delivered(&mut next);
    assert_eq!((again.len(), again[0].attempt), (1, 2), "what was not acknowledged comes back");
    let held = fleet.coordinator.claims().take_offer(&f1, &again[0].offer).await.unwrap().unwrap();
    // And once more, because the acknowledgement was lost: the same grant, not another.
    let same = fleet.coordinator.claims().take_offer(&f1, &again[0].offer).await.unwrap().unwrap();
    assert_eq!((held.id, held.epoch), (same.id, same.epoch));
    assert_eq!(fleet.store.read().runs(job.id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn death_between_receipt_and_claim_is_made_good_by_the_deadline_where_the_broker_forgot() {
    let fleet = led_by_hand().await;
    fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    dispatch(&fleet).await;
    fleet.broker.wipe();
    let f2 = fleet.factory_by(Delivery::Stream, "f2", 1).await;
    fleet.clock.advance(PICKUP);
    assert_eq!(dispatch(&fleet).await, [(format!("{}:2", job.id), f2)]);
}

#[tokio::test]
async fn an_old_leader_that_wakes_up_offers_nothing() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    let old_term = fleet.coordinator.dispatch().leading().unwrap();
    let job = fleet.submit("name: one").await;

    fleet.clock.advance(LEASE);
    let heir = fleet.another_by_hand().await;
    let new_term = heir.dispatch().lead_once().await.unwrap().unwrap();
    assert!(new_term > old_term);
    assert_eq!(fleet.coordinator.dispatch().leading(), None, "by its own measure of time its lead is over");
    assert_eq!(dispatch(&fleet).await, []);

    // A clock that went wrong makes it believe otherwise; the store does not.
    let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: f1.clone() }];
    let refused = fleet.store.offer(MakeOffers { term: old_term, chosen, pickup: PICKUP }).await.unwrap_err();
    assert!(matches!(refused, StoreError::StaleTerm { .. }), "{refused}");
    assert_eq!(delivered(&mut offers), []);
    assert_eq!(fleet.job(job.id).await.dispatch_seq, DispatchSeq(0));
}

#[tokio::test]
async fn a_refused_term_ends_the_lead_at_once_and_publishes_nothing() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let mut offers = fleet.broker.consume(&f1).await.unwrap();
    let job = fleet.submit("name: one").await;
    let start = giga_ports::Clock::now(&*fleet.clock);
    // Another one takes over while this one sleeps, and this one's clock stands still meanwhile.
    fleet.clock.advance(LEASE);
    let heir = fleet.another_by_hand().await;
    heir.dispatch().lead_once().await.unwrap().unwrap();
    fleet.clock.set(start);
    assert!(fleet.coordinator.dispatch().leading().is_some(), "it believes that it leads");

    assert_eq!(dispatch(&fleet).await, []);
    assert_eq!(fleet.coordinator.dispatch().leading(), None);
    assert_eq!(delivered(&mut offers), []);
    assert_eq!(fleet.job(job.id).await.dispatch_seq, DispatchSeq(0));
}

#[tokio::test]
async fn a_step_down_needs_no_waiting_and_a_death_waits_for_the_lease() {
    let fleet = led_by_hand().await;
    let second = fleet.another_by_hand().await;
    let third = fleet.another_by_hand().await;
    assert_eq!(second.dispatch().lead_once().await.unwrap(), None);
    fleet.coordinator.dispatch().step_down_once().await.unwrap();
    assert_eq!(fleet.coordinator.dispatch().leading(), None);
    assert!(second.dispatch().lead_once().await.unwrap().is_some(), "at once");

    fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    drop(second);
    assert_eq!(third.dispatch().lead_once().await.unwrap(), None);
    fleet.clock.advance(LEASE);
    assert!(third.dispatch().lead_once().await.unwrap().is_some());
    let offered = third.dispatch().dispatch_once().await.unwrap().offered;
    assert_eq!(offered.iter().map(|o| o.job_id).collect::<Vec<_>>(), [job.id]);
}

#[tokio::test]
async fn a_factory_whose_heartbeats_go_to_another_coordinator_counts_as_alive() {
    let fleet = Fleet::by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let leader = fleet.another_by_hand().await;
    fleet.clock.advance(MINUTE);
    leader.dispatch().lead_once().await.unwrap().unwrap();
    fleet.submit("name: one").await;
    assert_eq!(
        leader.dispatch().dispatch_once().await.unwrap().offered,
        [],
        "nobody has heard of it for a minute"
    );

    fleet.reached_by(&f1, Delivery::Stream, 1).await;
    fleet.coordinator.presence_once().await.unwrap();
    fleet.clock.advance(Duration::from_secs(10));
    assert_eq!(leader.dispatch().dispatch_once().await.unwrap().offered.len(), 1);
}

#[tokio::test]
async fn nobody_is_called_silent_because_another_coordinator_hears_it() {
    let fleet = Fleet::by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let elsewhere = fleet.another_by_hand().await;
    for _ in 0..3 {
        fleet.clock.advance(MINUTE);
        fleet.reached_by(&f1, Delivery::Stream, 1).await;
        fleet.coordinator.presence_once().await.unwrap();
        let job = fleet.submit("name: one").await;
        assert_eq!(elsewhere.alerts().await.unwrap().iter().map(|a| a.kind).collect::<Vec<_>>(), []);
        assert_eq!(elsewhere.fleet_metrics().await.unwrap().factories_stale, 0);
        let (_, explained) = elsewhere.explain(job.id).await.unwrap();
        assert!(!explained.summary.contains("offline"), "{}", explained.summary);
    }
    fleet.clock.advance(MINUTE);
    assert_eq!(elsewhere.fleet_metrics().await.unwrap().factories_stale, 1, "nobody has heard it now");
}

#[tokio::test]
async fn seats_and_keys_on_offer_are_taken_already() {
    let fleet = led_by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 2).await;
    for n in 0..3 {
        fleet.submit(&format!("name: plain-{n}")).await;
    }
    assert_eq!(dispatch(&fleet).await.len(), 2, "two seats");
    assert_eq!(dispatch(&fleet).await, []);
    let f2 = fleet.factory_by(Delivery::Stream, "f2", 9).await;
    assert_eq!(dispatch(&fleet).await.len(), 1);
    for n in 0..2 {
        fleet.submit(&format!("name: keyed-{n}\nconcurrency: {{key: \"repo:hello\", limit: 1}}")).await;
    }
    let keyed = dispatch(&fleet).await;
    assert_eq!(keyed.len(), 1, "the key is as good as held");
    assert_eq!(keyed[0].1, f2);
    assert_ne!(f1, factory_id("f2"));
}
