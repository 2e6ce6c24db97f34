//! How long to leave somebody alone who failed: twice as long after each failure, up to a limit.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

/// After so many failures in a row, the first of which counts as one.
pub(crate) fn pause_after(failures: u32, first: Duration, longest: Duration) -> Duration {
    let policy = ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest).without_max_times();
    // Whatever is to come after so many is the longest.
    policy.build().nth(failures.saturating_sub(1).min(64) as usize).unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pause =
            |failures| pause_after(failures, Duration::from_secs(5), Duration::from_mins(5)).as_secs();
        assert_eq!([0, 1, 2, 3, 6, 7, 8, u32::MAX].map(pause), [5, 5, 10, 20, 160, 300, 300, 300]);
    }
}
