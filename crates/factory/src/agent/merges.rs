//! Merges shipped results, only on the coordinator's order, which names job, epoch and commit.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{self, ClaimMergeRequest, MergeOrder as Order, SettleMergeRequest};
use giga_domain::{Delivery, Epoch};
use tokio_util::sync::CancellationToken;

use super::backoff::jittered;
use super::{Shared, intake, requests};
use crate::workspace::{MergeOrder, MergeOutcome, WorkspaceError};

/// While a stream delivers hints, how often to look without one: a hint may be lost, or the factory that took an order
/// may have died.
const LOOK_EVERY: Duration = Duration::from_mins(5);

/// Beside the jobs and without a seat: what has shipped must not wait for what is being built.
pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let mut actual = shared.delivery.actual.subscribe();
    let mut known = None;
    loop {
        let streaming = *actual.borrow_and_update() == Delivery::Stream;
        // Waited for before the orders are looked at: what changes after it ends the next wait.
        let waited = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            // The delivery mode changed: a hint in between may have been lost.
            _ = actual.changed() => Ok(None),
            () = shared.merge_hint.notified() => Ok(known),
            () = jittered(LOOK_EVERY), if streaming => Ok(known),
            version = intake::wait_for_version(&shared, known, &stop), if !streaming => version,
        };
        // Never cut short: an order that was taken is carried out.
        let looked = match waited {
            Ok(version) => take(&shared).await.map(|()| version),
            Err(error) => Err(error),
        };
        match looked {
            Ok(version) => known = version,
            Err(error) => {
                tracing::debug!(%error, "cannot claim merge orders; retrying");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(intake::RETRY_DELAY) => {}
                }
                if streaming {
                    shared.merge_hint.notify_one();
                }
            }
        }
    }
}

/// Takes one order after the other until there is none.
pub(super) async fn take(shared: &Shared) -> Result<(), ClientError> {
    loop {
        let request = ClaimMergeRequest { factory_id: shared.id.to_string() };
        let Some(order) = shared.client.claim_merge(&request).await? else { return Ok(()) };
        let settled = carry_out(shared, &order).await;
        if let Some(commit) = &settled.commit {
            tracing::info!(job = order.job_id, commit, "merged");
        } else {
            tracing::warn!(job = order.job_id, detail = settled.detail, "not merged");
        }
        match shared.client.settle_merge(&order.job_id, &settled).await {
            // It took so long that somebody else was sent; they will find it merged.
            Err(error) if !error.is_passing() => {
                tracing::warn!(job = order.job_id, %error, "the merge report was refused");
            }
            settled => drop(settled?),
        }
    }
}

async fn carry_out(shared: &Shared, order: &Order) -> SettleMergeRequest {
    let settled = |outcome, commit: Option<String>, detail: Option<String>| SettleMergeRequest {
        factory_id: shared.id.to_string(),
        attempt: order.attempt,
        outcome,
        commit,
        detail,
    };
    match merge(shared, order).await {
        Ok(MergeOutcome::Merged { commit, .. } | MergeOutcome::AlreadyMerged { commit, .. }) => {
            settled(wire::MergeOutcome::Merged, Some(commit.to_string()), None)
        }
        Ok(MergeOutcome::Conflict { files, detail }) => {
            let detail = format!("conflicts in {}: {detail}", files.join(", "));
            settled(wire::MergeOutcome::Conflict, None, Some(detail.chars().take(2_000).collect()))
        }
        Err(error) => settled(wire::MergeOutcome::Failed, None, Some(error.to_string())),
    }
}

async fn merge(shared: &Shared, order: &Order) -> Result<MergeOutcome, WorkspaceError> {
    let malformed = |what: &'static str, given: &str| WorkspaceError::Refused {
        what,
        given: given.to_owned(),
        rule: "the order is malformed".to_owned(),
    };
    let order = MergeOrder {
        job: order.job_id.parse().map_err(|_| malformed("job", &order.job_id))?,
        epoch: Epoch(order.lease_epoch),
        repo: shared.workspace.resolve(&order.repo).await?,
        branch: order.branch.clone(),
        commit: order.commit.parse()?,
        into: None,
        message: format!("Merge {} ({})", order.name, order.job_id),
    };
    match requests::merge(shared, &order).await? {
        Some(outcome) => Ok(outcome),
        None => shared.workspace.merge(&order).await,
    }
}

/// Unique on this machine and beyond: a repeated request is the same one only when it is sent again as it is.
pub(super) fn request_id() -> String {
    let mut bytes = [0u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without randomness, the time in nanoseconds and the process tell requests apart.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = (now.as_nanos() ^ (u128::from(std::process::id()) << 96)).to_be_bytes();
    }
    format!("r{}", const_hex::encode(bytes))
}
