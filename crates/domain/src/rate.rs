//! Token buckets: so many at once, so many per second after that. Time is an argument.

use std::time::Duration;

use crate::Timestamp;

/// How fast something may happen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    /// So many at once, after a quiet time.
    pub burst: f64,
}

/// What is left of a burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    level: f64,
    at: Timestamp,
}

impl Bucket {
    pub fn full(rate: Rate, now: Timestamp) -> Self {
        Self { level: rate.burst, at: now }
    }

    /// Takes so many, or says how long to wait until they could be taken. What is larger than a burst is let through
    /// when the bucket is full, and paid for afterwards.
    pub fn take(&mut self, rate: Rate, count: f64, now: Timestamp) -> Result<(), Duration> {
        self.fill(rate, now);
        let missing = count.min(rate.burst) - self.level;
        if missing > 0.0 {
            return Err(Duration::try_from_secs_f64(missing / rate.per_second).unwrap_or(Duration::MAX));
        }
        self.level -= count;
        Ok(())
    }

    /// What was taken and not used.
    pub fn give_back(&mut self, rate: Rate, count: f64) {
        self.level = (self.level + count).min(rate.burst);
    }

    pub fn is_full(&mut self, rate: Rate, now: Timestamp) -> bool {
        self.fill(rate, now);
        self.level >= rate.burst
    }

    fn fill(&mut self, rate: Rate, now: Timestamp) {
        let gained = now.since(self.at).as_secs_f64() * rate.per_second;
        self.level = (self.level + gained).min(rate.burst);
        // Also where the clock was set back: nothing is gained twice, and nobody waits for it to catch up.
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 2.0, burst: 4.0 };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_burst_passes_and_the_rest_waits_its_time() {
        let mut bucket = Bucket::full(RATE, at(0));
        for _ in 0..4 {
            assert_eq!(bucket.take(RATE, 1.0, at(0)), Ok(()));
        }
        assert_eq!(bucket.take(RATE, 1.0, at(0)), Err(Duration::from_millis(500)));
        assert_eq!(bucket.take(RATE, 1.0, at(400)), Err(Duration::from_millis(100)));
        assert_eq!(bucket.take(RATE, 1.0, at(500)), Ok(()));
        assert!(!bucket.is_full(RATE, at(2_499)));
        assert!(bucket.is_full(RATE, at(2_500)));
    }

    #[test]
    fn more_than_a_burst_passes_once_and_is_paid_for() {
        let mut bucket = Bucket::full(RATE, at(0));
        assert_eq!(bucket.take(RATE, 10.0, at(0)), Ok(()));
        assert_eq!(bucket.take(RATE, 1.0, at(0)), Err(Duration::from_millis(3_500)));
        bucket.give_back(RATE, 7.0);
        assert_eq!(bucket.take(RATE, 1.0, at(0)), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nobody_up() {
        let mut bucket = Bucket::full(RATE, at(3_600_000));
        assert_eq!(bucket.take(RATE, 4.0, at(3_600_000)), Ok(()));
        assert!(bucket.take(RATE, 1.0, at(0)).is_err());
        assert_eq!(bucket.take(RATE, 1.0, at(500)), Ok(()));
    }
}
