//! An operator's and a reviewer's word.

use std::time::Duration;

use giga_domain::job::{ReviewGate, ShipMode};
use giga_domain::{
    Command, FactoryId, FailReason, Holder, HolderAction, Job, JobId, Judgement, OperatorAction, Refusal,
    RunReport, Stage, State, Verdict,
};
use giga_ports::StoreError;
use giga_ports::store::{ExpireLeases, Reconsider, Steer};

use super::World;
use super::world::{LEASE, fail, user};

/// Where the action leads from the stage; `None` is refused. Written down here a second time on purpose.
fn outcome(action: OperatorAction, from: Stage) -> Option<Stage> {
    match (action, from) {
        (OperatorAction::Ship, Stage::Testing | Stage::Shipped) => Some(Stage::Shipped),
        (OperatorAction::Ship, Stage::Shipping) => Some(Stage::Shipping),
        (OperatorAction::Requeue, Stage::Failed | Stage::Review | Stage::Queued) => Some(Stage::Queued),
        (OperatorAction::Reject, Stage::Review) => Some(Stage::Failed),
        (OperatorAction::Cancel, Stage::Shipped | Stage::DeadLetter) => None,
        (OperatorAction::Cancel, _) => Some(Stage::Cancelled),
        _ => None,
    }
}

pub async fn every_operator_action_in_every_stage(world: &World) {
    let mac = world.factory("mac-1").await;
    for from in Stage::ALL {
        for action in OperatorAction::ALL {
            let job = world.in_stage(from, &mac).await;
            let before = world.snapshot(job.id).await;
            let answer = world.operate(job.id, action).await;
            let case = format!("{} from {from}", action.as_str());
            let Some(to) = outcome(action, from) else {
                let error = answer.unwrap_err();
                let illegal = |stage| matches!(&error, StoreError::Refused(Refusal::Illegal { from, .. }) if *from == stage);
                assert!(illegal(from), "{case}: {error:?}");
                assert_eq!(world.snapshot(job.id).await, before, "{case}");
                continue;
            };
            let steered = answer.unwrap();
            assert_eq!((steered.stage(), steered.lease()), (to, None), "{case}");
            assert_eq!(world.job(job.id).await, steered, "{case}");
            // Once more: answered the same way, and nothing more happens.
            let after = world.snapshot(job.id).await;
            world.advance(Duration::from_secs(1));
            assert_eq!(world.operate(job.id, action).await.unwrap(), steered, "{case}, repeated");
            assert_eq!(world.snapshot(job.id).await, after, "{case}, repeated");
        }
    }
}

pub async fn a_matching_revision_is_taken(world: &World) {
    let job = world.submitted(|_| ()).await;
    let command = Command::Operator { action: OperatorAction::Cancel, reason: Some("by mistake".to_owned()) };
    let write =
        Steer { job: job.id, request: super::steer_request(), command, if_rev: Some(job.rev), actor: user() };
    let cancelled = world.store.steer(write).await.unwrap();
    assert_eq!(cancelled.state, State::Cancelled { reason: Some("by mistake".to_owned()) });
    assert_eq!(world.job(job.id).await, cancelled);
}

pub async fn another_revision_is_refused(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = world.assigned(&mac, |_| ()).await;
    let before = world.snapshot(job.id).await;
    for rev in [giga_domain::Rev(1), job.rev.next()] {
        let command = Command::Operator { action: OperatorAction::Cancel, reason: None };
        let write =
            Steer { job: job.id, request: super::steer_request(), command, if_rev: Some(rev), actor: user() };
        let error = world.store.steer(write).await.unwrap_err();
        assert!(
            matches!(error, StoreError::RevMismatch { given, current } if given == rev && current == job.rev),
            "{error:?}"
        );
    }
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn an_unknown_job_is_not_found(world: &World) {
    for command in [reviewed(Verdict::Approve, "ana", None), request(quorum(1))] {
        let error = world.steer(JobId::MIN, command).await.unwrap_err();
        assert!(matches!(error, StoreError::NoSuchJob(id) if id == JobId::MIN), "{error:?}");
    }
}

async fn in_review(world: &World, factory: &FactoryId, gate: ReviewGate, ship: ShipMode) -> (Job, Holder) {
    let change = |spec: &mut giga_domain::JobSpec| {
        spec.review = gate;
        spec.ship = ship;
    };
    let (job, holder) = world.building(factory, change).await;
    let job = world.hold(job.id, &holder, [HolderAction::Report(RunReport::default())]).await.unwrap();
    assert_eq!(job.stage(), Stage::Review);
    (job, holder)
}

fn quorum(quorum: u32) -> ReviewGate {
    ReviewGate { quorum, reviewers: Vec::new() }
}

async fn review(world: &World, job: &Job, verdict: Verdict, reviewer: &str) -> Result<Job, StoreError> {
    world.steer(job.id, reviewed(verdict, reviewer, Some("as discussed"))).await
}

fn reviewed(verdict: Verdict, reviewer: &str, comment: Option<&str>) -> Command {
    let (reviewer, comment) = (reviewer.to_owned(), comment.map(str::to_owned));
    Command::Review(Judgement {
        verdict,
        reviewer,
        comment,
        epoch: None,
        commit: None,
        acknowledge_unseen: false,
    })
}

fn request(gate: ReviewGate) -> Command {
    Command::RequestReview { gate, may_weaken: false }
}

pub async fn a_quorum_of_distinct_reviewers(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = in_review(world, &mac, quorum(2), ShipMode::Manual).await;
    let one = review(world, &job, Verdict::Approve, "ana").await.unwrap();
    assert_eq!(one.state, State::Review { approvals: vec!["ana".to_owned()] });
    assert_eq!(world.job(job.id).await, one);
    let before = world.snapshot(job.id).await;
    let same = review(world, &job, Verdict::Approve, "ana").await.unwrap();
    assert_eq!(same, one, "the same reviewer counts once");
    assert_eq!(world.snapshot(job.id).await, before);
    let two = review(world, &job, Verdict::Approve, "bo").await.unwrap();
    assert_eq!(two.stage(), Stage::Testing);
    assert_eq!((world.count(Stage::Review).await, world.count(Stage::Testing).await), (0, 1));
}

pub async fn a_review_with_automatic_shipping(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = in_review(world, &mac, quorum(1), ShipMode::Auto).await;
    assert_eq!(review(world, &job, Verdict::Approve, "ana").await.unwrap().stage(), Stage::Shipped);
}

pub async fn changes_asked_for_queue_again(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = in_review(world, &mac, quorum(1), ShipMode::Manual).await;
    world.advance(Duration::from_secs(4));
    let queued = review(world, &job, Verdict::RequestChanges, "ana").await.unwrap();
    assert_eq!(queued.state, State::Queued { since: world.now(), ready_at: world.now(), target: None });
    let again = world.granted(job.id, &mac).await;
    assert!(again.epoch > job.epoch);
    assert_eq!(world.store.read().runs(job.id).await.unwrap().len(), 2, "the next run of the same job");
}

pub async fn a_rejection_fails(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = in_review(world, &mac, quorum(1), ShipMode::Manual).await;
    let rejected = review(world, &job, Verdict::Reject, "ana").await.unwrap();
    let failure = rejected.failure().unwrap();
    assert_eq!((failure.reason, failure.detail.as_deref()), (FailReason::Rejected, Some("as discussed")));
    assert_eq!(rejected.stage(), Stage::Failed);
}

pub async fn notes_and_gates_come_back_whole(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let gate = ReviewGate { quorum: 2, reviewers: vec!["ana".to_owned(), "bo 'b' 🏭".to_owned()] };
    let asked = world.steer(job.id, request(gate.clone())).await.unwrap();
    assert_eq!((asked.gate.as_ref(), asked.stage()), (Some(&gate), Stage::Building));
    let before = world.snapshot(job.id).await;
    assert_eq!(world.steer(job.id, request(gate.clone())).await.unwrap(), asked);
    assert_eq!(world.snapshot(job.id).await, before, "it is so already");
    let reported = world.hold(job.id, &holder, [HolderAction::Report(RunReport::default())]).await.unwrap();
    assert_eq!(reported.stage(), Stage::Review, "the manifest asked for none");
    review(world, &job, Verdict::Approve, "ana").await.unwrap();
    world.advance(Duration::from_secs(3));
    let judged = review(world, &job, Verdict::RequestChanges, "bo 'b' 🏭").await.unwrap();
    let [first, second] = &judged.reviews[..] else { panic!("{:?}", judged.reviews) };
    assert_eq!((first.verdict, second.verdict), (Verdict::Approve, Verdict::RequestChanges));
    assert_eq!((second.at, second.epoch), (world.now(), job.epoch));
    assert_eq!(second.comment.as_deref(), Some("as discussed"));
    for store in world.handles().await {
        assert_eq!(store.read().job(job.id).await.unwrap().as_ref(), Some(&judged));
        assert_eq!(store.read().live_jobs(None, 10).await.unwrap(), std::slice::from_ref(&judged));
    }
    // They are there for the next run, and after it.
    let again = world.granted(job.id, &mac).await;
    assert_eq!((&again.reviews, again.gate.as_ref()), (&judged.reviews, Some(&gate)));
}

pub async fn a_stranger_may_not_review(world: &World) {
    let mac = world.factory("mac-1").await;
    let gate = ReviewGate { quorum: 1, reviewers: vec!["ana".to_owned(), "bo".to_owned()] };
    let (job, _) = in_review(world, &mac, gate, ShipMode::Manual).await;
    let before = world.snapshot(job.id).await;
    for verdict in [Verdict::Approve, Verdict::RequestChanges, Verdict::Reject] {
        let error = review(world, &job, verdict, "cy").await.unwrap_err();
        assert!(matches!(error, StoreError::Refused(Refusal::NotAReviewer(..))), "{error:?}");
    }
    assert_eq!(world.snapshot(job.id).await, before);
    assert_eq!(review(world, &job, Verdict::Approve, "bo").await.unwrap().stage(), Stage::Testing);
}

pub async fn only_review_takes_a_verdict(world: &World) {
    let mac = world.factory("mac-1").await;
    for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::Review) {
        let job = world.in_stage(stage, &mac).await;
        let before = world.snapshot(job.id).await;
        for verdict in [Verdict::Approve, Verdict::RequestChanges, Verdict::Reject] {
            let error = review(world, &job, verdict, "ana").await.unwrap_err();
            assert!(matches!(error, StoreError::Refused(Refusal::Illegal { .. })), "{stage}: {error:?}");
        }
        assert_eq!(world.snapshot(job.id).await, before, "{stage}");
    }
}

pub async fn a_requeue_gives_the_attempts_back(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.in_stage(Stage::Failed, &mac).await;
    assert_eq!(job.attempts, 1);
    world.advance(Duration::from_secs(4));
    let queued = world.operate(job.id, OperatorAction::Requeue).await.unwrap();
    assert_eq!((queued.attempts, queued.enqueued_at), (0, world.now()));
    assert!(world.granted(job.id, &mac).await.epoch > job.epoch);
}

pub async fn terminal_absorbs_everything(world: &World) {
    let mac = world.factory("mac-1").await;
    for stage in Stage::ALL.into_iter().filter(|stage| stage.is_terminal()) {
        let job = world.in_stage(stage, &mac).await;
        let before = world.snapshot(job.id).await;
        world.advance(Duration::from_hours(24));
        for action in OperatorAction::ALL {
            let _ = world.operate(job.id, action).await;
        }
        for verdict in [Verdict::Approve, Verdict::RequestChanges, Verdict::Reject] {
            let _ = review(world, &job, verdict, "ana").await;
        }
        let _ = world.steer(job.id, request(quorum(3))).await;
        let holder = Holder { factory: mac.clone(), epoch: job.epoch };
        for action in [HolderAction::Start, HolderAction::Renew { lease: LEASE }, fail(true), fail(false)] {
            let _ = world.hold(job.id, &holder, [action]).await;
        }
        world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
        world.store.reconsider(Reconsider { limit: 10 }).await.unwrap();
        assert_eq!(world.snapshot(job.id).await, before, "{stage}");
    }
}

/// The reply was lost; the very same call comes again, when the job has already moved on because of it.
pub async fn a_repeated_call_finds_what_it_did(world: &World) {
    let mac = world.factory("mac-1").await;
    let verdicts = [Verdict::Approve, Verdict::RequestChanges, Verdict::Reject];
    for verdict in verdicts {
        let (job, _) = in_review(world, &mac, quorum(1), ShipMode::Manual).await;
        repeated(world, job, reviewed(verdict, "ana", None)).await;
    }
    let queued = world.submitted(|_| ()).await;
    repeated(world, queued, Command::Operator { action: OperatorAction::Cancel, reason: None }).await;
    let (held, _) = world.building(&mac, |_| ()).await;
    repeated(world, held, request(quorum(3))).await;
}

async fn repeated(world: &World, job: Job, command: Command) {
    let request = super::steer_request();
    let write = Steer { job: job.id, request, command, if_rev: Some(job.rev), actor: user() };
    let first = world.store.steer(write.clone()).await.unwrap();
    let after = world.snapshot(job.id).await;
    assert_eq!(world.store.steer(write).await.unwrap(), first);
    assert_eq!(world.snapshot(job.id).await, after);
}
