//! Time and randomness that a test decides.
//!
//! Neither ever asks the operating system: the same test sees the same times, ids and tokens on every run.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use giga_domain::Timestamp;
use giga_ports::{Clock, Randomness};

/// Stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_millis()))
    }

    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }

    /// Also backwards: a store must not depend on a clock that only rises.
    pub fn set(&self, to: Timestamp) {
        self.0.store(to.as_millis(), Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// A recent whole second, so that ids and texts look like real ones.
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_760_000_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// The same bytes in the same order for the same seed, whichever thread asks. Not for secrets.
#[derive(Debug)]
pub struct SeededRandomness {
    seed: u64,
    drawn: AtomicU64,
}

impl SeededRandomness {
    pub fn new(seed: u64) -> Self {
        Self { seed, drawn: AtomicU64::new(0) }
    }
}

impl Default for SeededRandomness {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Randomness for SeededRandomness {
    fn bytes(&self) -> [u8; 32] {
        let draw = self.drawn.fetch_add(1, Ordering::SeqCst);
        let mut bytes = [0; 32];
        for (word, eight) in (0u64..).zip(bytes.chunks_exact_mut(8)) {
            eight.copy_from_slice(&mixed(mixed(self.seed) ^ mixed(draw * 4 + word)).to_le_bytes());
        }
        bytes
    }
}

/// The output function of SplitMix64: neighbouring inputs give unrelated outputs.
fn mixed(input: u64) -> u64 {
    let mut z = input.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_moves_only_when_told() {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(25));
        assert_eq!(clock.now().as_millis(), 1_025);
        clock.set(Timestamp::from_millis(7));
        assert_eq!(clock.now().as_millis(), 7);
    }

    #[test]
    fn a_seed_decides_everything_and_nothing_repeats() {
        let (one, same, other) =
            (SeededRandomness::new(1), SeededRandomness::new(1), SeededRandomness::new(2));
        let drawn: Vec<_> = (0..100).map(|_| one.bytes()).collect();
        assert!(drawn.iter().all(|bytes| *bytes == same.bytes()));
        assert!(drawn.iter().all(|bytes| *bytes != other.bytes()));
        let distinct: std::collections::BTreeSet<_> = drawn.iter().collect();
        assert_eq!(distinct.len(), drawn.len());
    }
}
