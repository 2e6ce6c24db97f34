//! Terms: what an older leader offers after a newer one was chosen changes nothing.

use std::collections::BTreeMap;

use giga_domain::{EventKind, JobId, Term};

use super::{Evidence, Findings, Promise};
use crate::history::Record;

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let mut term = Term::ZERO;
    let mut made_in: BTreeMap<(JobId, u64), Term> = BTreeMap::new();
    for event in &evidence.events {
        let number = |name: &str| event.data.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
        match (event.kind, event.job) {
            (EventKind::LeaderChanged, _) => {
                let next = Term(number("term"));
                if next <= term {
                    found.add(Promise::TermFenced, format!("term {next} follows term {term}"));
                }
                term = next;
            }
            (EventKind::Targeted, Some((job, _))) => {
                made_in.insert((job, number("dispatchSeq")), term);
            }
            _ => {}
        }
    }
    for record in &evidence.records {
        let Record::Offered { term, offers } = record else { continue };
        for (job, seq) in offers {
            let made = made_in.get(&(*job, seq.0));
            if made.is_none_or(|made| made > term) {
                let text = format!("offer {job}:{seq} of term {term} took effect in term {made:?}");
                found.add(Promise::TermFenced, text);
            }
        }
    }
}
