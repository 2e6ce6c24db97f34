//! What happened, and what happens.

use giga_api::client::{Answer, Client, Follow, Signal};
use giga_api::wire::{Event, EventPage, Stage};

use crate::args::EventsArgs;
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::CliError;
use crate::output::{Format, Output, append_page, printable, say};

pub(super) async fn events(args: EventsArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.job.job).await?;
    if args.follow {
        // Asked for first, so that a job that has ended, or does not exist, is known to.
        let job = client.job(&id).await?;
        if !job.stage.is_terminal() {
            let ended = |event: &Event| event.to.is_some_and(Stage::is_terminal);
            return follow_until(client.follow_job(&id, 0), &context.output, ended).await;
        }
    }
    let mut history = client.job_events(&id, None).await?;
    while let Some(after) = history.value.next_after {
        let next = client.job_events(&id, Some(after)).await?;
        append(&mut history, next);
    }
    print(&history, &context.output, false)
}

pub(crate) fn print(page: &Answer<EventPage>, output: &Output, with_job: bool) -> Done {
    output.list(&page.json, ("/events", "/type"), "no events", || {
        page.events.iter().map(|event| event_line(event, with_job) + "\n").collect()
    })
}

/// Pages become one answer: their events one after the other.
pub(crate) fn append(page: &mut Answer<EventPage>, next: Answer<EventPage>) {
    page.value.events.extend(next.value.events);
    page.value.next_after = next.value.next_after;
    append_page(&mut page.json, next.json, "events", "nextAfter");
}

/// Prints events as they come until one of them is the last.
pub(crate) async fn follow_until(
    mut follow: Follow,
    output: &Output,
    is_last: impl Fn(&Event) -> bool,
) -> Done {
    loop {
        match follow.next().await? {
            Signal::Event(event) => {
                match output.format {
                    Format::Table => output.text(&event_line(&event, true))?,
                    // A stream has no end, so that its JSON is one line per event in either form.
                    Format::Json | Format::JsonLines => output.text(&event.json.to_string())?,
                    Format::Name => output.text(event.kind.as_str())?,
                }
                if is_last(&event) {
                    return Ok(());
                }
            }
            other => tell(&other),
        }
    }
}

pub(super) fn tell(signal: &Signal) {
    match signal {
        Signal::Lost(error) => say(&format!("connection lost ({error}); trying again…")),
        Signal::Back => say("connected again; nothing was missed"),
        Signal::Event(_) => {}
    }
}

/// `2026-… job.assigned  queued → assigned  cause (by actor)`.
fn event_line(event: &Event, with_job: bool) -> String {
    let step = match (event.from, event.to) {
        (Some(from), Some(to)) if from != to => format!("{} → {}  ", from.label(), to.label()),
        (None, Some(to)) => format!("→ {}  ", to.label()),
        _ => String::new(),
    };
    let job = event.job_id.as_deref().filter(|_| with_job).map(|id| format!("{id}  ")).unwrap_or_default();
    let line =
        format!("{}  {job}{:<20}  {step}{} (by {})", event.at, event.kind.as_str(), event.cause, event.actor);
    printable(&line)
}

/// The place of the last event of the job's history so far.
pub(super) async fn last_seq(client: &Client, id: &str) -> Result<u64, CliError> {
    let mut after = 0;
    loop {
        let page = client.job_events(id, Some(after)).await?;
        after = page.events.iter().filter_map(|event| event.seq).max().unwrap_or(after);
        match page.next_after {
            Some(next) => after = after.max(next),
            None => return Ok(after),
        }
    }
}
