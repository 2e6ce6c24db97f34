//! Signs of life, on a task of their own and at the interval that the coordinator tells.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{FactoryRepo, HeartbeatRequest, RepoEntry};
use giga_domain::{Capability, CapabilitySet};
use tokio_util::sync::CancellationToken;

use super::{AgentError, Shared};

const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// When the next one is due, and what the coordinator knows now.
async fn beat(shared: &Shared) -> Result<(Duration, CapabilitySet), ClientError> {
    let repos = shared.workspace.discover().await;
    let mut capabilities = shared.capabilities.clone();
    for repo in &repos {
        if let Ok(capability) = Capability::repo(&repo.name) {
            capabilities.insert(capability);
        }
    }
    // Jobs, not taken seats: the intake keeps one in hand while it waits for work.
    let used = shared.jobs.len();
    let request = HeartbeatRequest {
        factory_id: shared.id.to_string(),
        capabilities: capabilities.iter().map(ToString::to_string).collect(),
        repos: repos
            .into_iter()
            .map(|repo| {
                RepoEntry::Used(FactoryRepo {
                    name: repo.name,
                    last_used_at: repo.last_used_at.map(|at| at.to_string()),
                })
            })
            .collect(),
        seat_limit: shared.seat_limit,
        load: used as f64 / f64::from(shared.seat_limit.max(1)),
        health: "ok".to_owned(),
        can_clone: shared.can_clone,
        cost_usd_per_hour: None,
    };
    let answer = shared.client.heartbeat(&request).await?;
    Ok((Duration::from_millis(answer.heartbeat_interval_ms), capabilities))
}

/// Tries until the coordinator has heard of this factory; a refusal that will not pass is an error.
pub(super) async fn until_heard(shared: &Shared, stop: &CancellationToken) -> Result<(), AgentError> {
    loop {
        match beat(shared).await {
            Ok(_) => return Ok(()),
            Err(error) if !error.is_passing() => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "the coordinator does not answer yet"),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(AFTER_A_FAILURE) => {}
        }
    }
}

pub(super) async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let mut pause = AFTER_A_FAILURE;
    let mut told = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = match beat(&shared).await {
            Ok((interval, capabilities)) => {
                // A job may have waited for just that, and the queue does not change by it.
                if told.as_ref() != Some(&capabilities) {
                    shared.news.notify_one();
                    told = Some(capabilities);
                }
                interval
            }
            Err(error) => {
                tracing::warn!(%error, "a heartbeat failed");
                AFTER_A_FAILURE
            }
        };
    }
}
