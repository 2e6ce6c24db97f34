//! What the leader does about pools: one step at a time, each of which may be done twice.
//!
//! A driver may take minutes, so each member is driven in a task of its own and by one at a time. Nothing is concluded from
//! what this process remembers: should it die, the next leader finds the same members in the same states.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::token::{Lifetime, Permission};
use giga_domain::{
    Actor, DriverKind, FactoryId, FactoryState, Member, MemberState, Pool, PoolName, Term, Timestamp,
};
use giga_ports::store::{
    ChargePool, ForgetMember, IssueToken, LearnPool, NoteMember, OrderMembers, SetFactoryState, StopMember,
};
use giga_ports::{DriverError, StartOrder, StopOrder, StoreError};

use super::look::{Looked, learned, members};
use super::{Pools, Trouble};
use crate::Error;

/// Between two looks: a look is a plan, and a busy fleet changes many times while one is made.
const BREATH: Duration = Duration::from_millis(50);
/// The longest sleep while there are members or jobs: a factory that falls silent is no event.
const TICK: Duration = Duration::from_secs(5);
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// A driver that could not do something is asked again after this.
const DRIVER_AGAIN: Duration = Duration::from_secs(10);
/// How often the hours of factories that run on are charged.
const CHARGE_EVERY: Duration = Duration::from_mins(10);
/// One that was drained and holds nothing has so long to leave by itself.
const GOODBYE: Duration = Duration::from_mins(2);
/// One that was not heard of for so long, and holds nothing, is given up. Its machine may be gone.
const LOST_AFTER: Duration = Duration::from_mins(10);

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Order {
        pool: PoolName,
        count: u32,
    },
    Start(FactoryId),
    Drain(FactoryId),
    GiveUp {
        factory: FactoryId,
        why: String,
    },
    /// Asks the driver whether it is there at all.
    Check(FactoryId),
    TakeAway(FactoryId),
    Learn {
        pool: PoolName,
        from: FactoryId,
    },
    Charge(PoolName),
}

impl Pools {
    /// Everything that can be done about pools now is done, one after the other. Does nothing where this node does not
    /// lead.
    pub async fn pools_once(&self) -> Result<(), Error> {
        let Some(term) = self.lead.leading() else { return Ok(()) };
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        for step in self.steps(self.core.store_now()).0 {
            self.take(term, step).await?;
        }
        Ok(())
    }

    pub(crate) async fn keep_scaling(self: Arc<Self>) {
        loop {
            let pause = match self.round().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "pools could not be looked after");
                    Some(AFTER_A_FAILURE)
                }
            };
            let timer = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.moved.notified() => tokio::time::sleep(BREATH).await,
                () = timer => {}
            }
        }
    }

    /// `None`: nothing changes by the clock alone.
    async fn round(self: &Arc<Self>) -> Result<Option<Duration>, Error> {
        let Some(term) = self.lead.leading() else { return Ok(None) };
        let (has_pools, has_members) = {
            let state = self.fleet.view.lock();
            (!state.pools.is_empty(), !state.members.is_empty())
        };
        if !has_pools && !has_members {
            return Ok(None);
        }
        if has_members {
            self.fleet.refresh_stale_heartbeats().await?;
        }
        let (steps, pause) = self.steps(self.core.store_now());
        for step in steps {
            if let Step::Start(_) | Step::TakeAway(_) | Step::Check(_) = &step {
                let own = self.clone();
                self.core.tasks.spawn(async move {
                    if let Err(error) = own.take(term, step).await {
                        tracing::warn!(%error, "a member of a pool could not be looked after");
                        own.moved.notify_one();
                    }
                });
            } else {
                self.take(term, step).await?;
            }
        }
        Ok(pause)
    }

    /// What should be done now, and when to look again should nothing happen.
    fn steps(&self, now: Timestamp) -> (Vec<Step>, Option<Duration>) {
        let mut state = self.fleet.view.lock();
        let looked = self.look(&mut state, now);
        let mut steps = Vec::new();
        let mut again: Option<Timestamp> = None;
        let mut at = |when: Timestamp| again = Some(again.map_or(when, |earlier| earlier.min(when)));
        let all: Vec<Member> = state.members.values().cloned().collect();
        for member in &all {
            let Some(pool) = state.pools.get(&member.pool) else { continue };
            if self.memory.lock().driven.contains(&member.factory) {
                continue;
            }
            if let Some(step) = self.step_for(&state, pool, member, now) {
                steps.push(step);
            }
        }
        if let Some(Looked { pools, .. }) = &looked {
            for (name, (_, scaled)) in pools {
                let pool = &state.pools[name];
                if pool.settings.driver != DriverKind::Keda && scaled.start > 0 {
                    steps.push(Step::Order { pool: name.clone(), count: scaled.start });
                }
                steps.extend(scaled.drain.iter().cloned().map(Step::Drain));
                scaled.again_at.into_iter().for_each(&mut at);
                pool.record.waits_until(now).into_iter().for_each(&mut at);
                steps.extend(self.lesson(&state, pool, now));
                steps.extend(self.due_charge(&state, pool, now));
            }
        }
        let restless = !state.members.is_empty() || (!state.pools.is_empty() && !state.queue.is_empty());
        let soonest = again.map(|when| when.since(now) + Duration::from_millis(1));
        let pause = if restless { Some(soonest.map_or(TICK, |soonest| soonest.min(TICK))) } else { soonest };
        (steps, pause)
    }

    fn step_for(
        &self,
        state: &crate::view::ViewState,
        pool: &Pool,
        member: &Member,
        now: Timestamp,
    ) -> Option<Step> {
        let id = member.factory.clone();
        let is_due = self.memory.lock().trouble.get(&id).is_none_or(|trouble| trouble.again_at <= now);
        let by_others = pool.settings.driver == DriverKind::Keda;
        match member.state {
            MemberState::Starting => {
                if now.since(member.ordered_at) >= pool.settings.start_timeout {
                    let said =
                        self.memory.lock().trouble.get(&id).map(|trouble| format!(": {}", trouble.reason));
                    let timeout = pool.settings.start_timeout.as_secs();
                    let why = format!("it did not enroll within {timeout} s{}", said.unwrap_or_default());
                    return Some(Step::GiveUp { factory: id, why });
                }
                match &member.handle {
                    None => is_due.then_some(Step::Start(id)),
                    Some(_) => is_due.then_some(Step::Check(id)),
                }
            }
            MemberState::Running => {
                let Some(factory) = state.factories.get(&id) else {
                    return Some(Step::GiveUp { factory: id, why: "it has left".to_owned() });
                };
                let holds = state.seats.get(&id).copied().unwrap_or(0);
                let seen = self.fleet.presence.last_seen(factory).unwrap_or(factory.enrolled_at);
                if holds > 0 {
                    return None;
                }
                if now.since(seen) >= LOST_AFTER {
                    let why = format!("it was not heard of for {} min", LOST_AFTER.as_secs() / 60);
                    return Some(Step::GiveUp { factory: id, why });
                }
                let drains = factory.state == FactoryState::Draining;
                if drains && self.has_said_goodbye(&id, now) {
                    let why = "it was drained and did not leave by itself".to_owned();
                    return Some(Step::GiveUp { factory: id, why });
                }
                let is_silent = !self.fleet.heard_of(state, factory, now);
                (is_silent && !by_others && is_due).then_some(Step::Check(id))
            }
            MemberState::Stopping => is_due.then_some(Step::TakeAway(id)),
        }
    }

    /// Whether it has been idle, as a drained one is, for long enough to have left by itself.
    fn has_said_goodbye(&self, factory: &FactoryId, now: Timestamp) -> bool {
        self.memory.lock().idle.get(factory).is_some_and(|since| now.since(*since) >= GOODBYE)
    }

    fn lesson(&self, state: &crate::view::ViewState, pool: &Pool, now: Timestamp) -> Option<Step> {
        let heard = members(state, pool).filter(|member| member.state == MemberState::Running);
        let newest = heard
            .filter_map(|member| Some((member.enrolled_at?, state.factories.get(&member.factory)?)))
            .filter(|(_, factory)| {
                factory.advertised.seat_limit > 0 && self.fleet.heard_of(state, factory, now)
            })
            .max_by_key(|(at, factory)| (*at, factory.id.clone()))?;
        let is_new = pool.record.template.as_ref() != Some(&learned(newest.1));
        is_new.then(|| Step::Learn { pool: pool.name.clone(), from: newest.1.id.clone() })
    }

    fn due_charge(&self, state: &crate::view::ViewState, pool: &Pool, now: Timestamp) -> Option<Step> {
        pool.settings.charge_to.as_ref()?;
        let mut memory = self.memory.lock();
        let last = *memory.charged.entry(pool.name.clone()).or_insert(now);
        let due = now.since(last) >= CHARGE_EVERY && members(state, pool).next().is_some();
        due.then(|| Step::Charge(pool.name.clone()))
    }

    async fn take(&self, term: Term, step: Step) -> Result<(), Error> {
        match self.carry_out(term, step).await {
            // Somebody has changed the pool meanwhile: the next look knows.
            Err(Error::Store(StoreError::RevMismatch { .. } | StoreError::NoSuchPool(_))) => Ok(()),
            done => done,
        }
    }

    async fn carry_out(&self, term: Term, step: Step) -> Result<(), Error> {
        match step {
            Step::Order { pool, count } => self.order(term, &pool, count).await,
            Step::Start(factory) => self.driven(factory.clone(), self.start(term, factory)).await,
            Step::Check(factory) => self.driven(factory.clone(), self.check(term, factory)).await,
            Step::TakeAway(factory) => self.driven(factory.clone(), self.take_away(term, factory)).await,
            Step::Drain(factory) => {
                let (state, actor) = (FactoryState::Draining, Actor::system("pools"));
                let drained =
                    self.core.store.set_factory_state(SetFactoryState { factory, state, actor }).await;
                match drained {
                    Ok(_) | Err(StoreError::NoSuchFactory(_)) => Ok(self.fleet.refresh().await?),
                    Err(error) => Err(error.into()),
                }
            }
            Step::GiveUp { factory, why } => self.give_up(term, factory, why).await,
            Step::Learn { pool, from } => self.learn(&pool, &from).await,
            Step::Charge(pool) => self.charge(term, &pool).await,
        }
    }

    async fn order(&self, term: Term, pool: &PoolName, count: u32) -> Result<(), Error> {
        let Some(known) = self.pool(pool) else { return Ok(()) };
        let factories = (0..count).map(|_| self.new_member(pool)).collect();
        let Pool { rev, settings, .. } = known;
        let charge_to = settings.charge_to;
        self.core
            .store
            .order_members(OrderMembers { term, pool: pool.clone(), rev, charge_to, factories })
            .await?;
        Ok(self.fleet.refresh().await?)
    }

    /// Called after its pool, with eight letters that nobody else has.
    pub(super) fn new_member(&self, pool: &PoolName) -> FactoryId {
        let random = const_hex::encode(&self.core.random.bytes()[..4]);
        format!("{pool}-{random}").parse().expect("a pool's name is shorter than a factory's id may be")
    }

    fn pool(&self, name: &PoolName) -> Option<Pool> {
        self.fleet.view.lock().pools.get(name).cloned()
    }

    fn member(&self, factory: &FactoryId) -> Option<(Pool, Member)> {
        let state = self.fleet.view.lock();
        let member = state.members.get(factory)?.clone();
        Some((state.pools.get(&member.pool)?.clone(), member))
    }

    /// One at a time for each member.
    async fn driven(
        &self,
        factory: FactoryId,
        work: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        if !self.memory.lock().driven.insert(factory.clone()) {
            return Ok(());
        }
        let done = work.await;
        self.memory.lock().driven.remove(&factory);
        self.moved.notify_one();
        done
    }

    async fn start(&self, term: Term, factory: FactoryId) -> Result<(), Error> {
        let Some((pool, member)) = self.member(&factory) else { return Ok(()) };
        if member.state != MemberState::Starting || member.handle.is_some() {
            return Ok(());
        }
        let started = match self.start_order(&pool, &factory).await? {
            Ok(order) => match self.drivers.get(pool.settings.driver) {
                Some(driver) => driver.start(&order).await,
                None => Err(no_driver(pool.settings.driver)),
            },
            Err(error) => Err(error),
        };
        match started {
            Ok(handle) => {
                let next_check = self.core.store_now().plus(TICK);
                self.remember(&factory, String::new(), next_check);
                let pool = pool.name;
                self.core
                    .store
                    .note_member(NoteMember {
                        pool: pool.clone(),
                        factory: factory.clone(),
                        handle: handle.clone(),
                    })
                    .await?;
                // No event says so.
                if let Some(member) = self.fleet.view.lock().members.get_mut(&factory) {
                    member.handle = Some(handle);
                }
                Ok(())
            }
            Err(DriverError { reason, transient: true }) => {
                tracing::warn!(%factory, reason, "a factory could not be started yet");
                let again_at = self.core.store_now().plus(DRIVER_AGAIN);
                self.remember(&factory, reason, again_at);
                Ok(())
            }
            Err(DriverError { reason, .. }) => self.give_up(term, factory, reason).await,
        }
    }

    /// The error is for the pool's operator.
    async fn start_order(
        &self,
        pool: &Pool,
        factory: &FactoryId,
    ) -> Result<Result<StartOrder, DriverError>, Error> {
        let url = pool.settings.url.clone().or_else(|| self.drivers.url().map(str::to_owned));
        let Some(url) = url else {
            let how = format!("giga pool set {} --coordinator-url URL", pool.name);
            return Ok(Err(DriverError::lasting(format!(
                "nobody knows where its factories find the coordinator: `{how}`"
            ))));
        };
        let credential = self.credential(&pool.name, Some(factory), Self::life_of(pool)).await?;
        let (pool, settings) = (pool.name.clone(), pool.settings.clone());
        Ok(Ok(StartOrder { pool, settings, factory: factory.clone(), url, credential }))
    }

    /// Long enough for the start and for a process that is started again.
    fn life_of(pool: &Pool) -> Lifetime {
        Lifetime::For(pool.settings.start_timeout.saturating_mul(2).max(Duration::from_mins(10)))
    }

    pub(super) async fn credential(
        &self,
        pool: &PoolName,
        factory: Option<&FactoryId>,
        lifetime: Lifetime,
    ) -> Result<String, Error> {
        let permission = Permission::Pool { pool: pool.clone(), factory: factory.cloned() };
        let label = match factory {
            Some(factory) => format!("start of {factory}"),
            None => format!("pool {pool}"),
        };
        let (token, secret) = crate::tokens::new_token(&self.core, "pool", permission, label, lifetime);
        self.core.store.issue_token(IssueToken { token, actor: Actor::system("pools") }).await?;
        self.tokens.forget_strangers();
        Ok(secret.reveal().to_owned())
    }

    async fn check(&self, term: Term, factory: FactoryId) -> Result<(), Error> {
        let Some((pool, member)) = self.member(&factory) else { return Ok(()) };
        let Some(driver) = self.drivers.get(pool.settings.driver) else { return Ok(()) };
        let again_at = self.core.store_now().plus(TICK);
        match driver.is_alive(&stop_order(&pool, &member)).await {
            Ok(Some(false)) => {
                let why = match member.state {
                    MemberState::Starting => "it ended before it enrolled; its log says why",
                    _ => "its process is gone",
                };
                self.give_up(term, factory, why.to_owned()).await
            }
            Ok(_) => {
                self.remember(&factory, String::new(), again_at);
                Ok(())
            }
            Err(error) => {
                self.remember(&factory, error.reason, again_at);
                Ok(())
            }
        }
    }

    async fn take_away(&self, term: Term, factory: FactoryId) -> Result<(), Error> {
        let Some((pool, member)) = self.member(&factory) else { return Ok(()) };
        let stopped = match self.drivers.get(pool.settings.driver) {
            Some(driver) => driver.stop(&stop_order(&pool, &member)).await,
            None if pool.settings.driver == DriverKind::Keda => Ok(()),
            None => Err(no_driver(pool.settings.driver)),
        };
        // Of one that the driver never said it had started, nothing can be left that a lasting refusal would keep.
        let never_there = |error: &DriverError| !error.transient && member.handle.is_none();
        if let Err(error) = stopped.or_else(|error| if never_there(&error) { Ok(()) } else { Err(error) }) {
            tracing::warn!(%factory, %error, "what is left of a factory could not be taken away yet");
            let again_at = self.core.store_now().plus(DRIVER_AGAIN);
            self.remember(&factory, error.reason, again_at);
            return Ok(());
        }
        let Pool { name, rev, settings, .. } = pool;
        let charge_to = settings.charge_to;
        let forget =
            ForgetMember { term, pool: name, rev, charge_to: charge_to.clone(), factory: factory.clone() };
        self.core.store.forget_member(forget).await?;
        self.memory.lock().trouble.remove(&factory);
        self.tokens.clear();
        self.fleet.presence.forget(&factory);
        if let Some(product) = charge_to {
            self.fleet.view.lock().tenants.doubt(product);
        }
        Ok(self.fleet.refresh().await?)
    }

    async fn give_up(&self, term: Term, factory: FactoryId, reason: String) -> Result<(), Error> {
        let Some((pool, _)) = self.member(&factory) else { return Ok(()) };
        self.core
            .store
            .stop_member(StopMember { term, pool: pool.name, factory: factory.clone(), reason })
            .await?;
        self.memory.lock().trouble.remove(&factory);
        self.tokens.clear();
        Ok(self.fleet.refresh().await?)
    }

    fn remember(&self, factory: &FactoryId, reason: String, again_at: Timestamp) {
        self.memory.lock().trouble.insert(factory.clone(), Trouble { reason, again_at });
    }

    async fn learn(&self, pool: &PoolName, from: &FactoryId) -> Result<(), Error> {
        let (rev, template) = {
            let state = self.fleet.view.lock();
            let (Some(pool), Some(factory)) = (state.pools.get(pool), state.factories.get(from)) else {
                return Ok(());
            };
            (pool.rev, learned(factory))
        };
        let learned = self.core.store.learn_pool(LearnPool { pool: pool.clone(), rev, template }).await?;
        // No event says so, and no other node needs it before the next one.
        if let Some(pool) = learned {
            self.fleet.view.lock().pools.insert(pool.name.clone(), pool);
            self.moved.notify_one();
        }
        Ok(())
    }

    async fn charge(&self, term: Term, pool: &PoolName) -> Result<(), Error> {
        let Some(known) = self.pool(pool) else { return Ok(()) };
        let Some(charge_to) = known.settings.charge_to else { return Ok(()) };
        let charge = ChargePool { term, pool: pool.clone(), rev: known.rev, charge_to: charge_to.clone() };
        self.core.store.charge_pool(charge).await?;
        self.memory.lock().charged.insert(pool.clone(), self.core.store_now());
        self.fleet.view.lock().tenants.doubt(charge_to);
        Ok(())
    }
}

fn stop_order(pool: &Pool, member: &Member) -> StopOrder {
    StopOrder {
        pool: pool.name.clone(),
        settings: pool.settings.clone(),
        factory: member.factory.clone(),
        handle: member.handle.clone(),
    }
}

fn no_driver(kind: DriverKind) -> DriverError {
    DriverError::lasting(format!("this coordinator has no driver `{kind}`; see `giga pool help`"))
}
