//! A look at the budgets after every commit: what people have set, and whether what is reserved is what stands on the
//! leases. It passes no turnstile and changes nothing.

use std::collections::BTreeMap;

use giga_domain::{BudgetSettings, ProductId, Usd};
use giga_ports::Clock;
use parking_lot::Mutex;

use crate::history::Record;
use crate::world::World;

/// The settings as they were after the last commit.
#[derive(Debug, Default)]
pub(crate) struct BudgetAudit(Mutex<BTreeMap<ProductId, BudgetSettings>>);

pub(super) async fn look(world: &World) {
    if world.scenario.rules.money.is_none() {
        return;
    }
    let at = world.clock.now();
    let budgets = world.reads().budgets().await.unwrap_or_default();
    let jobs = world.reads().live_jobs(None, usize::MAX).await.unwrap_or_default();
    for product in &world.scenario.rules.products {
        let budget = budgets.iter().find(|budget| budget.product == *product);
        let settings = budget.map(|budget| budget.settings).unwrap_or_default();
        let reserved = budget.map_or(Usd::ZERO, |budget| budget.reserved);
        let held = jobs.iter().filter(|job| job.product == *product).filter_map(|job| job.lease());
        let leases = held.map(|lease| lease.reserved).sum();
        if reserved != leases {
            world.history.add(Record::BudgetOff { at, product: product.clone(), reserved, leases });
        }
        let mut known = world.budget_audit.0.lock();
        if known.insert(product.clone(), settings).unwrap_or_default() != settings {
            world.history.add(Record::BudgetSet { at, product: product.clone(), settings });
        }
    }
}
