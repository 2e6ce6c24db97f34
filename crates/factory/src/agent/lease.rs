//! Keeps one lease alive beside the work, and stops the work when the lease is lost or somebody asks for it back.
//!
//! The agent's own clock only ever shortens what it believes it holds: without an answer for the length of a lease it
//! stops, whatever the coordinator may think.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_api::client::{Client, ClientError};
use giga_api::wire::ClaimAnswer;
use giga_domain::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ending::Ending;

/// Why work was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// An operator cancelled the job.
    Cancelled,
    /// A more urgent job needs the seat.
    Preempted,
    /// The agent is leaving.
    Draining,
    /// The job belongs to somebody else by now, or may.
    LeaseLost,
}

/// What a task needs to know to write as the holder.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) job: String,
    pub(super) epoch: u64,
    pub(super) lease: Duration,
}

impl Held {
    pub(super) fn of(grant: &ClaimAnswer) -> Self {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let granted = grant.job.lease.as_ref().and_then(|lease| time(&lease.granted_at));
        // Both ends are the store's time, so their difference is a length whatever this machine's clock says.
        let lease = granted.zip(time(&grant.expires_at)).map(|(from, to)| to.since(from));
        Self {
            job: grant.job.id.clone(),
            epoch: grant.lease_epoch,
            lease: lease.filter(|lease| !lease.is_zero()).unwrap_or(Duration::from_secs(30)),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct LeaseKeeper {
    /// Cancelled when the work has to stop; `cause` says why.
    pub(super) stop: CancellationToken,
    cause: Arc<OnceLock<StopCause>>,
}

impl LeaseKeeper {
    /// Renews until `done`. A drain of the agent stops the work too.
    pub(super) fn start(
        client: Client,
        held: Held,
        drain: &CancellationToken,
        done: CancellationToken,
    ) -> Self {
        let keeper = Self { stop: CancellationToken::new(), cause: Arc::new(OnceLock::new()) };
        let (task, drain) = (keeper.clone(), drain.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = done.cancelled() => {}
                cause = renew_until_lost(&client, &held) => task.stop_because(cause),
                () = drain.cancelled() => {
                    task.stop_because(StopCause::Draining);
                    // The checkpoint and the release still need the lease.
                    tokio::select! {
                        () = done.cancelled() => {}
                        _ = renew_until_lost(&client, &held) => {}
                    }
                }
            }
        });
        keeper
    }

    pub(super) fn stop_because(&self, cause: StopCause) {
        let _ = self.cause.set(cause);
        self.stop.cancel();
    }

    /// How a job ends that was stopped.
    pub(super) fn stopped(&self) -> Ending {
        Ending::Stopped(self.cause.get().copied().unwrap_or(StopCause::LeaseLost))
    }
}

async fn renew_until_lost(client: &Client, held: &Held) -> StopCause {
    let mut good_until = Instant::now() + held.lease;
    loop {
        tokio::time::sleep(held.lease / 3).await;
        let asked = Instant::now();
        match tokio::time::timeout_at(good_until, client.renew(&held.job, held.epoch)).await {
            Ok(Ok(answer)) => {
                good_until = asked + held.lease;
                let told = |word: &str| answer.directives.iter().any(|d| d == word);
                if told("cancel") {
                    return StopCause::Cancelled;
                }
                if told("preempt") {
                    return StopCause::Preempted;
                }
            }
            Ok(Err(error)) if is_final(&error) => return StopCause::LeaseLost,
            Ok(Err(error)) => {
                tracing::warn!(job = held.job, %error, "the lease could not be renewed; trying again");
                if Instant::now() >= good_until {
                    return StopCause::LeaseLost;
                }
            }
            Err(_) => return StopCause::LeaseLost,
        }
    }
}

/// The coordinator answered, and the answer is no.
pub(super) fn is_final(error: &ClientError) -> bool {
    matches!(error.code(), Some("fenced" | "not_found" | "unauthenticated" | "forbidden"))
}
