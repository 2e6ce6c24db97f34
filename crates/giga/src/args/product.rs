//! `giga budget …`, `giga product …`, `giga profile …`

use clap::{Args, Subcommand};
use giga_domain::id::IdError;
use giga_domain::{ScoreTerm, Usd};

#[derive(Debug, Subcommand)]
pub(crate) enum BudgetCommand {
    /// List the budgets that were ever set or spent from
    List,
    /// Show what a product may spend, has spent, and has set aside for what runs
    Show(ProductArg),
    /// Set ceilings; those that are not named stay as they are
    #[command(after_help = "\
Examples:
  giga budget set demo --day 20 --month 300
  giga budget set demo --job 2.50
  giga budget set demo --day none

A job is started only while what was spent, what is set aside for running jobs and its own cap stay
within every ceiling. Days, weeks (from Monday) and months are those of UTC.")]
    Set(SetBudgetArgs),
    /// Start nothing more of a product until it is resumed
    #[command(after_help = "\
Examples:
  giga budget pause demo -m 'too many retries'
  giga budget pause demo --stop-running --yes

Running jobs go on, unless --stop-running asks them to save their work and let go; they go on from
there when the budget is resumed.")]
    Pause(PauseBudgetArgs),
    /// Start jobs of a product again
    #[command(
        after_help = "Exit codes: 0 resumed · 7 a ceiling is reached: it stays paused until that is raised"
    )]
    Resume(ProductArg),
    /// Correct the ledger by hand: so much more, or less, was spent than it says
    #[command(after_help = "\
Examples:
  giga budget correct demo --usd 1.20 -m 'billed apart'
  giga budget correct demo --usd -0.80 -m 'refunded'")]
    Correct(CorrectBudgetArgs),
    /// Draw what was spent over time
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
    /// The most in a day
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) day: Option<Amount>,
    /// The most in a week
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) week: Option<Amount>,
    /// The most in a month
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) month: Option<Amount>,
    /// The most ever
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) total: Option<Amount>,
    /// The most for a job whose manifest says nothing
    #[arg(long, value_name = "USD|none", value_parser = amount)]
    pub(crate) job: Option<Amount>,
}

/// What a ceiling is set to.
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
    /// Why; it goes into the product's history
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Running jobs save their work and let go too
    #[arg(long)]
    pub(crate) stop_running: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CorrectBudgetArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// So much more, or with a minus so much less
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    pub(crate) usd: Usd,
    /// Why; it goes into the product's history
    #[arg(short = 'm', long, value_name = "TEXT")]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct BurndownArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// From when on [default: the beginning of the month]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Until when [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// How long a stretch is, such as 1h or 1d [default: one that fits]
    #[arg(long, value_name = "SPAN")]
    pub(crate) bucket: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProductCommand {
    /// List the products that were ever set
    List,
    /// Show a product's share, weights and repositories
    Show(ProductArg),
    /// Set a product's share, weights and repositories; what is not named stays as it is
    #[command(after_help = "\
Examples:
  giga product set demo --share 3
  giga product set demo --repos hello,notes
  giga product set demo --weight affinity=1.5 --weight load=0.5

A share counts against the other products' shares, which are 1 unless they are set. A repository
has one owner: jobs of other products for it are refused.")]
    Set(SetProductArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetProductArgs {
    #[command(flatten)]
    pub(crate) product: ProductArg,
    /// Its share of the fleet against the others'
    #[arg(long, value_name = "NUMBER")]
    pub(crate) share: Option<f64>,
    /// The repositories that it owns, all of them; an empty text is none
    #[arg(long, value_delimiter = ',', value_name = "REPO")]
    pub(crate) repos: Option<Vec<String>>,
    #[arg(long = "weight", value_name = "TERM=NUMBER", value_parser = weight, help = about_weights())]
    pub(crate) weights: Vec<(ScoreTerm, f64)>,
}

fn about_weights() -> String {
    let terms = ScoreTerm::ALL.map(ScoreTerm::as_str).join(", ");
    format!("How much a term of a score counts for its jobs: {terms}")
}

fn weight(text: &str) -> Result<(ScoreTerm, f64), String> {
    let (term, number) = text.split_once('=').ok_or("write TERM=NUMBER, such as affinity=1.5")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    Ok((term.parse().map_err(|error: IdError| error.to_string())?, number))
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Make a profile, or its next version, from a Markdown file
    #[command(after_help = "\
Examples:
  giga profile add coder coder.md
  giga profile add coder - < coder.md

The front matter has what manifests with `persona: coder` need not say themselves, the body is what
the engine is told before the body of the job:
  ---
  engine: claude
  capabilities: [has:git]
  budget: {usd: 2.50, wall: 20m}
  verify: [cargo test]
  ---
  You write small changes with tests.

A version never changes. The same file again makes no new one.")]
    Add {
        /// What manifests call it
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
        /// Its name, or one version of it as NAME@VERSION
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
