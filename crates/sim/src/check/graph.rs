//! Graphs: nobody runs before what it waits for, and what becomes of a job is what those that it hangs on say.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::job::{DepsMode, FailurePolicy};
use giga_domain::{Event, EventKind, Job, JobId, JobKind, Stage};

use super::standing::Standing;
use super::{Evidence, Findings, Promise};

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let mut graph = Graph {
        jobs: evidence.jobs.iter().map(|job| (job.id, job)).collect(),
        stages: BTreeMap::new(),
        children: BTreeMap::new(),
        hopeless: BTreeSet::new(),
        freed: BTreeSet::new(),
    };
    for event in &evidence.events {
        graph.follow(event, found);
    }
    let standing = Standing::of(&evidence.jobs, &evidence.budgets, &evidence.scenario, evidence.ended_at);
    for job in &evidence.jobs {
        if let Some(why) = standing.hangs_on_what_moved(job) {
            found.add(Promise::GraphKept, format!("{} is left {}: {why}", job.id, job.stage()));
        }
    }
}

struct Graph<'a> {
    jobs: BTreeMap<JobId, &'a Job>,
    stages: BTreeMap<JobId, Stage>,
    children: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Failed because their deps will never ship.
    hopeless: BTreeSet<JobId>,
    /// Somebody wants them to run without their deps.
    freed: BTreeSet<JobId>,
}

impl Graph<'_> {
    fn follow(&mut self, event: &Event, found: &mut Findings) {
        let (Some((id, _)), Some(to)) = (event.job, event.to) else { return };
        let Some(job) = self.jobs.get(&id).copied() else { return };
        if event.kind == EventKind::Submitted
            && let Some(parent) = job.spec.parent
        {
            if self.stages.get(&parent).copied().is_none_or(super::story::is_over) {
                found.add(Promise::GraphKept, format!("{id} was made a child of {parent}, which was over"));
            }
            self.children.entry(parent).or_default().insert(id);
        }
        match event.kind {
            EventKind::Failed if reason(event) == Some("dependency_failed") => {
                self.hopeless.insert(id);
            }
            EventKind::Requeued if self.hopeless.contains(&id) && job.spec.kind == JobKind::Agent => {
                self.freed.insert(id);
            }
            _ => {}
        }
        if to == Stage::Assigned && !self.freed.contains(&id) {
            self.begins(job, found);
        }
        let from = self.stages.insert(id, to);
        if job.spec.kind == JobKind::Composite && from == Some(Stage::Blocked) {
            self.leaves(job, to, event, found);
        }
    }

    fn begins(&self, job: &Job, found: &mut Findings) {
        if job.spec.kind == JobKind::Composite {
            found.add(Promise::GraphKept, format!("the composite {} was granted", job.id));
        }
        let mut above = Some(job);
        while let Some(waits) = above {
            if !self.deps_shipped(waits) {
                let text =
                    format!("{} began, though {} still waited for {:?}", job.id, waits.id, waits.spec.deps);
                found.add(Promise::GraphKept, text);
            }
            let parent = waits.spec.parent.and_then(|parent| self.jobs.get(&parent).copied());
            above = parent.filter(|parent| parent.spec.kind == JobKind::Composite);
        }
    }

    fn deps_shipped(&self, job: &Job) -> bool {
        let mut shipped = job.spec.deps.iter().map(|dep| self.stages.get(dep) == Some(&Stage::Shipped));
        match job.spec.deps_mode {
            DepsMode::All => shipped.all(|yes| yes),
            DepsMode::Any => job.spec.deps.is_empty() || shipped.any(|yes| yes),
        }
    }

    /// Somebody let one below it run without the deps that it has from above.
    fn did_without_deps(&self, id: JobId) -> bool {
        let mut children = self.children.get(&id).into_iter().flatten();
        children.any(|child| self.freed.contains(child) || self.did_without_deps(*child))
    }

    /// A composite goes on, or fails, as its children say.
    fn leaves(&self, job: &Job, to: Stage, event: &Event, found: &mut Findings) {
        let children = self.children.get(&job.id);
        let stages: Vec<Stage> =
            children.into_iter().flatten().filter_map(|child| self.stages.get(child).copied()).collect();
        let is_lost = |stage: &Stage| matches!(stage, Stage::Failed | Stage::DeadLetter | Stage::Cancelled);
        let lost = stages.iter().filter(|stage| is_lost(stage)).count();
        let all_ended = stages.iter().all(|stage| is_lost(stage) || *stage == Stage::Shipped);
        let reason = reason(event);
        let right = match to {
            Stage::Shipped | Stage::Review | Stage::Testing => {
                !stages.is_empty()
                    && lost == 0
                    && all_ended
                    && (self.deps_shipped(job) || self.did_without_deps(job.id))
            }
            Stage::Failed if reason == Some("child_failed") => {
                lost > 0 && (all_ended || job.spec.on_failure == FailurePolicy::FailFast)
            }
            Stage::Failed => {
                let never = |dep: &JobId| {
                    matches!(self.stages.get(dep), None | Some(Stage::DeadLetter | Stage::Cancelled))
                };
                job.spec.deps.iter().any(never)
            }
            _ => true,
        };
        if !right {
            let text = format!(
                "the composite {} became {to} ({reason:?}, {:?}) with children {stages:?}",
                job.id, job.spec.on_failure
            );
            found.add(Promise::GraphKept, text);
        }
    }
}

fn reason(event: &Event) -> Option<&str> {
    event.data.get("reason")?.as_str()
}
