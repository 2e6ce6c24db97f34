//! What becomes of a job because of those that it hangs on: deps, children, its parent.
//!
//! Whenever a job ends, those that hang on it are looked at again. Nothing here depends on who moved or in which order:
//! the same counts give the same answer, so a sweep may come late, twice, or for no reason.

use super::{Transition, after_work, people};
use crate::job::{DepsMode, FailurePolicy};
use crate::{FailReason, Failure, Job, JobId, JobKind, JobSpec, Merge, NewEvent, Stage, State, Timestamp};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relations {
    pub deps: Deps,
    pub children: Tally,
    pub parent: Option<ParentEnd>,
}

/// How the jobs that it waits for stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deps {
    pub shipped: u32,
    /// They ended and will never ship.
    pub lost: u32,
    pub open: u32,
}

/// How the children of a job stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub shipped: u32,
    /// Failed and waiting for somebody, or over without having shipped.
    pub failed: u32,
    pub open: u32,
}

/// A parent that ended in a way that ends its children too: it was cancelled, or it is a composite that failed fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParentEnd {
    pub parent: JobId,
    pub stage: Stage,
}

impl ParentEnd {
    /// `None` where the parent, which has just come to its stage, leaves its children alone.
    pub fn of(parent: &Job) -> Option<Self> {
        Self::judge(parent.id, parent.stage(), &parent.spec, true)
    }

    /// `is_news`: the child is looked at because its parent ended. A parent that was cancelled stays so, whenever the look
    /// comes. One that failed is waiting for somebody, who may have requeued the child since: that is not undone by a
    /// look for another reason.
    pub fn judge(parent: JobId, stage: Stage, spec: &JobSpec, is_news: bool) -> Option<Self> {
        let fails_fast = spec.kind == JobKind::Composite && spec.on_failure == FailurePolicy::FailFast;
        let ends = stage == Stage::Cancelled || (stage == Stage::Failed && fails_fast && is_news);
        ends.then_some(Self { parent, stage })
    }

    /// A child that failed says why its composite did, and can be tried again with it: it stays as it is. A parent that
    /// was cancelled takes it along.
    fn spares(&self, child: Stage) -> bool {
        self.stage == Stage::Failed && child == Stage::Failed
    }
}

impl Deps {
    /// So many more in that stage; `None` for those that are gone, which will not ship either.
    pub fn add(&mut self, stage: Option<Stage>, count: u32) {
        match stage {
            Some(Stage::Shipped) => self.shipped += count,
            None | Some(Stage::DeadLetter | Stage::Cancelled) => self.lost += count,
            Some(_) => self.open += count,
        }
    }

    pub fn satisfied(&self, mode: DepsMode) -> bool {
        match mode {
            DepsMode::All => self.lost + self.open == 0,
            DepsMode::Any => self.shipped > 0 || self.lost + self.open == 0,
        }
    }

    /// What it waits for can never come.
    pub fn hopeless(&self, mode: DepsMode) -> bool {
        match mode {
            DepsMode::All => self.lost > 0,
            DepsMode::Any => self.shipped + self.open == 0 && self.lost > 0,
        }
    }
}

impl Tally {
    /// So many more in that stage.
    pub fn add(&mut self, stage: Stage, count: u32) {
        match stage {
            Stage::Shipped => self.shipped += count,
            Stage::Failed | Stage::DeadLetter | Stage::Cancelled => self.failed += count,
            _ => self.open += count,
        }
    }

    pub fn total(&self) -> u32 {
        self.shipped + self.failed + self.open
    }
}

pub(super) fn reconsider(next: &mut Transition, relations: &Relations, now: Timestamp) {
    let stage = next.job.stage();
    if stage.is_terminal() {
        return;
    }
    if let Some(end) = relations.parent {
        // What is being pushed arrives whatever its parent came to.
        if end.spares(stage) || next.job.merge.as_ref().is_some_and(Merge::is_pushing) {
            return;
        }
        let reason = format!("its parent {} is {}", end.parent, end.stage);
        people::cancel(next, Some(&reason), NewEvent::cancelled_because(&reason), now);
        return;
    }
    if recovers(&next.job, relations.children) {
        next.enter(State::Blocked, NewEvent::children_retried());
    }
    if next.job.stage() != Stage::Blocked {
        return;
    }
    let mode = next.job.spec.deps_mode;
    // The children of a composite wait for its deps: once there are any, they say what becomes of it. One that was
    // requeued without a dep that is lost can ship, and so can the composite.
    let has_children = next.job.spec.kind == JobKind::Composite && relations.children.total() > 0;
    if relations.deps.hopeless(mode) && !has_children {
        let event = NewEvent::deps_lost(relations.deps.lost);
        return fail(next, FailReason::DependencyFailed, event);
    }
    match next.job.spec.kind {
        JobKind::Agent if relations.deps.satisfied(mode) => {
            let ready_at = next.job.spec.run_at.unwrap_or(now).max(now);
            next.job.enqueued_at = ready_at;
            next.requeue(now, ready_at, NewEvent::unblocked());
        }
        JobKind::Agent => {}
        JobKind::Composite => {
            let Tally { shipped, failed, open } = relations.children;
            let fast = next.job.spec.on_failure == FailurePolicy::FailFast;
            if failed > 0 && (fast || open == 0) {
                let event = NewEvent::children_failed(failed, relations.children.total());
                fail(next, FailReason::ChildFailed, event);
            } else if shipped > 0 && open == 0 {
                let state = after_work(&next.job, now);
                let event = NewEvent::children_done(state.stage(), shipped);
                next.enter(state, event);
            }
        }
    }
}

/// Whether a composite that failed with a child follows its children again: somebody retried what had failed, and all of
/// them have shipped or still can. One that was cancelled, by failing fast or by hand, never will.
fn recovers(job: &Job, children: Tally) -> bool {
    let by_a_child = job.failure().is_some_and(|failure| failure.reason == FailReason::ChildFailed);
    let goes_on = job.spec.on_failure == FailurePolicy::Continue;
    // Where it failed fast, those that are open may be about to be cancelled because of that: it would fail once more, and
    // end the one that was retried.
    let can_ship = children.failed == 0 && children.total() > 0 && (goes_on || children.open == 0);
    job.stage() == Stage::Failed && by_a_child && can_ship
}

fn fail(next: &mut Transition, reason: FailReason, event: NewEvent) {
    let failure = Failure { reason, detail: Some(event.cause.clone()) };
    next.enter(State::Failed { failure }, event);
}
