//! Use cases and reconcilers: the orchestration core.
//!
//! This crate never sees SQL, HTTP or a real clock; it asks the ports. Whatever it keeps in memory (the fleet view,
//! signs of life, known tokens) is a copy that may be old: every decision that counts is made again inside the
//! store's transaction.

mod alerts;
mod artifacts;
mod budgets;
mod claims;
mod dispatch;
mod effects;
mod error;
mod explain;
mod factories;
mod flags;
mod fleet;
mod graph;
mod hints;
mod jobs;
mod logs;
mod merges;
mod metrics;
mod policies;
mod preemption;
mod products;
mod profiles;
mod reconcile;
mod secrets;
mod store_clock;
mod tokens;
mod topics;
mod view;

pub use alerts::Alert;
pub use artifacts::NewArtifact;
pub use budgets::{BudgetView, Burndown, BurndownBucket};
pub use claims::{Accept, Candidate};
pub use dispatch::{Dispatched, Diverged, FactoryStream, Grant, ShadowReport, StreamEvent};
pub use effects::{AddWebhook, Ingested, WEBHOOK_TEST, job_name, tracked_body, tracker_key};
pub use error::{Error, FieldProblem};
pub use explain::DryRun;
pub use factories::{HeartbeatAnswer, Pruned};
pub use flags::FlagValue;
pub use fleet::{FleetMetrics, ProductDepth};
pub use graph::{Dag, DagJob, NewItem, Progress};
pub use jobs::{Directive, Renewal, SubmitAnswer, SubmitRequest};
pub use logs::LogPiece;
pub use metrics::Metrics;
pub use profiles::KnownProfiles;
pub use secrets::{ArtifactLink, LinkTo};
pub use topics::{Dealt, NewTopicWork, OpenStream, ReportStatus, TopicGates, TopicOverview, WorkerStream};

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{FeedPos, NodeId};
use giga_ports::{
    Artifacts, Broker, Clock, Effects, Logs, Randomness, Store, StoreError, StoreReads, TopicStore,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::claims::ClaimAsk;
use crate::dispatch::Dispatch;
use crate::effects::Outside;
use crate::factories::Presence;
use crate::hints::Hints;
use crate::profiles::RecentProfiles;
use crate::store_clock::StoreClock;
use crate::tokens::TokenCache;
use crate::topics::TopicHub;
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
    /// How long the lead lasts without a renewal, which comes at half of it.
    pub lead_lease: Duration,
    /// How long the broker has to bring an offer to a stream before it is looked for without it.
    pub offer_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sweep_every: Duration::from_secs(5),
            idle_sweep_every: Duration::from_mins(1),
            retention_every: Duration::from_hours(1),
            sweep_limit: 500,
            rotation_grace: Duration::from_mins(15),
            lead_lease: Duration::from_secs(20),
            offer_grace: Duration::from_millis(500),
        }
    }
}

/// The world, as the coordinator sees it.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub topics: Arc<dyn TopicStore>,
    pub broker: Arc<dyn Broker>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Randomness>,
    pub logs: Arc<dyn Logs>,
    pub artifacts: Arc<dyn Artifacts>,
    pub effects: Arc<dyn Effects>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// Everything that the control planes and the factories can ask for.
pub struct Coordinator {
    /// This very process: a restart is another node.
    node: NodeId,
    store: Arc<dyn Store>,
    topic_store: Arc<dyn TopicStore>,
    broker: Arc<dyn Broker>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Randomness>,
    logs: Arc<dyn Logs>,
    artifacts: Arc<dyn Artifacts>,
    effects: Arc<dyn Effects>,
    options: Options,
    store_clock: StoreClock,
    view: FleetView,
    presence: Presence,
    tokens: TokenCache,
    recent_profiles: RecentProfiles,
    secrets: secrets::Secrets,
    metrics: Metrics,
    hints: Hints,
    topics: TopicHub,
    dispatch: Dispatch,
    outside: Outside,
    claims: mpsc::Sender<ClaimAsk>,
    /// Rung when the feed shows that something ended, or came to wait: others may hang on it.
    ended: Notify,
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
        let (coordinator, inbox) = Self::assemble(ports, options);
        coordinator.refresh().await?;
        coordinator.spawn_reconcilers(inbox);
        Ok(coordinator)
    }

    /// Loads the fleet, serves claims and passes hints on; everything else happens when one of the `…_once` steps is
    /// called. For a simulation, which decides itself what happens when.
    pub async fn by_hand(ports: Ports, options: Options) -> Result<Arc<Self>, StoreError> {
        let (coordinator, inbox) = Self::assemble(ports, options);
        coordinator.refresh().await?;
        coordinator.tasks.spawn(coordinator.clone().serve_claims(inbox.asked));
        coordinator.tasks.spawn(coordinator.clone().tell_hints(inbox.hints_to_tell));
        coordinator.tasks.spawn(coordinator.clone().hear_hints());
        Ok(coordinator)
    }

    fn assemble(ports: Ports, options: Options) -> (Arc<Self>, Inbox) {
        let (claims, asked) = mpsc::channel(1024);
        let (hints, hints_to_tell) = Hints::new(*ports.store.head().borrow());
        let coordinator = Arc::new(Self {
            store_clock: StoreClock::default(),
            view: FleetView::default(),
            presence: Presence::default(),
            tokens: TokenCache::default(),
            recent_profiles: RecentProfiles::default(),
            secrets: secrets::Secrets::default(),
            metrics: Metrics::new(),
            hints,
            topics: TopicHub::default(),
            dispatch: Dispatch::default(),
            outside: Outside::default(),
            node: new_node(&*ports.random),
            store: ports.store,
            topic_store: ports.topics,
            broker: ports.broker,
            clock: ports.clock,
            random: ports.random,
            logs: ports.logs,
            artifacts: ports.artifacts,
            effects: ports.effects,
            options,
            claims,
            ended: Notify::new(),
            log_grown: Notify::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        (coordinator, Inbox { asked, hints_to_tell })
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

    /// Changes when this process, or another one that could be heard, commits something: a hint to look at the feed
    /// again.
    pub fn head(&self) -> watch::Receiver<FeedPos> {
        self.hints.head()
    }

    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// What nobody could have known, for one answer.
    pub fn nonce(&self) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&self.random.bytes()[..16]);
        nonce
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

/// What the reconcilers take their work from.
pub(crate) struct Inbox {
    pub(crate) asked: mpsc::Receiver<ClaimAsk>,
    pub(crate) hints_to_tell: mpsc::Receiver<giga_ports::broker::Hint>,
}

fn new_node(random: &dyn Randomness) -> NodeId {
    let name = random.bytes()[..8].iter().fold("node-".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    name.parse().expect("hexadecimal digits are legal in a node id")
}
