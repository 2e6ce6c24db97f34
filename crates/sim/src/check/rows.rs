//! What is kept beside the history: grants by request, runs, and counts that nobody counts anew.

use std::collections::BTreeMap;

use giga_domain::topic::{TopicKey, TopicStage};
use giga_domain::{Epoch, FactoryId, FeedPos, JobId, ProductId, RequestId, RunOutcome, Stage};

use super::story::{Stories, grant_of, is_held};
use super::{Evidence, Findings, Promise};
use crate::history::Record;

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    requests(evidence, stories, found);
    runs(evidence, stories, found);
    counts(evidence, found);
}

/// Two grants of one request: the first must have been over when the second was made.
fn requests(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    let mut won: BTreeMap<(&FactoryId, &RequestId), Vec<(JobId, Epoch)>> = BTreeMap::new();
    for record in &evidence.records {
        let Record::Granted { factory, request, job } = record else { continue };
        let grants = won.entry((factory, request)).or_default();
        if !grants.contains(&(job.id, job.epoch)) {
            grants.push((job.id, job.epoch));
        }
    }
    for ((factory, request), grants) in won {
        let mut spans: Vec<_> =
            grants.iter().filter_map(|(job, epoch)| span(stories, *job, *epoch)).collect();
        spans.sort_unstable();
        if spans.windows(2).any(|two| two[0].1.is_none_or(|end| end > two[1].0)) {
            let text = format!("request {request} of {factory} won {grants:?} at the same time");
            found.add(Promise::SameGrant, text);
        }
    }
}

/// Where in the feed the grant begins and ends.
fn span(stories: &Stories<'_>, job: JobId, epoch: Epoch) -> Option<(FeedPos, Option<FeedPos>)> {
    let mut events = stories.of_job(job).iter();
    let start = events.find(|event| grant_of(event).is_some_and(|grant| grant.epoch == epoch))?.pos;
    let end = events.find(|event| event.to.is_some_and(|to| !is_held(to))).map(|event| event.pos);
    Some((start, end))
}

/// A run for every grant, and an end for every run but that of a job which is held.
fn runs(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for job in &evidence.jobs {
        let granted: Vec<Epoch> = stories
            .of_job(job.id)
            .iter()
            .filter_map(|event| grant_of(event))
            .map(|grant| grant.epoch)
            .collect();
        let runs: Vec<_> = evidence.runs.iter().filter(|run| run.job == job.id).collect();
        let recorded: Vec<Epoch> = runs.iter().map(|run| run.epoch).collect();
        if recorded != granted {
            let text =
                format!("{} has runs of the epochs {recorded:?} and was granted at {granted:?}", job.id);
            found.add(Promise::CountsBalance, text);
        }
        let open = |outcome: &RunOutcome| *outcome == RunOutcome::Running;
        let held = |epoch: Epoch| is_held(job.stage()) && job.epoch == epoch;
        if let Some(run) = runs.iter().find(|run| open(&run.outcome) != held(run.epoch)) {
            let text =
                format!("run {} of {}, which is {}, is {:?}", run.epoch, job.id, job.stage(), run.outcome);
            found.add(Promise::CountsBalance, text);
        }
    }
}

fn counts(evidence: &Evidence, found: &mut Findings) {
    let mut jobs: BTreeMap<(&ProductId, Stage), u64> = BTreeMap::new();
    for job in &evidence.jobs {
        *jobs.entry((&job.product, job.stage())).or_default() += 1;
    }
    for (product, queue) in &evidence.queues {
        for stage in Stage::ALL {
            let there = jobs.get(&(product, stage)).copied().unwrap_or(0);
            if queue.count(stage) != there {
                let text = format!("{product} counts {} jobs {stage}; there are {there}", queue.count(stage));
                found.add(Promise::CountsBalance, text);
            }
        }
    }
    let mut jobs: BTreeMap<(&TopicKey, TopicStage), u64> = BTreeMap::new();
    for job in &evidence.topic_jobs {
        *jobs.entry((&job.key, job.head.state.stage())).or_default() += 1;
    }
    for topic in &evidence.topic_counts {
        for stage in TopicStage::ALL {
            let there = jobs.get(&(&topic.key, stage)).copied().unwrap_or(0);
            if topic.count(stage) != there {
                let text =
                    format!("{} counts {} jobs {stage}; there are {there}", topic.key, topic.count(stage));
                found.add(Promise::CountsBalance, text);
            }
        }
    }
}
