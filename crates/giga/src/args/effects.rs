//! `giga webhook …`, `giga effects …`, `giga tracker …`, and what a coordinator may reach outside.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Subcommand};
use giga_api::wire::{EffectState, EventType};
use giga_effects::{ForgeKind, TRACKERS, TrackerKind};

use super::word;
use crate::config::{ForgeKey, Key, TrackerKey};

#[derive(Debug, Args)]
#[command(next_help_heading = "Outbound access")]
pub(crate) struct OutsideArgs {
    /// Private address ranges and hosts that webhooks may reach [env: GIGA_EFFECTS_ALLOW]
    #[arg(long, value_delimiter = ',', value_name = "CIDR|HOST")]
    pub(crate) effects_allow: Vec<String>,
    #[command(flatten)]
    pub(crate) trackers: TrackerArgs,
    #[command(flatten)]
    pub(crate) forges: ForgeArgs,
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
            .help(format!("Address of {display_name}'s API [env: {variable}] [default: {default_api}]")),
        TrackerKey::TokenFile => arg.value_name("FILE").action(ArgAction::Set).help(format!(
            "File with a token for {display_name}; enables the tracker `{name}` and pull requests there [env: \
             {variable}; {} holds the token itself]",
            settings.token_variable
        )),
        TrackerKey::Repos => arg.value_name("REPO").help(format!(
            "Repositories that products may use with that token: owner/repo, owner/* or PRODUCT=owner/repo \
             [env: {variable}] [default: those that the product owns; any, for tokens that cover all products]"
        )),
    }
}

impl FromArgMatches for TrackerArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(Key::of_trackers(), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flags of every kind of forge, and what was given for them.
#[derive(Debug, Default)]
pub(crate) struct ForgeArgs(pub(crate) Vec<(Key, String)>);

impl Args for ForgeArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Key::of_forges().filter_map(|key| match key {
            Key::Forge(kind, of_forge) => Some(forge_arg(kind, of_forge)),
            _ => None,
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn forge_arg(kind: &'static ForgeKind, key: ForgeKey) -> Arg {
    let ForgeKind { name, display_name, default_api, settings, .. } = kind;
    let key_of = Key::Forge(kind, key);
    let variable = key_of.variable();
    let arg = Arg::new(key_of.name()).long(key_of.name()).action(ArgAction::Set).value_name("FILE");
    match key {
        ForgeKey::Api => arg
            .value_name("URL")
            .help(format!("Address of {display_name}'s API [env: {variable}] [default: {default_api}]")),
        ForgeKey::TokenFile => arg.help(format!(
            "File with a token for {display_name}; enables pull requests there [env: {variable}; {} holds the \
             token itself]",
            settings.token_variable
        )),
        ForgeKey::Repos => {
            arg.value_name("REPO").action(ArgAction::Append).value_delimiter(',').help(format!(
                "Repositories that products may use with that token: owner/repo, owner/* or PRODUCT=owner/repo \
                 [env: {variable}] [default: any]"
            ))
        }
        ForgeKey::SecretFile => arg.help(format!(
            "File with the secret of the webhook that {display_name} sends to /api/hooks/{name} [env: {variable}]"
        )),
    }
}

impl FromArgMatches for ForgeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(Key::of_forges(), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn given(keys: impl Iterator<Item = Key>, matches: &ArgMatches) -> Vec<(Key, String)> {
    let given = keys.filter_map(|key| {
        let values: Vec<String> = matches.get_many::<String>(key.name())?.cloned().collect();
        Some((key, values.join(",")))
    });
    given.collect()
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Send new events to a URL
    #[command(after_help = "\
Examples:
  giga webhook add https://example.com/hooks
  giga webhook add https://example.com/hooks --types job.shipped,job.failed --product demo

Messages are signed as in Standard Webhooks; the secret is shown once. Without --product, events of
every product are sent. A message is retried until it is answered with 2xx, for about two days, always
with the same webhook-id.")]
    Add {
        /// An https URL, or one that the coordinator's --effects-allow permits
        #[arg(value_name = "URL")]
        address: String,
        /// Only events of these types [default: all]
        #[arg(long, value_delimiter = ',', value_name = "TYPE", value_parser = word::<EventType>(), hide_possible_values = true)]
        types: Vec<EventType>,
    },
    /// List webhooks
    List,
    /// Remove a webhook
    Remove {
        /// Webhook id
        webhook: String,
    },
    /// Send a test message and show the answer
    Test {
        /// Webhook id
        webhook: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum EffectsCommand {
    /// List deliveries, newest first
    #[command(after_help = "\
Examples:
  giga effects list --state dead
  giga effects list --job fix-greeting -o json")]
    List(ListEffectsArgs),
    /// Retry deliveries that were given up
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
    /// Only deliveries to this webhook
    #[arg(long, value_name = "WEBHOOK")]
    pub(crate) webhook: Option<String>,
    /// Only deliveries about this job: id, end of an id, or name
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// Show at most this many [default: 50]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrackerCommand {
    /// Create a job from an item
    #[command(after_help = "\
Examples:
  giga tracker ingest github acme/app#12
  giga tracker ingest github https://github.com/acme/app/issues/12 --manifest fix.md

The item's title becomes the job's name, and its text is added to the manifest's body. The same item
stays the same job as long as the job is kept, even if the item changes. From then on, a comment and a
label on the item show the job's status.")]
    Ingest {
        /// Name of the tracker, such as github
        tracker: String,
        /// The item, such as acme/app#12, or its URL
        item: String,
        /// Manifest to go with it; `name` may be left out
        #[arg(long, value_name = "FILE")]
        manifest: Option<PathBuf>,
    },
    /// Update the item of a job with the job's status
    Echo {
        /// Job id, the end of an id, or a name
        job: String,
    },
}
