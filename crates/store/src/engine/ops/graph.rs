//! Looking again at jobs because something that they hang on has moved.

use std::collections::HashMap;

use giga_domain::{Actor, Command, JobId};
use giga_ports::StoreError;
use giga_ports::store::{Reconsider, Reconsidered};

use super::super::{Backend, Needs, Op, Working};

impl Op for Reconsider {
    /// Where there is nothing to do nobody writes.
    async fn look<B: Backend>(&self, backend: &B) -> Result<Option<Reconsidered>, StoreError> {
        Ok((!backend.any_to_reconsider().await?).then(Reconsidered::default))
    }

    fn needs(&self, needs: &mut Needs) {
        needs.graph.reconsider = needs.graph.reconsider.max(self.limit);
    }

    fn decide(&self, working: &mut Working) -> Result<Reconsidered, StoreError> {
        let mut jobs = working.take_to_reconsider();
        let looked_at = jobs.len();
        jobs.sort_unstable();
        jobs.dedup();
        let new_children = new_children(working);
        let mut moved = Vec::new();
        for id in jobs {
            // One that was retired since has nothing to be looked at.
            let Ok(before) = working.job(id).map(|job| job.rev) else { continue };
            let mut relations = working.loaded().graph.relations.get(&id).copied().unwrap_or_default();
            // Made by commands before it in the batch, and so not counted.
            relations.children.open += new_children.get(&id).copied().unwrap_or(0);
            let command = Command::Reconsider(relations);
            if working.apply(id, &command, &Actor::system("reconsider"))?.rev != before {
                moved.push(id);
            }
        }
        // Where there was something before the lock and is nothing now, somebody else has it, and may yet fail.
        let more = looked_at >= self.limit || looked_at == 0;
        Ok(Reconsidered { moved, looked_at, more })
    }
}

fn new_children(working: &Working) -> HashMap<JobId, u32> {
    let mut counts = HashMap::new();
    for parent in working.made().filter_map(|job| job.spec.parent) {
        *counts.entry(parent).or_default() += 1;
    }
    counts
}
