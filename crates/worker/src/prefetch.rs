//! How many jobs to hold beyond those that handlers are running: enough that no handler waits for the coordinator, and no
//! more, because a job that waits here could run on another worker.
//!
//! A worker prefetches what its handlers finish in a twentieth of a second. Quick handlers are sent hundreds of jobs at a
//! time; slow ones hardly more than they can start.

use std::time::Duration;

use tokio::time::Instant;

/// How long a prefetched job should wait for a handler at most.
const AHEAD: Duration = Duration::from_millis(50);
/// Upper bound, however quick the handlers are.
const AHEAD_MOST: f64 = 2_000.0;
/// The rate is measured over at least this long.
const WINDOW: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Prefetch {
    concurrency: usize,
    /// The user chose the limit, so it never changes.
    fixed: bool,
    /// The limit last reported to the coordinator.
    reported: usize,
    most: usize,
    since: Instant,
    finished: usize,
    /// Jobs per second, smoothed.
    rate: f64,
}

impl Prefetch {
    pub(crate) fn new(concurrency: usize, fixed: Option<usize>, most: usize) -> Self {
        Self {
            concurrency,
            fixed: fixed.is_some(),
            reported: fixed.unwrap_or_else(|| (concurrency + least_ahead(concurrency)).min(most)),
            most,
            since: Instant::now(),
            finished: 0,
            rate: 0.0,
        }
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.reported
    }

    /// Called when `jobs` more have finished. Returns the new limit if it has changed enough to report.
    pub(crate) fn finished(&mut self, jobs: usize, now: Instant) -> Option<usize> {
        self.finished += jobs;
        let span = now.duration_since(self.since);
        if self.fixed || span < WINDOW {
            return None;
        }
        let rate = self.finished as f64 / span.as_secs_f64();
        self.rate = if self.rate == 0.0 { rate } else { f64::midpoint(self.rate, rate) };
        (self.since, self.finished) = (now, 0);
        let ahead = (self.rate * AHEAD.as_secs_f64()).min(AHEAD_MOST) as usize;
        let wanted = (self.concurrency + ahead.max(least_ahead(self.concurrency))).min(self.most);
        // Not for every little change.
        if wanted.abs_diff(self.reported) * 4 <= self.reported {
            return None;
        }
        self.reported = wanted;
        Some(wanted)
    }
}

const fn least_ahead(concurrency: usize) -> usize {
    concurrency.div_ceil(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: Duration = Duration::from_millis(1);

    /// The limit after a second at this rate, with a report every ten milliseconds.
    fn after_a_second(prefetch: &mut Prefetch, per_second: usize) -> usize {
        let mut now = prefetch.since;
        for _ in 0..100 {
            now += 10 * MILLIS;
            prefetch.finished(per_second / 100, now);
        }
        prefetch.max_in_flight()
    }

    #[test]
    fn quick_handlers_are_kept_fed_and_slow_ones_hoard_nothing() {
        let mut prefetch = Prefetch::new(100, None, 10_000);
        assert_eq!(prefetch.max_in_flight(), 110);
        let quick = after_a_second(&mut prefetch, 20_000);
        assert!((900..=1_100).contains(&quick), "{quick}");
        assert!(after_a_second(&mut prefetch, 1_000_000) <= 2_100);
        let slow = after_a_second(&mut prefetch, 100);
        assert!((110..=137).contains(&slow), "{slow}");
    }

    #[test]
    fn a_limit_that_the_user_chose_stays() {
        let mut prefetch = Prefetch::new(100, Some(200), 10_000);
        assert_eq!(after_a_second(&mut prefetch, 50_000), 200);
    }
}
