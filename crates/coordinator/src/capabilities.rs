//! Supply and demand of capabilities: who has what, who uses it, who waits for it.
//!
//! Counted from the fleet view whenever somebody asks; nothing is kept. Whether a job waits *because* of a capability is for its
//! explanation to say.

use std::collections::BTreeMap;

use giga_domain::{Capability, FactoryId, FactoryState, Health, ProductId, Timestamp};
use giga_scheduler::FactoryView;

use crate::view::Whom;
use crate::{Coordinator, Error, Sight};

/// A capability as the fleet has it and as jobs ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityView {
    pub capability: Capability,
    pub holders: Vec<CapabilityHolder>,
    pub running: u64,
    pub queued: u64,
    pub oldest_enqueued_at: Option<Timestamp>,
    /// Running and queued jobs of each product.
    pub products: BTreeMap<ProductId, (u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityHolder {
    pub factory: FactoryId,
    pub available: bool,
    pub units: Option<u32>,
    pub used: u32,
}

impl CapabilityView {
    /// How many there are, where every factory that has it gave a number.
    pub fn units(&self) -> Option<u32> {
        let all: Option<Vec<u32>> = self.holders.iter().map(|holder| holder.units).collect();
        all.filter(|units| !units.is_empty()).map(|units| units.into_iter().fold(0, u32::saturating_add))
    }

    /// What is asked for and not there comes first, then what is waited for, then what is rare.
    fn urgency(&self) -> impl Ord {
        let is_there = self.holders.iter().any(|holder| holder.available);
        (self.queued == 0, is_there, std::cmp::Reverse(self.queued), self.holders.len())
    }
}

impl Coordinator {
    /// What needs attention first, from what a caller may see. Repositories are left out: they are no rare tool.
    pub async fn capabilities_for(&self, sight: &Sight) -> Result<Vec<CapabilityView>, Error> {
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        state.queue.settle(now);
        let mut snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
        sight.cut(&mut snapshot, &state.tenants, None);
        let mut known = Known::default();
        for factory in &snapshot.factories {
            for capability in factory.capabilities.iter().filter(|capability| is_listed(capability)) {
                known.of(capability).holders.push(holder(factory, capability));
            }
        }
        for running in state.running.values().filter(|running| sight.allows(&running.product)) {
            for capability in running.capabilities.iter().filter(|capability| is_listed(capability)) {
                let view = known.of(capability);
                view.running += 1;
                view.products.entry(running.product.clone()).or_default().0 += 1;
            }
        }
        for shape in state.queue.summaries().filter(|shape| sight.allows(&shape.representative.product)) {
            let job = shape.representative;
            for capability in job.capabilities.iter().filter(|capability| is_listed(capability)) {
                let view = known.of(capability);
                view.queued += shape.count as u64;
                let oldest = view.oldest_enqueued_at.unwrap_or(shape.oldest_enqueued_at);
                view.oldest_enqueued_at = Some(oldest.min(shape.oldest_enqueued_at));
                view.products.entry(job.product.clone()).or_default().1 += shape.count as u64;
            }
        }
        let mut views: Vec<CapabilityView> = known.0.into_values().collect();
        views.sort_by(|a, b| a.urgency().cmp(&b.urgency()).then_with(|| a.capability.cmp(&b.capability)));
        Ok(views)
    }
}

#[derive(Default)]
struct Known(BTreeMap<Capability, CapabilityView>);

impl Known {
    fn of(&mut self, capability: &Capability) -> &mut CapabilityView {
        self.0.entry(capability.clone()).or_insert_with(|| CapabilityView {
            capability: capability.clone(),
            holders: Vec::new(),
            running: 0,
            queued: 0,
            oldest_enqueued_at: None,
            products: BTreeMap::new(),
        })
    }
}

fn is_listed(capability: &Capability) -> bool {
    !capability.as_str().starts_with("repo:") && capability.as_engine() != Some(Capability::ANY_ENGINE)
}

fn holder(factory: &FactoryView, capability: &Capability) -> CapabilityHolder {
    let available = factory.live && factory.state == FactoryState::Active && factory.health != Health::Down;
    CapabilityHolder {
        factory: factory.id.clone(),
        available,
        units: factory.capabilities.units(capability),
        used: factory.units_used.of(capability),
    }
}
