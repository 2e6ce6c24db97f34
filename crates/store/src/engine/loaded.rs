//! What a batch asks a backend to load, and what it gets.

use std::collections::{BTreeSet, HashMap, HashSet};

use giga_domain::token::TokenRecord;
use giga_domain::{
    Artifact, ArtifactKey, CapabilitySet, Factory, FactoryId, Job, JobId, Leadership, ProductId, RequestId,
    Timestamp, TokenId, UnitsInUse,
};
use serde_json::Value;

use super::{
    BudgetRow, EffectNeeds, EffectsLoaded, GraphLoaded, GraphNeeds, PoolsLoaded, RegistryLoaded,
    RegistryNeeds, SecretsLoaded,
};

/// Sets are sorted: a backend locks rows in this order, so that two batches can never wait for each other.
/// The order between kinds is jobs, concurrency keys, budgets, factories, tokens, flags, the leader,
/// products, profiles, secrets, pools, webhooks, effects, queue states, the feed.
/// Unsent offers stand outside of it: nobody ever waits for one.
#[derive(Debug, Default)]
pub struct Needs {
    pub jobs: BTreeSet<JobId>,
    /// Jobs by product and idempotency key.
    pub keys: BTreeSet<(ProductId, String)>,
    /// Held jobs by the request that won them.
    pub grants: BTreeSet<(FactoryId, RequestId)>,
    /// Jobs about to be claimed: what their concurrency keys count is needed too, and must not change until commit.
    pub claims: BTreeSet<JobId>,
    /// Jobs whose product's budget is needed, locked: their lease may end, or what it has spent may change. The budgets
    /// of `claims` and `expired` are needed too.
    pub money: BTreeSet<JobId>,
    pub budgets: BTreeSet<ProductId>,
    /// Calls that correct a budget, which is needed with them: whether they have done so before.
    pub corrections: BTreeSet<(ProductId, RequestId)>,
    /// Jobs that the batch makes: a command behind may take one at once.
    pub made: HashMap<JobId, ProductId>,
    /// Files by what there is one of. They only change under the lock of their job, which is needed with them.
    pub artifacts: BTreeSet<ArtifactKey>,
    pub factories: BTreeSet<FactoryId>,
    /// Factories whose `last_seen_at` is to move: locked in turn with `factories`, not loaded.
    pub seen: BTreeSet<FactoryId>,
    /// Factories whose seats in use are needed.
    pub seats: BTreeSet<FactoryId>,
    pub tokens: BTreeSet<TokenId>,
    /// Every token of these factories.
    pub tokens_of: BTreeSet<FactoryId>,
    pub flags: BTreeSet<String>,
    /// Who leads. Locked, so that a term which is found current stays so until commit.
    pub leader: bool,
    pub registry: RegistryNeeds,
    /// Every secret of these products. Locked, so that versions follow each other.
    pub secrets: BTreeSet<ProductId>,
    /// Every pool and every member. Locked as a whole: they change seldom, and how many there may be hangs on all of them.
    pub pools: bool,
    pub effects: EffectNeeds,
    /// The jobs with the longest-expired leases, at most so many, and when the next lease ends after these.
    pub expired: usize,
    /// Jobs with an order to merge, those that are due first, at most so many. They may not be due yet.
    pub mergeable: usize,
    pub graph: GraphNeeds,
    /// Terminal jobs last changed before this time that nobody hangs on any more, at most so many.
    pub retirable: Option<(Timestamp, usize)>,
    /// Factories last seen (or enrolled, when never seen) before this time that hold no lease.
    pub prunable: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct Loaded {
    /// The store's clock, read inside the transaction.
    pub now: Timestamp,
    /// Every job named by `jobs`, `claims`, `keys`, `grants`, `expired`, `mergeable`, `retirable`, or taken to be
    /// reconsidered, that exists; locked, but for those that are found by key or grant alone.
    pub jobs: HashMap<JobId, Job>,
    /// With the fingerprint of what made it.
    pub keys: HashMap<(ProductId, String), (JobId, String)>,
    pub grants: HashMap<(FactoryId, RequestId), JobId>,
    /// Held jobs by product and concurrency key, for the keys of `claims`.
    pub key_in_use: HashMap<(ProductId, String), u32>,
    /// Every budget that is needed. One that has no row yet is blank.
    pub budgets: HashMap<ProductId, BudgetRow>,
    /// Those of `corrections` that stand in the ledger. Read under the lock of their budgets.
    pub corrected: HashSet<(ProductId, RequestId)>,
    pub artifacts: HashMap<ArtifactKey, Artifact>,
    /// Those of `prunable` included.
    pub factories: HashMap<FactoryId, Factory>,
    pub seats_in_use: HashMap<FactoryId, u32>,
    /// Of the same factories; nothing of those whose jobs use none.
    pub units_in_use: HashMap<FactoryId, UnitsInUse>,
    /// Those of `tokens_of` and of the `prunable` factories included.
    pub tokens: HashMap<TokenId, TokenRecord>,
    pub flags: HashMap<String, Value>,
    /// Who led last; it may be over.
    pub leader: Option<Leadership>,
    pub registry: RegistryLoaded,
    pub secrets: SecretsLoaded,
    pub pools: PoolsLoaded,
    pub effects: EffectsLoaded,
    pub expired: Vec<JobId>,
    /// The earliest expiry among the leases that are not in `expired`.
    pub next_expiry: Option<Timestamp>,
    pub graph: GraphLoaded,
    pub mergeable: Vec<JobId>,
    pub retirable: Vec<JobId>,
    pub prunable: Vec<FactoryId>,
}

impl Loaded {
    /// Adds up what held jobs use on each factory.
    pub(crate) fn count_units(&mut self, held: impl IntoIterator<Item = (FactoryId, CapabilitySet)>) {
        for (factory, needs) in held {
            self.units_in_use.entry(factory).or_default().take(&needs);
        }
    }
}
