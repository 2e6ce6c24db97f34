//! The history of each job, as its events tell it.

use std::collections::BTreeMap;

use giga_domain::{Epoch, Event, EventKind, EventSeq, FactoryId, JobId, Stage};

#[derive(Debug)]
pub(super) struct Stories<'a>(BTreeMap<JobId, Vec<&'a Event>>);

/// A grant, as its event tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) factory: FactoryId,
    pub(super) epoch: Epoch,
}

impl<'a> Stories<'a> {
    pub(super) fn of(events: &'a [Event]) -> Self {
        let mut stories: BTreeMap<JobId, Vec<&Event>> = BTreeMap::new();
        for event in events {
            if let Some((job, _)) = event.job {
                stories.entry(job).or_default().push(event);
            }
        }
        Self(stories)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (JobId, &[&'a Event])> {
        self.0.iter().map(|(job, events)| (*job, events.as_slice()))
    }

    pub(super) fn of_job(&self, job: JobId) -> &[&'a Event] {
        self.0.get(&job).map(Vec::as_slice).unwrap_or_default()
    }

    /// Who was granted the job last when its history had come so far.
    pub(super) fn last_grant(&self, job: JobId, seq: EventSeq) -> Option<Grant> {
        let until = self.of_job(job).iter().filter(|event| event.job.is_some_and(|(_, at)| at <= seq));
        until.rev().find_map(|event| grant_of(event))
    }

    /// What ended that grant, where something did.
    pub(super) fn ending(&self, job: JobId, epoch: Epoch) -> Option<EventKind> {
        let mut after = self.of_job(job).iter().skip_while(|e| grant_of(e).is_none_or(|g| g.epoch != epoch));
        after.next()?;
        after.find(|event| event.to.is_some_and(|to| !is_held(to))).map(|event| event.kind)
    }
}

pub(super) fn grant_of(event: &Event) -> Option<Grant> {
    if event.kind != EventKind::Assigned {
        return None;
    }
    let factory = event.data.get("factoryId")?.as_str()?.parse().ok()?;
    Some(Grant { factory, epoch: Epoch(event.data.get("leaseEpoch")?.as_u64()?) })
}

pub(super) fn is_held(stage: Stage) -> bool {
    stage == Stage::Assigned || stage == Stage::Building
}

pub(super) fn is_over(stage: Stage) -> bool {
    matches!(stage, Stage::Shipped | Stage::DeadLetter | Stage::Cancelled)
}
