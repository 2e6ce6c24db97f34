//! Every stage under every command, as a table to be read beside the specification; and the gates.

use giga_domain::job::{ReviewGate, ShipMode};
use giga_domain::transition::{Deps, ParentEnd, Relations, RunChange};
use giga_domain::{
    Command, EventKind, FailReason, HolderAction, Job, OperatorAction, Refusal, RequestChange, RequestNews,
    Rev, RunOutcome, Stage, State, Target, Timestamp, Usd, Verdict, transition,
};

use crate::transition::fixture::*;

const TABLE: &str = include_str!("table.txt");
/// The rows of steps that no command of the others takes.
const ALSO: &str = "also";

/// Name and cells of each row, the header first.
fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, cells)| (name, cells.split_whitespace().collect()))
}

fn shipped(shipped: u32) -> Deps {
    Deps { shipped, ..Deps::default() }
}

/// The command of a row, and when it is given.
fn row(name: &str) -> (Command, Timestamp) {
    let by_holder = |action| holder("a", 7, vec![action]);
    let command = match name {
        "claim" => claim("b", "second"),
        "start" => by_holder(HolderAction::Start),
        "renew" => by_holder(HolderAction::Renew { lease: LEASE }),
        "checkpoint" => by_holder(HolderAction::Checkpoint(checkpoint())),
        "report" => by_holder(report()),
        "fail" => by_holder(fail(false)),
        "fail_retryable" => by_holder(fail(true)),
        "release" => by_holder(HolderAction::Release { checkpoint: None }),
        "nothing" => holder("a", 7, Vec::new()),
        "expire" => return (Command::Expire, NOW.plus(LEASE)),
        "expire_too_early" => return (Command::Expire, NOW),
        "spend" => by_holder(spend(5)),
        "ask" => by_holder(ask("which port?")),
        "delivered" => by_holder(HolderAction::Delivered(vec![1])),
        "say" => Command::Say { id: request("say"), text: "faster".to_owned(), by: "ana".to_owned() },
        "close_questions" => Command::CloseQuestions,
        "evict" => evict(Rev(11)),
        "deps_shipped" => Command::Reconsider(Relations { deps: shipped(1), ..Relations::default() }),
        "deps_lost" => {
            Command::Reconsider(Relations { deps: Deps { lost: 1, ..shipped(1) }, ..Relations::default() })
        }
        "parent_ended" => {
            let end = ParentEnd { parent: giga_domain::JobId::MIN, stage: Stage::Cancelled };
            Command::Reconsider(Relations { parent: Some(end), ..Relations::default() })
        }
        "request_review" => {
            let gate = ReviewGate { quorum: 2, reviewers: Vec::new() };
            Command::RequestReview { gate, may_weaken: false }
        }
        "request_merged" => {
            let change = RequestChange::Merged { commit: "abc".to_owned(), into: "main".to_owned() };
            Command::RequestNews(RequestNews { about: "c0ffee".to_owned(), change })
        }
        "target" => Command::Target { rev: Rev(11), factory: factory("b"), pickup_deadline: NOW.plus(LEASE) },
        "ship" => operator(OperatorAction::Ship),
        "requeue" => operator(OperatorAction::Requeue),
        "reject" => operator(OperatorAction::Reject),
        "cancel" => operator(OperatorAction::Cancel),
        "approve" => review(Verdict::Approve, "ana"),
        "request_changes" => review(Verdict::RequestChanges, "ana"),
        "reject_in_review" => review(Verdict::Reject, "ana"),
        unknown => panic!("no command for the row {unknown}"),
    };
    (command, NOW)
}

fn outcome(before: &Job, command: &Command, now: Timestamp) -> String {
    match transition(before, command, now) {
        Err(Refusal::Fenced { given, current, stage }) => {
            assert_eq!((given.0, current, stage), (7, before.epoch, before.stage()));
            "fenced".to_owned()
        }
        Err(Refusal::Illegal { from, .. }) => {
            assert_eq!(from, before.stage());
            "illegal".to_owned()
        }
        Err(Refusal::NotClaimable(_)) => "taken".to_owned(),
        Err(
            refusal @ (Refusal::NotAReviewer(..)
            | Refusal::WeakerGate { .. }
            | Refusal::OtherResult { .. }
            | Refusal::OtherCommit { .. }
            | Refusal::Unseen(_)
            | Refusal::Talk(_)),
        ) => panic!("{refusal}"),
        Ok(after) if after.is_silent() => {
            assert_eq!((after.job.stage(), after.job.rev), (before.stage(), before.rev));
            ".".to_owned()
        }
        Ok(after) if after.job.stage() == before.stage() => "+".to_owned(),
        Ok(after) => {
            let event = after.events.last().expect("a step has an event");
            assert_eq!((event.from, event.to), (Some(before.stage()), Some(after.job.stage())));
            assert!(!event.cause.is_empty(), "every step says why");
            after.job.stage().to_string()
        }
    }
}

#[test]
fn every_stage_under_every_command() {
    let (_, header) = rows().next().expect("a header");
    let stages: Vec<Stage> = header.iter().map(|s| s.parse().expect("a stage")).collect();
    assert_eq!(stages, Stage::ALL);
    let commands: Vec<_> = rows().skip(1).filter(|(name, _)| *name != ALSO).collect();
    for (name, cells) in &commands {
        assert_eq!(cells.len(), stages.len(), "{name}");
        let (command, now) = row(name);
        for (stage, expected) in stages.iter().zip(cells) {
            assert_eq!(outcome(&job_in(*stage), &command, now), *expected, "{name} when {stage}");
        }
    }
    assert_eq!(commands.len(), 30, "a command without a row");
}

/// Each step that the table of the specification has may be taken, and no other.
#[test]
fn the_table_reaches_all_that_may_become() {
    let steps = |cells: Vec<&'static str>| {
        Stage::ALL.into_iter().zip(cells).filter_map(|(from, cell)| Some((from, cell.parse::<Stage>().ok()?)))
    };
    let reached: Vec<(Stage, Stage)> = rows().skip(1).flat_map(|(_, cells)| steps(cells)).collect();
    for from in Stage::ALL {
        for to in Stage::ALL {
            assert_eq!(reached.contains(&(from, to)), from.may_become(to), "{from} -> {to}");
        }
    }
}

fn gated(stage: Stage, quorum: u32, reviewers: &[&str], ship: ShipMode) -> Job {
    let mut job = job_in(stage);
    job.spec.review.quorum = quorum;
    job.spec.review.reviewers = reviewers.iter().map(|name| (*name).to_owned()).collect();
    job.spec.ship = ship;
    job
}

fn stage_after(job: &Job, command: &Command) -> Stage {
    transition(job, command, NOW).expect("allowed").job.stage()
}

#[test]
fn the_gates_decide_where_success_leads() {
    let success = holder("a", 7, vec![report()]);
    for (quorum, ship, expected) in [
        (0, ShipMode::Manual, Stage::Testing),
        (0, ShipMode::Auto, Stage::Shipped),
        (1, ShipMode::Manual, Stage::Review),
        (1, ShipMode::Auto, Stage::Review),
    ] {
        assert_eq!(stage_after(&gated(Stage::Building, quorum, &[], ship), &success), expected);
    }
    for (ship, expected) in [(ShipMode::Manual, Stage::Testing), (ShipMode::Auto, Stage::Shipped)] {
        let job = gated(Stage::Review, 1, &[], ship);
        assert_eq!(stage_after(&job, &review(Verdict::Approve, "ana")), expected);
    }
}

#[test]
fn a_quorum_counts_each_named_reviewer_once() {
    let job = gated(Stage::Review, 2, &["ana", "bo", "cy"], ShipMode::Manual);
    let one = transition(&job, &review(Verdict::Approve, "ana"), NOW).unwrap();
    assert_eq!(one.job.state, State::Review { approvals: vec!["ana".to_owned()] });
    assert_eq!(one.events.len(), 1);
    let again = transition(&one.job, &review(Verdict::Approve, "ana"), NOW).unwrap();
    assert!(again.is_silent() && again.job == one.job, "the same reviewer counts once");
    let stranger = transition(&one.job, &review(Verdict::Approve, "eve"), NOW).unwrap_err();
    assert_eq!(stranger.to_string(), "eve may not review this job; its reviewers are ana, bo, cy");
    assert_eq!(stage_after(&one.job, &review(Verdict::Approve, "bo")), Stage::Testing);
}

#[test]
fn a_next_round_of_review_starts_from_nothing() {
    let job = gated(Stage::Review, 2, &[], ShipMode::Manual);
    let approved = transition(&job, &review(Verdict::Approve, "ana"), NOW).unwrap().job;
    let requeued = transition(&approved, &review(Verdict::RequestChanges, "bo"), NOW).unwrap().job;
    let claimed = transition(&requeued, &claim("a", "again"), NOW).unwrap().job;
    let actions = vec![HolderAction::Start, report()];
    let reviewed = transition(&claimed, &holder("a", claimed.epoch.0, actions), NOW).unwrap().job;
    assert_eq!(reviewed.state, State::Review { approvals: Vec::new() });
}

#[test]
fn a_rejection_is_a_failure_that_says_so() {
    for command in [review(Verdict::Reject, "ana"), operator(OperatorAction::Reject)] {
        let after = transition(&job_in(Stage::Review), &command, NOW).unwrap();
        assert_eq!(after.job.failure().unwrap().reason, FailReason::Rejected);
    }
}

#[test]
fn an_operator_gives_a_failed_job_its_attempts_back() {
    let mut job = job_in(Stage::Failed);
    job.attempts = 4;
    let after = transition(&job, &operator(OperatorAction::Requeue), NOW).unwrap().job;
    assert_eq!((after.attempts, after.stage()), (0, Stage::Queued));
}

#[test]
fn cancelling_a_held_job_ends_its_run() {
    for stage in [Stage::Assigned, Stage::Building] {
        let after = transition(&job_in(stage), &operator(OperatorAction::Cancel), NOW).unwrap();
        assert_eq!(after.run, [RunChange::Close { outcome: RunOutcome::Cancelled, report: Box::default() }]);
    }
    for stage in [Stage::Queued, Stage::Blocked, Stage::Review, Stage::Testing, Stage::Failed] {
        let after = transition(&job_in(stage), &operator(OperatorAction::Cancel), NOW).unwrap();
        assert!(after.run.is_empty(), "{stage}");
    }
}

#[test]
fn a_claim_is_a_compare_and_set() {
    let ask = |rev, dispatch_seq, at| {
        let (factory, request) = (factory("b"), request("r"));
        let command =
            Command::Claim { factory, request, rev, dispatch_seq, lease: LEASE, reserve: Usd::ZERO };
        move |job: &Job| transition(job, &command, at)
    };
    let job = job_in(Stage::Queued);
    let granted = ask(Some(Rev(11)), None, NOW)(&job).unwrap();
    assert_eq!(granted.job.epoch.0, 8);
    let lease = granted.job.lease().unwrap();
    assert_eq!((lease.granted_at, lease.expires_at), (NOW, NOW.plus(LEASE)));
    assert_eq!(granted.run, [RunChange::Open { factory: factory("b") }]);
    assert!(ask(Some(Rev(10)), None, NOW)(&job).is_err(), "somebody was faster");
    assert!(ask(None, Some(job.dispatch_seq.next()), NOW)(&job).is_err(), "another offer");
    assert!(ask(None, Some(job.dispatch_seq), NOW)(&job).is_ok());

    let mut later = job.clone();
    later.state = State::Queued { since: NOW, ready_at: NOW.plus(LEASE), target: None };
    assert!(ask(None, None, NOW)(&later).is_err(), "its time has not come");
    assert!(ask(None, None, NOW.plus(LEASE))(&later).is_ok());

    let mut offered = job;
    let target = Target::new(factory("a"), NOW.plus(LEASE));
    offered.state = State::Queued { since: NOW, ready_at: NOW, target: Some(target) };
    assert!(ask(None, None, NOW)(&offered).is_err(), "offered to another");
    assert!(transition(&offered, &claim("a", "r"), NOW).is_ok(), "the target may");
    assert!(ask(None, None, NOW.plus(LEASE))(&offered).is_ok(), "the target was silent for too long");
}

#[test]
fn a_target_needs_the_revision_that_the_dispatcher_saw() {
    let job = job_in(Stage::Queued);
    let target = |rev| Command::Target { rev, factory: factory("b"), pickup_deadline: NOW.plus(LEASE) };
    let after = transition(&job, &target(Rev(11)), NOW).unwrap().job;
    assert_eq!((after.dispatch_seq, after.rev), (job.dispatch_seq.next(), Rev(12)));
    assert_eq!(after.target().unwrap().factory, factory("b"));
    assert!(transition(&job, &target(Rev(10)), NOW).is_err());
}

/// Offers the job to the factory at that time.
fn offered(job: &Job, to: &str, at: Timestamp) -> Job {
    let command = Command::Target { rev: job.rev, factory: factory(to), pickup_deadline: at.plus(LEASE) };
    transition(job, &command, at).expect("a queued job can be offered").job
}

#[test]
fn everybody_who_missed_a_job_is_left_out_until_all_others_had_it() {
    let mut job = job_in(Stage::Queued);
    let mut now = NOW;
    let names: Vec<String> = (0..10).map(|n| format!("silent-{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        let target = job.target().cloned();
        let left_out = |who: &String| {
            let all: Vec<_> = target.iter().flat_map(|last| last.left_out(LEASE)).collect();
            all.iter().any(|(id, until)| id.as_str() == who && *until > now)
        };
        assert_eq!(names.iter().filter(|who| left_out(who)).count(), n, "only those that had it");
        job = offered(&job, name, now);
        now = now.plus(LEASE);
    }
    let missed: Vec<&str> = job.target().unwrap().missed.iter().map(|m| m.factory.as_str()).collect();
    assert_eq!(missed, names[..9].iter().map(String::as_str).collect::<Vec<_>>(), "oldest first");
    let later = offered(&job, "late", now.plus(LEASE * 20));
    assert_eq!(later.target().unwrap().missed, [], "nobody is left out for ever");
}

#[test]
fn an_offer_that_is_replaced_before_its_deadline_was_not_missed_and_the_list_stays_short() {
    let mut job = offered(&job_in(Stage::Queued), "first", NOW);
    job = offered(&job, "second", NOW);
    assert_eq!(job.target().unwrap().missed, []);
    for n in 0..40 {
        job = offered(&job, &format!("silent-{n}"), NOW.plus(LEASE * (n + 1)));
    }
    assert_eq!(job.target().unwrap().missed.len(), 16);
    let text = serde_json::to_string(&job.state).unwrap();
    assert_eq!(serde_json::from_str::<State>(&text).unwrap(), job.state);
    let before = r#"{"stage":"queued","since":"2026-01-01T00:00:00.000Z","readyAt":"2026-01-01T00:00:00.000Z","target":{"factory":"a","pickupDeadline":"2026-01-01T00:00:00.000Z"}}"#;
    let State::Queued { target: Some(target), .. } = serde_json::from_str(before).unwrap() else { panic!() };
    assert_eq!(target.missed, [], "what was written before there was a list can be read");
}

#[test]
fn an_ended_lease_names_the_factory_that_let_it_end() {
    let held = transition(&job_in(Stage::Queued), &claim("a", "r"), NOW).unwrap().job;
    let event = transition(&held, &Command::Expire, NOW.plus(LEASE)).unwrap().events.remove(0);
    assert_eq!((event.kind, event.data["factoryId"].as_str()), (EventKind::LeaseExpired, Some("a")));
}

#[test]
fn an_unblocked_job_still_waits_for_its_time() {
    let mut job = job_in(Stage::Blocked);
    let free = Command::Reconsider(Relations { deps: shipped(2), ..Relations::default() });
    let ready = |job: &Job| match transition(job, &free, NOW).unwrap().job.state {
        State::Queued { ready_at, .. } => ready_at,
        other => panic!("{other:?}"),
    };
    assert_eq!(ready(&job), NOW);
    job.spec.run_at = Some(NOW.plus(LEASE));
    assert_eq!(ready(&job), NOW.plus(LEASE));
    job.spec.run_at = Some(NOW.minus(LEASE));
    assert_eq!(ready(&job), NOW, "a time in the past is now");
}
