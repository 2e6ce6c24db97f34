//! The model test of the store: one random history on several stores, which must not be told apart.
//!
//! After every step the answers are compared, and every few steps everything that can be seen. Beside that a small
//! ledger, which knows nothing of how a store works, checks what must hold of any history.

mod call;
mod ledger;
mod outside;
mod player;
mod step;
mod visible;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::ManualClock;
use crate::store_suite::StoreFixture;
use player::Player;

/// A name, and how to make a fixture with empty data. The first is the reference.
pub type Contestant = (&'static str, fn() -> Box<dyn StoreFixture>);

#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub cases: u32,
    pub steps: usize,
}

impl Effort {
    /// `GIGA_MODEL_CASES` asks for another number of histories, for a longer search.
    #[must_use]
    pub fn or_as_asked(self) -> Self {
        let asked = std::env::var("GIGA_MODEL_CASES").ok().map(|text| text.parse().unwrap());
        Self { cases: asked.unwrap_or(self.cases), ..self }
    }
}

/// Panics with the shortest history found on which the stores differ or an invariant breaks. The seed is in the
/// message; `GIGA_MODEL_SEED` plays it again.
pub fn compare(contestants: &[Contestant], effort: Effort) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = std::env::var("GIGA_MODEL_SEED").ok().map(|text| text.parse().unwrap());
    let seed: u64 = asked.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases: effort.cases,
        max_shrink_iters: u32::MAX,
        max_shrink_time: 60_000,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new_with_rng(config, rng).run(&step::history(effort.steps), |history| {
        runtime.block_on(async {
            let clock = Arc::new(ManualClock::default());
            let (mut fixtures, mut stores) = (Vec::new(), Vec::new());
            for (name, make) in contestants {
                let fixture = make();
                stores.push(((*name).to_owned(), fixture.open(clock.clone()).await));
                fixtures.push(fixture);
            }
            Player::new(stores, clock).play(history).await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("GIGA_MODEL_SEED={seed} GIGA_MODEL_CASES={} plays it again\n{failure}", effort.cases);
    }
}
