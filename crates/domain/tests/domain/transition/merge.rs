//! The order to merge: who may take it, what settles it, and that it never touches the stage.

use std::time::Duration;

use giga_domain::{
    Command, Epoch, HolderAction, Job, JobResult, Merge, MergeOutcome, OperatorAction, Refusal, RunReport,
    Stage, transition,
};

use crate::transition::fixture::{NOW, factory, holder, job_in, operator};

const PATIENCE: Duration = Duration::from_mins(5);

fn shipped() -> Job {
    let mut job = job_in(Stage::Testing);
    job.spec.repo = Some("hello".to_owned());
    job.last_factory = Some(factory("a"));
    let (branch, commit) = ("aq/job/x/7".to_owned(), "c0ffee".to_owned());
    job.result = Some(JobResult { epoch: Epoch(7), branch, commit });
    transition(&job, &operator(OperatorAction::Ship), NOW).expect("testing can be shipped").job
}

fn take(who: &str) -> Command {
    Command::TakeMerge { factory: factory(who), lease: PATIENCE }
}

fn settle(who: &str, attempt: u32, outcome: MergeOutcome) -> Command {
    Command::SettleMerge { factory: factory(who), attempt, outcome }
}

fn failed() -> MergeOutcome {
    MergeOutcome::Failed { detail: "origin is away".to_owned() }
}

#[test]
fn only_a_result_in_a_repository_that_shipped_is_ordered_to_be_merged() {
    assert!(matches!(shipped().merge, Some(Merge::Waiting { attempt: 1, .. })));
    let mut without_repo = job_in(Stage::Testing);
    without_repo.result = shipped().result;
    let next = transition(&without_repo, &operator(OperatorAction::Ship), NOW).unwrap();
    assert_eq!(next.job.merge, None);
    for stage in Stage::ALL {
        let refused = transition(&job_in(stage), &take("a"), NOW).unwrap_err();
        assert!(matches!(refused, Refusal::NotClaimable(_)), "{stage}: {refused}");
    }
}

#[test]
fn a_report_leaves_what_it_hands_over_under_its_own_epoch() {
    let report = RunReport {
        branch: Some("aq/job/x/7".to_owned()),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    };
    let command = holder("a", 7, vec![HolderAction::Report(report)]);
    let result = transition(&job_in(Stage::Building), &command, NOW).unwrap().job.result.unwrap();
    assert_eq!((result.epoch, result.commit.as_str()), (Epoch(7), "c0ffee"));
}

#[test]
fn the_stage_stays_whatever_becomes_of_the_merge() {
    let outcomes = [
        MergeOutcome::Merged { commit: "abc".to_owned() },
        MergeOutcome::Conflict { detail: "src/lib.rs".to_owned() },
        failed(),
    ];
    for outcome in outcomes {
        let taken = transition(&shipped(), &take("a"), NOW).unwrap().job;
        let settled = transition(&taken, &settle("a", 1, outcome.clone()), NOW).unwrap();
        assert_eq!(settled.job.stage(), Stage::Shipped, "{outcome:?}");
        assert_eq!(settled.events.len(), 1, "{outcome:?}");
        assert_eq!(settled.job.rev, taken.rev.next(), "{outcome:?}");
    }
}

#[test]
fn whoever_ran_it_goes_first_and_a_silent_taker_is_replaced() {
    let job = shipped();
    assert!(transition(&job, &take("b"), NOW).is_err());
    assert!(transition(&job, &take("b"), NOW.plus(Duration::from_secs(10))).is_ok());
    let taken = transition(&job, &take("a"), NOW).unwrap().job;
    assert!(
        transition(&taken, &take("a"), NOW.plus(PATIENCE.saturating_sub(Duration::from_millis(1)))).is_err()
    );
    let later = NOW.plus(PATIENCE);
    let retaken = transition(&taken, &take("b"), later).unwrap().job;
    assert!(transition(&retaken, &settle("a", 1, failed()), later).is_err(), "the first is no longer heard");
    assert!(transition(&retaken, &settle("b", 2, failed()), later).is_ok());
}

#[test]
fn failures_pause_longer_and_longer_and_end_in_giving_up() {
    let (mut job, mut now, mut pauses) = (shipped(), NOW, Vec::new());
    for attempt in 1..=20 {
        job = transition(&job, &take("a"), now).unwrap().job;
        job = transition(&job, &settle("a", attempt, failed()), now).unwrap().job;
        if let Some(Merge::Waiting { due, .. }) = &job.merge {
            pauses.push(due.since(now));
            now = *due;
        }
    }
    assert!(pauses.is_sorted() && pauses.len() == 19, "{pauses:?}");
    assert!(matches!(job.merge, Some(Merge::Failed { .. })), "{:?}", job.merge);
    assert!(transition(&job, &take("a"), now.plus(PATIENCE)).is_err());
}
