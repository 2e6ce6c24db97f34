//! The history, page by page or as it grows.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use giga_api::wire;
use giga_domain::{Event, EventSeq, FeedPos};

use super::Answer;
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::live::{Source, is_visible, stream};
use crate::request::query::whole_number;
use crate::request::{PathText, Query, header};

/// How much of the feed one request looks through for a caller who may see little of it.
const LOOKED_THROUGH: usize = 10_000;
const PAGE: usize = 1_000;

pub(crate) async fn of_job(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
) -> Answer<Json<wire::EventPage>> {
    let after = EventSeq(query.number("after")?.unwrap_or(0));
    let limit = query.limit()?;
    let job = app.visible_job(&caller, path.id()?).await?;
    let mut events = app.coordinator.reads().job_events(job.id, after, limit + 1).await?;
    let more = events.len() > limit;
    events.truncate(limit);
    let last = events.last().and_then(|event| event.job).map(|(_, seq)| seq.0);
    Ok(Json(page(&caller, &events, last.filter(|_| more))))
}

pub(crate) async fn of_fleet(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Answer<Json<wire::EventPage>> {
    let mut after = FeedPos(query.number("after")?.unwrap_or(0));
    let limit = query.limit()?;
    let size = if caller.products == Products::All { limit + 1 } else { PAGE };
    let mut found: Vec<Event> = Vec::new();
    let mut looked_through = 0;
    loop {
        let events = app.coordinator.feed(after, size).await?;
        let ended = events.len() < size;
        looked_through += events.len();
        for event in events {
            if is_visible(&event, &caller.products) {
                if found.len() == limit {
                    // One more than fits: it is the first of the next page.
                    return Ok(Json(page(&caller, &found, Some(after.0))));
                }
                after = event.pos;
                found.push(event);
            } else {
                after = event.pos;
            }
        }
        if ended {
            return Ok(Json(page(&caller, &found, None)));
        }
        if looked_through >= LOOKED_THROUGH {
            // There may be more to see; the caller goes on from here.
            return Ok(Json(page(&caller, &found, Some(after.0))));
        }
    }
}

fn page(caller: &Caller, events: &[Event], next_after: Option<u64>) -> wire::EventPage {
    let sight = caller.sight();
    let events = events.iter().map(|event| wire::Event::from(&*sight.of_event(event)));
    wire::EventPage { events: events.collect(), next_after }
}

pub(crate) async fn stream_job(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    let listener = app.feed_watch.listen();
    let after = EventSeq(resume_after(&query, &headers)?.unwrap_or(0));
    let job = app.visible_job(&caller, path.id()?).await?;
    stream(app, caller, Source::Job(job.id, after.min(job.last_event)), listener)
}

pub(crate) async fn stream_fleet(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    let listener = app.feed_watch.listen();
    let asked = resume_after(&query, &headers)?.map(FeedPos);
    let head = app.coordinator.reads().feed_head().await?;
    stream(app, caller, Source::Fleet(asked.unwrap_or(head).min(head)), listener)
}

/// The header stands above the parameter: a browser that reconnects repeats the address and adds the header.
///
/// It may be ahead of all there is, where the store was put back to a backup. Whoever comes with it goes on from the end,
/// instead of hearing nothing until the history is as long again.
fn resume_after(query: &Query, headers: &HeaderMap) -> Answer<Option<u64>> {
    let name = "last-event-id";
    match header::single(headers, name)? {
        Some(text) if !text.is_empty() => whole_number(name, text).map(Some),
        _ => query.number("after"),
    }
}
