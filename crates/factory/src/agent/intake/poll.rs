//! Polls: waits until the version of the queue changes, then claims, as long as there are seats.
//!
//! The long poll is one cheap read; while nothing changes the agent sends nothing else. This mode always works, so every
//! other mode falls back to it.

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

/// How long one long poll may last. Jobs that become ready by the clock are found at the latest then.
const LONG_POLL: Duration = Duration::from_secs(20);
pub(crate) const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), AgentError> {
    let mut known = None;
    while let Some(seat) = seat(shared, end).await {
        match claim_next(shared, known, seat, end).await {
            Ok(version) => known = version,
            Err(error) => fail_or_wait(error, end).await?,
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

/// An error if the coordinator refuses this factory; anything else is waited out.
pub(super) async fn fail_or_wait(error: ClientError, end: &CancellationToken) -> Result<(), AgentError> {
    if is_final(&error) {
        return Err(error.into());
    }
    tracing::warn!(%error, "cannot claim jobs; retrying");
    tokio::select! {
        () = end.cancelled() => {}
        () = jittered(RETRY_DELAY) => {}
    }
    Ok(())
}

/// Takes the waiting merge orders and at most one job, then returns.
pub(crate) async fn once(shared: &Arc<Shared>) -> Result<(), AgentError> {
    merges::take(shared).await?;
    if let Ok(seat) = shared.seats.clone().acquire_owned().await {
        claim::send(shared, any_job(shared), vec![seat]).await?;
    }
    Ok(())
}

/// Claims one job, after a change of the queue. Returns the version at which there was nothing to claim.
async fn claim_next(
    shared: &Arc<Shared>,
    known: Option<u64>,
    seat: OwnedSemaphorePermit,
    end: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    if let Some(request) = shared.pending_claim.get() {
        claim::send(shared, request, vec![seat]).await?;
        return Ok(None);
    }
    let version = changed(shared, known, end).await?;
    // Do not cancel from here on: a claim whose answer is lost would be held by nobody.
    if end.is_cancelled() {
        return Ok(known);
    }
    let something = claim::send(shared, any_job(shared), vec![seat]).await?;
    // There may be more: the next poll returns at once.
    Ok(if something { None } else { version })
}

/// Waits until there may be something new to claim. Call it before claiming: a later change ends the next wait.
pub(super) async fn changed(
    shared: &Shared,
    known: Option<u64>,
    end: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    tokio::select! {
        () = shared.new_capabilities.notified() => Ok(known),
        version = wait_for_version(shared, known, end) => version,
    }
}

/// Waits a while for a version other than the known one; returns at once if none is known.
pub(crate) async fn wait_for_version(
    shared: &Shared,
    known: Option<u64>,
    end: &CancellationToken,
) -> Result<Option<u64>, ClientError> {
    let wait = if known.is_some() { LONG_POLL } else { Duration::ZERO };
    tokio::select! {
        () = end.cancelled() => Ok(known),
        state = shared.client.queue_state(known, wait) => Ok(state?.map(|state| state.version).or(known)),
    }
}

/// The coordinator chooses.
fn any_job(shared: &Shared) -> ClaimRequest {
    let (factory_id, request_id) = (shared.id.to_string(), merges::request_id());
    ClaimRequest { factory_id, request_id, ..ClaimRequest::default() }
}
