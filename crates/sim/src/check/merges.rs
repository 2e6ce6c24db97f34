//! Shipped means merged: what is shipped is in its branch, once; what is in passed, and was announced before.

use giga_domain::Stage;

use super::{Evidence, Findings, Promise};
use crate::ports::{Landed, pass_together};

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
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
        let (Some(repo), Some(result)) = (&job.spec.repo, &job.result) else { continue };
        let is_in = evidence.branches.get(repo).is_some_and(|b| b.landed.contains(&(job.id, result.epoch)));
        if is_in != (job.stage() == Stage::Shipped) && (is_in || job.stage() == Stage::Shipped) {
            let there = if is_in { "in" } else { "not in" };
            found.add(
                Promise::ShippedIsMerged,
                format!("{} is {} and its result {there} {repo}", job.id, job.stage()),
            );
        }
    }
}
