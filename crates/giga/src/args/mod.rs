//! What can be typed. Only shapes and help texts: nothing is read, resolved or judged here.
//!
//! Settings that also come from the environment or a file are plain options without a default; `config` decides.

mod artifact;
mod broker;
mod demo;
mod effects;
mod engine;
mod fleet;
mod job;
mod people;
mod product;
mod sandbox;
mod secret;
mod topic;
mod web;

use std::path::PathBuf;
use std::str::FromStr;

pub(crate) use artifact::{ArtifactCommand, GetArtifactArgs};
pub(crate) use broker::{BrokerCommand, NatsConfigArgs, ServiceBusTokenArgs};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
pub(crate) use demo::DemoArgs;
pub(crate) use effects::{EffectsCommand, ListEffectsArgs, OutsideArgs, TrackerCommand, WebhookCommand};
pub(crate) use engine::{EngineCommand, EngineTryArgs};
pub(crate) use fleet::{
    AccountCommand, CapabilityCommand, FactoryArg, FactoryCommand, FlagsCommand, KeyCommand, PoolArg,
    PoolCommand, RunArgs, SandboxArgs, SetPoolArgs, TokenCommand, WorkArgs,
};
pub(crate) use job::{
    ActArgs, AnswerArgs, AskArgs, EventsArgs, InitArgs, JobArg, JobCommand, ListArgs, LogsArgs, SayArgs,
    ShipArgs, SubmitArgs, WaitArgs,
};
pub(crate) use people::{AuditArgs, SignInArgs};
pub(crate) use product::{
    Amount, BudgetCommand, BurndownArgs, CorrectBudgetArgs, PauseBudgetArgs, PolicyArgs, ProductCommand,
    ProfileCommand, SetBudgetArgs, SetProductArgs,
};
pub(crate) use sandbox::{SandboxCommand, TryArgs};
pub(crate) use secret::{SecretCommand, SetSecretArgs};
use strum::VariantArray;
pub(crate) use topic::{EnqueueArgs, PauseTopicArgs, TopicArg, TopicCommand, TopicJobsArgs};
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
  7 budget exceeded · 8 waiting for you · 9 nobody answered, default taken · 124 timed out
  130 interrupted";

const FIRST_STEPS: &str = "\
First steps:
  giga demo                       watch a job go from manifest to merge
  giga up                         start a coordinator and a factory on this machine
  giga job init hello.md          write a manifest to start from
  giga job submit hello.md        submit it
  giga job explain hello          see where it runs, or what it is waiting for";

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
    /// Address of the coordinator [env: GIGA_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File to read the token from [env: GIGA_TOKEN_FILE; GIGA_TOKEN holds the token itself]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Send the token over plain HTTP to another machine, where everyone on the way can read it
    /// [env: GIGA_ALLOW_PLAIN_HTTP]
    #[arg(long, global = true)]
    pub(crate) allow_plain_http: bool,
    /// Trust only these CA certificates, a PEM file, and not the system's [env: GIGA_CA_CERT]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Product to work in [env: GIGA_PRODUCT]
    #[arg(long, global = true, value_name = "PRODUCT")]
    pub(crate) product: Option<String>,
    /// Output format: table, json, jsonl or name [env: GIGA_OUTPUT] [default: table]
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub(crate) output: Option<String>,
    /// Data folder of the coordinator on this machine [env: GIGA_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Log filter, such as info or giga_store=debug [env: GIGA_LOG]
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Log format: text or json [env: GIGA_LOG_FORMAT] [default: text]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a real job from manifest to merge; needs no setup and leaves nothing behind
    #[command(after_help = "\
Examples:
  giga demo
  giga demo --fleet

It creates a small repository with a failing test and starts its own coordinator and factory in a
temporary folder. The last lines, on stdout, are the merge commits.")]
    Demo(DemoArgs),
    /// Start a coordinator and factories on this machine, with everything in one folder
    #[command(after_help = "\
Examples:
  giga up
  giga up --repos ~/code --factories 2
  giga up --data ./playground --listen 127.0.0.1:0 --factories 0

The factories are named local-1, local-2, … and stop when this command stops. With --repos, manifests
can name any repository in that folder: repo: NAME. Which ones there are, and where results will go,
is printed at the start.")]
    Up(Box<UpArgs>),
    /// Run a coordinator as a service
    #[command(after_help = "\
Examples:
  giga serve
  giga serve --store postgres://giga@db/giga --listen 0.0.0.0:7717 --log-format json
  giga serve --store postgres://giga@db/giga --broker nats://nats:4222

Several coordinators can share one PostgreSQL database: each serves calls and streams, one of them
dispatches.

The first start writes an admin token to DIR/admin.token. When it is ready, it prints this to stdout:
  ready http://127.0.0.1:7717")]
    Serve(Box<ServeArgs>),
    /// Print the address of the web page, with your token in it
    #[command(after_help = "\
Examples:
  giga web
  xdg-open \"$(giga web)\"
  giga web --no-token

The token comes after the #, which browsers never send to a server. The page removes it from the
address at once and keeps it until you close the tab.")]
    Web(WebArgs),
    /// Watch and control the fleet in the terminal: board, factories, alerts, jobs, budgets, topics
    #[command(after_help = "\
Examples:
  giga top
  giga top --product demo

`?` shows the keys of the current view, `/` filters, `:` jumps, `q` quits. With a viewer's token it
is read-only.")]
    Top,
    /// Serve the fleet's tools to a coding assistant over MCP, on standard input and output
    #[command(after_help = "\
Examples:
  claude mcp add giga -- giga mcp
  codex mcp add giga -- giga mcp
  giga mcp --url https://giga.example.com

Assistants start it themselves; it ends when they close it. It may do what your token may do. Over
HTTP, a coordinator serves the same tools at /mcp. See docs/mcp.md.")]
    Mcp(McpArgs),
    /// Submit, watch and manage jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Ask people something from inside a job, and wait for the answer
    #[command(after_help = "\
Examples:
  port=$(giga ask 'Which port should it listen on?' --option 8080 --option 9090 --default 8080)
  giga ask 'May I drop the table users?' --permission --option yes --option no

For scripts and engines that run inside a job. The answer is printed to stdout. The job shows as
`needs input` until somebody answers with `giga job answer`, on the page or in `giga top`. A question
that stays open for long frees the seat (`ask: {parkAfter: 10m}` in the manifest): the run is stopped, and the
next one goes on when there is an answer. The same question in a later run gets the answer at once,
so ask from the start.

Exit codes: 0 answered · 9 nobody answered in time, the default was taken · 1 there is no default")]
    Ask(AskArgs),
    /// Show a job and everything below it as a tree, with dependencies and progress
    #[command(after_help = "\
Examples:
  giga dag release-7
  giga dag release-7 -o json | jq .progress.percent")]
    Dag(JobArg),
    /// Show a job in review, or review it
    #[command(after_help = "\
Examples:
  giga review fix-greeting
  giga review fix-greeting --approve -m 'reads well'
  giga review fix-greeting --request-changes -m 'the test is missing'
  giga review fix-greeting --request --quorum 2 --reviewers ana,bo,cy

A review is signed with the label of your token; admins can review for somebody else with --as.")]
    Review(ReviewArgs),
    /// Run, enroll, list and remove factories, the machines that run jobs
    #[command(subcommand)]
    Factory(FactoryCommand),
    /// Try the coding engines of this machine
    #[command(subcommand)]
    Engine(EngineCommand),
    /// See the accounts that engines are signed in with, and how much quota they have left
    #[command(
        subcommand,
        after_help = "\
Examples:
  giga account list
  giga account show 3f9a0c1b77de

An account is a login of an engine, known by a fingerprint. The same login on two factories is one
account: when its provider's window is used up, no factory is given work for it until it opens again."
    )]
    Account(AccountCommand),
    /// Manage pools: factories that are started when there is work for them, and leave when there is none
    #[command(subcommand)]
    Pool(PoolCommand),
    /// See supply and demand of capabilities: who has what, who uses it and who waits for it
    #[command(
        subcommand,
        after_help = "\
Examples:
  giga capability list
  giga capability show gpu:a100

What is asked for and missing comes first. A factory declares what cannot be detected, with a number
where jobs use it up: `giga factory run --capability gpu:a100=2`. A job that asks for gpu:a100 uses
one of them while it runs, one that asks for gpu:a100=2 uses both."
    )]
    Capability(CapabilityCommand),
    /// See the sandbox that jobs run in
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Set up the broker that carries offers to factories
    #[command(subcommand)]
    Broker(BrokerCommand),
    /// List, download, link and remove the files that jobs uploaded
    #[command(subcommand)]
    Artifact(ArtifactCommand),
    /// Manage topics: queues of plain jobs for handlers in other processes
    #[command(subcommand)]
    Topic(TopicCommand),
    /// Limit what products may spend, see what they spent, and pause them
    #[command(subcommand)]
    Budget(BudgetCommand),
    /// Set each product's share of the fleet and the repositories it owns
    #[command(subcommand)]
    Product(ProductCommand),
    /// Manage profiles: personas and defaults that manifests can refer to
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Set, list, remove and rotate secrets that jobs can be given
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Send events to your own endpoints
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// List deliveries to webhooks and trackers, and retry them
    #[command(subcommand)]
    Effects(EffectsCommand),
    /// Create jobs from tracker items, and report their status back
    #[command(subcommand)]
    Tracker(TrackerCommand),
    /// Sign in to a coordinator with its identity provider
    #[command(after_help = "\
Examples:
  giga login --url https://giga.example.com
  giga whoami

It shows an address and a code to confirm in a browser, which may be on another machine. The token is kept
in sign-ins.json in your configuration folder, readable only by you, and is sent only to that coordinator.
GIGA_TOKEN and --token-file go before it.")]
    Login,
    /// Sign out: revoke the token of `giga login` and forget it
    Logout,
    /// Show whose token is in use, what it may do, and until when
    Whoami,
    /// Show who did what, and when
    #[command(after_help = "\
Examples:
  giga audit
  giga audit --actor ana --since 7d
  giga audit --kind token.issued,token.revoked,flag.changed -o json
  giga audit --job fix-greeting --actor '*'

Newest first. Without a filter it shows what people and programs did with their tokens. Needs the role
operator; what belongs to no product is shown to tokens for every product.")]
    Audit(AuditArgs),
    /// Create, list, renew and revoke tokens for people and programs
    #[command(subcommand)]
    Token(TokenCommand),
    /// Rotate the keys that links to artifacts and tokens of jobs are signed with
    #[command(subcommand)]
    Key(KeyCommand),
    /// List and change the settings of a running coordinator
    #[command(subcommand)]
    Flags(FlagsCommand),
    /// Show the events of the whole fleet
    #[command(after_help = "\
Examples:
  giga events
  giga events -f -o jsonl | jq .type")]
    Events(FeedArgs),
    /// List what needs attention
    Alerts,
    /// Show queued and running jobs and free seats
    Metrics,
    /// Check this machine: what it has, what is missing, and how to fix it
    #[command(after_help = "\
Examples:
  giga doctor
  giga doctor -o json

Exit codes: 0 jobs can run here · 1 something that every job needs is missing")]
    Doctor,
    /// Remove what finished jobs left: work folders on this machine, branches here and on the origins
    #[command(after_help = "\
Examples:
  giga gc --dry-run
  giga gc --base /srv/factory

It lists unmerged work and keeps it for 14 days after its job ended (giga flags set branch_retention_hours).
It keeps whatever a running factory uses, and everything of a job that the coordinator does not know to
have finished. Factories run the same cleanup every hour.")]
    Gc(GcArgs),
    /// Watch a folder: submit the Markdown files dropped into it, and move them as their jobs progress
    #[command(after_help = "\
Examples:
  giga inbox ~/agent-queue

A file in DIR/inbox becomes a job and moves to building, review, testing, shipped or failed along with
it. A file that is refused moves to failed, with the reasons next to it.")]
    Inbox(InboxArgs),
    /// Show settings and where they come from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a shell completion script
    #[command(after_help = "\
Examples:
  giga completions bash > ~/.local/share/bash-completion/completions/giga
  giga completions zsh > ~/.zfunc/_giga")]
    Completions { shell: clap_complete::Shell },
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Serve the tools of the job that this runs in, with the job's own token; engines start it so
    #[arg(long)]
    pub(crate) job: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Address to listen on; port 0 picks a free port [env: GIGA_LISTEN] [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) edge: EdgeArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Number of local factories; 0 starts only a coordinator [env: GIGA_FACTORIES] [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub(crate) factories: Option<String>,
    /// Where to store artifacts and logs: a folder, s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX
    /// [env: GIGA_ARTIFACTS] [default: DIR]
    #[arg(long, value_name = "PLACE")]
    pub(crate) artifacts: Option<String>,
    /// File with the keys that secrets of jobs are encrypted with [env: GIGA_SECRETS_KEY] [default: DIR/secrets.key]
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
    #[command(flatten)]
    pub(crate) sign_in: SignInArgs,
}

/// Who may connect to the coordinator besides its API, and how many.
#[derive(Debug, Args)]
pub(crate) struct EdgeArgs {
    /// Also serve /metrics, and nothing else, at this address: without a token and without TLS [env: GIGA_METRICS_LISTEN]
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics_listen: Option<String>,
    /// Connections that may be open at once [env: GIGA_MAX_CONNECTIONS] [default: 10000, or less where the limit of open
    /// files is low]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_connections: Option<String>,
}

/// How the coordinator proves itself, and keeps what is said secret.
#[derive(Debug, Args)]
pub(crate) struct TlsArgs {
    /// Serve HTTPS with this certificate chain, a PEM file; read again when it changes [env: GIGA_TLS_CERT]
    #[arg(long = "tls-cert", value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of --tls-cert, a PEM file [env: GIGA_TLS_KEY]
    #[arg(long = "tls-key", value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Serve HTTPS with a certificate for this domain, got and renewed by ACME; the CA must reach this listener at port 443
    /// of the domain [env: GIGA_TLS_ACME]
    #[arg(long = "tls-acme", value_name = "DOMAIN")]
    pub(crate) acme: Option<String>,
    /// Directory of the ACME server [env: GIGA_TLS_ACME_DIRECTORY] [default: Let's Encrypt]
    #[arg(long = "tls-acme-directory", value_name = "URL")]
    pub(crate) acme_directory: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    /// The folder that contains inbox; missing folders are created
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Show what would be removed, without removing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Clean up the factory in this folder only [default: every factory in the data folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) base: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// sqlite:PATH, postgres://USER@HOST/DB, memory: or, where it was built in, cosmos://… [env: GIGA_STORE] [default: DIR/giga.db]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// embedded:, postgres://USER@HOST/DB, nats://HOST or servicebus://NAMESPACE.servicebus.windows.net [env: GIGA_BROKER]
    /// [default: the store, where it is PostgreSQL, else embedded:]
    #[arg(long, value_name = "URL")]
    pub(crate) broker: Option<String>,
    /// File with the coordinator's key at NATS, as `giga broker nats-config` makes it [env: GIGA_NATS_KEY]
    #[arg(long, value_name = "FILE")]
    pub(crate) nats_key: Option<PathBuf>,
    /// File with a connection string of Azure Service Bus [env: GIGA_SERVICEBUS_CONNECTION] [default: what the environment says:
    /// AZURE_SERVICEBUS_CONNECTION_STRING, a federated token, else a managed identity]
    #[arg(long, value_name = "FILE")]
    pub(crate) servicebus_connection: Option<PathBuf>,
    /// Where to store artifacts and logs: a folder, s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or gs://BUCKET/PREFIX
    /// [env: GIGA_ARTIFACTS] [default: DIR]
    #[arg(long, value_name = "PLACE")]
    pub(crate) artifacts: Option<String>,
    /// Keep the logs and artifacts of the database in this place from now on, and leave behind what is in another one
    #[arg(long)]
    pub(crate) adopt_artifacts: bool,
    /// File with the keys that secrets of jobs are encrypted with; the same for all coordinators of a PostgreSQL database
    /// [env: GIGA_SECRETS_KEY] [default: DIR/secrets.key for the embedded store, else none]
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets_key: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free port [env: GIGA_LISTEN] [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) edge: EdgeArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) outside: OutsideArgs,
    #[command(flatten)]
    pub(crate) sign_in: SignInArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Job id, the end of an id, or a name
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) verdict: VerdictArgs,
    /// A comment to go with it; required with --request-changes and --reject
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// With --approve: although the diff does not show everything (it is cut, or has binary files)
    #[arg(long, requires = "approve")]
    pub(crate) acknowledge_unseen: bool,
    /// Review as somebody else; admins only
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) reviewer: Option<String>,
    /// With --request: how many approvals are needed [default: 1]
    #[arg(long, value_name = "COUNT", requires = "request")]
    pub(crate) quorum: Option<u32>,
    /// With --request: who may approve [default: anyone]
    #[arg(long, value_delimiter = ',', value_name = "NAME", requires = "request")]
    pub(crate) reviewers: Vec<String>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct VerdictArgs {
    /// Approve the change
    #[arg(long)]
    pub(crate) approve: bool,
    /// Request changes; the job continues on the same branch
    #[arg(long)]
    pub(crate) request_changes: bool,
    /// Reject the change
    #[arg(long)]
    pub(crate) reject: bool,
    /// Request a review before the job continues
    #[arg(long)]
    pub(crate) request: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeedArgs {
    /// Keep printing new events
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start after this position [default: the latest events, or with -f only new ones]
    #[arg(long, value_name = "POS")]
    pub(crate) after: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every setting with its value and origin
    #[command(after_help = "\
Flags override the environment, which overrides giga.toml, which overrides the defaults. giga.toml is
looked up in the working folder and its parents, in ~/.config/gigafactory, and in the data folder. The
first of these may be somebody else's, so it can set only product, output and log-format.

Without settings, `giga` talks to the coordinator on this machine: its data folder, by default
~/.local/share/gigafactory, holds its address and a token.")]
    Show,
}
