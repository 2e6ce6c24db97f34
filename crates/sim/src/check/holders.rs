//! One holder at a time, fenced by its epoch, for as long as its lease says.

use std::collections::BTreeMap;
use std::time::Duration;

use giga_domain::{Actor, Epoch, Event, EventKind, JobId, Stage, Timestamp};

use super::story::{Grant, Stories, grant_of, is_held};
use super::{Evidence, Findings, Promise};
use crate::history::Record;

/// How long calls may wait for each other once nothing fails any more.
pub(super) const QUEUEING: Duration = Duration::from_millis(1_500);

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    let ends = known_ends(&evidence.records);
    for (job, events) in stories.all() {
        one_at_a_time(job, events, found);
        leases(evidence, job, events, &ends, found);
    }
    answers(evidence, stories, found);
}

fn one_at_a_time(job: JobId, events: &[&Event], found: &mut Findings) {
    let mut held: Option<Grant> = None;
    let mut highest = Epoch::ZERO;
    for event in events {
        if let Some(grant) = grant_of(event) {
            if let Some(holder) = &held {
                let text = format!("{job} was granted to {grant:?} while {holder:?} held it");
                found.add(Promise::OneHolder, text);
            }
            if grant.epoch <= highest {
                let text = format!("{job} was granted at epoch {} after epoch {highest}", grant.epoch);
                found.add(Promise::OneHolder, text);
            }
            highest = highest.max(grant.epoch);
            held = Some(grant);
            continue;
        }
        if let (Actor::Factory(writer), true) = (&event.actor, is_a_holders(event))
            && held.as_ref().is_none_or(|holder| holder.factory != *writer)
        {
            let text = format!("{writer} wrote {} to {job}, which {held:?} held", event.kind);
            found.add(Promise::OneHolder, text);
        }
        if event.to.is_some_and(|to| !is_held(to)) {
            held = None;
        }
    }
}

fn is_a_holders(event: &Event) -> bool {
    // What ends a merge is the word of whoever carries it out, who holds no lease on the job.
    if event.from == Some(Stage::Shipping) {
        return false;
    }
    matches!(
        event.kind,
        EventKind::Started
            | EventKind::Checkpointed
            | EventKind::ArtifactAdded
            | EventKind::Reported
            | EventKind::Shipping
            | EventKind::Shipped
            | EventKind::Failed
            | EventKind::Retried
            | EventKind::Released
            | EventKind::Preempted
    )
}

/// Every answer must agree with the history that it was given in.
fn answers(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for record in &evidence.records {
        match record {
            Record::Granted { factory, job, .. } => {
                let grant = stories.last_grant(job.id, job.seq);
                let granted = Grant { factory: factory.clone(), epoch: job.epoch };
                if job.holder.as_ref() != Some(factory) || grant.as_ref() != Some(&granted) {
                    let text = format!(
                        "{factory} was told that it holds {} at epoch {}, which {grant:?} held",
                        job.id, job.epoch
                    );
                    found.add(Promise::OneHolder, text);
                }
            }
            Record::Held { factory, epoch, after, .. } => {
                let writer = Grant { factory: factory.clone(), epoch: *epoch };
                let grant = stories.last_grant(after.id, after.seq);
                if grant.as_ref() != Some(&writer) {
                    let text = format!(
                        "a write to {} by {writer:?} was accepted after it had been granted to {grant:?}",
                        after.id
                    );
                    found.add(Promise::OneHolder, text);
                }
            }
            _ => {}
        }
    }
}

type Ends = BTreeMap<(JobId, Epoch), Timestamp>;

/// Until when each lease was known to last; it may have lasted longer where an answer was lost.
fn known_ends(records: &[Record]) -> Ends {
    let mut ends = Ends::new();
    for record in records {
        let (Record::Granted { job, .. } | Record::Held { after: job, .. }) = record else { continue };
        if let Some(end) = job.expires_at {
            let known = ends.entry((job.id, job.epoch)).or_insert(end);
            *known = (*known).max(end);
        }
    }
    ends
}

fn leases(evidence: &Evidence, job: JobId, events: &[&Event], ends: &Ends, found: &mut Findings) {
    let scenario = &evidence.scenario;
    let mut epoch = Epoch::ZERO;
    for event in events {
        epoch = grant_of(event).map_or(epoch, |grant| grant.epoch);
        if event.kind != EventKind::LeaseExpired {
            continue;
        }
        let Some(end) = ends.get(&(job, epoch)) else { continue };
        if event.at < *end {
            let text = format!("{job} was taken back at {}, before its lease ended at {end}", event.at);
            found.add(Promise::LeaseKept, text);
        }
        // Of a renewal during the storm the answer may have been lost, and the end with it.
        let known = event.at > evidence.calm_since.plus(scenario.lease);
        if known && event.at > end.plus(scenario.sweep + QUEUEING) {
            let text = format!("{job} came back at {}, though its lease had ended at {end}", event.at);
            found.add(Promise::RecoveredInTime, text);
        }
    }
}
