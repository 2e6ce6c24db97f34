//! Topic jobs: one holder at a time, at most one success, never more than a worker asked for, none left lying.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::topic::TopicStage;
use giga_domain::{Epoch, JobId, WorkerId};

use super::{Evidence, Findings, Promise};
use crate::history::Record;

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let mut last: BTreeMap<JobId, Epoch> = BTreeMap::new();
    let mut successes: BTreeMap<JobId, BTreeSet<Epoch>> = BTreeMap::new();
    let mut asked: BTreeMap<&WorkerId, u32> = BTreeMap::new();
    for record in &evidence.records {
        match record {
            Record::TopicAssigned { job, worker, epoch } => {
                if let Some(before) = last.insert(*job, *epoch).filter(|before| before >= epoch) {
                    let text = format!("{job} was given to {worker} at epoch {epoch} after epoch {before}");
                    found.add(Promise::TopicOnce, text);
                }
            }
            Record::TopicSettled { job, epoch, success, stage } => {
                if last.get(job) != Some(epoch) {
                    let text = format!(
                        "a word of epoch {epoch} on {job} was accepted, which is at {:?}",
                        last.get(job)
                    );
                    found.add(Promise::TopicOnce, text);
                }
                if *success && *stage == TopicStage::Done {
                    successes.entry(*job).or_default().insert(*epoch);
                }
            }
            Record::PauseIgnored { job } => {
                found.add(Promise::PauseKept, format!("{job} was handed out though its topic was paused"));
            }
            Record::Opened { worker, most } => {
                asked.insert(worker, *most);
            }
            Record::InFlight { worker, running } => {
                let most = asked.get(worker).copied().unwrap_or(0) as usize;
                if *running > most {
                    let text = format!("{worker} asked for {most} at once and had {running}");
                    found.add(Promise::InFlight, text);
                }
            }
            _ => {}
        }
    }
    for (job, epochs) in successes.iter().filter(|(_, epochs)| epochs.len() > 1) {
        found.add(Promise::TopicOnce, format!("{job} was done at each of the epochs {epochs:?}"));
    }
    for job in &evidence.topic_jobs {
        let stage = job.head.state.stage();
        if !matches!(stage, TopicStage::Done | TopicStage::Dead) {
            found.add(Promise::NotStranded, format!("the topic job {} is still {stage}", job.id));
        }
    }
}
