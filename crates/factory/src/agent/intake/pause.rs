//! Pauses between tries: longer each time, and never in step with the rest of the fleet.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Pauses {
    tries: u32,
}

impl Pauses {
    pub(super) fn next(&mut self) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.tries.min(16));
        self.tries = self.tries.saturating_add(1);
        jittered(doubled.min(LONGEST))
    }

    pub(super) fn start_over(&mut self) {
        self.tries = 0;
    }
}

/// Between the half and the whole of it.
pub(crate) fn jittered(whole: Duration) -> Duration {
    let mut bytes = [0u8; 2];
    // Without randomness it is the whole.
    let share = match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX),
        Err(_) => 1.0,
    };
    whole.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_half_a_minute_and_start_over() {
        let mut pauses = Pauses::default();
        for whole in [1, 2, 4, 8, 16, 30, 30, 30] {
            let (pause, whole) = (pauses.next(), Duration::from_secs(whole));
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} of {whole:?}");
        }
        pauses.tries = u32::MAX;
        assert!(pauses.next() <= LONGEST);
        pauses.start_over();
        assert!(pauses.next() <= FIRST);
    }
}
