//! No job is left lying: it has ended, or somebody has to act, and `explain` says so.

use super::standing::Standing;
use super::story::is_over;
use super::{Evidence, Findings, Promise};

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let standing = Standing::of(&evidence.jobs, &evidence.budgets, &evidence.scenario, evidence.ended_at);
    for job in evidence.jobs.iter().filter(|job| !is_over(job.stage())) {
        let explained = evidence.explained.get(&job.id).map_or("", String::as_str);
        if standing.is_moving(job) {
            let text = format!("{} is still {} and nothing holds it up: {explained}", job.id, job.stage());
            found.add(Promise::NotStranded, text);
        } else if explained.is_empty() {
            let text = format!("{} is {} and explain says nothing about it", job.id, job.stage());
            found.add(Promise::NotStranded, text);
        }
    }
}
