//! Coding engines behind one trait: headless, watched, and killed with everything they started.
//!
//! An engine never sees a secret of the coordinator or the factory, never gets a job field through a shell, and
//! never outlives its run.

mod config;
mod detect;
mod devin;
mod engine;
mod events;
mod prices;
mod process;
mod programs;
mod redact;
mod sink;
mod tool_server;

use std::sync::Arc;

pub use config::{CommandConfig, DevinConfig, EnginesConfig, EventFormat, ProgramConfig};
pub use detect::{Detected, capabilities, detect};
pub use engine::{
    Answer, Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest, Inbox, Input,
    JobSecret, Preflight, Question, Secret, Stream, Talked, Usage, Watchdog,
};
pub use prices::Price;
pub use process::{HostEnvironment, RUN_MARKER, kill_run};
pub use programs::Program;
pub use tool_server::ToolServer;
pub(crate) use tool_server::{HomeSettings, merge};

use crate::sandbox::Sandbox;
use prices::PriceTable;
use programs::{Configured, ProgramEngine, Recipe, Shell, Template};

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
    all.push(Arc::new(devin::Devin::new(config.devin.clone(), &factory.host)));
    // A template with the name of a built-in engine stands in for it.
    all.retain(|engine| !config.commands.contains_key(engine.name()));
    all.extend(config.commands.iter().map(|(name, command)| -> Arc<dyn Engine> {
        factory.engine(Template { name: name.clone(), config: command.clone() })
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
