//! The scheduler as one would write it without a care for speed: every job against every factory, every time.
//!
//! Shares no code with the crate. It must follow the documented formulas in the same order of operations, because a tie
//! is decided by the last bit.

use std::collections::{BTreeSet, HashMap};

use giga_domain::{
    Capability, CapabilitySet, FactoryId, FactoryState, Health, JobId, ProductId, ScoreTerm, Timestamp, Usd,
};
use giga_scheduler::{FactoryView, JobView, Policy, ProductPolicy, Snapshot};

pub(crate) struct Model<'a> {
    snapshot: &'a Snapshot,
    policy: &'a Policy,
    now: Timestamp,
    seats_used: HashMap<FactoryId, u32>,
    units_used: HashMap<(FactoryId, Capability), u32>,
    held: HashMap<ProductId, u32>,
    by_key: HashMap<(ProductId, String), u32>,
    spent: HashMap<ProductId, Usd>,
    rarity: HashMap<&'a Capability, f64>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, policy: &'a Policy, now: Timestamp) -> Self {
        let mut holders: HashMap<&Capability, usize> = HashMap::new();
        for capability in snapshot.factories.iter().flat_map(|f| f.capabilities.iter()) {
            *holders.entry(capability).or_default() += 1;
        }
        let factories = snapshot.factories.len() as f64;
        Self {
            snapshot,
            policy,
            now,
            seats_used: snapshot.factories.iter().map(|f| (f.id.clone(), f.seats_used)).collect(),
            units_used: snapshot
                .factories
                .iter()
                .flat_map(|f| {
                    f.capabilities.iter().map(move |c| ((f.id.clone(), c.clone()), f.units_used.of(c)))
                })
                .collect(),
            held: snapshot.running_by_product.clone(),
            by_key: snapshot.running_by_key.clone(),
            spent: HashMap::new(),
            rarity: holders.into_iter().map(|(c, n)| (c, factories / n as f64)).collect(),
        }
    }

    /// Which job goes where, in order of turn.
    pub(crate) fn plan(&mut self, jobs: &[JobView], limit: usize) -> Vec<(JobId, FactoryId)> {
        let mut waiting: Vec<&JobView> = jobs.iter().collect();
        let mut placed = Vec::new();
        while placed.len() < limit {
            self.line_up(&mut waiting);
            if waiting.is_empty() {
                break;
            }
            let job = waiting.remove(0);
            if let Some(factory) = self.best(job) {
                self.take(job, &factory);
                placed.push((job.id, factory));
            }
        }
        placed
    }

    /// Whose turn it is before anything is placed.
    pub(crate) fn first_in_line(&self, jobs: &[JobView]) -> Option<JobId> {
        let mut waiting: Vec<&JobView> = jobs.iter().collect();
        self.line_up(&mut waiting);
        waiting.first().map(|job| job.id)
    }

    fn line_up(&self, waiting: &mut [&JobView]) {
        waiting.sort_by(|a, b| {
            let key = |j: &JobView| (self.class(j), self.share_held(j), j.enqueued_at, j.id);
            key(a).partial_cmp(&key(b)).unwrap()
        });
    }

    fn class(&self, job: &JobView) -> i64 {
        let age = (self.now.as_millis() - job.enqueued_at.as_millis()).max(0);
        let span = i64::try_from(self.policy.starvation_after.as_millis()).unwrap();
        (i64::from(job.priority.rank()) - age / span).max(0)
    }

    fn share_held(&self, job: &JobView) -> f64 {
        let share = self.product(job).share;
        f64::from(self.held.get(&job.product).copied().unwrap_or(0)) / if share > 0.0 { share } else { 1e-9 }
    }

    fn product(&self, job: &JobView) -> ProductPolicy {
        self.policy.products.get(&job.product).cloned().unwrap_or_default()
    }

    fn cost(&self, job: &JobView) -> Usd {
        job.cost_cap.or(self.product(job).job_cap).unwrap_or_default()
    }

    fn best(&self, job: &JobView) -> Option<FactoryId> {
        let mut best: Option<(f64, &FactoryId)> = None;
        for factory in self.snapshot.factories.iter().filter(|f| self.feasible(job, f)) {
            let score = self.score(job, factory);
            if best.is_none_or(|(high, id)| score > high || (score >= high && factory.id < *id)) {
                best = Some((score, &factory.id));
            }
        }
        best.map(|(_, id)| id.clone())
    }

    /// Judged by what is left after all that was taken so far.
    pub(crate) fn feasible(&self, job: &JobView, factory: &FactoryView) -> bool {
        let product = self.product(job);
        let left = product
            .budget_left
            .map(|left| left.less(self.spent.get(&job.product).copied().unwrap_or_default()));
        factory.state == FactoryState::Active
            && factory.live
            && factory.health != Health::Down
            && (factory.products.is_empty() || factory.products.contains(&job.product))
            && job.capabilities.iter().all(|c| factory.capabilities.contains(c))
            && job.capabilities.iter().all(|c| {
                let used = self.units_used.get(&(factory.id.clone(), c.clone())).copied().unwrap_or(0);
                factory.capabilities.units(c).is_none_or(|all| used + units_of(job, c) <= all)
            })
            && Self::engine_at(job, factory).is_some()
            && job.repo.as_ref().is_none_or(|r| {
                let is_url = r.contains(':');
                let known = if is_url {
                    factory.repos.iter().any(|f| match &f.url {
                        Some(url) => url == r,
                        None => f.name == r.rsplit('/').next().unwrap().trim_end_matches(".git"),
                    })
                } else {
                    repo_here(r, factory).is_some()
                };
                // The worlds have one URL, and `ssh://` is not a prefix of it.
                let allowed = |prefix: &String| is_url && r.starts_with(&format!("{prefix}/"));
                known
                    || (factory.can_clone
                        && (factory.clones.is_empty() || factory.clones.iter().any(allowed)))
            })
            && !job.earlier.as_ref().is_some_and(|earlier| earlier.unfit.contains(&factory.id))
            && self.seats_used[&factory.id] < factory.seat_limit
            && job.ready_at <= self.now
            && !product.paused
            && left.is_none_or(|left| !left.is_zero() && self.cost(job) <= left)
            && job.concurrency.as_ref().is_none_or(|c| {
                self.by_key.get(&(job.product.clone(), c.key.clone())).copied().unwrap_or(0) < c.limit
            })
            && job.offered_to.as_ref().is_none_or(|(to, until)| *until <= self.now || *to == factory.id)
            && !(job.excluded.iter().any(|(id, until)| *id == factory.id && *until > self.now)
                && !factory.asks
                && job.offered_to.as_ref().is_none_or(|(to, until)| *until <= self.now || *to != factory.id))
    }

    pub(crate) fn take(&mut self, job: &JobView, factory: &FactoryId) {
        *self.seats_used.get_mut(factory).unwrap() += 1;
        for capability in job.capabilities.iter() {
            let used = self.units_used.entry((factory.clone(), capability.clone())).or_default();
            *used += units_of(job, capability);
        }
        *self.held.entry(job.product.clone()).or_default() += 1;
        let cost = self.cost(job);
        *self.spent.entry(job.product.clone()).or_default() += cost;
        if let Some(concurrency) = &job.concurrency {
            *self.by_key.entry((job.product.clone(), concurrency.key.clone())).or_default() += 1;
        }
    }

    /// Without the starvation term, which is the same on every factory.
    pub(crate) fn score(&self, job: &JobView, factory: &FactoryView) -> f64 {
        let weights = self.product(job).weights;
        let fit = (1.0 + self.rarity(&job.capabilities)) / (1.0 + self.rarity(&factory.capabilities));
        let name = job.repo.as_ref().and_then(|r| repo_here(r, factory));
        let day = 86_400_000.0;
        let warm = factory.repos.iter().filter(|r| Some(r.name.as_str()) == name).map(|r| {
            let recent = r.last_used_at.map_or(0.0, |at| {
                (1.0 - (self.now.as_millis() - at.as_millis()).max(0) as f64 / day).max(0.0)
            });
            0.3 + 0.3 * recent
        });
        let mut affinity = warm.fold(0.0, f64::max);
        if job.last_factory.as_ref() == Some(&factory.id) {
            affinity += 0.4;
        }
        let used = f64::from(self.seats_used[&factory.id]);
        let load = 1.0 / (1.0 + used / f64::from(factory.seat_limit.max(1)) + factory.load);
        let dearest =
            self.snapshot.factories.iter().filter_map(|f| f.cost_per_hour).max().unwrap_or_default();
        let cost = factory.cost_per_hour.filter(|_| !dearest.is_zero());
        let cost = cost.map_or(1.0, |cost| 1.0 - cost.micros() as f64 / dearest.micros() as f64);
        let health = if factory.health == Health::Ok { 1.0 } else { 0.5 };
        let unweighted = |term| match term {
            ScoreTerm::CapabilityFit => fit,
            ScoreTerm::Affinity => affinity,
            ScoreTerm::Load => load,
            ScoreTerm::CostFit => cost,
            ScoreTerm::Health => health,
            ScoreTerm::EngineFit => 1.0 / (1.0 + Self::engine_at(job, factory).unwrap_or(0) as f64),
            ScoreTerm::Starvation => 0.0,
        };
        let weighted = |term| weights[term].max(0.0) * unweighted(term);
        // Load last, as in the planner: sums of doubles depend on their order, and ties on sums.
        let fixed = ScoreTerm::ALL.into_iter().filter(|term| *term != ScoreTerm::Load);
        fixed.map(weighted).sum::<f64>() + weighted(ScoreTerm::Load)
    }

    /// How many engines are preferred to the first that is there and open; nothing where none is.
    fn engine_at(job: &JobView, factory: &FactoryView) -> Option<usize> {
        let is_there =
            |name: &str| factory.capabilities.iter().any(|c| c.as_str() == format!("engine:{name}"));
        let is_open =
            |name: &str| is_there(name) && !factory.closed.iter().any(|closed| closed.engine == name);
        let names: Vec<&str> = job.engine.names().collect();
        match names.as_slice() {
            // Whether it needs an engine at all is for its capabilities to say.
            [] => {
                let prompts = factory.capabilities.iter().filter_map(Capability::as_engine);
                let mut prompts = prompts.filter(|name| !["shell", "any"].contains(name)).peekable();
                (prompts.peek().is_none() || prompts.any(is_open)).then_some(0)
            }
            [one] => is_open(one).then_some(0),
            several => several.iter().position(|name| is_open(name)),
        }
    }

    fn rarity(&self, capabilities: &CapabilitySet) -> f64 {
        let tools = capabilities.iter().filter(|c| !c.as_str().starts_with("repo:"));
        // Where nobody has it the job runs nowhere, so it does not matter what it weighs.
        tools.map(|c| self.rarity.get(c).copied().unwrap_or(0.0)).sum()
    }
}

/// One, where it does not say.
fn units_of(job: &JobView, capability: &Capability) -> u32 {
    job.capabilities.units(capability).unwrap_or(1)
}

/// The factory's own name for it: the same, or the only longer one that ends with it.
fn repo_here<'f>(repo: &str, factory: &'f FactoryView) -> Option<&'f str> {
    let is_url = repo.contains("://");
    let name = if is_url { repo.rsplit('/').next().unwrap().trim_end_matches(".git") } else { repo };
    let names: BTreeSet<&str> = factory.repos.iter().map(|known| known.name.as_str()).collect();
    let longer: Vec<&str> =
        names.iter().copied().filter(|known| known.ends_with(&format!("/{name}"))).collect();
    match longer[..] {
        _ if names.contains(name) => names.get(name).copied(),
        [only] => Some(only),
        _ => None,
    }
}
