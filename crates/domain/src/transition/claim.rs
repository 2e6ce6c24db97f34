//! From the queue to a holder: who may claim a job, what the claim makes of it, and whom the dispatcher offers it to.

use std::time::Duration;

use super::{Refusal, RunChange, Transition};
use crate::{
    DispatchSeq, FactoryId, Job, Lease, NewEvent, RequestId, Rev, Spend, State, Target, Timestamp, Usd,
};

/// Nothing to refuse also where this very request holds it already.
pub(super) fn check_claim(
    job: &Job,
    factory: &FactoryId,
    request: &RequestId,
    rev: Option<Rev>,
    dispatch_seq: Option<DispatchSeq>,
    now: Timestamp,
) -> Result<(), Refusal> {
    if has_won(job, factory, request) {
        return Ok(());
    }
    let State::Queued { ready_at, target, .. } = &job.state else {
        return Err(Refusal::NotClaimable("it is not queued"));
    };
    if rev.is_some_and(|seen| seen != job.rev) {
        return Err(Refusal::NotClaimable("it changed since it was looked at"));
    }
    if job.needs_input() {
        return Err(Refusal::NotClaimable("it waits for an answer"));
    }
    if *ready_at > now {
        return Err(Refusal::NotClaimable("its time has not come"));
    }
    if target.as_ref().is_some_and(|t| t.factory != *factory && t.pickup_deadline > now) {
        return Err(Refusal::NotClaimable("it is offered to another factory"));
    }
    if job.unfit().contains(factory) {
        return Err(Refusal::NotClaimable("this factory has shown that it cannot run it"));
    }
    if dispatch_seq.is_some_and(|offered| offered != job.dispatch_seq) {
        return Err(Refusal::NotClaimable("the offer is no longer current"));
    }
    Ok(())
}

fn has_won(job: &Job, factory: &FactoryId, request: &RequestId) -> bool {
    job.lease().is_some_and(|held| held.factory == *factory && held.request == *request)
}

pub(super) fn claim(
    next: &mut Transition,
    factory: &FactoryId,
    request: &RequestId,
    lease: Duration,
    reserved: Usd,
    now: Timestamp,
) {
    if has_won(&next.job, factory, request) {
        return;
    }
    next.job.epoch = next.job.epoch.next();
    next.job.lease_end = None;
    next.job.last_factory = Some(factory.clone());
    let lease = Lease {
        factory: factory.clone(),
        request: request.clone(),
        granted_at: now,
        expires_at: now.plus(lease),
        reserved,
        spent: Spend::default(),
        evict: None,
    };
    next.enter(State::Assigned { lease }, NewEvent::assigned(factory, next.job.epoch));
    next.run.push(RunChange::Open { factory: factory.clone() });
}

pub(super) fn target(
    next: &mut Transition,
    rev: Rev,
    factory: &FactoryId,
    deadline: Timestamp,
    now: Timestamp,
) -> Result<(), Refusal> {
    let (State::Queued { target, .. }, true) = (&mut next.job.state, next.job.rev == rev) else {
        return Err(Refusal::NotClaimable("it changed since it was looked at"));
    };
    let missed = target.as_ref().map(|last| last.missed_by(now, deadline.since(now))).unwrap_or_default();
    *target = Some(Target { missed, ..Target::new(factory.clone(), deadline) });
    next.job.dispatch_seq = next.job.dispatch_seq.next();
    next.note(NewEvent::targeted(factory, next.job.dispatch_seq));
    Ok(())
}
