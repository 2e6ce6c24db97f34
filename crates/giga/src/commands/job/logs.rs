//! What a run printed, as far as it has come, or live until its end.

use std::io::IsTerminal;
use std::time::Duration;

use giga_api::client::{Answer, Client, Signal};
use giga_api::wire::{LogPiece, Stage};
use giga_domain::Phase;
use serde_json::json;

use super::events::{last_seq, tell};
use crate::args::LogsArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::CliError;
use crate::output::{Format, Output, printable, progress, say};

/// How long one question waits for more.
const WAIT: Duration = Duration::from_secs(20);

pub(super) async fn logs(args: LogsArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.job.job).await?;
    if args.follow && args.epoch.is_none() {
        until_it_runs(&client, &id).await?;
    }
    let wait = if args.follow { WAIT } else { Duration::ZERO };
    let mut piece = client.log(&id, args.epoch, 0, wait).await?;
    if piece.total == 0 && piece.complete {
        say(if args.epoch.is_some() { "that run has no output" } else { "no output yet" });
    }
    let mut whole = String::new();
    loop {
        match context.output.format {
            Format::Json => whole.push_str(&piece.text),
            _ => print(&piece, &context.output)?,
        }
        let at_end = piece.next_offset >= piece.total && (piece.complete || !args.follow);
        // A piece that brought nothing, of a run that is over, has no successor.
        if at_end || (piece.complete && piece.text.is_empty()) {
            break;
        }
        piece = client.log(&id, Some(piece.lease_epoch), piece.next_offset, wait).await?;
    }
    if context.output.format == Format::Json {
        let log = json!({
            "jobId": id, "leaseEpoch": piece.lease_epoch, "complete": piece.complete, "text": whole,
        });
        return context.output.one(&log, "/jobId", String::new);
    }
    Ok(())
}

fn print(piece: &Answer<LogPiece>, output: &Output) -> Done {
    match output.format {
        Format::JsonLines if piece.text.is_empty() => Ok(()),
        Format::JsonLines => output.text(&piece.json.to_string()),
        // A file or a pipe gets what was printed, a terminal nothing that would steer it.
        _ if std::io::stdout().is_terminal() => output.raw(&printable(&piece.text)),
        _ => output.raw(&piece.text),
    }
}

/// Returns when a factory has taken the job, or when it needs no more waiting for.
async fn until_it_runs(client: &Client, id: &str) -> Result<(), CliError> {
    let waits = |stage: Stage| matches!(stage.phase(), Phase::Queued | Phase::Blocked);
    let after = last_seq(client, id).await?;
    let job = client.job(id).await?;
    if !waits(job.stage) {
        return Ok(());
    }
    progress(&format!("{} is {}; waiting for a factory to take it", job.name, job.stage.label()));
    let mut follow = client.follow_job(id, after);
    loop {
        match follow.next().await? {
            Signal::Event(event) if event.to.is_some_and(|stage| !waits(stage)) => return Ok(()),
            other => tell(&other),
        }
    }
}
