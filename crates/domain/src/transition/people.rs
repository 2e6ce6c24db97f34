//! What people do to a job: operators steer it, reviewers judge it.
//!
//! A repeated command is answered again and changes nothing; one that does not fit the stage is refused with what would
//! fit.

use super::{Judgement, OperatorAction, Refund, Refusal, Transition, Verdict, after_review, merge};
use crate::job::ReviewGate;
use crate::{
    Assumed, ChargeHow, Checkpoint, Epoch, FailReason, Failure, Job, JobKind, LeaseEnd, LeaseEndHow, Merge,
    NewEvent, ReviewNote, RunOutcome, Spend, Stage, State, Timestamp, limits,
};

pub(super) fn operate(
    next: &mut Transition,
    action: OperatorAction,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let from = next.job.stage();
    let event = NewEvent::operated(action, reason);
    match (action, from) {
        // Those that could not run it may be able to by now.
        (OperatorAction::Requeue, Stage::Queued) if !next.job.unfit().is_empty() => {
            next.job.attempts = 0;
            next.job.setback = None;
            next.note(event);
        }
        // Already so: a repeated action is answered again.
        (OperatorAction::Ship, Stage::Shipping | Stage::Shipped)
        | (OperatorAction::Requeue, Stage::Queued)
        | (OperatorAction::Cancel, Stage::Cancelled) => {}
        (OperatorAction::Reject, Stage::Failed)
            if next.job.failure().is_some_and(|f| f.reason == FailReason::Rejected) => {}
        (OperatorAction::Ship, Stage::Testing) => ship(next, reason, now),
        (OperatorAction::Ship, Stage::Failed) if merge::can_be_shipped_again(&next.job) => {
            ship(next, reason, now);
        }
        // What it waits for is looked at again; see `graph`.
        (OperatorAction::Requeue, Stage::Failed | Stage::Review)
            if next.job.spec.kind == JobKind::Composite =>
        {
            next.enter(State::Blocked, event);
        }
        (OperatorAction::Requeue, Stage::Blocked) if next.job.spec.kind == JobKind::Composite => {}
        (OperatorAction::Requeue, Stage::Failed | Stage::Review) => {
            // The operator gives the job its attempts back.
            next.job.attempts = 0;
            // One whose deps were lost may not have come to its time yet.
            let ready_at = next.job.spec.run_at.unwrap_or(now).max(now);
            next.job.enqueued_at = ready_at;
            next.requeue(now, ready_at, event);
        }
        (OperatorAction::Reject, Stage::Review) => {
            let failure = Failure { reason: FailReason::Rejected, detail: reason.map(str::to_owned) };
            next.enter(State::Failed { failure }, event);
        }
        (OperatorAction::Cancel, Stage::Shipping)
            if next.job.merge.as_ref().is_some_and(Merge::is_pushing) =>
        {
            return Err(Refusal::Illegal {
                from,
                action: action.as_str(),
                remedy: "it is being pushed to its branch, which ends in a moment; revert it there",
            });
        }
        (OperatorAction::Cancel, _) if !from.is_terminal() => {
            cancel(next, reason, event, now);
        }
        (action, from) => return Err(illegal(from, action)),
    }
    Ok(())
}

fn ship(next: &mut Transition, reason: Option<&str>, now: Timestamp) {
    let state = merge::shipping(&next.job, now);
    let event = NewEvent::ship(state.stage(), reason);
    next.enter(state, event);
}

/// The holder, where there is one, learns of it at its next renewal. It may be dead as well, so all that it was allowed
/// to spend counts as spent until it says otherwise; see `report_cost`.
pub(super) fn cancel(next: &mut Transition, reason: Option<&str>, event: NewEvent, now: Timestamp) {
    if let Some(lease) = next.job.lease() {
        let reported = lease.spent;
        next.abandon_run(RunOutcome::Cancelled);
        let assumed = next.charge.filter(|charge| charge.how == ChargeHow::Assumed);
        let assumed = assumed.map(|charge| Assumed { charged: charge.spend.usd, charged_at: now, reported });
        next.job.lease_end = Some(LeaseEnd { epoch: next.job.epoch, how: LeaseEndHow::Cancelled, assumed });
    }
    let state = State::Cancelled { reason: reason.map(str::to_owned) };
    next.enter(state, event);
}

/// The holder of a cancelled run reports what it really cost. Only what was assumed is refunded: what it had reported
/// stays charged, and nothing is charged anew to a job that is over.
pub(super) fn report_cost(next: &mut Transition, spent: Spend) {
    let Some(end) = &mut next.job.lease_end else { return };
    let Some(assumed) = end.assumed.take() else { return };
    let real = assumed.reported.max(spent.bounded());
    next.refund = Some(Refund {
        usd: assumed.charged.less(real.usd),
        tokens: real.tokens - assumed.reported.tokens,
        charged_at: assumed.charged_at,
    });
    next.note(NewEvent::cost_reported(real.usd));
}

fn illegal(from: Stage, action: OperatorAction) -> Refusal {
    let remedy = match (action, from) {
        (_, Stage::Shipped | Stage::DeadLetter | Stage::Cancelled) => {
            "this stage is final; submit a new job instead"
        }
        (OperatorAction::Ship, Stage::Review) => "a review has to approve it first",
        (OperatorAction::Ship, Stage::Failed) => "its run failed; requeue it first",
        (OperatorAction::Ship, _) => "only a job in testing can be shipped",
        (OperatorAction::Requeue, Stage::Assigned | Stage::Building) => {
            "it is being worked on; cancel it, or drain its factory"
        }
        (OperatorAction::Requeue, Stage::Shipping) => {
            "it is being merged; cancel it, or wait for what comes of it"
        }
        (OperatorAction::Requeue, _) => "only a failed job or one in review can be requeued",
        (OperatorAction::Reject, _) => "only a job in review can be rejected; cancel it instead",
        (OperatorAction::Cancel, _) => "it is already final",
    };
    Refusal::Illegal { from, action: action.as_str(), remedy }
}

pub(super) fn review(next: &mut Transition, judgement: &Judgement, now: Timestamp) -> Result<(), Refusal> {
    let Judgement { verdict, reviewer, comment, epoch, commit, acknowledge_unseen } = judgement;
    let (verdict, comment) = (*verdict, comment.as_deref());
    let judged = judged_run(&next.job);
    let State::Review { approvals } = &next.job.state else {
        if is_repeated(&next.job, judgement) {
            return Ok(());
        }
        return Err(Refusal::Illegal {
            from: next.job.stage(),
            action: "be reviewed",
            remedy: "only a job in review takes a verdict",
        });
    };
    let approvals = approvals.clone();
    let ReviewGate { quorum, reviewers: named } = next.job.gate();
    let quorum = u64::from(*quorum);
    if !named.is_empty() && !named.contains(reviewer) {
        return Err(Refusal::NotAReviewer(reviewer.to_owned(), named.join(", ")));
    }
    if let Some(given) = epoch.filter(|given| *given != judged) {
        return Err(Refusal::OtherResult { given, current: judged });
    }
    if let (Some(given), Some(result)) = (commit, &next.job.result)
        && *given != result.commit
    {
        return Err(Refusal::OtherCommit { given: given.clone(), current: result.commit.clone() });
    }
    let unseen = next.job.result.as_ref().and_then(|result| result.unseen.clone());
    if let Some(unseen) = unseen.filter(|_| verdict == Verdict::Approve && !acknowledge_unseen) {
        return Err(Refusal::Unseen(unseen));
    }
    if verdict == Verdict::RequestChanges && next.job.spec.kind == JobKind::Composite {
        return Err(Refusal::Illegal {
            from: Stage::Review,
            action: "be changed: it is a composite",
            remedy: "ask for changes of its children, or reject it",
        });
    }
    // Where a gate was lowered since, there may be enough of them: then whoever approves, anew or again, lets it go on.
    let again = approvals.contains(reviewer);
    if verdict == Verdict::Approve && again && (approvals.len() as u64) < quorum {
        return Ok(());
    }
    next.job.reviews.push(ReviewNote {
        reviewer: reviewer.to_owned(),
        verdict,
        comment: comment.map(str::to_owned),
        at: now,
        epoch: judged,
    });
    let old = next.job.reviews.len().saturating_sub(limits::REVIEW_NOTES);
    next.job.reviews.drain(..old);
    let event = NewEvent::reviewed(judgement);
    match verdict {
        Verdict::Approve => {
            let anew = (!again).then(|| reviewer.to_owned());
            let approvals: Vec<String> = approvals.into_iter().chain(anew).collect();
            if approvals.len() as u64 >= quorum {
                let state = after_review(&next.job, now);
                next.enter(state, event);
            } else {
                next.job.state = State::Review { approvals };
                next.note(event);
            }
        }
        Verdict::RequestChanges => {
            // The run succeeded; what failed before it is over.
            next.job.attempts = 0;
            next.job.enqueued_at = now;
            resume_from_result(&mut next.job);
            next.requeue(now, now, event);
        }
        Verdict::Reject => {
            let failure = Failure { reason: FailReason::Rejected, detail: comment.map(str::to_owned) };
            next.enter(State::Failed { failure }, event);
        }
    }
    Ok(())
}

/// The run whose work is up for review.
fn judged_run(job: &Job) -> Epoch {
    job.result.as_ref().map_or(job.epoch, |result| result.epoch)
}

/// Whether the job is where it is because of this very word, as far as the reviewer goes: its answer was lost.
fn is_repeated(job: &Job, judgement: &Judgement) -> bool {
    let own = job.reviews.iter().rev().find(|note| note.reviewer == judgement.reviewer);
    own.is_some_and(|note| {
        (note.verdict, &note.comment, note.epoch) == (judgement.verdict, &judgement.comment, judged_run(job))
            && judgement.epoch.is_none_or(|epoch| epoch == note.epoch)
    })
}

/// The next run goes on from the commit that was judged, and from the engine's session where there was one.
pub(super) fn resume_from_result(job: &mut Job) {
    let Some(result) = &job.result else { return };
    let earlier = job.checkpoint.take().unwrap_or_default();
    job.checkpoint = Some(Checkpoint {
        wip_ref: Some(result.branch.clone()),
        commit: Some(result.commit.clone()),
        repos: result.repos.clone(),
        // Results are pushed.
        factory: None,
        note: None,
        ..earlier
    });
}

/// Before it has passed the gate. A job in review stays there, however little is asked from now on: only a verdict lets
/// it go on.
pub(super) fn request_review(
    next: &mut Transition,
    gate: &ReviewGate,
    may_weaken: bool,
) -> Result<(), Refusal> {
    let from = next.job.stage();
    if from.is_terminal() || matches!(from, Stage::Testing | Stage::Shipping) {
        return Err(Refusal::Illegal {
            from,
            action: "be put up for review",
            remedy: "a review comes before testing; requeue or reject it instead",
        });
    }
    let holds = next.job.gate();
    if holds == gate {
        return Ok(());
    }
    if !may_weaken && gate.is_weaker_than(holds) {
        return Err(Refusal::WeakerGate { quorum: holds.quorum, reviewers: holds.who() });
    }
    next.job.gate = Some(gate.clone());
    if let State::Review { approvals } = &mut next.job.state {
        // Those that count under the new gate stay.
        approvals.retain(|name| gate.reviewers.is_empty() || gate.reviewers.contains(name));
    }
    next.note(NewEvent::review_requested(gate));
    Ok(())
}
