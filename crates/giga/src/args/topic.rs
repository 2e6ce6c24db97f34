//! `giga topic …`

use clap::{Args, Subcommand};
use giga_api::wire::{Priority, TopicJobState};

use super::word;

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// List topics with their queue depths and workers
    List,
    /// Show one topic
    Show(TopicArg),
    /// Stop handing out jobs; running jobs continue
    #[command(after_help = "\
Examples:
  giga topic pause mail
  giga topic pause --all")]
    Pause(PauseTopicArgs),
    /// Hand out jobs again
    #[command(after_help = "\
Examples:
  giga topic resume mail
  giga topic resume --all

A topic that was paused individually stays paused until it is resumed individually.")]
    Resume(PauseTopicArgs),
    /// Add a job
    #[command(after_help = "\
Examples:
  giga topic enqueue mail '{\"to\": \"ana\"}'
  giga topic enqueue mail --run-at 2026-12-01T09:00:00Z --priority low < letter.json -
  giga topic enqueue mail '{\"ticket\": 812}' --key ticket-812

The same key and payload mean the same job. Without --key, lost answers are retried safely: one
invocation never creates a job twice.")]
    Enqueue(EnqueueArgs),
    /// List jobs in one state, newest first
    #[command(after_help = "\
Examples:
  giga topic jobs mail --state running
  giga topic jobs mail 01J9ZK3V5N8Q4W2E6R7T1Y0ABC")]
    Jobs(TopicJobsArgs),
    /// List dead jobs, which are out of retries, newest first
    Dead(TopicArg),
    /// Retry dead jobs
    #[command(after_help = "\
Examples:
  giga topic retry mail
  giga topic dead mail -o name | head -1 | xargs giga topic retry mail")]
    Retry {
        /// Name of the topic
        topic: String,
        /// Jobs to retry [default: all]
        #[arg(value_name = "JOB")]
        jobs: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TopicArg {
    /// Name of the topic
    pub(crate) topic: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct PauseTopicArgs {
    /// Name of the topic
    pub(crate) topic: Option<String>,
    /// Every topic of every product
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnqueueArgs {
    /// Name of the topic
    pub(crate) topic: String,
    /// Payload as JSON, or - for stdin
    #[arg(default_value = "{}", allow_hyphen_values = true)]
    pub(crate) payload: String,
    /// Higher priorities go first
    #[arg(long, value_parser = word::<Priority>())]
    pub(crate) priority: Option<Priority>,
    /// Do not start before this time, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) run_at: Option<String>,
    /// Idempotency key within the topic
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Retries after the first attempt [default: 5]
    #[arg(long, value_name = "COUNT")]
    pub(crate) retry_max: Option<u32>,
    /// Wait before the first retry; doubles each time [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) backoff: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TopicJobsArgs {
    /// Name of the topic
    pub(crate) topic: String,
    /// Show only this job, with its payload
    #[arg(value_name = "JOB", conflicts_with = "state")]
    pub(crate) job: Option<String>,
    /// State of the jobs to list
    #[arg(long, default_value = "ready", value_parser = word::<TopicJobState>())]
    pub(crate) state: TopicJobState,
    /// Show at most this many
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
}
