//! `giga topic …`

use clap::{Args, Subcommand};
use giga_api::wire::{Priority, TopicJobState};

use super::word;

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// List topics with their depths and who serves them
    List,
    /// Show one topic
    Show(TopicArg),
    /// Hand out nothing more; what runs goes on
    #[command(after_help = "\
Examples:
  giga topic pause mail
  giga topic pause --all")]
    Pause(GateArgs),
    /// Hand out jobs again
    #[command(after_help = "\
Examples:
  giga topic resume mail
  giga topic resume --all

What was paused by its name stays paused until it is resumed by its name.")]
    Resume(GateArgs),
    /// Add a job
    #[command(after_help = "\
Examples:
  giga topic enqueue mail '{\"to\": \"ana\"}'
  giga topic enqueue mail --run-at 2026-12-01T09:00:00Z --priority low < letter.json -
  giga topic enqueue mail '{\"ticket\": 812}' --key ticket-812

The same key and payload again is the same job; without --key, a call whose answer is lost on the
way is repeated safely: one invocation never makes two jobs.")]
    Enqueue(EnqueueArgs),
    /// List jobs in one state, newest first
    #[command(after_help = "\
Examples:
  giga topic jobs mail --state running
  giga topic jobs mail 01J9ZK3V5N8Q4W2E6R7T1Y0ABC")]
    Jobs(TopicJobsArgs),
    /// List the jobs that nobody will try again, newest first
    Dead(TopicArg),
    /// Give dead jobs another chance
    #[command(after_help = "\
Examples:
  giga topic retry mail
  giga topic dead mail -o name | head -1 | xargs giga topic retry mail")]
    Retry {
        /// Its name
        topic: String,
        /// Which; all of them if none is named
        #[arg(value_name = "JOB")]
        jobs: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TopicArg {
    /// Its name
    pub(crate) topic: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct GateArgs {
    /// Its name
    pub(crate) topic: Option<String>,
    /// Every topic of every product
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnqueueArgs {
    /// The topic
    pub(crate) topic: String,
    /// JSON, or - for stdin
    #[arg(default_value = "{}", allow_hyphen_values = true)]
    pub(crate) payload: String,
    /// Who goes first
    #[arg(long, value_parser = word::<Priority>())]
    pub(crate) priority: Option<Priority>,
    /// Not before this time, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) run_at: Option<String>,
    /// What makes it unique within the topic
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Tries after the first [default: 5]
    #[arg(long, value_name = "COUNT")]
    pub(crate) retry_max: Option<u32>,
    /// The first wait before another try; doubles each time [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) backoff: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopicJobsArgs {
    /// The topic
    pub(crate) topic: String,
    /// Only this one, with its payload
    #[arg(value_name = "JOB", conflicts_with = "state")]
    pub(crate) job: Option<String>,
    /// Which
    #[arg(long, default_value = "ready", value_parser = word::<TopicJobState>())]
    pub(crate) state: TopicJobState,
    /// How many at most
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
}
