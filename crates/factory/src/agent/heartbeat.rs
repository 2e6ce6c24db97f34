//! Signs of life, on a task of their own and at the interval that the coordinator tells.
//!
//! Each says how jobs reach this factory, and its answer says how they should. A change of the first is told at once:
//! until then the coordinator sends jobs where nobody listens, or none where somebody does.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{FactoryRepo, Health, HeartbeatRequest, RepoEntry};
use giga_domain::{Capability, CapabilitySet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{AgentError, Shared};
use crate::workspace::LocalRepo;

const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// News may come in bursts; they are worth one beat in this time.
const NEWS_TOGETHER: Duration = Duration::from_secs(1);
/// How long a way of delivery that is being left waits for the coordinator to know.
const TELL: Duration = Duration::from_secs(1);

/// What the machine has, its repositories included.
pub(super) fn capabilities(shared: &Shared, repos: &[LocalRepo]) -> CapabilitySet {
    let repos = repos.iter().filter_map(|repo| Capability::repo(&repo.name).ok());
    shared.capabilities.iter().cloned().chain(repos).collect()
}

/// When the next one is due, and what the coordinator knows now.
async fn beat(shared: &Shared) -> Result<(Duration, CapabilitySet), ClientError> {
    // One after the other: what was said last must be what was true last.
    let _one = shared.beating.lock().await;
    let repos = shared.workspace.discover().await;
    let capabilities = capabilities(shared, &repos);
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
        health: Health::Ok,
        can_clone: shared.can_clone,
        cost_usd_per_hour: None,
        delivery: Some((*shared.ways.actual.borrow()).into()),
    };
    let answer = shared.client.heartbeat(&request).await?;
    shared.ways.wish(answer.delivery.into());
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

/// Now, for whoever cannot go on before the coordinator knows; but it does not wait for long.
pub(super) async fn tell(shared: &Shared) {
    match tokio::time::timeout(TELL, beat(shared)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the coordinator could not be told"),
        Err(_) => tracing::debug!("the coordinator could not be told in time"),
    }
}

pub(super) async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let mut actual = shared.ways.actual.subscribe();
    let mut pause = AFTER_A_FAILURE;
    let mut told = None;
    loop {
        let last = Instant::now();
        let news = async {
            shared.beat.notified().await;
            tokio::time::sleep_until(last + NEWS_TOGETHER).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            _ = actual.changed() => {}
            () = news => {}
        }
        actual.mark_unchanged();
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
