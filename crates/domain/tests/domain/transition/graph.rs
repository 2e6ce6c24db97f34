//! What becomes of a job because of those that it hangs on: deps, children, its parent.

use giga_domain::job::{DepsMode, FailurePolicy, JobKind, ReviewGate, ShipMode};
use giga_domain::transition::{Deps, ParentEnd, Relations, RunChange, Tally, was_cancelled};
use giga_domain::{
    Command, EventKind, FailReason, Job, JobId, OperatorAction, Refusal, RunOutcome, Stage, State, Timestamp,
    Transition, Verdict, transition,
};

use crate::transition::fixture::{LEASE, NOW, failure, job_in, operator, review};

fn deps(shipped: u32, lost: u32, open: u32) -> Relations {
    Relations { deps: Deps { shipped, lost, open }, ..Relations::default() }
}

fn children(shipped: u32, failed: u32, open: u32) -> Relations {
    Relations { children: Tally { shipped, failed, open }, ..Relations::default() }
}

fn parent(stage: Stage) -> Relations {
    Relations { parent: Some(ParentEnd { parent: JobId::from_parts(NOW, 9), stage }), ..Relations::default() }
}

fn composite(policy: FailurePolicy) -> Job {
    let mut job = job_in(Stage::Blocked);
    job.spec.kind = JobKind::Composite;
    job.spec.on_failure = policy;
    job.spec.ship = ShipMode::Auto;
    job.spec.review = ReviewGate::default();
    job
}

fn waiting(mode: DepsMode) -> Job {
    let mut job = job_in(Stage::Blocked);
    job.spec.deps_mode = mode;
    job
}

fn reconsidered(job: &Job, relations: Relations) -> Transition {
    let next = transition(job, &Command::Reconsider(relations), NOW).expect("nothing refuses a second look");
    // Once more, on what it became: a sweep may come twice.
    let again = transition(&next.job, &Command::Reconsider(relations), NOW).expect("nor a third");
    assert!(again.is_silent(), "{:?} moved on to {:?}", next.job.state, again.job.state);
    next
}

/// The stage after it, where it moved.
fn outcome(job: &Job, relations: Relations) -> Option<Stage> {
    let next = reconsidered(job, relations);
    (!next.is_silent()).then(|| next.job.stage())
}

#[test]
fn deps_let_a_job_go_or_fail_it() {
    let expected = [
        // shipped, lost, open: under `all`, under `any`
        ((0, 0, 2), None, None),
        ((1, 0, 1), None, Some(Stage::Queued)),
        ((2, 0, 0), Some(Stage::Queued), Some(Stage::Queued)),
        ((1, 1, 0), Some(Stage::Failed), Some(Stage::Queued)),
        ((0, 1, 1), Some(Stage::Failed), None),
        ((0, 2, 0), Some(Stage::Failed), Some(Stage::Failed)),
    ];
    for ((shipped, lost, open), all, any) in expected {
        let relations = deps(shipped, lost, open);
        assert_eq!(outcome(&waiting(DepsMode::All), relations), all, "all of {relations:?}");
        assert_eq!(outcome(&waiting(DepsMode::Any), relations), any, "any of {relations:?}");
    }
}

#[test]
fn what_can_never_come_is_told() {
    let next = reconsidered(&waiting(DepsMode::All), deps(3, 2, 1));
    let failure = next.job.failure().unwrap();
    assert_eq!(failure.reason, FailReason::DependencyFailed);
    assert_eq!(failure.detail.as_deref(), Some("2 of its deps will never ship"));
    assert_eq!(next.job.attempts, 0, "nobody tried");
    assert_eq!(next.events[0].kind, EventKind::Failed);
}

#[test]
fn a_job_that_is_let_go_still_keeps_its_time() {
    let mut job = waiting(DepsMode::All);
    let at = NOW.plus(LEASE);
    job.spec.run_at = Some(at);
    let next = reconsidered(&job, deps(1, 0, 0)).job;
    assert!(matches!(next.state, State::Queued { ready_at, .. } if ready_at == at), "{:?}", next.state);
    assert_eq!(next.enqueued_at, at);
    job.spec.run_at = Some(Timestamp::ZERO);
    assert_eq!(reconsidered(&job, deps(1, 0, 0)).job.enqueued_at, NOW, "what lay behind it counts from now");
}

/// Whoever requeues it lets it go without its deps, not before its time.
#[test]
fn a_job_that_lost_its_deps_is_requeued_for_its_time() {
    let mut job = waiting(DepsMode::All);
    let at = NOW.plus(LEASE);
    job.spec.run_at = Some(at);
    let failed = reconsidered(&job, deps(0, 1, 0)).job;
    let next = transition(&failed, &operator(OperatorAction::Requeue), NOW).unwrap().job;
    assert!(matches!(next.state, State::Queued { ready_at, .. } if ready_at == at), "{:?}", next.state);
    assert_eq!(outcome(&next, deps(0, 1, 0)), None, "what it waited for is nothing to it any more");
}

/// Deps and children say something to a job that waits for them, and to no other.
#[test]
fn whoever_does_not_wait_is_left_alone() {
    let all_at_once = Relations { children: Tally { shipped: 1, failed: 1, open: 0 }, ..deps(0, 1, 0) };
    for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::Blocked) {
        assert_eq!(outcome(&job_in(stage), all_at_once), None, "{stage}");
    }
}

#[test]
fn children_end_a_composite() {
    let expected = [
        // shipped, failed, open: failing fast, going on
        ((0, 0, 0), None, None),
        ((0, 0, 3), None, None),
        ((2, 0, 1), None, None),
        ((3, 0, 0), Some(Stage::Shipped), Some(Stage::Shipped)),
        ((1, 1, 1), Some(Stage::Failed), None),
        ((0, 1, 2), Some(Stage::Failed), None),
        ((2, 1, 0), Some(Stage::Failed), Some(Stage::Failed)),
        ((0, 3, 0), Some(Stage::Failed), Some(Stage::Failed)),
    ];
    for ((shipped, failed, open), fast, on) in expected {
        let relations = children(shipped, failed, open);
        assert_eq!(outcome(&composite(FailurePolicy::FailFast), relations), fast, "fail_fast: {relations:?}");
        assert_eq!(outcome(&composite(FailurePolicy::Continue), relations), on, "continue: {relations:?}");
    }
    let next = reconsidered(&composite(FailurePolicy::Continue), children(2, 1, 0));
    let failure = next.job.failure().unwrap();
    assert_eq!(failure.reason, FailReason::ChildFailed);
    assert_eq!(failure.detail.as_deref(), Some("1 of 3 children failed"));
}

/// The children of an agent are its own business: it does not wait for them.
#[test]
fn an_agent_does_not_wait_for_its_children() {
    let relations = Relations { deps: Deps { open: 1, ..Deps::default() }, ..children(1, 1, 0) };
    assert_eq!(outcome(&waiting(DepsMode::All), relations), None);
    let relations = Relations { deps: Deps { shipped: 1, ..Deps::default() }, ..children(0, 1, 1) };
    assert_eq!(outcome(&waiting(DepsMode::All), relations), Some(Stage::Queued));
}

/// Its children wait for them, or were requeued without them.
#[test]
fn the_deps_of_a_composite_are_its_own_only_while_it_has_no_children() {
    let job = composite(FailurePolicy::FailFast);
    assert_eq!(outcome(&job, deps(1, 0, 1)), None);
    assert_eq!(outcome(&job, deps(2, 0, 0)), None, "it still waits for children");
    assert_eq!(outcome(&job, deps(1, 1, 0)), Some(Stage::Failed));
    for Relations { deps, .. } in [deps(1, 0, 1), deps(2, 0, 0), deps(1, 1, 0)] {
        assert_eq!(outcome(&job, Relations { deps, ..children(2, 0, 0) }), Some(Stage::Shipped), "{deps:?}");
        assert_eq!(outcome(&job, Relations { deps, ..children(1, 0, 1) }), None, "{deps:?}");
        assert_eq!(outcome(&job, Relations { deps, ..children(1, 1, 1) }), Some(Stage::Failed), "{deps:?}");
    }
}

#[test]
fn gates_stand_before_a_composite_too() {
    let mut job = composite(FailurePolicy::FailFast);
    job.spec.review = ReviewGate { quorum: 1, reviewers: Vec::new() };
    let in_review = reconsidered(&job, children(2, 0, 0));
    assert_eq!(in_review.job.stage(), Stage::Review);
    assert_eq!(in_review.events[0].kind, EventKind::ChildrenDone);
    let shipped = transition(&in_review.job, &review(Verdict::Approve, "ana"), NOW).unwrap().job;
    assert_eq!(shipped.stage(), Stage::Shipped);
    let changes = transition(&in_review.job, &review(Verdict::RequestChanges, "ana"), NOW);
    assert!(matches!(changes, Err(Refusal::Illegal { .. })), "there is no run to do again");
    job.spec.review = ReviewGate::default();
    job.spec.ship = ShipMode::Manual;
    assert_eq!(outcome(&job, children(2, 0, 0)), Some(Stage::Testing));
}

#[test]
fn a_parents_end_ends_its_children() {
    for stage in Stage::ALL {
        let cancelled = outcome(&job_in(stage), parent(Stage::Cancelled));
        assert_eq!(cancelled, (!stage.is_terminal()).then_some(Stage::Cancelled), "{stage}");
        // The one that failed is what an operator wants to see, and to try again.
        let failed_fast = outcome(&job_in(stage), parent(Stage::Failed));
        let spared = stage.is_terminal() || stage == Stage::Failed;
        assert_eq!(failed_fast, (!spared).then_some(Stage::Cancelled), "{stage}");
    }
}

#[test]
fn a_parents_end_stands_above_deps_and_children() {
    let relations = Relations { deps: Deps { lost: 1, ..Deps::default() }, ..parent(Stage::Failed) };
    assert_eq!(
        outcome(&waiting(DepsMode::All), relations),
        Some(Stage::Cancelled),
        "not failed for its deps"
    );
    let relations =
        Relations { children: Tally { shipped: 1, ..Tally::default() }, ..parent(Stage::Cancelled) };
    assert_eq!(outcome(&composite(FailurePolicy::FailFast), relations), Some(Stage::Cancelled));
}

#[test]
fn a_held_child_is_ended_like_any_cancelled_job() {
    for stage in [Stage::Assigned, Stage::Building] {
        let before = job_in(stage);
        let next = reconsidered(&before, parent(Stage::Failed));
        assert!(next.job.lease().is_none() && next.charge.is_some(), "{stage}");
        assert!(was_cancelled(&next.job, before.epoch), "its holder learns of it");
        let closed = matches!(next.run[..], [RunChange::Close { outcome: RunOutcome::Cancelled, .. }]);
        assert!(closed, "{:?}", next.run);
        let State::Cancelled { reason: Some(reason) } = &next.job.state else { panic!("no reason is kept") };
        assert!(reason.starts_with("its parent ") && reason.ends_with(" is failed"), "{reason}");
    }
}

#[test]
fn which_parents_end_their_children() {
    for stage in Stage::ALL {
        let agent = job_in(stage);
        let end = |stage: Stage| Some(ParentEnd { parent: agent.id, stage });
        let cancelled = (stage == Stage::Cancelled).then_some(stage);
        assert_eq!(ParentEnd::of(&agent), cancelled.and_then(end), "an agent that is {stage}");
        let mut fast = agent.clone();
        fast.spec.kind = JobKind::Composite;
        let ends = cancelled.or((stage == Stage::Failed).then_some(stage));
        assert_eq!(ParentEnd::of(&fast), ends.and_then(end), "a composite that is {stage}");
        let later = ParentEnd::judge(fast.id, stage, &fast.spec, false);
        assert_eq!(later, cancelled.and_then(end), "a look for another reason, and it is {stage}");
        fast.spec.on_failure = FailurePolicy::Continue;
        assert_eq!(ParentEnd::of(&fast), cancelled.and_then(end), "one that goes on, and is {stage}");
    }
}

#[test]
fn stages_are_counted_as_what_they_mean_to_others() {
    let (mut children, mut deps) = (Tally::default(), Deps::default());
    for stage in Stage::ALL {
        children.add(stage, 2);
        deps.add(Some(stage), 2);
    }
    let open = 2 * u32::try_from(Stage::ALL.len() - 4).unwrap();
    assert_eq!(children, Tally { shipped: 2, failed: 6, open });
    // A failed dep may yet be tried again; one that is gone will not.
    deps.add(None, 3);
    assert_eq!(deps, Deps { shipped: 2, lost: 7, open: open + 2 });
}

#[test]
fn a_composite_that_is_requeued_waits_again() {
    let mut failed = composite(FailurePolicy::Continue);
    failed.state = State::Failed { failure: failure(FailReason::ChildFailed) };
    let next = transition(&failed, &operator(OperatorAction::Requeue), NOW).unwrap();
    assert_eq!((next.job.stage(), next.events[0].kind), (Stage::Blocked, EventKind::Requeued));
    let again = transition(&next.job, &operator(OperatorAction::Requeue), NOW).unwrap();
    assert!(again.is_silent());
    assert_eq!(outcome(&next.job, children(1, 0, 1)), None);
    assert_eq!(outcome(&next.job, children(2, 0, 0)), Some(Stage::Shipped));
    assert_eq!(outcome(&next.job, children(1, 1, 0)), Some(Stage::Failed), "nothing was done about it");
}

/// Which child failed is nothing to it: only that none of them has any more.
#[test]
fn a_composite_recovers_when_what_failed_is_tried_again() {
    let expected = [
        // shipped, failed, open: having failed fast, having gone on
        ((0, 0, 0), None, None),
        // Those that are open may be about to be cancelled.
        ((0, 0, 2), None, Some(Stage::Blocked)),
        ((1, 0, 1), None, Some(Stage::Blocked)),
        ((2, 0, 0), Some(Stage::Shipped), Some(Stage::Shipped)),
        // Another one failed, or was cancelled.
        ((1, 1, 0), None, None),
        ((1, 1, 1), None, None),
    ];
    for policy in [FailurePolicy::FailFast, FailurePolicy::Continue] {
        for reason in FailReason::ALL {
            let mut failed = composite(policy);
            failed.state = State::Failed { failure: failure(reason) };
            for ((shipped, lost, open), fast, on) in expected {
                let stage = if policy == FailurePolicy::FailFast { fast } else { on };
                let stage = stage.filter(|_| reason == FailReason::ChildFailed);
                let relations = children(shipped, lost, open);
                assert_eq!(outcome(&failed, relations), stage, "{policy}, {reason}: {relations:?}");
            }
        }
    }
    let mut failed = composite(FailurePolicy::Continue);
    failed.state = State::Failed { failure: failure(FailReason::ChildFailed) };
    let kinds: Vec<EventKind> =
        reconsidered(&failed, children(2, 0, 0)).events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [EventKind::ChildrenRetried, EventKind::Shipped], "it says why it goes on");
    failed.spec.review = ReviewGate { quorum: 1, reviewers: Vec::new() };
    assert_eq!(outcome(&failed, children(2, 0, 0)), Some(Stage::Review), "its gates hold");
    let again = reconsidered(&failed, children(1, 0, 1)).job;
    assert_eq!(outcome(&again, children(1, 1, 0)), Some(Stage::Failed), "it may fail once more");
}
