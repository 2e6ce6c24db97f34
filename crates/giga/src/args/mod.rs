//! What can be typed. Only shapes and help texts: nothing is read, resolved or judged here.
//!
//! Settings that also come from the environment or a file are plain options without a default; `config` decides.

mod artifact;
mod demo;
mod effects;
mod fleet;
mod job;
mod product;
mod topic;
mod web;

use std::path::PathBuf;
use std::str::FromStr;

pub(crate) use artifact::{ArtifactCommand, GetArtifactArgs};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
pub(crate) use demo::DemoArgs;
pub(crate) use effects::{EffectsCommand, ListEffectsArgs, OutsideArgs, TrackerCommand, WebhookCommand};
pub(crate) use fleet::{FactoryArg, FactoryCommand, FlagsCommand, RunArgs, TokenCommand, WorkArgs};
pub(crate) use job::{
    ActArgs, EventsArgs, InitArgs, JobArg, JobCommand, ListArgs, LogsArgs, SubmitArgs, WaitArgs,
};
pub(crate) use product::{
    Amount, BudgetCommand, BurndownArgs, CorrectBudgetArgs, PauseBudgetArgs, ProductCommand, ProfileCommand,
    SetBudgetArgs, SetProductArgs,
};
use strum::VariantArray;
pub(crate) use topic::{EnqueueArgs, GateArgs, TopicArg, TopicCommand, TopicJobsArgs};
pub(crate) use web::WebArgs;

/// One of the words of an enum of the wire, which help and completion list.
fn word<T>() -> impl TypedValueParser<Value = T>
where
    T: Clone + FromStr<Err = strum::ParseError> + Into<&'static str> + Send + Sync + VariantArray,
{
    let words = T::VARIANTS.iter().map(|value| -> &'static str { value.clone().into() });
    PossibleValuesParser::new(words).try_map(|text| text.parse::<T>())
}

const EXIT_CODES: &str = "\
Exit codes:
  0 ok · 1 failed · 2 usage · 3 not found · 4 not allowed · 5 conflict · 6 rejected at review
  7 budget exceeded · 124 timed out · 130 interrupted";

const FIRST_STEPS: &str = "\
First steps:
  giga demo                       watch a job go from a manifest to a merge
  giga up                         start a coordinator and a factory on this machine
  giga job init hello.md          write a manifest to start from
  giga job submit hello.md        hand it in
  giga job explain hello          see where it would run, or why it waits";

/// Runs coding jobs on a fleet of machines.
#[derive(Debug, Parser)]
#[command(name = "giga", version, after_help = format!("{FIRST_STEPS}\n\n{EXIT_CODES}"), max_term_width = 110)]
#[command(propagate_version = false, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Where the coordinator is [env: GIGA_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File with the token to use [env: GIGA_TOKEN_FILE; GIGA_TOKEN holds the token itself]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Product to work in [env: GIGA_PRODUCT]
    #[arg(long, global = true, value_name = "PRODUCT")]
    pub(crate) product: Option<String>,
    /// table, json, jsonl or name [env: GIGA_OUTPUT] [default: table]
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub(crate) output: Option<String>,
    /// Folder of the coordinator on this machine [env: GIGA_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// What to log, such as info or giga_store=debug [env: GIGA_LOG]
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// text or json [env: GIGA_LOG_FORMAT] [default: text]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch a real job go from a manifest to a merge; needs nothing and leaves nothing behind
    #[command(after_help = "\
Examples:
  giga demo
  giga demo --fleet

It makes a small repository with a failing test and starts a coordinator and a factory of its own in
a fresh folder. The last lines, on stdout, name the merge commits.")]
    Demo(DemoArgs),
    /// Start a coordinator and factories on this machine, with everything in one folder
    #[command(after_help = "\
Examples:
  giga up
  giga up --repos ~/code --factories 2
  giga up --data ./playground --listen 127.0.0.1:0 --factories 0

The factories are called local-1, local-2, …; they end with this command, however it ends. With
--repos every repository in that folder can be named in a manifest: repo: NAME.")]
    Up(UpArgs),
    /// Run a coordinator as a service
    #[command(after_help = "\
Examples:
  giga serve
  giga serve --store postgres://giga@db/giga --listen 0.0.0.0:7717 --log-format json
  giga serve --store postgres://giga@db/giga --broker nats://nats:4222

Several coordinators may share one PostgreSQL: each takes calls and streams, one of them dispatches.

The first start writes an admin token to DIR/admin.token. When it is ready, it says so on stdout:
  ready http://127.0.0.1:7717")]
    Serve(ServeArgs),
    /// Print the address of the page, with your token in it
    #[command(after_help = "\
Examples:
  giga web
  xdg-open \"$(giga web)\"
  giga web --no-token

The token stands behind the #, which browsers do not send to any server; the page takes it out of the
address at once and keeps it until the tab is closed.")]
    Web(WebArgs),
    /// Watch and steer the fleet in the terminal: board, factories, alerts, jobs, budgets, topics
    #[command(after_help = "\
Examples:
  giga top
  giga top --product demo

`?` shows the keys that work where you are, `/` filters, `:` jumps, `q` quits. With a viewer's token it
is read-only.")]
    Top,
    /// Submit, watch and steer jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Draw a job and all below it: who waits for whom, and how far they are
    #[command(after_help = "\
Examples:
  giga dag release-7
  giga dag release-7 -o json | jq .progress.percent")]
    Dag(JobArg),
    /// Look at a job in review, or say what you think of it
    #[command(after_help = "\
Examples:
  giga review fix-greeting
  giga review fix-greeting --approve -m 'reads well'
  giga review fix-greeting --request-changes -m 'the test is missing'
  giga review fix-greeting --request --quorum 2 --reviewers ana,bo,cy

Who reviews is the label of the token; only an admin may speak for somebody else, with --as.")]
    Review(ReviewArgs),
    /// Run, enrol, watch and retire the machines that run jobs
    #[command(subcommand)]
    Factory(FactoryCommand),
    /// Files that the runs of jobs left: list, fetch, link, remove
    #[command(subcommand)]
    Artifact(ArtifactCommand),
    /// Plain jobs for handlers in other processes: watch, steer and feed their topics
    #[command(subcommand)]
    Topic(TopicCommand),
    /// What products may spend: ceilings, what was spent, and the switch that stops it
    #[command(subcommand)]
    Budget(BudgetCommand),
    /// How much products count, and which repositories they own
    #[command(subcommand)]
    Product(ProductCommand),
    /// Personas that manifests can name, with what goes with them
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Tell addresses of yours what happens, as it happens
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// What webhooks and trackers are told, and how that goes
    #[command(subcommand)]
    Effects(EffectsCommand),
    /// Make jobs of items in a tracker, and tell those where their jobs stand
    #[command(subcommand)]
    Tracker(TrackerCommand),
    /// Make and revoke the tokens of people and programs
    #[command(subcommand)]
    Token(TokenCommand),
    /// See and switch what can be changed while it runs
    #[command(subcommand)]
    Flags(FlagsCommand),
    /// What happened in the whole fleet
    #[command(after_help = "\
Examples:
  giga events
  giga events -f -o jsonl | jq .type")]
    Events(FeedArgs),
    /// What somebody should look at
    Alerts,
    /// How much waits, runs and is free
    Metrics,
    /// Say what this machine has, what is missing, and what to do about it
    #[command(after_help = "\
Examples:
  giga doctor
  giga doctor -o json

Exit codes: 0 jobs can run here · 1 something that every job needs is missing")]
    Doctor,
    /// Remove what ended jobs left on this machine: work folders, merged branches, saved work
    #[command(after_help = "\
Examples:
  giga gc --dry-run
  giga gc --base /srv/factory

Nothing unmerged goes, nothing that a running factory holds, and nothing of a job that the
coordinator does not know to have ended. Factories do the same by themselves every hour.")]
    Gc(GcArgs),
    /// Turn Markdown files that are dropped into a folder into jobs, and move them as the jobs go
    #[command(after_help = "\
Examples:
  giga inbox ~/agent-queue

A file in DIR/inbox becomes a job and moves through building, review, testing, shipped and failed as
its stage does. A file that is refused goes to failed with the reasons beside it.")]
    Inbox(InboxArgs),
    /// Settings and where each of them comes from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  giga completions bash > ~/.local/share/bash-completion/completions/giga
  giga completions zsh > ~/.zfunc/_giga")]
    Completions { shell: clap_complete::Shell },
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Where to listen; port 0 picks a free one [env: GIGA_LISTEN] [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// How many local factories; 0 for a coordinator alone [env: GIGA_FACTORIES] [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(crate) factories: Option<String>,
    /// Where artifacts and logs go: a folder, s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX
    /// [env: GIGA_ARTIFACTS] [default: DIR]
    #[arg(long, value_name = "PLACE")]
    pub(crate) artifacts: Option<String>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// The folder with inbox and its siblings; what is missing is made
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Say what would go, and touch nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The folder of one factory [default: every factory in the data folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) base: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// sqlite:PATH, postgres://USER@HOST/DB or memory: [env: GIGA_STORE] [default: DIR/giga.db]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// embedded:, postgres://USER@HOST/DB or nats://HOST [env: GIGA_BROKER] [default: the store, where it is
    /// PostgreSQL, else embedded:]
    #[arg(long, value_name = "URL")]
    pub(crate) broker: Option<String>,
    /// Where artifacts and logs go: a folder, s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX
    /// [env: GIGA_ARTIFACTS] [default: DIR]
    #[arg(long, value_name = "PLACE")]
    pub(crate) artifacts: Option<String>,
    /// Where to listen; port 0 picks a free one [env: GIGA_LISTEN] [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Its id, the end of its id, or its name
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    /// A comment for whoever reads it next
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// In whose name, where it is not the token's; admins only
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) reviewer: Option<String>,
    /// With --request: how many have to approve [default: 1]
    #[arg(long, value_name = "COUNT", requires = "request")]
    pub(crate) quorum: Option<u32>,
    /// With --request: who may [default: anyone]
    #[arg(long, value_delimiter = ',', value_name = "NAME", requires = "request")]
    pub(crate) reviewers: Vec<String>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct VerdictArgs {
    /// Good as it is
    #[arg(long)]
    pub(crate) approve: bool,
    /// Back to work on the same branch
    #[arg(long)]
    pub(crate) request_changes: bool,
    /// Not to be had in this form
    #[arg(long)]
    pub(crate) reject: bool,
    /// Ask for a review before the job goes on
    #[arg(long)]
    pub(crate) request: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedArgs {
    /// Go on with what happens from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// What came after this position [default: the latest, or with -f what comes]
    #[arg(long, value_name = "POS")]
    pub(crate) after: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every setting, its value and its origin
    #[command(after_help = "\
A flag goes before the environment, that before giga.toml, that before the default. giga.toml is
looked for in the working folder and upwards, in ~/.config/gigafactory, and in the data folder.

Without settings `giga` talks to the coordinator on this machine: its data folder, by default
~/.local/share/gigafactory, holds its address and a token.")]
    Show,
}
