//! The agent loop: reports what the machine has, takes jobs up to its seats, and drains on shutdown.
//!
//! ```text
//! enroll ▶ detect capabilities ▶ settle leftovers of a crash ▶ ┌ heartbeats, on their own ▶ delivery mode
//!                                                             ├ intake (poll, stream, broker, …) ▶ one task per job
//!                                                             ├ hint or long poll ▶ merge orders
//!                                                             └ every hour: clean up
//! SIGTERM ▶ no new jobs ▶ each job: stop, checkpoint, release ▶ of a pool: leave ▶ exit
//! of a pool: drained by the coordinator ▶ jobs end ▶ leave ▶ exit
//! ```

mod accounts;
mod backoff;
mod checks;
mod closed;
mod comments;
mod config;
mod detect;
mod ending;
mod enroll;
mod error;
mod final_report;
mod folder;
mod grant;
mod health;
mod heartbeat;
mod inside;
mod intake;
mod job;
mod lease;
mod leave;
mod log;
mod machine;
mod merges;
mod meter;
mod place;
mod places;
mod plan;
mod raw_events;
mod recover;
mod remote;
mod result;
mod roster;
mod save;
mod secrets;
mod sweep;
mod talk;
mod work;

pub use config::AgentConfig;
pub use enroll::take_over;
pub use error::AgentError;
pub use intake::BrokerConnector;
pub use sweep::{CoordinatorStages, DISK_FLOOR_BYTES};

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_api::client::Client;
use giga_api::wire::FactoryInstance;
use giga_domain::{FactoryId, Usd};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engines::{self, Secret, ToolServer, Watchdog};
use crate::sandbox::{Sandbox, SandboxMode};
use crate::workspace::Workspace;

/// How long running jobs wait for the intake to end. If seats became free while the coordinator still believes that this
/// factory takes jobs, it would fill them again.
const INTAKE_ENDS: Duration = Duration::from_secs(3);

/// What every task of the agent needs.
struct Shared {
    client: Client,
    id: FactoryId,
    base: PathBuf,
    workspace: Workspace,
    engines: roster::Roster,
    accounts: accounts::Accounts,
    health: health::MachineHealth,
    machine: machine::Machine,
    cost_per_hour: Option<Usd>,
    can_clone: bool,
    instance: FactoryInstance,
    /// Another process became this factory, in the coordinator's words.
    replaced: OnceLock<String>,
    seat_limit: u32,
    seats: Arc<Semaphore>,
    watchdog: Watchdog,
    checkpoint_every: Duration,
    /// Never to be shown, whatever an engine prints.
    secrets: Vec<Secret>,
    jobs: TaskTracker,
    running: intake::Running,
    pending_claim: intake::PendingClaim,
    /// Stops every job: checkpoint, then release. Cancelled after the intake has ended.
    drain: CancellationToken,
    delivery: intake::DeliveryModes,
    streams: intake::Streams,
    broker: Option<Arc<dyn BrokerConnector>>,
    /// The certificate by which jobs know the coordinator, where it has one of a private CA.
    ca_cert: Option<PathBuf>,
    /// What jobs are offered about themselves.
    job_tools: Option<ToolServer>,
    /// The coordinator has learned of a new capability of this factory.
    new_capabilities: Notify,
    /// There may be merge orders to take.
    merge_hint: Notify,
    /// The answer to a heartbeat may have changed: send one now.
    heartbeat_hint: Notify,
    /// Held while a heartbeat is being sent.
    heartbeat_lock: Mutex<()>,
    /// One run of a job at a time: all of them work at the same path.
    places: places::Places,
    /// Of a factory that comes and goes with the work.
    membership: Option<leave::Membership>,
}

/// Runs until `stop`, then drains: every running job is saved and released.
pub async fn run(config: AgentConfig, stop: CancellationToken) -> Result<(), AgentError> {
    run_with_ready(config, stop, || {}).await
}

/// The same; `ready` is called once the coordinator knows the factory.
pub async fn run_with_ready(
    config: AgentConfig,
    stop: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), AgentError> {
    let _base = folder::hold(&config.base)?;
    leave::forget_note(&config.base);
    let sandbox = sandbox(&config).await?;
    let (client, token) = enroll::client(&config).await?;
    let ca_cert = folder::keep_ca_cert(&config.base, config.trust.ca_cert.as_deref())?;
    let workspace = Workspace::open(config.base.clone(), config.git.clone())?;
    let mut of_engines = config.engines.clone();
    if of_engines.scratch.is_none() {
        of_engines.scratch = Some(folder::fresh_scratch(&config.base)?);
    }
    let mut all = engines::engines(&of_engines, &sandbox);
    all.retain(|engine| config.commands || engine.name() != plan::SHELL);
    let roster = roster::Roster::new(all);
    roster.first_look().await;
    let machine = machine::Machine::detect(sandbox, config.capabilities).await;
    let instance = folder::instance_id(&config.base)?;
    let shared = Arc::new(Shared {
        client,
        id: config.id.clone(),
        base: config.base.clone(),
        workspace,
        engines: roster,
        accounts: accounts::Accounts::open(&config.base, &instance, accounts::now()),
        health: health::MachineHealth::new(config.base.clone()),
        machine,
        cost_per_hour: config.cost_per_hour,
        can_clone: config.can_clone,
        instance: FactoryInstance { id: instance, host: folder::host() },
        replaced: OnceLock::new(),
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
        pending_claim: intake::PendingClaim::default(),
        drain: if config.once { stop.clone() } else { CancellationToken::new() },
        delivery: intake::DeliveryModes::default(),
        streams: intake::Streams { url: config.url, token, trust: config.trust },
        broker: config.broker,
        ca_cert,
        job_tools: config.job_tools,
        new_capabilities: Notify::new(),
        merge_hint: Notify::new(),
        heartbeat_hint: Notify::new(),
        heartbeat_lock: Mutex::default(),
        places: places::Places::default(),
        membership: config.pool.map(leave::Membership::new),
    });
    // Waited for, and before anything is touched that another process under this name may hold: without it nothing can be
    // claimed either.
    heartbeat::until_accepted(&shared, config.take_over, &stop).await?;
    recover::settle_leftovers(&shared).await;
    inside::clear(&shared.base);
    let beating = tokio::spawn(heartbeat::run(shared.clone(), stop.clone()));
    let sweeping = tokio::spawn(sweep::run(shared.clone(), stop.clone()));
    let looking = tokio::spawn(roster::run(shared.clone(), stop.clone()));
    let leaving = tokio::spawn(leave::when_drained(shared.clone(), stop.clone()));
    if !stop.is_cancelled() {
        ready();
    }
    let taken = if config.once {
        intake::once(&shared).await
    } else {
        let merging = tokio::spawn(merges::run(shared.clone(), stop.clone()));
        let _late = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(drain_late(
            stop.clone(),
            shared.drain.clone(),
        )));
        let taken = intake::run(&shared, &stop).await;
        stop.cancel();
        shared.drain.cancel();
        let _ = merging.await;
        taken
    };
    shared.jobs.close();
    shared.jobs.wait().await;
    stop.cancel();
    let _ = tokio::join!(beating, sweeping, looking, leaving);
    match shared.replaced.get() {
        Some(by) => Err(AgentError::NameInUse(by.clone())),
        None => leave::at_the_end(&shared, taken).await,
    }
}

/// Before anything is promised to the coordinator.
async fn sandbox(config: &AgentConfig) -> Result<Sandbox, AgentError> {
    let mut wanted = config.sandbox.clone();
    wanted.network.coordinator = Some(config.url.clone());
    wanted.hide.push(config.base.canonicalize().map_err(AgentError::file(&config.base))?);
    let sandbox = Sandbox::start(wanted).await?;
    match (config.sandbox.mode, sandbox.missing()) {
        (_, None) => tracing::info!("sandbox: {}", sandbox.describe()),
        (SandboxMode::Off, Some(_)) => tracing::info!("sandbox: {}", sandbox.describe()),
        (_, Some(_)) => tracing::warn!("sandbox: {}", sandbox.describe()),
    }
    Ok(sandbox)
}

/// For an intake that cannot end in time, such as one that waits for a coordinator that hangs.
async fn drain_late(stop: CancellationToken, drain: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(INTAKE_ENDS).await;
    drain.cancel();
}
