//! What reviewers leave behind, and gates that are asked for after submit.

use giga_domain::job::{ReviewGate, ShipMode};
use giga_domain::{
    Checkpoint, Command, Epoch, EventKind, HolderAction, Job, JobKind, JobResult, Judgement, Refusal,
    RunReport, Stage, State, Verdict, limits, transition,
};

use crate::transition::fixture::*;

fn judge(verdict: Verdict, reviewer: &str, comment: &str) -> Command {
    let comment = Some(comment.to_owned());
    Command::Review(Judgement {
        verdict,
        reviewer: reviewer.to_owned(),
        comment,
        epoch: None,
        commit: None,
        acknowledge_unseen: false,
    })
}

fn after(job: &Job, command: &Command) -> Job {
    transition(job, command, NOW).unwrap_or_else(|refusal| panic!("{command:?}: {refusal}")).job
}

fn gate(quorum: u32, reviewers: &[&str]) -> Command {
    let reviewers = reviewers.iter().map(|name| (*name).to_owned()).collect();
    Command::RequestReview { gate: ReviewGate { quorum, reviewers }, may_weaken: true }
}

fn handed_over() -> JobResult {
    JobResult {
        epoch: Epoch(7),
        branch: "giga/1/7".to_owned(),
        commit: "0123abc".to_owned(),
        base: None,
        unseen: None,
        repos: Vec::new(),
    }
}

#[test]
fn every_verdict_leaves_a_note_for_the_run_that_was_judged() {
    for (verdict, kind) in [
        (Verdict::Approve, EventKind::Approved),
        (Verdict::RequestChanges, EventKind::ChangesRequested),
        (Verdict::Reject, EventKind::Rejected),
    ] {
        let mut job = job_in(Stage::Review);
        // The epoch has risen since: what was judged is the result's.
        job.epoch = Epoch(9);
        job.result = Some(handed_over());
        let judged = transition(&job, &judge(verdict, "ana", "as discussed"), NOW).unwrap();
        let [note] = &judged.job.reviews[..] else { panic!("{:?}", judged.job.reviews) };
        assert_eq!((note.reviewer.as_str(), note.comment.as_deref()), ("ana", Some("as discussed")));
        assert_eq!((note.verdict, note.at, note.epoch), (verdict, NOW, Epoch(7)));
        assert_eq!(judged.events[0].kind, kind);
        assert!(judged.events[0].cause.contains("as discussed"), "{}", judged.events[0].cause);
    }
}

#[test]
fn an_approval_that_was_given_before_leaves_no_second_note() {
    let mut job = job_in(Stage::Review);
    job.spec.review.quorum = 2;
    let once = after(&job, &judge(Verdict::Approve, "ana", "good"));
    assert_eq!(after(&once, &judge(Verdict::Approve, "ana", "still good")), once);
}

#[test]
fn the_newest_notes_are_kept() {
    let mut job = job_in(Stage::Review);
    job.spec.review.quorum = u32::MAX;
    let most = limits::REVIEW_NOTES;
    for n in 0..most + 3 {
        job = after(&job, &judge(Verdict::Approve, &format!("reviewer-{n}"), "yes"));
    }
    assert_eq!(job.reviews.len(), most);
    assert_eq!(job.reviews[0].reviewer, "reviewer-3", "the oldest go first");
    assert_eq!(job.reviews[most - 1].reviewer, format!("reviewer-{}", most + 2));
}

#[test]
fn changes_are_made_where_the_last_run_stopped() {
    let mut job = job_in(Stage::Review);
    job.result = Some(handed_over());
    // It succeeded on its last one.
    job.attempts = job.spec.retry.max;
    let spent = Some(spent(12, 3));
    let claude = Some("claude".to_owned());
    let old = Checkpoint {
        session_id: Some("s-1".to_owned()),
        session_engine: claude.clone(),
        session_spend: spent,
        ..checkpoint()
    };
    job.checkpoint = Some(old);
    job.last_factory = Some(factory("a"));
    let queued = after(&job, &judge(Verdict::RequestChanges, "ana", "name it better"));
    let expected = Checkpoint {
        wip_ref: Some("giga/1/7".to_owned()),
        commit: Some("0123abc".to_owned()),
        session_id: Some("s-1".to_owned()),
        session_engine: claude,
        repos: Vec::new(),
        factory: None,
        note: None,
        session_spend: spent,
    };
    assert_eq!((queued.stage(), queued.checkpoint), (Stage::Queued, Some(expected)));
    assert_eq!(queued.attempts, 0, "a change that is asked for is no failure");

    let mut nothing = job_in(Stage::Review);
    nothing.checkpoint = Some(checkpoint());
    let queued = after(&nothing, &judge(Verdict::RequestChanges, "ana", "again"));
    assert_eq!(queued.checkpoint, Some(checkpoint()), "without a result the checkpoint stays");
}

#[test]
fn the_notes_outlive_the_next_run() {
    let queued = after(&job_in(Stage::Review), &judge(Verdict::RequestChanges, "ana", "name it better"));
    let held = after(&queued, &claim("a", "again"));
    let actions = vec![HolderAction::Start, HolderAction::Report(RunReport::default())];
    let reviewed = after(&held, &holder("a", held.epoch.0, actions));
    assert_eq!(reviewed.stage(), Stage::Review);
    assert_eq!(reviewed.reviews, queued.reviews);
}

#[test]
fn a_gate_that_is_asked_for_stands_above_the_manifests() {
    let mut job = job_in(Stage::Building);
    job.spec.review = ReviewGate::default();
    job.spec.ship = ShipMode::Auto;
    let asked = transition(&job, &gate(1, &["bo"]), NOW).unwrap();
    assert_eq!(asked.events[0].kind, EventKind::ReviewRequested);
    assert_eq!(
        (&asked.events[0].data["quorum"], &asked.events[0].data["reviewers"][0]),
        (&1.into(), &"bo".into())
    );
    assert_eq!(asked.job.spec.review, ReviewGate::default(), "the manifest is never changed");
    let reviewed = after(&asked.job, &holder("a", 7, vec![report()]));
    assert_eq!(reviewed.state, State::Review { approvals: Vec::new() });
    let stranger = transition(&reviewed, &review(Verdict::Approve, "ana"), NOW).unwrap_err();
    assert!(matches!(stranger, Refusal::NotAReviewer(..)), "{stranger}");
    assert_eq!(after(&reviewed, &review(Verdict::Approve, "bo")).stage(), Stage::Shipped);
    // And the other way round: nobody need look at what the manifest wanted looked at.
    let mut job = job_in(Stage::Building);
    job.spec.ship = ShipMode::Auto;
    let waived = after(&job, &gate(0, &[]));
    assert_eq!(after(&waived, &holder("a", 7, vec![report()])).stage(), Stage::Shipped);
}

#[test]
fn a_new_gate_counts_the_approvals_that_were_given() {
    let mut job = job_in(Stage::Review);
    job.spec.review.quorum = 3;
    let approved = after(&after(&job, &review(Verdict::Approve, "ana")), &review(Verdict::Approve, "bo"));
    let lower = after(&approved, &gate(2, &[]));
    assert_eq!(lower.state, approved.state, "they are enough, and it is still for somebody to say so");
    for who in ["ana", "cy"] {
        let passed = after(&lower, &review(Verdict::Approve, who));
        assert_eq!(passed.stage(), Stage::Testing, "{who}");
        assert_eq!(after(&passed, &review(Verdict::Approve, who)), passed, "said before");
    }
    let narrower = after(&approved, &gate(2, &["bo", "cy"]));
    assert_eq!(narrower.state, State::Review { approvals: vec!["bo".to_owned()] }, "ana has no say any more");
    assert_eq!(after(&narrower, &review(Verdict::Approve, "cy")).stage(), Stage::Testing);
    assert_eq!(after(&approved, &gate(0, &[])).stage(), Stage::Review, "a verdict is what lets it go on");
}

#[test]
fn only_who_may_weakens_a_gate() {
    let asks = |quorum, reviewers: &[&str], may_weaken| {
        let reviewers = reviewers.iter().map(|name| (*name).to_owned()).collect();
        Command::RequestReview { gate: ReviewGate { quorum, reviewers }, may_weaken }
    };
    let of = |gate: (u32, &[&str])| {
        let mut job = job_in(Stage::Review);
        let reviewers = gate.1.iter().map(|name| (*name).to_owned()).collect();
        job.spec.review = ReviewGate { quorum: gate.0, reviewers };
        job
    };
    let named: (u32, &[&str]) = (2, &["ana", "bo", "cy"]);
    for (holds, weaker) in [
        ((2, &[][..]), (1, &["eve"][..])),
        (named, (1, &["ana"])),
        (named, (2, &["ana", "eve"])),
        (named, (3, &[])),
        (named, (0, &[])),
    ] {
        let (job, (quorum, reviewers)) = (of(holds), weaker);
        let refused = transition(&job, &asks(quorum, reviewers, false), NOW).unwrap_err();
        assert!(matches!(refused, Refusal::WeakerGate { quorum: 2, .. }), "{weaker:?}: {refused}");
        let asked = after(&job, &asks(quorum, reviewers, true));
        assert_eq!((asked.gate().quorum, asked.stage()), (quorum, Stage::Review));
    }
    for (holds, stronger) in
        [(named, (2, &["ana", "bo"][..])), ((2, &[]), (2, &["eve", "bo"])), ((0, &["ana"]), (1, &[]))]
    {
        after(&of(holds), &asks(stronger.0, stronger.1, false));
    }
    // What somebody who may has asked for holds like the manifest's.
    let raised = after(&of((1, &[])), &asks(3, &[], true));
    assert!(transition(&raised, &asks(1, &[], false), NOW).is_err());
}

#[test]
fn a_verdict_is_about_the_result_that_was_looked_at() {
    let mut job = job_in(Stage::Review);
    job.epoch = Epoch(9);
    job.result = Some(handed_over());
    let about = |epoch, verdict| {
        let (reviewer, comment) = ("ana".to_owned(), None);
        let epoch = Some(Epoch(epoch));
        Command::Review(Judgement {
            verdict,
            reviewer,
            comment,
            epoch,
            commit: None,
            acknowledge_unseen: false,
        })
    };
    let by_commit = |commit: &str| {
        let Command::Review(judgement) = about(7, Verdict::Approve) else { unreachable!("it is one") };
        Command::Review(Judgement { commit: Some(commit.to_owned()), ..judgement })
    };
    let refused = transition(&job, &by_commit("4567def"), NOW).unwrap_err();
    assert!(matches!(refused, Refusal::OtherCommit { .. }), "{refused}");
    assert_ne!(after(&job, &by_commit("0123abc")).stage(), Stage::Review);
    for verdict in [Verdict::Approve, Verdict::RequestChanges, Verdict::Reject] {
        let refused = transition(&job, &about(6, verdict), NOW).unwrap_err();
        assert_eq!(refused, Refusal::OtherResult { given: Epoch(6), current: Epoch(7) });
        assert_ne!(after(&job, &about(7, verdict)).stage(), Stage::Review);
    }
}

#[test]
fn nobody_approves_by_accident_what_no_diff_shows() {
    let mut job = job_in(Stage::Review);
    job.result = Some(JobResult { unseen: Some("the diff is cut".to_owned()), ..handed_over() });
    let approve = judge(Verdict::Approve, "ana", "fine");
    let refused = transition(&job, &approve, NOW).unwrap_err();
    assert_eq!(refused, Refusal::Unseen("the diff is cut".to_owned()));
    for verdict in [Verdict::RequestChanges, Verdict::Reject] {
        assert_ne!(after(&job, &judge(verdict, "ana", "no")).stage(), Stage::Review);
    }
    let Command::Review(judgement) = approve else { unreachable!("it is one") };
    let knowingly = Command::Review(Judgement { acknowledge_unseen: true, ..judgement });
    assert_ne!(after(&job, &knowingly).stage(), Stage::Review);
}

#[test]
fn a_verdict_whose_answer_was_lost_is_answered_again() {
    let mut job = job_in(Stage::Review);
    job.result = Some(handed_over());
    for verdict in [Verdict::Approve, Verdict::RequestChanges, Verdict::Reject] {
        let judged = after(&job, &judge(verdict, "ana", "so be it"));
        assert_eq!(after(&judged, &judge(verdict, "ana", "so be it")), judged, "{verdict:?}");
        for other in [judge(verdict, "bo", "so be it"), judge(verdict, "ana", "or not")] {
            let refused = transition(&judged, &other, NOW).unwrap_err();
            assert!(matches!(refused, Refusal::Illegal { .. }), "{refused}");
        }
    }
    let queued = after(&job, &judge(Verdict::RequestChanges, "ana", "so be it"));
    let held = after(&queued, &claim("a", "again"));
    assert_eq!(
        after(&held, &judge(Verdict::RequestChanges, "ana", "so be it")),
        held,
        "at work on it already"
    );
    let epoch = held.epoch.0;
    let reported = after(&held, &holder("a", epoch, vec![HolderAction::Start, report()]));
    let back = after(&reported, &judge(Verdict::RequestChanges, "ana", "so be it"));
    assert_eq!((back.stage(), back.reviews.len()), (Stage::Queued, 2), "another run is another matter");
    // Somebody else's word came in between.
    let mut two = job_in(Stage::Review);
    two.spec.review.quorum = 2;
    let both = after(&after(&two, &review(Verdict::Approve, "ana")), &review(Verdict::Approve, "bo"));
    assert_eq!(after(&both, &review(Verdict::Approve, "ana")), both);
}

#[test]
fn the_same_gate_again_changes_nothing() {
    let job = job_in(Stage::Queued);
    let own = Command::RequestReview { gate: job.spec.review.clone(), may_weaken: false };
    assert!(transition(&job, &own, NOW).unwrap().is_silent(), "it is so already");
    let asked = after(&job, &gate(2, &[]));
    assert!(transition(&asked, &gate(2, &[]), NOW).unwrap().is_silent());
}

#[test]
fn nobody_changes_what_a_composite_did() {
    let mut job = job_in(Stage::Review);
    job.spec.kind = JobKind::Composite;
    let refused = transition(&job, &review(Verdict::RequestChanges, "ana"), NOW).unwrap_err();
    assert!(refused.to_string().contains("its children"), "{refused}");
    assert_eq!(after(&job, &review(Verdict::Approve, "ana")).stage(), Stage::Testing);
}
