//! How long to wait before the next try: longer after each failure, and never in step with others, because a restarted
//! server must not meet every coordinator in the same instant.
//!
//! Jitter adds up to as much again, so the bounds here are half of what is waited at most.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

/// Up to 10 s, for a server that is not there.
const CONNECT: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(25))
    .with_max_delay(Duration::from_secs(5))
    .with_jitter()
    .without_max_times();

/// Up to 3.2 s, for a connection that was just there.
const RECONNECT: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_delay(Duration::from_millis(1_600))
    .with_jitter()
    .without_max_times();

#[derive(Debug)]
pub(crate) struct Backoff(ExponentialBackoff);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(CONNECT.build())
    }

    pub(crate) async fn wait(&mut self) {
        if let Some(delay) = self.0.next() {
            tokio::time::sleep(delay).await;
        }
    }
}

/// For the NATS client, which counts for itself. The first attempt is made at once.
pub(crate) fn reconnect_delay(attempt: usize) -> Duration {
    // The delays stop growing long before the tenth.
    attempt.checked_sub(2).and_then(|grown| RECONNECT.build().nth(grown.min(10))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn delays_grow_to_a_limit_and_differ() {
        let delays: Vec<Duration> = CONNECT.build().take(100).collect();
        assert!(
            delays[0] >= Duration::from_millis(25) && delays[0] <= Duration::from_millis(50),
            "{delays:?}"
        );
        let grown: BTreeSet<Duration> = delays[10..].iter().copied().collect();
        let bounds = Duration::from_secs(5)..=Duration::from_secs(10);
        assert!(grown.iter().all(|delay| bounds.contains(delay)), "{grown:?}");
        assert!(grown.len() > 10, "{grown:?}");
    }

    #[test]
    fn a_lost_connection_is_tried_again_at_once_and_then_ever_more_slowly() {
        assert_eq!([0, 1].map(reconnect_delay), [Duration::ZERO; 2]);
        assert!(reconnect_delay(2) <= Duration::from_millis(100));
        let late = reconnect_delay(usize::MAX);
        assert!(late >= Duration::from_millis(1_600) && late <= Duration::from_millis(3_200), "{late:?}");
    }
}
