//! What the reconcilers do: expire leases, unblock, retire. Each can run at any time and any number of times.

use std::time::Duration;

use giga_domain::job::DepsMode;
use giga_domain::stage::PerStage;
use giga_domain::{EventKind, EventSeq, HolderAction, Job, JobId, OperatorAction, RunOutcome, Stage, State};
use giga_ports::store::{ExpireLeases, JobFilter, NewJob, Reaped, Reconsider, Submit, Submitted};

use super::World;
use super::world::{LEASE, holder, product, user};

fn sorted(mut ids: Vec<JobId>) -> Vec<JobId> {
    ids.sort_unstable();
    ids
}

pub async fn leases_expire_in_order(world: &World) {
    let mac = world.factory("mac-1").await;
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(world.assigned(&mac, |_| ()).await);
        world.advance(Duration::from_secs(1));
    }
    // The first one renews and so becomes the last to end.
    let (first, holder) = held.remove(0);
    world.hold(first.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap();
    world.advance(LEASE);
    let ids: Vec<_> = held.iter().map(|(job, _)| job.id).chain([first.id]).collect();
    let next = |job: &Job| Some(job.lease().unwrap().expires_at);
    let reaped = world.store.expire_leases(ExpireLeases { limit: 2 }).await.unwrap();
    assert_eq!(reaped, Reaped { jobs: ids[..2].to_vec(), next_expiry: next(&held[2].0) });
    let reaped = world.store.expire_leases(ExpireLeases { limit: 100 }).await.unwrap();
    assert_eq!(reaped, Reaped { jobs: ids[2..].to_vec(), next_expiry: None });
    for id in ids {
        let job = world.job(id).await;
        assert_eq!((job.stage(), job.attempts, job.epoch.0), (Stage::Queued, 1, 2));
        let runs = world.store.read().runs(id).await.unwrap();
        assert_eq!((&runs[0].outcome, runs[0].ended_at), (&RunOutcome::Expired, Some(world.now())));
        assert_eq!(world.events(id).await.pop().unwrap().kind, EventKind::LeaseExpired);
    }
    assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Assigned).await), (5, 0));
}

pub async fn a_lease_ends_exactly_at_its_time(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = world.building(&mac, |_| ()).await;
    world.advance(LEASE.saturating_sub(Duration::from_millis(1)));
    let ends = job.lease().unwrap().expires_at;
    let reaped = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!(reaped, Reaped { jobs: Vec::new(), next_expiry: Some(ends) });
    world.advance(Duration::from_millis(1));
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs, [job.id]);
}

pub async fn a_renewed_lease_is_left_alone(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    world.advance(LEASE);
    let job = world.hold(job.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap();
    let before = world.snapshot(job.id).await;
    let reaped = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!(reaped, Reaped { jobs: Vec::new(), next_expiry: Some(job.lease().unwrap().expires_at) });
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn expiring_nothing_says_when_to_look_again(world: &World) {
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap(), Reaped::default());
    let mac = world.factory("mac-1").await;
    let (early, _) = world.assigned(&mac, |_| ()).await;
    world.advance(Duration::from_secs(1));
    world.assigned(&mac, |_| ()).await;
    let reaped = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!(reaped.next_expiry, Some(early.lease().unwrap().expires_at));
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 0 }).await.unwrap().jobs, []);
}

pub async fn expiry_uses_attempts_up(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = world.assigned(&mac, |spec| spec.retry.max = 0).await;
    world.advance(LEASE);
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs, [job.id]);
    assert_eq!(world.job(job.id).await.stage(), Stage::DeadLetter);
    assert_eq!(world.count(Stage::DeadLetter).await, 1);
}

async fn ship(world: &World, id: JobId) {
    let builder: giga_domain::FactoryId = "builder".parse().unwrap();
    if world.store.read().factory(&builder).await.unwrap().is_none() {
        world.factory("builder").await;
    }
    let job = world.granted(id, &builder).await;
    let report = HolderAction::Report(giga_domain::RunReport::default());
    world.hold(id, &holder(&job), [HolderAction::Start, report]).await.unwrap();
    world.operate(id, OperatorAction::Ship).await.unwrap();
}

async fn blocked_by(world: &World, deps: &[JobId], mode: DepsMode) -> Job {
    world
        .submitted(|spec| {
            spec.deps = deps.to_vec();
            spec.deps_mode = mode;
        })
        .await
}

pub async fn unblock_for_all(world: &World) {
    let (one, two) = (world.submitted(|_| ()).await.id, world.submitted(|_| ()).await.id);
    let job = blocked_by(world, &[one, two], DepsMode::All).await;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, []);
    ship(world, one).await;
    assert_eq!(
        world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved,
        [],
        "one of two is not all"
    );
    ship(world, two).await;
    world.advance(Duration::from_secs(2));
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, [job.id]);
    let queued = world.job(job.id).await;
    assert_eq!(queued.state, State::Queued { since: world.now(), ready_at: world.now(), target: None });
    assert_eq!(queued.enqueued_at, world.now());
    assert_eq!(world.events(job.id).await.pop().unwrap().kind, EventKind::Unblocked);
    assert_eq!((world.count(Stage::Blocked).await, world.count(Stage::Queued).await), (0, 1));
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, [], "once is enough");
}

pub async fn unblock_for_any(world: &World) {
    let (one, two) = (world.submitted(|_| ()).await.id, world.submitted(|_| ()).await.id);
    let job = blocked_by(world, &[one, two], DepsMode::Any).await;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, []);
    ship(world, two).await;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, [job.id]);
    assert_eq!(world.job(job.id).await.stage(), Stage::Queued);
}

pub async fn unblock_goes_by_the_limit(world: &World) {
    let dep = world.submitted(|_| ()).await.id;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(blocked_by(world, &[dep], DepsMode::All).await.id);
    }
    ship(world, dep).await;
    let mut freed = Vec::new();
    for expected in [2, 2, 1, 0] {
        let some = world.store.reconsider(Reconsider { limit: 2 }).await.unwrap().moved;
        assert_eq!(some.len(), expected);
        freed.extend(some);
    }
    assert_eq!(sorted(freed), waiting);
}

pub async fn an_unblocked_job_keeps_its_run_at(world: &World) {
    let dep = world.submitted(|_| ()).await.id;
    let later = world.now().plus(Duration::from_hours(1));
    let change = |spec: &mut giga_domain::JobSpec| {
        spec.deps = vec![dep];
        spec.run_at = Some(later);
    };
    let job = world.submitted(change).await;
    ship(world, dep).await;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, [job.id]);
    let queued = world.job(job.id).await;
    assert_eq!(queued.state, State::Queued { since: world.now(), ready_at: later, target: None });
}

pub async fn a_thousand_children_in_one_sweep(world: &World) {
    let dep = world.submitted(|_| ()).await.id;
    let children: Vec<NewJob> = (0..1_000).map(|_| world.new_job(|spec| spec.deps = vec![dep])).collect();
    let ids: Vec<_> = children.iter().map(|child| child.id).collect();
    world.store.submit(Submit { jobs: children, actor: user() }).await.unwrap();
    assert_eq!(world.count(Stage::Blocked).await, 1_000);
    ship(world, dep).await;
    assert_eq!(sorted(world.store.reconsider(Reconsider { limit: 1_000 }).await.unwrap().moved), ids);
    assert_eq!((world.count(Stage::Blocked).await, world.count(Stage::Queued).await), (0, 1_000));
    let live = world.store.read().live_jobs(None, 2_000).await.unwrap();
    assert_eq!(live.iter().map(|job| job.id).collect::<Vec<_>>(), ids);
    assert!(live.iter().all(|job| job.last_event == EventSeq(2)));
}

/// Far enough that everything so far is old.
fn later(world: &World) {
    world.advance(Duration::from_hours(1_000));
}

pub async fn retire_removes_everything(world: &World) {
    let mac = world.factory("mac-1").await;
    let new = world.new_job(|spec| {
        spec.idempotency_key = Some("ticket-812".to_owned());
        spec.retry.max = 0;
    });
    world.submit(new.clone()).await;
    let held = world.granted(new.id, &mac).await;
    world.hold(new.id, &holder(&held), [super::world::fail(true)]).await.unwrap();
    let child = blocked_by(world, &[new.id], DepsMode::All).await;
    world.operate(child.id, OperatorAction::Cancel).await.unwrap();
    let version = world.store.read().queue_state(&product("demo")).await.unwrap().version;
    later(world);
    assert_eq!(world.retire(world.now(), 10).await, 2);
    let read = world.store.read();
    for id in [new.id, child.id] {
        assert_eq!(read.job(id).await.unwrap(), None);
        assert_eq!(read.job_text(id).await.unwrap(), None);
        assert_eq!((read.runs(id).await.unwrap().len(), world.events(id).await.len()), (0, 0));
    }
    assert!(world.feed().await.iter().all(|event| event.job.is_none()));
    assert_eq!(read.list_jobs(&JobFilter::default(), None, 10).await.unwrap(), []);
    let queue = read.queue_state(&product("demo")).await.unwrap();
    assert_eq!(queue.by_stage, PerStage::default());
    assert!(queue.version > version);
    // The key makes a new job now, even from another body.
    let again = NewJob { id: world.new_job(|_| ()).id, fingerprint: "another".to_owned(), ..new };
    let answers = world.store.submit(Submit { jobs: vec![again], actor: user() }).await.unwrap();
    assert!(matches!(answers[0], Submitted::Created(_)));
    assert_eq!(world.retire(world.now(), 10).await, 0);
}

pub async fn retire_spares_the_young_and_the_living(world: &World) {
    let mac = world.factory("mac-1").await;
    let mut old = Vec::new();
    for stage in Stage::ALL {
        old.push(world.in_stage(stage, &mac).await);
    }
    let waited_for: Vec<_> = old.iter().flat_map(|job| job.spec.deps.clone()).collect();
    later(world);
    let young = world.in_stage(Stage::Shipped, &mac).await;
    // `before` is an end that does not belong to the past.
    let before = young.updated_at;
    assert_eq!(world.retire(before, 100).await, 3);
    for job in old {
        let kept = world.store.read().job(job.id).await.unwrap().is_some();
        assert_eq!(kept, !job.stage().is_terminal(), "{}", job.stage());
    }
    assert_eq!(world.job(young.id).await, young);
    assert_eq!(world.store.read().jobs_by_id(&waited_for).await.unwrap().len(), waited_for.len());
}

pub async fn retire_spares_what_blocked_jobs_need(world: &World) {
    let (one, two) = (world.submitted(|_| ()).await.id, world.submitted(|_| ()).await.id);
    let child = blocked_by(world, &[one, two], DepsMode::All).await;
    ship(world, one).await;
    later(world);
    assert_eq!(world.retire(world.now(), 10).await, 0, "the child still counts on it");
    ship(world, two).await;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, [child.id]);
    assert_eq!(world.retire(world.now(), 10).await, 1, "the second is not old yet");
    assert_eq!(world.store.read().job(one).await.unwrap(), None);
    // The child lives on without its dep.
    assert_eq!(world.job(child.id).await.spec.deps, [one, two]);
    later(world);
    assert_eq!(world.retire(world.now(), 10).await, 1);
    assert_eq!(world.job(child.id).await.stage(), Stage::Queued);
}

pub async fn retire_goes_by_the_limit(world: &World) {
    let mac = world.factory("mac-1").await;
    for _ in 0..5 {
        world.in_stage(Stage::Cancelled, &mac).await;
    }
    later(world);
    for expected in [2, 2, 1, 0] {
        assert_eq!(world.retire(world.now(), 2).await, expected);
    }
    assert_eq!(world.count(Stage::Cancelled).await, 0);
}
