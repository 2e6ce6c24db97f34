//! Many callers at once, on several threads and, where the store has processes, on two handles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use giga_domain::factory::FactoryScope;
use giga_domain::job::Concurrency;
use giga_domain::{
    Command, EventSeq, FactoryId, FeedPos, HolderAction, Job, JobId, OperatorAction, Refusal, RunReport,
    Stage,
};
use giga_ports::store::{Claim, Claimed, ExpireLeases, Hold, Lost, NewJob, Steer, Submit, Submitted};
use giga_ports::{Store, StoreError};
use tokio::task::JoinSet;

use super::World;
use super::world::{LEASE, granted, holder, product, request, user};

async fn queued(world: &World, count: usize) -> Vec<JobId> {
    let new: Vec<NewJob> = (0..count).map(|_| world.new_job(|_| ())).collect();
    let ids = new.iter().map(|new| new.id).collect();
    world.store.submit(Submit { jobs: new, actor: user() }).await.unwrap();
    ids
}

async fn fleet(world: &World, size: usize, seats: u32) -> Vec<FactoryId> {
    let mut factories = Vec::new();
    for number in 0..size {
        let name = format!("factory-{number}");
        factories.push(world.factory_with(&name, FactoryScope::default(), seats).await);
    }
    factories
}

fn claim(job: JobId, factory: &FactoryId, number: u64) -> Claim {
    let (factory, request) = (factory.clone(), request(number));
    Claim { job, rev: None, dispatch_seq: None, factory, request, lease: LEASE }
}

/// The stores by turns: `handles[number % handles]`.
fn by_turns(handles: &[Arc<dyn Store>], number: usize) -> Arc<dyn Store> {
    handles[number % handles.len()].clone()
}

pub async fn claimers_win_each_job_once(world: &World) {
    let (claimers, count) = (64, 1_000);
    let jobs = Arc::new(queued(world, count).await);
    let factories = fleet(world, claimers, 10_000).await;
    let handles = world.handles().await;
    let mut racing = JoinSet::new();
    for (number, factory) in factories.iter().cloned().enumerate() {
        let (store, jobs) = (by_turns(&handles, number), jobs.clone());
        racing.spawn(async move {
            // As a claimer does: look at what is queued, go for the first, take the next best when it is gone.
            // Four start at the same place, so that every job is raced for from the start.
            let mut won: Vec<Job> = Vec::new();
            let start = (number / 4) * (jobs.len() / 16);
            for (step, id) in jobs.iter().cycle().skip(start).take(jobs.len()).enumerate() {
                let seen = store.read().job(*id).await.unwrap().unwrap();
                if seen.stage() != Stage::Queued {
                    continue;
                }
                let wanted = claim(*id, &factory, (number * 10_000 + step) as u64);
                // An error here is one that a loser would have to understand.
                match store.claim(Claim { rev: Some(seen.rev), ..wanted }).await.unwrap() {
                    Claimed::Granted(job) => won.push(job),
                    Claimed::Lost(Lost::Gone(_)) => {}
                    Claimed::Lost(other) => panic!("lost for another reason than speed: {other:?}"),
                }
            }
            won
        });
    }
    let won: Vec<Job> = racing.join_all().await.into_iter().flatten().collect();
    let winners: BTreeMap<JobId, &Job> = won.iter().map(|job| (job.id, job)).collect();
    assert_eq!((won.len(), winners.len()), (count, count), "each job is granted exactly once");
    for id in jobs.iter() {
        let job = world.job(*id).await;
        assert_eq!(&job, winners[id]);
        assert_eq!((job.epoch.0, job.last_event), (1, EventSeq(2)));
        assert_eq!(world.store.read().runs(*id).await.unwrap().len(), 1);
    }
    assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Assigned).await), (0, count as u64));
}

/// Round after round on one job: exactly one wins each, and its epoch is above all before.
pub async fn one_claim_of_many_wins(world: &World) {
    let id = queued(world, 1).await[0];
    let factories = fleet(world, 16, 10).await;
    let handles = world.handles().await;
    let mut epoch = 0;
    for round in 0..10 {
        let mut racing = JoinSet::new();
        for (number, factory) in factories.iter().enumerate() {
            let wanted = claim(id, factory, (round * 100 + number) as u64);
            let store = by_turns(&handles, number);
            racing.spawn(async move { store.claim(wanted).await.unwrap() });
        }
        let answers = racing.join_all().await;
        let won: Vec<_> = answers.into_iter().filter(|a| matches!(a, Claimed::Granted(_))).collect();
        assert_eq!(won.len(), 1, "round {round}");
        let job = granted(won.into_iter().next().unwrap());
        assert!(job.epoch.0 > epoch);
        epoch = job.epoch.0;
        world.hold(id, &holder(&job), [HolderAction::Release { checkpoint: None }]).await.unwrap();
    }
}

pub async fn one_key_makes_one_job(world: &World) {
    let handles = world.handles().await;
    for round in 0..10 {
        let key = format!("ticket-{round}");
        let first = world.new_job(|spec| spec.idempotency_key = Some(key));
        let mut racing = JoinSet::new();
        for number in 0..16 {
            let new = NewJob { id: world.new_job(|_| ()).id, ..first.clone() };
            let store = by_turns(&handles, number);
            racing.spawn(async move {
                store.submit(Submit { jobs: vec![new], actor: user() }).await.unwrap().remove(0)
            });
        }
        let answers = racing.join_all().await;
        let made: BTreeSet<JobId> = answers.iter().map(|answer| answer.job().id).collect();
        assert_eq!(made.len(), 1, "round {round}");
        let created = answers.iter().filter(|answer| matches!(answer, Submitted::Created(_))).count();
        assert_eq!(created, 1, "round {round}");
    }
    assert_eq!(world.count(Stage::Queued).await, 10);
}

pub async fn concurrency_keys_hold(world: &World) {
    let limit = 3;
    let mut ids = Vec::new();
    for _ in 0..40 {
        let concurrency = Some(Concurrency { key: "repo:hello".to_owned(), limit });
        ids.push(world.submitted(|spec| spec.concurrency = concurrency).await.id);
    }
    let factories = fleet(world, 8, 100).await;
    let handles = world.handles().await;
    let mut racing = JoinSet::new();
    for (number, id) in ids.into_iter().enumerate() {
        let wanted = claim(id, &factories[number % factories.len()], number as u64);
        let store = by_turns(&handles, number);
        racing.spawn(async move { store.claim(wanted).await.unwrap() });
    }
    let answers = racing.join_all().await;
    let won = answers.iter().filter(|answer| matches!(answer, Claimed::Granted(_))).count();
    assert_eq!(won, limit as usize);
    let busy = answers.iter().filter(|answer| **answer == Claimed::Lost(Lost::KeyBusy)).count();
    assert_eq!(busy, 40 - won);
    assert_eq!(world.count(Stage::Assigned).await, u64::from(limit));
}

pub async fn seats_hold(world: &World) {
    let factory = fleet(world, 1, 5).await.remove(0);
    let ids = queued(world, 40).await;
    let handles = world.handles().await;
    let mut racing = JoinSet::new();
    for (number, id) in ids.into_iter().enumerate() {
        let wanted = claim(id, &factory, number as u64);
        let store = by_turns(&handles, number);
        racing.spawn(async move { store.claim(wanted).await.unwrap() });
    }
    let answers = racing.join_all().await;
    let won = answers.iter().filter(|answer| matches!(answer, Claimed::Granted(_))).count();
    assert_eq!(won, 5);
    assert_eq!(world.count(Stage::Assigned).await, 5);
}

/// One reader follows the feed from its cursor while eight writers commit.
pub async fn a_feed_reader_misses_nothing(world: &World) {
    let factories = fleet(world, 8, 1_000).await;
    let handles = world.handles().await;
    let reader = {
        let store = handles[handles.len() - 1].clone();
        let (done, mut finished) = tokio::sync::watch::channel(false);
        let task = tokio::spawn(async move {
            let (mut seen, mut after) = (Vec::new(), FeedPos::ZERO);
            loop {
                // Asked first: what is committed before the writers are known to be done must be seen now.
                let last_look = *finished.borrow_and_update();
                let page = store.read().feed(after, 7).await.unwrap();
                match page.last() {
                    Some(last) => after = last.pos,
                    None if last_look => return seen,
                    None => tokio::task::yield_now().await,
                }
                seen.extend(page);
            }
        });
        (task, done)
    };
    let mut writers = JoinSet::new();
    for (number, factory) in factories.into_iter().enumerate() {
        let store = by_turns(&handles, number);
        // A product each, so that writers meet nowhere but in the feed.
        let own = product(&format!("product-{number}"));
        let new = || NewJob { product: own.clone(), ..world.new_job(|_| ()) };
        let jobs: Vec<NewJob> = (0..40).map(|_| new()).collect();
        writers.spawn(async move {
            for (step, new) in jobs.into_iter().enumerate() {
                let id = new.id;
                store.submit(Submit { jobs: vec![new], actor: user() }).await.unwrap();
                let wanted = claim(id, &factory, (number * 1_000 + step) as u64);
                let job = granted(store.claim(wanted).await.unwrap());
                let actions = vec![HolderAction::Start, HolderAction::Report(RunReport::default())];
                store.hold(Hold { job: id, holder: holder(&job), actions }).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let (task, done) = reader;
    done.send_replace(true);
    let seen = task.await.unwrap();
    assert!(
        seen.is_sorted_by(|a, b| a.pos < b.pos),
        "positions rise strictly: none twice, none out of order"
    );
    assert_eq!(seen, world.feed().await, "what the reader saw is all there is");
    let mut last: BTreeMap<JobId, u64> = BTreeMap::new();
    for (id, seq) in seen.iter().filter_map(|event| event.job) {
        let before = last.insert(id, seq.0).unwrap_or(0);
        assert_eq!(seq.0, before + 1, "{id}: seq runs without gaps in feed order");
    }
    assert_eq!((last.len(), last.values().all(|seq| *seq == 4)), (8 * 40, true));
}

pub async fn cancel_against_renew_and_report(world: &World) {
    let mac = world.factory("mac-1").await;
    let handles = world.handles().await;
    for round in 0..30_usize {
        let (job, holder) = world.building(&mac, |_| ()).await;
        let write = |action| Hold { job: job.id, holder: holder.clone(), actions: vec![action] };
        let command = Command::Operator { action: OperatorAction::Cancel, reason: None };
        let cancel = Steer {
            job: job.id,
            request: super::steer_request(),
            command,
            if_rev: Some(job.rev),
            actor: user(),
        };
        let renewal = write(HolderAction::Renew { lease: LEASE * 2 });
        let report = write(HolderAction::Report(RunReport::default()));
        let (one, two) = (by_turns(&handles, round), by_turns(&handles, round + 1));
        let (cancelled, renewed, reported) = tokio::join!(
            tokio::spawn(async move { one.steer(cancel).await }),
            {
                let store = two.clone();
                tokio::spawn(async move { store.hold(renewal).await })
            },
            tokio::spawn(async move { two.hold(report).await })
        );
        let (cancelled, renewed, reported) = (cancelled.unwrap(), renewed.unwrap(), reported.unwrap());
        let after = world.job(job.id).await;
        match (cancelled, reported) {
            (Ok(_), Err(StoreError::Refused(Refusal::Fenced { .. }))) => {
                assert_eq!(after.stage(), Stage::Cancelled);
                renewed.expect("before the cancel it prolongs, after it it is told");
            }
            (Err(StoreError::RevMismatch { .. }), Ok(_)) => {
                assert_eq!(after.stage(), Stage::Testing);
                if let Err(error) = renewed {
                    assert!(matches!(error, StoreError::Refused(Refusal::Fenced { .. })), "{error:?}");
                }
            }
            both => panic!("round {round}: exactly one of cancel and report wins, not {both:?}"),
        }
        assert_eq!((after.last_event, after.rev.0), (EventSeq(4), 4), "exactly one of them counted");
    }
}

pub async fn expiry_against_renewal(world: &World) {
    let mac = world.factory("mac-1").await;
    let handles = world.handles().await;
    for round in 0..30_usize {
        let (job, holder) = world.building(&mac, |_| ()).await;
        world.advance(LEASE);
        let actions = vec![HolderAction::Renew { lease: LEASE }];
        let renewal = Hold { job: job.id, holder: holder.clone(), actions };
        let (one, two) = (by_turns(&handles, round), by_turns(&handles, round + 1));
        let (reaped, renewed) = tokio::join!(
            tokio::spawn(async move { one.expire_leases(ExpireLeases { limit: 10 }).await.unwrap() }),
            tokio::spawn(async move { two.hold(renewal).await })
        );
        let (reaped, renewed) = (reaped.unwrap(), renewed.unwrap());
        let after = world.job(job.id).await;
        match renewed {
            Ok(_) => {
                assert_eq!(reaped.jobs, [], "round {round}: a renewed lease is not reaped");
                assert_eq!((after.stage(), after.epoch), (Stage::Building, job.epoch));
                world.operate(job.id, OperatorAction::Cancel).await.unwrap();
            }
            Err(StoreError::Refused(Refusal::Fenced { .. })) => {
                assert_eq!(reaped.jobs, [job.id], "round {round}");
                assert_eq!((after.stage(), after.epoch), (Stage::Queued, job.epoch.next()));
            }
            Err(error) => panic!("round {round}: {error:?}"),
        }
    }
}
