//! The fleet in the form that a plan works on: factories by index in order of id, capabilities as bits.
//!
//! This module never looks at jobs one by one: [`Candidates`] answers for all jobs that ask for the same. It judges by
//! the same filters as `feasible` and the same formulas as `score`, and knows nothing of order or budgets.
//!
//! The best factory is found by a plain pass over one row of numbers. A heap per kind of job would look cleverer, but
//! every placement outdates one entry in every heap, and re-sorting those costs more than reading 2,000 numbers.

use std::collections::HashMap;

use giga_domain::factory::canonical_url;
use giga_domain::job::repo_name;
use giga_domain::repo::short_names;
use giga_domain::{Access, Capability, EngineChoice, FactoryId, ScoreTerm, Timestamp, Usd};

use crate::feasible::{self, Filter};
use crate::score::{self, Place, Terms};
use crate::{FactoryView, JobView, Snapshot, Weights};

const NOWHERE: f64 = f64::NEG_INFINITY;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seats {
    AsTheyAre,
    /// As if every factory had a seat for everyone: shows the order of turns, not the outcome.
    Endless,
}

pub(crate) struct Fleet<'a> {
    pub(crate) factories: Vec<&'a FactoryView>,
    capability_ids: HashMap<&'a Capability, usize>,
    rarity: Vec<f64>,
    /// `words` words per factory, a bit per capability.
    bits: Vec<u64>,
    words: usize,
    /// The same for engines whose account is closed; empty where none is.
    closed: Vec<u64>,
    rarity_offered: Vec<f64>,
    repo_warmth: HashMap<&'a str, Vec<(usize, f64)>>,
    dearest: Usd,
    seats: Seats,
    seats_used: Vec<u32>,
    /// Of each capability that some factory has a number of: who has how many, and how many of them are in use.
    units: HashMap<usize, Vec<Units>>,
    idleness: Vec<f64>,
    /// 0 with a free seat, minus infinity without: added to a score it rules the factory out.
    room: Vec<f64>,
    /// Of factories that are not there yet, how far behind everybody else each is; empty in an ordinary plan.
    behind: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Units {
    factory: usize,
    all: u32,
    used: u32,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, now: Timestamp, seats: Seats) -> Self {
        let mut factories: Vec<&FactoryView> = snapshot.factories.iter().collect();
        factories.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let mut capability_ids = HashMap::new();
        let mut holders: Vec<usize> = Vec::new();
        for capability in factories.iter().flat_map(|f| f.capabilities.iter()) {
            let id = *capability_ids.entry(capability).or_insert(holders.len());
            if id == holders.len() {
                holders.push(0);
            }
            holders[id] += 1;
        }
        let rarity: Vec<f64> = holders.iter().map(|&n| score::rarity(factories.len(), n)).collect();
        let words = holders.len().div_ceil(64).max(1);
        let mut fleet = Self {
            capability_ids,
            rarity,
            bits: vec![0; words * factories.len()],
            words,
            closed: Vec::new(),
            rarity_offered: Vec::with_capacity(factories.len()),
            repo_warmth: HashMap::new(),
            dearest: factories.iter().filter_map(|f| f.cost_per_hour).max().unwrap_or_default(),
            seats,
            seats_used: factories.iter().map(|f| f.seats_used).collect(),
            units: HashMap::new(),
            idleness: vec![0.0; factories.len()],
            room: vec![0.0; factories.len()],
            behind: behind(snapshot, &factories),
            factories,
        };
        for at in 0..fleet.factories.len() {
            fleet.intern(at, now);
            fleet.weigh_seats(at);
        }
        fleet
    }

    fn intern(&mut self, at: usize, now: Timestamp) {
        let factory = self.factories[at];
        let row = &mut self.bits[at * self.words..(at + 1) * self.words];
        for capability in factory.capabilities.iter() {
            let id = self.capability_ids[capability];
            row[id / 64] |= 1 << (id % 64);
        }
        for (capability, all) in factory.capabilities.counted() {
            let units = Units { factory: at, all, used: factory.units_used.of(capability) };
            self.units.entry(self.capability_ids[capability]).or_default().push(units);
        }
        self.close_engines(at);
        self.rarity_offered.push(self.rarity_of(factory.capabilities.iter()));
        for repo in &factory.repos {
            let warmth = score::repo_warmth(repo.last_used_at, now);
            let known = self.repo_warmth.entry(&repo.name).or_default();
            match known.last_mut() {
                Some((last, warmest)) if *last == at => *warmest = warmest.max(warmth),
                _ => known.push((at, warmth)),
            }
        }
        for (short, name) in short_names(factory.repos.iter().map(|repo| repo.name.as_str())) {
            let warmth = self.repo_warmth[name].last().map_or(0.0, |(_, warmth)| *warmth);
            self.repo_warmth.entry(short).or_default().push((at, warmth));
        }
    }

    /// Repositories are left out of the fit: what is checked out is warmth, not a rare tool to be kept free.
    fn rarity_of<'c>(&self, capabilities: impl Iterator<Item = &'c Capability>) -> f64 {
        capabilities
            .filter(|c| !c.as_str().starts_with("repo:"))
            .filter_map(|c| self.capability_ids.get(c))
            .map(|&id| self.rarity[id])
            .sum()
    }

    /// A factory can run any prompt while one engine that reads prompts is open.
    fn close_engines(&mut self, at: usize) {
        let factory = self.factories[at];
        if factory.closed.is_empty() {
            return;
        }
        self.closed.resize(self.bits.len(), 0);
        let engines = factory.engines();
        let mut closed: Vec<&str> =
            engines.iter().filter(|here| here.access != Access::Open).map(|here| here.name).collect();
        if matches!(EngineChoice::ANY.choose(&engines), Err(passed) if !passed.is_empty()) {
            closed.push(Capability::ANY_ENGINE);
        }
        let ids: Vec<usize> = closed.into_iter().filter_map(|name| self.engine_id(name)).collect();
        for id in ids {
            self.closed[at * self.words + id / 64] |= 1 << (id % 64);
        }
    }

    fn engine_id(&self, name: &str) -> Option<usize> {
        self.capability_ids.get(&Capability::engine(name).ok()?).copied()
    }

    fn weigh_seats(&mut self, at: usize) {
        let (factory, used) = (self.factories[at], self.seats_used[at]);
        self.idleness[at] = score::idleness(used, factory.seat_limit, factory.load);
        let full = self.seats == Seats::AsTheyAre && used >= factory.seat_limit;
        let behind = self.behind.get(at).copied().unwrap_or(0.0);
        self.room[at] = if full { NOWHERE } else { -behind };
    }

    pub(crate) fn take_seat(&mut self, at: usize, job: &JobView) {
        self.seats_used[at] = self.seats_used[at].saturating_add(1);
        self.weigh_seats(at);
        for (capability, wanted) in self.counted(job) {
            let here =
                self.units.get_mut(&capability).and_then(|all| find(all, at).map(|found| &mut all[found]));
            if let Some(here) = here {
                here.used = here.used.saturating_add(wanted);
            }
        }
    }

    /// What the job asks for and some factory has a number of. Nothing for most.
    fn counted(&self, job: &JobView) -> Vec<(usize, u32)> {
        if self.units.is_empty() {
            return Vec::new();
        }
        let id = |capability| self.capability_ids.get(capability).copied();
        let counted = job.capabilities.countable().filter_map(|(name, wanted)| Some((id(name)?, wanted)));
        counted.filter(|(id, _)| self.units.contains_key(id)).collect()
    }

    fn units_at(&self, at: usize, capability: usize) -> Option<Units> {
        let all = self.units.get(&capability)?;
        find(all, at).map(|found| all[found])
    }

    /// Whether it has that many at all, in use or not.
    fn has_units(&self, at: usize, counted: &[(usize, u32)]) -> bool {
        counted.iter().all(|(id, wanted)| self.units_at(at, *id).is_none_or(|units| units.all >= *wanted))
    }

    /// Whether that many are left.
    fn has_units_left(&self, at: usize, counted: &[(usize, u32)]) -> bool {
        let is_enough = |units: Units, wanted| units.all.saturating_sub(units.used) >= wanted;
        let left = |(id, wanted): &(usize, u32)| self.units_at(at, *id).is_none_or(|u| is_enough(u, *wanted));
        self.seats == Seats::Endless || counted.iter().all(left)
    }

    pub(crate) fn index_of(&self, id: &FactoryId) -> Option<usize> {
        self.factories.binary_search_by(|f| f.id.cmp(id)).ok()
    }

    fn row(&self, at: usize) -> &[u64] {
        &self.bits[at * self.words..(at + 1) * self.words]
    }

    fn closed_row(&self, at: usize) -> Option<&[u64]> {
        self.closed.get(at * self.words..(at + 1) * self.words)
    }

    /// `None` where a capability is asked for that nobody has.
    fn needed_bits(&self, job: &JobView) -> Option<Vec<u64>> {
        let mut bits = vec![0; self.words];
        for capability in job.capabilities.iter() {
            let id = self.capability_ids.get(capability)?;
            bits[id / 64] |= 1 << (id % 64);
        }
        Some(bits)
    }
}

/// Nothing where everybody is there.
fn behind(snapshot: &Snapshot, factories: &[&FactoryView]) -> Vec<f64> {
    // Far more than scores can differ by.
    const STEP: f64 = 1e6;
    if snapshot.absent.is_empty() {
        return Vec::new();
    }
    let order = |factory: &&FactoryView| snapshot.absent.get(&factory.id).map_or(0, |order| order + 1);
    factories.iter().map(|factory| STEP * order(factory) as f64).collect()
}

/// Each list is made in the order of the factories.
fn find(units: &[Units], factory: usize) -> Option<usize> {
    units.binary_search_by_key(&factory, |units| units.factory).ok()
}

/// The engines of a choice as bits.
struct Engines {
    bits: Vec<u64>,
    /// Word and bit of each, the most preferred first; nothing where nobody has it.
    in_order: Vec<Option<(usize, u64)>>,
    /// Whether one of them is a condition; otherwise the capabilities say so.
    is_needed: bool,
}

impl Engines {
    fn new(fleet: &Fleet<'_>, choice: &EngineChoice) -> Self {
        let mut bits = vec![0; fleet.words];
        let any = choice.is_any().then_some(Capability::ANY_ENGINE);
        let bit = |name: &str| fleet.engine_id(name).map(|id| (id / 64, 1 << (id % 64)));
        let in_order: Vec<Option<(usize, u64)>> = choice.names().chain(any).map(bit).collect();
        for &(word, bit) in in_order.iter().flatten() {
            bits[word] |= bit;
        }
        Self { bits, in_order, is_needed: !choice.alternatives().is_empty() }
    }

    fn is_here(&self, has: &[u64]) -> bool {
        !self.is_needed || self.bits.iter().zip(has).any(|(wanted, has)| wanted & has != 0)
    }

    /// How many are preferred to the one that would be taken there.
    fn passed_over(&self, has: &[u64], closed: Option<&[u64]>) -> usize {
        if !self.is_needed {
            return 0;
        }
        let is_open = |word: usize, bit: u64| closed.is_none_or(|closed| closed[word] & bit == 0);
        let usable = |at: &Option<(usize, u64)>| {
            at.is_some_and(|(word, bit)| has[word] & bit != 0 && is_open(word, bit))
        };
        self.in_order.iter().position(usable).unwrap_or(0)
    }

    /// Whether some are here and all of those are closed.
    fn are_closed(&self, has: &[u64], closed: &[u64]) -> bool {
        let mut here =
            self.bits.iter().zip(has).zip(closed).map(|((wanted, has), closed)| (wanted & has, closed));
        here.clone().any(|(here, _)| here != 0) && here.all(|(here, closed)| here & !closed == 0)
    }
}

/// Where jobs of one kind can run, and how good each factory is for them apart from its load.
pub(crate) struct Candidates {
    /// Per factory the part of the score that stays; minus infinity where it can never be.
    fixed: Vec<f64>,
    weights: Weights,
    rarity_needed: f64,
    engines: Engines,
    /// By number: what is left of it changes while a plan is made.
    counted: Vec<(usize, u32)>,
    /// The filter at which the factory that came furthest failed; `Seats` when one passed all before it.
    furthest: Filter,
}

impl Candidates {
    pub(crate) fn new(fleet: &Fleet<'_>, job: &JobView, weights: Weights) -> Self {
        let needed = fleet.needed_bits(job);
        let mut candidates = Self {
            fixed: vec![NOWHERE; fleet.factories.len()],
            weights: score::sane(weights),
            rarity_needed: fleet.rarity_of(job.capabilities.iter()),
            engines: Engines::new(fleet, &job.engine),
            counted: fleet.counted(job),
            furthest: Filter::Draining,
        };
        let mut warm =
            job.repo.as_deref().and_then(|r| fleet.repo_warmth.get(repo_name(r))).into_iter().flatten();
        let mut next_warm = warm.next();
        // A URL may belong to another repository of the same name: only the filter itself can say.
        let by_name = job.repo.as_deref().is_some_and(|repo| canonical_url(repo).is_none());
        let has_by_name = |warmth: Option<f64>| by_name && warmth.is_some();
        for (at, factory) in fleet.factories.iter().enumerate() {
            // Both lists run by index, so one look ahead finds the warmth of each.
            let warmth = match next_warm {
                Some(&(warm_at, warmth)) if warm_at == at => {
                    next_warm = warm.next();
                    Some(warmth)
                }
                _ => None,
            };
            let row = fleet.row(at);
            let capable = needed.as_ref().is_some_and(|n| n.iter().zip(row).all(|(n, has)| n & !has == 0))
                && candidates.engines.is_here(row)
                && fleet.has_units(at, &candidates.counted);
            let closed = fleet.closed_row(at);
            let failed = feasible::standing(factory).or_else(|| {
                if !feasible::admits_product(job, factory) {
                    Some(Filter::Product)
                } else if !capable {
                    Some(Filter::Capabilities)
                } else if (!has_by_name(warmth) || !job.more_repos.is_empty())
                    && !feasible::reaches_repo(job, factory)
                {
                    Some(Filter::Repo)
                } else if closed.is_some_and(|closed| candidates.engines.are_closed(row, closed)) {
                    Some(Filter::Quota)
                } else {
                    None
                }
            });
            candidates.furthest = candidates.furthest.max(failed.unwrap_or(Filter::Seats));
            if failed.is_none() {
                candidates.fixed[at] = score::fixed(&candidates.terms(fleet, at, warmth.unwrap_or(0.0)));
            }
        }
        candidates
    }

    /// The terms of a placement; starvation is added by whoever knows the job's age.
    pub(crate) fn terms_for(&self, fleet: &Fleet<'_>, at: usize, job: &JobView) -> Terms {
        let warmth =
            job.repo.as_deref().and_then(|r| fleet.repo_warmth.get(repo_name(r))).map_or(0.0, |warm| {
                warm.binary_search_by_key(&at, |&(at, _)| at).map_or(0.0, |found| warm[found].1)
            });
        let ran_here = job.last_factory.as_ref().is_some_and(|last| *last == fleet.factories[at].id);
        self.terms(fleet, at, if ran_here { warmth + score::RAN_HERE } else { warmth })
    }

    fn terms(&self, fleet: &Fleet<'_>, at: usize, affinity: f64) -> Terms {
        let place = Place {
            factory: fleet.factories[at],
            rarity: (self.rarity_needed, fleet.rarity_offered[at]),
            affinity,
            idleness: fleet.idleness[at],
            dearest: fleet.dearest,
            passed_over: self.engines.passed_over(fleet.row(at), fleet.closed_row(at)),
        };
        place.terms(&self.weights)
    }

    /// How good the factory is right now; `None` where the job cannot run or has no seat.
    pub(crate) fn rank(&self, fleet: &Fleet<'_>, at: usize) -> Option<f64> {
        let rank = self.fixed[at] + self.weights[ScoreTerm::Load] * fleet.idleness[at] + fleet.room[at];
        (rank > NOWHERE && fleet.has_units_left(at, &self.counted)).then_some(rank)
    }

    /// What stands in the way of these jobs where no factory has a place for them.
    pub(crate) fn obstacle(&self, fleet: &Fleet<'_>) -> Filter {
        let has_seat = |at: usize| self.fixed[at] + fleet.room[at] > NOWHERE;
        if !self.counted.is_empty() && (0..self.fixed.len()).any(has_seat) {
            Filter::InUse
        } else {
            self.furthest
        }
    }

    /// The best factory with a seat, the lowest id among equals.
    pub(crate) fn best(&self, fleet: &Fleet<'_>) -> Option<usize> {
        if !self.counted.is_empty() {
            return self.best_of(fleet, |_| true);
        }
        let weight = self.weights[ScoreTerm::Load];
        let mut best = (NOWHERE, 0);
        let blocks = self.fixed.chunks(BLOCK).zip(fleet.idleness.chunks(BLOCK)).zip(fleet.room.chunks(BLOCK));
        for (block, ((fixed, idleness), room)) in blocks.enumerate() {
            let highest = highest_rank(weight, fixed, idleness, room);
            if highest > best.0 {
                best = (highest, block);
            }
        }
        let (highest, block) = best;
        let end = self.fixed.len().min((block + 1) * BLOCK);
        (block * BLOCK..end).find(|&at| self.rank(fleet, at).is_some_and(|rank| rank >= highest))
    }

    /// The same among those that `allowed` lets pass.
    pub(crate) fn best_of(&self, fleet: &Fleet<'_>, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for at in 0..self.fixed.len() {
            if let Some(rank) = self.rank(fleet, at)
                && best.is_none_or(|(_, highest)| rank > highest)
                && allowed(at)
            {
                best = Some((at, rank));
            }
        }
        best.map(|(at, _)| at)
    }
}

/// Large enough to be read at full speed, small enough that finding the winner within costs little.
const BLOCK: usize = 64;

/// Eight maxima side by side instead of one, which the compiler turns into vector instructions.
fn highest_rank(weight: f64, fixed: &[f64], idleness: &[f64], room: &[f64]) -> f64 {
    const LANES: usize = 8;
    let larger = |a: f64, b: f64| if a > b { a } else { b };
    let mut highest = [NOWHERE; LANES];
    let (fixed, fixed_rest) = fixed.as_chunks::<LANES>();
    let (idleness, idleness_rest) = idleness.as_chunks::<LANES>();
    let (room, room_rest) = room.as_chunks::<LANES>();
    for ((fixed, idleness), room) in fixed.iter().zip(idleness).zip(room) {
        for lane in 0..LANES {
            highest[lane] = larger(fixed[lane] + weight * idleness[lane] + room[lane], highest[lane]);
        }
    }
    for ((fixed, idleness), room) in fixed_rest.iter().zip(idleness_rest).zip(room_rest) {
        highest[0] = larger(fixed + weight * idleness + room, highest[0]);
    }
    highest.into_iter().fold(NOWHERE, larger)
}
