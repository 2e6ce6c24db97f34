//! How long to wait before the next try, and never in step with the rest of the fleet.
//!
//! Jitter adds up to as much again, so what is configured here is half of what is waited at most.

use std::time::Duration;

use backon::{BackoffBuilder as _, ConstantBuilder, ExponentialBackoff, ExponentialBuilder};

/// From 1 s up to half a minute.
const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(500))
    .with_max_delay(Duration::from_secs(15))
    .with_jitter()
    .without_max_times();

/// Waits longer each time.
#[derive(Debug)]
pub(super) struct Backoff(ExponentialBackoff);

impl Backoff {
    pub(super) fn new() -> Self {
        Self(DELAYS.build())
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    pub(super) async fn wait(&mut self) {
        if let Some(delay) = self.0.next() {
            tokio::time::sleep(delay).await;
        }
    }
}

/// Waits between the half and the whole of `longest`.
pub(super) async fn jittered(longest: Duration) {
    let delays = ConstantBuilder::new().with_delay(longest / 2).with_jitter();
    tokio::time::sleep(delays.build().next().unwrap_or(longest)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_half_a_minute_and_start_over() {
        let mut backoff = Backoff::new();
        for longest in [1, 2, 4, 8, 16, 30, 30, 30].map(Duration::from_secs) {
            let delay = backoff.0.next().unwrap();
            assert!(delay >= longest / 2 && delay <= longest, "{delay:?} of {longest:?}");
        }
        backoff.reset();
        assert!(backoff.0.next().unwrap() <= Duration::from_secs(1));
    }
}
