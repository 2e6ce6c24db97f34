//! A running job gives its seat up: its holder is asked first, saves its work and lets go; one that does not lets the
//! deadline decide. Either way no attempt is used up, and the job goes on from its checkpoint wherever there is a seat.

use super::{Refusal, Transition};
use crate::{Evict, NewEvent, Rev, State, Timestamp};

pub(super) fn ask(next: &mut Transition, rev: Rev, evict: Evict) -> Result<(), Refusal> {
    let same = next.job.rev == rev;
    let (State::Assigned { lease } | State::Building { lease }, true) = (&mut next.job.state, same) else {
        return Err(Refusal::NotClaimable("it changed since it was looked at"));
    };
    if lease.evict.is_some() {
        return Err(Refusal::NotClaimable("its holder was asked to release it already"));
    }
    lease.evict = Some(evict);
    let event = NewEvent::eviction_asked(&lease.factory, evict.for_job);
    next.note(event);
    Ok(())
}

/// Its run is closed; here it goes back to the queue.
pub(super) fn let_go(next: &mut Transition, evict: Evict, now: Timestamp) {
    next.job.evictions += u32::from(evict.for_job.is_some());
    next.requeue(now, now, NewEvent::preempted(evict.for_job));
}
