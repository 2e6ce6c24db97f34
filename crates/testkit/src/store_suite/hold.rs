//! What the holder of a lease can do, and where each of its words leads.

use std::time::Duration;

use giga_domain::job::{ReviewGate, ShipMode};
use giga_domain::{
    Check, Checkpoint, EngineUse, Epoch, EventKind, FactoryId, FailReason, Failure, Holder, HolderAction,
    Job, NotUsed, PassedOver, Refusal, RepoCommit, Run, RunOutcome, RunReport, Setback, Stage, State, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{Claimed, ExpireLeases};

use super::World;
use super::world::{LEASE, fail, holder};

async fn last_run(world: &World, job: &Job) -> Run {
    world.store.read().runs(job.id).await.unwrap().pop().expect("the job ran")
}

fn repo_commit() -> RepoCommit {
    RepoCommit { repo: "lib".to_owned(), commit: "4567def".to_owned(), base: Some("89ab".to_owned()) }
}

fn saved(note: &str) -> Checkpoint {
    Checkpoint {
        wip_ref: Some("refs/giga/wip/1".to_owned()),
        commit: Some("0123abc".to_owned()),
        session_id: Some("session-7".to_owned()),
        session_engine: Some("claude".to_owned()),
        session_spend: Some(giga_domain::Spend { usd: Usd::from_micros(1_500_000), tokens: 12 }),
        repos: vec![repo_commit()],
        factory: Some("mac-1".parse().unwrap()),
        note: Some(note.to_owned()),
    }
}

pub async fn start_builds_once(world: &World) {
    let mac = world.factory("mac-1").await;
    let (assigned, holder) = world.assigned(&mac, |_| ()).await;
    world.advance(Duration::from_secs(3));
    let job = world.hold(assigned.id, &holder, [HolderAction::Start]).await.unwrap();
    assert_eq!(job.state, State::Building { lease: assigned.lease().unwrap().clone() });
    assert_eq!((job.rev, job.epoch), (assigned.rev.next(), assigned.epoch));
    let run = last_run(world, &job).await;
    assert_eq!((run.started_at, run.ended_at), (Some(world.now()), None));
    assert_eq!((world.count(Stage::Assigned).await, world.count(Stage::Building).await), (0, 1));
    let before = world.snapshot(job.id).await;
    world.advance(Duration::from_secs(3));
    assert_eq!(world.hold(job.id, &holder, [HolderAction::Start]).await.unwrap(), job);
    assert_eq!(world.snapshot(job.id).await, before, "a repeated start is no second start");
}

pub async fn what_runs_it_is_on_record(world: &World) {
    let mac = world.factory("mac-1").await;
    let (assigned, holder) = world.assigned(&mac, |_| ()).await;
    let until = Some(world.now().plus(Duration::from_mins(5)));
    let taken = EngineUse {
        engine: "codex".to_owned(),
        model: Some("o5".to_owned()),
        passed_over: vec![PassedOver::new("claude", NotUsed::OutOfQuota { until })],
    };
    let start = [HolderAction::StartWith(taken)];
    let job = world.hold(assigned.id, &holder, start.clone()).await.unwrap();
    let run = last_run(world, &job).await;
    assert_eq!((run.engine.as_deref(), run.model.as_deref()), (Some("codex"), Some("o5")));
    let kinds: Vec<EventKind> = world.events(job.id).await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds[kinds.len() - 2..], [EventKind::EnginePassedOver, EventKind::Started]);
    let before = world.snapshot(job.id).await;
    world.hold(job.id, &holder, start).await.unwrap();
    assert_eq!(world.snapshot(job.id).await, before, "it is said once");

    let report = RunReport { model: Some("o5-2026-11".to_owned()), ..RunReport::default() };
    let job = world.hold(job.id, &holder, [HolderAction::Report(report.clone())]).await.unwrap();
    let run = last_run(world, &job).await;
    assert_eq!((run.engine.as_deref(), run.model.as_deref()), (Some("codex"), Some("o5")));
    assert_eq!(run.report, report);
}

pub async fn a_closed_account_uses_no_attempt(world: &World) {
    let mac = world.factory("mac-1").await;
    let submitted = world.submitted(|spec| spec.retry.max = 0).await;
    let mut pauses = Vec::new();
    for reason in [FailReason::OutOfQuota, FailReason::SignedOut, FailReason::OutOfQuota] {
        let job = world.granted(submitted.id, &mac).await;
        let holder = Holder { factory: mac.clone(), epoch: job.epoch };
        let failure = Failure { reason, detail: None };
        let failed = HolderAction::Fail { failure: failure.clone(), retryable: false };
        let queued = world.hold(job.id, &holder, [HolderAction::Start, failed]).await.unwrap();
        assert_eq!((queued.attempts, queued.stage()), (0, Stage::Queued), "{reason}");
        assert_eq!(queued.setback, Some(Setback { failure: failure.clone(), unfit: Vec::new() }));
        assert_eq!(last_run(world, &queued).await.outcome, RunOutcome::Failed { failure });
        let State::Queued { ready_at, .. } = queued.state else { unreachable!("it is queued") };
        pauses.push(ready_at.since(world.now()));
        world.advance(Duration::from_mins(10));
    }
    assert!(pauses[0].is_zero() && !pauses[1].is_zero(), "the first one moves at once: {pauses:?}");
}

pub async fn why_it_is_tried_again_is_kept(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (job, holder) = world.building(&mac, |_| ()).await;
    let failure = Failure { reason: FailReason::NoEngine, detail: Some("claude is gone".to_owned()) };
    let failed = HolderAction::Fail { failure: failure.clone(), retryable: true };
    let queued = world.hold(job.id, &holder, [failed]).await.unwrap();
    let setback = Setback { failure, unfit: vec![mac.clone()] };
    assert_eq!(queued.setback, Some(setback.clone()));
    assert_eq!(world.job(job.id).await, queued, "as it was written");
    let lost = world.claim(job.id, &mac).await;
    assert!(matches!(lost, Claimed::Lost(_)), "{lost:?}");
    let held = world.granted(job.id, &linux).await;
    assert_eq!(world.job(job.id).await.setback, Some(setback), "also while the next one tries");
    assert_eq!(held.attempts, 1);
}

pub async fn a_renewal_touches_the_lease_alone(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let before = world.snapshot(job.id).await;
    world.advance(Duration::from_secs(30));
    let renewed = world.hold(job.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap();
    assert_eq!(renewed.lease().unwrap().expires_at, world.now().plus(LEASE));
    let after = world.snapshot(job.id).await;
    assert_eq!(after.job, Some(renewed.clone()));
    // Apart from the end of the lease nothing is different: no revision, no event, no count.
    let mut expected = before;
    expected.job = Some(Job { state: renewed.state, ..expected.job.unwrap() });
    assert_eq!(after, expected);
}

pub async fn a_renewal_never_shortens(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let ends = job.lease().unwrap().expires_at;
    for lease in [Duration::ZERO, Duration::from_millis(1), LEASE] {
        let renewed = world.hold(job.id, &holder, [HolderAction::Renew { lease }]).await.unwrap();
        assert_eq!(renewed.lease().unwrap().expires_at, ends);
    }
    assert_eq!(world.job(job.id).await.lease().unwrap().expires_at, ends);
}

pub async fn a_renewal_is_judged_by_the_stores_clock(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    assert_eq!(world.store.read().now().await.unwrap(), world.now());
    // Past its end but not yet reaped: only the reaper ends a lease.
    world.advance(LEASE + Duration::from_secs(1));
    let renewed = world.hold(job.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap();
    assert_eq!(renewed.lease().unwrap().expires_at, world.now().plus(LEASE));
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs, []);
}

pub async fn a_checkpoint_is_kept_and_repeated_silently(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let first = HolderAction::Checkpoint(saved("half"));
    let after = world.hold(job.id, &holder, [first.clone()]).await.unwrap();
    assert_eq!((after.checkpoint.as_ref(), after.rev), (Some(&saved("half")), job.rev.next()));
    assert_eq!(world.job(job.id).await, after);
    let before = world.snapshot(job.id).await;
    world.hold(job.id, &holder, [first]).await.unwrap();
    assert_eq!(world.snapshot(job.id).await, before);
    let second = HolderAction::Checkpoint(saved("more"));
    assert_eq!(world.hold(job.id, &holder, [second]).await.unwrap().checkpoint, Some(saved("more")));
}

pub async fn a_checkpoint_survives_expiry(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holding) = world.building(&mac, |spec| spec.retry.backoff_ms = 0).await;
    world.hold(job.id, &holding, [HolderAction::Checkpoint(saved("half"))]).await.unwrap();
    world.advance(LEASE);
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!(world.job(job.id).await.checkpoint, Some(saved("half")));
    let job = world.granted(job.id, &mac).await;
    assert_eq!((job.checkpoint.as_ref(), job.attempts), (Some(&saved("half")), 1));
    // A release may bring a newer one, and without one keeps the old.
    let bare = HolderAction::Release { checkpoint: None };
    assert_eq!(world.hold(job.id, &holder(&job), [bare]).await.unwrap().checkpoint, Some(saved("half")));
    let job = world.granted(job.id, &mac).await;
    let newer = HolderAction::Release { checkpoint: Some(saved("newer")) };
    assert_eq!(world.hold(job.id, &holder(&job), [newer]).await.unwrap().checkpoint, Some(saved("newer")));
}

async fn reported(world: &World, factory: &FactoryId, quorum: u32, ship: ShipMode) -> Job {
    let change = |spec: &mut giga_domain::JobSpec| {
        spec.review = ReviewGate { quorum, reviewers: Vec::new() };
        spec.ship = ship;
    };
    let (job, holder) = world.building(factory, change).await;
    let report = RunReport {
        summary: Some("fixed it".to_owned()),
        branch: Some("giga/1/1".to_owned()),
        commit: Some("0123abc".to_owned()),
        base: Some("fedc".to_owned()),
        unseen: Some("2 binary files".to_owned()),
        model: Some("opus".to_owned()),
        pull_request: Some("https://forge.example/hello/pull/7".to_owned()),
        tokens: Some(12_000),
        cost: Some(Usd::from_micros(250_000)),
        files_changed: Some(3),
        lines_added: Some(10),
        cost_assumed: true,
        lines_removed: Some(4),
        repos: vec![repo_commit()],
        checks: vec![Check {
            command: "cargo test".to_owned(),
            passed: true,
            wall_ms: 1_200,
            output: "ok\r\n".to_owned(),
        }],
    };
    world.advance(Duration::from_secs(9));
    let job = world.hold(job.id, &holder, [HolderAction::Report(report.clone())]).await.unwrap();
    assert_eq!(world.job(job.id).await, job);
    assert_eq!(job.lease(), None);
    let run = last_run(world, &job).await;
    assert_eq!((run.outcome, run.report, run.ended_at), (RunOutcome::Succeeded, report, Some(world.now())));
    assert_eq!((world.count(job.stage()).await, world.count(Stage::Building).await), (1, 0));
    job
}

pub async fn a_report_waits_for_review(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = reported(world, &mac, 2, ShipMode::Auto).await;
    assert_eq!(job.state, State::Review { approvals: Vec::new() });
}

pub async fn a_report_waits_to_be_shipped(world: &World) {
    let mac = world.factory("mac-1").await;
    assert_eq!(reported(world, &mac, 0, ShipMode::Manual).await.state, State::Testing);
}

pub async fn a_report_ships_by_itself(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = reported(world, &mac, 0, ShipMode::Auto).await;
    assert_eq!(job.state, State::Shipped);
    assert_eq!(world.events(job.id).await.pop().unwrap().kind, EventKind::Shipped);
}

pub async fn a_report_needs_a_start(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.assigned(&mac, |_| ()).await;
    let before = world.snapshot(job.id).await;
    let error = world.hold(job.id, &holder, [HolderAction::Report(RunReport::default())]).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refusal::Illegal { .. })), "{error:?}");
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn several_actions_in_one_write(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.assigned(&mac, |_| ()).await;
    let after = world
        .hold(
            job.id,
            &holder,
            [
                HolderAction::Start,
                HolderAction::Checkpoint(saved("done")),
                HolderAction::Report(RunReport::default()),
            ],
        )
        .await
        .unwrap();
    assert_eq!((after.stage(), after.checkpoint.as_ref()), (Stage::Testing, Some(&saved("done"))));
    assert_eq!(after.rev, job.rev.next(), "one write is one revision");
    let events = world.events(job.id).await;
    let kinds: Vec<_> = events[2..].iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Started, EventKind::Checkpointed, EventKind::Reported]);
    let run = last_run(world, &after).await;
    assert_eq!((run.started_at, run.outcome), (Some(world.now()), RunOutcome::Succeeded));
    assert_eq!((world.count(Stage::Assigned).await, world.count(Stage::Testing).await), (0, 1));
}

pub async fn a_retryable_failure_backs_off(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holding) = world.building(&mac, |spec| spec.retry.backoff_ms = 1_000).await;
    let failed = world.hold(job.id, &holding, [fail(true)]).await.unwrap();
    let ready_at = world.now().plus(Duration::from_secs(1));
    assert_eq!(failed.state, State::Queued { since: world.now(), ready_at, target: None });
    assert_eq!((failed.attempts, failed.epoch), (1, job.epoch.next()));
    assert_eq!(failed.enqueued_at, job.enqueued_at, "interrupted work keeps its turn");
    assert!(matches!(last_run(world, &failed).await.outcome, RunOutcome::Failed { .. }));
    world.advance(Duration::from_secs(1));
    let again = world.granted(job.id, &mac).await;
    assert_eq!(again.epoch, failed.epoch.next());
    let failed = world.hold(job.id, &holder(&again), [fail(true)]).await.unwrap();
    let State::Queued { ready_at, .. } = failed.state else { panic!("{failed:?}") };
    assert_eq!(ready_at, world.now().plus(Duration::from_secs(2)), "the wait doubles");
}

pub async fn exhausted_retries_end_in_dead_letter(world: &World) {
    let mac = world.factory("mac-1").await;
    let change = |spec: &mut giga_domain::JobSpec| {
        spec.retry.max = 1;
        spec.retry.backoff_ms = 0;
    };
    let (job, first) = world.assigned(&mac, change).await;
    assert_eq!(world.hold(job.id, &first, [fail(true)]).await.unwrap().stage(), Stage::Queued);
    let again = world.granted(job.id, &mac).await;
    let dead = world.hold(job.id, &holder(&again), [fail(true)]).await.unwrap();
    assert_eq!((dead.stage(), dead.attempts), (Stage::DeadLetter, 2));
    assert_eq!(dead.failure().unwrap().reason, FailReason::VerifyFailed);
    assert_eq!(world.job(job.id).await, dead);
    let events = world.events(job.id).await;
    let steps: Vec<_> = events[events.len() - 2..].iter().map(|event| (event.from, event.to)).collect();
    assert_eq!(
        steps,
        [(Some(Stage::Assigned), Some(Stage::Failed)), (Some(Stage::Failed), Some(Stage::DeadLetter))]
    );
    assert_eq!((world.count(Stage::Failed).await, world.count(Stage::DeadLetter).await), (0, 1));
}

pub async fn a_logical_failure_waits_for_an_operator(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let failed = world.hold(job.id, &holder, [fail(false)]).await.unwrap();
    assert_eq!((failed.stage(), failed.attempts, failed.lease()), (Stage::Failed, 1, None));
    let failure = failed.failure().unwrap();
    assert_eq!(
        (failure.reason, failure.detail.as_deref()),
        (FailReason::VerifyFailed, Some("2 tests failed"))
    );
    assert_eq!(world.job(job.id).await, failed);
}

pub async fn a_release_keeps_the_attempt(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holding) = world.building(&mac, |spec| spec.retry.max = 0).await;
    world.advance(Duration::from_secs(2));
    let release = HolderAction::Release { checkpoint: None };
    let released = world.hold(job.id, &holding, [release.clone()]).await.unwrap();
    assert_eq!(released.state, State::Queued { since: world.now(), ready_at: world.now(), target: None });
    assert_eq!((released.attempts, released.epoch), (0, Epoch(2)));
    assert_eq!(last_run(world, &released).await.outcome, RunOutcome::Released);
    let again = world.granted(job.id, &mac).await;
    assert_eq!(world.hold(job.id, &holder(&again), [release]).await.unwrap().stage(), Stage::Queued);
}
