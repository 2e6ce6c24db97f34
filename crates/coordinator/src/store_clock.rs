//! What time the store has: deadlines, leases and turns are set by its clock, so they are judged by it too.
//!
//! A guess from what the store says now and then, as good as the time that the question took. It decides what is worth
//! asking for, never who holds what.

use std::sync::atomic::{AtomicI64, Ordering};

use giga_domain::Timestamp;
use giga_ports::StoreError;

use crate::core::Core;

/// By how many milliseconds the store's clock is ahead of this node's.
#[derive(Default)]
pub(crate) struct StoreClock(AtomicI64);

impl StoreClock {
    /// The store `reported` its time at some moment between the two. What was known stays as long as it can be true, so that a
    /// slow answer changes nothing.
    pub(crate) fn learn(&self, reported: Timestamp, asked_at: Timestamp, answered_at: Timestamp) {
        let ahead_of = |own: Timestamp| reported.as_millis().saturating_sub(own.as_millis());
        let least = ahead_of(asked_at.max(answered_at));
        let most = ahead_of(asked_at);
        let known = self.0.load(Ordering::SeqCst);
        self.0.store(known.clamp(least, most), Ordering::SeqCst);
    }
}

impl Core {
    /// The store's time, as far as it is known without asking.
    pub(crate) fn store_now(&self) -> Timestamp {
        let ahead = self.store_clock.0.load(Ordering::SeqCst);
        Timestamp::from_millis(self.clock.now().as_millis().saturating_add(ahead))
    }

    /// Asks the store for its time, and learns from the answer.
    pub(crate) async fn read_store_clock(&self) -> Result<Timestamp, StoreError> {
        let asked_at = self.clock.now();
        let reported = self.store.read().now().await?;
        self.store_clock.learn(reported, asked_at, self.clock.now());
        Ok(reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_changes_only_as_far_as_an_answer_contradicts_it() {
        let at = Timestamp::from_millis;
        let clock = StoreClock::default();
        let known = || clock.0.load(Ordering::SeqCst);
        clock.learn(at(1_020), at(1_000), at(1_050));
        assert_eq!(known(), 0, "a slow answer of a store that has the same time");
        clock.learn(at(31_000), at(1_000), at(1_400));
        assert_eq!(known(), 29_600, "as little as it can be");
        clock.learn(at(31_990), at(2_000), at(2_001));
        assert_eq!(known(), 29_989);
        clock.learn(at(2_000), at(3_000), at(2_500));
        assert_eq!(known(), -1_000, "also where the own clock went back meanwhile");
    }
}
