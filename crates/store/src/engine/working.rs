//! The rows of a batch while its commands are decided: loaded, changed in memory, turned into writes at the end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use giga_domain::token::TokenRecord;
use giga_domain::transition::RunChange;
use giga_domain::{
    Actor, Artifact, ArtifactKey, Command, DispatchSeq, EventSeq, Factory, FactoryId, Job, JobId, Leadership,
    NewEvent, Offer, ProductId, RequestId, Run, RunOutcome, RunReport, Timestamp, TokenId, Transition,
    UnitsInUse, transition,
};
use giga_ports::StoreError;
use giga_ports::store::{NewJob, Waiting};
use serde_json::Value;

use super::effects::Effects;
use super::money::Money;
use super::pools::Pools;
use super::registry::Registry;
use super::secrets::Secrets;
use super::writes::{JobInsert, LeaseRow, PendingEvent, RunWrite, Writes};
use super::{Loaded, Needs};

#[derive(Debug)]
pub struct Working {
    loaded: Loaded,
    /// Jobs whose row has to be written.
    dirty: BTreeSet<JobId>,
    /// Jobs whose lease has to be written or deleted.
    leases: BTreeSet<JobId>,
    /// With their texts.
    inserted: BTreeMap<JobId, NewJob>,
    retired: BTreeSet<JobId>,
    dirty_factories: BTreeSet<FactoryId>,
    deleted_factories: BTreeSet<FactoryId>,
    dirty_tokens: BTreeSet<TokenId>,
    /// Offers to be sent: of a job only its last one.
    offers: BTreeMap<JobId, Waiting>,
    pub(super) money: Money,
    pub(super) registry: Registry,
    pub(super) secrets: Secrets,
    pub(super) pools: Pools,
    pub(super) effects: Effects,
    writes: Writes,
}

impl Working {
    pub(super) fn new(mut loaded: Loaded) -> Self {
        Self {
            money: Money::new(std::mem::take(&mut loaded.budgets), std::mem::take(&mut loaded.corrected)),
            registry: Registry::new(std::mem::take(&mut loaded.registry)),
            secrets: Secrets::new(std::mem::take(&mut loaded.secrets)),
            pools: Pools::new(std::mem::take(&mut loaded.pools)),
            effects: Effects::new(std::mem::take(&mut loaded.effects)),
            loaded,
            dirty: BTreeSet::new(),
            leases: BTreeSet::new(),
            inserted: BTreeMap::new(),
            retired: BTreeSet::new(),
            dirty_factories: BTreeSet::new(),
            deleted_factories: BTreeSet::new(),
            dirty_tokens: BTreeSet::new(),
            offers: BTreeMap::new(),
            writes: Writes::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.loaded.now
    }

    pub(super) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(super) fn job(&self, id: JobId) -> Result<&Job, StoreError> {
        self.loaded.jobs.get(&id).ok_or(StoreError::NoSuchJob(id))
    }

    pub(super) fn job_by_key(&self, product: &ProductId, key: &str) -> Option<(&Job, &str)> {
        let (id, fingerprint) = self.loaded.keys.get(&(product.clone(), key.to_owned()))?;
        Some((self.loaded.jobs.get(id)?, fingerprint))
    }

    pub(super) fn granted(&self, factory: &FactoryId, request: &RequestId) -> Option<&Job> {
        let id = self.loaded.grants.get(&(factory.clone(), request.clone()))?;
        let job = self.loaded.jobs.get(id)?;
        job.lease().filter(|lease| lease.factory == *factory && lease.request == *request).map(|_| job)
    }

    pub(super) fn seats_in_use(&self, factory: &FactoryId) -> u32 {
        self.loaded.seats_in_use.get(factory).copied().unwrap_or(0)
    }

    pub(super) fn units_in_use(&self, factory: &FactoryId) -> UnitsInUse {
        self.loaded.units_in_use.get(factory).cloned().unwrap_or_default()
    }

    pub(super) fn key_in_use(&self, product: &ProductId, key: &str) -> u32 {
        self.loaded.key_in_use.get(&(product.clone(), key.to_owned())).copied().unwrap_or(0)
    }

    pub(super) fn insert_job(&mut self, job: Job, new: NewJob) {
        if let Some(key) = &job.spec.idempotency_key {
            self.loaded.keys.insert((job.product.clone(), key.clone()), (job.id, new.fingerprint.clone()));
        }
        self.count(&job, 1, 1);
        self.inserted.insert(job.id, new);
        self.loaded.jobs.insert(job.id, job);
    }

    /// Lets the one transition function decide and keeps what it says.
    pub(super) fn apply(&mut self, id: JobId, command: &Command, actor: &Actor) -> Result<&Job, StoreError> {
        let now = self.loaded.now;
        let before = self.job(id)?.clone();
        let Transition { job, events, run, charge, refund, .. } = transition(&before, command, now)?;
        if job == before {
            return self.job(id);
        }
        self.money.check(&before, &job, charge, refund)?;
        for change in run {
            self.change_run(&before, &job, change);
        }
        if before.stage() != job.stage() {
            self.count(&before, 0, -1);
            self.count(&job, 1, 1);
            self.writes.graph.moved(before.stage(), &job);
        }
        if before.lease() != job.lease() {
            self.count_lease(&before, -1);
            self.count_lease(&job, 1);
            self.money.reserve(&before, &job);
            self.leases.insert(id);
        }
        let mut seq = before.last_event;
        for event in events {
            seq = seq.next();
            self.append(Some(job.product.clone()), Some((id, seq)), actor.clone(), event);
        }
        self.settle(&before, charge, refund);
        // A renewal changes the lease alone; the job's row is left in peace.
        if job.rev != before.rev || job.merge != before.merge {
            self.dirty.insert(id);
        }
        self.loaded.jobs.insert(id, job);
        self.job(id)
    }

    /// Remembers which call changed the job last, with the change itself.
    pub(super) fn steered(&mut self, id: JobId, request: RequestId) {
        if let Some(job) = self.loaded.jobs.get_mut(&id) {
            job.last_steer = Some(request);
        }
    }

    fn count_lease(&mut self, job: &Job, by: i32) {
        let Some(lease) = job.lease() else { return };
        let seats = self.loaded.seats_in_use.entry(lease.factory.clone()).or_default();
        *seats = seats.saturating_add_signed(by);
        let units = self.loaded.units_in_use.entry(lease.factory.clone()).or_default();
        if by > 0 {
            units.take(&job.spec.capabilities);
        } else {
            units.give_back(&job.spec.capabilities);
        }
        if let Some(concurrency) = &job.spec.concurrency {
            let used =
                self.loaded.key_in_use.entry((job.product.clone(), concurrency.key.clone())).or_default();
            *used = used.saturating_add_signed(by);
        }
        let grant = (lease.factory.clone(), lease.request.clone());
        if by > 0 {
            self.loaded.grants.insert(grant, job.id);
        } else {
            self.loaded.grants.remove(&grant);
        }
    }

    fn change_run(&mut self, before: &Job, after: &Job, change: RunChange) {
        let at = self.loaded.now;
        self.writes.runs.push(match change {
            RunChange::Open { factory } => RunWrite::Open(Run {
                job: after.id,
                product: after.product.clone(),
                epoch: after.epoch,
                factory,
                engine: after.spec.engine.single().map(|only| only.name.clone()),
                model: None,
                assigned_at: at,
                started_at: None,
                ended_at: None,
                outcome: RunOutcome::Running,
                report: RunReport::default(),
            }),
            // A run is named by the epoch that was granted, which a requeue has raised by now.
            RunChange::Engine { engine, model } => {
                RunWrite::Engine { job: before.id, epoch: before.epoch, engine, model }
            }
            RunChange::Start => RunWrite::Start { job: before.id, epoch: before.epoch, at },
            RunChange::Close { outcome, report } => {
                RunWrite::Close { job: before.id, epoch: before.epoch, at, outcome, report: *report }
            }
        });
    }

    pub(super) fn artifact(&self, key: &ArtifactKey) -> Option<&Artifact> {
        self.loaded.artifacts.get(key)
    }

    /// What had the name before.
    pub(super) fn put_artifact(&mut self, artifact: Artifact) -> Option<Artifact> {
        let replaced = self.remove_artifact(&artifact.key());
        self.loaded.artifacts.insert(artifact.key(), artifact.clone());
        self.writes.insert_artifacts.push(artifact);
        replaced
    }

    pub(super) fn remove_artifact(&mut self, key: &ArtifactKey) -> Option<Artifact> {
        let removed = self.loaded.artifacts.remove(key)?;
        let before = self.writes.insert_artifacts.len();
        self.writes.insert_artifacts.retain(|new| new.id != removed.id);
        if self.writes.insert_artifacts.len() == before {
            self.writes.delete_artifacts.push(removed.id);
        }
        Some(removed)
    }

    pub(super) fn append(
        &mut self,
        product: Option<ProductId>,
        job: Option<(JobId, EventSeq)>,
        actor: Actor,
        event: NewEvent,
    ) {
        let at = self.loaded.now;
        self.writes.events.push(PendingEvent { product, job, at, actor, event });
    }

    /// What the waiting jobs of this batch wait for, those it made included.
    pub(super) fn awaited(&self) -> HashSet<JobId> {
        let waiting = self.loaded.jobs.values().filter(|job| job.stage().is_waiting());
        waiting.flat_map(|job| job.spec.deps.iter().copied()).collect()
    }

    /// Jobs that this batch made.
    pub(super) fn made(&self) -> impl Iterator<Item = &Job> {
        self.inserted.keys().filter_map(|id| self.loaded.jobs.get(id))
    }

    /// Rows of `reconsider` that nobody before in this batch has seen to; they are seen to with this call.
    pub(super) fn take_to_reconsider(&mut self) -> Vec<JobId> {
        let taken = std::mem::take(&mut self.loaded.graph.taken);
        self.writes.graph.seen_to.extend(taken.iter().map(|taken| taken.row));
        taken.into_iter().map(|taken| taken.job).collect()
    }

    /// The job is to be looked at again after this batch.
    pub(super) fn look_again(&mut self, id: JobId) {
        self.writes.graph.again.push(id);
    }

    /// Whether it was there to be retired.
    pub(super) fn retire(&mut self, id: JobId) -> bool {
        // Gone for the commands behind it too: none may come to depend on it or answer with it.
        let Some(job) = self.loaded.jobs.remove(&id) else { return false };
        self.count(&job, 1, -1);
        self.retired.insert(id)
    }

    /// Jobs of this one's product and stage.
    fn count(&mut self, job: &Job, changes: u64, jobs: i64) {
        let delta = self.writes.queue.entry((job.product.clone(), job.stage())).or_default();
        delta.changes += changes;
        delta.jobs += jobs;
    }

    pub(super) fn factory(&self, id: &FactoryId) -> Result<&Factory, StoreError> {
        self.loaded.factories.get(id).ok_or_else(|| StoreError::NoSuchFactory(id.clone()))
    }

    pub(super) fn put_factory(&mut self, factory: Factory) {
        self.deleted_factories.remove(&factory.id);
        self.dirty_factories.insert(factory.id.clone());
        self.loaded.factories.insert(factory.id.clone(), factory);
    }

    pub(super) fn delete_factory(&mut self, id: &FactoryId) {
        self.loaded.factories.remove(id);
        self.dirty_factories.remove(id);
        self.deleted_factories.insert(id.clone());
    }

    /// When it was last seen, this batch included.
    pub(super) fn last_seen(&self, factory: &Factory) -> Timestamp {
        let now_seen = self.writes.seen_factories.get(&factory.id).copied();
        factory.last_seen_at.max(now_seen).unwrap_or(factory.enrolled_at)
    }

    pub(super) fn seen(&mut self, id: FactoryId, at: Timestamp) {
        let newest = self.writes.seen_factories.entry(id).or_insert(at);
        *newest = (*newest).max(at);
    }

    pub(super) fn token(&self, id: &TokenId) -> Result<&TokenRecord, StoreError> {
        self.loaded.tokens.get(id).ok_or_else(|| StoreError::NoSuchToken(id.clone()))
    }

    pub(super) fn put_token(&mut self, token: TokenRecord) {
        self.dirty_tokens.insert(token.id.clone());
        self.loaded.tokens.insert(token.id.clone(), token);
    }

    pub(super) fn delete_token(&mut self, id: &TokenId) {
        self.dirty_tokens.remove(id);
        self.loaded.tokens.remove(id);
        self.writes.delete_tokens.push(id.clone());
    }

    pub(super) fn flag(&self, name: &str) -> Option<&Value> {
        self.loaded.flags.get(name)
    }

    pub(super) fn put_flag(&mut self, name: &str, value: Value) {
        self.loaded.flags.insert(name.to_owned(), value.clone());
        self.writes.put_flags.retain(|(n, _)| n != name);
        self.writes.put_flags.push((name.to_owned(), value));
        self.writes.delete_flags.retain(|n| n != name);
    }

    pub(super) fn delete_flag(&mut self, name: &str) {
        self.loaded.flags.remove(name);
        self.writes.put_flags.retain(|(n, _)| n != name);
        self.writes.delete_flags.push(name.to_owned());
    }

    pub(super) fn leader(&self) -> Option<&Leadership> {
        self.loaded.leader.as_ref()
    }

    pub(super) fn put_leader(&mut self, leader: Leadership) {
        self.loaded.leader = Some(leader.clone());
        self.writes.put_leader = Some(leader);
    }

    /// Replaces an older unsent offer of the same job: that one is refused everywhere by now, and one offer
    /// per job keeps the table small while the broker is away.
    pub(super) fn put_offer(&mut self, offer: Offer) {
        if offer.dispatch_seq > DispatchSeq::ZERO.next() {
            self.writes.withdraw_offers.push(offer.job_id);
        }
        let since = self.loaded.now;
        self.offers.insert(offer.job_id, Waiting { offer, since });
    }

    pub(super) fn delete_offer(&mut self, job: JobId, seq: DispatchSeq) {
        if self.offers.get(&job).is_some_and(|waiting| waiting.offer.dispatch_seq == seq) {
            self.offers.remove(&job);
        }
        self.writes.delete_offers.push((job, seq));
    }

    pub(super) fn into_writes(self) -> Writes {
        let mut writes = self.writes;
        (writes.put_budgets, writes.insert_charges) = self.money.into_writes();
        writes.registry = self.registry.into_writes();
        writes.secrets = self.secrets.into_writes();
        writes.pools = self.pools.into_writes();
        writes.effects = self.effects.into_writes();
        let mut jobs: HashMap<JobId, Job> = self.loaded.jobs;
        for id in &self.leases {
            let job = &jobs[id];
            match job.lease() {
                Some(lease) => writes.put_leases.push(LeaseRow {
                    job: *id,
                    product: job.product.clone(),
                    concurrency_key: job.spec.concurrency.as_ref().map(|c| c.key.clone()),
                    units: Some(job.spec.capabilities.without(|needed| !needed.is_countable()))
                        .filter(|units| !units.is_empty()),
                    lease: lease.clone(),
                }),
                None => writes.delete_leases.push(*id),
            }
        }
        let new: HashSet<JobId> = self.inserted.keys().copied().collect();
        for (id, NewJob { manifest, body, persona, fingerprint, .. }) in self.inserted {
            let job = jobs.remove(&id).expect("an inserted job stays among the loaded ones");
            writes.insert_jobs.push(JobInsert { job, manifest, body, persona, fingerprint });
        }
        for id in self.dirty.difference(&self.retired).filter(|id| !new.contains(id)) {
            writes.update_jobs.push(jobs.remove(id).expect("a changed job stays among the loaded ones"));
        }
        writes.retire_jobs = self.retired.into_iter().collect();
        let mut factories = self.loaded.factories;
        for id in self.dirty_factories {
            writes
                .put_factories
                .push(factories.remove(&id).expect("a changed factory stays among the loaded ones"));
        }
        for id in &self.deleted_factories {
            writes.seen_factories.remove(id);
        }
        writes.delete_factories = self.deleted_factories.into_iter().collect();
        let mut tokens = self.loaded.tokens;
        for id in self.dirty_tokens {
            writes.put_tokens.push(tokens.remove(&id).expect("a changed token stays among the loaded ones"));
        }
        writes.put_offers = self.offers.into_values().collect();
        writes
    }
}

impl Needs {
    pub(super) fn claim(&mut self, job: JobId, factory: &FactoryId, request: &RequestId) {
        self.claims.insert(job);
        self.factories.insert(factory.clone());
        self.seats.insert(factory.clone());
        self.grants.insert((factory.clone(), request.clone()));
    }
}
