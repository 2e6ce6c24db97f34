//! Pull requests: what is proposed waits for people, who merge it, close it, or want something changed.

use std::time::Duration;

use giga_domain::job::{MergeFeedback, PullRequest};
use giga_domain::{
    Command, Epoch, EventKind, FailReason, Job, JobResult, MergeAction, MergeOutcome, MergeState,
    OperatorAction, Refusal, RequestChange, RequestNews, Stage, Transition, Verdict, transition,
};

use crate::transition::fixture::{NOW, factory, job_in, operator};

const LEASE: Duration = Duration::from_secs(45);

fn proposed_outcome() -> MergeOutcome {
    let text = str::to_owned;
    MergeOutcome::Proposed {
        commit: text("c0ffee"),
        into: text("main"),
        forge: text("github"),
        repo: text("acme/app"),
        branch: text("giga/request/x"),
    }
}

fn settle(attempt: u32, outcome: MergeOutcome) -> Command {
    Command::HoldMerge { factory: factory("a"), attempt, action: MergeAction::Settle(outcome) }
}

/// From the word to ship to the branch of its request.
fn propose(testing: &Job) -> Job {
    let mut job = transition(testing, &operator(OperatorAction::Ship), NOW).unwrap().job;
    let take = Command::TakeMerge { factory: factory("a"), lease: LEASE, joins: false };
    job = transition(&job, &take, NOW).unwrap().job;
    transition(&job, &settle(1, proposed_outcome()), NOW).unwrap().job
}

fn testing(feedback: Option<MergeFeedback>) -> Job {
    let mut job = job_in(Stage::Testing);
    job.spec.repo = Some("hello".to_owned());
    job.spec.merge.feedback = feedback;
    job.last_factory = Some(factory("a"));
    let (branch, commit) = ("giga/job/x/7".to_owned(), "c0ffee".to_owned());
    job.result =
        Some(JobResult { epoch: Epoch(7), branch, commit, base: None, unseen: None, repos: Vec::new() });
    job
}

fn proposed() -> Job {
    propose(&testing(None))
}

fn tell(job: &Job, change: RequestChange) -> Transition {
    let news = RequestNews { about: "c0ffee".to_owned(), change };
    transition(job, &Command::RequestNews(news), NOW).unwrap()
}

fn opened() -> RequestChange {
    RequestChange::Opened { number: 7, url: "https://forge/7".to_owned() }
}

fn merged() -> RequestChange {
    RequestChange::Merged { commit: "abc".to_owned(), into: "main".to_owned() }
}

fn closed() -> RequestChange {
    RequestChange::Closed { by: Some("ana".to_owned()) }
}

fn wants_changes(id: &str) -> RequestChange {
    let (id, by, words) = (id.to_owned(), "ana".to_owned(), "say hello, not helo".to_owned());
    RequestChange::Said { id, by, verdict: Some(Verdict::RequestChanges), words }
}

fn failed_checks(id: &str) -> RequestChange {
    RequestChange::Checks { id: id.to_owned(), passed: false, detail: "ci: failure".to_owned() }
}

fn request(job: &Job) -> &PullRequest {
    job.merge.as_ref().unwrap().request.as_ref().unwrap()
}

fn kinds(next: &Transition) -> Vec<EventKind> {
    next.events.iter().map(|event| event.kind).collect()
}

#[test]
fn what_is_proposed_waits_and_nobody_takes_it() {
    let job = proposed();
    assert_eq!(job.stage(), Stage::Shipping);
    let merge = job.merge.as_ref().unwrap();
    assert_eq!((merge.due(), merge.holder()), (None, None));
    assert_eq!((request(&job).repo.as_str(), &request(&job).opened), ("acme/app", &None));
    let take = Command::TakeMerge { factory: factory("a"), lease: LEASE, joins: false };
    assert!(matches!(transition(&job, &take, NOW.plus(LEASE)), Err(Refusal::NotClaimable(_))));
    assert!(transition(&job, &settle(1, proposed_outcome()), NOW).unwrap().is_silent(), "a lost reply");
    let cancelled = transition(&job, &operator(OperatorAction::Cancel), NOW).unwrap().job;
    assert_eq!(cancelled.stage(), Stage::Cancelled);
    assert!(cancelled.merge.unwrap().request.is_some(), "somebody has to close it");
}

#[test]
fn it_is_shipped_when_somebody_merges_it_however_often_that_is_heard() {
    let next = tell(&proposed(), opened());
    assert_eq!(kinds(&next), [EventKind::RequestOpened]);
    assert!(tell(&next.job, opened()).is_silent());
    let next = tell(&next.job, merged());
    assert_eq!(kinds(&next), [EventKind::Merged, EventKind::Shipped]);
    assert_eq!(next.job.stage(), Stage::Shipped);
    let done = MergeState::Done { commit: "abc".to_owned(), into: Some("main".to_owned()), note: None };
    assert_eq!(next.job.merge.as_ref().unwrap().state, done);
    assert!(tell(&next.job, merged()).is_silent());
}

#[test]
fn what_is_about_another_commit_or_another_time_is_refused() {
    let old = RequestNews { about: "older".to_owned(), change: merged() };
    let refused = transition(&proposed(), &Command::RequestNews(old), NOW).unwrap_err();
    assert!(matches!(refused, Refusal::NotClaimable(_)), "{refused}");
    let mut building = job_in(Stage::Building);
    building.result = proposed().result;
    building.merge = proposed().merge;
    building.merge.as_mut().unwrap().state = MergeState::SentBack { detail: String::new() };
    for change in [opened(), merged(), closed(), wants_changes("review:1")] {
        let news = RequestNews { about: "c0ffee".to_owned(), change };
        assert!(transition(&building, &Command::RequestNews(news), NOW).is_err());
    }
}

#[test]
fn a_closed_request_fails_the_job_which_can_be_shipped_again_or_merged_after_all() {
    let open = tell(&proposed(), opened()).job;
    let next = tell(&open, closed());
    let failure = next.job.failure().unwrap();
    assert_eq!(failure.reason, FailReason::RequestClosed);
    assert_eq!(failure.detail.as_deref(), Some("https://forge/7 was closed by ana without being merged"));
    assert_eq!(kinds(&next), [EventKind::RequestClosed]);
    assert!(tell(&next.job, closed()).is_silent());
    let after_all = tell(&next.job, merged());
    assert_eq!(after_all.job.stage(), Stage::Shipped);
    assert!(after_all.events.iter().any(|event| event.from == Some(Stage::Failed)), "a step of its own");
    let again = propose(&next.job);
    assert_eq!(request(&again).opened, request(&open).opened, "the same one is opened again");
}

#[test]
fn one_that_cannot_be_opened_fails_with_the_words() {
    let next = tell(&proposed(), RequestChange::NotOpened { detail: "404: Not Found".to_owned() }).job;
    let failure = next.failure().unwrap();
    assert_eq!(
        (failure.reason, failure.detail.as_deref()),
        (FailReason::MergeRefused, Some("404: Not Found"))
    );
}

#[test]
fn feedback_is_an_event_once_where_nothing_else_is_said() {
    let next = tell(&proposed(), wants_changes("review:1"));
    assert_eq!((next.job.stage(), kinds(&next)), (Stage::Shipping, vec![EventKind::RequestComment]));
    assert!(tell(&next.job, wants_changes("review:1")).is_silent(), "it was heard");
    let next = tell(&next.job, failed_checks("checks:1:failed"));
    assert_eq!((next.job.stage(), kinds(&next)), (Stage::Shipping, vec![EventKind::RequestChecks]));
    assert!(tell(&next.job, failed_checks("checks:1:failed")).is_silent(), "it was heard");
}

#[test]
fn a_request_for_changes_is_another_run_with_the_words_where_the_manifest_says_so() {
    let next = tell(&propose(&testing(Some(MergeFeedback::Changes))), wants_changes("review:1"));
    assert_eq!(next.job.stage(), Stage::Queued);
    let note = next.job.reviews.last().unwrap();
    assert_eq!((note.reviewer.as_str(), note.verdict), ("ana", Verdict::RequestChanges));
    assert_eq!(note.comment.as_deref(), Some("say hello, not helo"));
    let resumed = next.job.checkpoint.as_ref().unwrap();
    assert_eq!(resumed.commit.as_deref(), Some("c0ffee"), "it goes on from what was shown");
    let mut again = testing(Some(MergeFeedback::Changes));
    again.merge.clone_from(&next.job.merge);
    let again = propose(&again);
    assert!(tell(&again, wants_changes("review:1")).is_silent(), "what was done is not asked for again");
}

#[test]
fn failed_checks_are_another_run_twice_and_then_for_somebody_to_look_at() {
    let mut job = propose(&testing(Some(MergeFeedback::Changes)));
    for redo in 1..=2 {
        let next = tell(&job, failed_checks(&format!("checks:{redo}:failed"))).job;
        assert_eq!(next.stage(), Stage::Queued, "redo {redo}");
        assert!(next.reviews.last().unwrap().comment.as_deref().unwrap().contains("ci: failure"));
        job = testing(Some(MergeFeedback::Changes));
        job.merge.clone_from(&next.merge);
        job = propose(&job);
    }
    let next = tell(&job, failed_checks("checks:3:failed"));
    assert_eq!((next.job.stage(), kinds(&next)), (Stage::Shipping, vec![EventKind::RequestChecks]));
}

#[test]
fn no_more_of_a_kind_is_remembered_than_anybody_looks_at() {
    let mut job = proposed();
    for id in 0..PullRequest::SEEN + 5 {
        job = tell(&job, wants_changes(&format!("review:{id}"))).job;
        job = tell(&job, failed_checks(&format!("checks:{id}:failed"))).job;
    }
    assert_eq!(request(&job).seen.len(), 2 * PullRequest::SEEN);
    assert!(tell(&job, wants_changes(&format!("review:{}", PullRequest::SEEN + 4))).is_silent());
}
