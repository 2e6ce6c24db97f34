//! Virtual time: the runtime's paused clock, seen by each party with an error of its own.

use std::time::Duration;

use giga_domain::Timestamp;
use giga_ports::Clock;
use tokio::time::Instant;

/// A recent whole second, so that ids and texts look like real ones.
const BEGINNING_MS: i64 = 1_760_000_000_000;
const DAY_MS: i64 = 86_400_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SimClock {
    started: Instant,
    beginning_ms: i64,
    skew_ms: i64,
}

impl SimClock {
    /// Must be called inside the runtime whose time it shows.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), beginning_ms: BEGINNING_MS, skew_ms: 0 }
    }

    /// The same, begun so that a day ends after this time.
    #[must_use]
    pub(crate) fn midnight_after(self, time: Duration) -> Self {
        let midnight = (BEGINNING_MS / DAY_MS + 1) * DAY_MS;
        Self { beginning_ms: midnight - time.as_millis() as i64, ..self }
    }

    /// The same time on a clock that is wrong by so much.
    #[must_use]
    pub(crate) fn skewed(self, skew_ms: i64) -> Self {
        Self { skew_ms, ..self }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.beginning_ms + self.elapsed().as_millis() as i64 + self.skew_ms)
    }
}
