//! The holder's last word: said again and again until the coordinator answers or the lease must be over.

use std::time::Duration;

use giga_api::wire::{Checkpoint, FailRequest, ProblemCode, ReleaseRequest, ReportRequest, Spend};
use tokio::time::Instant;

use super::Shared;
use super::ending::Ending;
use super::lease::{Held, StopCause};

/// How long a leaving agent tries to hand a job back to a coordinator that does not answer.
const LEAVING: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(500);

/// What goes with it, however the run ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Parting {
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) spend: Option<Spend>,
}

/// What became of the last word.
pub(super) enum Heard {
    Taken,
    /// The job is somebody else's by now.
    Fenced,
    /// Nobody answered.
    Nothing,
}

pub(super) async fn say(shared: &Shared, held: &Held, ending: &Ending, with: &Parting) -> Heard {
    // Whoever is leaving does not wait for long: the folder is kept, and the next start settles it.
    let patience = match ending {
        Ending::Stopped(StopCause::Draining) => held.lease.min(LEAVING),
        _ => held.lease,
    };
    let give_up = Instant::now() + patience;
    loop {
        let lease_epoch = held.epoch;
        let Parting { checkpoint, spend } = with.clone();
        let said = match ending {
            // What it used up stands in the report.
            Ending::Succeeded(report) => {
                let request = ReportRequest { lease_epoch, report: Some(report.clone()), checkpoint };
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
            Ending::Stopped(StopCause::Preempted | StopCause::Draining) => {
                let request = ReleaseRequest { lease_epoch, checkpoint, spend };
                shared.client.release(&held.job, &request).await.map(|_| ())
            }
            // Nothing is handed over; what the run really cost is all that is still of use, also where it is nothing.
            Ending::Stopped(StopCause::Cancelled) => {
                match shared.client.release(&held.job, &cost_alone(held, spend)).await {
                    // An older coordinator refuses it, and it makes no difference to the work.
                    Err(error) if !error.is_passing() => return Heard::Taken,
                    said => said.map(|_| ()),
                }
            }
            Ending::Stopped(StopCause::LeaseLost) => return Heard::Fenced,
        };
        match said {
            Ok(()) => return Heard::Taken,
            Err(error) if !error.is_passing() => {
                tracing::warn!(job = held.job, %error, "the last word was refused");
                if error.code() == Some(ProblemCode::Fenced) {
                    // Where it was cancelled a moment ago, what it cost is still of use. Otherwise this is refused too.
                    let _ = shared.client.release(&held.job, &cost_alone(held, with.spend)).await;
                }
                return Heard::Fenced;
            }
            Err(error) if Instant::now() >= give_up => {
                tracing::warn!(job = held.job, %error, "the coordinator could not be told; the lease ends by itself");
                return match ending {
                    // Nobody will ask for the work.
                    Ending::Stopped(StopCause::Cancelled) => Heard::Taken,
                    _ => Heard::Nothing,
                };
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

fn cost_alone(held: &Held, spend: Option<Spend>) -> ReleaseRequest {
    ReleaseRequest { lease_epoch: held.epoch, checkpoint: None, spend: Some(spend.unwrap_or_default()) }
}

/// As the coordinator takes it: bounded, and without the control characters that an engine's output may carry.
pub(super) fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    kept.take(giga_domain::limits::REASON_CHARS).collect()
}
