//! What there is work for, and what should happen to each pool. Nothing here is done or written.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::pool::cost_of;
use giga_domain::{
    CapabilitySet, DriverKind, Factory, FactoryId, FactoryState, Member, MemberState, Pool, PoolName,
    ProductId, Timestamp, UnitsInUse, Usd,
};
use giga_scheduler::scale::about;
use giga_scheduler::{
    Demand, FactoryView, Idle, PoolDemand, PoolNow, ReadyQueue, Scale, Snapshot, demand, scale,
};

use super::{Memory, Pools};
use crate::view::{ViewState, Whom};

/// A pool as people see it.
#[derive(Debug, Clone)]
pub struct PoolView {
    pub pool: Pool,
    pub members: Vec<(Member, Option<MemberActivity>)>,
    /// How many factories there should be.
    pub target: u32,
    /// Jobs that wait for a factory of it: those that are on their way will take some of them.
    pub waiting: u32,
    pub state: PoolState,
    /// What its hours have cost so far, those of the members that there are.
    pub cost: Option<Usd>,
}

/// What the factory of a member is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberActivity {
    pub jobs: u32,
    pub live: bool,
    pub draining: bool,
    /// Since when it has nothing to do.
    pub idle_since: Option<Timestamp>,
}

/// In a word and a sentence, why a pool starts nothing or what it is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolState {
    /// Nothing is wanted.
    Quiet,
    Working,
    /// So many are on their way.
    Starting(u32),
    /// More would have work, and it has all that it may have.
    Full,
    Paused,
    /// The last start failed.
    BackingOff {
        until: Timestamp,
        why: String,
    },
    /// The budget that pays its hours is closed.
    OutOfBudget(ProductId),
}

/// A factory that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    pub pool: PoolName,
    /// The one that is on its way; `None` where it is still to be started.
    pub factory: Option<FactoryId>,
    /// For people.
    pub sentence: String,
    /// The command that lets it come, where something holds it up.
    pub fix: Option<String>,
    /// Whose jobs the pool takes; none means everybody's.
    pub products: Vec<ProductId>,
}

/// All pools at one moment.
pub(super) struct Looked {
    pub(super) demand: Demand,
    pub(super) pools: HashMap<PoolName, (PoolNow, Scale)>,
}

impl Pools {
    /// `None` while there is no pool at all.
    pub(super) fn look(&self, state: &mut ViewState, now: Timestamp) -> Option<Looked> {
        if state.pools.is_empty() {
            return None;
        }
        state.queue.settle(now);
        let snapshot = self.fleet.snapshot(state, now, Whom::Committed);
        let policy = state.policy(now, Whom::Committed);
        let views: Vec<giga_scheduler::PoolView> =
            state.pools.values().map(|pool| scheduled(state, pool, now)).collect();
        let mut demand = demand(&state.queue, &snapshot, now, &policy, &views);
        let mut memory = self.memory.lock();
        want_mergers(&memory, &snapshot, &views, &mut demand);
        note_idle(&mut memory, state, &snapshot, &demand, now);
        let blank = PoolDemand::default();
        let pools = state.pools.values().map(|pool| {
            let pool_now = pool_now(&memory, state, pool, now);
            let of_pool = demand.pools.get(&pool.name).unwrap_or(&blank);
            let scaled = scale(&pool.settings, &pool_now, of_pool, now);
            (pool.name.clone(), (pool_now, scaled))
        });
        let pools = pools.collect();
        Some(Looked { demand, pools })
    }

    /// What the job waits for, where that is a factory of a pool. The job need not be in the queue.
    pub(crate) fn awaited(
        &self,
        state: &mut ViewState,
        job: &giga_scheduler::JobView,
        now: Timestamp,
    ) -> Option<Awaited> {
        if state.pools.is_empty() {
            return None;
        }
        let was_there = state.queue.get(job.id).is_some();
        if !was_there {
            state.queue.upsert(job.clone());
        }
        let looked = self.look(state, now);
        if !was_there {
            state.queue.remove(job.id);
        }
        let (pool, factory) = looked?.demand.waiting.remove(&job.id)?;
        let known = state.pools.get(&pool)?;
        let sentence = sentence(state, known, factory.as_ref(), now);
        let fix = match pool_state(state, known, None, now) {
            PoolState::Paused => Some(format!("giga pool resume {pool}")),
            PoolState::OutOfBudget(product) => Some(format!("giga budget show {product}")),
            _ => None,
        };
        let products = known.settings.products.clone();
        Some(Awaited { pool, factory, sentence, fix, products })
    }

    /// By name.
    pub(super) fn views(&self, state: &mut ViewState, now: Timestamp) -> Vec<PoolView> {
        let Some(looked) = self.look(state, now) else { return Vec::new() };
        let memory = self.memory.lock();
        let view = |pool: &Pool| {
            let (_, scaled) = &looked.pools[&pool.name];
            let demand = looked.demand.pools.get(&pool.name).cloned().unwrap_or_default();
            let all = members(state, pool).cloned();
            let members: Vec<_> =
                all.map(|member| (member.clone(), self.activity(&memory, state, &member, now))).collect();
            let rate = pool.settings.cost_per_hour;
            let cost =
                rate.map(|rate| members.iter().map(|(m, _)| cost_of(rate, now.since(m.ordered_at))).sum());
            PoolView {
                state: pool_state(state, pool, Some(scaled), now),
                pool: pool.clone(),
                members,
                target: scaled.target,
                waiting: demand.jobs + demand.coming,
                cost,
            }
        };
        state.pools.values().map(view).collect()
    }

    fn activity(
        &self,
        memory: &Memory,
        state: &ViewState,
        member: &Member,
        now: Timestamp,
    ) -> Option<MemberActivity> {
        let factory = state.factories.get(&member.factory)?;
        Some(MemberActivity {
            jobs: state.seats.get(&member.factory).copied().unwrap_or(0),
            live: self.fleet.heard_of(state, factory, now),
            draining: factory.state == FactoryState::Draining,
            idle_since: memory.idle.get(&member.factory).copied(),
        })
    }
}

fn scheduled(state: &ViewState, pool: &Pool, now: Timestamp) -> giga_scheduler::PoolView {
    let of_pool = || members(state, pool);
    let starting = of_pool().filter(|m| m.state == MemberState::Starting);
    // Somebody else scales it: how many it may have is for them to say, and ours to ask for.
    let room = pool.settings.max.saturating_sub(of_pool().count() as u32);
    let is_tried_out = pool.record.template.is_some() || !pool.settings.capabilities.is_empty();
    let nobody_yet = of_pool().next().is_none();
    // One shows what they are like.
    let room = if is_tried_out { room } else { room.min(u32::from(nobody_yet)) };
    giga_scheduler::PoolView {
        name: pool.name.clone(),
        template: template(state, pool, now),
        starting: starting.map(|member| member.factory.clone()).collect(),
        room,
    }
}

/// Whether a factory of some pool could run the job one day, as far as anybody knows.
pub(crate) fn could_run(state: &ViewState, job: &giga_scheduler::JobView, now: Timestamp) -> bool {
    state.pools.values().filter(|pool| pool.settings.max > 0).any(|pool| {
        let products = &pool.settings.products;
        if pool.record.template.is_none() {
            return products.is_empty() || products.contains(&job.product);
        }
        let factories = vec![template(state, pool, now)];
        giga_scheduler::routable(job, &Snapshot { factories, ..Snapshot::default() }).is_ok()
    })
}

fn sentence(state: &ViewState, pool: &Pool, factory: Option<&FactoryId>, now: Timestamp) -> String {
    let name = &pool.name;
    let long = about(pool.start_time()).map(|long| format!(" ({long})")).unwrap_or_default();
    if let Some(member) = factory.and_then(|id| state.members.get(id)) {
        let passed = now.since(member.ordered_at).as_secs();
        return format!("a factory of pool {name} is starting{long}, ordered {passed} s ago");
    }
    match pool_state(state, pool, None, now) {
        PoolState::Paused => {
            format!("a factory of pool {name} could run it, and the pool is paused")
        }
        PoolState::BackingOff { until, why } => {
            format!(
                "a factory of pool {name} could run it; the last start failed ({why}), trying again at {until}"
            )
        }
        PoolState::OutOfBudget(product) => format!(
            "a factory of pool {name} could run it, and the budget of {product}, which pays it, is closed"
        ),
        _ if pool.settings.driver == DriverKind::Keda => {
            format!("pool {name} asks for one more factory{long}")
        }
        _ => format!("pool {name} starts one more factory{long}"),
    }
}

pub(super) fn members<'a>(state: &'a ViewState, pool: &'a Pool) -> impl Iterator<Item = &'a Member> {
    state.members.values().filter(|member| member.pool == pool.name)
}

fn pool_state(state: &ViewState, pool: &Pool, scaled: Option<&Scale>, now: Timestamp) -> PoolState {
    let starting = members(state, pool).filter(|m| m.state == MemberState::Starting).count() as u32;
    let wants = scaled.is_none_or(|scaled| scaled.wanted > 0);
    if pool.settings.paused {
        return PoolState::Paused;
    }
    if wants && let Some(until) = pool.record.waits_until(now) {
        let why = pool.record.failure.clone().unwrap_or_default();
        return PoolState::BackingOff { until, why: crate::alerts::first_line(&why) };
    }
    if wants && let Some(product) = closed_payer(state, pool, now) {
        return PoolState::OutOfBudget(product.clone());
    }
    let count = members(state, pool).count() as u32;
    match (starting, count) {
        (1.., _) => PoolState::Starting(starting),
        (0, 0) => PoolState::Quiet,
        (0, count) if count >= pool.settings.max && scaled.is_some_and(|s| s.target >= pool.settings.max) => {
            PoolState::Full
        }
        _ => PoolState::Working,
    }
}

fn closed_payer<'a>(state: &ViewState, pool: &'a Pool, now: Timestamp) -> Option<&'a ProductId> {
    let payer = pool.settings.charge_to.as_ref()?;
    let budget = state.tenants.budgets().find(|budget| budget.product == *payer)?;
    budget.admits(None, now).is_err().then_some(payer)
}

/// A factory of the pool, as far as it is known what they are like.
fn template(state: &ViewState, pool: &Pool, now: Timestamp) -> FactoryView {
    let settings = &pool.settings;
    let known = pool.record.template.clone();
    let mut capabilities = settings.capabilities.clone();
    match &known {
        Some(known) => {
            for token in Vec::<String>::from(known.capabilities.clone()) {
                // It was read from a factory, so it is a capability.
                let _ = capabilities.insert_token(&token);
            }
        }
        // Nobody has seen one: whatever is asked for may be there.
        None => capabilities.extend(asked_for(&state.queue)),
    }
    let tried = known.unwrap_or_default();
    let is_unknown = pool.record.template.is_none();
    let factory = Factory {
        id: new_id(&pool.name),
        state: FactoryState::Active,
        scope: FactoryScope { products: settings.products.clone(), capabilities: None },
        advertised: Advertised {
            capabilities,
            repos: tried.repos,
            can_clone: tried.can_clone || is_unknown,
            clones: tried.clones,
            seat_limit: settings.seats,
            accounts: tried.accounts,
            cost_per_hour: settings.cost_per_hour,
            ..Advertised::default()
        },
        enrolled_at: now,
        last_seen_at: Some(now),
    };
    let closed = state.closed_accounts(now).closed_on(&factory);
    let mut capabilities = factory.usable_capabilities();
    if is_unknown {
        capabilities.extend(asked_for(&state.queue));
    }
    let advertised = factory.advertised;
    let mut repos = advertised.repos;
    if is_unknown {
        // What has a name only may be there, too.
        repos.extend(named_repos(&state.queue).into_iter().map(giga_domain::factory::FactoryRepo::named));
    }
    FactoryView {
        id: factory.id,
        state: FactoryState::Active,
        health: advertised.health,
        health_reason: None,
        live: true,
        asks: false,
        capabilities,
        closed,
        products: factory.scope.products,
        repos,
        can_clone: advertised.can_clone,
        clones: advertised.clones,
        seat_limit: advertised.seat_limit,
        seats_used: 0,
        units_used: UnitsInUse::default(),
        load: 0.0,
        cost_per_hour: advertised.cost_per_hour,
    }
}

/// Stands for no factory.
fn new_id(pool: &PoolName) -> FactoryId {
    format!("{pool}.new").parse().expect("a pool's name is shorter than a factory's id may be")
}

fn asked_for(queue: &ReadyQueue) -> Vec<giga_domain::Capability> {
    let mut asked = BTreeSet::new();
    for shape in queue.summaries() {
        let job = shape.representative;
        asked.extend(job.capabilities.iter().cloned());
        asked.extend(job.engine.alternatives().iter().map(giga_domain::EnginePick::capability));
    }
    asked.into_iter().collect()
}

fn named_repos(queue: &ReadyQueue) -> BTreeSet<String> {
    let shapes = queue.summaries();
    shapes
        .flat_map(|shape| {
            shape
                .representative
                .repo
                .iter()
                .chain(&shape.representative.more_repos)
                .cloned()
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Results that wait to be merged need somebody who has their repository, though nobody works on them.
fn want_mergers(
    memory: &Memory,
    snapshot: &Snapshot,
    pools: &[giga_scheduler::PoolView],
    demand: &mut Demand,
) {
    let repos: BTreeSet<&String> = memory.merging.values().collect();
    for repo in repos {
        let reaches = |factory: &FactoryView| {
            giga_domain::factory::repo_meant(&factory.repos, repo).is_some()
                || giga_domain::factory::may_clone(factory.can_clone, &factory.clones, repo)
        };
        let works = |f: &&FactoryView| f.live && f.state == FactoryState::Active;
        if let Some(there) = snapshot.factories.iter().filter(works).find(|factory| reaches(factory)) {
            // It is kept for as long as there is something to merge.
            demand.chosen.push(there.id.clone());
            continue;
        }
        let fits = |pool: &&giga_scheduler::PoolView| reaches(&pool.template);
        if let Some(pool) = pools.iter().find(fits) {
            let of_pool = demand.pools.entry(pool.name.clone()).or_default();
            if of_pool.factories == 0 && pool.starting.is_empty() && pool.room > 0 {
                of_pool.factories = 1;
            } else if let Some(at) = (!of_pool.spare.is_empty()).then_some(0) {
                of_pool.spare.remove(at);
            }
        }
    }
}

/// A member is idle while it holds nothing, nothing is on offer to it and no plan means it.
fn note_idle(memory: &mut Memory, state: &ViewState, snapshot: &Snapshot, demand: &Demand, now: Timestamp) {
    let chosen: BTreeSet<&FactoryId> = demand.chosen.iter().collect();
    let mut idle = HashMap::new();
    for factory in &snapshot.factories {
        let is_member = state.members.get(&factory.id).is_some_and(|m| m.state == MemberState::Running);
        if is_member && factory.seats_used == 0 && !chosen.contains(&factory.id) {
            let since = memory.idle.get(&factory.id).copied().unwrap_or(now);
            idle.insert(factory.id.clone(), since);
        }
    }
    memory.idle = idle;
}

fn pool_now(memory: &Memory, state: &ViewState, pool: &Pool, now: Timestamp) -> PoolNow {
    let mut pool_now = PoolNow { failed_in_a_row: pool.record.failed_in_a_row, ..PoolNow::default() };
    for member in members(state, pool) {
        let drains = || {
            let factory = state.factories.get(&member.factory);
            factory.is_none_or(|factory| factory.state == FactoryState::Draining)
        };
        match member.state {
            MemberState::Starting => pool_now.starting += 1,
            MemberState::Running if !drains() => {
                pool_now.running += 1;
                if let Some(since) = memory.idle.get(&member.factory) {
                    pool_now.idle.push(Idle { factory: member.factory.clone(), since: *since });
                }
            }
            MemberState::Running | MemberState::Stopping => pool_now.leaving += 1,
        }
    }
    let is_paid = closed_payer(state, pool, now).is_none();
    // Looked at again with every event of the budget, and at the latest when the back-off would end anyway.
    let unpaid = (!is_paid).then(|| now.plus(Duration::from_mins(1)));
    pool_now.held_until = pool.record.waits_until(now).max(unpaid);
    pool_now
}

/// What a factory that was heard from shows of its pool.
pub(super) fn learned(factory: &Factory) -> giga_domain::PoolTemplate {
    let advertised = &factory.advertised;
    // When it last worked on a repository says nothing about the next one.
    let repos = advertised
        .repos
        .iter()
        .cloned()
        .map(|repo| giga_domain::factory::FactoryRepo { last_used_at: None, ..repo });
    // Each machine has its own name in there.
    let capabilities: CapabilitySet = advertised.capabilities.clone();
    giga_domain::PoolTemplate {
        capabilities,
        repos: repos.collect(),
        can_clone: advertised.can_clone,
        clones: advertised.clones.clone(),
        accounts: advertised
            .accounts
            .iter()
            .map(|account| giga_domain::Account { windows: Vec::new(), ..account.clone() })
            .collect(),
    }
}
