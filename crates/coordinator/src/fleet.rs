//! The state of the fleet in numbers: depths, utilisation, budgets.

use std::collections::HashMap;
use std::time::Duration;

use giga_domain::{Access, AccountId, AccountState, Event, FeedPos, ProductId, Timestamp};
use giga_ports::store::QueueState;
use tokio::sync::watch;

use crate::view::{ViewState, Whom};
use crate::{BudgetView, Coordinator, Error};

#[derive(Debug, Clone)]
pub struct ProductDepth {
    pub product: ProductId,
    pub state: QueueState,
    /// How long its longest waiting job that could run now has waited.
    pub oldest_queued: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct FleetMetrics {
    pub products: Vec<ProductDepth>,
    pub factories_live: usize,
    pub factories_stale: usize,
    pub factories_draining: usize,
    /// Accounts of engines by state.
    pub accounts: Vec<(AccountState, usize)>,
    pub seats: u32,
    pub seats_used: u32,
    /// Of the queued jobs, the one that waits longest.
    pub oldest_queued: Option<Duration>,
    pub feed_head: FeedPos,
    /// By product.
    pub budgets: Vec<BudgetView>,
}

impl Coordinator {
    pub async fn fleet_metrics(&self) -> Result<FleetMetrics, Error> {
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        let products = self.core.store.read().queue_states().await?;
        let feed_head = self.core.store.read().feed_head().await?;
        let budgets = self.budgets().await?;
        let now = self.core.store_now();
        let state = self.fleet.view.lock();
        let accounts = account_states(&state, now);
        let snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
        let draining = |f: &&giga_scheduler::FactoryView| f.state == giga_domain::FactoryState::Draining;
        let mut oldest: HashMap<ProductId, Duration> = HashMap::new();
        for shape in state.queue.summaries() {
            let age = now.since(shape.oldest_enqueued_at);
            let known = oldest.entry(shape.representative.product.clone()).or_default();
            *known = age.max(*known);
        }
        let depth = |(product, state)| {
            let oldest_queued = oldest.get(&product).copied();
            ProductDepth { product, state, oldest_queued }
        };
        Ok(FleetMetrics {
            products: products.into_iter().map(depth).collect(),
            factories_live: snapshot.factories.iter().filter(|f| f.live).count(),
            factories_stale: snapshot.factories.iter().filter(|f| !f.live).count(),
            factories_draining: snapshot.factories.iter().filter(draining).count(),
            accounts,
            seats: snapshot.factories.iter().filter(|f| f.live).map(|f| f.seat_limit).sum(),
            seats_used: snapshot.factories.iter().map(|f| f.seats_used).sum(),
            oldest_queued: oldest.values().max().copied(),
            feed_head,
            budgets,
        })
    }

    /// Changes when a budget may have opened, also by the clock alone: for those who wait to ask for work.
    pub fn budgets_changed(&self) -> watch::Receiver<()> {
        self.fleet.view.budgets_moved.subscribe()
    }

    /// The feed from a cursor on.
    pub async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>, Error> {
        Ok(self.core.store.read().feed(after, limit).await?)
    }
}

/// Each account once, however many factories have it.
fn account_states(state: &ViewState, now: Timestamp) -> Vec<(AccountState, usize)> {
    let closed = state.closed_accounts(now);
    let mut states: HashMap<&AccountId, AccountState> = HashMap::new();
    for account in state.factories.values().flat_map(|factory| &factory.advertised.accounts) {
        let own = match closed.access(account) {
            Access::Open => AccountState::Open,
            Access::OutOfQuota { .. } => AccountState::OutOfQuota,
            Access::SignedOut => AccountState::SignedOut,
        };
        let known = states.entry(&account.account).or_insert(own);
        *known = own.max(*known);
    }
    let count = |state| states.values().filter(|own| **own == state).count();
    AccountState::ALL.into_iter().map(|state| (state, count(state))).collect()
}
