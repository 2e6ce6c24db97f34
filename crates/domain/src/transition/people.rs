//! What people say about a job: operators steer it, reviewers judge it.
//!
//! A word that was said before is answered again and changes nothing; one that does not fit the stage is refused with
//! what would fit.

use super::{OperatorAction, Refusal, Transition, Verdict, after_review};
use crate::{
    EventKind, FailReason, Failure, NewEvent, RunOutcome, Settled, SettledHow, Stage, State, Timestamp,
};

pub(super) fn operate(
    next: &mut Transition,
    action: OperatorAction,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let from = next.job.stage();
    let cause = |what: &str| reason.map_or_else(|| what.to_owned(), |r| format!("{what}: {r}"));
    match (action, from) {
        // Already so: a repeated action is answered again.
        (OperatorAction::Ship, Stage::Shipped)
        | (OperatorAction::Requeue, Stage::Queued)
        | (OperatorAction::Cancel, Stage::Cancelled) => {}
        (OperatorAction::Reject, Stage::Failed)
            if next.job.failure().is_some_and(|f| f.reason == FailReason::Rejected) => {}
        (OperatorAction::Ship, Stage::Testing) => {
            next.enter(State::Shipped, NewEvent::new(EventKind::Shipped, cause("shipped by an operator")));
        }
        (OperatorAction::Requeue, Stage::Failed | Stage::Review) => {
            // The operator gives the job its attempts back.
            next.job.attempts = 0;
            next.job.enqueued_at = now;
            next.requeue(now, now, NewEvent::new(EventKind::Requeued, cause("requeued by an operator")));
        }
        (OperatorAction::Reject, Stage::Review) => {
            let failure = Failure { reason: FailReason::Rejected, detail: reason.map(str::to_owned) };
            next.enter(
                State::Failed { failure },
                NewEvent::new(EventKind::Rejected, cause("rejected by an operator")),
            );
        }
        (OperatorAction::Cancel, _) if !from.is_terminal() => {
            if from.is_held() {
                next.job.settled = Some(Settled { epoch: next.job.epoch, how: SettledHow::Cancelled });
                next.close_run(RunOutcome::Cancelled, None);
            }
            let state = State::Cancelled { reason: reason.map(str::to_owned) };
            next.enter(state, NewEvent::new(EventKind::Cancelled, cause("cancelled by an operator")));
        }
        (action, from) => return Err(illegal(from, action)),
    }
    Ok(())
}

fn illegal(from: Stage, action: OperatorAction) -> Refusal {
    let remedy = match (action, from) {
        (_, Stage::Shipped | Stage::DeadLetter | Stage::Cancelled) => {
            "this stage is final; submit a new job instead"
        }
        (OperatorAction::Ship, Stage::Review) => "a review has to approve it first",
        (OperatorAction::Ship, _) => "only a job in testing can be shipped",
        (OperatorAction::Requeue, Stage::Assigned | Stage::Building) => {
            "it is being worked on; cancel it, or drain its factory"
        }
        (OperatorAction::Requeue, _) => "only a failed job or one in review can be requeued",
        (OperatorAction::Reject, _) => "only a job in review can be rejected; cancel it instead",
        (OperatorAction::Cancel, _) => "it is already final",
    };
    Refusal::Illegal { from, action: action.as_str(), remedy }
}

pub(super) fn review(
    next: &mut Transition,
    verdict: Verdict,
    reviewer: &str,
    comment: Option<&str>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let State::Review { approvals } = &next.job.state else {
        return Err(Refusal::Illegal {
            from: next.job.stage(),
            action: "be reviewed",
            remedy: "only a job in review takes a verdict",
        });
    };
    let named = &next.job.spec.review.reviewers;
    if !named.is_empty() && !named.iter().any(|name| name == reviewer) {
        return Err(Refusal::NotAReviewer(reviewer.to_owned(), named.join(", ")));
    }
    let cause = |what: &str| match comment {
        Some(comment) => format!("{reviewer} {what}: {comment}"),
        None => format!("{reviewer} {what}"),
    };
    match verdict {
        Verdict::Approve => {
            let mut approvals = approvals.clone();
            if approvals.iter().any(|name| name == reviewer) {
                return Ok(());
            }
            approvals.push(reviewer.to_owned());
            let event = NewEvent::new(EventKind::Approved, cause("approved")).with("reviewer", reviewer);
            if approvals.len() as u64 >= u64::from(next.job.spec.review.quorum) {
                let state = after_review(&next.job);
                next.enter(state, event);
            } else {
                next.job.state = State::Review { approvals };
                next.note(event);
            }
        }
        Verdict::RequestChanges => {
            next.job.enqueued_at = now;
            let event = NewEvent::new(EventKind::ChangesRequested, cause("asked for changes"))
                .with("reviewer", reviewer);
            next.requeue(now, now, event);
        }
        Verdict::Reject => {
            let failure = Failure { reason: FailReason::Rejected, detail: comment.map(str::to_owned) };
            let event = NewEvent::new(EventKind::Rejected, cause("rejected it")).with("reviewer", reviewer);
            next.enter(State::Failed { failure }, event);
        }
    }
    Ok(())
}
