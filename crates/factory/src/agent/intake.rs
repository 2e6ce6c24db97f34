//! Takes work: waits at the gate until the queue has changed, then asks, as long as there are seats.
//!
//! The gate is one cheap read; while nothing changes the agent asks nothing else. It is also the place where other ways
//! of delivery will come in: whatever brings a grant ends in `start`.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{ClaimAnswer, ClaimRequest};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::lease::is_final;
use super::{AgentError, Shared, job, merges};

/// How long one look at the gate may last. Jobs whose time comes by the clock are found at the latest then.
const GATE: Duration = Duration::from_secs(20);
pub(super) const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

pub(super) async fn forever(shared: &Arc<Shared>, stop: &CancellationToken) -> Result<(), AgentError> {
    let mut known = None;
    while !stop.is_cancelled() {
        let seat = tokio::select! {
            () = stop.cancelled() => break,
            seat = shared.seats.clone().acquire_owned() => seat,
        };
        let Ok(seat) = seat else { break };
        match look(shared, known, seat, stop).await {
            Ok(version) => known = version,
            // This factory is not wanted any more; anything else may pass.
            Err(error) if is_final(&error) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "the coordinator could not be asked for work");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = tokio::time::sleep(AFTER_A_FAILURE) => {}
                }
            }
        }
    }
    Ok(())
}

/// The merge orders that wait and one job, or nothing; then the end.
pub(super) async fn once(shared: &Arc<Shared>, stop: &CancellationToken) -> Result<(), AgentError> {
    merges::take(shared).await?;
    if let (Some(grant), Ok(seat)) = (claim(shared).await?, shared.seats.clone().acquire_owned().await) {
        start(shared, grant, seat, stop);
    }
    Ok(())
}

/// Asks until there is nothing, then waits at the gate. Returns the version that was seen with nothing in it.
async fn look(
    shared: &Arc<Shared>,
    known: Option<u64>,
    seat: OwnedSemaphorePermit,
    stop: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    // Read before the claim: what changes after it opens the gate.
    let version = tokio::select! {
        () = shared.news.notified() => known,
        version = gate(shared, known, stop) => version?,
    };
    // From here on nothing may be cut short: a claim whose answer nobody hears would be held by nobody.
    if stop.is_cancelled() {
        return Ok(known);
    }
    match claim(shared).await? {
        Some(grant) => {
            start(shared, grant, seat, stop);
            // There may be more: the gate is passed at once.
            Ok(None)
        }
        None => Ok(version),
    }
}

/// Waits until the queue has another version than the known one, for a while; with none known it looks at once.
pub(super) async fn gate(
    shared: &Shared,
    known: Option<u64>,
    stop: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    let wait = if known.is_some() { GATE } else { Duration::ZERO };
    tokio::select! {
        () = stop.cancelled() => Ok(known),
        state = shared.client.queue_state(known, wait) => Ok(state?.map(|state| state.version).or(known)),
    }
}

async fn claim(shared: &Shared) -> Result<Option<ClaimAnswer>, ClientError> {
    let request = ClaimRequest { factory_id: shared.id.to_string(), request_id: merges::request_id() };
    shared.client.claim(&request).await
}

fn start(shared: &Arc<Shared>, grant: ClaimAnswer, seat: OwnedSemaphorePermit, stop: &CancellationToken) {
    let (task, drain) = (shared.clone(), stop.clone());
    shared.jobs.spawn(async move {
        job::run(task, grant, drain).await;
        drop(seat);
    });
}
