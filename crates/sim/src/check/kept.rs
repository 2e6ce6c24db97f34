//! Acknowledged means durable, and a key makes one job.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::JobId;

use super::{Evidence, Findings, Promise};
use crate::history::Record;

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let jobs: BTreeSet<JobId> = evidence.jobs.iter().map(|job| job.id).collect();
    let topic_jobs: BTreeSet<JobId> = evidence.topic_jobs.iter().map(|job| job.id).collect();
    let (mut keys, mut topic_keys) = (BTreeMap::new(), BTreeMap::new());
    for record in &evidence.records {
        match record {
            Record::Kept { key, job } => acknowledged(key.as_deref(), *job, &jobs, &mut keys, found),
            Record::TopicKept { key, job } => {
                acknowledged(key.as_deref(), *job, &topic_jobs, &mut topic_keys, found);
            }
            _ => {}
        }
    }
    let keyed = evidence.jobs.iter().filter_map(|job| Some((job.spec.idempotency_key.as_ref()?, job.id)));
    unique(keyed, found);
    let keyed = evidence.topic_jobs.iter().filter_map(|job| Some((job.idempotency_key.as_ref()?, job.id)));
    unique(keyed, found);
}

fn acknowledged<'a>(
    key: Option<&'a str>,
    job: JobId,
    there: &BTreeSet<JobId>,
    keys: &mut BTreeMap<&'a str, JobId>,
    found: &mut Findings,
) {
    if !there.contains(&job) {
        found.add(Promise::Durable, format!("{job} was acknowledged and is not there"));
    }
    if let Some(key) = key {
        let first = *keys.entry(key).or_insert(job);
        if first != job {
            found.add(Promise::KeyOnce, format!("the key {key} was answered with {first} and with {job}"));
        }
    }
}

fn unique<'a>(keyed: impl Iterator<Item = (&'a String, JobId)>, found: &mut Findings) {
    let mut makers: BTreeMap<&String, JobId> = BTreeMap::new();
    for (key, job) in keyed {
        if let Some(other) = makers.insert(key, job) {
            found.add(Promise::KeyOnce, format!("the key {key} made {other} and {job}"));
        }
    }
}
