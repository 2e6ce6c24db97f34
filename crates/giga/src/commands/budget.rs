//! `giga budget …`

use std::fmt::Write;

use comfy_table::{Cell, Color};
use giga_api::client::{Client, JobQuery};
use giga_api::wire::{
    Budget, BudgetPeriod, Burndown, CorrectBudgetRequest, PauseBudgetRequest, Period, SetBudgetRequest, Stage,
};
use giga_domain::{Timestamp, Usd};
use giga_ports::{Clock, Randomness};

use super::Done;
use super::ask::{ask, somebody_is_there};
use super::context::Context;
use crate::args::{Amount, BudgetCommand, BurndownArgs, CorrectBudgetArgs, PauseBudgetArgs, SetBudgetArgs};
use crate::exit::{self, CliError};
use crate::output::{Columns, Output, ago, bar, columns, or_dash, printable, say, warn};
use crate::system::{SystemClock, SystemRandomness};

const BAR_CELLS: usize = 20;
const CHART_LINES: usize = 8;
const CHART_COLUMNS: usize = 60;
/// More running jobs than this are not counted one by one.
const COUNTED: usize = 500;

pub(crate) async fn run(command: BudgetCommand, context: &Context) -> Done {
    // The product stands on the command line; one from the settings must not contradict it.
    let (client, output) = (context.client_in(None)?, &context.output);
    match command {
        BudgetCommand::List => {
            let answer = context.client()?.budgets().await?;
            let none = "no budgets yet; create one with `giga budget set PRODUCT --day USD`";
            output.list(&answer.json, ("/budgets", "/productId"), none, || list(&answer.budgets))
        }
        BudgetCommand::Show(args) => {
            let budget = client.budget(&args.product).await?;
            output.one(&budget.json, "/productId", || text(&budget, output))
        }
        BudgetCommand::Set(args) => set(args, &client, output).await,
        BudgetCommand::Pause(args) => pause(args, &client, output).await,
        BudgetCommand::Resume(args) => {
            let budget = client.resume_budget(&args.product).await?;
            output.one(&budget.json, "/productId", || text(&budget, output))?;
            if budget.paused.is_none() {
                return Ok(());
            }
            let period = budget.paused.as_ref().and_then(|pause| pause.period).unwrap_or(Period::Total);
            say(&printable(&format!(
                "still paused: the {} limit is reached; raise it with `giga budget set {} --{period} USD`",
                period.label(),
                budget.product_id
            )));
            Err(CliError::Ended(exit::BUDGET))
        }
        BudgetCommand::Correct(CorrectBudgetArgs { product, usd, reason }) => {
            let request = CorrectBudgetRequest { usd, reason };
            let key = format!("cli-{}", SystemRandomness.job_id(SystemClock.now()));
            let budget = client.correct_budget(&product.product, &request, &key).await?;
            output.one(&budget.json, "/productId", || text(&budget, output))
        }
        BudgetCommand::Burndown(BurndownArgs { product, from, to, bucket }) => {
            let (from, to, bucket) = (from.as_deref(), to.as_deref(), bucket.as_deref());
            let burndown = client.burndown(&product.product, from, to, bucket).await?;
            output.one(&burndown.json, "/productId", || chart(&burndown))
        }
    }
}

/// What is not named stays: read, changed, and written only if nobody else wrote meanwhile.
async fn set(args: SetBudgetArgs, client: &Client, output: &Output) -> Done {
    let named = [args.day, args.week, args.month, args.total, args.job];
    if named.iter().all(Option::is_none) {
        return Err(CliError::Usage(
            "say what to set: --day, --week, --month, --total or --job, each with an amount in dollars or none".to_owned(),
        ));
    }
    let product = &args.product.product;
    let now = client.budget(product).await?;
    let mut ceilings = now.ceilings;
    let parts = [&mut ceilings.day, &mut ceilings.week, &mut ceilings.month, &mut ceilings.total];
    for (part, amount) in parts.into_iter().zip(named) {
        if let Some(amount) = amount {
            *part = amount.usd();
        }
    }
    let job_usd = args.job.map_or(now.job_usd, Amount::usd);
    let request = SetBudgetRequest { ceilings, job_usd };
    let budget = client.set_budget(product, &request, Some(now.rev)).await?;
    budget.warnings.iter().for_each(|warning| warn(&printable(warning)));
    output.one(&budget.json, "/productId", || text(&budget, output))
}

async fn pause(args: PauseBudgetArgs, client: &Client, output: &Output) -> Done {
    let product = args.product.product;
    if !args.yes && somebody_is_there() {
        let now = match running(client, &product).await? {
            None => format!("{product} has no running jobs"),
            Some(jobs) if args.stop_running => {
                format!("{jobs} of {product} will be asked to save a checkpoint and stop")
            }
            Some(jobs) => format!("{jobs} of {product} will continue"),
        };
        let question = format!("{now}, and no new ones will start. Pause it?");
        if !ask(&printable(&question), false).await {
            say("nothing changed");
            return Err(CliError::Ended(exit::FAILED));
        }
    }
    let request = PauseBudgetRequest { reason: args.reason, stop_running: args.stop_running };
    let answer = client.pause_budget(&product, &request).await?;
    output.one(&answer.json, "/budget/productId", || {
        let mut shown = text(&answer.budget, output);
        if args.stop_running {
            let _ = writeln!(shown, "\n{} asked to save a checkpoint and stop", counted(answer.stopped, ""));
        }
        shown
    })
}

/// How many, where there are any.
async fn running(client: &Client, product: &str) -> Result<Option<String>, CliError> {
    let held = JobQuery {
        stages: Stage::ALL.iter().copied().filter(|stage| stage.is_held()).collect(),
        limit: Some(COUNTED),
        ..JobQuery::default()
    };
    let page = client.for_product(product).jobs(&held).await?;
    let more = if page.next_cursor.is_some() { "more than " } else { "" };
    Ok((!page.jobs.is_empty()).then(|| counted(page.jobs.len() as u64, more)))
}

fn counted(count: u64, more: &str) -> String {
    let jobs = if count == 1 { "job" } else { "jobs" };
    format!("{more}{count} running {jobs}")
}

fn list(budgets: &[Budget]) -> String {
    let mut table = Columns::new(&["PRODUCT", "STATE", "TODAY", "MONTH", "RESERVED", "LEFT", "LIMIT"]);
    for budget in budgets {
        let spent = |period: Period| {
            let found = budget.periods.iter().find(|known| known.period == period);
            or_dash(found.map(|found| found.spent_usd))
        };
        let tightest = budget.tightest.map_or("-", Period::as_str);
        table.row([
            Cell::new(printable(&budget.product_id)),
            state(budget),
            Cell::new(spent(Period::Day)),
            Cell::new(spent(Period::Month)),
            Cell::new(budget.reserved_usd),
            Cell::new(or_dash(budget.left_usd)),
            Cell::new(tightest),
        ]);
    }
    table.right(&[2, 3, 4, 5]);
    table.render()
}

fn state(budget: &Budget) -> Cell {
    match budget.paused {
        Some(_) => Cell::new("paused").fg(Color::Red),
        None => Cell::new("active").fg(Color::Green),
    }
}

/// One line on how it stands, and a table of the periods.
fn text(budget: &Budget, output: &Output) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m  {}\n", printable(&budget.product_id), standing(budget, output));
    let cap = match budget.job_usd {
        Some(cap) => format!("{cap}, unless the manifest sets one"),
        None => "none, unless the manifest sets one".to_owned(),
    };
    let _ = writeln!(text, "  cap per job  {cap}\n");
    for line in periods(budget).lines() {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn standing(budget: &Budget, output: &Output) -> String {
    let Some(pause) = &budget.paused else {
        return match (budget.left_usd, &budget.tightest) {
            (Some(left), Some(period)) => format!("active, {left} left of the {} limit", period.label()),
            _ => "active, no limit".to_owned(),
        };
    };
    let since = ago(&pause.at, output.now);
    let why = match (&pause.period, &pause.by, &pause.reason) {
        (Some(period), ..) => format!("the {} limit is reached", period.label()),
        (None, Some(by), Some(reason)) => format!("by {by}: {reason}"),
        (None, Some(by), None) => format!("by {by}"),
        (None, None, _) => pause.cause.to_string(),
    };
    format!("\x1b[31mpaused\x1b[0m {since}, {}", printable(&why))
}

fn periods(budget: &Budget) -> String {
    let mut table = Columns::new(&["PERIOD", "SPENT", "RESERVED", "LEFT", "LIMIT", "TOKENS", "USED"]);
    for period in &budget.periods {
        let BudgetPeriod { spent_usd, tokens, ceiling_usd, left_usd, .. } = period;
        let picture = ceiling_usd
            .map(|limit| bar(spent_usd.as_f64(), budget.reserved_usd.as_f64(), limit.as_f64(), BAR_CELLS));
        table.row([
            period.period.to_string(),
            spent_usd.to_string(),
            budget.reserved_usd.to_string(),
            or_dash(*left_usd),
            ceiling_usd.map_or("none".to_owned(), |limit| limit.to_string()),
            tokens.to_string(),
            picture.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.right(&[1, 2, 3, 4, 5]);
    table.render()
}

/// What was spent up to the end of each interval, as columns below the limit.
fn chart(burndown: &Burndown) -> String {
    let values = cumulative(burndown);
    let highest = values.iter().copied().max().unwrap_or_default();
    let top = burndown.ceiling_usd.unwrap_or_default().max(highest);
    let label = top.to_string();
    let width = label.len();
    let mut text = format!("\x1b[1m{}\x1b[0m  {} spent", printable(&burndown.product_id), burndown.total_usd);
    let _ = match burndown.ceiling_usd {
        Some(limit) => writeln!(text, " of {limit}"),
        None => writeln!(text, ", no limit"),
    };
    let heights: Vec<f64> = values.iter().map(|value| value.as_f64()).collect();
    let lines = columns(&heights, top.as_f64(), CHART_LINES);
    for (row, line) in lines.iter().enumerate() {
        let label = match row {
            0 => label.as_str(),
            row if row + 1 == lines.len() => "$0.00",
            _ => "",
        };
        let _ = writeln!(text, "  {label:>width$} ┤{}", line.trim_end());
    }
    let ends = (printable(&burndown.from), printable(&burndown.to));
    let _ = writeln!(text, "  {:>width$} └{}", "", "─".repeat(values.len()));
    let _ = writeln!(text, "  {:>width$}  {} to {}", "", ends.0, ends.1);
    text
}

/// One value per column: at the end of each stretch, with stretches put together where there are too many.
fn cumulative(burndown: &Burndown) -> Vec<Usd> {
    let time = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_millis);
    let (Some(from), Some(to)) = (time(&burndown.from), time(&burndown.to)) else { return Vec::new() };
    let bucket = i64::try_from(burndown.bucket_ms).unwrap_or(i64::MAX).max(1);
    let stretches = usize::try_from((to - from).max(0).div_euclid(bucket) + 1).unwrap_or(1);
    let together = stretches.div_ceil(CHART_COLUMNS).max(1);
    let mut values = vec![None; stretches.div_ceil(together)];
    for known in &burndown.buckets {
        let Some(at) = time(&known.from) else { continue };
        let index = usize::try_from((at - from).div_euclid(bucket)).unwrap_or(0) / together;
        if let Some(value) = values.get_mut(index) {
            *value = Some(known.cumulative_usd);
        }
    }
    let mut last = Usd::ZERO;
    values
        .into_iter()
        .map(|value| {
            last = value.unwrap_or(last);
            last
        })
        .collect()
}
