//! `giga webhook …`, `giga effects …`, `giga tracker …`, and what a coordinator may reach outside.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Subcommand};
use giga_api::wire::{EffectState, EventType};
use giga_effects::{TRACKERS, TrackerKind};

use super::word;
use crate::config::{Key, TrackerKey};

#[derive(Debug, Args)]
#[command(next_help_heading = "The world outside")]
pub(crate) struct OutsideArgs {
    /// Blocks of addresses and hosts that webhooks may reach although they are private [env: GIGA_EFFECTS_ALLOW]
    #[arg(long, value_delimiter = ',', value_name = "CIDR|HOST")]
    pub(crate) effects_allow: Vec<String>,
    #[command(flatten)]
    pub(crate) trackers: TrackerArgs,
    /// Close an issue when its job ships [env: GIGA_TRACKER_CLOSE_ON_SHIP]
    #[arg(long)]
    pub(crate) tracker_close_on_ship: bool,
}

/// The flags of every kind of tracker, and what was given for them.
#[derive(Debug, Default)]
pub(crate) struct TrackerArgs(pub(crate) Vec<(Key, String)>);

impl Args for TrackerArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        let args = TRACKERS.iter().flat_map(|kind| TrackerKey::ALL.map(|key| tracker_arg(kind, key)));
        command.args(args)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn tracker_arg(kind: &'static TrackerKind, key: TrackerKey) -> Arg {
    let TrackerKind { name, display_name, default_api, settings, .. } = kind;
    let key_of = Key::Tracker(kind, key);
    let variable = key_of.variable();
    let arg = Arg::new(key_of.name()).long(key_of.name()).action(ArgAction::Append).value_delimiter(',');
    match key {
        TrackerKey::Api => arg
            .value_name("URL")
            .action(ArgAction::Set)
            .help(format!("Where {display_name}'s API is [env: {variable}] [default: {default_api}]")),
        TrackerKey::TokenFile => arg.value_name("FILE").action(ArgAction::Set).help(format!(
            "File with a token for {display_name}'s issues, which sets up the tracker `{name}` [env: {variable}; {} \
             holds the token itself]",
            settings.token_variable
        )),
        TrackerKey::Repos => arg.value_name("REPO").help(format!(
            "Which repositories products may use with that token: owner/repo, owner/*, PRODUCT=owner/repo; without any, \
             those that the product owns, and tokens for all products any [env: {variable}]"
        )),
    }
}

impl FromArgMatches for TrackerArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Key::of_trackers().filter_map(|key| {
            let values: Vec<String> = matches.get_many::<String>(key.name())?.cloned().collect();
            Some((key, values.join(",")))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Send what happens from now on to an address
    #[command(after_help = "\
Examples:
  giga webhook add https://example.com/hooks
  giga webhook add https://example.com/hooks --types job.shipped,job.failed --product demo

Messages are signed as Standard Webhooks says; the secret is shown once. Without --product they tell
of every product. A message is sent until it is answered with 2xx, for about two days, always under
the same webhook-id.")]
    Add {
        /// Where to: https, or what the coordinator's --effects-allow lists
        #[arg(value_name = "URL")]
        address: String,
        /// Only events of these types [default: all]
        #[arg(long, value_delimiter = ',', value_name = "TYPE", value_parser = word::<EventType>(), hide_possible_values = true)]
        types: Vec<EventType>,
    },
    /// List who is told what
    List,
    /// Send nothing more there
    Remove {
        /// Its id
        webhook: String,
    },
    /// Send a message there that tells of nothing, and say what came of it
    Test {
        /// Its id
        webhook: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum EffectsCommand {
    /// List what was told and what is on its way, newest first
    #[command(after_help = "\
Examples:
  giga effects list --state dead
  giga effects list --job fix-greeting -o json")]
    List(ListEffectsArgs),
    /// Give what was given up another chance
    #[command(after_help = "\
Examples:
  giga effects retry wh:01J9ZK3V5N8Q4W2E6R7T1Y0ABC:812
  giga effects list --state dead -o name | xargs giga effects retry")]
    Retry {
        #[arg(required = true, value_name = "EFFECT")]
        effects: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListEffectsArgs {
    #[arg(long, value_parser = word::<EffectState>())]
    pub(crate) state: Option<EffectState>,
    /// Told to this webhook
    #[arg(long, value_name = "WEBHOOK")]
    pub(crate) webhook: Option<String>,
    /// About this job: its id, the end of its id, or its name
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// How many at most [default: 50]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrackerCommand {
    /// Make a job of an item
    #[command(after_help = "\
Examples:
  giga tracker ingest github acme/app#12
  giga tracker ingest github https://github.com/acme/app/issues/12 --manifest fix.md

The item's title is the job's name and its text the body, behind the manifest's own. The same item is
the same job while the job is kept, whatever it says by now. From then on a comment and a label there
tell where the job stands.")]
    Ingest {
        /// Such as github
        tracker: String,
        /// Such as acme/app#12, or its address
        item: String,
        /// Front matter and body to go with it; `name` may be left out
        #[arg(long, value_name = "FILE")]
        manifest: Option<PathBuf>,
    },
    /// Tell the item of a job where the job stands, now
    Echo {
        /// Its id, the end of its id, or its name
        job: String,
    },
}
