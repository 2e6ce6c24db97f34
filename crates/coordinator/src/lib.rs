//! Use cases and reconcilers: the orchestration core.
//!
//! This crate never sees SQL, HTTP or a real clock; it asks the ports. Whatever it keeps in memory (the fleet view,
//! signs of life, known tokens) is a copy that may be old: every decision that counts is made again inside the
//! store's transaction.

mod artifacts;
mod claims;
mod error;
mod factories;
mod flags;
mod fleet;
mod jobs;
mod logs;
mod merges;
mod metrics;
mod reconcile;
mod tokens;
mod view;

pub use error::{Error, FieldProblem};
pub use factories::{HeartbeatAnswer, Pruned};
pub use flags::FlagValue;
pub use fleet::{Alert, AlertKind, FleetMetrics, ProductDepth};
pub use jobs::{Accept, Directive, DryRun, Renewal, SubmitAnswer, SubmitRequest};
pub use logs::LogPiece;
pub use metrics::Metrics;

use std::sync::Arc;
use std::time::Duration;

use giga_domain::FeedPos;
use giga_ports::{Artifacts, Clock, Logs, Randomness, Store, StoreError, StoreReads};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::claims::ClaimAsk;
use crate::factories::Presence;
use crate::tokens::TokenCache;
use crate::view::FleetView;

/// How often and how much; the defaults suit everyone but tests.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The longest the reaper sleeps while leases are held, so that one that was cut short is noticed.
    pub sweep_every: Duration,
    /// The same while none is held, as far as this process knows: another one may have granted some and died.
    pub idle_sweep_every: Duration,
    pub retention_every: Duration,
    /// How many jobs one sweep takes at once.
    pub sweep_limit: usize,
    /// Both tokens work for so long after a rotation.
    pub rotation_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sweep_every: Duration::from_secs(5),
            idle_sweep_every: Duration::from_mins(1),
            retention_every: Duration::from_hours(1),
            sweep_limit: 500,
            rotation_grace: Duration::from_mins(15),
        }
    }
}

/// The world, as the coordinator sees it.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Randomness>,
    pub logs: Arc<dyn Logs>,
    pub artifacts: Arc<dyn Artifacts>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// Everything that the control planes and the factories can ask for.
pub struct Coordinator {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Randomness>,
    logs: Arc<dyn Logs>,
    artifacts: Arc<dyn Artifacts>,
    options: Options,
    view: FleetView,
    presence: Presence,
    tokens: TokenCache,
    metrics: Metrics,
    claims: mpsc::Sender<ClaimAsk>,
    /// Rung when the feed shows that something shipped.
    shipped: Notify,
    /// Rung when any log has grown.
    log_grown: Notify,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator").finish_non_exhaustive()
    }
}

impl Coordinator {
    /// Loads the fleet and starts the reconcilers; they run until [`Self::stop`].
    pub async fn start(ports: Ports, options: Options) -> Result<Arc<Self>, StoreError> {
        let (claims, asked) = mpsc::channel(1024);
        let coordinator = Arc::new(Self {
            view: FleetView::default(),
            presence: Presence::default(),
            tokens: TokenCache::default(),
            metrics: Metrics::new(),
            store: ports.store,
            clock: ports.clock,
            random: ports.random,
            logs: ports.logs,
            artifacts: ports.artifacts,
            options,
            claims,
            shipped: Notify::new(),
            log_grown: Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        coordinator.refresh().await?;
        coordinator.spawn_reconcilers(asked);
        Ok(coordinator)
    }

    /// Ends the reconcilers and waits for what they have begun.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Looking needs no use case.
    pub fn reads(&self) -> &dyn StoreReads {
        self.store.read()
    }

    /// Changes when this process commits something: a hint to look at the feed again.
    pub fn head(&self) -> watch::Receiver<FeedPos> {
        self.store.head()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// How long both tokens of a factory work after a rotation.
    pub fn rotation_grace(&self) -> Duration {
        self.options.rotation_grace
    }

    pub fn store_stats(&self) -> giga_ports::store::StoreStats {
        self.store.stats()
    }
}
