//! What every grant has to respect: the factory's seats and capabilities, whether it drains, the job's concurrency key, and
//! the time before which nobody may have it.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{Event, EventKind, FactoryId, Job, JobId, ProductId, Timestamp};

use super::story::{Grant, grant_of, is_held};
use super::{Evidence, Findings, Promise};

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let jobs: BTreeMap<JobId, &Job> = evidence.jobs.iter().map(|job| (job.id, job)).collect();
    let mut fleet = Fleet { evidence, held: BTreeMap::new(), draining: BTreeSet::new() };
    let mut not_before: BTreeMap<JobId, Timestamp> = BTreeMap::new();
    // The feed stands in the order of the commits, so what is counted here is what was true at each of them.
    for event in &evidence.events {
        fleet.follow(event);
        let Some((id, _)) = event.job else { continue };
        let Some(job) = jobs.get(&id) else { continue };
        if let Some(ready_at) = ready_at(event) {
            not_before.insert(id, ready_at);
        }
        if event.to.is_some_and(|to| !is_held(to)) {
            fleet.held.remove(&id);
        }
        let Some(grant) = grant_of(event) else { continue };
        let due = not_before.remove(&id).max(job.spec.run_at);
        if let Some(due) = due.filter(|due| *due > event.at) {
            let text = format!("{id} was granted at {}, before {due}", event.at);
            found.add(Promise::NotBeforeItsTime, text);
        }
        fleet.grant(job, grant, found);
    }
}

/// Keys of different products have nothing to do with each other.
type Key<'a> = (&'a ProductId, &'a str);

struct Fleet<'a> {
    evidence: &'a Evidence,
    held: BTreeMap<JobId, (FactoryId, Option<Key<'a>>)>,
    draining: BTreeSet<FactoryId>,
}

impl<'a> Fleet<'a> {
    fn follow(&mut self, event: &Event) {
        let named = || event.data.get("factoryId")?.as_str()?.parse::<FactoryId>().ok();
        match event.kind {
            EventKind::FactoryDraining => self.draining.extend(named()),
            EventKind::FactoryResumed => {
                if let Some(factory) = named() {
                    self.draining.remove(&factory);
                }
            }
            _ => {}
        }
    }

    fn grant(&mut self, job: &'a Job, Grant { factory, epoch }: Grant, found: &mut Findings) {
        let mut complain = |text: String| {
            found.add(
                Promise::LimitsKept,
                format!("{} was granted to {factory} at epoch {epoch}{text}", job.id),
            );
        };
        let key = job.spec.concurrency.as_ref().map(|concurrency| (&job.product, concurrency.key.as_str()));
        self.held.insert(job.id, (factory.clone(), key));
        let Some(plan) = self.evidence.scenario.factories.iter().find(|plan| plan.id == factory) else {
            return complain(", which nobody knows".to_owned());
        };
        if self.draining.contains(&factory) {
            complain(", which drains".to_owned());
        }
        let seats = self.held.values().filter(|(holder, _)| *holder == factory).count();
        if seats > plan.seats as usize {
            complain(format!(", which then held {seats} with {} seats", plan.seats));
        }
        if let Some(concurrency) = &job.spec.concurrency {
            let same = self.held.values().filter(|(_, held)| *held == key).count();
            if same > concurrency.limit as usize {
                complain(format!(" as number {same} of the key {}", concurrency.key));
            }
        }
        let wanted: Vec<String> = job.spec.capabilities.iter().map(ToString::to_string).collect();
        if let Some(lacking) = wanted.iter().find(|wanted| !plan.has(wanted)) {
            complain(format!(", which lacks {lacking}"));
        }
    }
}

/// Since when the job may be had again, where the event says so.
fn ready_at(event: &Event) -> Option<Timestamp> {
    event.data.get("readyAt")?.as_str()?.parse().ok()
}
