//! Coding engines behind one trait: headless, watched, and killed with everything they started.
//!
//! An engine never sees a secret of the coordinator or the factory, never gets a job field through a shell, and
//! never outlives its run.

mod acp;
mod config;
mod detect;
mod engine;
mod events;
mod login;
mod prices;
mod process;
mod programs;
mod redact;
mod remote;
mod sink;
mod tool_server;

use std::sync::Arc;

pub use acp::AcpConfig;
pub use config::{
    CommandConfig, DevinConfig, EnginesConfig, EventFormat, ProgramConfig, RemoteConfig, UrlPrefix,
};
pub use detect::{Detected, capabilities, detect, detect_each};
pub use engine::{
    Answer, Asking, Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox,
    Input, JobSecret, LeftRun, Preflight, Question, QuotaWindow, RemoteRepository, Secret, Stream, Talked,
    Usage, Watchdog,
};
pub use events::Transcript;
pub use login::Login;
pub use prices::Price;
pub use process::{HostEnvironment, RUN_MARKER, kill_run};
pub use programs::Program;
pub use tool_server::ToolServer;
pub(crate) use tool_server::{HomeSettings, merge};

use crate::sandbox::Sandbox;
use acp::Acp;
use prices::PriceTable;
use programs::{Configured, ProgramEngine, Recipe, Shell, Template};
use remote::RemoteEngine;

/// All engines that the configuration does not switch off, whether or not they are installed.
pub fn engines(config: &EnginesConfig, sandbox: &Sandbox) -> Vec<Arc<dyn Engine>> {
    engines_in(config, HostEnvironment::of_this_process(), sandbox)
}

/// The same, in an environment of the caller's choice.
pub fn engines_in(config: &EnginesConfig, host: HostEnvironment, sandbox: &Sandbox) -> Vec<Arc<dyn Engine>> {
    let (host, prices) = (Arc::new(host), PriceTable::new(&config.prices));
    let factory = EngineFactory { config, host, prices, sandbox };
    let mut all = vec![factory.engine(Shell)];
    all.extend(Program::ALL.iter().map(|&program| {
        let config = config.programs.get(&program).cloned().unwrap_or_default();
        factory.engine(Configured { program, config })
    }));
    all.push(Arc::new(RemoteEngine::devin(config.devin.clone(), &factory.host)));
    // One of the operator's with the name of a built-in engine stands in for it.
    all.retain(|engine| {
        let name = engine.name();
        ![config.commands.contains_key(name), config.remote.contains_key(name), config.acp.contains_key(name)]
            .contains(&true)
    });
    all.extend(config.commands.iter().map(|(name, command)| -> Arc<dyn Engine> {
        factory.engine(Template { name: name.clone(), config: command.clone() })
    }));
    all.extend(config.acp.iter().map(|(name, agent)| -> Arc<dyn Engine> {
        factory.engine(Acp { name: name.clone(), config: agent.clone() })
    }));
    all.extend(config.remote.iter().map(|(name, remote)| -> Arc<dyn Engine> {
        Arc::new(RemoteEngine::contract(name, remote.clone(), &factory.host))
    }));
    all.retain(|engine| !config.disabled.iter().any(|name| name == engine.name()));
    all
}

struct EngineFactory<'a> {
    config: &'a EnginesConfig,
    host: Arc<HostEnvironment>,
    prices: PriceTable,
    sandbox: &'a Sandbox,
}

impl EngineFactory<'_> {
    fn engine(&self, recipe: impl Recipe + 'static) -> Arc<dyn Engine> {
        Arc::new(ProgramEngine {
            recipe: Box::new(recipe),
            host: Arc::clone(&self.host),
            prices: self.prices.clone(),
            scratch: self.config.scratch.clone(),
            sandbox: self.sandbox.clone(),
            obeys_repository: self.config.repository_settings,
        })
    }
}
