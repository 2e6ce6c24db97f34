//! Event streams: pages of the history, then whatever comes, until the client leaves, its token ends or the server
//! stops.
//!
//! Nothing is queued for a client: the next page is read when the last one has been taken, so a client that does not read
//! costs a page of bounded size and not more. Whoever is far behind is brought up at a bounded speed, and all who are take
//! turns. Nothing is sent without asking whether the token still lives.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use giga_api::wire;
use giga_domain::rate::{Bucket, Rate};
use giga_domain::{Event, EventKind, EventSeq, FeedPos, JobId};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Listener;
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;

/// How many events are read, and at most kept, at a time.
const PAGE: usize = 100;
/// And so many bytes of them, but for a single event that is larger.
const PAGE_BYTES: usize = 64 * 1024;
/// How fast all readers of history together are brought up.
pub(crate) const TOGETHER: Rate = Rate { per_second: 50_000.0, burst: 100_000.0 };
/// Whoever has no more than this to catch up on is not behind.
const NEAR: u64 = 5_000;
/// A client that took longer for a page is sent away; it comes back and goes on where it was.
const SLOWEST_PAGE: Duration = Duration::from_mins(1);
/// Timestamps are whole milliseconds.
const PACED_ROUNDING: Duration = Duration::from_millis(1);
/// When a client that was cut off tries again.
const COME_BACK: Duration = Duration::from_secs(2);

/// Which history, and how far it has been sent.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Job(JobId, EventSeq),
    Fleet(FeedPos),
}

struct Tail {
    app: App,
    caller: Caller,
    source: Source,
    listener: Listener,
    speed: Bucket,
    handed_out: Option<Instant>,
    _slot: OwnedSemaphorePermit,
}

/// The listener must be older than the first look at anything that the stream is to continue from.
pub(crate) fn stream(
    app: App,
    caller: Caller,
    source: Source,
    listener: Listener,
) -> Result<Response, Problem> {
    let Ok(slot) = app.event_streams.clone().try_acquire_owned() else {
        let most = app.options.event_streams;
        let detail = format!("{most} event streams are open, the most there can be; close one, or try later");
        return Err(Problem::too_many(detail, COME_BACK));
    };
    let keep_alive = app.options.keep_alive;
    let speed = Bucket::full(app.options.history_speed, app.since_start());
    let tail = Tail { app, caller, source, listener, speed, handed_out: None, _slot: slot };
    let pages = stream::unfold(tail, |mut tail| async move {
        if tail.handed_out.is_some_and(|at| at.elapsed() > SLOWEST_PAGE) {
            return None;
        }
        let page = tail.next_page().await?;
        tail.handed_out = Some(Instant::now());
        Some((stream::iter(page), tail))
    });
    let hint = stream::once(async { SseEvent::default().retry(COME_BACK) });
    Ok(respond(hint.chain(pages.flatten()).map(Ok::<_, Infallible>), keep_alive))
}

fn respond(
    events: impl Stream<Item = Result<SseEvent, Infallible>> + Send + 'static,
    keep_alive: Duration,
) -> Response {
    let keep_alive = KeepAlive::new().interval(keep_alive).text("still here");
    // Proxies that gather answers would hold events back.
    let headers = [(CACHE_CONTROL, "no-store"), (HeaderName::from_static("x-accel-buffering"), "no")];
    (headers, Sse::new(events).keep_alive(keep_alive)).into_response()
}

impl Tail {
    /// What comes next, at least one event; nothing when the stream is over.
    async fn next_page(&mut self) -> Option<Vec<SseEvent>> {
        // An error is logged already; the client comes back and goes on where it was.
        while let Ok(Some(events)) = self.look().await {
            if events.is_empty() && !self.wait().await {
                return None;
            }
            self.pace(events.len()).await;
            let page = self.page_of(&events).ok()?;
            // Where all of the page was for others, the next one is looked at.
            if !page.is_empty() {
                return Some(page);
            }
        }
        None
    }

    /// Until so many more may be read. Who is not behind does not wait for those who are.
    async fn pace(&mut self, events: usize) {
        let count = events as f64;
        while let Err(wait) = self.speed.take(self.app.options.history_speed, count, self.app.since_start()) {
            tokio::time::sleep(wait + PACED_ROUNDING).await;
        }
        if events < PAGE || !self.is_behind() {
            return;
        }
        // Held while it waits, so that all have their turn.
        let mut together = self.app.history_speed.lock().await;
        while let Err(wait) = together.take(TOGETHER, count, self.app.since_start()) {
            tokio::time::sleep(wait + PACED_ROUNDING).await;
        }
    }

    /// Far from the end of the feed, as far as is known here.
    fn is_behind(&self) -> bool {
        match &self.source {
            Source::Job(..) => true,
            Source::Fleet(after) => after.0 + NEAR < self.app.coordinator.head().borrow().0,
        }
    }

    /// As many of the events as fit. What does not fit is looked at again when these were taken.
    fn page_of(&mut self, events: &[Event]) -> Result<Vec<SseEvent>, Problem> {
        let mut page = Vec::new();
        let mut bytes = 0;
        for event in events {
            if is_visible(event, &self.caller.products) {
                let (spelled, size) = self.spelled(event)?;
                if bytes > 0 && bytes + size > PAGE_BYTES {
                    break;
                }
                bytes += size;
                page.push(spelled);
            }
            match &mut self.source {
                Source::Job(_, after) => *after = event.job.map_or(*after, |(_, seq)| seq),
                Source::Fleet(after) => *after = event.pos,
            }
        }
        Ok(page)
    }

    /// Until there may be more to tell; false when there never will be.
    async fn wait(&mut self) -> bool {
        let grown = self.listener.grown();
        tokio::pin!(grown);
        loop {
            tokio::select! {
                () = self.app.stop.cancelled() => return false,
                grown = &mut grown => return grown.is_ok(),
                // Nothing happens, but the token may have come to its end.
                () = tokio::time::sleep(self.app.options.look_every) => {
                    if !is_authorized(&self.app, &self.caller, &[]).await.unwrap_or(false) {
                        return false;
                    }
                }
            }
        }
    }

    /// The next events of the source, visible or not; `None` when the client is to get no more.
    async fn look(&mut self) -> Result<Option<Vec<Event>>, Problem> {
        let events = {
            let coordinator = &self.app.coordinator;
            let _turn = self.app.event_pages.acquire().await;
            match &self.source {
                Source::Job(id, after) => coordinator.reads().job_events(*id, *after, PAGE).await?,
                Source::Fleet(after) => coordinator.feed(*after, PAGE).await?,
            }
        };
        if self.app.stop.is_cancelled() || !is_authorized(&self.app, &self.caller, &events).await? {
            return Ok(None);
        }
        Ok(Some(events))
    }

    /// With how many bytes it has.
    fn spelled(&self, event: &Event) -> Result<(SseEvent, usize), Problem> {
        let id = match (&self.source, event.job) {
            (Source::Job(..), Some((_, seq))) => seq.0,
            _ => event.pos.0,
        };
        let spelled = SseEvent::default().id(id.to_string()).event(event.kind.as_str());
        let json = serde_json::to_string(&wire::Event::from(&*self.caller.sight().of_event(event)));
        let json = json.map_err(|error| Problem::internal(&error.to_string()))?;
        let size = json.len();
        Ok((spelled.data(json), size))
    }
}

/// Does the token still live? Where the news itself is of a revocation the store is asked, because what the
/// coordinator remembers of tokens may be a moment behind.
async fn is_authorized(app: &App, caller: &Caller, news: &[Event]) -> Result<bool, Problem> {
    let coordinator = &app.coordinator;
    if news.iter().any(|event| event.kind == EventKind::TokenRevoked) {
        let token = coordinator.reads().token_by_hash(&caller.secret.hash()).await?;
        if token.is_none_or(|token| token.revoked_at.is_some()) {
            return Ok(false);
        }
    }
    Ok(coordinator.authenticate(&caller.secret).await?.is_some())
}

/// Events of no product are the whole fleet's business.
pub(crate) fn is_visible(event: &Event, products: &Products) -> bool {
    match &event.product {
        Some(product) => products.allows(product),
        None => *products == Products::All,
    }
}
