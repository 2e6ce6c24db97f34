//! What each command does. They talk to the API, look at this machine where that is the question, and print; none of
//! them knows a store.

mod account;
mod artifact;
mod ask;
mod ask_people;
mod broker;
mod budget;
mod capability;
mod context;
mod dag;
pub(crate) mod demo;
mod doctor;
mod effects;
mod engine;
mod factory;
mod flags;
mod fleet;
mod gc;
mod inbox;
mod job;
mod mcp;
mod people;
mod pool;
mod product;
mod profile;
mod review;
mod sandbox;
mod secret;
mod settings;
mod token;
mod top;
mod topic;
mod web;

use clap::CommandFactory;

use crate::args::{Cli, Command, ConfigCommand};
use crate::config::Settings;
use crate::exit::CliError;
use context::Context;

type Done = Result<(), CliError>;

pub(crate) async fn run(command: Command, settings: Settings) -> Done {
    let context = Context::new(settings)?;
    match command {
        Command::Web(args) => web::web(args, &context).await,
        Command::Top => top::top(&context).await,
        Command::Mcp(args) => mcp::mcp(&args, &context).await,
        Command::Job(command) => job::run(command, &context).await,
        Command::Ask(args) => ask_people::ask(args, &context).await,
        Command::Dag(args) => dag::dag(&args.job, &context).await,
        Command::Review(args) => review::review(args, &context).await,
        Command::Factory(command) => factory::run(command, &context).await,
        Command::Engine(command) => engine::run(command, &context).await,
        Command::Account(command) => account::run(command, &context).await,
        Command::Pool(command) => pool::run(command, &context).await,
        Command::Capability(command) => capability::run(command, &context).await,
        Command::Sandbox(command) => sandbox::run(command, &context).await,
        Command::Broker(command) => broker::run(command, &context).await,
        Command::Artifact(command) => artifact::run(command, &context).await,
        Command::Topic(command) => topic::run(command, &context).await,
        Command::Budget(command) => budget::run(command, &context).await,
        Command::Product(command) => product::run(command, &context).await,
        Command::Profile(command) => profile::run(command, &context).await,
        Command::Secret(command) => secret::run(command, &context).await,
        Command::Webhook(command) => effects::webhook(command, &context).await,
        Command::Effects(command) => effects::effects(command, &context).await,
        Command::Tracker(command) => effects::tracker(command, &context).await,
        Command::Login => people::login(&context).await,
        Command::Logout => people::logout(&context).await,
        Command::Whoami => people::whoami(&context).await,
        Command::Audit(args) => people::audit(args, &context).await,
        Command::Token(command) => token::run(command, &context).await,
        Command::Key(command) => token::key(command, &context).await,
        Command::Flags(command) => flags::run(command, &context).await,
        Command::Events(args) => fleet::events(args, &context).await,
        Command::Alerts => fleet::alerts(&context).await,
        Command::Metrics => fleet::metrics(&context).await,
        Command::Doctor => doctor::doctor(&context).await,
        Command::Gc(args) => gc::gc(args, &context).await,
        Command::Inbox(args) => inbox::inbox(args, &context).await,
        Command::Config(ConfigCommand::Show) => settings::show(&context),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "giga", &mut script);
            context.output.text(&String::from_utf8_lossy(&script))
        }
        Command::Version => context.output.text(concat!("giga ", env!("CARGO_PKG_VERSION"))),
        Command::Up(_) | Command::Serve(_) | Command::Demo(_) => {
            Err(CliError::failed("`up`, `serve` and `demo` are not client commands"))
        }
    }
}
