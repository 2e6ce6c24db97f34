//! Keeps a channel open that brings jobs by itself, and polls whenever it is down.
//!
//! ```text
//!          open                      broken, or cannot be opened
//! keep ──────────▶ serve ─────────────────────────────────────▶ poll, trying to open again with growing pauses
//!                    ▲                                             │ open
//!                    └─────────────────────────────────────────────┘
//! ```
//!
//! A broken channel is never an error of the agent. Whether this factory is still wanted is for the polling to find out:
//! whatever stands between factory and coordinator may refuse a channel and let requests through.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::Delivery;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{claim, poll};
use crate::agent::backoff::Backoff;
use crate::agent::{AgentError, Shared, heartbeat};

/// One that held for so long was no mishap: the next try comes soon again.
const STEADY: Duration = Duration::from_secs(20);

/// Why there is no channel, in words.
#[derive(Debug)]
pub(super) struct Broken(pub(super) String);

#[async_trait]
pub(super) trait Door: Send + Sync {
    async fn open(&self, shared: &Shared) -> Result<Box<dyn Channel>, Broken>;
}

#[async_trait]
pub(super) trait Channel: Send {
    /// Starts what it brings, until `end`.
    async fn serve(&mut self, shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), Broken>;

    /// The coordinator knows by now that nothing more should come; this is for what is on its way.
    async fn leave(&mut self, _shared: &Arc<Shared>) {}
}

pub(super) async fn keep(
    shared: &Arc<Shared>,
    mode: Delivery,
    door: &dyn Door,
    end: &CancellationToken,
) -> Result<(), AgentError> {
    let mut backoff = Backoff::new();
    let mut opened = tokio::select! {
        () = end.cancelled() => return Ok(()),
        opened = door.open(shared) => opened,
    };
    loop {
        let Broken(reason) = match opened {
            Ok(mut channel) => {
                shared.ways.arrive_by(mode);
                let since = Instant::now();
                let Err(broken) = channel.serve(shared, end).await else {
                    // First told, then left: nobody may choose a factory that does not listen any more.
                    shared.ways.arrive_by(Delivery::Poll);
                    heartbeat::tell(shared).await;
                    channel.leave(shared).await;
                    return Ok(());
                };
                if since.elapsed() >= STEADY {
                    backoff.reset();
                }
                broken
            }
            Err(broken) => broken,
        };
        tracing::warn!(reason, "no jobs by {mode}: polling until it works");
        shared.ways.arrive_by(Delivery::Poll);
        match poll_until_open(shared, door, &mut backoff, end).await? {
            Some(channel) => opened = Ok(channel),
            None => return Ok(()),
        }
    }
}

/// `None` at the end.
async fn poll_until_open(
    shared: &Arc<Shared>,
    door: &dyn Door,
    backoff: &mut Backoff,
    end: &CancellationToken,
) -> Result<Option<Box<dyn Channel>>, AgentError> {
    let enough = end.child_token();
    let polling = async {
        let polled = poll::run(shared, &enough).await;
        enough.cancel();
        polled
    };
    let opening = async {
        let channel = tokio::select! {
            () = enough.cancelled() => None,
            channel = open_at_last(shared, door, backoff) => Some(channel),
        };
        // A claim under way is waited for: its answer may be a job.
        enough.cancel();
        channel
    };
    let (polled, channel) = tokio::join!(polling, opening);
    polled?;
    // Nobody polls from here on, and the coordinator can be reached again.
    if channel.is_some()
        && let Some(request) = shared.unanswered.get()
        && let Err(error) = claim::send(shared, request, Vec::new()).await
    {
        tracing::warn!(%error, "what an unanswered claim was granted waits for the end of its lease");
    }
    Ok(channel)
}

async fn open_at_last(shared: &Shared, door: &dyn Door, backoff: &mut Backoff) -> Box<dyn Channel> {
    loop {
        backoff.wait().await;
        match door.open(shared).await {
            Ok(channel) => return channel,
            // Said once, when it broke.
            Err(Broken(reason)) => tracing::debug!(reason, "still no channel"),
        }
    }
}
