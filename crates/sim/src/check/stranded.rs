//! No job is left lying: it has ended, or somebody has to act, and `explain` says so.

use std::collections::BTreeMap;

use giga_domain::job::DepsMode;
use giga_domain::{Job, JobId, Stage};

use super::story::is_over;
use super::{Evidence, Findings, Promise};
use crate::scenario::Scenario;

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let stages: BTreeMap<JobId, Stage> = evidence.jobs.iter().map(|job| (job.id, job.stage())).collect();
    for job in evidence.jobs.iter().filter(|job| !is_over(job.stage())) {
        let explained = evidence.explained.get(&job.id).map_or("", String::as_str);
        if is_moving(job, &evidence.scenario, |dep| stages.get(&dep).copied()) {
            let text = format!("{} is still {} and nothing holds it up: {explained}", job.id, job.stage());
            found.add(Promise::NotStranded, text);
        } else if explained.is_empty() {
            let text = format!("{} is {} and explain says nothing about it", job.id, job.stage());
            found.add(Promise::NotStranded, text);
        }
    }
}

/// Whether the system, rather than a person, has to take the next step.
pub(crate) fn is_moving(job: &Job, scenario: &Scenario, stage_of: impl Fn(JobId) -> Option<Stage>) -> bool {
    match job.stage() {
        Stage::Assigned | Stage::Building => true,
        Stage::Queued => {
            let wanted: Vec<String> = job.spec.capabilities.iter().map(ToString::to_string).collect();
            scenario.somebody_can(&wanted.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Stage::Blocked => {
            let mut shipped = job.spec.deps.iter().map(|dep| stage_of(*dep) == Some(Stage::Shipped));
            match job.spec.deps_mode {
                DepsMode::All => shipped.all(|yes| yes),
                DepsMode::Any => shipped.any(|yes| yes),
            }
        }
        // A person's turn, or nobody's.
        Stage::Review
        | Stage::Testing
        | Stage::Failed
        | Stage::Shipped
        | Stage::DeadLetter
        | Stage::Cancelled => false,
    }
}
