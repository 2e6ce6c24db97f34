//! The reference model: the same engine on plain maps. It forgets everything when it is dropped.
//!
//! Every query is the plainest possible scan; what the SQL stores answer by index is checked against it.

#[cfg(feature = "cosmos")]
pub(crate) mod changes;
mod graph;
mod reads;
mod registry;
#[cfg(feature = "cosmos")]
pub(crate) mod rows;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::token::{Permission, TokenRecord};
use giga_domain::{
    Artifact, ArtifactKey, Charge, DispatchSeq, Event, Factory, FactoryId, FeedPos, Job, JobId, Leadership,
    Member, Pool, PoolName, ProductId, RequestId, Run, Timestamp, TokenId,
};
use giga_ports::store::{JobText, QueueState, Waiting};
use giga_ports::{Clock, StoreError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use self::registry::{EffectTables, RegistryTables};
use crate::engine::{
    Backend, Batch, BudgetRow, ChargeRow, Committed, Loaded, Needs, PoolsLoaded, RunWrite, SecretsLoaded,
    Writes,
};

pub struct MemoryBackend {
    clock: Arc<dyn Clock>,
    tables: Mutex<Tables>,
}

impl std::fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryBackend").finish_non_exhaustive()
    }
}

#[derive(Default)]
pub(crate) struct Tables {
    jobs: BTreeMap<JobId, Job>,
    texts: HashMap<JobId, JobText>,
    keys: HashMap<(ProductId, String), (JobId, String)>,
    runs: BTreeMap<(JobId, giga_domain::Epoch), Run>,
    budgets: BTreeMap<ProductId, BudgetRow>,
    charges: Vec<Charge>,
    corrected: HashSet<(ProductId, RequestId)>,
    artifacts: BTreeMap<ArtifactKey, Artifact>,
    events: Vec<Event>,
    pub(crate) last_pos: FeedPos,
    queue: BTreeMap<ProductId, QueueState>,
    factories: BTreeMap<FactoryId, Factory>,
    tokens: HashMap<TokenId, TokenRecord>,
    flags: BTreeMap<String, Value>,
    leader: Option<Leadership>,
    offers: BTreeMap<(JobId, DispatchSeq), Waiting>,
    /// By the order in which they came.
    reconsider: BTreeMap<u64, (JobId, bool)>,
    last_reconsider: u64,
    registry: RegistryTables,
    secrets: SecretsLoaded,
    pools: BTreeMap<PoolName, Pool>,
    members: BTreeMap<FactoryId, Member>,
    effects: EffectTables,
}

impl MemoryBackend {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Mutex::default() }
    }

    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables> {
        // Nothing panics between the first and the last change of a batch, so a poisoned map is still whole.
        self.tables.lock()
    }
}

#[async_trait]
impl Backend for MemoryBackend {
    async fn transact(&self, mut batch: Batch) -> (Batch, Result<Committed, StoreError>) {
        let mut tables = self.tables();
        let loaded = tables.load(&batch.needs(), self.clock.now());
        let writes = batch.decide(loaded);
        let head = tables.persist(writes);
        (batch, Ok(Committed { head }))
    }

    async fn any_to_reconsider(&self) -> Result<bool, StoreError> {
        Ok(!self.tables().reconsider.is_empty())
    }
}

impl Tables {
    fn held(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| job.lease().is_some())
    }

    pub(crate) fn load(&self, needs: &Needs, now: Timestamp) -> Loaded {
        let mut loaded = Loaded { now, ..Loaded::default() };
        let mut wanted: BTreeSet<JobId> = needs.jobs.union(&needs.claims).copied().collect();

        let mut leases: Vec<_> = self.held().filter_map(|job| Some((job.lease()?.due(), job.id))).collect();
        leases.sort_unstable();
        let expired = leases.iter().take_while(|(ends, _)| *ends <= now).take(needs.expired).count();
        loaded.expired = leases[..expired].iter().map(|(_, id)| *id).collect();
        loaded.next_expiry = leases.get(expired).map(|(ends, _)| *ends);

        loaded.graph = self.load_graph(&needs.graph);

        let due = |job: &Job| Some((job.merge.as_ref()?.due()?, job.id));
        let mut orders: Vec<_> = self.jobs.values().filter_map(due).collect();
        orders.sort_unstable();
        loaded.mergeable = orders.into_iter().take(needs.mergeable).map(|(_, id)| id).collect();

        if let Some((before, limit)) = needs.retirable {
            loaded.retirable = self.retirable(before, limit);
        }
        let files = needs.artifacts.iter();
        loaded.artifacts =
            files.filter_map(|key| Some((key.clone(), self.artifacts.get(key)?.clone()))).collect();

        for key in &needs.keys {
            if let Some(found) = self.keys.get(key) {
                wanted.insert(found.0);
                loaded.keys.insert(key.clone(), found.clone());
            }
        }
        for (factory, request) in &needs.grants {
            if let Some(job) = self.grant(factory, request) {
                wanted.insert(job.id);
                loaded.grants.insert((factory.clone(), request.clone()), job.id);
            }
        }
        let swept = loaded.expired.iter().chain(&loaded.mergeable).chain(&loaded.retirable);
        wanted.extend(swept.chain(loaded.graph.taken.iter().map(|taken| &taken.job)));
        loaded.jobs = wanted.iter().filter_map(|id| Some((*id, self.jobs.get(id)?.clone()))).collect();

        for job in needs.claims.iter().filter_map(|id| self.jobs.get(id)) {
            if let Some(concurrency) = &job.spec.concurrency {
                let same = |other: &&Job| {
                    other.product == job.product
                        && other.spec.concurrency.as_ref().is_some_and(|c| c.key == concurrency.key)
                };
                let used = self.held().filter(same).count() as u32;
                loaded.key_in_use.insert((job.product.clone(), concurrency.key.clone()), used);
            }
        }
        let taken = loaded.graph.taken.iter().map(|taken| &taken.job);
        let spenders = needs.claims.iter().chain(&needs.money).chain(&loaded.expired).chain(taken);
        let products = spenders.filter_map(|id| Some(&self.jobs.get(id)?.product));
        for product in products.chain(&needs.budgets) {
            let known = self.budgets.get(product).cloned();
            let row = known.unwrap_or_else(|| BudgetRow::new(product.clone()));
            loaded.budgets.insert(product.clone(), row);
        }
        let corrected = |wanted: &&(ProductId, RequestId)| self.corrected.contains(*wanted);
        loaded.corrected = needs.corrections.iter().filter(corrected).cloned().collect();
        for id in &needs.seats {
            let used =
                self.held().filter(|job| job.lease().is_some_and(|lease| lease.factory == *id)).count();
            loaded.seats_in_use.insert(id.clone(), used as u32);
            let there = self.held().filter(|job| job.lease().is_some_and(|lease| lease.factory == *id));
            loaded.count_units(there.map(|job| (id.clone(), job.spec.capabilities.clone())));
        }

        if let Some(before) = needs.prunable {
            let idle = |factory: &&Factory| {
                factory.last_seen_at.unwrap_or(factory.enrolled_at) < before
                    && !self.held().any(|job| job.lease().is_some_and(|lease| lease.factory == factory.id))
            };
            loaded.prunable =
                self.factories.values().filter(idle).map(|factory| factory.id.clone()).collect();
        }
        let factories = needs.factories.iter().chain(&loaded.prunable);
        loaded.factories =
            factories.filter_map(|id| Some((id.clone(), self.factories.get(id)?.clone()))).collect();
        let owned = |permission: &Permission| match permission.factory() {
            Some(factory) => needs.tokens_of.contains(factory) || loaded.prunable.contains(factory),
            None => false,
        };
        let wanted = |token: &&TokenRecord| needs.tokens.contains(&token.id) || owned(&token.permission);
        loaded.tokens = self.tokens.values().filter(wanted).map(|t| (t.id.clone(), t.clone())).collect();
        loaded.flags = self.flags.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        loaded.leader.clone_from(&self.leader);
        loaded.registry = self.registry.load(&needs.registry);
        let own = self.secrets.iter().filter(|((product, _), _)| needs.secrets.contains(product));
        loaded.secrets = own.map(|(key, secret)| (key.clone(), secret.clone())).collect();
        if needs.pools {
            loaded.pools = PoolsLoaded { pools: self.pools.clone(), members: self.members.clone() };
        }
        loaded.effects = self.effects.load(&needs.effects, self.last_pos, now);
        loaded
    }

    fn grant(&self, factory: &FactoryId, request: &RequestId) -> Option<&Job> {
        self.held().find(|job| {
            job.lease().is_some_and(|lease| lease.factory == *factory && lease.request == *request)
        })
    }

    fn persist(&mut self, writes: Writes) -> Option<FeedPos> {
        // First: a new job may take over the idempotency key of one that goes.
        for id in writes.retire_jobs {
            self.forget(id);
        }
        for insert in writes.insert_jobs {
            let job = insert.job;
            if let Some(key) = &job.spec.idempotency_key {
                self.keys.insert((job.product.clone(), key.clone()), (job.id, insert.fingerprint));
            }
            let text = JobText { manifest: insert.manifest, body: insert.body, persona: insert.persona };
            self.texts.insert(job.id, text);
            self.jobs.insert(job.id, job);
        }
        for job in writes.update_jobs {
            self.jobs.insert(job.id, job);
        }
        for row in writes.put_leases {
            if let Some(Job {
                state: giga_domain::State::Assigned { lease } | giga_domain::State::Building { lease },
                ..
            }) = self.jobs.get_mut(&row.job)
            {
                *lease = row.lease;
            }
        }
        for run in writes.runs {
            self.change_run(run);
        }
        for row in writes.put_budgets {
            self.budgets.insert(row.budget.product.clone(), row);
        }
        for ChargeRow { charge, request } in writes.insert_charges {
            self.corrected.extend(request.map(|request| (charge.product.clone(), request)));
            self.charges.push(charge);
        }
        self.artifacts.retain(|_, artifact| !writes.delete_artifacts.contains(&artifact.id));
        for artifact in writes.insert_artifacts {
            self.artifacts.insert(artifact.key(), artifact);
        }
        for factory in writes.put_factories {
            self.factories.insert(factory.id.clone(), factory);
        }
        for id in writes.delete_factories {
            self.factories.remove(&id);
        }
        for (id, at) in writes.seen_factories {
            if let Some(factory) = self.factories.get_mut(&id) {
                factory.last_seen_at = factory.last_seen_at.max(Some(at));
            }
        }
        for token in writes.put_tokens {
            self.tokens.insert(token.id.clone(), token);
        }
        self.tokens.retain(|id, _| !writes.delete_tokens.contains(id));
        self.flags.extend(writes.put_flags);
        self.flags.retain(|name, _| !writes.delete_flags.contains(name));
        if writes.put_leader.is_some() {
            self.leader = writes.put_leader;
        }
        self.offers.retain(|(job, _), _| !writes.withdraw_offers.contains(job));
        for key in &writes.delete_offers {
            self.offers.remove(key);
        }
        for waiting in writes.put_offers {
            self.offers.insert((waiting.offer.job_id, waiting.offer.dispatch_seq), waiting);
        }
        self.registry.persist(writes.registry);
        for secret in writes.secrets.put {
            self.secrets.insert((secret.secret.product.clone(), secret.secret.name.clone()), secret);
        }
        for key in &writes.secrets.delete {
            self.secrets.remove(key);
        }
        self.pools.extend(writes.pools.put.into_iter().map(|pool| (pool.name.clone(), pool)));
        self.pools.retain(|name, _| !writes.pools.delete.contains(name));
        let members = writes.pools.put_members.into_iter();
        self.members.extend(members.map(|member| (member.factory.clone(), member)));
        self.members.retain(|factory, _| !writes.pools.delete_members.contains(factory));
        self.effects.persist(writes.effects);
        self.persist_graph(&writes.graph);
        for ((product, stage), delta) in writes.queue {
            let state = self.queue.entry(product).or_default();
            state.version += delta.changes;
            state.by_stage[stage] = state.by_stage[stage].saturating_add_signed(delta.jobs);
        }
        let appended = !writes.events.is_empty();
        for pending in writes.events {
            self.last_pos = self.last_pos.next();
            self.events.push(Event {
                pos: self.last_pos,
                product: pending.product,
                job: pending.job,
                at: pending.at,
                actor: pending.actor,
                kind: pending.event.kind,
                from: pending.event.from,
                to: pending.event.to,
                cause: pending.event.cause,
                data: pending.event.data,
            });
        }
        appended.then_some(self.last_pos)
    }

    fn change_run(&mut self, write: RunWrite) {
        match write {
            RunWrite::Open(run) => {
                self.runs.insert((run.job, run.epoch), run);
            }
            RunWrite::Engine { job, epoch, engine, model } => {
                if let Some(run) = self.runs.get_mut(&(job, epoch)) {
                    run.engine = Some(engine);
                    run.model = model;
                }
            }
            RunWrite::Start { job, epoch, at } => {
                if let Some(run) = self.runs.get_mut(&(job, epoch)) {
                    run.started_at = Some(at);
                }
            }
            RunWrite::Close { job, epoch, at, outcome, report } => {
                if let Some(run) = self.runs.get_mut(&(job, epoch)) {
                    run.ended_at = Some(at);
                    run.outcome = outcome;
                    run.report = report;
                }
            }
        }
    }

    fn forget(&mut self, id: JobId) {
        if let Some(job) = self.jobs.remove(&id)
            && let Some(key) = job.spec.idempotency_key
        {
            self.keys.remove(&(job.product, key));
        }
        self.texts.remove(&id);
        self.runs.retain(|(job, _), _| *job != id);
        self.artifacts.retain(|(job, ..), _| *job != id);
        self.offers.retain(|(job, _), _| *job != id);
        self.events.retain(|event| event.job.is_none_or(|(job, _)| job != id));
    }
}
