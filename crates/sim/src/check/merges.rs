//! Shipped means merged: what is shipped is in its branch, once; what is in passed, and was announced before.

use std::collections::BTreeSet;

use giga_domain::Stage;

use super::{Evidence, Findings, Promise};

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    for (repo, branch) in &evidence.branches {
        let mut seen = BTreeSet::new();
        for push in &branch.pushes {
            let (job, epoch) = push.result;
            if !seen.insert(push.result) {
                found.add(Promise::ShippedIsMerged, format!("the result {job}/{epoch} is in {repo} twice"));
            }
            if !push.passed {
                let text = format!("{repo} was moved to {}, which fails with what was there", push.commit);
                found.add(Promise::ShippedIsMerged, text);
            }
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
