//! Graphs of jobs on plain maps.

use std::collections::{BTreeSet, HashMap};

use giga_domain::job::JobKind;
use giga_domain::transition::{Deps, ParentEnd, Relations, Tally};
use giga_domain::{Job, JobId, Stage, Timestamp};

use super::Tables;
use crate::engine::{GraphLoaded, GraphNeeds, GraphWrites, Standing, Taken};

impl Tables {
    pub(super) fn load_graph(&self, needs: &GraphNeeds) -> GraphLoaded {
        let rows = self.reconsider.iter().take(needs.reconsider);
        let taken: Vec<Taken> = rows
            .map(|(row, (job, parent_ended))| Taken { row: *row, job: *job, parent_ended: *parent_ended })
            .collect();
        let mut relations: HashMap<JobId, Relations> = HashMap::new();
        for Taken { job, parent_ended, .. } in &taken {
            let Some(job) = self.jobs.get(job) else { continue };
            let found = self.relations(job, *parent_ended);
            // Of several rows about a job one may bring the news.
            let earlier = relations.get(&job.id).and_then(|relations| relations.parent);
            relations.insert(job.id, Relations { parent: earlier.or(found.parent), ..found });
        }
        let standing =
            |id: &JobId| (*id, Standing { above: self.above(*id), children: self.children(*id).count() });
        let parents = needs.parents.iter().map(standing).collect();
        GraphLoaded { taken, relations, parents, waits: self.waits(&needs.awaited) }
    }

    fn relations(&self, job: &Job, parent_ended: bool) -> Relations {
        let mut deps = Deps::default();
        for dep in job.spec.deps.iter().collect::<BTreeSet<_>>() {
            deps.add(self.jobs.get(dep).map(Job::stage), 1);
        }
        let mut children = Tally::default();
        for child in self.children(job.id) {
            children.add(child.stage(), 1);
        }
        let parent = job.spec.parent.and_then(|id| self.jobs.get(&id));
        let parent = parent.and_then(|job| ParentEnd::judge(job.id, job.stage(), &job.spec, parent_ended));
        Relations { deps, children, parent }
    }

    fn children(&self, parent: JobId) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(move |job| job.spec.parent == Some(parent))
    }

    /// How many stand above it.
    fn above(&self, id: JobId) -> usize {
        let parent = |job: &&Job| self.jobs.get(&job.spec.parent?);
        std::iter::successors(self.jobs.get(&id), parent).count().saturating_sub(1)
    }

    /// Who waits, and for whom: everybody who waits for one of these, directly or through others.
    fn waits(&self, awaited: &BTreeSet<JobId>) -> Vec<(JobId, JobId)> {
        let mut by_awaited: HashMap<JobId, Vec<JobId>> = HashMap::new();
        for job in self.jobs.values() {
            if job.stage().is_waiting() {
                for dep in &job.spec.deps {
                    by_awaited.entry(*dep).or_default().push(job.id);
                }
            }
            let parent = job.spec.parent.and_then(|id| self.jobs.get(&id));
            let waits = |parent: &&Job| parent.spec.kind == JobKind::Composite && parent.stage().is_waiting();
            if let Some(parent) = parent.filter(waits) {
                by_awaited.entry(job.id).or_default().push(parent.id);
            }
        }
        let mut known: BTreeSet<JobId> = awaited.clone();
        let mut to_visit: Vec<JobId> = awaited.iter().copied().collect();
        let mut waits = Vec::new();
        while let Some(id) = to_visit.pop() {
            for waiting in by_awaited.get(&id).into_iter().flatten() {
                waits.push((*waiting, id));
                if known.insert(*waiting) {
                    to_visit.push(*waiting);
                }
            }
        }
        waits
    }

    pub(super) fn persist_graph(&mut self, writes: &GraphWrites) {
        for row in &writes.seen_to {
            self.reconsider.remove(row);
        }
        let mut again: BTreeSet<(JobId, bool)> = writes.again.iter().map(|id| (*id, false)).collect();
        for job in self.jobs.values() {
            let waits = job.spec.deps.iter().any(|dep| writes.over.contains(dep));
            let of_child = writes.parents.contains(&job.id)
                && job.spec.kind == JobKind::Composite
                && !job.stage().is_terminal();
            let of_parent = job.spec.parent.is_some_and(|parent| writes.ending.contains(&parent));
            if waits || of_child || of_parent {
                again.insert((job.id, of_parent && job.stage() != Stage::Failed));
            }
        }
        for row in again {
            self.last_reconsider += 1;
            self.reconsider.insert(self.last_reconsider, row);
        }
    }

    pub(super) fn retirable(&self, before: Timestamp, limit: usize) -> Vec<JobId> {
        let waiting = self.jobs.values().filter(|job| job.stage().is_waiting());
        let awaited: BTreeSet<JobId> = waiting.flat_map(|job| job.spec.deps.iter().copied()).collect();
        let open = |id: JobId| self.jobs.get(&id).is_some_and(|job| !job.stage().is_terminal());
        let old = |job: &&Job| {
            job.stage().is_terminal()
                && job.updated_at < before
                && !awaited.contains(&job.id)
                && !job.spec.parent.is_some_and(open)
                && self.children(job.id).all(|child| child.stage().is_terminal())
        };
        let mut old: Vec<_> = self.jobs.values().filter(old).map(|job| (job.updated_at, job.id)).collect();
        old.sort_unstable();
        old.into_iter().take(limit).map(|(_, id)| id).collect()
    }

    /// Parents before their children, generation by generation.
    pub(super) fn subtree(&self, root: JobId, limit: usize) -> Vec<Job> {
        let mut found: Vec<Job> = self.jobs.get(&root).into_iter().cloned().collect();
        let mut generation = 0..found.len();
        while !generation.is_empty() && found.len() < limit {
            let parents: BTreeSet<JobId> = found[generation.clone()].iter().map(|job| job.id).collect();
            let below = |job: &&Job| job.spec.parent.is_some_and(|parent| parents.contains(&parent));
            let start = found.len();
            found.extend(self.jobs.values().filter(below).cloned());
            generation = start..found.len();
        }
        found.truncate(limit);
        found
    }
}
