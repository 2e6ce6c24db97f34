//! Accounts of engines: nobody is sent to one of which everybody knows that it is closed.
//!
//! That it costs no attempt is looked at with the attempts, that work goes on once it opens with what is stranded.

use std::collections::BTreeMap;
use std::time::Duration;

use giga_domain::{FactoryId, Job, JobId, Timestamp};

use super::story::grant_of;
use super::{Evidence, Findings, Promise};
use crate::history::Record;
use crate::scenario::ENGINES;

type Closed = Vec<(String, Timestamp)>;

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    if !evidence.scenario.rules.accounts {
        return;
    }
    // While everything works, whatever was said is known to all who plan before long.
    let slack = evidence.scenario.heartbeat * 2 + Duration::from_secs(1);
    let quiet_since = evidence.calm_since.plus(slack);
    let jobs: BTreeMap<JobId, &Job> = evidence.jobs.iter().map(|job| (job.id, job)).collect();
    for event in evidence.events.iter().filter(|event| event.at >= quiet_since) {
        let Some((grant, (id, _))) = grant_of(event).zip(event.job) else { continue };
        let Some(job) = jobs.get(&id) else { continue };
        let known = known_at(evidence, event.at, slack);
        let is_closed = |engine: &str| {
            let mut all = known.values().flat_map(|closed| closed.iter());
            all.any(|(name, until)| name == engine && *until > event.at.plus(slack))
        };
        let usable: Vec<&str> = ENGINES
            .into_iter()
            .filter(|name| job.spec.engine.is_any() || job.spec.engine.has(name))
            .collect();
        if usable.iter().all(|name| is_closed(name)) {
            let text = format!(
                "{id} was granted to {} at {}, long after all of {usable:?} were reported closed: {known:?}",
                grant.factory, event.at
            );
            found.add(Promise::AccountsKept, text);
        }
    }
}

/// What each factory said last, where it said so long before and nothing else since.
fn known_at(evidence: &Evidence, at: Timestamp, slack: Duration) -> BTreeMap<&FactoryId, &Closed> {
    let mut known: BTreeMap<&FactoryId, &Closed> = BTreeMap::new();
    for record in &evidence.records {
        let Record::Advertised { factory, closed, at: said } = record else { continue };
        if *said > at {
            break;
        }
        if said.plus(slack) <= at {
            known.insert(factory, closed);
        } else if known.get(factory).is_some_and(|before| *before != closed) {
            // It has changed its mind, and not everybody may have heard.
            known.remove(factory);
        }
    }
    known
}
