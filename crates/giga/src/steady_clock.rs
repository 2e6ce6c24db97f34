//! The coordinator's clock: the machine's, except that it never goes back.
//!
//! Leases, retries and turns are deadlines in the store, and events have their times there. Were the clock to go back by
//! an hour, a dead worker would keep its job for that hour. So a step back of the machine's clock is not followed: time
//! goes on from where it was, a little slower, until the machine's clock has caught up. A step forward is followed at once,
//! as after a suspended machine wakes up: what was due meanwhile is due. See docs/operations.md, "Clocks".

use std::time::{Duration, Instant};

use giga_domain::Timestamp;
use giga_ports::Clock;
use parking_lot::Mutex;

use crate::system::SystemClock;

/// While it is ahead of the machine's clock, it counts so many tenths of each second.
const TENTHS: u32 = 9;
/// What a store has recorded is believed that far ahead of the machine's clock. Further off it was that record that was
/// wrong.
pub(crate) const BELIEVED: Duration = Duration::from_hours(24);

pub(crate) struct SteadyClock {
    started: Instant,
    last: Mutex<Moment>,
}

/// What time it was how long after the start.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// Since 1970.
    time: Duration,
    after: Duration,
}

impl Moment {
    /// The next one, by the machine's clock and how much time has really passed.
    fn next(self, wall: Duration, after: Duration) -> Self {
        let passed = after.saturating_sub(self.after);
        let slowly = self.time + passed * TENTHS / 10;
        Self { time: wall.max(slowly), after }
    }
}

/// What the newest record of a store means to the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// It is past, as it should be.
    Past,
    /// The machine's clock is behind by so much, and is waited for.
    Ahead(Duration),
    /// It is ahead by so much that it cannot be believed.
    Wrong(Duration),
}

impl SteadyClock {
    pub(crate) fn new() -> Self {
        let first = Moment { time: wall(), after: Duration::ZERO };
        Self { started: Instant::now(), last: Mutex::new(first) }
    }

    /// The clock does not say an earlier time than what a store has recorded before this process was started.
    pub(crate) fn go_on_from(&self, newest: Timestamp) -> Record {
        let now = self.now();
        let ahead = newest.since(now);
        if newest <= now {
            Record::Past
        } else if ahead > BELIEVED {
            Record::Wrong(ahead)
        } else {
            let mut last = self.last.lock();
            last.time = last.time.max(Duration::from_millis(newest.as_millis().unsigned_abs()));
            Record::Ahead(ahead)
        }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let mut last = self.last.lock();
        *last = last.next(wall(), self.started.elapsed());
        Timestamp::ZERO.plus(last.time)
    }
}

fn wall() -> Duration {
    Duration::from_millis(SystemClock.now().as_millis().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const NOON: Duration = Duration::from_hours(12);
    const ELEVEN: Duration = Duration::from_hours(11);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_step_back_is_not_followed_and_caught_up_slowly() {
        let start = Moment { time: NOON, after: Duration::ZERO };
        let after = start.next(ELEVEN + seconds(10), seconds(10));
        assert_eq!(after.time, NOON + seconds(9));
        let mut last = after;
        // Ten hours later the machine's clock has caught up, and is followed again.
        for second in 11..=36_100 {
            let next = last.next(ELEVEN + seconds(second), seconds(second));
            assert!(next.time >= last.time);
            last = next;
        }
        assert_eq!(last.time, ELEVEN + seconds(36_100));
    }

    #[test]
    fn a_step_forward_is_followed_at_once() {
        let start = Moment { time: NOON, after: Duration::ZERO };
        assert_eq!(start.next(NOON + HOUR, seconds(1)).time, NOON + HOUR);
    }

    #[test]
    fn a_machine_whose_clock_runs_a_little_slow_is_followed() {
        let start = Moment { time: NOON, after: Duration::ZERO };
        assert_eq!(start.next(NOON + seconds(95), seconds(100)).time, NOON + seconds(95));
    }

    #[test]
    fn what_a_store_has_recorded_is_gone_on_from_unless_it_cannot_be_true() {
        let clock = SteadyClock::new();
        let now = clock.now();
        assert_eq!(clock.go_on_from(now), Record::Past);
        assert!(matches!(clock.go_on_from(now.plus(HOUR)), Record::Ahead(_)));
        let later = clock.now();
        assert!(later >= now.plus(HOUR));
        assert!(matches!(clock.go_on_from(now.plus(BELIEVED * 365)), Record::Wrong(_)));
        assert!(clock.now() < now.plus(HOUR * 2));
    }
}
