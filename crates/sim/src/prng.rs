//! Where every choice of a simulation comes from: SplitMix64, seeded once.
//!
//! Never the operating system, never a hash map's order: the same seed makes the same choices for ever.

use giga_ports::Randomness;
use parking_lot::Mutex;

#[derive(Debug, Clone)]
pub(crate) struct Prng(u64);

impl Prng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Another source, unrelated to what this one draws from here on.
    #[must_use]
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// From 0 to `n`, without `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// Both ends included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// So many times out of a thousand.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }
}

/// The randomness of one coordinator.
#[derive(Debug)]
pub(crate) struct SeededRandomness(Mutex<Prng>);

impl SeededRandomness {
    pub(crate) fn new(prng: Prng) -> Self {
        Self(Mutex::new(prng))
    }
}

impl Randomness for SeededRandomness {
    fn bytes(&self) -> [u8; 32] {
        let mut prng = self.0.lock();
        let mut bytes = [0; 32];
        for eight in bytes.chunks_exact_mut(8) {
            eight.copy_from_slice(&prng.next().to_le_bytes());
        }
        bytes
    }
}
