//! How many jobs to have in hand: enough that no handler waits for the coordinator, and no more, because what waits here
//! could be with another worker.
//!
//! On top of what the handlers work on, a worker has what they get through in a twentieth of a second. Quick handlers are
//! sent hundreds at a time; slow ones hardly more than they can start.

use std::time::Duration;

use tokio::time::Instant;

/// How long a job should wait here at most, at the pace of the handlers.
const AHEAD: Duration = Duration::from_millis(50);
/// However quick the handlers are.
const AHEAD_MOST: f64 = 2_000.0;
/// A pace is measured over so long at least.
const WINDOW: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Appetite {
    concurrency: usize,
    /// The user said how many; that is not for us to change.
    fixed: bool,
    /// What the coordinator was last told.
    told: usize,
    most: usize,
    since: Instant,
    finished: usize,
    /// Jobs per second, smoothed.
    pace: f64,
}

impl Appetite {
    pub(crate) fn new(concurrency: usize, fixed: Option<usize>, most: usize) -> Self {
        Self {
            concurrency,
            fixed: fixed.is_some(),
            told: fixed.unwrap_or_else(|| (concurrency + least_ahead(concurrency)).min(most)),
            most,
            since: Instant::now(),
            finished: 0,
            pace: 0.0,
        }
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.told
    }

    /// So many more are finished. What to tell the coordinator, where it should be another number than before.
    pub(crate) fn finished(&mut self, jobs: usize, now: Instant) -> Option<usize> {
        self.finished += jobs;
        let span = now.duration_since(self.since);
        if self.fixed || span < WINDOW {
            return None;
        }
        let pace = self.finished as f64 / span.as_secs_f64();
        self.pace = if self.pace == 0.0 { pace } else { f64::midpoint(self.pace, pace) };
        (self.since, self.finished) = (now, 0);
        let ahead = (self.pace * AHEAD.as_secs_f64()).min(AHEAD_MOST) as usize;
        let wanted = (self.concurrency + ahead.max(least_ahead(self.concurrency))).min(self.most);
        // Not for every little change.
        if wanted.abs_diff(self.told) * 4 <= self.told {
            return None;
        }
        self.told = wanted;
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

    /// The last word after a second at this pace, told every ten milliseconds.
    fn after_a_second(appetite: &mut Appetite, per_second: usize) -> usize {
        let mut now = appetite.since;
        for _ in 0..100 {
            now += 10 * MILLIS;
            appetite.finished(per_second / 100, now);
        }
        appetite.max_in_flight()
    }

    #[test]
    fn quick_handlers_are_kept_fed_and_slow_ones_hoard_nothing() {
        let mut appetite = Appetite::new(100, None, 10_000);
        assert_eq!(appetite.max_in_flight(), 110);
        let quick = after_a_second(&mut appetite, 20_000);
        assert!((900..=1_100).contains(&quick), "{quick}");
        assert!(after_a_second(&mut appetite, 1_000_000) <= 2_100);
        let slow = after_a_second(&mut appetite, 100);
        assert!((110..=137).contains(&slow), "{slow}");
    }

    #[test]
    fn what_the_user_said_stands() {
        let mut appetite = Appetite::new(100, Some(200), 10_000);
        assert_eq!(after_a_second(&mut appetite, 50_000), 200);
    }
}
