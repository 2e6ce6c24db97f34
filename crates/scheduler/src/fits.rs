//! The candidates of each kind of job, worked out when the first such job has its turn.
//!
//! A cache and nothing else: what it forgets is worked out again with the same result. It forgets so that a queue in
//! which every job asks for something else costs time and not memory.

use std::collections::{HashMap, VecDeque};

use crate::feasible::Filter;
use crate::fleet::{Candidates, Fleet};
use crate::queue::FitId;
use crate::{JobView, ProductPolicy};

/// 128 MiB of scores at most.
const SCORES_KEPT: usize = 16 * 1024 * 1024;

pub(crate) struct Fits {
    slots: Vec<Slot>,
    slot_of: HashMap<FitId, usize>,
    built: VecDeque<usize>,
    kept: usize,
}

enum Slot {
    Unbuilt,
    Built(Candidates),
    /// No factory has a seat for these any more.
    Exhausted(Filter),
}

impl Fits {
    pub(crate) fn new(factories: usize) -> Self {
        Self::keeping((SCORES_KEPT / factories.max(1)).max(64))
    }

    fn keeping(kept: usize) -> Self {
        Self { slots: Vec::new(), slot_of: HashMap::new(), built: VecDeque::new(), kept }
    }

    pub(crate) fn slot_of(&mut self, id: FitId) -> usize {
        let slots = &mut self.slots;
        *self.slot_of.entry(id).or_insert_with(|| {
            slots.push(Slot::Unbuilt);
            slots.len() - 1
        })
    }

    /// A slot for a job that need not be in the queue.
    pub(crate) fn add(&mut self) -> usize {
        self.slots.push(Slot::Unbuilt);
        self.slots.len() - 1
    }

    /// The candidates of `job`, whose kind the slot stands for; the error says what is in the way everywhere.
    pub(crate) fn candidates(
        &mut self,
        slot: usize,
        fleet: &Fleet<'_>,
        job: &JobView,
        product: &ProductPolicy,
    ) -> Result<&Candidates, Filter> {
        if matches!(self.slots[slot], Slot::Unbuilt) {
            if self.built.len() >= self.kept
                && let Some(oldest) = self.built.pop_front()
                && matches!(self.slots[oldest], Slot::Built(_))
            {
                self.slots[oldest] = Slot::Unbuilt;
            }
            self.slots[slot] = Slot::Built(Candidates::new(fleet, job, product.weights));
            self.built.push_back(slot);
        }
        match &self.slots[slot] {
            Slot::Built(candidates) => Ok(candidates),
            Slot::Exhausted(filter) => Err(*filter),
            Slot::Unbuilt => unreachable!("it was built above"),
        }
    }

    pub(crate) fn exhaust(&mut self, slot: usize, reason: Filter) {
        self.slots[slot] = Slot::Exhausted(reason);
    }
}

#[cfg(test)]
mod tests {
    use giga_domain::{CapabilitySet, EngineChoice, JobId, Priority, Rev, Timestamp};

    use super::*;
    use crate::Snapshot;
    use crate::fleet::Seats;

    #[test]
    fn what_was_forgotten_is_worked_out_again_and_what_was_exhausted_stays_so() {
        let job = JobView {
            id: JobId::MIN,
            rev: Rev::ZERO,
            product: "demo".parse().unwrap(),
            priority: Priority::Normal,
            enqueued_at: Timestamp::ZERO,
            ready_at: Timestamp::ZERO,
            engine: EngineChoice::ANY,
            capabilities: CapabilitySet::new(),
            repo: None,
            more_repos: Vec::new(),
            concurrency: None,
            cost_cap: None,
            last_factory: None,
            offered_to: None,
            excluded: Vec::new(),
            earlier: None,
        };
        let snapshot = Snapshot::default();
        let fleet = Fleet::new(&snapshot, Timestamp::ZERO, Seats::AsTheyAre);
        let mut fits = Fits::keeping(2);
        let slots: Vec<usize> = (0..5).map(|id| fits.slot_of(id)).collect();
        for _ in 0..3 {
            for &slot in &slots {
                assert!(fits.candidates(slot, &fleet, &job, &ProductPolicy::default()).is_ok());
                let held = fits.slots.iter().filter(|s| matches!(s, Slot::Built(_))).count();
                assert!(held <= 2, "{held} kept");
            }
        }
        fits.exhaust(slots[0], Filter::Seats);
        for &slot in &slots[1..] {
            assert!(fits.candidates(slot, &fleet, &job, &ProductPolicy::default()).is_ok());
        }
        assert_eq!(
            fits.candidates(slots[0], &fleet, &job, &ProductPolicy::default()).err(),
            Some(Filter::Seats)
        );
    }
}
