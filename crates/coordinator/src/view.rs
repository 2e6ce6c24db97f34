//! The fleet view: every live job and every factory in memory, kept up to date by following the feed.
//!
//! A copy that may be old, never the truth. Whoever acts on it does so by compare-and-set and looks again when it
//! lost. Filling it costs one pass over the live jobs at start, following it costs what changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use giga_domain::flag::FlagDef;
use giga_domain::{
    Event, EventKind, Factory, FactoryId, FeedPos, Job, JobId, ProductId, RequestId, Stage, State, Timestamp,
};
use giga_ports::{StoreError, StoreReads};
use giga_scheduler::{FactoryView, JobView, ReadyQueue, Snapshot};
use serde_json::Value;

use crate::Coordinator;

const PAGE: usize = 1_000;

#[derive(Default)]
pub(crate) struct FleetView {
    state: Mutex<ViewState>,
    /// One refresh at a time; whoever waited finds the work done.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(crate) struct ViewState {
    /// `None` until the first load.
    cursor: Option<FeedPos>,
    pub(crate) queue: ReadyQueue,
    pub(crate) running: HashMap<JobId, Running>,
    grants: HashMap<(FactoryId, RequestId), JobId>,
    seats: HashMap<FactoryId, u32>,
    by_product: HashMap<ProductId, u32>,
    by_key: HashMap<(ProductId, String), u32>,
    pub(crate) factories: BTreeMap<FactoryId, Factory>,
    flags: HashMap<String, Value>,
    /// When jobs went to dead letters lately, for the alert.
    pub(crate) dead_letters: VecDeque<Timestamp>,
    /// Results that could not be merged lately, likewise.
    pub(crate) merge_conflicts: VecDeque<(Timestamp, JobId, Option<ProductId>)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) factory: FactoryId,
    pub(crate) product: ProductId,
    request: RequestId,
    key: Option<String>,
}

/// What a stretch of the feed says has to be looked at again.
#[derive(Default)]
struct Changes {
    jobs: BTreeSet<JobId>,
    factories: bool,
    flags: bool,
    tokens: bool,
    shipped: bool,
}

impl FleetView {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ViewState> {
        // The state is a copy of the store; whatever a panic left in it is replaced by later refreshes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Coordinator {
    /// Brings the view up to what is committed now.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let _turn = self.view.refreshing.lock().await;
        let reads = self.store.read();
        let cursor = self.view.lock().cursor;
        let Some(mut cursor) = cursor else {
            return self.load(reads).await;
        };
        loop {
            let events = reads.feed(cursor, PAGE).await?;
            let Some(last) = events.last() else { return Ok(()) };
            cursor = last.pos;
            let more = events.len() == PAGE;
            let mut changes = Changes::default();
            {
                let mut state = self.view.lock();
                for event in &events {
                    changes.note(event);
                    match (event.kind, event.job) {
                        (EventKind::DeadLettered, _) => state.dead_letters.push_back(event.at),
                        (EventKind::MergeConflict, Some((id, _))) => {
                            state.merge_conflicts.push_back((event.at, id, event.product.clone()));
                        }
                        _ => {}
                    }
                }
            }
            if changes.shipped {
                self.shipped.notify_one();
            }
            self.look_again(reads, changes).await?;
            self.view.lock().cursor = Some(cursor);
            if !more {
                return Ok(());
            }
        }
    }

    /// The first fill. The cursor is taken before the jobs are read, so nothing can slip in between.
    async fn load(&self, reads: &dyn StoreReads) -> Result<(), StoreError> {
        let cursor = reads.feed_head().await?;
        let mut after = None;
        loop {
            let page = reads.live_jobs(after, PAGE).await?;
            let parents = parents_of(reads, &page).await?;
            let mut state = self.view.lock();
            for job in &page {
                state.put(job, &parents);
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id),
                _ => break,
            }
        }
        let everything = Changes { factories: true, flags: true, tokens: true, ..Changes::default() };
        self.look_again(reads, everything).await?;
        self.view.lock().cursor = Some(cursor);
        Ok(())
    }

    async fn look_again(&self, reads: &dyn StoreReads, changes: Changes) -> Result<(), StoreError> {
        if !changes.jobs.is_empty() {
            let ids: Vec<JobId> = changes.jobs.into_iter().collect();
            let jobs = reads.jobs_by_id(&ids).await?;
            let parents = parents_of(reads, &jobs).await?;
            let found: HashSet<JobId> = jobs.iter().map(|job| job.id).collect();
            let mut state = self.view.lock();
            for job in &jobs {
                state.put(job, &parents);
            }
            for id in ids.iter().filter(|id| !found.contains(id)) {
                state.drop_job(*id);
            }
        }
        if changes.factories {
            let factories = reads.factories().await?;
            self.view.lock().factories = factories.into_iter().map(|f| (f.id.clone(), f)).collect();
        }
        if changes.flags {
            let flags = reads.flags().await?;
            self.view.lock().flags = flags.into_iter().collect();
        }
        if changes.tokens {
            self.tokens.clear();
        }
        Ok(())
    }

    pub(crate) fn flag(&self, name: &str) -> Value {
        self.view.lock().flag(name)
    }

    pub(crate) fn flag_millis(&self, name: &str) -> Duration {
        self.view.lock().flag_millis(name)
    }

    pub(crate) fn stale_after(&self) -> Duration {
        self.view.lock().stale_after()
    }

    /// The fleet as the scheduler wants it. `only` leaves out all but these factories, each of which counts as
    /// live: it is asking right now.
    pub(crate) fn snapshot(
        &self,
        state: &ViewState,
        now: Timestamp,
        only: Option<&HashSet<FactoryId>>,
    ) -> Snapshot {
        let stale_after = state.stale_after();
        let view = |factory: &Factory| FactoryView {
            id: factory.id.clone(),
            state: factory.state,
            health: factory.advertised.health,
            live: only.is_some()
                || self.presence.last_seen(factory).is_some_and(|seen| now.since(seen) <= stale_after),
            capabilities: factory.usable_capabilities(),
            products: factory.scope.products.clone(),
            repos: factory.advertised.repos.clone(),
            can_clone: factory.advertised.can_clone,
            seat_limit: factory.advertised.seat_limit,
            seats_used: state.seats.get(&factory.id).copied().unwrap_or(0),
            load: self.presence.load(factory),
            cost_usd_micros_per_hour: factory.advertised.cost_usd_micros_per_hour,
        };
        let wanted = |factory: &&Factory| only.is_none_or(|ids| ids.contains(&factory.id));
        Snapshot {
            factories: state.factories.values().filter(wanted).map(view).collect(),
            running_by_product: state.by_product.clone(),
            running_by_key: state.by_key.clone(),
        }
    }
}

impl Changes {
    fn note(&mut self, event: &Event) {
        self.jobs.extend(event.job.map(|(id, _)| id));
        self.shipped |= event.to == Some(Stage::Shipped);
        match event.kind {
            EventKind::FactoryEnrolled
            | EventKind::FactoryChanged
            | EventKind::FactoryDraining
            | EventKind::FactoryResumed
            | EventKind::FactoryDeregistered => self.factories = true,
            EventKind::FlagChanged => self.flags = true,
            EventKind::TokenIssued | EventKind::TokenRevoked => self.tokens = true,
            _ => {}
        }
    }
}

/// Where the parents of new jobs last ran, for affinity. Jobs that ran before have their own warmth.
async fn parents_of(reads: &dyn StoreReads, jobs: &[Job]) -> Result<HashMap<JobId, FactoryId>, StoreError> {
    let cold = jobs.iter().filter(|job| job.stage() == Stage::Queued && job.last_factory.is_none());
    let parents: BTreeSet<JobId> = cold.filter_map(|job| job.spec.parent).collect();
    if parents.is_empty() {
        return Ok(HashMap::new());
    }
    let parents = reads.jobs_by_id(&parents.into_iter().collect::<Vec<_>>()).await?;
    Ok(parents.into_iter().filter_map(|job| Some((job.id, job.last_factory?))).collect())
}

/// A job as the scheduler sees it; `None` when it is not queued.
pub(crate) fn job_view(job: &Job, parents: &HashMap<JobId, FactoryId>) -> Option<JobView> {
    let State::Queued { ready_at, target, .. } = &job.state else { return None };
    let parent_ran_at = || job.spec.parent.and_then(|parent| parents.get(&parent).cloned());
    Some(JobView {
        id: job.id,
        rev: job.rev,
        product: job.product.clone(),
        priority: job.spec.priority,
        enqueued_at: job.enqueued_at,
        ready_at: *ready_at,
        capabilities: job.spec.capabilities.clone(),
        repo: job.spec.repo.clone(),
        concurrency: job.spec.concurrency.clone(),
        cost_cap_usd_micros: job.spec.budget.usd_micros,
        last_factory: job.last_factory.clone().or_else(parent_ran_at),
        offered_to: target.as_ref().map(|t| (t.factory.clone(), t.pickup_deadline)),
        excluded: Vec::new(),
    })
}

impl ViewState {
    pub(crate) fn put(&mut self, job: &Job, parents: &HashMap<JobId, FactoryId>) {
        self.drop_job(job.id);
        if let Some(view) = job_view(job, parents) {
            self.queue.upsert(view);
        } else if let Some(lease) = job.lease() {
            let running = Running {
                factory: lease.factory.clone(),
                product: job.product.clone(),
                request: lease.request.clone(),
                key: job.spec.concurrency.as_ref().map(|c| c.key.clone()),
            };
            self.count(&running, 1);
            self.grants.insert((running.factory.clone(), running.request.clone()), job.id);
            self.running.insert(job.id, running);
        }
    }

    pub(crate) fn drop_job(&mut self, id: JobId) {
        self.queue.remove(id);
        if let Some(running) = self.running.remove(&id) {
            self.count(&running, -1);
            self.grants.remove(&(running.factory, running.request));
        }
    }

    fn count(&mut self, running: &Running, by: i32) {
        add(&mut self.seats, running.factory.clone(), by);
        add(&mut self.by_product, running.product.clone(), by);
        if let Some(key) = &running.key {
            add(&mut self.by_key, (running.product.clone(), key.clone()), by);
        }
    }

    pub(crate) fn granted(&self, factory: &FactoryId, request: &RequestId) -> Option<JobId> {
        self.grants.get(&(factory.clone(), request.clone())).copied()
    }

    pub(crate) fn held_by(&self, factory: &FactoryId) -> impl Iterator<Item = JobId> {
        self.running.iter().filter(move |(_, running)| running.factory == *factory).map(|(id, _)| *id)
    }

    fn flag(&self, name: &str) -> Value {
        let default = || FlagDef::named(name).map_or(Value::Null, FlagDef::default_value);
        self.flags.get(name).cloned().unwrap_or_else(default)
    }

    fn flag_millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.flag(name).as_u64().unwrap_or_default())
    }

    fn stale_after(&self) -> Duration {
        self.flag_millis("heartbeat_interval_ms") * 3
    }

    pub(crate) fn set_flag(&mut self, name: &str, value: Value) {
        self.flags.insert(name.to_owned(), value);
    }
}

fn add<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: K, by: i32) {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add_signed(by);
}
