//! The fleet view: every live job and every factory in memory, kept up to date by following the feed.
//!
//! A copy that may be old, never the truth. Whoever acts on it does so by compare-and-set and looks again when it
//! lost. Filling it costs one pass over the live jobs at start, following it costs what changed.

mod state;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use giga_domain::{Delivery, Event, EventKind, Factory, FactoryId, Job, JobId, ProductId, Stage, Timestamp};
use giga_ports::store::{JobFilter, Touch};
use giga_ports::{StoreError, StoreReads};
use giga_scheduler::{FactoryView, Snapshot};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::Notify;

use crate::core::Core;
use crate::factories::Presence;
use crate::policies::budget_behind;
use crate::tokens::TokenCache;

pub(crate) use state::{Asking, FailedMerge, Running, ViewState, job_view, parents_of};

const PAGE: usize = 1_000;

#[derive(Default)]
pub(crate) struct FleetView {
    state: Mutex<ViewState>,
    /// One refresh at a time; whoever waited finds the work done.
    refreshing: tokio::sync::Mutex<()>,
    /// Rung when a budget or an account may be open that was closed, or closes.
    pub(crate) budgets_moved: tokio::sync::watch::Sender<()>,
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
    asked: bool,
    talked: bool,
    pools: bool,
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
    /// Rung when a job asks something.
    pub(crate) asked: Notify,
    /// Rung when a job was answered or told something.
    pub(crate) talked: Notify,
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
            asked: Notify::new(),
            talked: Notify::new(),
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
            if changes.asked {
                self.asked.notify_one();
            }
            if changes.talked {
                self.talked.notify_waiters();
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
        let everything = Changes {
            factories: true,
            flags: true,
            tokens: true,
            products: true,
            pools: true,
            ..Changes::default()
        };
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
            let now = self.core.store_now();
            let mut state = self.view.lock();
            let before = state.closed_accounts(now).next_opening();
            state.factories = factories.into_iter().map(|f| (f.id.clone(), f)).collect();
            let opens = state.closed_accounts(now).next_opening();
            drop(state);
            if before != opens {
                self.view.budgets_moved.send_replace(());
            }
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
        if changes.pools {
            let (pools, members) = (reads.pools().await?, reads.pool_members().await?);
            let mut state = self.view.lock();
            state.pools = pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
            state.members = members.into_iter().map(|member| (member.factory.clone(), member)).collect();
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
            absent: HashMap::new(),
        };
        let mut on_offer: HashMap<&FactoryId, u32> = HashMap::new();
        let mut units_used = state.units.clone();
        if whom.counts_offers() {
            for (to, job) in state.queue.on_offer() {
                *on_offer.entry(to).or_default() += 1;
                units_used.entry(to.clone()).or_default().take(&job.capabilities);
                *snapshot.running_by_product.entry(job.product.clone()).or_default() += 1;
                if let Some(concurrency) = &job.concurrency {
                    let key = (job.product.clone(), concurrency.key.clone());
                    *snapshot.running_by_key.entry(key).or_default() += 1;
                }
            }
        }
        let closed = state.closed_accounts(now);
        let view = |factory: &Factory| FactoryView {
            id: factory.id.clone(),
            state: factory.state,
            health: factory.advertised.health,
            health_reason: factory.advertised.health_reason.clone(),
            live: asks || self.heard_of(state, factory, now),
            asks,
            capabilities: factory.usable_capabilities(),
            closed: closed.closed_on(factory),
            products: factory.scope.products.clone(),
            repos: factory.advertised.repos.clone(),
            can_clone: factory.advertised.can_clone,
            clones: factory.advertised.clones.clone(),
            seat_limit: factory.advertised.seat_limit,
            seats_used: state.seats.get(&factory.id).copied().unwrap_or(0)
                + on_offer.get(&factory.id).copied().unwrap_or(0),
            units_used: units_used.get(&factory.id).cloned().unwrap_or_default(),
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

    pub(crate) fn heard_of(&self, state: &ViewState, factory: &Factory, now: Timestamp) -> bool {
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
            EventKind::QuestionAsked => self.asked = true,
            EventKind::QuestionAnswered | EventKind::QuestionExpired | EventKind::MessageSent => {
                self.talked = true;
            }
            EventKind::PoolChanged
            | EventKind::PoolRemoved
            | EventKind::PoolStarting
            | EventKind::PoolJoined
            | EventKind::PoolStartFailed
            | EventKind::PoolStopping
            | EventKind::PoolLeft => self.pools = true,
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
