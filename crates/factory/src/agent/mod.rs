//! The agent loop: says what the machine has, takes jobs up to its seats, and leaves in good order.
//!
//! ```text
//! enrol ▶ look at the machine ▶ settle what a crash left ▶ ┌ heartbeats, on their own ▶ how jobs should come
//!                                                         ├ intake (poll, stream, broker, …) ▶ one task per job
//!                                                         ├ news, or the gate (long poll) ▶ merge orders
//!                                                         └ now and then: clean up
//! SIGTERM ▶ nothing new ▶ each job: stop, checkpoint, release ▶ gone
//! ```

mod backoff;
mod checks;
mod comments;
mod config;
mod detect;
mod ending;
mod enroll;
mod error;
mod folder;
mod heartbeat;
mod intake;
mod job;
mod last_word;
mod lease;
mod log;
mod merges;
mod meter;
mod plan;
mod recover;
mod requests;
mod save;
mod sweep;

pub use config::AgentConfig;
pub use enroll::take_over;
pub use error::AgentError;
pub use intake::BrokerDoor;
pub use sweep::{CoordinatorsWord, DISK_FLOOR_BYTES};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use giga_api::client::Client;
use giga_domain::{CapabilitySet, FactoryId};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engines::{self, Engine, Secret, Watchdog};
use crate::forge::Forge;
use crate::workspace::Workspace;

/// How long an engine may take to say whether it is ready.
const PREFLIGHT: Duration = Duration::from_secs(20);
/// How long running jobs wait for the intake to end. A coordinator that is told of free seats while it still believes
/// that this factory listens would fill them again.
const INTAKE_ENDS: Duration = Duration::from_secs(3);

/// What every task of the agent needs.
struct Shared {
    client: Client,
    id: FactoryId,
    base: PathBuf,
    workspace: Workspace,
    forge: Arc<dyn Forge>,
    /// Those that are ready.
    engines: Vec<Arc<dyn Engine>>,
    /// What the machine has, repositories aside.
    capabilities: CapabilitySet,
    can_clone: bool,
    seat_limit: u32,
    seats: Arc<Semaphore>,
    watchdog: Watchdog,
    checkpoint_every: Duration,
    /// Never to be shown, whatever an engine prints.
    secrets: Vec<Secret>,
    jobs: TaskTracker,
    running: intake::Running,
    unanswered: intake::Unanswered,
    /// Ends every job in good order, after the intake has ended.
    drain: CancellationToken,
    ways: intake::Ways,
    streams: intake::Streams,
    broker: Option<Arc<dyn BrokerDoor>>,
    /// The coordinator has heard of something new that this factory can do.
    news: Notify,
    /// There may be merge orders.
    merges: Notify,
    /// The next heartbeat's answer may say something new.
    beat: Notify,
    /// Held by the heartbeat that is under way.
    beating: Mutex<()>,
}

/// Runs until `stop`, then drains: every running job is saved, released and left to others.
pub async fn run(config: AgentConfig, stop: CancellationToken) -> Result<(), AgentError> {
    run_and_tell(config, stop, || {}).await
}

/// The same; `ready` is called once the coordinator knows the factory.
pub async fn run_and_tell(
    config: AgentConfig,
    stop: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), AgentError> {
    let _base = folder::hold(&config.base)?;
    let (client, token) = enroll::client(&config).await?;
    let workspace = Workspace::open(config.base.clone(), config.git.clone())?;
    let mut of_engines = config.engines.clone();
    if of_engines.scratch.is_none() {
        of_engines.scratch = Some(folder::fresh_scratch(&config.base)?);
    }
    let all = engines::engines(&of_engines);
    let detected = engines::detect(&all, PREFLIGHT).await;
    let mut capabilities = detect::machine().await;
    for capability in engines::capabilities(&detected).iter() {
        capabilities.insert(capability.clone());
    }
    let usable = all.into_iter().zip(&detected).filter(|(_, found)| found.preflight.is_ready());
    let shared = Arc::new(Shared {
        client,
        id: config.id.clone(),
        base: config.base.clone(),
        workspace,
        forge: config.forge.clone(),
        engines: usable.map(|(engine, _)| engine).collect(),
        capabilities,
        can_clone: config.can_clone,
        seat_limit: config.seats,
        seats: Arc::new(Semaphore::new(config.seats as usize)),
        watchdog: config.watchdog,
        checkpoint_every: config.checkpoint_every,
        secrets: [Some(token.clone()), config.enroll_with, config.broker.as_ref().and_then(|b| b.secret())]
            .into_iter()
            .flatten()
            .map(Secret::new)
            .collect(),
        jobs: TaskTracker::new(),
        running: intake::Running::default(),
        unanswered: intake::Unanswered::default(),
        drain: if config.once { stop.clone() } else { CancellationToken::new() },
        ways: intake::Ways::default(),
        streams: intake::Streams { url: config.url, token },
        broker: config.broker,
        news: Notify::new(),
        merges: Notify::new(),
        beat: Notify::new(),
        beating: Mutex::default(),
    });
    recover::settle_leftovers(&shared).await;
    // The first one is waited for: without it nothing can be claimed.
    heartbeat::until_heard(&shared, &stop).await?;
    let beating = tokio::spawn(heartbeat::keep(shared.clone(), stop.clone()));
    let sweeping = tokio::spawn(sweep::now_and_then(shared.clone(), stop.clone()));
    if !stop.is_cancelled() {
        ready();
    }
    let taken = if config.once {
        intake::once(&shared).await
    } else {
        let merging = tokio::spawn(merges::keep(shared.clone(), stop.clone()));
        let _late = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(drain_late(
            stop.clone(),
            shared.drain.clone(),
        )));
        let taken = intake::forever(&shared, &stop).await;
        stop.cancel();
        shared.drain.cancel();
        let _ = merging.await;
        taken
    };
    shared.jobs.close();
    shared.jobs.wait().await;
    stop.cancel();
    let _ = tokio::join!(beating, sweeping);
    taken
}

/// For an intake that cannot end in time, such as one that waits for a coordinator that hangs.
async fn drain_late(stop: CancellationToken, drain: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(INTAKE_ENDS).await;
    drain.cancel();
}
