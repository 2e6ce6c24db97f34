//! The fleet as a whole: events, alerts, metrics.

use std::fmt::Write;

use giga_api::wire::{Alert, FleetMetrics, Stage};

use super::Done;
use super::context::Context;
use super::job::{append, follow_until, print};
use crate::args::FeedArgs;
use crate::output::{Columns, Format, ago, millis, printable};

/// How far back the feed is shown when nobody says from where.
const LATEST: u64 = 50;

pub(crate) async fn events(args: FeedArgs, context: &Context) -> Done {
    let client = context.client()?;
    if args.follow {
        return follow_until(client.follow_fleet(args.after), &context.output, |_| false).await;
    }
    let after = match args.after {
        Some(after) => after,
        // The feed goes back for ever; what is asked for is what happened just now.
        None => client.metrics().await?.feed_head.saturating_sub(LATEST),
    };
    let mut page = client.events(Some(after)).await?;
    while let Some(after) = page.value.next_after {
        let next = client.events(Some(after)).await?;
        // Only one JSON document has to be kept whole.
        if context.output.format == Format::Json {
            append(&mut page, next);
        } else {
            print(&page, &context.output, true)?;
            page = next;
        }
    }
    print(&page, &context.output, true)
}

pub(crate) async fn alerts(context: &Context) -> Done {
    let answer = context.client()?.alerts().await?;
    context.output.list(&answer.json, ("/alerts", "/code"), "no alerts", || {
        let mut table = Columns::new(&["ALERT", "SINCE", "WHAT~"]);
        for Alert { title, message, since, .. } in &answer.alerts {
            let since = since.as_deref().map_or("-".to_owned(), |at| ago(at, context.output.now));
            table.row([printable(title), since, printable(message)]);
        }
        table.render()
    })
}

pub(crate) async fn metrics(context: &Context) -> Done {
    let answer = context.client()?.metrics().await?;
    context.output.one(&answer.json, "/feedHead", || metrics_text(&answer))
}

fn metrics_text(metrics: &FleetMetrics) -> String {
    let factories = &metrics.factories;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "factories  {} live, {} stale, {} draining",
        factories.live, factories.stale, factories.draining
    );
    let used = (factories.utilisation * 100.0).round();
    let _ = writeln!(text, "seats      {} of {} used ({used}%)", factories.seats_used, factories.seats);
    let oldest = metrics.oldest_queued_ms;
    let oldest = oldest.map_or("nothing".to_owned(), |oldest| format!("the longest for {}", millis(oldest)));
    let _ = writeln!(text, "waiting    {oldest}");
    if metrics.products.is_empty() {
        return text;
    }
    // Only the stages that any job is in: ten columns of zeros tell nothing.
    let any = |stage: &Stage| metrics.products.iter().any(|p| p.by_stage.get(stage).is_some_and(|n| *n > 0));
    let used: Vec<Stage> = Stage::ALL.iter().copied().filter(any).collect();
    let header: Vec<String> =
        std::iter::once("PRODUCT".to_owned()).chain(used.iter().map(|s| s.label().to_uppercase())).collect();
    let mut table = Columns::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for product in &metrics.products {
        let counts = used.iter().map(|stage| product.by_stage.get(stage).copied().unwrap_or(0).to_string());
        table.row(std::iter::once(printable(&product.product_id)).chain(counts));
    }
    table.right(&(1..=used.len()).collect::<Vec<_>>());
    text.push('\n');
    text.push_str(&table.render());
    text
}
