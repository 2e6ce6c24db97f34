//! A running job gives its seat up: asked, given time, and taken away where its holder does not let go.

use std::time::Duration;

use giga_domain::{
    EventKind, HolderAction, Job, JobId, NodeId, Refusal, Rev, RunOutcome, RunReport, Stage, Term,
};
use giga_ports::StoreError;
use giga_ports::store::{EvictJobs, ExpireLeases, Hold, NewEviction, TakeLead};
use tokio::task::JoinSet;

use super::World;
use super::world::{LEASE, fail, user};

const GRACE: Duration = Duration::from_secs(20);

fn ask(job: &Job) -> NewEviction {
    NewEviction { job: job.id, rev: job.rev, for_job: Some(JobId::MAX) }
}

impl World {
    async fn evict(&self, asked: Vec<NewEviction>) -> Vec<bool> {
        self.store.evict(EvictJobs { term: None, asked, grace: GRACE, actor: user() }).await.unwrap()
    }

    /// Whoever is asked to let go.
    async fn evicted(&self, job: &Job) -> Job {
        assert_eq!(self.evict(vec![ask(job)]).await, [true]);
        self.job(job.id).await
    }
}

fn release() -> HolderAction {
    HolderAction::Release { checkpoint: None }
}

pub async fn a_release_after_it_is_a_preemption(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let asked = world.evicted(&job).await;
    let evict = asked.lease().unwrap().evict.unwrap();
    assert_eq!((evict.for_job, evict.deadline), (Some(JobId::MAX), world.now().plus(GRACE)));
    assert_eq!((asked.stage(), asked.epoch, asked.rev), (Stage::Building, job.epoch, job.rev.next()));
    let event = world.events(job.id).await.pop().unwrap();
    assert_eq!((event.kind, event.actor), (EventKind::EvictionAsked, user()));

    world.advance(Duration::from_secs(3));
    let queued = world.hold(job.id, &holder, [release()]).await.unwrap();
    assert_eq!((queued.stage(), queued.attempts, queued.evictions), (Stage::Queued, 0, 1));
    assert!(queued.epoch > job.epoch);
    assert_eq!(world.job(job.id).await, queued);
    let run = world.store.read().runs(job.id).await.unwrap().pop().unwrap();
    assert_eq!((run.outcome, run.ended_at), (RunOutcome::Preempted, Some(world.now())));
    let error = world.hold(job.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refusal::Fenced { .. })), "{error:?}");
    let before = world.snapshot(job.id).await;
    assert_eq!(world.hold(job.id, &holder, [release()]).await.unwrap(), queued, "the final report, repeated");
    assert_eq!(world.snapshot(job.id).await, before);
    let again = world.granted(job.id, &mac).await;
    assert_eq!((again.evictions, again.lease().unwrap().evict), (1, None));
}

pub async fn only_what_was_seen_is_evicted(world: &World) {
    let mac = world.factory("mac-1").await;
    let mut asked = vec![NewEviction { job: JobId::MIN, rev: Rev(1), for_job: None }];
    for stage in Stage::ALL.into_iter().filter(|stage| !stage.is_held()) {
        asked.push(ask(&world.in_stage(stage, &mac).await));
    }
    let (held, _) = world.building(&mac, |_| ()).await;
    asked.extend([Rev(held.rev.0 - 1), held.rev.next()].map(|rev| NewEviction { rev, ..ask(&held) }));
    let before = world.snapshot(held.id).await;
    assert_eq!(world.evict(asked.clone()).await, vec![false; asked.len()]);
    assert_eq!(world.snapshot(held.id).await, before);
    // One that is to be had is asked among those that are not.
    asked.insert(4, ask(&held));
    let answers = world.evict(asked).await;
    assert_eq!(answers.iter().filter(|asked| **asked).count(), 1);
    assert!(answers[4]);
    let now = world.job(held.id).await;
    let other = NewEviction { for_job: None, ..ask(&now) };
    assert_eq!(world.evict(vec![other]).await, [false], "it is asked already");
    assert_eq!(world.job(held.id).await, now);
}

pub async fn a_repeated_eviction_is_answered(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = world.building(&mac, |_| ()).await;
    let asked = world.evicted(&job).await;
    let before = world.snapshot(job.id).await;
    world.advance(Duration::from_secs(1));
    assert_eq!(world.evict(vec![ask(&job)]).await, [true], "the very same call");
    assert_eq!(world.evict(vec![ask(&asked)]).await, [false], "another one");
    assert_eq!(world.snapshot(job.id).await, before, "its deadline included");
    // Two of one batch are one.
    let (other, _) = world.building(&mac, |_| ()).await;
    assert_eq!(world.evict(vec![ask(&other), ask(&other)]).await, [true, true]);
    assert_eq!(world.job(other.id).await.rev, other.rev.next());
}

pub async fn a_dispatcher_whose_term_is_over_asks_nobody(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = world.building(&mac, |_| ()).await;
    let node: NodeId = "node-1".parse().unwrap();
    let leader = world.store.lead(TakeLead { node, lease: LEASE }).await.unwrap();
    let before = world.snapshot(job.id).await;
    for term in [Term(leader.term.0 - 1), leader.term.next()] {
        let error = world
            .store
            .evict(EvictJobs { term: Some(term), asked: vec![ask(&job)], grace: GRACE, actor: user() })
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::StaleTerm { given, .. } if given == term), "{error:?}");
    }
    assert_eq!(world.snapshot(job.id).await, before);
    let asked = world
        .store
        .evict(EvictJobs { term: Some(leader.term), asked: vec![ask(&job)], grace: GRACE, actor: user() })
        .await
        .unwrap();
    assert_eq!(asked, [true]);
    let (other, _) = world.building(&mac, |_| ()).await;
    world.advance(LEASE);
    let error = world
        .store
        .evict(EvictJobs { term: Some(leader.term), asked: vec![ask(&other)], grace: GRACE, actor: user() })
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::StaleTerm { .. }), "{error:?}");
}

pub async fn the_reaper_goes_by_the_deadline(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let (other, _) = world.building(&mac, |_| ()).await;
    let asked = world.evicted(&job).await;
    let deadline = asked.lease().unwrap().due();
    assert_eq!(deadline, world.now().plus(GRACE));
    let idle = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!((idle.jobs, idle.next_expiry), (vec![], Some(deadline)));
    // A renewal does not buy time.
    world.hold(job.id, &holder, [HolderAction::Renew { lease: LEASE * 10 }]).await.unwrap();
    assert_eq!(
        world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().next_expiry,
        Some(deadline)
    );
    world.clock.set(deadline.minus(Duration::from_millis(1)));
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs, []);
    world.clock.set(deadline);
    let reaped = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!(reaped.jobs, [job.id]);
    assert_eq!(reaped.next_expiry, Some(other.lease().unwrap().expires_at));
    let queued = world.job(job.id).await;
    assert_eq!((queued.stage(), queued.attempts, queued.evictions), (Stage::Queued, 0, 1));
    let run = world.store.read().runs(job.id).await.unwrap().pop().unwrap();
    assert_eq!(run.outcome, RunOutcome::Preempted);
    assert_eq!(world.events(job.id).await.pop().unwrap().kind, EventKind::Preempted);
    let error = world.hold(job.id, &holder, [release()]).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refusal::Fenced { .. })), "{error:?}");
}

pub async fn leases_and_deadlines_are_reaped_in_one_order(world: &World) {
    let mac = world.factory("mac-1").await;
    let mut expected = Vec::new();
    for seconds in [30, 10, 20, 40] {
        let (job, _) = world.building(&mac, |_| ()).await;
        let grace = Duration::from_secs(seconds);
        let asked = world
            .store
            .evict(EvictJobs { term: None, asked: vec![ask(&job)], grace, actor: user() })
            .await
            .unwrap();
        assert_eq!(asked, [true]);
        expected.push((seconds, job.id));
    }
    let (leased, _) = world.building(&mac, |_| ()).await;
    expected.push((LEASE.as_secs(), leased.id));
    expected.sort_unstable();
    world.advance(LEASE);
    let mut reaped = Vec::new();
    for _ in 0..3 {
        reaped.extend(world.store.expire_leases(ExpireLeases { limit: 2 }).await.unwrap().jobs);
    }
    assert_eq!(reaped, expected.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
}

pub async fn an_evicted_holder_may_finish(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    world.evicted(&job).await;
    let done = world.hold(job.id, &holder, [HolderAction::Report(RunReport::default())]).await.unwrap();
    assert_eq!((done.stage(), done.evictions), (Stage::Testing, 0));
    let (job, holder) = world.building(&mac, |_| ()).await;
    world.evicted(&job).await;
    let failed = world.hold(job.id, &holder, [fail(true)]).await.unwrap();
    assert_eq!((failed.attempts, failed.evictions), (1, 0));
}

pub async fn work_of_a_paused_budget_stops_without_a_mark(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    assert_eq!(world.evict(vec![NewEviction { for_job: None, ..ask(&job) }]).await, [true]);
    assert_eq!(world.job(job.id).await.lease().unwrap().evict.unwrap().for_job, None);
    let queued = world.hold(job.id, &holder, [release()]).await.unwrap();
    assert_eq!((queued.stage(), queued.attempts, queued.evictions), (Stage::Queued, 0, 0));
}

/// Whoever comes first, the job ends where exactly one of them left it.
pub async fn evictions_against_last_words(world: &World) {
    let mac = world.factory("mac-1").await;
    let handles = world.handles().await;
    for round in 0..20_usize {
        let (job, holder) = world.building(&mac, |_| ()).await;
        let mut racing = JoinSet::new();
        for number in 0..4 {
            let store = handles[(round + number) % handles.len()].clone();
            let (job, holder) = (job.clone(), holder.clone());
            racing.spawn(async move {
                if number % 2 == 0 {
                    store
                        .evict(EvictJobs { term: None, asked: vec![ask(&job)], grace: GRACE, actor: user() })
                        .await
                        .unwrap();
                } else {
                    let write = Hold { job: job.id, holder, actions: vec![release()] };
                    store.hold(write).await.unwrap();
                }
            });
        }
        racing.join_all().await;
        let after = world.job(job.id).await;
        let runs = world.store.read().runs(job.id).await.unwrap();
        let kinds: Vec<_> = world.events(job.id).await.into_iter().map(|event| event.kind).collect();
        let asked = kinds.contains(&EventKind::EvictionAsked);
        let (outcome, last) = if asked {
            (RunOutcome::Preempted, EventKind::Preempted)
        } else {
            (RunOutcome::Released, EventKind::Released)
        };
        assert_eq!((after.stage(), after.evictions), (Stage::Queued, u32::from(asked)));
        assert_eq!((runs.len(), &runs[0].outcome, kinds.last()), (1, &outcome, Some(&last)));
    }
}
