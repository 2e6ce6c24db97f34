//! How long to wait before the next try: longer after each failure, and never in step with other workers.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

pub(crate) const LONGEST: Duration = Duration::from_secs(5);

/// The jitter adds up to as much again, so the bounds are half of what is waited at most: 50 ms to [`LONGEST`].
const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(25))
    .with_max_delay(Duration::from_millis(2_500))
    .with_jitter()
    .without_max_times();

#[derive(Debug)]
pub(crate) struct Backoff(ExponentialBackoff);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(DELAYS.build())
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0.next().unwrap_or(LONGEST)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_limit_and_two_workers_do_not_wait_in_step() {
        let delays = || Backoff::new().0.take(12).collect::<Vec<_>>();
        let (one, other) = (delays(), delays());
        assert!(one[0] >= Duration::from_millis(25) && one[0] <= Duration::from_millis(50), "{one:?}");
        assert!(one[11] >= LONGEST / 2 && one[11] <= LONGEST, "{one:?}");
        assert_ne!(one, other);
    }
}
