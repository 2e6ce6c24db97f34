//! The way of a result into its branch: who may take it, what is announced before it is pushed, what settles it.

use std::time::Duration;

use giga_domain::job::{ConflictPolicy, MergeCandidate, Merging};
use giga_domain::transition::MERGE_QUEUE;
use giga_domain::{
    Command, Epoch, EventKind, FailReason, HolderAction, Job, JobResult, MergeAction, MergeOutcome,
    MergeState, OperatorAction, Refusal, RepoCommit, RunReport, Stage, Timestamp, Verdict, transition,
};

use crate::transition::fixture::{NOW, factory, holder, job_in, operator};

const LEASE: Duration = Duration::from_secs(45);

fn testing() -> Job {
    let mut job = job_in(Stage::Testing);
    job.spec.repo = Some("hello".to_owned());
    job.last_factory = Some(factory("a"));
    let (branch, commit) = ("giga/job/x/7".to_owned(), "c0ffee".to_owned());
    job.result =
        Some(JobResult { epoch: Epoch(7), branch, commit, base: None, unseen: None, repos: Vec::new() });
    job
}

fn shipping() -> Job {
    transition(&testing(), &operator(OperatorAction::Ship), NOW).expect("testing can be shipped").job
}

fn taken() -> Job {
    transition(&shipping(), &take("a"), NOW).unwrap().job
}

fn pushing() -> Job {
    transition(&taken(), &hold("a", 1, push("abc")), NOW).unwrap().job
}

fn take(who: &str) -> Command {
    Command::TakeMerge { factory: factory(who), lease: LEASE, joins: false }
}

fn hold(who: &str, attempt: u32, action: MergeAction) -> Command {
    Command::HoldMerge { factory: factory(who), attempt, action }
}

fn settle(who: &str, attempt: u32, outcome: MergeOutcome) -> Command {
    hold(who, attempt, MergeAction::Settle(outcome))
}

fn push(commit: &str) -> MergeAction {
    let (commit, tip) = (commit.to_owned(), Some("tip".to_owned()));
    let candidate = MergeCandidate { commit, tip, into: "main".to_owned(), head: None };
    MergeAction::Push { candidate, lease: LEASE }
}

fn merged() -> MergeOutcome {
    MergeOutcome::Merged { commit: "abc".to_owned(), into: "main".to_owned(), note: None }
}

fn conflict() -> MergeOutcome {
    MergeOutcome::Conflict { detail: "conflicts in src/lib.rs".to_owned() }
}

fn refused() -> MergeOutcome {
    MergeOutcome::Refused { detail: "pre-receive hook declined".to_owned() }
}

fn unreachable() -> MergeOutcome {
    MergeOutcome::Unreachable { detail: "connection refused".to_owned() }
}

fn not_claimable(job: &Job, command: &Command, now: Timestamp) {
    let refused = transition(job, command, now).unwrap_err();
    assert!(matches!(refused, Refusal::NotClaimable(_)), "{refused}");
}

#[test]
fn a_result_is_shipped_when_it_is_in_and_what_has_none_at_once() {
    let job = shipping();
    assert_eq!(job.stage(), Stage::Shipping);
    let next = transition(&pushing(), &settle("a", 1, merged()), NOW).unwrap();
    assert_eq!(next.job.stage(), Stage::Shipped);
    let kinds: Vec<_> = next.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Merged, EventKind::Shipped]);
    let done = MergeState::Done { commit: "abc".to_owned(), into: Some("main".to_owned()), note: None };
    assert_eq!(next.job.merge.clone().unwrap().state, done);
    let mut without = [testing(), testing()];
    without[0].spec.repo = None;
    without[1].result = None;
    for job in without {
        let next = transition(&job, &operator(OperatorAction::Ship), NOW).unwrap().job;
        assert_eq!((next.stage(), next.merge), (Stage::Shipped, None));
    }
    for stage in Stage::ALL {
        not_claimable(&job_in(stage), &take("a"), NOW);
    }
}

#[test]
fn a_report_leaves_what_it_hands_over_under_its_own_epoch() {
    let report = RunReport {
        branch: Some("giga/job/x/7".to_owned()),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    };
    let command = holder("a", 7, vec![HolderAction::Report(report)]);
    let result = transition(&job_in(Stage::Building), &command, NOW).unwrap().job.result.unwrap();
    assert_eq!((result.epoch, result.commit.as_str()), (Epoch(7), "c0ffee"));
}

#[test]
fn whoever_ran_it_goes_first_and_a_silent_holder_is_replaced_and_no_longer_heard() {
    let job = shipping();
    not_claimable(&job, &take("b"), NOW);
    assert!(transition(&job, &take("b"), NOW.plus(Duration::from_secs(10))).is_ok());
    let taken = taken();
    not_claimable(&taken, &take("b"), NOW.plus(LEASE.saturating_sub(Duration::from_millis(1))));
    let later = NOW.plus(LEASE);
    let retaken = transition(&taken, &take("b"), later).unwrap().job;
    for action in [MergeAction::Renew { lease: LEASE }, push("abc"), MergeAction::Settle(refused())] {
        not_claimable(&retaken, &hold("a", 1, action), later);
    }
    assert!(transition(&retaken, &hold("b", 2, push("abc")), later).is_ok());
}

#[test]
fn a_renewal_lasts_and_says_nothing() {
    let next =
        transition(&taken(), &hold("a", 1, MergeAction::Renew { lease: LEASE }), NOW.plus(LEASE)).unwrap();
    assert!(next.is_silent());
    not_claimable(&next.job, &take("b"), NOW.plus(LEASE));
}

#[test]
fn what_is_announced_is_finished_by_whoever_comes_next() {
    let retaken = transition(&pushing(), &take("b"), NOW.plus(LEASE)).unwrap().job;
    let state = &retaken.merge.as_ref().unwrap().state;
    assert!(matches!(state, MergeState::Pushing { candidate, .. } if candidate.commit == "abc"), "{state:?}");
    not_claimable(&retaken, &hold("b", 2, push("another")), NOW);
    for against in [conflict(), MergeOutcome::ChecksFailed { detail: "make test".to_owned() }] {
        not_claimable(&retaken, &settle("b", 2, against), NOW);
    }
    let cancel = transition(&retaken, &operator(OperatorAction::Cancel), NOW).unwrap_err();
    assert!(cancel.to_string().contains("being pushed"), "{cancel}");
    let done = transition(&retaken, &settle("b", 2, merged()), NOW).unwrap().job;
    assert_eq!(done.stage(), Stage::Shipped);
    let again = transition(&done, &settle("b", 2, merged()), NOW).unwrap();
    assert!(again.is_silent(), "a repeated settlement");
}

#[test]
fn a_push_that_may_have_arrived_is_looked_for_for_a_day() {
    let mut job = pushing();
    let mut now = NOW;
    for attempt in 1..=40 {
        job = transition(&job, &settle("a", attempt, unreachable()), now).unwrap().job;
        assert!(job.merge.as_ref().unwrap().is_pushing(), "attempt {attempt}");
        now = job.merge.as_ref().unwrap().due().unwrap();
        job = transition(&job, &take("a"), now).unwrap().job;
    }
    let outrun = transition(&job, &settle("a", 41, MergeOutcome::Outrun), now).unwrap().job;
    assert!(matches!(outrun.merge.unwrap().state, MergeState::Waiting { due, .. } if due == now));
    for attempt in 41.. {
        job = transition(&job, &settle("a", attempt, unreachable()), now).unwrap().job;
        let Some(due) = job.merge.as_ref().unwrap().due() else { break };
        now = due;
        job = transition(&job, &take("a"), now).unwrap().job;
    }
    assert!(now.since(NOW) >= Duration::from_hours(20), "{:?}", now.since(NOW));
    assert_eq!(job.failure().unwrap().reason, FailReason::MergeRefused);
}

#[test]
fn a_conflict_is_done_again_with_the_facts_and_not_for_ever() {
    let mut job = taken();
    for redo in 1..=2 {
        let next = transition(&job, &settle("a", 1, conflict()), NOW).unwrap().job;
        assert_eq!(next.stage(), Stage::Queued, "redo {redo}");
        assert_eq!(next.checkpoint, None, "on the branch as it is now");
        let note = next.reviews.last().unwrap();
        assert_eq!((note.reviewer.as_str(), note.verdict), (MERGE_QUEUE, Verdict::RequestChanges));
        let facts = note.comment.as_deref().unwrap();
        assert!(facts.contains("src/lib.rs") && facts.contains("c0ffee"), "{facts}");
        job = testing();
        job.merge.clone_from(&next.merge);
        job = transition(&job, &operator(OperatorAction::Ship), NOW).unwrap().job;
        job = transition(&job, &take("a"), NOW).unwrap().job;
    }
    let next = transition(&job, &settle("a", 1, conflict()), NOW).unwrap().job;
    assert_eq!(next.failure().unwrap().reason, FailReason::MergeConflict);
    let again = transition(&next, &operator(OperatorAction::Ship), NOW).unwrap().job;
    assert_eq!(again.stage(), Stage::Shipping, "somebody may have made room for it");
}

#[test]
fn a_job_that_is_not_to_be_done_again_fails() {
    let mut job = taken();
    job.spec.on_conflict = ConflictPolicy::Fail;
    let failed = MergeOutcome::ChecksFailed { detail: "make test: exit status: 2".to_owned() };
    let next = transition(&job, &settle("a", 1, failed), NOW).unwrap().job;
    let failure = next.failure().unwrap();
    assert_eq!(failure.reason, FailReason::MergeChecksFailed);
    assert_eq!(failure.detail.as_deref(), Some("make test: exit status: 2"));
}

#[test]
fn refusals_pause_longer_and_longer_and_end_in_a_failure() {
    for (outcome, most) in [(refused(), 5), (unreachable(), 16)] {
        let (mut job, mut now, mut pauses) = (shipping(), NOW, Vec::new());
        for attempt in 1..=most {
            job = transition(&job, &take("a"), now).unwrap().job;
            job = transition(&job, &settle("a", attempt, outcome.clone()), now).unwrap().job;
            if let Some(due) = job.merge.as_ref().unwrap().due() {
                pauses.push(due.since(now));
                now = due;
            }
        }
        assert!(pauses.is_sorted() && pauses.len() == most as usize - 1, "{pauses:?}");
        assert_eq!(job.failure().unwrap().reason, FailReason::MergeRefused);
        not_claimable(&job, &take("a"), now.plus(LEASE));
    }
}

const fn at<'a>(repo: &'a str, commit: &'a str) -> Merging<'a> {
    Merging { repo, commit, base: None }
}

fn of_two() -> Job {
    let mut job = testing();
    job.spec.repo = Some("app".to_owned());
    job.spec.more_repos = vec!["lib".to_owned(), "docs".to_owned()];
    let commit =
        |repo: &str| RepoCommit { repo: repo.to_owned(), commit: format!("{repo}-result"), base: None };
    let report = RunReport {
        branch: Some("giga/job/x/7".to_owned()),
        commit: Some("app-result".to_owned()),
        // In any order, and with one that is not the job's.
        repos: ["lib", "elsewhere", "app"].map(commit).into(),
        ..RunReport::default()
    };
    job.state = job_in(Stage::Building).state;
    job.spec.ship = giga_domain::job::ShipMode::Auto;
    job.spec.review = giga_domain::job::ReviewGate::default();
    let command = holder("a", 7, vec![HolderAction::Report(report)]);
    transition(&job, &command, NOW).unwrap().job
}

#[test]
fn several_repositories_are_merged_in_the_order_of_the_manifest_and_the_last_one_ships() {
    let job = of_two();
    assert_eq!((job.stage(), job.merging()), (Stage::Shipping, Some(at("app", "app-result"))));
    let taken = transition(&job, &take("a"), NOW).unwrap().job;
    let half = transition(&taken, &settle("a", 1, merged()), NOW).unwrap();
    let kinds: Vec<_> = half.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Merged]);
    let half = half.job;
    assert_eq!((half.stage(), half.merging()), (Stage::Shipping, Some(at("lib", "lib-result"))));
    // The answer was lost: said again, it changes nothing. What it had is not its any more.
    assert_eq!(transition(&half, &settle("a", 1, merged()), NOW).unwrap().job, half);
    not_claimable(&half, &settle("a", 1, conflict()), NOW);

    let taken = transition(&half, &take("a"), NOW).unwrap().job;
    let done = transition(&taken, &settle("a", 2, merged()), NOW).unwrap().job;
    let merge = done.merge.clone().unwrap();
    let repos: Vec<_> = merge.merged.iter().map(|one| one.repo.as_str()).collect();
    assert_eq!((done.stage(), repos), (Stage::Shipped, vec!["app", "lib"]));
}

#[test]
fn what_is_half_in_says_so_and_its_next_result_begins_anew() {
    let taken = transition(&of_two(), &take("a"), NOW).unwrap().job;
    let half = transition(&taken, &settle("a", 1, merged()), NOW).unwrap().job;
    let taken = transition(&half, &take("a"), NOW).unwrap().job;
    let again = transition(&taken, &settle("a", 2, conflict()), NOW).unwrap().job;
    assert_eq!(again.stage(), Stage::Queued);
    let facts = again.reviews.last().unwrap().comment.clone().unwrap();
    for word in ["lib (merged already: app as abc in main): conflicts in src/lib.rs", "lib-result in lib"] {
        assert!(facts.contains(word), "{facts}");
    }
    let mut building = again.clone();
    building.state = job_in(Stage::Building).state;
    building.epoch = Epoch(7);
    let report = RunReport {
        branch: Some("giga/job/x/7".to_owned()),
        commit: Some("lib-again".to_owned()),
        repos: vec![RepoCommit { repo: "lib".to_owned(), commit: "lib-again".to_owned(), base: None }],
        ..RunReport::default()
    };
    let reported =
        transition(&building, &holder("a", 7, vec![HolderAction::Report(report)]), NOW).unwrap().job;
    assert_eq!((reported.stage(), reported.merging()), (Stage::Shipping, Some(at("lib", "lib-again"))));
    assert_eq!(reported.merge.unwrap().merged.len(), 1, "what is in stays in");

    let mut strict = taken;
    strict.spec.on_conflict = ConflictPolicy::Fail;
    let failed = transition(&strict, &settle("a", 2, conflict()), NOW).unwrap().job;
    let detail = failed.failure().unwrap().detail.clone().unwrap();
    assert!(detail.starts_with("lib (merged already: app as abc in main): "), "{detail}");
    let shipped = transition(&failed, &operator(OperatorAction::Ship), NOW).unwrap().job;
    assert_eq!((shipped.stage(), shipped.merging()), (Stage::Shipping, Some(at("lib", "lib-result"))));
}

/// With a candidate that may have arrived, too, it is said once and waited for: nobody has it until then.
#[test]
fn an_outage_in_the_middle_of_a_push_is_counted_once_and_waited_out() {
    let away = settle("a", 1, unreachable());
    let paused = transition(&pushing(), &away, NOW).unwrap().job;
    assert_eq!(paused.merge.as_ref().unwrap().failures, 1);
    not_claimable(&paused, &away, NOW);
    not_claimable(&paused, &take("a"), NOW);
    let later = paused.merge.as_ref().unwrap().due().unwrap();
    assert!(later > NOW);
    let again = transition(&paused, &take("a"), later).unwrap().job;
    assert_eq!(again.merge.unwrap().candidate().unwrap().commit, "abc");
}
