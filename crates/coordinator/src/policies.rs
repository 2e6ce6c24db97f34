//! What each product may do, as the view knows it: shares, weights, limits, pauses.
//!
//! A copy that may be old, like the rest of the view: whether money is there is decided by the claim. Products without a
//! limit and without settings cost nothing here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use giga_domain::product::{names_of_repo, owned_name};
use giga_domain::{Budget, Event, EventKind, JobId, Period, Product, ProductId, Stage, Timestamp};
use giga_ports::{StoreError, StoreReads};
use giga_scheduler::{JobView, Policy, ProductPolicy};
use serde_json::Value;

use crate::view::{Fleet, ViewState, Whom};

#[derive(Default)]
pub(crate) struct Tenants {
    settings: BTreeMap<ProductId, Product>,
    /// Repositories, as they are compared, and their owners.
    owners: HashMap<String, ProductId>,
    budgets: BTreeMap<ProductId, Budget>,
    /// Budgets that a claim found to be otherwise than they look here.
    doubted: BTreeSet<ProductId>,
    /// Made from the above, for the day that it was made in: within one nothing changes by the clock.
    policies: BTreeMap<ProductId, ProductPolicy>,
    day: Option<(Timestamp, Timestamp)>,
}

impl Tenants {
    /// Who owns the repository, and by which name. The most exact name counts.
    pub(crate) fn owner_of(&self, repo: &str) -> Option<(&ProductId, String)> {
        names_of_repo(repo).find_map(|name| self.owners.get(&name).map(|owner| (owner, name)))
    }

    pub(crate) fn products(&self) -> impl Iterator<Item = &Product> {
        self.settings.values()
    }

    pub(crate) fn product(&self, product: &ProductId) -> Option<&Product> {
        self.settings.get(product)
    }

    pub(crate) fn set_products(&mut self, products: impl IntoIterator<Item = Product>) {
        self.settings = products.into_iter().map(|product| (product.id.clone(), product)).collect();
        let owned = self.settings.values().flat_map(|product| {
            product.settings.repos.iter().map(|repo| (owned_name(repo), product.id.clone()))
        });
        self.owners = owned.collect();
        self.day = None;
    }

    /// The answer to a change, which the feed may have overtaken.
    pub(crate) fn put_product(&mut self, product: Product) {
        if self.settings.get(&product.id).is_some_and(|known| known.rev > product.rev) {
            return;
        }
        let mut all = std::mem::take(&mut self.settings);
        all.insert(product.id.clone(), product);
        self.set_products(all.into_values());
    }

    /// What a look at one budget, or at all of them, has shown.
    pub(crate) fn put_budgets(&mut self, budgets: impl IntoIterator<Item = Budget>) {
        self.budgets.extend(budgets.into_iter().map(|budget| (budget.product.clone(), budget)));
        self.day = None;
    }

    /// Somebody was refused for want of money: its row is read again before the next plan.
    pub(crate) fn doubt(&mut self, product: ProductId) {
        self.doubted.insert(product);
    }

    pub(crate) fn take_doubted(&mut self) -> BTreeSet<ProductId> {
        std::mem::take(&mut self.doubted)
    }

    /// Whether what its jobs do can close it.
    pub(crate) fn is_limited(&self, product: &ProductId) -> bool {
        self.budgets.get(product).is_some_and(is_limited)
    }

    pub(crate) fn budgets(&self) -> impl Iterator<Item = &Budget> {
        self.budgets.values()
    }

    /// When a budget may open by the clock alone.
    pub(crate) fn next_reopening(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = |budget: &Budget| {
            let limits = &budget.settings.limits;
            limits.day.or(limits.week).or(limits.month).is_some()
        };
        // Weeks and months end where a day does.
        if self.budgets.values().any(ends) { Period::Day.end(now) } else { None }
    }

    fn policies(&mut self, now: Timestamp) -> &BTreeMap<ProductId, ProductPolicy> {
        if self.day.is_none_or(|(from, to)| now < from || now >= to) {
            let limited = self.budgets.values().filter(|budget| is_limited(budget));
            let named: BTreeSet<&ProductId> =
                self.settings.keys().chain(limited.map(|budget| &budget.product)).collect();
            let policy = |product: &ProductId| {
                let settings = self.settings.get(product).map(|product| &product.settings);
                ProductPolicy::new(settings, self.budgets.get(product), now)
            };
            self.policies = named.into_iter().map(|product| (product.clone(), policy(product))).collect();
            self.day = Period::Day.end(now).map(|end| (Period::Day.start(now), end));
        }
        &self.policies
    }
}

fn is_limited(budget: &Budget) -> bool {
    let limited = Period::ALL.iter().any(|period| budget.settings.limits.of(*period).is_some());
    limited || budget.paused.is_some()
}

/// The budget that an event may have changed.
pub(crate) fn budget_behind(event: &Event, tenants: &Tenants) -> Option<ProductId> {
    let held = |stage: Option<Stage>| stage.is_some_and(Stage::is_held);
    match event.kind {
        EventKind::BudgetChanged
        | EventKind::BudgetPaused
        | EventKind::BudgetResumed
        | EventKind::BudgetExhausted => {
            let named = event.data.get("productId").and_then(Value::as_str);
            event.product.clone().or_else(|| named.and_then(|id| id.parse().ok()))
        }
        // Money is reserved when a lease begins, and charged when it ends; and some is refunded later.
        kind if kind == EventKind::CostReported || held(event.from) || held(event.to) => {
            event.product.clone().filter(|product| tenants.is_limited(product))
        }
        _ => None,
    }
}

impl ViewState {
    /// What products may do now. Where offers count as held, so does what they will reserve.
    pub(crate) fn policy(&mut self, now: Timestamp, whom: Whom<'_>) -> Policy {
        let mut products = self.tenants.policies(now).clone();
        if whom.counts_offers() && products.values().any(|product| product.budget_left.is_some()) {
            for (_, job) in self.queue.on_offer() {
                if let Some(product) = products.get_mut(&job.product) {
                    let usd = product.reserve_for(job);
                    product.reserve(usd);
                }
            }
        }
        let max_evictions = self.flag("max_evictions").as_u64().unwrap_or_default();
        Policy {
            products,
            max_evictions: u32::try_from(max_evictions).unwrap_or(u32::MAX),
            ..Policy::default()
        }
    }

    /// Jobs that wait for a seat which somebody gave up for them, first come first.
    pub(crate) fn promises(&self) -> Vec<JobId> {
        let mut waiting: Vec<(Timestamp, JobId)> = self
            .promised
            .iter()
            .filter(|(job, _)| self.queue.get(**job).is_some())
            .map(|(job, at)| (*at, *job))
            .collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, job)| job).collect()
    }

    /// A product that was closed may be open again: who did not pick its jobs up in time may have been refused for want
    /// of money, and is asked again. Whoever is really silent misses one more pickup.
    pub(crate) fn forgive_pickups(&mut self, now: Timestamp, product: Option<&ProductId>) {
        let concerned = |job: &&JobView| {
            product.map_or_else(|| self.tenants.is_limited(&job.product), |product| job.product == *product)
        };
        let is_over = |job: &&JobView| job.offered_to.as_ref().is_some_and(|(_, deadline)| *deadline <= now);
        let missed = self.queue.iter().filter(is_over).filter(concerned);
        let forgiven: Vec<JobView> =
            missed.map(|job| JobView { excluded: Vec::new(), ..job.clone() }).collect();
        for job in forgiven {
            self.queue.upsert(job);
        }
    }

    /// Whether a job's product may start it, as far as is known here.
    pub(crate) fn is_affordable(policy: &Policy, job: &JobView) -> bool {
        policy.products.get(&job.product).is_none_or(|product| product.admits(job))
    }
}

impl Fleet {
    pub(crate) async fn read_budgets(
        &self,
        reads: &dyn StoreReads,
        changed: &BTreeSet<ProductId>,
    ) -> Result<(), StoreError> {
        let mut changed_ones = changed.iter();
        let found = match (changed_ones.next(), changed_ones.next()) {
            (None, _) => return Ok(()),
            (Some(one), None) => reads.budget(one).await?.into_iter().collect(),
            // One read for all that changed.
            (Some(_), Some(_)) => reads.budgets().await?,
        };
        self.view.lock().tenants.put_budgets(found);
        Ok(())
    }
}
