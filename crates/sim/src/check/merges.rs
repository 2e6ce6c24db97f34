//! Shipped means merged: what is shipped is in its branch, once; what is in passed, and was announced before.

use giga_domain::{Actor, Event, EventKind, FactoryId, Job, Stage};

use super::story::Stories;
use super::{Evidence, Findings, Promise};
use crate::ports::{Landed, pass_together};

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for job in &evidence.jobs {
        one_at_a_time(job, stories.of_job(job.id), found);
    }
    for (repo, branch) in &evidence.branches {
        let mut landed: Vec<Landed> = Vec::new();
        for push in &branch.pushes {
            for &(job, epoch) in push.results.iter().filter(|result| landed.contains(result)) {
                found.add(Promise::ShippedIsMerged, format!("the result {job}/{epoch} is in {repo} twice"));
            }
            if !pass_together(&landed, &push.results) {
                let text = format!("{repo} was moved to {}, which fails with what was there", push.commit);
                found.add(Promise::ShippedIsMerged, text);
            }
            landed.extend(&push.results);
            if !push.announced {
                found.add(
                    Promise::ShippedIsMerged,
                    format!("{} was pushed to {repo} unannounced", push.commit),
                );
            }
        }
    }
    for job in &evidence.jobs {
        let (Some(_), Some(result)) = (&job.spec.repo, &job.result) else { continue };
        // Of several: each that it changed here is all of them.
        let result = (job.id, result.epoch);
        let is_in = |repo| evidence.branches.get(repo).is_some_and(|b| b.landed.contains(&result));
        let is_in = job.spec.repos().all(is_in);
        if is_in != (job.stage() == Stage::Shipped) {
            let there = if is_in { "in" } else { "not in all of" };
            let repos = job.spec.repos().collect::<Vec<_>>().join(", ");
            found.add(
                Promise::ShippedIsMerged,
                format!("{} is {} and its result {there} {repos}", job.id, job.stage()),
            );
        }
    }
}

/// Only whoever took it last is heard.
fn one_at_a_time(job: &Job, events: &[&Event], found: &mut Findings) {
    let mut at_it: Option<&FactoryId> = None;
    for event in events {
        let Actor::Factory(writer) = &event.actor else { continue };
        match event.kind {
            EventKind::MergeStarted => at_it = Some(writer),
            EventKind::MergeChecked
            | EventKind::Merged
            | EventKind::MergeFailed
            | EventKind::MergeSentBack
                if at_it != Some(writer) =>
            {
                let text =
                    format!("{writer} wrote {} to {}, which {at_it:?} was merging", event.kind, job.id);
                found.add(Promise::OneHolder, text);
            }
            _ => {}
        }
    }
}
