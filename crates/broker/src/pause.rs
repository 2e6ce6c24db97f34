//! Waiting longer after each failure, and never in step with others: a restarted server must not meet every coordinator
//! in the same instant.
//!
//! Nothing but timing hangs on the randomness, so what seeds the standard library's hash maps is random enough.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.step()).await;
    }

    /// Between half of the step and all of it; the step doubles.
    fn step(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(LONGEST);
        let random = RandomState::new().build_hasher().finish();
        step / 2 + (step / 2).mul_f64((random % 1_000) as f64 / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        let mut pauses = Pauses::new();
        let first = pauses.step();
        assert!(first >= FIRST / 2 && first <= FIRST, "{first:?}");
        let grown: BTreeSet<Duration> = (0..100).map(|_| pauses.step()).skip(10).collect();
        assert!(grown.iter().all(|pause| *pause >= LONGEST / 2 && *pause <= LONGEST), "{grown:?}");
        assert!(grown.len() > 10, "{grown:?}");
    }
}
