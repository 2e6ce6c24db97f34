//! Offers: a target, its number and its row together or not at all, and what a claim makes of them.

use std::time::Duration;

use giga_domain::{
    Actor, CapabilitySet, DispatchSeq, EventKind, FactoryId, HolderAction, Job, JobId, NewEvent, Offer,
    OperatorAction, RunReport, Stage, Target, Term, limits,
};
use giga_ports::store::{
    Claim, Claimed, Divergence, Lost, MakeOffers, NewOffer, Note, RecordDivergences, Sent, Waiting,
};

use super::World;
use super::leading::lead;
use super::world::{factory, granted, user};

const PICKUP: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(1);

fn placed(job: &Job, name: &str) -> NewOffer {
    NewOffer { job: job.id, rev: job.rev, factory: factory(name) }
}

async fn offer(world: &World, term: Term, chosen: Vec<NewOffer>) -> Vec<Option<Offer>> {
    world.store.offer(MakeOffers { term, chosen, pickup: PICKUP }).await.unwrap()
}

async fn offered(world: &World, job: &Job, name: &str) -> Offer {
    let term = lead(world, "node").await.term;
    offer(world, term, vec![placed(job, name)]).await.remove(0).expect("the job can be offered")
}

async fn unsent(world: &World) -> Vec<Waiting> {
    world.store.read().unsent_offers(1_000).await.unwrap()
}

async fn waiting(world: &World) -> Vec<(JobId, DispatchSeq)> {
    unsent(world).await.into_iter().map(|w| (w.offer.job_id, w.offer.dispatch_seq)).collect()
}

pub async fn an_offer_sets_the_target_and_keeps_the_offer(world: &World) {
    let job = world
        .submitted(|spec| {
            spec.repo = Some("hello".to_owned());
            spec.capabilities = CapabilitySet::parse(["os:linux"]).unwrap();
        })
        .await;
    let made = offered(world, &job, "mac-1").await;
    let expected = Offer {
        job_id: job.id,
        dispatch_seq: job.dispatch_seq.next(),
        product_id: job.product.clone(),
        repo: job.spec.repo.clone(),
        caps: job.spec.capabilities.clone(),
        priority: job.spec.priority,
        target_factory_id: factory("mac-1"),
    };
    assert_eq!(made, expected);
    let after = world.job(job.id).await;
    let target = Target::new(factory("mac-1"), world.now().plus(PICKUP));
    assert_eq!((after.target(), after.dispatch_seq), (Some(&target), made.dispatch_seq));
    assert_eq!((after.rev, world.count(Stage::Queued).await), (job.rev.next(), 1));
    let reported = world.events(job.id).await.pop().unwrap();
    assert_eq!((reported.kind, reported.actor), (EventKind::Targeted, Actor::system("dispatcher")));
    // Another process finds it too.
    for store in world.handles().await {
        let found = store.read().unsent_offers(10).await.unwrap();
        assert_eq!(found, [Waiting { offer: made.clone(), since: world.now() }]);
    }
}

pub async fn each_offer_of_a_call_stands_for_itself(world: &World) {
    let mac = world.factory("mac-1").await;
    let term = lead(world, "node").await.term;
    let fresh = world.submitted(|_| ()).await;
    let changed = world.submitted(|_| ()).await;
    offered(world, &changed, "linux-1").await;
    let claimed = world.submitted(|_| ()).await;
    world.granted(claimed.id, &mac).await;
    let cancelled = world.in_stage(Stage::Cancelled, &mac).await;
    let blocked = world.in_stage(Stage::Blocked, &mac).await;
    let unknown = Job { id: JobId::MAX, ..fresh.clone() };
    let before = [
        world.snapshot(changed.id).await.job,
        world.snapshot(claimed.id).await.job,
        world.snapshot(cancelled.id).await.job,
    ];
    let refused = [&changed, &claimed, &cancelled, &blocked, &unknown];
    let mut chosen: Vec<_> = refused.iter().map(|job| placed(job, "mac-1")).collect();
    chosen.push(placed(&fresh, "mac-1"));
    let answers = offer(world, term, chosen).await;
    assert_eq!(
        answers.iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, false, false, false, false, true]
    );
    assert_eq!(answers[5].as_ref().unwrap().job_id, fresh.id);
    let after = [
        world.snapshot(changed.id).await.job,
        world.snapshot(claimed.id).await.job,
        world.snapshot(cancelled.id).await.job,
    ];
    assert_eq!(after, before);
    let mut expected = vec![(fresh.id, DispatchSeq(1)), (changed.id, DispatchSeq(1))];
    expected.sort_unstable();
    assert_eq!(waiting(world).await, expected);
}

pub async fn a_repeated_call_gets_the_same_offers(world: &World) {
    let term = lead(world, "node").await.term;
    let (one, two) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    let chosen = vec![placed(&one, "mac-1"), placed(&two, "mac-2")];
    let first = offer(world, term, chosen.clone()).await;
    let before = (world.snapshot(one.id).await, unsent(world).await);
    world.advance(Duration::from_secs(1));
    assert_eq!(offer(world, term, chosen.clone()).await, first);
    assert_eq!((world.snapshot(one.id).await, unsent(world).await), before);
    // The broker has one of them by now: it is not sent again.
    world.store.sent(Sent { offers: vec![(one.id, DispatchSeq(1))] }).await.unwrap();
    assert_eq!(offer(world, term, chosen).await, first);
    assert_eq!(waiting(world).await, [(two.id, DispatchSeq(1))]);
    // For another factory it is another plan, made from what is no longer so.
    let other = vec![placed(&one, "mac-3")];
    assert_eq!(offer(world, term, other).await, [None]);
}

pub async fn a_newer_offer_replaces_the_older_one(world: &World) {
    let job = world.submitted(|_| ()).await;
    offered(world, &job, "mac-1").await;
    world.advance(PICKUP);
    let again = offered(world, &world.job(job.id).await, "mac-2").await;
    assert_eq!(again.dispatch_seq, DispatchSeq(2));
    assert_eq!(unsent(world).await, [Waiting { offer: again.clone(), since: world.now() }]);
    assert_eq!(world.job(job.id).await.target().unwrap().factory, factory("mac-2"));
    // That the broker has the older one says nothing of the newer.
    world.store.sent(Sent { offers: vec![(job.id, DispatchSeq(1))] }).await.unwrap();
    assert_eq!(waiting(world).await, [(job.id, again.dispatch_seq)]);
}

pub async fn what_was_sent_is_forgotten_silently(world: &World) {
    let (one, two) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    offered(world, &one, "mac-1").await;
    offered(world, &two, "mac-1").await;
    let before = world.snapshot(one.id).await;
    for _ in 0..2 {
        let gone = vec![(one.id, DispatchSeq(1)), (one.id, DispatchSeq(9)), (JobId::MAX, DispatchSeq(1))];
        world.store.sent(Sent { offers: gone }).await.unwrap();
        assert_eq!(waiting(world).await, [(two.id, DispatchSeq(1))]);
    }
    world.store.sent(Sent { offers: Vec::new() }).await.unwrap();
    assert_eq!(world.snapshot(one.id).await, before);
}

pub async fn unsent_offers_are_oldest_first(world: &World) {
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(world.submitted(|_| ()).await);
    }
    // Not in the order of ids.
    for place in [2, 0, 3, 1] {
        offered(world, &jobs[place], "mac-1").await;
        world.advance(Duration::from_secs(1));
    }
    let ids = |waiting: Vec<Waiting>| waiting.iter().map(|w| w.offer.job_id).collect::<Vec<_>>();
    assert_eq!(ids(unsent(world).await), [2, 0, 3, 1].map(|place: usize| jobs[place].id));
    let first = world.store.read().unsent_offers(2).await.unwrap();
    assert_eq!(ids(first), [jobs[2].id, jobs[0].id]);
}

async fn accept(world: &World, job: &Job, seq: DispatchSeq, by: &FactoryId) -> Claimed {
    let claim = Claim { dispatch_seq: Some(seq), ..world.claim_of(job.id, by) };
    world.store.claim(claim).await.unwrap()
}

pub async fn only_the_target_may_claim_until_the_pickup_deadline(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (one, two) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    offered(world, &one, "mac-1").await;
    let offer = offered(world, &two, "mac-1").await;
    world.advance(PICKUP.saturating_sub(MOMENT));
    let early = world.claim(one.id, &linux).await;
    assert!(matches!(early, Claimed::Lost(Lost::Gone(_))), "{early:?}");
    assert_eq!(granted(accept(world, &two, offer.dispatch_seq, &mac).await).id, two.id);
    world.advance(MOMENT);
    assert_eq!(world.granted(one.id, &linux).await.lease().unwrap().factory, linux);
}

pub async fn an_accept_of_an_older_offer_is_refused(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|_| ()).await;
    let old = offered(world, &job, "mac-1").await;
    world.advance(PICKUP);
    let new = offered(world, &world.job(job.id).await, "mac-1").await;
    let before = world.snapshot(job.id).await;
    let late = accept(world, &job, old.dispatch_seq, &mac).await;
    assert!(matches!(late, Claimed::Lost(Lost::Gone(_))), "{late:?}");
    assert_eq!(world.snapshot(job.id).await, before);
    let held = granted(accept(world, &job, new.dispatch_seq, &mac).await);
    assert_eq!((held.stage(), held.target()), (Stage::Assigned, None));
}

/// One offers, others accept, tell that offers were sent: nobody waits for another in a circle, so
/// no transaction has to be run twice.
pub async fn offers_accepts_and_sends_at_once(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let term = lead(world, "node").await.term;
    let mut jobs = Vec::new();
    for _ in 0..120 {
        jobs.push(world.submitted(|_| ()).await);
    }
    let handles = world.handles().await;
    let (near, far) = (handles[0].clone(), handles[handles.len() - 1].clone());
    let (tell, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let names = ["mac-1", "linux-1"];
    let plans: Vec<Vec<NewOffer>> = jobs
        .chunks(10)
        .map(|some| some.iter().enumerate().map(|(n, job)| placed(job, names[n % 2])).collect())
        .collect();
    let offering = tokio::spawn(async move {
        for chosen in plans {
            let offers = near.offer(MakeOffers { term, chosen, pickup: PICKUP }).await.unwrap();
            for offer in offers {
                tell.send(offer.expect("nobody else wants it")).unwrap();
            }
        }
    });
    let mut number = 0;
    let mut sends = tokio::task::JoinSet::new();
    while let Some(offer) = reported.recv().await {
        let by = if offer.target_factory_id == mac { &mac } else { &linux };
        let claim = Claim { dispatch_seq: Some(offer.dispatch_seq), ..world.claim_of(offer.job_id, by) };
        // From both sides, and each in an order of its own.
        for (store, backwards) in [(far.clone(), false), (handles[0].clone(), true)] {
            sends.spawn(async move {
                let mut sent: Vec<_> = store.read().unsent_offers(50).await.unwrap();
                if backwards {
                    sent.reverse();
                }
                store
                    .sent(Sent {
                        offers: sent.iter().map(|w| (w.offer.job_id, w.offer.dispatch_seq)).collect(),
                    })
                    .await
            });
        }
        let held = granted(handles[number % handles.len()].claim(claim).await.unwrap());
        assert_eq!(held.lease().unwrap().factory, offer.target_factory_id);
        number += 1;
    }
    offering.await.unwrap();
    assert!(sends.join_all().await.iter().all(Result::is_ok));
    assert_eq!((number, world.count(Stage::Assigned).await), (120, 120));
    let left = waiting(world).await;
    world.store.sent(Sent { offers: left }).await.unwrap();
    assert_eq!(unsent(world).await, []);
    for store in handles {
        assert_eq!(store.stats().retries, 0);
    }
}

pub async fn too_many_capabilities_stay_out_of_the_offer(world: &World) {
    let long = |n: usize| format!("has:{n:02}{}", "x".repeat(90));
    let fit = CapabilitySet::parse((0..limits::CAPABILITIES / 2).map(long)).unwrap();
    let all = CapabilitySet::parse((0..limits::CAPABILITIES).map(long)).unwrap();
    let small = world.submitted(|spec| spec.capabilities = fit.clone()).await;
    let large = world.submitted(|spec| spec.capabilities = all).await;
    assert_eq!(offered(world, &small, "mac-1").await.caps, fit);
    let offer = offered(world, &large, "mac-1").await;
    assert!(offer.caps.is_empty());
    let waiting_offers = unsent(world).await;
    assert!(waiting_offers.iter().any(|waiting| waiting.offer == offer));
    for waiting in waiting_offers {
        assert!(serde_json::to_vec(&waiting.offer).unwrap().len() < limits::OFFER_BYTES);
    }
}

pub async fn offers_are_retired_with_their_job(world: &World) {
    let (gone, kept) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    offered(world, &gone, "mac-1").await;
    offered(world, &kept, "mac-1").await;
    world.operate(gone.id, OperatorAction::Cancel).await.unwrap();
    assert_eq!(waiting(world).await.len(), 2, "the broker may still be told; the claim is what refuses");
    world.advance(Duration::from_hours(1_000));
    assert_eq!(world.retire(world.now(), 10).await, 1);
    assert_eq!(waiting(world).await, [(kept.id, DispatchSeq(1))]);
}

pub async fn a_divergence_is_in_the_history_of_jobs_that_are_not_over(world: &World) {
    let mac = world.factory("mac-1").await;
    let (held, _) = world.building(&mac, |_| ()).await;
    let over = world.in_stage(Stage::Shipped, &mac).await;
    let before = world.snapshot(over.id).await;
    let diverged =
        |job| Divergence { job, routed_to: factory("linux-1"), claimed_by: factory("mac-1"), lag_ms: 250 };
    world
        .store
        .diverged(RecordDivergences { divergences: vec![diverged(over.id), diverged(JobId::MAX)] })
        .await
        .unwrap();
    assert_eq!(world.snapshot(over.id).await, before);
    world
        .store
        .diverged(RecordDivergences {
            divergences: vec![diverged(JobId::MAX), diverged(over.id), diverged(held.id)],
        })
        .await
        .unwrap();
    assert_eq!(world.job(over.id).await, over);
    let history = world.events(held.id).await;
    let reported: Vec<_> = history.iter().filter(|event| event.kind == EventKind::Diverged).collect();
    assert_eq!(reported.len(), 1);
    assert_eq!((&reported[0].actor, reported[0].to), (&Actor::system("dispatcher"), None));
    let data = &reported[0].data;
    assert_eq!((data["routedTo"].as_str(), data["claimedBy"].as_str()), (Some("linux-1"), Some("mac-1")));
    assert_eq!(data["lagMs"].as_u64(), Some(250));
    // Its holder goes on as if nothing had been said.
    let after = world.job(held.id).await;
    assert_eq!((after.stage(), after.epoch, after.lease()), (held.stage(), held.epoch, held.lease()));
    let report = [HolderAction::Report(RunReport::default())];
    world.hold(held.id, &super::world::holder(&held), report).await.unwrap();
}

pub async fn a_note_is_an_event_of_the_fleet(world: &World) {
    let topic = "mail".parse().unwrap();
    let event = NewEvent::topic_paused(Some(&giga_domain::topic::TopicKey {
        product: "demo".parse().unwrap(),
        topic,
    }));
    world.store.note(Note { event, actor: user() }).await.unwrap();
    let feed = world.feed().await;
    let [reported] = &feed[..] else { panic!("one event: {feed:?}") };
    assert_eq!((reported.kind, &reported.actor, reported.at), (EventKind::TopicPaused, &user(), world.now()));
    assert_eq!(
        (&reported.product, reported.job, reported.cause.as_str()),
        (&None, None, "topic demo/mail paused")
    );
    assert_eq!(reported.data["topic"], "mail");
    assert_eq!(*world.store.head().borrow(), reported.pos);
}
