//! Who may dispatch: one at a time, by term, and nobody whose term is over.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Actor, EventKind, Leadership, NodeId, Term};
use giga_ports::store::{MakeOffers, NewOffer, StepDown, TakeLead};
use giga_ports::{Store, StoreError};
use tokio::task::JoinSet;

use super::World;
use super::world::factory;

pub(super) const TERM_LASTS: Duration = Duration::from_secs(10);
const PICKUP: Duration = Duration::from_secs(5);

pub(super) fn node(name: &str) -> NodeId {
    name.parse().unwrap()
}

pub(super) async fn lead(world: &World, name: &str) -> Leadership {
    world.store.lead(TakeLead { node: node(name), lease: TERM_LASTS }).await.unwrap()
}

async fn leader(world: &World) -> Option<Leadership> {
    world.store.read().leader().await.unwrap()
}

pub async fn the_first_to_ask_leads(world: &World) {
    assert_eq!(leader(world).await, None);
    let first = lead(world, "one").await;
    let expected = Leadership { node: node("one"), term: Term(1), expires_at: world.now().plus(TERM_LASTS) };
    assert_eq!((&first, leader(world).await.as_ref()), (&expected, Some(&expected)));
    let reported = world.feed().await.pop().unwrap();
    assert_eq!((reported.kind, reported.job, reported.product), (EventKind::LeaderChanged, None, None));
    assert_eq!(reported.actor, Actor::system("dispatcher"));
    assert_eq!((reported.data["nodeId"].as_str(), reported.data["term"].as_u64()), (Some("one"), Some(1)));
}

pub async fn one_of_many_racing_nodes_leads(world: &World) {
    let handles = world.handles().await;
    for round in 1..=5 {
        let mut racing = JoinSet::new();
        for number in 0..16 {
            let store = handles[number % handles.len()].clone();
            racing.spawn(async move {
                store
                    .lead(TakeLead { node: node(&format!("node-{round}-{number}")), lease: TERM_LASTS })
                    .await
                    .unwrap()
            });
        }
        let answers = racing.join_all().await;
        let current = leader(world).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == current), "{answers:?}");
        assert_eq!(current.term, Term(round));
        world.advance(TERM_LASTS);
    }
    assert_eq!(world.feed().await.len(), 5, "one change of leader per round");
}

pub async fn a_renewal_keeps_the_term_and_appends_nothing(world: &World) {
    let first = lead(world, "one").await;
    let head = world.feed().await.len();
    world.advance(TERM_LASTS.saturating_sub(Duration::from_millis(1)));
    let renewed = lead(world, "one").await;
    assert_eq!(renewed, Leadership { expires_at: world.now().plus(TERM_LASTS), ..first });
    assert_eq!(leader(world).await, Some(renewed.clone()));
    // The same call again, as after a lost reply; and one that would take time away.
    assert_eq!(lead(world, "one").await, renewed);
    let shorter =
        world.store.lead(TakeLead { node: node("one"), lease: Duration::from_secs(1) }).await.unwrap();
    assert_eq!(shorter, renewed);
    assert_eq!(world.feed().await.len(), head);
}

pub async fn whoever_waits_is_told_who_leads_and_writes_nothing(world: &World) {
    let first = lead(world, "one").await;
    let before = (world.store.stats(), world.feed().await);
    world.advance(TERM_LASTS.saturating_sub(Duration::from_millis(1)));
    assert_eq!(lead(world, "two").await, first);
    assert_eq!(leader(world).await, Some(first));
    assert_eq!((world.store.stats(), world.feed().await), before);
}

pub async fn another_takes_over_exactly_when_the_term_ends(world: &World) {
    lead(world, "one").await;
    world.advance(TERM_LASTS);
    let second = lead(world, "two").await;
    assert_eq!((second.node.as_str(), second.term), ("two", Term(2)));
    assert_eq!(lead(world, "one").await, second, "the first one waits now");
    assert_eq!(world.feed().await.len(), 2);
}

pub async fn a_leader_that_was_away_gets_a_new_term(world: &World) {
    lead(world, "one").await;
    world.advance(TERM_LASTS);
    let again = lead(world, "one").await;
    assert_eq!((again.node.as_str(), again.term), ("one", Term(2)));
    assert_eq!(world.feed().await.len(), 2);
}

pub async fn stepping_down_frees_the_lead(world: &World) {
    let first = lead(world, "one").await;
    let head = world.feed().await.len();
    world.store.step_down(StepDown { node: node("one"), term: first.term }).await.unwrap();
    assert_eq!(leader(world).await, Some(Leadership { expires_at: world.now(), ..first.clone() }));
    assert_eq!(world.feed().await.len(), head);
    let second = lead(world, "two").await;
    assert_eq!((second.node.as_str(), second.term), ("two", Term(2)));
    // Too late, by another, or for another term: the lead stays where it is.
    world.store.step_down(StepDown { node: node("one"), term: first.term }).await.unwrap();
    world.store.step_down(StepDown { node: node("one"), term: second.term }).await.unwrap();
    world.store.step_down(StepDown { node: node("two"), term: first.term }).await.unwrap();
    assert_eq!(leader(world).await, Some(second.clone()));
    // An end that has come is not moved to a later time.
    world.advance(TERM_LASTS * 2);
    world.store.step_down(StepDown { node: node("two"), term: second.term }).await.unwrap();
    assert_eq!(leader(world).await, Some(second));
}

fn given_and_current(refused: Result<Vec<Option<giga_domain::Offer>>, StoreError>) -> (Term, Term) {
    match refused {
        Err(StoreError::StaleTerm { given, current }) => (given, current),
        other => panic!("a term that is over should be refused: {other:?}"),
    }
}

/// Offers a fresh job under the term; nothing of it may stay.
async fn refused(world: &World, term: Term) -> (Term, Term) {
    let job = world.submitted(|_| ()).await;
    let before = world.snapshot(job.id).await;
    let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: factory("mac-1") }];
    let answer = world.store.offer(MakeOffers { term, chosen, pickup: PICKUP }).await;
    assert_eq!(world.snapshot(job.id).await, before);
    assert_eq!(world.store.read().unsent_offers(10).await.unwrap(), []);
    given_and_current(answer)
}

pub async fn an_old_leader_that_wakes_up_is_refused(world: &World) {
    let old = lead(world, "one").await;
    world.advance(TERM_LASTS);
    let new = lead(world, "two").await;
    assert_eq!(refused(world, old.term).await, (old.term, new.term));
    // Also when it leads again by now and only the plan is old.
    world.advance(TERM_LASTS);
    let again = lead(world, "one").await;
    assert_eq!(refused(world, old.term).await, (old.term, again.term));
}

pub async fn a_term_that_ended_is_refused_without_a_successor(world: &World) {
    let leader = lead(world, "one").await;
    world.advance(TERM_LASTS);
    assert_eq!(refused(world, leader.term).await, (leader.term, leader.term));
    let next = lead(world, "one").await;
    world.store.step_down(StepDown { node: node("one"), term: next.term }).await.unwrap();
    assert_eq!(refused(world, next.term).await, (next.term, next.term));
}

pub async fn a_term_that_nobody_was_given_is_refused(world: &World) {
    assert_eq!(refused(world, Term(0)).await, (Term(0), Term(0)));
    let leader = lead(world, "one").await;
    assert_eq!(refused(world, leader.term.next()).await, (leader.term.next(), leader.term));
}

/// The old leader offers while it steps down and another takes over. An offer is made before the change or not at all.
pub async fn offers_and_a_handover_take_turns(world: &World) {
    let handles = world.handles().await;
    let store = |number: usize| -> Arc<dyn Store> { handles[number % handles.len()].clone() };
    for round in 0..20 {
        let old = lead(world, &format!("old-{round}")).await;
        let job = world.submitted(|_| ()).await;
        let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: factory("mac-1") }];
        let (offering, taking) = (store(round), store(round + 1));
        let (term, giving) = (old.term, store(round + 1));
        let offering =
            tokio::spawn(async move { offering.offer(MakeOffers { term, chosen, pickup: PICKUP }).await });
        let taking = tokio::spawn(async move {
            giving.step_down(StepDown { node: node(&format!("old-{round}")), term }).await.unwrap();
            taking.lead(TakeLead { node: node(&format!("new-{round}")), lease: TERM_LASTS }).await.unwrap()
        });
        let (offered, new) = (offering.await.unwrap(), taking.await.unwrap());
        assert_eq!(new.term, term.next());
        let feed = world.feed().await;
        let place = |wanted: EventKind| feed.iter().rposition(|event| event.kind == wanted);
        let targeted = feed.iter().position(|event| {
            event.kind == EventKind::Targeted && event.job.is_some_and(|(id, _)| id == job.id)
        });
        match offered {
            Ok(offers) => {
                assert!(offers[0].is_some());
                assert!(targeted.is_some() && targeted < place(EventKind::LeaderChanged), "offered too late");
            }
            refused => {
                assert_eq!(given_and_current(refused).0, term);
                assert_eq!((targeted, world.job(job.id).await), (None, job));
            }
        }
        world.advance(TERM_LASTS);
    }
}
