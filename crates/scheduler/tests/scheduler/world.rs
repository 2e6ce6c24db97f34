//! Small fleets and queues by hand, and random ones for the property tests.

use std::time::Duration;

use giga_domain::factory::FactoryRepo;
use giga_domain::job::Concurrency;
use giga_domain::{
    Access, AccountId, Capability, CapabilitySet, ClosedEngine, EngineChoice, EnginePick, FactoryId,
    FactoryState, Health, JobId, PerTerm, Priority, ProductId, Rev, ScoreTerm, Timestamp, UnitsInUse, Usd,
};
use giga_scheduler::{Earlier, FactoryView, JobView, Policy, ProductPolicy, ReadyQueue, Snapshot, Weights};
use proptest::collection::{btree_map, hash_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// 2026-12-01T09:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_796_115_600_000);

pub(crate) fn before(duration: Duration) -> Timestamp {
    NOW.minus(duration)
}

pub(crate) fn after(duration: Duration) -> Timestamp {
    NOW.plus(duration)
}

pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

pub(crate) fn job_id(number: u64) -> JobId {
    JobId::from_parts(Timestamp::from_millis(1_796_000_000_000), u128::from(number))
}

pub(crate) fn factory_id(name: &str) -> FactoryId {
    name.parse().unwrap()
}

pub(crate) fn product(name: &str) -> ProductId {
    name.parse().unwrap()
}

pub(crate) fn capabilities(tokens: &[&str]) -> CapabilitySet {
    CapabilitySet::parse(tokens).unwrap()
}

/// A job of `demo` that asks for nothing special and is a minute old.
pub(crate) fn job(number: u64) -> JobView {
    JobView {
        id: job_id(number),
        rev: Rev(1),
        product: product("demo"),
        priority: Priority::Normal,
        enqueued_at: before(minutes(1)),
        ready_at: before(minutes(1)),
        engine: EngineChoice::ANY,
        capabilities: CapabilitySet::new(),
        more_repos: Vec::new(),
        repo: None,
        concurrency: None,
        cost_cap: None,
        last_factory: None,
        offered_to: None,
        excluded: Vec::new(),
        earlier: None,
    }
}

/// A live and idle factory with two seats.
pub(crate) fn factory(name: &str) -> FactoryView {
    FactoryView {
        id: factory_id(name),
        state: FactoryState::Active,
        health: Health::Ok,
        health_reason: None,
        live: true,
        asks: false,
        capabilities: capabilities(&["os:linux", "engine:shell"]),
        closed: Vec::new(),
        products: Vec::new(),
        repos: Vec::new(),
        can_clone: false,
        clones: Vec::new(),
        seat_limit: 2,
        seats_used: 0,
        units_used: UnitsInUse::default(),
        load: 0.0,
        cost_per_hour: None,
    }
}

pub(crate) fn full(name: &str) -> FactoryView {
    FactoryView { seats_used: 2, ..factory(name) }
}

pub(crate) fn repo(name: &str) -> FactoryRepo {
    FactoryRepo::named(name)
}

pub(crate) fn fleet(factories: impl IntoIterator<Item = FactoryView>) -> Snapshot {
    Snapshot { factories: factories.into_iter().collect(), ..Snapshot::default() }
}

pub(crate) fn queue(jobs: impl IntoIterator<Item = JobView>) -> ReadyQueue {
    let mut queue = ReadyQueue::new();
    for job in jobs {
        queue.upsert(job);
    }
    queue
}

pub(crate) fn policy_of(name: &str, policy: ProductPolicy) -> Policy {
    Policy { products: [(product(name), policy)].into(), ..Policy::default() }
}

/// Jobs, fleet and policy in which everything collides: few names, few seats, equal ages.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) jobs: Vec<JobView>,
    pub(crate) snapshot: Snapshot,
    pub(crate) policy: Policy,
}

const TOKENS: [&str; 5] = ["os:linux", "engine:shell", "gpu", "repo:a", "node:20"];
const CHOICES: &[&[&str]] =
    &[&[], &[], &["claude"], &["claude", "codex"], &["codex", "claude"], &["gemini", "codex"]];
const ENGINES: [&str; 2] = ["engine:claude", "engine:codex"];
const REPOS: [&str; 5] = ["a", "b", "x/a", "y/x/a", "https://example.org/team/a.git"];
/// As factories spell them: where a repository comes from.
const URLS: [&str; 2] = ["https://example.org/team/a.git", "https://example.org/other/a.git"];
const KEYS: [&str; 2] = ["k", "l"];

pub(crate) fn worlds() -> impl Strategy<Value = World> {
    worlds_with(0..7)
}

/// More factories than a plan reads in one go.
pub(crate) fn wide_worlds() -> impl Strategy<Value = World> {
    worlds_with(60..200)
}

fn worlds_with(factories: std::ops::Range<usize>) -> impl Strategy<Value = World> {
    let jobs = vec(any_job(), 0..40).prop_map(|jobs| {
        jobs.into_iter().zip(1..).map(|(job, number)| JobView { id: job_id(number), ..job }).collect()
    });
    let factories = vec(any_factory(), factories).prop_map(|factories| {
        let named = factories.into_iter().zip(factory_names());
        named.map(|(factory, id)| FactoryView { id, ..factory }).collect()
    });
    let running = hash_map(any_product(), 0..6_u32, 0..3);
    let keys = hash_map((any_product(), select(&KEYS).prop_map(str::to_owned)), 0..3_u32, 0..3);
    let products = btree_map(any_product(), any_product_policy(), 0..3);
    (jobs, factories, running, keys, products).prop_map(|(jobs, factories, by_product, by_key, products)| {
        World {
            jobs,
            snapshot: Snapshot {
                factories,
                running_by_product: by_product,
                running_by_key: by_key,
                ..Snapshot::default()
            },
            policy: Policy { products, ..Policy::default() },
        }
    })
}

fn factory_names() -> impl Iterator<Item = FactoryId> {
    (0..200).map(|number| factory_id(&format!("f-{number:03}")))
}

fn any_product() -> impl Strategy<Value = ProductId> {
    select(&["p", "q", "r"]).prop_map(product)
}

fn any_factory_id() -> impl Strategy<Value = FactoryId> {
    select(factory_names().take(7).collect::<Vec<_>>())
}

/// Some with a number: on a factory how many there are, of a job how many it uses.
fn any_capabilities(most: usize) -> impl Strategy<Value = CapabilitySet> {
    let numbers = vec(option::weighted(0.4, 1..4_u32), TOKENS.len());
    (subsequence(&TOKENS, 0..=most), numbers).prop_map(|(tokens, numbers)| {
        let written = tokens.iter().zip(numbers).map(|(token, number)| match number {
            Some(number) if token.parse::<Capability>().unwrap().is_countable() => {
                format!("{token}={number}")
            }
            _ => (*token).to_owned(),
        });
        CapabilitySet::parse(written).unwrap()
    })
}

fn any_units_used() -> impl Strategy<Value = UnitsInUse> {
    any_capabilities(TOKENS.len()).prop_map(|held| {
        let mut used = UnitsInUse::default();
        used.take(&held);
        used
    })
}

/// Up to three spans back and one ahead, on a coarse grid so that ages are often equal.
fn any_time() -> impl Strategy<Value = Timestamp> {
    (0..40_u64).prop_map(|step| after(minutes(30)).minus(minutes(step * 5)))
}

fn any_job() -> impl Strategy<Value = JobView> {
    let what = (
        any_product(),
        select(&Priority::ALL),
        any_capabilities(2),
        option::weighted(0.3, select(&REPOS)),
        any_engine(),
    );
    let limits = (
        option::weighted(0.3, (select(&KEYS), 0..4_u32)),
        option::weighted(0.3, any_amount(&[0, 1_000_000, 3_000_000])),
    );
    let past = (
        option::weighted(0.2, any_factory_id()),
        option::weighted(0.2, (any_factory_id(), any_time())),
        vec((any_factory_id(), any_time()), 0..2),
        option::weighted(0.2, vec(any_factory_id(), 0..3)),
    );
    let times = (any_time(), option::weighted(0.3, any_time()));
    (what, limits, past, times).prop_map(|(what, limits, past, (enqueued_at, ready_at))| JobView {
        id: JobId::MIN,
        rev: Rev(7),
        product: what.0,
        priority: what.1,
        enqueued_at,
        ready_at: ready_at.unwrap_or(enqueued_at),
        capabilities: with(what.2, what.4.1),
        engine: what.4.0,
        repo: what.3.map(str::to_owned),
        more_repos: Vec::new(),
        concurrency: limits.0.map(|(key, limit)| Concurrency { key: key.to_owned(), limit }),
        cost_cap: limits.1,
        last_factory: past.0,
        offered_to: past.1,
        excluded: past.2,
        earlier: past
            .3
            .map(|unfit| Box::new(Earlier { next: 2, of: 4, failure: "no engine".to_owned(), unfit })),
    })
}

fn with<'t>(mut capabilities: CapabilitySet, more: impl IntoIterator<Item = &'t str>) -> CapabilitySet {
    capabilities.extend(more.into_iter().map(|token| token.parse().unwrap()));
    capabilities
}

/// As a manifest would have it: one engine is a capability, one of several is not.
fn any_engine() -> impl Strategy<Value = (EngineChoice, Option<&'static str>)> {
    select(CHOICES).prop_flat_map(|names: &'static [&'static str]| {
        let choice = EngineChoice::new(names.iter().map(|name| EnginePick::named(*name)).collect());
        let needed = match names {
            [] => option::of(Just("engine:any")).boxed(),
            [_] => Just(Some("engine:claude")).boxed(),
            _ => Just(None).boxed(),
        };
        (Just(choice), needed)
    })
}

fn any_closed() -> impl Strategy<Value = Vec<ClosedEngine>> {
    let access = select(vec![Access::SignedOut, Access::OutOfQuota { until: after(minutes(5)) }]);
    let closed = |engines: Vec<&'static str>, access| {
        engines.into_iter().map(|engine| closed_engine(engine, access)).collect()
    };
    (subsequence(&["claude", "codex"], 0..=2), access)
        .prop_map(move |(engines, access)| closed(engines, access))
}

pub(crate) fn closed_engine(engine: &str, access: Access) -> ClosedEngine {
    let account = AccountId::fingerprint(engine, b"1");
    ClosedEngine { engine: engine.to_owned(), account, access }
}

/// Whoever has an engine that reads prompts can run any prompt.
fn with_any_engine(mut has: CapabilitySet) -> CapabilitySet {
    if has.iter().filter_map(Capability::as_engine).any(|engine| engine != "shell") {
        has.insert("engine:any".parse().unwrap());
    }
    has
}

fn any_amount(micros: &'static [i64]) -> impl Strategy<Value = Usd> {
    select(micros).prop_map(Usd::from_micros)
}

fn any_factory() -> impl Strategy<Value = FactoryView> {
    let standing = (
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.9),
        select(&[Health::Ok, Health::Ok, Health::Ok, Health::Degraded, Health::Down]),
    );
    let has = (
        (any_capabilities(TOKENS.len()), subsequence(&ENGINES, 0..=2), any_closed()),
        vec(any_product(), 0..2),
        vec(
            (
                select(&["a", "b", "c", "x/a", "y/x/a", "z/b"]),
                option::of(any_time()),
                option::weighted(0.3, select(&URLS)),
            ),
            0..4,
        ),
        any::<bool>(),
        prop_oneof![2 => Just(Vec::new()), 1 => vec(select(&["https://example.org/team", "ssh://"]), 1..3)],
    );
    let costs = option::of(any_amount(&[0, 5, 10]));
    let seats = (0..5_u32, 0..3_u32, select(&[0.0, 0.0, 0.5, 2.0]), costs, any_units_used());
    (standing, has, seats).prop_map(|((draining, live, health), has, seats)| FactoryView {
        id: factory_id("unnamed"),
        state: if draining { FactoryState::Draining } else { FactoryState::Active },
        health,
        health_reason: None,
        live,
        asks: false,
        capabilities: with_any_engine(with(has.0.0, has.0.1)),
        closed: has.0.2,
        products: has.1,
        repos: has
            .2
            .into_iter()
            .map(|(name, used, url)| FactoryRepo {
                last_used_at: used,
                url: url.map(str::to_owned),
                ..repo(name)
            })
            .collect(),
        can_clone: has.3,
        clones: has.4.into_iter().map(str::to_owned).collect(),
        seat_limit: seats.0,
        seats_used: seats.1,
        units_used: seats.4,
        load: seats.2,
        cost_per_hour: seats.3,
    })
}

fn any_product_policy() -> impl Strategy<Value = ProductPolicy> {
    let weight = || select(&[0.0, 0.5, 1.0, 2.0, -1.0]);
    let weights = ScoreTerm::ALL.map(|_| weight()).prop_map(|weights| {
        let default = ScoreTerm::Starvation;
        Weights::from(PerTerm::of(|term| weights[term as usize])).with(default, default.default_weight())
    });
    let budget = (
        option::of(any_amount(&[0, 500_000, 4_000_000, 100_000_000])),
        option::weighted(0.3, any_amount(&[0, 500_000, 2_000_000])),
    );
    (
        select(&[0.0, 1.0, 1.0, 2.5]),
        prop_oneof![Just(Weights::default()), weights],
        budget,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(share, weights, (budget_left, job_cap), paused)| ProductPolicy {
            share,
            weights,
            budget_left,
            job_cap,
            paused,
            ..ProductPolicy::default()
        })
}
