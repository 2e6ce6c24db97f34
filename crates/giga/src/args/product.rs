//! `giga budget …`, `giga product …`, `giga profile …`

use clap::{Args, Subcommand};
use giga_api::wire::{MergeBy, MergeFeedback, MergeStrategy, NetworkLevel, Permissions};
use giga_domain::id::IdError;
use giga_domain::{ScoreTerm, Usd};

use super::word;

#[derive(Debug, Subcommand)]
pub(crate) enum BudgetCommand {
    /// List budgets
    List,
    /// Show what a product may spend, has spent, and has reserved for running jobs
    Show(ProductArg),
    /// Set limits; those you leave out stay as they are
    #[command(after_help = "\
Examples:
  giga budget set demo --day 20 --month 300
  giga budget set demo --job 2.50
  giga budget set demo --day none

A job starts only if what was spent, what is reserved for running jobs and its own cap fit within
every limit. Days, weeks (from Monday) and months are in UTC.")]
    Set(SetBudgetArgs),
    /// Start no more jobs of a product until it is resumed
    #[command(after_help = "\
Examples:
  giga budget pause demo -m 'too many retries'
  giga budget pause demo --stop-running --yes

Running jobs continue, unless --stop-running asks them to save a checkpoint and stop; they continue
from there when the budget is resumed.")]
    Pause(PauseBudgetArgs),
    /// Resume a paused product
    #[command(
        after_help = "Exit codes: 0 resumed · 7 still paused: a limit is reached and has to be raised first"
    )]
    Resume(ProductArg),
    /// Correct the ledger by hand: add or subtract an amount
    #[command(after_help = "\
Examples:
  giga budget correct demo --usd 1.20 -m 'billed separately'
  giga budget correct demo --usd -0.80 -m 'refunded'")]
    Correct(CorrectBudgetArgs),
    /// Chart spending over time
    #[command(after_help = "\
Examples:
  giga budget burndown demo
  giga budget burndown demo --from 2026-12-01T00:00:00Z --bucket 1d")]
    Burndown(BurndownArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ProductArg {
    /// The product
    // Another id than the global option's, which would take its place otherwise.
    #[arg(id = "about", value_name = "PRODUCT")]
    pub(crate) product: String,
}

#[derive(Debug, Args)]
pub(crate) struct SetBudgetArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Limit per day
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) day: Option<Amount>,
    /// Limit per week
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) week: Option<Amount>,
    /// Limit per month
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) month: Option<Amount>,
    /// Limit in total
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) total: Option<Amount>,
    /// Cap for a job whose manifest sets none
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) job: Option<Amount>,
}

/// What a limit is set to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    Nothing,
    Usd(Usd),
}

impl Amount {
    pub(crate) fn usd(self) -> Option<Usd> {
        match self {
            Self::Nothing => None,
            Self::Usd(usd) => Some(usd),
        }
    }
}

fn amount(text: &str) -> Result<Amount, String> {
    if text == "none" {
        return Ok(Amount::Nothing);
    }
    // How much is too much, the coordinator says.
    match text.parse::<Usd>() {
        Ok(usd) if usd.is_negative() => Err("a limit is 0 or more".to_owned()),
        Ok(usd) => Ok(Amount::Usd(usd)),
        Err(error) => Err(format!("{error}, or none")),
    }
}

#[derive(Debug, Args)]
pub(crate) struct PauseBudgetArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Reason, kept in the product's history
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Ask running jobs to save a checkpoint and stop
    #[arg(long)]
    pub(crate) stop_running: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CorrectBudgetArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Amount to add; negative to subtract
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    pub(crate) usd: Usd,
    /// Reason, kept in the product's history
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct BurndownArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Start [default: the beginning of the month]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// End [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Length of an interval, such as 1h or 1d [default: one that fits]
    #[arg(long, value_name = "SPAN")]
    pub(crate) bucket: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProductCommand {
    /// List products with settings
    List,
    /// Show a product's share, weights, repositories, merges and policy
    Show(ProductArg),
    /// Set a product's share, weights, repositories and merges; what you leave out stays as it is
    #[command(after_help = "\
Examples:
  giga product set demo --share 3
  giga product set demo --repos hello,notes
  giga product set demo --weight affinity=1.5 --weight load=0.5
  giga product set demo --merge squash --merge-check 'cargo test --workspace'

Shares are relative to each other; the default is 1. A repository has one owner: jobs of other
products for it are refused.")]
    Set(SetProductArgs),
    /// Set what every job of a product keeps to; what you leave out stays as it is
    #[command(after_help = "\
Examples:
  giga product policy demo --quorum 1 --auto-ship no
  giga product policy demo --engines claude,codex --sandbox yes --network list
  giga product policy demo --max-children 20 --max-depth 2 --max-queued-jobs none

A manifest that leaves something open gets what the policy asks for; one that asks for more is
refused. Jobs of other products in its repositories keep to it too. The policy of the product
`default` also holds in repositories that no product owns. It applies to jobs submitted from
then on.")]
    Policy(PolicyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Approvals that every result needs at least
    #[arg(long, value_name = "NUMBER")]
    pub(crate) quorum: Option<u32>,
    /// Whether manifests may say `ship: auto`
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    pub(crate) auto_ship: Option<bool>,
    /// All engines that may be used, the first where a manifest names none; an empty value means any
    #[arg(long, value_delimiter = ',', value_name = "ENGINE")]
    pub(crate) engines: Option<Vec<String>>,
    /// Whether jobs run in a sandbox or not at all
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    pub(crate) sandbox: Option<bool>,
    /// How far jobs may reach at most: open, list or none
    #[arg(long, value_name = "LEVEL", value_parser = word::<NetworkLevel>())]
    pub(crate) network: Option<NetworkLevel>,
    /// The most that an engine may do without asking: ask, edit, commands, all, or none for no limit
    #[arg(long, value_name = "LEVEL|none", value_parser = permissions)]
    pub(crate) permissions: Option<Most<Permissions>>,
    /// Children that one job may have
    #[arg(long, value_name = "NUMBER|none", value_parser = most::<u32>)]
    pub(crate) max_children: Option<Most<u32>>,
    /// How deep children may have children
    #[arg(long, value_name = "NUMBER|none", value_parser = most::<u32>)]
    pub(crate) max_depth: Option<Most<u32>>,
    /// Jobs that may be queued or blocked
    #[arg(long, value_name = "NUMBER|none", value_parser = most::<u64>)]
    pub(crate) max_queued_jobs: Option<Most<u64>>,
    /// How large all its artifacts may be together, in MiB
    #[arg(long, value_name = "NUMBER|none", value_parser = most::<u64>)]
    pub(crate) max_artifact_mib: Option<Most<u64>>,
}

/// A limit, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Most<T>(pub(crate) Option<T>);

fn most<T: std::str::FromStr>(text: &str) -> Result<Most<T>, String> {
    if text == "none" {
        return Ok(Most(None));
    }
    text.parse()
        .map(|most| Most(Some(most)))
        .map_err(|_| "write a whole number from 0 on, or none".to_owned())
}

fn permissions(text: &str) -> Result<Most<Permissions>, String> {
    if text == "none" {
        return Ok(Most(None));
    }
    text.parse().map(|most| Most(Some(most))).map_err(|_| "write ask, edit, commands, all or none".to_owned())
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("write yes or no".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct SetProductArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Share of the fleet, relative to other products
    #[arg(long, value_name = "NUMBER")]
    pub(crate) share: Option<f64>,
    /// All repositories that it owns; an empty value means none
    #[arg(long, value_delimiter = ',', value_name = "REPO")]
    pub(crate) repos: Option<Vec<String>>,
    /// How results are merged: merge, squash, rebase or fast_forward
    #[arg(long, value_name = "STRATEGY", value_parser = word::<MergeStrategy>())]
    pub(crate) merge: Option<MergeStrategy>,
    /// Who moves the branch: push or pull_request
    #[arg(long, value_name = "WAY", value_parser = word::<MergeBy>())]
    pub(crate) merge_by: Option<MergeBy>,
    /// What a request for changes or failed checks on a pull request lead to: events or changes
    #[arg(long, value_name = "POLICY", value_parser = word::<MergeFeedback>())]
    pub(crate) merge_feedback: Option<MergeFeedback>,
    /// Message of merge commits; {name}, {job}, {branch} and {reviewers} are filled in
    #[arg(long, value_name = "TEXT")]
    pub(crate) merge_message: Option<String>,
    /// Author of merge commits, such as "Ana <ana@example.org>"; an empty value means the factory
    #[arg(long, value_name = "AUTHOR")]
    pub(crate) merge_author: Option<String>,
    /// Command that must pass on every merged tree; repeat it for more, an empty value means none
    #[arg(long = "merge-check", value_name = "COMMAND")]
    pub(crate) merge_checks: Vec<String>,
    /// How many results may be merged and checked together
    #[arg(long, value_name = "NUMBER")]
    pub(crate) merge_batch: Option<u32>,
    #[arg(long = "weight", value_name = "TERM=NUMBER", value_parser = weight, help = about_weights())]
    pub(crate) weights: Vec<(ScoreTerm, f64)>,
}

fn about_weights() -> String {
    let terms = ScoreTerm::ALL.map(ScoreTerm::as_str).join(", ");
    format!("Weight of a score term for its jobs: {terms}")
}

fn weight(text: &str) -> Result<(ScoreTerm, f64), String> {
    let (term, number) = text.split_once('=').ok_or("write TERM=NUMBER, such as affinity=1.5")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    Ok((term.parse().map_err(|error: IdError| error.to_string())?, number))
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Create a profile, or a new version of it, from a Markdown file
    #[command(after_help = "\
Examples:
  giga profile add coder coder.md
  giga profile add coder - < coder.md

The front matter holds defaults for manifests with `persona: coder`; the engine gets the body before
the body of the job:
  ---
  engine: claude
  capabilities: [has:git]
  budget: {usd: 2.50, wall: 20m}
  verify: [cargo test]
  ---
  You write small changes with tests.

A version never changes. Adding the same file again creates no new version.")]
    Add {
        /// The name that manifests use
        name: String,
        /// A Markdown file, or - for stdin
        #[arg(value_name = "FILE")]
        file: String,
    },
    /// List the newest version of each profile
    List,
    /// Show a profile
    #[command(after_help = "\
Examples:
  giga profile show coder
  giga profile show coder@3")]
    Show {
        /// Name of the profile, or NAME@VERSION for one version
        #[arg(value_name = "NAME[@VERSION]")]
        profile: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_as_people_write_it() {
        assert_eq!(amount("none"), Ok(Amount::Nothing));
        assert_eq!(amount("$20"), Ok(Amount::Usd(Usd::from_dollars(20))));
        for wrong in ["", "-1", "inf", "nan", "1e9", "2,50", "two", "--1", "$$1", "1.2.3"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }
}
