//! What a seed decides about money, graphs, preemption and the world outside.
//!
//! Each is there in some of the seeds only: what most fleets never use must not hide what all of them need.

use std::time::Duration;

use giga_domain::{ProductId, Usd};

use crate::prng::Prng;

#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub products: Vec<ProductId>,
    pub money: Option<Money>,
    /// Composites, children, deps on several jobs.
    pub graphs: bool,
    pub preemption: bool,
    pub max_evictions: u64,
    /// How long a holder that is asked to let go may take.
    pub eviction_grace: Duration,
    /// How many listen.
    pub webhooks: u64,
    /// Jobs ask people.
    pub talk: bool,
    /// Factories have engines, whose accounts are closed now and then.
    pub accounts: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Money {
    pub day: Option<Usd>,
    pub total: Option<Usd>,
    /// The cap of jobs that name none.
    pub job: Option<Usd>,
    /// Somebody takes the limits away when the storm is over.
    pub lifted: bool,
    /// A day ends in the middle of the storm.
    pub midnight: bool,
}

pub(crate) fn micros(drawn: u64) -> Usd {
    Usd::from_micros(drawn.cast_signed())
}

impl Rules {
    pub(super) fn drawn(has_jobs: bool, prng: &mut Prng) -> Self {
        let products: &[&str] = if prng.chance(400) { &["demo", "other"] } else { &["demo"] };
        let money = (has_jobs && prng.chance(400)).then(|| Money::drawn(prng));
        Self {
            products: products.iter().map(|id| id.parse().expect("letters make a product id")).collect(),
            money,
            graphs: has_jobs && prng.chance(350),
            preemption: has_jobs && prng.chance(350),
            max_evictions: prng.between(0, 3),
            eviction_grace: Duration::from_millis(prng.between(1_000, 2_500)),
            webhooks: if prng.chance(120) { prng.between(1, 2) } else { 0 },
            talk: has_jobs && prng.chance(250),
            accounts: has_jobs && prng.chance(250),
        }
    }
}

impl Money {
    fn drawn(prng: &mut Prng) -> Self {
        let mut limit = |per_mille| prng.chance(per_mille).then(|| micros(prng.between(2, 16) * 500_000));
        Self {
            day: limit(500),
            total: limit(500),
            job: prng.chance(500).then(|| micros(prng.between(1, 4) * 250_000)),
            lifted: prng.chance(500),
            midnight: prng.chance(250),
        }
    }
}
