//! Keeps one lease alive beside the work, and stops the work when the lease is lost or somebody asks for it back.
//!
//! The agent's own clock only ever shortens what it believes it holds: without an answer for the length of a lease it
//! stops, whatever the coordinator may think.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_api::client::{Client, ClientError};
use giga_api::wire::{Directive, ProblemCode, RenewAnswer};
use giga_domain::FailReason;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ending::{Ending, RunFailure};
use super::grant::Grant;
use super::meter::Meter;

/// Why work was stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// An operator cancelled the job.
    Cancelled,
    /// A more urgent job needs the seat.
    Preempted,
    /// The agent is leaving.
    Draining,
    /// A question has been open for too long to keep the seat for it.
    Parked,
    /// Nobody answered its question in time; see [`LeaseKeeper::stop_unanswered`].
    Unanswered,
    /// The job belongs to somebody else by now, or may.
    LeaseLost,
}

/// What a task needs to know to write as the holder.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) job: String,
    pub(super) epoch: u64,
    pub(super) lease: Duration,
    /// There may be a directive: renew at once.
    pub(super) renew_now: Arc<Notify>,
    /// People said something.
    pub(super) input: Arc<Notify>,
}

impl Held {
    pub(super) fn of(grant: &Grant) -> Self {
        Self {
            job: grant.job.to_string(),
            epoch: grant.epoch.0,
            lease: grant.lease,
            renew_now: Arc::new(Notify::new()),
            input: Arc::new(Notify::new()),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct LeaseKeeper {
    /// Cancelled when the work has to stop; `cause` says why.
    pub(super) stop: CancellationToken,
    cause: Arc<OnceLock<StopCause>>,
    unanswered: Arc<OnceLock<String>>,
}

impl LeaseKeeper {
    /// Renews until `done`, also when the work was stopped: the checkpoint and the release still need the lease. A drain
    /// of the agent stops the work too.
    pub(super) fn start(
        client: Client,
        held: Held,
        meter: Meter,
        drain: &CancellationToken,
        done: CancellationToken,
    ) -> Self {
        let keeper =
            Self { stop: CancellationToken::new(), cause: Arc::default(), unanswered: Arc::default() };
        let (task, drain) = (keeper.clone(), drain.clone());
        tokio::spawn(async move {
            let draining = async {
                drain.cancelled().await;
                task.stop_because(StopCause::Draining);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = done.cancelled() => {}
                cause = task.renew_until_lost(&client, &held, &meter) => task.stop_because(cause),
                () = draining => {}
            }
        });
        keeper
    }

    /// The first cause stands.
    pub(super) fn stop_because(&self, cause: StopCause) {
        let _ = self.cause.set(cause);
        self.stop.cancel();
    }

    /// Nobody answered this question, and there is no default: the run fails with it.
    pub(super) fn stop_unanswered(&self, question: &str) {
        let _ = self.unanswered.set(question.to_owned());
        self.stop_because(StopCause::Unanswered);
    }

    /// How a job ends that was stopped.
    pub(super) fn stopped(&self) -> Ending {
        match (self.cause.get().copied(), self.unanswered.get()) {
            (Some(StopCause::Unanswered), question) => {
                let question = question.map(String::as_str).unwrap_or_default();
                let detail = format!("nobody answered in time: {question}");
                Ending::Failed(RunFailure::new(FailReason::Unanswered, detail))
            }
            (cause, _) => Ending::Stopped(cause.unwrap_or(StopCause::LeaseLost)),
        }
    }

    async fn renew_until_lost(&self, client: &Client, held: &Held, meter: &Meter) -> StopCause {
        let mut good_until = Instant::now() + held.lease;
        loop {
            tokio::select! {
                () = tokio::time::sleep(held.lease / 3) => {}
                () = held.renew_now.notified() => {}
            }
            let asked = Instant::now();
            let renewal = client.renew(&held.job, held.epoch, meter.spend());
            match tokio::time::timeout_at(good_until, renewal).await {
                Ok(Ok(answer)) => {
                    good_until = asked + held.lease;
                    if answer.directives.contains(&Directive::Input) {
                        held.input.notify_one();
                    }
                    match asked_to_stop(&answer) {
                        Some(StopCause::Cancelled) => return StopCause::Cancelled,
                        // The lease is still needed for the checkpoint and the final report.
                        Some(cause) => self.stop_because(cause),
                        None => {}
                    }
                }
                Ok(Err(error)) if is_final(&error) => return StopCause::LeaseLost,
                Ok(Err(error)) => {
                    tracing::warn!(job = held.job, %error, "the lease could not be renewed; retrying");
                    if Instant::now() >= good_until {
                        return StopCause::LeaseLost;
                    }
                }
                Err(_) => return StopCause::LeaseLost,
            }
        }
    }
}

/// What the answer to a renewal asks of the holder.
pub(super) fn asked_to_stop(answer: &RenewAnswer) -> Option<StopCause> {
    if answer.directives.contains(&Directive::Cancel) {
        Some(StopCause::Cancelled)
    } else if answer.directives.contains(&Directive::Preempt) {
        Some(StopCause::Preempted)
    } else if answer.directives.contains(&Directive::Park) {
        Some(StopCause::Parked)
    } else {
        None
    }
}

/// The coordinator answered, and the answer is no.
pub(super) fn is_final(error: &ClientError) -> bool {
    use ProblemCode::{Fenced, Forbidden, NotFound, Unauthenticated};
    matches!(error.code(), Some(Fenced | NotFound | Unauthenticated | Forbidden))
}
