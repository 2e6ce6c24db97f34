//! Work that gives its seat up: only for what is more urgent, not too often, not before it had its time, and at no cost.

use std::collections::BTreeMap;

use giga_domain::{Actor, Epoch, Event, EventKind, Job, JobId, Priority, Timestamp};

use super::holders::QUEUEING;
use super::story::{Stories, grant_of, is_held};
use super::{Evidence, Findings, Promise};
use crate::history::{Record, Word};

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    let jobs: BTreeMap<JobId, &Job> = evidence.jobs.iter().map(|job| (job.id, job)).collect();
    for job in &evidence.jobs {
        let mut story = Story { evidence, jobs: &jobs, job, asked: None, epoch: Epoch::ZERO, gave_up: 0 };
        for event in stories.of_job(job.id) {
            story.follow(event, found);
        }
        if story.gave_up != job.evictions {
            let text = format!("{} says {} evictions, its history {}", job.id, job.evictions, story.gave_up);
            found.add(Promise::EvictionsFree, text);
        }
    }
    releases(evidence, stories, found);
    checkpoints(evidence, stories, found);
}

struct Asked {
    at: Timestamp,
    for_job: Option<JobId>,
}

struct Story<'a> {
    evidence: &'a Evidence,
    jobs: &'a BTreeMap<JobId, &'a Job>,
    job: &'a Job,
    /// The holder of now is asked to let go.
    asked: Option<Asked>,
    epoch: Epoch,
    gave_up: u32,
}

impl Story<'_> {
    fn follow(&mut self, event: &Event, found: &mut Findings) {
        if let Some(grant) = grant_of(event) {
            (self.epoch, self.asked) = (grant.epoch, None);
        }
        match event.kind {
            EventKind::EvictionAsked => self.ask(event, found),
            EventKind::Preempted => self.gave_up(event, found),
            _ => {}
        }
    }

    fn ask(&mut self, event: &Event, found: &mut Findings) {
        let for_job = event.data.get("forJob").and_then(|id| id.as_str()?.parse::<JobId>().ok());
        if let Some(asker) = for_job {
            let rules = &self.evidence.scenario.rules;
            let asker = self.jobs.get(&asker).map(|job| job.spec.priority);
            let urgent = asker == Some(Priority::Critical) && self.job.spec.priority != Priority::Critical;
            if !urgent || !rules.preemption {
                let text = format!(
                    "{}, {:?}, was asked to let go for a job that is {asker:?}; preemption is {}",
                    self.job.id, self.job.spec.priority, rules.preemption
                );
                found.add(Promise::EvictionsFree, text);
            }
            if u64::from(self.gave_up) >= rules.max_evictions {
                let text = format!("{} was asked again after {} evictions", self.job.id, self.gave_up);
                found.add(Promise::EvictionsFree, text);
            }
        }
        if self.asked.is_some() {
            found.add(Promise::EvictionsFree, format!("{} was asked twice in one lease", self.job.id));
        }
        self.asked = Some(Asked { at: event.at, for_job });
    }

    fn gave_up(&mut self, event: &Event, found: &mut Findings) {
        let Some(asked) = self.asked.take() else {
            let text = format!("{} gave up epoch {}, and nobody had asked", self.job.id, self.epoch);
            return found.add(Promise::EvictionsFree, text);
        };
        self.gave_up += u32::from(asked.for_job.is_some());
        if matches!(event.actor, Actor::Factory(_)) {
            return;
        }
        let scenario = &self.evidence.scenario;
        let deadline = asked.at.plus(scenario.rules.eviction_grace);
        if event.at < deadline {
            let text = format!("{} was taken away at {}, before {deadline}", self.job.id, event.at);
            found.add(Promise::LeaseKept, text);
        }
        let known = event.at > self.evidence.calm_since.plus(scenario.rules.eviction_grace);
        if known && event.at > deadline.plus(scenario.sweep + QUEUEING) {
            let text = format!("{} was to be given up by {deadline} and was at {}", self.job.id, event.at);
            found.add(Promise::RecoveredInTime, text);
        }
    }
}

/// Letting go when asked is an eviction and nothing else.
fn releases(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for record in &evidence.records {
        let Record::Held { epoch, word: Word::Release, after, .. } = record else { continue };
        let mut run = stories
            .of_job(after.id)
            .iter()
            .skip_while(|event| grant_of(event).is_none_or(|grant| grant.epoch != *epoch));
        let ending = run.clone().find(|event| event.to.is_some_and(|to| !is_held(to)));
        let asked = |event: &&&Event| event.kind == EventKind::EvictionAsked;
        let asked = run.find(|event| asked(event) || event.to.is_some_and(|to| !is_held(to)));
        let was_asked = asked.is_some_and(|event| event.kind == EventKind::EvictionAsked);
        let ending = ending.filter(|event| event.kind != EventKind::Cancelled);
        if let Some(ending) = ending.filter(|e| (e.kind == EventKind::Preempted) != was_asked) {
            let text = format!(
                "the release of epoch {epoch} of {} was recorded as {}; asked to let go: {was_asked}",
                after.id, ending.kind
            );
            found.add(Promise::EvictionsFree, text);
        }
    }
}

/// What was saved is there for whoever goes on.
fn checkpoints(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for record in &evidence.records {
        let Record::Granted { job, .. } = record else { continue };
        let before = stories
            .of_job(job.id)
            .iter()
            .take_while(|event| event.job.is_some_and(|(_, seq)| seq <= job.seq));
        // What is done again because it could not be merged begins anew.
        let saved = before.fold(false, |saved, event| match event.kind {
            EventKind::Checkpointed => true,
            EventKind::MergeSentBack => false,
            _ => saved,
        });
        if saved && !job.has_checkpoint {
            let text = format!("{} was granted at epoch {} without its checkpoint", job.id, job.epoch);
            found.add(Promise::EvictionsFree, text);
        }
    }
}
