//! Whose turn it is: effective priority, then fair share between products, then age.
//!
//! This module never looks at factories: the order is the same whether or not there is a place.
//! Every full `starvation_after` of age lifts a job by one priority. A job therefore ends up in the topmost class,
//! where nothing that arrives later goes before it but jobs of a product that holds less than its share.

use std::cmp::Ordering;
use std::time::Duration;

use giga_domain::{JobId, Priority, Timestamp};

/// The effective priority: 0 goes first. Never falls as `now` moves on, never rises with a later `enqueued_at`.
pub(crate) fn class(priority: Priority, enqueued_at: Timestamp, now: Timestamp, span: Duration) -> u8 {
    let lifts = now.since(enqueued_at).as_millis() / span.as_millis().max(1);
    priority.rank().saturating_sub(u8::try_from(lifts).unwrap_or(u8::MAX))
}

/// How much of its share a product holds; the smallest goes first.
pub(crate) fn share_held(held: u32, share: f64) -> f64 {
    // A share of nothing (or nonsense) still gets what nobody else wants.
    let share = if share.is_finite() && share > 0.0 { share } else { 1e-9 };
    f64::from(held) / share
}

/// The place of a job in the line of all products; the smallest goes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) class: u8,
    pub(crate) share_held: f64,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) job: JobId,
}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        self.class
            .cmp(&other.class)
            .then(self.share_held.total_cmp(&other.share_held))
            .then(self.enqueued_at.cmp(&other.enqueued_at))
            .then(self.job.cmp(&other.job))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Turn {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Turn {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_full_span_lifts_by_one_priority_and_no_further_than_the_top() {
        let span = Duration::from_mins(30);
        let at = |seconds: i64| {
            class(Priority::Low, Timestamp::ZERO, Timestamp::from_millis(seconds * 1000), span)
        };
        assert_eq!([at(0), at(1799), at(1800), at(3600), at(5400), at(999_999)], [3, 3, 2, 1, 0, 0]);
        let tomorrow = Timestamp::from_millis(86_400_000);
        assert_eq!(
            class(Priority::High, tomorrow, Timestamp::ZERO, span),
            1,
            "a clock that runs behind is no age"
        );
    }

    #[test]
    fn a_share_of_nothing_comes_last_but_is_no_error() {
        assert!(share_held(1, 0.0) > share_held(1_000, 1.0));
        assert!(share_held(1, f64::NAN).is_finite());
        assert!(share_held(0, 0.0) <= 0.0);
    }
}
