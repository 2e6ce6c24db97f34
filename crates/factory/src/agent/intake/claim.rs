//! Sends claims, and remembers the one that was not answered.
//!
//! What such a claim was granted is held by this factory, and by nobody in it, until it is sent again exactly as it was.
//! Nothing else may be claimed before that.

use std::sync::Arc;

use giga_api::client::ClientError;
use giga_api::wire::ClaimRequest;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::start;
use crate::agent::Shared;

#[derive(Default)]
pub(crate) struct PendingClaim(Mutex<Option<ClaimRequest>>);

impl PendingClaim {
    pub(crate) fn is_none(&self) -> bool {
        self.0.lock().is_none()
    }

    pub(super) fn get(&self) -> Option<ClaimRequest> {
        self.0.lock().clone()
    }
}

/// Starts what was granted and returns whether that was anything. Never cancel it: its answer may be a job.
pub(super) async fn send(
    shared: &Arc<Shared>,
    request: ClaimRequest,
    mut seats: Vec<OwnedSemaphorePermit>,
) -> Result<bool, ClientError> {
    *shared.pending_claim.0.lock() = Some(request.clone());
    let answer = if request.max.is_some() {
        shared.client.claim_many(&request).await
    } else {
        shared.client.claim(&request).await.map(|grant| grant.into_iter().collect())
    };
    if answer.as_ref().err().is_none_or(is_malformed) {
        shared.pending_claim.0.lock().take();
    }
    let grants = answer?;
    let something = !grants.is_empty();
    for grant in grants {
        let seat = seats.pop().or_else(|| shared.seats.clone().try_acquire_owned().ok());
        start(shared, grant, seat);
    }
    Ok(something)
}

/// The request itself is refused, and would be every time. Any other error leaves open what happened to an earlier try.
fn is_malformed(error: &ClientError) -> bool {
    matches!(error, ClientError::Problem(problem) if matches!(problem.status, 400 | 422))
}
