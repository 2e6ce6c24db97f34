//! Event streams: pages of the history, then whatever comes, until the client leaves, its token ends or the server
//! stops.
//!
//! Nothing is queued for a client: the next page is read when the last one has been taken, so a slow client costs a
//! page and not more. Nothing is sent without asking whether the token still lives.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use giga_api::wire;
use giga_domain::{Event, EventKind, EventSeq, FeedPos, JobId};

use super::Listener;
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;

/// How many events are read, and at most kept, at a time.
const PAGE: usize = 100;

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
}

/// The listener must be older than the first look at anything that the stream is to continue from.
pub(crate) fn stream(app: App, caller: Caller, source: Source, listener: Listener) -> Response {
    let keep_alive = app.options.keep_alive;
    let tail = Tail { app, caller, source, listener };
    let pages = stream::unfold(tail, |mut tail| async move {
        let page = tail.next_page().await?;
        Some((stream::iter(page), tail))
    });
    respond(pages.flatten().map(Ok::<_, Infallible>), keep_alive)
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
            let shown = events.iter().filter(|event| is_visible(event, &self.caller.products));
            let page: Vec<SseEvent> =
                shown.map(|event| self.spelled(event)).collect::<Result<_, _>>().ok()?;
            // Where all of the page was for others, the next one is looked at.
            if !page.is_empty() {
                return Some(page);
            }
        }
        None
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
        let coordinator = &self.app.coordinator;
        let events = match &self.source {
            Source::Job(id, after) => coordinator.reads().job_events(*id, *after, PAGE).await?,
            Source::Fleet(after) => coordinator.feed(*after, PAGE).await?,
        };
        if self.app.stop.is_cancelled() || !is_authorized(&self.app, &self.caller, &events).await? {
            return Ok(None);
        }
        if let Some(last) = events.last() {
            match &mut self.source {
                Source::Job(_, after) => *after = last.job.map_or(*after, |(_, seq)| seq),
                Source::Fleet(after) => *after = last.pos,
            }
        }
        Ok(Some(events))
    }

    fn spelled(&self, event: &Event) -> Result<SseEvent, Problem> {
        let id = match (&self.source, event.job) {
            (Source::Job(..), Some((_, seq))) => seq.0,
            _ => event.pos.0,
        };
        let spelled = SseEvent::default().id(id.to_string()).event(event.kind.as_str());
        spelled.json_data(wire::Event::from(event)).map_err(|error| Problem::internal(&error.to_string()))
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
