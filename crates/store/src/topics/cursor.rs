//! Where the ready jobs of a topic begin, as far as this process knows.
//!
//! A database keeps index entries of claimed jobs for a while, and for as long as anybody holds an old snapshot. They
//! lie at the head of the queue, and a claim that walks over them gets slower with every job that ever passed. So a
//! claim begins where the last one ended. This is only a hint and never decides what is claimed: what this process makes
//! ready lowers the cursor, a claim that comes up short looks below it too, and so does one every second. Until
//! then a job that another process put below it is claimed out of its turn.

use std::collections::HashMap;

use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{JobId, Priority};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

const RANKS: usize = Priority::ALL.len();

/// How often a claim begins at the very beginning, for the sake of order.
const FULL_LOOK: Duration = Duration::from_secs(1);
/// A look below the cursor that takes longer walks over many dead entries.
const CHEAP: Duration = Duration::from_millis(20);
/// Dear looks may take this part of the time.
const SHARE: u32 = 20;

#[derive(Default)]
pub(super) struct Cursors(Mutex<HashMap<TopicKey, Cursor>>);

struct Cursor {
    /// Nothing with a smaller id was seen ready, by priority.
    from: [JobId; RANKS],
    /// The smallest id that became ready since the claim under way began.
    lowered: [JobId; RANKS],
    last_full: Option<Instant>,
    cost: Duration,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            from: [JobId::MIN; RANKS],
            lowered: [JobId::MAX; RANKS],
            last_full: None,
            cost: Duration::ZERO,
        }
    }
}

/// A stretch of the queue: jobs of this priority from `low` up to, not including, `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) priority: Priority,
    pub(super) low: JobId,
    pub(super) high: JobId,
}

/// What a claim looks at, in turn, until it has enough.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) stretches: Vec<Stretch>,
    /// Whether nothing ready can be missed.
    full: bool,
    began: Instant,
}

impl Cursors {
    fn lock(&self) -> MutexGuard<'_, HashMap<TopicKey, Cursor>> {
        self.0.lock()
    }

    /// One claim of a topic is under way at a time.
    pub(super) fn look(&self, key: &TopicKey, now: Instant) -> Look {
        let mut cursors = self.lock();
        let cursor = cursors.entry(key.clone()).or_default();
        cursor.lowered = [JobId::MAX; RANKS];
        let since = cursor.last_full.map(|at| now.saturating_duration_since(at));
        let affordable = |pause: Duration| since.is_none_or(|since| since >= pause);
        if affordable(FULL_LOOK.max(cursor.cost * SHARE)) {
            cursor.from = [JobId::MIN; RANKS];
        }
        let from = |priority: Priority| cursor.from[priority as usize];
        let ahead = |priority| Stretch { priority, low: from(priority), high: JobId::MAX };
        let mut stretches: Vec<Stretch> = Priority::ALL.into_iter().map(ahead).collect();
        let full = cursor.cost < CHEAP || affordable(cursor.cost * SHARE);
        if full {
            let behind = |priority| Stretch { priority, low: JobId::MIN, high: from(priority) };
            stretches.extend(Priority::ALL.into_iter().map(behind).filter(|s| s.low < s.high));
        }
        Look { stretches, full, began: now }
    }

    /// After the claim was committed. `short`: everything that the look showed was taken.
    pub(super) fn looked(
        &self,
        key: &TopicKey,
        look: &Look,
        claimed: impl Iterator<Item = (Priority, JobId)>,
        short: bool,
        now: Instant,
    ) {
        let mut cursors = self.lock();
        let cursor = cursors.entry(key.clone()).or_default();
        for (priority, id) in claimed {
            let from = &mut cursor.from[priority as usize];
            *from = (*from).max(id);
        }
        for (from, lowered) in cursor.from.iter_mut().zip(cursor.lowered) {
            *from = (*from).min(lowered);
        }
        // A look that found enough before it came to what lies behind says nothing of what that would have taken.
        if (short && look.full) || look.stretches.iter().all(|stretch| stretch.low == JobId::MIN) {
            cursor.last_full = Some(now);
            cursor.cost = now.saturating_duration_since(look.began);
        }
    }

    pub(super) fn lower(&self, key: &TopicKey, priority: Priority, id: JobId) {
        if let Some(cursor) = self.lock().get_mut(key) {
            cursor.lower(priority as usize, id);
        }
    }

    pub(super) fn lower_all(&self, key: &TopicKey, id: JobId) {
        if let Some(cursor) = self.lock().get_mut(key) {
            (0..RANKS).for_each(|rank| cursor.lower(rank, id));
        }
    }
}

impl Cursor {
    fn lower(&mut self, rank: usize, id: JobId) {
        self.from[rank] = self.from[rank].min(id);
        self.lowered[rank] = self.lowered[rank].min(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: Priority = Priority::Normal;

    fn key() -> TopicKey {
        TopicKey { product: "demo".parse().unwrap(), topic: "mail".parse().unwrap() }
    }

    fn id(number: u128) -> JobId {
        JobId::from_u128(number)
    }

    fn low(look: &Look) -> JobId {
        look.stretches.iter().find(|stretch| stretch.priority == NORMAL).unwrap().low
    }

    fn claim(cursors: &Cursors, at: Instant, took: Duration, claimed: u128, short: bool) -> Look {
        let look = cursors.look(&key(), at);
        cursors.looked(&key(), &look, std::iter::once((NORMAL, id(claimed))), short, at + took);
        look
    }

    #[test]
    fn a_claim_begins_where_the_last_one_ended() {
        let (cursors, now) = (Cursors::default(), Instant::now());
        claim(&cursors, now, Duration::ZERO, 50, false);
        let look = cursors.look(&key(), now);
        assert_eq!(low(&look), id(50));
        let behind = Stretch { priority: NORMAL, low: JobId::MIN, high: id(50) };
        assert_eq!(look.stretches.last(), Some(&behind), "and looks behind where there is room left");
    }

    #[test]
    fn what_becomes_ready_meanwhile_is_not_passed_over() {
        let (cursors, now) = (Cursors::default(), Instant::now());
        let look = cursors.look(&key(), now);
        cursors.lower(&key(), NORMAL, id(7));
        cursors.looked(&key(), &look, std::iter::once((NORMAL, id(50))), false, now);
        assert_eq!(low(&cursors.look(&key(), now)), id(7));
        claim(&cursors, now, Duration::ZERO, 60, false);
        cursors.lower_all(&key(), id(9));
        assert_eq!(low(&cursors.look(&key(), now)), id(9));
    }

    #[test]
    fn every_second_it_begins_at_the_beginning() {
        let (cursors, now) = (Cursors::default(), Instant::now());
        claim(&cursors, now, Duration::ZERO, 50, false);
        assert_eq!(low(&cursors.look(&key(), now + FULL_LOOK)), JobId::MIN);
    }

    #[test]
    fn a_dear_look_is_taken_seldom() {
        let (cursors, now) = (Cursors::default(), Instant::now());
        let dear = Duration::from_millis(100);
        claim(&cursors, now, dear, 50, true);
        let soon = now + dear + FULL_LOOK;
        let look = cursors.look(&key(), soon);
        assert_eq!((look.full, look.stretches.len(), low(&look)), (false, RANKS, id(50)));
        let later = now + dear + dear * SHARE;
        assert!(cursors.look(&key(), later).full);
    }
}
