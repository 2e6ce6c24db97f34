//! Attempts: used up by failures and by leases that ended, not by releases and evictions; given back by an operator,
//! and by a reviewer who asks for changes of what succeeded.

use giga_domain::{Epoch, Event, EventKind, Job};

use super::story::{Stories, grant_of, is_held};
use super::{Evidence, Findings, Promise};
use crate::history::{Record, Word};

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for job in &evidence.jobs {
        counted(job, stories.of_job(job.id), found);
    }
    for record in &evidence.records {
        let Record::Held { epoch, word, after, .. } = record else { continue };
        let Some(ending) = stories.ending(after.id, *epoch) else { continue };
        let as_reported = match word {
            Word::On => true,
            Word::Report => {
                matches!(ending, EventKind::Reported | EventKind::Shipping | EventKind::Shipped)
            }
            Word::FailForNow => ending == EventKind::Retried || gives_up(stories.of_job(after.id), *epoch),
            Word::FailForAccount => {
                ending == EventKind::AccountClosed || gives_up(stories.of_job(after.id), *epoch)
            }
            Word::FailForGood => ending == EventKind::Failed,
            // Of a cancelled job it is a bill, and no more than that.
            Word::Release => {
                matches!(
                    ending,
                    EventKind::Released | EventKind::Parked | EventKind::Preempted | EventKind::Cancelled
                )
            }
        };
        if !as_reported {
            let text =
                format!("{word:?} of epoch {epoch} of {} was accepted and recorded as {ending}", after.id);
            found.add(Promise::AttemptsCounted, text);
        }
    }
}

/// Nobody answered what the run had asked, so it is not tried again, whatever it says.
fn gives_up(events: &[&Event], epoch: Epoch) -> bool {
    let mut of_run = events.iter().skip_while(|e| grant_of(e).is_none_or(|grant| grant.epoch != epoch));
    of_run.next();
    let mut of_run = of_run.take_while(|event| grant_of(event).is_none());
    of_run.any(|event| event.kind == EventKind::QuestionExpired)
        && events.iter().any(|event| event.kind == EventKind::Failed)
}

fn counted(job: &Job, events: &[&Event], found: &mut Findings) {
    let mut used = 0;
    for event in events {
        match event.kind {
            EventKind::Retried | EventKind::LeaseExpired => used += 1,
            EventKind::Failed if event.from.is_some_and(is_held) => used += 1,
            EventKind::Requeued | EventKind::ChangesRequested => used = 0,
            EventKind::DeadLettered if used <= job.spec.retry.max => {
                let text =
                    format!("{} was given up after {used} attempts of {}", job.id, job.spec.retry.max + 1);
                found.add(Promise::AttemptsCounted, text);
            }
            _ => {}
        }
    }
    if used != job.attempts {
        let text = format!("{} says {} attempts, its history {used}", job.id, job.attempts);
        found.add(Promise::AttemptsCounted, text);
    }
}
