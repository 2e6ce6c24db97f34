//! The holder's final report (report, fail or release): retried until the coordinator answers or the lease must be over.

use std::time::Duration;

use giga_api::wire::{Checkpoint, FailRequest, ProblemCode, ReleaseRequest, ReportRequest, Spend};
use tokio::time::Instant;

use super::Shared;
use super::ending::Ending;
use super::lease::{Held, StopCause};

/// How long a draining agent tries to release a job while the coordinator does not answer.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// What goes with the report, however the run ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Handover {
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) spend: Option<Spend>,
}

/// What became of the final report.
pub(super) enum Receipt {
    Accepted,
    /// Another factory holds the job by now.
    Fenced,
    /// The coordinator did not answer in time.
    Unanswered,
}

pub(super) async fn send(shared: &Shared, held: &Held, ending: &Ending, with: &Handover) -> Receipt {
    // A draining agent does not wait for long: the folder is kept, and the next start settles it.
    let patience = match ending {
        Ending::Stopped(StopCause::Draining) => held.lease.min(DRAIN_TIMEOUT),
        _ => held.lease,
    };
    let give_up = Instant::now() + patience;
    loop {
        let lease_epoch = held.epoch;
        let Handover { checkpoint, spend } = with.clone();
        let sent = match ending {
            // The report includes the spend.
            Ending::Succeeded(report) => {
                let request = ReportRequest { lease_epoch, report: Some((**report).clone()), checkpoint };
                shared.client.report(&held.job, &request).await.map(|_| ())
            }
            Ending::Failed(failure) => {
                let request = FailRequest {
                    job_id: held.job.clone(),
                    lease_epoch,
                    reason: failure.reason.into(),
                    retryable: failure.retryable,
                    detail: Some(plain(&failure.detail)),
                    checkpoint,
                    spend,
                };
                shared.client.fail(&request).await.map(|_| ())
            }
            Ending::Stopped(StopCause::Preempted | StopCause::Draining | StopCause::Parked) => {
                let request = ReleaseRequest { lease_epoch, checkpoint, spend };
                shared.client.release(&held.job, &request).await.map(|_| ())
            }
            // There is nothing to hand over; only what the run really cost still matters, even if that is nothing.
            Ending::Stopped(StopCause::Cancelled) => {
                match shared.client.release(&held.job, &spend_only(held, spend)).await {
                    // An older coordinator refuses it, which makes no difference to the work.
                    Err(error) if !error.is_passing() => return Receipt::Accepted,
                    sent => sent.map(|_| ()),
                }
            }
            // The second is a failure by now.
            Ending::Stopped(StopCause::LeaseLost | StopCause::Unanswered) => return Receipt::Fenced,
        };
        match sent {
            Ok(()) => return Receipt::Accepted,
            Err(error) if !error.is_passing() => {
                tracing::warn!(job = held.job, %error, "the final report was refused");
                if error.code() == Some(ProblemCode::Fenced) {
                    // If it was cancelled a moment ago, its cost still matters. Otherwise this is refused too.
                    let _ = shared.client.release(&held.job, &spend_only(held, with.spend)).await;
                }
                return Receipt::Fenced;
            }
            Err(error) if Instant::now() >= give_up => {
                tracing::warn!(job = held.job, %error, "the final report could not be delivered; the lease will expire");
                return match ending {
                    // Nobody needs the work.
                    Ending::Stopped(StopCause::Cancelled) => Receipt::Accepted,
                    _ => Receipt::Unanswered,
                };
            }
            Err(_) => tokio::time::sleep(RETRY_DELAY).await,
        }
    }
}

fn spend_only(held: &Held, spend: Option<Spend>) -> ReleaseRequest {
    ReleaseRequest { lease_epoch: held.epoch, checkpoint: None, spend: Some(spend.unwrap_or_default()) }
}

/// As the coordinator accepts it: bounded, and without the control characters that an engine's output may contain.
pub(super) fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    kept.take(giga_domain::limits::REASON_CHARS).collect()
}
