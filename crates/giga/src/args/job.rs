//! `giga job …`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use giga_api::client::JobQuery;
use giga_api::wire::{Priority, Stage};

use super::word;
use crate::config::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Submit a job, or several at once
    #[command(after_help = "\
Examples:
  giga job submit fix-greeting.md
  giga job submit fix-greeting.md --product demo --wait
  giga job submit build.md test.md publish.md
  giga job submit *.md --parent release-7
  sed s/NAME/hello/ template.md | giga job submit -

Submitting the same file twice creates two jobs, unless its manifest has an idempotencyKey. Lost
answers are retried safely: one invocation never creates a job twice.

Several files are submitted together, all or none, and their `deps` may name each other. With
--parent they become children of that job: a composite ships when its children have shipped.")]
    Submit(SubmitArgs),
    /// Show what submitting a manifest would do, without submitting it
    #[command(after_help = "\
Examples:
  giga job plan fix-greeting.md
  giga job plan - < fix-greeting.md")]
    Plan {
        /// A manifest, or - for stdin
        #[arg(value_name = "FILE")]
        file: String,
    },
    /// List jobs, newest first
    #[command(after_help = "\
Examples:
  giga job list --stage queued,blocked
  giga job list --factory mac-1 -o name
  giga job list --stage failed -o name | xargs -n1 giga job requeue")]
    List(ListArgs),
    /// Show a job with its runs
    Show(JobArg),
    /// Explain the status of a job: what blocks it, and suggested fixes
    #[command(after_help = "\
Examples:
  giga job explain fix-greeting
  giga job explain 01J9ZK3V5N8Q4W2E6R7T1Y0ABC -o json")]
    Explain(JobArg),
    /// Show the events of a job
    #[command(after_help = "\
Examples:
  giga job events fix-greeting
  giga job events fix-greeting -f")]
    Events(EventsArgs),
    /// Print the log of a run
    #[command(after_help = "\
Examples:
  giga job logs fix-greeting
  giga job logs fix-greeting -f
  giga job logs fix-greeting --epoch 1")]
    Logs(LogsArgs),
    /// Wait until jobs have shipped, or need somebody
    #[command(after_help = "\
Examples:
  giga job wait fix-greeting
  giga job wait fix-greeting --until review --timeout 10m
  giga job wait $(giga job submit a.md -o name) $(giga job submit b.md -o name)

It also ends when a job waits for a person, and says for what and how to answer: a question, a review,
or the word to ship. With --keep-waiting it says so and goes on, for the case that somebody else answers.

Exit codes: 0 shipped or reached · 1 failed, dead-lettered or cancelled · 6 rejected at review
            7 budget exceeded · 8 waiting for you · 124 timed out.
            Of several jobs, the first bad one decides.")]
    Wait(WaitArgs),
    /// Say something to a job's engine
    #[command(after_help = "\
Examples:
  giga job say fix-greeting 'keep the old spelling in the docs'

A running engine that can take messages gets it at its next turn. Others, and jobs that do not run
now, get it with the next run's prompt.")]
    Say(SayArgs),
    /// List what jobs ask people, or everything that one job asked and was told
    #[command(after_help = "\
Examples:
  giga job questions
  giga job questions fix-greeting")]
    Questions {
        /// Job id, the end of an id, or a name
        job: Option<String>,
    },
    /// Answer a question of a job
    #[command(after_help = "\
Examples:
  giga job answer fix-greeting 8080
  giga job answer fix-greeting --question 2 yes

A job that is parked goes on at once. A request for permission takes one of its options, a question
takes anything.")]
    Answer(AnswerArgs),
    /// Ship a job that is ready to ship, and wait until it is merged
    #[command(after_help = "\
It follows the merge and prints the commit. A conflict sends the job back for another run, and a
repository that keeps refusing fails it: both are said with the reason. Ctrl-C stops following, not
the merge. A job that failed because it could not be merged is merged again as it is, without
another run.

Exit codes: 0 shipped · 1 not merged: it was sent back, or failed.")]
    Ship(ShipArgs),
    /// Put a failed job back in the queue
    Requeue(ActArgs),
    /// Reject a job in review
    Reject(ActArgs),
    /// Cancel a job and everything below it
    Cancel(ActArgs),
    /// Write a manifest to start from
    #[command(after_help = "\
Examples:
  giga job init
  giga job init fix-greeting.md
  giga job init - | less")]
    Init(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct JobArg {
    /// Job id, the end of an id, or a name
    pub(crate) job: String,
}

#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    #[command(flatten)]
    pub(crate) job: JobArg,
    /// What the engine should read
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) job: JobArg,
    /// Number of the question [default: the only open one]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) question: Option<u32>,
    /// The answer: one of the options, or other words
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// What people should read
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// An answer to choose from; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) option: Vec<String>,
    /// The answer if nobody gives one in time; without it the job fails then
    #[arg(long, value_name = "TEXT")]
    pub(crate) default: Option<String>,
    /// It is a request for permission: only the options are answers
    #[arg(long, requires = "option")]
    pub(crate) permission: bool,
    /// The same key is the same question, in every run of the job [default: the same text]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Give up after this long, such as 30m, where the manifest gives more time
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// Manifests, or - for stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Make them children of this job: id, end of an id, or name
    #[arg(long, value_name = "JOB")]
    pub(crate) parent: Option<String>,
    /// Wait until it has shipped, or needs somebody; see `giga job wait`
    #[arg(short, long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only these stages
    #[arg(long, value_delimiter = ',', value_name = "STAGE", value_parser = word::<Stage>())]
    pub(crate) stage: Vec<Stage>,
    /// Only these priorities
    #[arg(long, value_delimiter = ',', value_name = "PRIORITY", value_parser = word::<Priority>())]
    pub(crate) priority: Vec<Priority>,
    /// Only jobs for this repository
    #[arg(long)]
    pub(crate) repo: Option<String>,
    /// Only jobs that this factory holds
    #[arg(long, value_name = "FACTORY")]
    pub(crate) factory: Option<String>,
    /// Only children of this job: id, end of an id, or name
    #[arg(long, value_name = "JOB")]
    pub(crate) parent: Option<String>,
    /// Only jobs whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// Only jobs that ask a person something
    #[arg(long)]
    pub(crate) needs_input: bool,
    /// Show at most this many [default: 50]
    #[arg(long, value_name = "COUNT", conflicts_with = "all")]
    pub(crate) limit: Option<usize>,
    /// Show all of them
    #[arg(long)]
    pub(crate) all: bool,
}

impl ListArgs {
    /// The same for the coordinator. `parent` is the id of the job that was named, and `limit` that of a page.
    pub(crate) fn query(self, parent: Option<String>, limit: usize) -> JobQuery {
        let Self { stage, priority, repo, factory, parent: _, name, needs_input, limit: _, all: _ } = self;
        JobQuery {
            ids: Vec::new(),
            stages: stage,
            priorities: priority,
            repo,
            factory,
            parent,
            name,
            needs_input,
            limit: Some(limit),
            cursor: None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) job: JobArg,
    /// Follow until the job has ended
    #[arg(short, long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    #[command(flatten)]
    pub(crate) job: JobArg,
    /// Follow until the run has ended; waits for one that has not started yet
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Which run [default: the latest]
    #[arg(long, value_name = "EPOCH")]
    pub(crate) epoch: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Job ids, ends of ids, or names
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<String>,
    /// The stage to wait for; a job that is past it counts as well
    #[arg(long, value_name = "STAGE", default_value = "shipped", value_parser = word::<Stage>())]
    pub(crate) until: Stage,
    /// Give up after this long, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Go on while a job waits for an answer, a review or the word to ship
    #[arg(long)]
    pub(crate) keep_waiting: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShipArgs {
    #[command(flatten)]
    pub(crate) act: ActArgs,
    /// Do not wait for the merge
    #[arg(long)]
    pub(crate) detach: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    #[command(flatten)]
    pub(crate) job: JobArg,
    /// Reason, kept in the job's history
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// File to write, or - for stdout
    #[arg(value_name = "FILE", default_value = "job.md")]
    pub(crate) file: PathBuf,
    /// Repository that the job works on, as `giga doctor` lists it
    #[arg(long, value_name = "NAME")]
    pub(crate) repo: Option<String>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}
