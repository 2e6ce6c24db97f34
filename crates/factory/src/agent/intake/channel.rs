//! Keeps a channel open that delivers jobs, and polls while it is down.
//!
//! ```text
//!          open                      broken, or cannot be opened
//! run ───────────▶ serve ─────────────────────────────────────▶ poll, reopening with backoff
//!                    ▲                                             │ open
//!                    └─────────────────────────────────────────────┘
//! ```
//!
//! A broken channel is never an error of the agent. Only polling decides whether this factory is still accepted: a proxy
//! between factory and coordinator may refuse a channel and let requests through.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::Delivery;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{claim, poll};
use crate::agent::backoff::Backoff;
use crate::agent::{AgentError, Shared, heartbeat};

/// A channel that was open for so long resets the backoff.
const STEADY: Duration = Duration::from_secs(20);

/// Why there is no channel.
#[derive(Debug)]
pub(super) struct ChannelError(pub(super) String);

#[async_trait]
pub(super) trait Connector: Send + Sync {
    async fn open(&self, shared: &Shared) -> Result<Box<dyn Channel>, ChannelError>;
}

#[async_trait]
pub(super) trait Channel: Send {
    /// Starts the jobs that it delivers, until `end`.
    async fn serve(&mut self, shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), ChannelError>;

    /// The coordinator knows by now that it should send no more; this takes jobs that are still on their way.
    async fn leave(&mut self, _shared: &Arc<Shared>) {}
}

pub(super) async fn run(
    shared: &Arc<Shared>,
    mode: Delivery,
    connector: &dyn Connector,
    end: &CancellationToken,
) -> Result<(), AgentError> {
    let mut backoff = Backoff::new();
    let mut opened = tokio::select! {
        () = end.cancelled() => return Ok(()),
        opened = connector.open(shared) => opened,
    };
    loop {
        let ChannelError(reason) = match opened {
            Ok(mut channel) => {
                shared.delivery.set_actual(mode);
                let since = Instant::now();
                let Err(broken) = channel.serve(shared, end).await else {
                    // Reported first, then closed: the dispatcher must not choose a factory whose channel is closed.
                    shared.delivery.set_actual(Delivery::Poll);
                    heartbeat::send_now(shared).await;
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
        tracing::warn!(reason, "{mode} is unavailable; polling until it works");
        shared.delivery.set_actual(Delivery::Poll);
        match poll_until_open(shared, connector, &mut backoff, end).await? {
            Some(channel) => opened = Ok(channel),
            None => return Ok(()),
        }
    }
}

/// `None` when `end` comes first.
async fn poll_until_open(
    shared: &Arc<Shared>,
    connector: &dyn Connector,
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
            channel = open_with_retries(shared, connector, backoff) => Some(channel),
        };
        // A claim under way is waited for: its answer may be a job.
        enough.cancel();
        channel
    };
    let (polled, channel) = tokio::join!(polling, opening);
    polled?;
    // Polling has ended, and the coordinator can be reached again.
    if channel.is_some()
        && let Some(request) = shared.pending_claim.get()
        && let Err(error) = claim::send(shared, request, Vec::new()).await
    {
        tracing::warn!(%error, "an unanswered claim could not be repeated; what it was granted waits until its lease expires");
    }
    Ok(channel)
}

async fn open_with_retries(
    shared: &Shared,
    connector: &dyn Connector,
    backoff: &mut Backoff,
) -> Box<dyn Channel> {
    loop {
        backoff.wait().await;
        match connector.open(shared).await {
            Ok(channel) => return channel,
            // Logged once, when it broke.
            Err(ChannelError(reason)) => tracing::debug!(reason, "still no channel"),
        }
    }
}
