//! The fleet view: every live job and every factory in memory, kept up to date by following the feed.
//!
//! A copy that may be old, never the truth. Whoever acts on it does so by compare-and-set and looks again when it
//! lost. Filling it costs one pass over the live jobs at start, following it costs what changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use giga_domain::flag::{DELIVERY, FlagDef, delivery_of};
use giga_domain::{
    Delivery, DispatchSeq, Event, EventKind, Evict, Factory, FactoryId, FeedPos, Job, JobId, Offer, Priority,
    ProductId, RequestId, Rev, Stage, State, Timestamp,
};
use giga_ports::store::{JobFilter, Touch};
use giga_ports::{StoreError, StoreReads};
use giga_scheduler::{Earlier, FactoryView, JobView, ReadyQueue, Snapshot};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::Notify;

use crate::core::Core;
use crate::factories::Presence;
use crate::policies::{Tenants, budget_behind};
use crate::tokens::TokenCache;

const PAGE: usize = 1_000;

#[derive(Default)]
pub(crate) struct FleetView {
    state: Mutex<ViewState>,
    /// One refresh at a time; whoever waited finds the work done.
    refreshing: tokio::sync::Mutex<()>,
    /// Rung when a budget may be open that was closed, or a limit was set.
    pub(crate) budgets_moved: tokio::sync::watch::Sender<()>,
}

#[derive(Default)]
pub(crate) struct ViewState {
    /// `None` until the first load.
    cursor: Option<FeedPos>,
    pub(crate) queue: ReadyQueue,
    /// Of queued jobs that were offered to somebody, whether that still holds or not.
    offers: HashMap<JobId, DispatchSeq>,
    pub(crate) running: HashMap<JobId, Running>,
    grants: HashMap<(FactoryId, RequestId), JobId>,
    seats: HashMap<FactoryId, u32>,
    by_product: HashMap<ProductId, u32>,
    by_key: HashMap<(ProductId, String), u32>,
    pub(crate) factories: BTreeMap<FactoryId, Factory>,
    /// When a factory last let a lease end. Until it is heard again it is taken for frozen: its stream may still be
    /// open, and every job that went down it would lose an attempt.
    let_go: HashMap<FactoryId, Timestamp>,
    flags: HashMap<String, Value>,
    /// Shares, weights, budgets.
    pub(crate) tenants: Tenants,
    /// Queued jobs that somebody gave a seat up for, and when.
    pub(crate) promised: HashMap<JobId, Timestamp>,
    /// When jobs went to dead letters lately, for the alert.
    pub(crate) dead_letters: VecDeque<Timestamp>,
    /// Results that could not be merged lately and that nobody has done anything about.
    pub(crate) failed_merges: BTreeMap<JobId, FailedMerge>,
}

#[derive(Debug, Clone)]
pub(crate) struct FailedMerge {
    pub(crate) at: Timestamp,
    pub(crate) cause: String,
    pub(crate) product: Option<ProductId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) rev: Rev,
    pub(crate) factory: FactoryId,
    pub(crate) product: ProductId,
    pub(crate) priority: Priority,
    pub(crate) granted_at: Timestamp,
    pub(crate) evictions: u32,
    pub(crate) evict: Option<Evict>,
    request: RequestId,
    key: Option<String>,
}

/// Which part of the fleet a snapshot shows, and how.
#[derive(Clone, Copy)]
pub(crate) enum Whom<'a> {
    Everyone,
    /// These and nobody else, each of which counts as live: it is asking right now.
    Asking(&'a HashSet<FactoryId>),
    /// Those that the dispatcher makes offers to. What is on offer takes a seat already.
    Targeted,
    /// Those that poll while the dispatcher plans beside them.
    Shadowed,
    /// Everyone, where what is on offer takes a seat already: what is really free.
    Committed,
}

impl Whom<'_> {
    pub(crate) fn counts_offers(self) -> bool {
        matches!(self, Self::Targeted | Self::Committed)
    }
}

/// What a stretch of the feed says has to be looked at again.
#[derive(Default)]
struct Changes {
    jobs: BTreeSet<JobId>,
    /// Factories that let a lease end, and when.
    let_go: HashMap<FactoryId, Timestamp>,
    factories: bool,
    flags: bool,
    tokens: bool,
    products: bool,
    budgets: BTreeSet<ProductId>,
    /// For whom a seat was given up, and when.
    gave_up: Vec<(JobId, Timestamp)>,
    /// Something ended, or came to wait.
    ended: bool,
}

impl FleetView {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ViewState> {
        // The state is a copy of the store; whatever a panic left in it is replaced by later refreshes.
        self.state.lock()
    }
}

/// Who acts on what the feed shows, once the view has it too. None of it may wait.
pub(crate) trait Follower: Send + Sync {
    fn sees(&self, events: &[Event]);

    /// Jobs that changed, as they are now.
    fn sees_jobs(&self, _: &[Job]) {}

    fn flags_changed(&self) {}
}

/// All that is known of the fleet here: the view, signs of life, and who hangs on what the feed shows.
pub(crate) struct Fleet {
    pub(crate) core: Arc<Core>,
    pub(crate) view: FleetView,
    pub(crate) presence: Presence,
    tokens: Arc<TokenCache>,
    /// Rung when the feed shows that something ended, or came to wait: others may hang on it.
    pub(crate) ended: Notify,
    /// When the signs of life were last read from the store.
    heartbeats_read_at: Mutex<Option<Timestamp>>,
    /// They know the fleet, so it knows them weakly.
    followers: OnceLock<Vec<Weak<dyn Follower>>>,
}

impl Fleet {
    pub(crate) fn new(core: Arc<Core>, tokens: Arc<TokenCache>) -> Self {
        Self {
            core,
            view: FleetView::default(),
            presence: Presence::default(),
            tokens,
            ended: Notify::new(),
            heartbeats_read_at: Mutex::default(),
            followers: OnceLock::new(),
        }
    }

    /// Each is notified in this order.
    pub(crate) fn followed_by(&self, followers: Vec<Weak<dyn Follower>>) {
        let _ = self.followers.set(followers);
    }

    fn followers(&self, tell: impl Fn(&dyn Follower)) {
        let followers = self.followers.get().into_iter().flatten();
        followers.filter_map(Weak::upgrade).for_each(|follower| tell(&*follower));
    }

    /// Whether the last look at the signs of life is long enough ago; if so, the next is now.
    fn heartbeats_are_due(&self, now: Timestamp, every: Duration) -> bool {
        let mut looked = self.heartbeats_read_at.lock();
        let due = looked.is_none_or(|at| now.since(at) >= every);
        if due {
            *looked = Some(now);
        }
        due
    }

    /// Writes the signs of life that were not written yet.
    pub(crate) async fn write_presence(&self) -> Result<(), StoreError> {
        let seen = self.presence.take_unwritten();
        if seen.is_empty() { Ok(()) } else { self.core.store.touch(Touch { seen }).await }
    }

    /// Brings the view up to what is committed now.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let _turn = self.view.refreshing.lock().await;
        let reads = self.core.store.read();
        let cursor = self.view.lock().cursor;
        let Some(mut cursor) = cursor else {
            return self.load(reads).await;
        };
        let doubted = self.view.lock().tenants.take_doubted();
        self.read_budgets(reads, &doubted).await?;
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
                    changes.budgets.extend(budget_behind(event, &state.tenants));
                    match (event.kind, event.job) {
                        (EventKind::DeadLettered, _) => state.dead_letters.push_back(event.at),
                        (
                            EventKind::MergeConflict | EventKind::MergeFailed | EventKind::RequestClosed,
                            Some((id, _)),
                        ) if event.to == Some(Stage::Failed) => {
                            let (at, cause) = (event.at, event.cause.clone());
                            state
                                .failed_merges
                                .insert(id, FailedMerge { at, cause, product: event.product.clone() });
                        }
                        (_, Some((id, _))) if event.from == Some(Stage::Failed) => {
                            state.failed_merges.remove(&id);
                        }
                        _ => {}
                    }
                }
            }
            if changes.ended {
                self.ended.notify_one();
            }
            self.look_again(reads, changes).await?;
            self.view.lock().cursor = Some(cursor);
            self.followers(|follower| follower.sees(&events));
            if !more {
                return Ok(());
            }
        }
    }

    /// The first fill. The cursor is taken before the jobs are read, so nothing can slip in between.
    async fn load(&self, reads: &dyn StoreReads) -> Result<(), StoreError> {
        self.core.read_store_clock().await?;
        let cursor = reads.feed_head().await?;
        let everything =
            Changes { factories: true, flags: true, tokens: true, products: true, ..Changes::default() };
        self.look_again(reads, everything).await?;
        let budgets = reads.budgets().await?;
        self.view.lock().tenants.put_budgets(budgets);
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
        self.load_shipping(reads).await?;
        self.view.lock().cursor = Some(cursor);
        Ok(())
    }

    /// Of no interest to the scheduler, but somebody has to merge it.
    async fn load_shipping(&self, reads: &dyn StoreReads) -> Result<(), StoreError> {
        let filter = JobFilter { stages: vec![Stage::Shipping], ..JobFilter::default() };
        let mut before = None;
        loop {
            let page = reads.list_jobs(&filter, before, PAGE).await?;
            self.followers(|follower| follower.sees_jobs(&page));
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some(last.id),
                _ => return Ok(()),
            }
        }
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
            state.let_go.extend(changes.let_go);
            state.promised.extend(changes.gave_up);
            let ViewState { promised, queue, .. } = &mut *state;
            promised.retain(|job, _| queue.get(*job).is_some());
            for id in ids.iter().filter(|id| !found.contains(id)) {
                state.drop_job(*id);
            }
            drop(state);
            self.followers(|follower| follower.sees_jobs(&jobs));
        }
        if changes.factories {
            let factories = reads.factories().await?;
            self.view.lock().factories = factories.into_iter().map(|f| (f.id.clone(), f)).collect();
        }
        if changes.flags {
            let flags = reads.flags().await?;
            self.view.lock().flags = flags.into_iter().collect();
            self.followers(|follower| follower.flags_changed());
        }
        if changes.tokens {
            self.tokens.clear();
        }
        if changes.products {
            let products = reads.products().await?;
            self.view.lock().tenants.set_products(products);
        }
        self.read_budgets(reads, &changes.budgets).await
    }

    /// Before a factory is called silent, by whoever looks at the whole fleet.
    pub(crate) async fn refresh_stale_heartbeats(&self) -> Result<(), StoreError> {
        let now = self.core.store_now();
        let all_heard = {
            let state = self.view.lock();
            state.factories.values().all(|factory| self.heard_of(&state, factory, now))
        };
        if all_heard { Ok(()) } else { self.read_heartbeats_if_due().await }
    }

    /// The same, where somebody is known to look silent. Asks the store no more often than factories send heartbeats.
    pub(crate) async fn read_heartbeats_if_due(&self) -> Result<(), StoreError> {
        let now = self.core.clock.now();
        let every = self.flag_millis("heartbeat_interval_ms");
        if self.heartbeats_are_due(now, every) { self.read_heartbeats().await } else { Ok(()) }
    }

    /// Reads when each factory was last seen: their heartbeats may go to another coordinator, and signs of life
    /// are no events.
    async fn read_heartbeats(&self) -> Result<(), StoreError> {
        let _turn = self.view.refreshing.lock().await;
        let everyone = Changes { factories: true, ..Changes::default() };
        self.look_again(self.core.store.read(), everyone).await
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

    /// The fleet as the scheduler wants it.
    pub(crate) fn snapshot(&self, state: &ViewState, now: Timestamp, whom: Whom<'_>) -> Snapshot {
        let asks = matches!(whom, Whom::Asking(_));
        let mut snapshot = Snapshot {
            factories: Vec::new(),
            running_by_product: state.by_product.clone(),
            running_by_key: state.by_key.clone(),
            promised: state.promises(),
        };
        let mut on_offer: HashMap<&FactoryId, u32> = HashMap::new();
        if whom.counts_offers() {
            for (to, job) in state.queue.on_offer() {
                *on_offer.entry(to).or_default() += 1;
                *snapshot.running_by_product.entry(job.product.clone()).or_default() += 1;
                if let Some(concurrency) = &job.concurrency {
                    let key = (job.product.clone(), concurrency.key.clone());
                    *snapshot.running_by_key.entry(key).or_default() += 1;
                }
            }
        }
        let view = |factory: &Factory| FactoryView {
            id: factory.id.clone(),
            state: factory.state,
            health: factory.advertised.health,
            live: asks || self.heard_of(state, factory, now),
            asks,
            capabilities: factory.usable_capabilities(),
            products: factory.scope.products.clone(),
            repos: factory.advertised.repos.clone(),
            can_clone: factory.advertised.can_clone,
            clones: factory.advertised.clones.clone(),
            seat_limit: factory.advertised.seat_limit,
            seats_used: state.seats.get(&factory.id).copied().unwrap_or(0)
                + on_offer.get(&factory.id).copied().unwrap_or(0),
            load: self.presence.load(factory),
            cost_per_hour: factory.advertised.cost_per_hour,
        };
        let wanted = |factory: &&Factory| match whom {
            Whom::Everyone | Whom::Committed => true,
            Whom::Asking(ids) => ids.contains(&factory.id),
            Whom::Targeted => state.is_targeted(factory),
            Whom::Shadowed => state.wished_delivery(&factory.id) == Delivery::Shadow,
        };
        snapshot.factories = state.factories.values().filter(wanted).map(view).collect();
        snapshot
    }

    /// When the queued job was put on offer, as far as the view knows it to be.
    pub(crate) fn offered_at(&self, job: JobId) -> Option<Timestamp> {
        let state = self.view.lock();
        let (_, deadline) = state.queue.get(job)?.offered_to.as_ref()?;
        Some(deadline.minus(state.flag_millis("pickup_ms")))
    }

    /// Whether the dispatcher would plan for a factory that looks offline from here.
    pub(crate) fn misses_somebody(&self, state: &ViewState, now: Timestamp) -> bool {
        let planned_for = |factory: &&Factory| {
            state.is_targeted(factory) || state.wished_delivery(&factory.id) == Delivery::Shadow
        };
        state.factories.values().filter(planned_for).any(|factory| !self.heard_of(state, factory, now))
    }

    fn heard_of(&self, state: &ViewState, factory: &Factory, now: Timestamp) -> bool {
        let let_go = state.let_go.get(&factory.id);
        self.presence.last_seen(factory).is_some_and(|seen| {
            now.since(seen) <= state.stale_after() && let_go.is_none_or(|let_go| seen > *let_go)
        })
    }
}

impl Changes {
    fn note(&mut self, event: &Event) {
        self.jobs.extend(event.job.map(|(id, _)| id));
        let hung_on = |stage: Stage| stage.is_terminal() || matches!(stage, Stage::Failed | Stage::Blocked);
        self.ended |= event.to.is_some_and(hung_on);
        match event.kind {
            EventKind::FactoryEnrolled
            | EventKind::FactoryChanged
            | EventKind::FactoryDraining
            | EventKind::FactoryResumed => self.factories = true,
            // Its tokens are gone with it.
            EventKind::FactoryDeregistered => (self.factories, self.tokens) = (true, true),
            EventKind::LeaseExpired => {
                let factory = event.data.get("factoryId").and_then(Value::as_str);
                self.let_go.extend(factory.and_then(|id| id.parse().ok()).map(|id| (id, event.at)));
            }
            EventKind::FlagChanged => self.flags = true,
            EventKind::ProductChanged => self.products = true,
            EventKind::Preempted => {
                let for_job = event.data.get("forJob").and_then(Value::as_str);
                self.gave_up.extend(for_job.and_then(|id| id.parse().ok()).map(|id| (id, event.at)));
            }
            EventKind::TokenIssued | EventKind::TokenRevoked => self.tokens = true,
            _ => {}
        }
    }
}

/// Where the parents of new jobs last ran, for affinity. Jobs that ran before have their own warmth.
pub(crate) async fn parents_of(
    reads: &dyn StoreReads,
    jobs: &[Job],
) -> Result<HashMap<JobId, FactoryId>, StoreError> {
    let cold = jobs.iter().filter(|job| job.stage() == Stage::Queued && job.last_factory.is_none());
    let parents: BTreeSet<JobId> = cold.filter_map(|job| job.spec.parent).collect();
    if parents.is_empty() {
        return Ok(HashMap::new());
    }
    let parents = reads.jobs_by_id(&parents.into_iter().collect::<Vec<_>>()).await?;
    Ok(parents.into_iter().filter_map(|job| Some((job.id, job.last_factory?))).collect())
}

/// A job as the scheduler sees it; `None` when it is not queued. `pickup` is the span that factories have for picking
/// up what is offered to them.
pub(crate) fn job_view(job: &Job, parents: &HashMap<JobId, FactoryId>, pickup: Duration) -> Option<JobView> {
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
        more_repos: job.spec.more_repos.clone(),
        concurrency: job.spec.concurrency.clone(),
        cost_cap: job.spec.budget.usd,
        last_factory: job.last_factory.clone().or_else(parent_ran_at),
        offered_to: target.as_ref().map(|t| (t.factory.clone(), t.pickup_deadline)),
        // Known from the job alone, so that every leader leaves out the same.
        excluded: target
            .iter()
            .flat_map(|t| t.left_out(pickup))
            .map(|(factory, until)| (factory.clone(), until))
            .collect(),
        earlier: job.setback.as_ref().map(|setback| {
            Box::new(Earlier {
                next: job.attempts.saturating_add(1),
                of: job.spec.retry.attempts(),
                failure: setback.failure.words(),
                unfit: setback.unfit.clone(),
            })
        }),
    })
}

impl ViewState {
    pub(crate) fn put(&mut self, job: &Job, parents: &HashMap<JobId, FactoryId>) {
        if self.known_rev(job.id).is_some_and(|known| known > job.rev) {
            return;
        }
        self.drop_job(job.id);
        if let Some(view) = job_view(job, parents, self.flag_millis("pickup_ms")) {
            if view.offered_to.is_some() {
                self.offers.insert(job.id, job.dispatch_seq);
            }
            self.queue.upsert(view);
        } else if let Some(lease) = job.lease() {
            let running = Running {
                rev: job.rev,
                factory: lease.factory.clone(),
                product: job.product.clone(),
                priority: job.spec.priority,
                granted_at: lease.granted_at,
                evictions: job.evictions,
                evict: lease.evict,
                request: lease.request.clone(),
                key: job.spec.concurrency.as_ref().map(|c| c.key.clone()),
            };
            self.count(&running, 1);
            self.grants.insert((running.factory.clone(), running.request.clone()), job.id);
            self.running.insert(job.id, running);
        }
    }

    /// The answer to a claim, which may have been overtaken: a job that went on, or is over, by now is left as it is.
    pub(crate) fn put_claimed(&mut self, job: &Job) {
        if self.known_rev(job.id).is_some() {
            self.put(job, &HashMap::new());
        }
    }

    fn known_rev(&self, id: JobId) -> Option<Rev> {
        let queued = self.queue.get(id).map(|job| job.rev);
        queued.or_else(|| self.running.get(&id).map(|running| running.rev))
    }

    pub(crate) fn drop_job(&mut self, id: JobId) {
        self.queue.remove(id);
        self.offers.remove(&id);
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

    /// Jobs on offer to the factory now, with the number of each offer.
    pub(crate) fn on_offer_to(&self, factory: &FactoryId, now: Timestamp) -> Vec<(JobId, DispatchSeq)> {
        let live = |job: &&JobView| job.offered_to.as_ref().is_some_and(|(_, deadline)| *deadline > now);
        let jobs = self.queue.offered_to(factory).filter(live);
        jobs.filter_map(|job| Some((job.id, self.current_offer(job.id)?))).collect()
    }

    /// Whether this very offer can still be picked up.
    pub(crate) fn stands(&self, offer: &Offer, now: Timestamp) -> bool {
        self.current_offer(offer.job_id) == Some(offer.dispatch_seq)
            && self
                .queue
                .get(offer.job_id)
                .and_then(|job| job.offered_to.as_ref())
                .is_some_and(|(_, deadline)| *deadline > now)
    }

    /// The number of the offer that the queued job was last put on.
    fn current_offer(&self, job: JobId) -> Option<DispatchSeq> {
        self.offers.get(&job).copied()
    }

    /// How jobs are meant to reach the factory: what is set for it, else what is set for the fleet.
    pub(crate) fn wished_delivery(&self, factory: &FactoryId) -> Delivery {
        let own = self.flags.get(&delivery_of(factory)).cloned();
        let wished = own.unwrap_or_else(|| self.flag(DELIVERY));
        wished.as_str().and_then(|mode| mode.parse().ok()).unwrap_or_default()
    }

    /// Whether the dispatcher may choose it: it works the way that it is meant to, and that way takes offers.
    pub(crate) fn is_targeted(&self, factory: &Factory) -> bool {
        let actual = factory.advertised.delivery.unwrap_or(Delivery::Poll);
        actual.is_targeted() && actual == self.wished_delivery(&factory.id)
    }

    pub(crate) fn flag(&self, name: &str) -> Value {
        let default = || FlagDef::named(name).map_or(Value::Null, FlagDef::default_value);
        self.flags.get(name).cloned().unwrap_or_else(default)
    }

    pub(crate) fn flag_millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.flag(name).as_u64().unwrap_or_default())
    }

    fn stale_after(&self) -> Duration {
        self.flag_millis("heartbeat_interval_ms") * 3
    }

    pub(crate) fn set_flag(&mut self, name: &str, value: Value) {
        if value.is_null() {
            self.flags.remove(name);
        } else {
            self.flags.insert(name.to_owned(), value);
        }
    }
}

fn add<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: K, by: i32) {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add_signed(by);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rev: u64, state: State) -> Job {
        let spec = serde_json::json!({ "name": "one" });
        let spec = serde_json::from_value(spec).unwrap();
        Job {
            rev: Rev(rev),
            epoch: giga_domain::Epoch(rev),
            last_event: giga_domain::EventSeq(rev),
            ..Job::new(JobId::from_u128(1), "demo".parse().unwrap(), spec, state, Timestamp::ZERO)
        }
    }

    fn queued(rev: u64) -> Job {
        job(rev, State::Queued { since: Timestamp::ZERO, ready_at: Timestamp::ZERO, target: None })
    }

    fn held(rev: u64) -> Job {
        let lease = giga_domain::Lease {
            factory: "mac-1".parse().unwrap(),
            request: "r1".parse().unwrap(),
            granted_at: Timestamp::ZERO,
            expires_at: Timestamp::ZERO,
            reserved: giga_domain::Usd::ZERO,
            spent: giga_domain::Spend::default(),
            evict: None,
        };
        job(rev, State::Assigned { lease })
    }

    #[test]
    fn the_answer_to_a_claim_never_brings_back_what_the_feed_has_overtaken() {
        let nobody = HashMap::new();
        let (id, mut state) = (queued(1).id, ViewState::default());
        state.put_claimed(&held(2));
        assert!(state.running.is_empty(), "it was over before the answer came");

        state.put(&queued(1), &nobody);
        state.put_claimed(&held(2));
        assert!(state.running.contains_key(&id));

        state.put(&queued(3), &nobody);
        state.put_claimed(&held(2));
        assert!(state.running.is_empty() && state.queue.get(id).is_some(), "it was released meanwhile");
        state.put(&queued(1), &nobody);
        assert_eq!(state.queue.get(id).map(|job| job.rev), Some(Rev(3)), "an old look changes nothing");
    }
}
