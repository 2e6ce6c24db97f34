//! Use cases and reconcilers: the orchestration core.
//!
//! This crate never sees SQL, HTTP or a real clock; it asks the ports. Whatever it keeps in memory (the fleet view,
//! signs of life, known tokens) is a copy that may be old: every decision that counts is made again inside the
//! store's transaction.

mod accounts;
mod admission;
mod alerts;
mod artifacts;
mod backoff;
mod bounds;
mod budgets;
mod capabilities;
mod claims;
mod conversation;
mod core;
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
mod keys;
mod logs;
mod merges;
mod metrics;
mod policies;
mod pools;
mod products;
mod profiles;
mod reconcile;
mod secrets;
mod sight;
mod sign_in;
mod store_clock;
mod strangers;
mod tokens;
mod topics;
mod view;

pub use accounts::AccountView;
pub use alerts::Alert;
pub use artifacts::NewArtifact;
pub use budgets::{BudgetView, Burndown, BurndownBucket};
pub use capabilities::{CapabilityHolder, CapabilityView};
pub use claims::{Accept, Candidate, Claims};
pub use dispatch::{Dispatch, Dispatched, Diverged, FactoryStream, Grant, ShadowReport, StreamEvent};
pub use effects::{AddWebhook, Effects, Ingested, WEBHOOK_TEST, job_name, tracked_body, tracker_key};
pub use error::{Error, FieldProblem};
pub use explain::DryRun;
pub use factories::{HeartbeatAnswer, Pruned};
pub use flags::FlagValue;
pub use fleet::{FleetMetrics, ProductDepth};
pub use graph::{Dag, DagJob, NewItem, Progress};
pub use jobs::{Directive, Renewal, SubmitAnswer, SubmitRequest};
pub use keys::{ArtifactLink, LinkTo};
pub use logs::LogPiece;
pub use merges::{MergeHolder, ProposedMerge, TakenMerge};
pub use metrics::Metrics;
pub use pools::{Awaited, MemberActivity, PoolState, PoolView, Pools};
pub use profiles::KnownProfiles;
pub use secrets::{GivenSecret, Rekeyed};
pub use sight::{ForeignRepo, Sight};
pub use sign_in::Arrival;
pub use tokens::Identified;
pub use topics::{
    Dealt, NewTopicWork, OpenStream, ReportStatus, TopicGates, TopicOverview, Topics, WorkerStream,
};

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{FeedPos, JobId, NodeId};
use giga_ports::{
    Artifacts, Broker, Clock, Logs, PoolDrivers, Randomness, SecretKeys, Store, StoreError, StoreReads,
    TopicStore,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};

use crate::claims::ClaimAsk;
use crate::core::Core;
use crate::dispatch::Lead;
use crate::hints::Hints;
use crate::keys::Keys;
use crate::profiles::RecentProfiles;
use crate::strangers::Strangers;
use crate::tokens::TokenCache;
use crate::view::{Fleet, Follower};

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
    /// How often open pull requests are looked at without a hint, while there are any.
    pub requests_every: Duration,
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
            requests_every: Duration::from_mins(2),
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
    pub effects: Arc<dyn giga_ports::Effects>,
    pub secret_keys: Arc<dyn SecretKeys>,
    pub pool_drivers: PoolDrivers,
}

/// Everything that the control planes and the factories can ask for: its parts, each with its own state, and the use
/// cases of jobs and people, which need several of them.
pub struct Coordinator {
    core: Arc<Core>,
    fleet: Arc<Fleet>,
    claims: Arc<Claims>,
    dispatch: Arc<Dispatch>,
    effects: Arc<Effects>,
    topics: Arc<Topics>,
    pools: Arc<Pools>,
    hints: Arc<Hints>,
    blobs: Blobs,
    caches: Caches,
    secret_keys: Arc<dyn SecretKeys>,
}

/// Bytes that runs leave behind.
struct Blobs {
    logs: Arc<dyn Logs>,
    artifacts: Arc<dyn Artifacts>,
    /// How many uploads of each job are under way.
    uploads: Arc<Mutex<HashMap<JobId, usize>>>,
    /// Rung when any log has grown.
    log_grown: Notify,
}

/// What was read before, and is the same or known when it is not.
#[derive(Default)]
struct Caches {
    tokens: Arc<TokenCache>,
    profiles: RecentProfiles,
    keys: Keys,
    /// Addresses from which somebody tries to sign in.
    sign_ins: Strangers,
}

/// What is inside of them would say nothing.
macro_rules! opaque {
    ($($name:ident),+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })+
    };
}

opaque!(Ports, Coordinator, Claims, Dispatch, Effects, Topics, Pools);

impl Coordinator {
    /// Loads the fleet and starts the reconcilers; they run until [`Self::stop`].
    pub async fn start(ports: Ports, options: Options) -> Result<Arc<Self>, StoreError> {
        let (coordinator, inbox) = Self::assemble(ports, options);
        coordinator.fleet.refresh().await?;
        coordinator.spawn_reconcilers(inbox);
        Ok(coordinator)
    }

    /// Loads the fleet, serves claims and passes hints on; everything else happens when one of the `…_once` steps is
    /// called. For a simulation, which decides itself what happens when.
    pub async fn by_hand(ports: Ports, options: Options) -> Result<Arc<Self>, StoreError> {
        let (coordinator, inbox) = Self::assemble(ports, options);
        coordinator.fleet.refresh().await?;
        let tasks = &coordinator.core.tasks;
        tasks.spawn(coordinator.claims.clone().serve_claims(inbox.asked));
        tasks.spawn(coordinator.hints.clone().publish_hints(inbox.hints));
        tasks.spawn(coordinator.clone().receive_hints());
        Ok(coordinator)
    }

    fn assemble(ports: Ports, options: Options) -> (Arc<Self>, Inbox) {
        let core = Arc::new(Core::new(&ports, options));
        let caches = Caches::default();
        let fleet = Arc::new(Fleet::new(core.clone(), caches.tokens.clone()));
        let lead = Arc::new(Lead::new(core.clone()));
        let (hints, waiting) = Hints::new(core.clone());
        let hints = Arc::new(hints);
        let (claims, asked) = Claims::new(core.clone(), fleet.clone());
        let claims = Arc::new(claims);
        let effects = Effects::new(core.clone(), fleet.clone(), lead.clone(), hints.clone(), ports.effects);
        let effects = Arc::new(effects);
        let pools = Arc::new(Pools::new(
            core.clone(),
            fleet.clone(),
            lead.clone(),
            caches.tokens.clone(),
            ports.pool_drivers,
        ));
        let dispatch = Dispatch::new(core.clone(), fleet.clone(), claims.clone(), effects.clone(), lead);
        let dispatch = Arc::new(dispatch);
        let topics = Arc::new(Topics::new(core.clone(), fleet.clone(), hints.clone(), ports.topics));
        let followers: [Arc<dyn Follower>; 3] = [dispatch.clone(), effects.clone(), pools.clone()];
        fleet.followed_by(followers.iter().map(Arc::downgrade).collect());
        let blobs = Blobs {
            logs: ports.logs,
            artifacts: ports.artifacts,
            uploads: Arc::default(),
            log_grown: Notify::new(),
        };
        let secret_keys = ports.secret_keys;
        let coordinator =
            Self { core, fleet, claims, dispatch, effects, topics, pools, hints, blobs, caches, secret_keys };
        (Arc::new(coordinator), Inbox { asked, hints: waiting })
    }

    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    pub fn dispatch(&self) -> &Arc<Dispatch> {
        &self.dispatch
    }

    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    pub fn topics(&self) -> &Arc<Topics> {
        &self.topics
    }

    pub fn pools(&self) -> &Arc<Pools> {
        &self.pools
    }

    /// Brings the view up to what is committed now.
    pub async fn refresh_once(&self) -> Result<(), StoreError> {
        self.fleet.refresh().await
    }

    /// Ends the reconcilers and waits for what they have begun.
    pub async fn stop(&self) {
        self.core.stop.cancel();
        self.core.tasks.close();
        self.core.tasks.wait().await;
    }

    /// Looking needs no use case.
    pub fn reads(&self) -> &dyn StoreReads {
        self.core.store.read()
    }

    /// Changes when this process, or another one that could be heard, commits something: a hint to look at the feed
    /// again.
    pub fn head(&self) -> watch::Receiver<FeedPos> {
        self.hints.head()
    }

    pub fn node(&self) -> &NodeId {
        &self.core.node
    }

    /// What nobody could have known, for one answer.
    pub fn nonce(&self) -> [u8; 16] {
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&self.core.random.bytes()[..16]);
        nonce
    }

    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// How long both tokens of a factory work after a rotation.
    pub fn rotation_grace(&self) -> Duration {
        self.core.options.rotation_grace
    }

    pub fn store_stats(&self) -> giga_ports::store::StoreStats {
        self.core.store.stats()
    }
}

/// What the reconcilers take their work from.
pub(crate) struct Inbox {
    pub(crate) asked: mpsc::Receiver<ClaimAsk>,
    pub(crate) hints: mpsc::Receiver<giga_ports::broker::Hint>,
}
