//! The settles of a round, apart by how they are written.

use std::collections::HashSet;

use giga_domain::topic::Outcome;
use giga_domain::{Epoch, JobId};
use giga_ports::topics::Settle;

use super::command::Asked;

type Asks = [Asked<Vec<Settle>, Vec<giga_ports::topics::Settled>>];

#[derive(Default)]
pub(super) struct Settles {
    /// Written set-wise, in the order of ids. Each job once.
    pub(super) successes: Vec<(JobId, Epoch)>,
    /// Everything else goes through the batch, in the order it was reported: other outcomes, and jobs that two words of this
    /// round are about.
    pub(super) others: Vec<(JobId, Epoch, Outcome)>,
    /// The jobs of `others`, in order.
    pub(super) other_ids: Vec<JobId>,
}

impl Settles {
    pub(super) fn of(asks: &Asks) -> Self {
        let given = || asks.iter().flat_map(|asked| &asked.ask);
        let mut ids: Vec<JobId> = given().map(|settle| settle.id).collect();
        ids.sort_unstable();
        let contested: HashSet<JobId> =
            ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        let mut settles = Self::default();
        for settle in given() {
            if settle.outcome == Outcome::Success && !contested.contains(&settle.id) {
                settles.successes.push((settle.id, settle.epoch));
            } else {
                settles.others.push((settle.id, settle.epoch, settle.outcome.clone()));
                settles.other_ids.push(settle.id);
            }
        }
        settles.successes.sort_unstable();
        settles.other_ids.sort_unstable();
        settles.other_ids.dedup();
        settles
    }
}
