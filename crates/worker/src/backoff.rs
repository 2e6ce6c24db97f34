//! Waiting longer after each failure, and never in step with others. The randomness is local and weak on purpose: nothing
//! but timing and names hangs on it, so a seed from the standard library's hash maps is enough.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
pub(crate) const LONGEST: Duration = Duration::from_secs(5);

pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }

    /// Between half of the step and all of it; the step doubles.
    pub(crate) fn step(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(LONGEST);
        step / 2 + (step / 2).mul_f64((random() % 1_000) as f64 / 1_000.0)
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.step()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double_up_to_a_limit_and_start_over_after_a_reset() {
        let mut backoff = Backoff::new();
        let mut expected = FIRST;
        for _ in 0..12 {
            let step = backoff.step();
            assert!(
                step >= expected / 2 && step <= expected,
                "{step:?} is not in {expected:?}/2..={expected:?}"
            );
            expected = (expected * 2).min(LONGEST);
        }
        backoff.reset();
        assert!(backoff.step() <= FIRST);
    }

    #[test]
    fn two_workers_do_not_wait_in_step() {
        let steps = || {
            let mut backoff = Backoff::new();
            (0..8).map(|_| backoff.step()).collect::<Vec<_>>()
        };
        assert_ne!(steps(), steps());
    }
}
