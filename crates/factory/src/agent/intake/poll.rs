//! Asks: waits at the gate until the queue has changed, then claims, as long as there are seats.
//!
//! The gate is one cheap read; while nothing changes the agent asks nothing else. This is the way that always works, so
//! every other one falls back to it.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::ClaimRequest;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::claim;
use crate::agent::backoff::jittered;
use crate::agent::lease::is_final;
use crate::agent::{AgentError, Shared, merges};

/// How long one look at the gate may last. Jobs whose time comes by the clock are found at the latest then.
const GATE: Duration = Duration::from_secs(20);
pub(crate) const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), AgentError> {
    let mut known = None;
    while let Some(seat) = seat(shared, end).await {
        match look(shared, known, seat, end).await {
            Ok(version) => known = version,
            Err(error) => refused_or_later(error, end).await?,
        }
    }
    Ok(())
}

/// `None` at the end.
pub(super) async fn seat(shared: &Shared, end: &CancellationToken) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        () = end.cancelled() => None,
        seat = shared.seats.clone().acquire_owned() => seat.ok(),
    }
}

/// An error where this factory is not wanted any more; anything else may pass, after a while.
pub(super) async fn refused_or_later(error: ClientError, end: &CancellationToken) -> Result<(), AgentError> {
    if is_final(&error) {
        return Err(error.into());
    }
    tracing::warn!(%error, "the coordinator could not be asked for work");
    tokio::select! {
        () = end.cancelled() => {}
        () = jittered(AFTER_A_FAILURE) => {}
    }
    Ok(())
}

/// The merge orders that wait and one job, or nothing; then the end.
pub(crate) async fn once(shared: &Arc<Shared>) -> Result<(), AgentError> {
    merges::take(shared).await?;
    if let Ok(seat) = shared.seats.clone().acquire_owned().await {
        claim::send(shared, anything(shared), vec![seat]).await?;
    }
    Ok(())
}

/// Asks until there is nothing, then waits at the gate. Returns the version that was seen with nothing in it.
async fn look(
    shared: &Arc<Shared>,
    known: Option<u64>,
    seat: OwnedSemaphorePermit,
    end: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    if let Some(request) = shared.unanswered.get() {
        claim::send(shared, request, vec![seat]).await?;
        return Ok(None);
    }
    let version = changed(shared, known, end).await?;
    // From here on nothing may be cut short: a claim whose answer nobody hears would be held by nobody.
    if end.is_cancelled() {
        return Ok(known);
    }
    let something = claim::send(shared, anything(shared), vec![seat]).await?;
    // There may be more: the gate is passed at once.
    Ok(if something { None } else { version })
}

/// Waits until there may be something else to take. To be called before looking: what changes afterwards opens the gate.
pub(super) async fn changed(
    shared: &Shared,
    known: Option<u64>,
    end: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    tokio::select! {
        () = shared.news.notified() => Ok(known),
        version = gate(shared, known, end) => version,
    }
}

/// Waits until the queue has another version than the known one, for a while; with none known it looks at once.
pub(crate) async fn gate(
    shared: &Shared,
    known: Option<u64>,
    end: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    let wait = if known.is_some() { GATE } else { Duration::ZERO };
    tokio::select! {
        () = end.cancelled() => Ok(known),
        state = shared.client.queue_state(known, wait) => Ok(state?.map(|state| state.version).or(known)),
    }
}

/// The coordinator chooses.
fn anything(shared: &Shared) -> ClaimRequest {
    let (factory_id, request_id) = (shared.id.to_string(), merges::request_id());
    ClaimRequest { factory_id, request_id, ..ClaimRequest::default() }
}
