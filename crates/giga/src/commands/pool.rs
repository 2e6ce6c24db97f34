//! `giga pool …`

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{Cell, Color};
use giga_api::client::ClientError;
use giga_api::wire::{
    Pool, PoolCredentialKind, PoolCredentialRequest, PoolMember, PoolSettings, PoolStatus, ProblemCode,
};
use giga_domain::manifest::parse_duration;

use super::Done;
use super::context::Context;
use crate::args::{PoolArg, PoolCommand, SetPoolArgs};
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, joined, or_dash, printable, say};

pub(crate) async fn run(command: PoolCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        PoolCommand::List => {
            let answer = client.pools().await?;
            let none = "no pools; `giga pool set local --max 4` makes one on the coordinator's host";
            output.list(&answer.json, ("/pools", "/name"), none, || table(&answer.pools))
        }
        PoolCommand::Show(PoolArg { pool }) => {
            let answer = client.pool(&pool).await?;
            output.one(&answer.json, "/name", || text(&answer, output))
        }
        PoolCommand::Set(args) => {
            let before = match client.pool(&args.pool).await {
                Ok(known) => known.value.settings,
                Err(ClientError::Problem(problem)) if problem.code == ProblemCode::NotFound => {
                    PoolSettings::default()
                }
                Err(error) => return Err(error.into()),
            };
            let name = args.pool.clone();
            let answer = client.set_pool(&name, &changed(before, *args)?).await?;
            output.one(&answer.json, "/name", || text(&answer, output))
        }
        PoolCommand::Pause(PoolArg { pool }) => {
            let answer = client.pause_pool(&pool).await?;
            output.one(&answer.json, "/name", || printable(&answer.summary))
        }
        PoolCommand::Resume(PoolArg { pool }) => {
            let answer = client.resume_pool(&pool).await?;
            output.one(&answer.json, "/name", || printable(&answer.summary))
        }
        PoolCommand::Remove(PoolArg { pool }) => {
            client.remove_pool(&pool).await?;
            say(&printable(&format!("pool {pool} is removed")));
            Ok(())
        }
        PoolCommand::Credential { pool, scaler, expires } => {
            let kind = if scaler { PoolCredentialKind::Scaler } else { PoolCredentialKind::Enroll };
            let answer = client.pool_credential(&pool, &PoolCredentialRequest { kind, expires }).await?;
            output.one(&answer.json, "/token", || printable(&answer.token))
        }
    }
}

/// What is not given stays as it is.
fn changed(before: PoolSettings, args: SetPoolArgs) -> Result<PoolSettings, CliError> {
    let millis = |flag: &str, text: Option<String>, before: u64| match text {
        None => Ok(before),
        Some(text) => parse_duration(&text).ok_or_else(|| {
            CliError::Usage(format!("--{flag}: `{text}` is not a time; write it as 90s, 10m or 1h30m"))
        }),
    };
    let or = |given: Vec<String>, before: Vec<String>| if given.is_empty() { before } else { given };
    let charge_to = match args.charge_to.as_deref() {
        None => before.charge_to,
        Some("none") => None,
        Some(product) => Some(product.to_owned()),
    };
    let driver = args.driver.unwrap_or(before.driver);
    // Another driver does without what the one before needed.
    let kept = driver == before.driver;
    Ok(PoolSettings {
        driver,
        command: or(args.command, if kept { before.command } else { Vec::new() }),
        image: args.image.or(before.image.filter(|_| kept)),
        namespace: args.namespace.or(before.namespace.filter(|_| kept)),
        args: or(args.args, before.args),
        url: args.coordinator_url.or(before.url),
        capabilities: or(args.capability, before.capabilities),
        products: or(args.products, before.products),
        seats: args.seats.unwrap_or(before.seats),
        min: args.min.unwrap_or(before.min),
        max: args.max.unwrap_or(before.max),
        warm: args.warm.unwrap_or(before.warm),
        idle_ms: millis("idle", args.idle, before.idle_ms)?,
        start_timeout_ms: millis("start-timeout", args.start_timeout, before.start_timeout_ms)?,
        cost_usd_per_hour: args.cost_per_hour.or(before.cost_usd_per_hour),
        charge_to,
        paused: before.paused,
    })
}

fn state(pool: &Pool) -> Cell {
    let color = match pool.state {
        PoolStatus::Quiet => Color::Reset,
        PoolStatus::Working | PoolStatus::Starting => Color::Green,
        PoolStatus::Full | PoolStatus::Paused => Color::Yellow,
        PoolStatus::BackingOff | PoolStatus::OutOfBudget => Color::Red,
    };
    Cell::new(pool.state.as_str().replace('_', " ")).fg(color)
}

fn table(pools: &[Pool]) -> String {
    let mut table =
        Columns::new(&["POOL", "DRIVER", "STATE", "FACTORIES", "WANTED", "MAX", "WAITING", "START", "COST~"]);
    for pool in pools {
        table.row([
            Cell::new(printable(&pool.name)),
            Cell::new(pool.settings.driver.as_str()),
            state(pool),
            Cell::new(pool.members.len()),
            Cell::new(pool.target),
            Cell::new(pool.settings.max),
            Cell::new(or_dash((pool.waiting > 0).then_some(pool.waiting))),
            Cell::new(or_dash(pool.start_ms.map(seconds))),
            Cell::new(or_dash(pool.settings.cost_usd_per_hour.map(|usd| format!("{usd}/h")))),
        ]);
    }
    table.render()
}

fn seconds(millis: u64) -> String {
    format!("{:.1} s", millis as f64 / 1_000.0)
}

fn text(pool: &Pool, output: &Output) -> String {
    let settings = &pool.settings;
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11} {}", printable(&value));
    };
    line("pool", pool.name.clone());
    line("state", format!("{}: {}", pool.state.as_str().replace('_', " "), pool.summary));
    line("driver", settings.driver.to_string());
    if !settings.command.is_empty() {
        line("command", settings.command.join(" "));
    }
    settings.image.iter().for_each(|image| line("image", image.clone()));
    let SetTo { seats, min, max, warm } = SetTo::of(settings);
    line("factories", format!("{min} to {max}, {warm} warm, {seats} seats each"));
    let idle = Duration::from_millis(settings.idle_ms).as_secs_f64();
    line("idle", format!("leave after {idle} s without work"));
    if !settings.capabilities.is_empty() {
        line("has", joined(&settings.capabilities));
    }
    if !settings.args.is_empty() {
        line("arguments", settings.args.join(" "));
    }
    if let Some(cost) = settings.cost_usd_per_hour {
        let payer =
            settings.charge_to.as_ref().map(|product| format!(", paid by {product}")).unwrap_or_default();
        line("cost", format!("{cost} an hour{payer}"));
    }
    line(
        "start",
        pool.start_ms.map_or("not seen yet".to_owned(), |millis| format!("takes about {}", seconds(millis))),
    );
    line("waiting", format!("{} jobs; {} factories wanted", pool.waiting, pool.target));
    if let Some(failure) = &pool.failure {
        line("failure", format!("{} in a row: {}", failure.in_a_row, failure.reason));
    }
    if pool.members.is_empty() {
        return text;
    }
    text + "\n" + &members(&pool.members, output)
}

/// The numbers of a pool, under shorter names.
struct SetTo {
    seats: u32,
    min: u32,
    max: u32,
    warm: u32,
}

impl SetTo {
    fn of(settings: &PoolSettings) -> Self {
        let PoolSettings { seats, min, max, warm, .. } = *settings;
        Self { seats, min, max, warm }
    }
}

fn members(members: &[PoolMember], output: &Output) -> String {
    let mut table = Columns::new(&["FACTORY", "STATE", "JOBS", "ORDERED", "IDLE", "WHY~"]);
    for member in members {
        let state = match (member.state.as_str(), member.draining, member.live) {
            ("running", true, _) => "draining",
            ("running", false, false) => "offline",
            (state, ..) => state,
        };
        table.row([
            printable(&member.factory_id),
            state.to_owned(),
            member.jobs.to_string(),
            ago(&member.ordered_at, output.now),
            or_dash(member.idle_since.as_deref().map(|since| ago(since, output.now))),
            or_dash(member.reason.as_deref().map(printable)),
        ]);
    }
    table.render()
}
