//! How long to wait before another try of something whose failures are counted in the store.
//!
//! A function of the count rather than an iterator from a backoff crate: the count outlives the process, and every
//! coordinator must arrive at the same instant, to the millisecond.

use std::time::Duration;

/// `first` after one failure, twice as long after each further one, never longer than `longest`.
pub fn doubling(first: Duration, failures: u32, longest: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    first.saturating_mul(1 << doublings).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_limit() {
        let wait = |failures| doubling(Duration::from_secs(5), failures, Duration::from_mins(1)).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 6, u32::MAX].map(wait), [5, 5, 10, 20, 40, 60, 60, 60]);
        assert_eq!(doubling(Duration::MAX, 9, Duration::from_secs(1)), Duration::from_secs(1));
    }
}
