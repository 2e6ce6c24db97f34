//! The composition root of a factory: settings become the agent's configuration, signals become a drain.
//!
//! Nothing is decided here about jobs; that is the agent's.

mod base;
mod broker;
mod pool;
mod repos;
mod sandbox;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giga_domain::FactoryId;
use giga_factory::agent::{self, AgentConfig, AgentError};
use giga_factory::engines::{ToolServer, Watchdog};
use giga_factory::workspace::{GitPolicy, Protocol};
use tokio_util::sync::CancellationToken;

use crate::args::RunArgs;
use crate::config::{Key, Origin, Settings};
use crate::exit::CliError;
use crate::output::{announce, progress, say};
use crate::signals::Signals;

pub(crate) use repos::lines as repo_lines;
pub(crate) use sandbox::{INIT as SANDBOX_INIT, config as sandbox_config};

/// A factory that ends with its parent takes no longer than this to save and hand back what it runs.
const LEAVE_WITHIN: Duration = Duration::from_secs(25);

pub(crate) async fn run(args: &RunArgs, settings: &Settings) -> Result<(), CliError> {
    let mut signals = Signals::listen()?;
    let mut config = AgentConfig { once: args.once, take_over: args.take_over, ..agent_config(settings)? };
    let found = settings.token()?.map(|token| token.origin);
    if args.until_stdin_ends && matches!(found, Some(Origin::DataFolder(_))) {
        // `giga up` has left a token for it; the admin's, which lies about, is none of its business.
        config.enroll_with = None;
    }
    if let Some(pool) = &args.pool {
        pool::join(&mut config, pool, settings)?;
    }
    if !args.until_stdin_ends {
        for line in repos::lines(&config.git).await {
            say(&line);
        }
    }
    let parent_gone = if args.until_stdin_ends { end_of_stdin() } else { CancellationToken::new() };
    let stop = CancellationToken::new();
    let is_ready = Arc::new(AtomicBool::new(false));
    let agent = async {
        // Held until the agent has ended.
        let _lock = base::lock(&config.base, args.until_stdin_ends).await?;
        Box::pin(run_agent(config, stop.clone(), is_ready.clone())).await
    };
    tokio::pin!(agent);
    tokio::select! {
        ended = &mut agent => return ended,
        () = signals.next() => {}
        () = parent_gone.cancelled() => {}
    }
    if !is_ready.load(Ordering::Acquire) {
        // It holds nothing yet, so there is nothing to hand back.
        return Ok(());
    }
    tracing::info!("shutting down: checkpointing and releasing running jobs");
    progress("shutting down; press Ctrl-C again to stop at once");
    stop.cancel();
    tokio::select! {
        ended = &mut agent => ended,
        () = signals.next() => Err(CliError::Interrupted),
        () = tokio::time::sleep(LEAVE_WITHIN), if args.until_stdin_ends => {
            Err(CliError::failed("shutting down took too long; jobs that were not released are settled at the next start"))
        }
    }
}

async fn run_agent(
    config: AgentConfig,
    stop: CancellationToken,
    is_ready: Arc<AtomicBool>,
) -> Result<(), CliError> {
    let id = config.id.clone();
    let ran = async {
        if config.take_over {
            agent::take_over(&config).await?;
        }
        agent::run_with_ready(config, stop, || {
            is_ready.store(true, Ordering::Release);
            ready(&id);
        })
        .await
    };
    ran.await.map_err(|error| match error {
        AgentError::Client(error) => CliError::Client(error),
        refused @ AgentError::PoolRefused { .. } => CliError::PoolRefused(refused.to_string()),
        other => CliError::failed(other.to_string()),
    })
}

fn ready(id: &FactoryId) {
    tracing::info!(factory = %id, "ready");
    // Nobody has to wait for it.
    let _ = announce(&format!("ready factory {id}"));
}

/// What the settings say. The first start enrolls with whatever token this `giga` would use.
pub(crate) fn agent_config(settings: &Settings) -> Result<AgentConfig, CliError> {
    let url = settings.url();
    // Needed for the first start only: one that has a token of its own goes without.
    let enroll_with = match settings.token_for(&url) {
        Err(CliError::NotItsToken { .. } | CliError::NotRunning { .. }) => None,
        token => token?.map(|token| token.secret.reveal().to_owned()),
    };
    let id = settings.factory_id()?.value;
    let git = git_policy(settings)?;
    Ok(AgentConfig {
        url: url.value,
        trust: settings.trust()?,
        base: settings.factory_base(&id).value,
        id,
        enroll_with,
        pool: None,
        seats: settings.seats()?.value,
        capabilities: settings.capabilities()?.value,
        cost_per_hour: settings.cost_per_hour()?.map(|cost| cost.value),
        engines: settings.engines().value,
        sandbox: sandbox::config(settings)?,
        commands: settings.commands()?.value,
        watchdog: Watchdog {
            idle: settings.engine_idle()?.value,
            wall: settings.engine_wall()?.value,
            ..Watchdog::default()
        },
        checkpoint_every: settings.checkpoint_every()?.value,
        // Without a URL that it may clone from it would be given jobs that it cannot do.
        can_clone: !git.allowed.is_empty(),
        git,
        job_tools: Some(job_tools()?),
        broker: match settings.factory_broker()? {
            Some(broker) => {
                let access = settings.broker_access(&broker.value)?;
                Some(broker::connector(broker.value, access))
            }
            None => None,
        },
        take_over: false,
        once: false,
    })
}

/// This program serves them, inside the job.
fn job_tools() -> Result<ToolServer, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("cannot find the giga program: {error}")))?;
    Ok(ToolServer {
        name: giga_mcp::SERVER_NAME,
        program,
        args: vec!["mcp", "--job"],
        tools: giga_mcp::job_tool_names().map(str::to_owned).collect(),
    })
}

pub(crate) fn git_policy(settings: &Settings) -> Result<GitPolicy, CliError> {
    let repos = settings.repos();
    if let Some(repos) = &repos
        && !repos.value.is_dir()
    {
        let wrong = format!("{}: {} is not a folder", repos.origin, repos.value.display());
        return Err(CliError::Config(wrong));
    }
    let mut policy = GitPolicy {
        allowed: settings.git_allow().value,
        repos: repos.map(|repos| repos.value),
        update_checkouts: settings.update_checkouts()?.value,
        ..GitPolicy::default()
    };
    // Folders of this machine only where somebody named them; those under `repos` need no permission.
    if policy.allowed.iter().any(|prefix| prefix.starts_with("file:")) {
        policy.protocols.push(Protocol::File);
    }
    policy
        .check_prefixes()
        .map_err(|error| CliError::Config(format!("{}: {error}", settings.git_allow().origin)))?;
    Ok(policy)
}

/// The settings of a factory that `giga up` hands on to its factories.
pub(crate) const HANDED_ON: [Key; 22] = [
    Key::AllowPlainHttp,
    Key::CaCert,
    Key::Seats,
    Key::Capabilities,
    Key::CostPerHour,
    Key::Repos,
    Key::UpdateCheckouts,
    Key::GitAllow,
    Key::CheckpointEvery,
    Key::EngineIdle,
    Key::EngineWall,
    Key::Sandbox,
    Key::SandboxRead,
    Key::SandboxWrite,
    Key::SandboxMemory,
    Key::SandboxProcesses,
    Key::SandboxOpenFiles,
    Key::SandboxFileSize,
    Key::SandboxDisk,
    Key::Network,
    Key::NetworkHosts,
    Key::Commands,
];

/// Cancelled when whoever holds the other end of stdin is gone, however it went.
fn end_of_stdin() -> CancellationToken {
    let gone = CancellationToken::new();
    let token = gone.clone();
    // A thread of its own: the runtime waits for its blocking tasks, and this one may never end.
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while std::io::stdin().read(&mut buffer).is_ok_and(|count| count > 0) {}
        token.cancel();
    });
    gone
}
