//! Heartbeats, on a task of their own and at the interval that the coordinator asks for.
//!
//! Each reports how jobs reach this factory, and its answer says how they should. A change of delivery is reported at once:
//! until then the coordinator would send jobs to a closed channel, or none to an open one.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{Directive, FactoryRepo, HeartbeatRequest, ProblemCode, RepoEntry};
use giga_domain::{Capability, CapabilitySet, limits};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{AgentError, Shared, accounts, machine};
use crate::workspace::LocalRepo;

const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Hints may come in bursts; send at most one heartbeat for them in this time.
const HINT_INTERVAL: Duration = Duration::from_secs(1);
/// How long [`send_now`] waits for an answer.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// How much a heartbeat says about where results go. Whoever has hundreds of repositories says it about the first ones: a
/// heartbeat that is too long would be refused.
const MOST_WORDS: usize = 64 * 1024;

/// What the machine has, its repositories included.
pub(super) fn capabilities(shared: &Shared, repos: &[LocalRepo]) -> CapabilitySet {
    let repos = repos.iter().filter_map(|repo| Capability::repo(&repo.name).ok());
    let engines = shared.engines.capabilities();
    let mut all = shared.machine.capabilities().union(&engines);
    all.extend(repos);
    all
}

fn entries(repos: Vec<LocalRepo>) -> Vec<RepoEntry> {
    let mut room = MOST_WORDS;
    let mut entry = |repo: LocalRepo| {
        let said: String =
            repo.merges_into.chars().filter(|c| !c.is_control()).take(limits::NOTE_CHARS).collect();
        room = room.saturating_sub(said.len());
        RepoEntry::Used(FactoryRepo {
            name: repo.name,
            url: Some(repo.url.canonical().to_owned()),
            last_used_at: repo.last_used_at.map(|at| at.to_string()),
            merges_into: (room > 0).then_some(said),
        })
    };
    repos.into_iter().map(&mut entry).collect()
}

/// Returns when the next one is due, and the capabilities that the coordinator knows now.
async fn send(shared: &Shared, take_over: bool) -> Result<(Duration, CapabilitySet), ClientError> {
    // One at a time: the last one sent must carry the latest state.
    let _one = shared.heartbeat_lock.lock().await;
    let repos = shared.workspace.discover().await;
    let capabilities = capabilities(shared, &repos);
    let (health, reason) = shared.health.now();
    let request = HeartbeatRequest {
        factory_id: shared.id.to_string(),
        capabilities: capabilities.tokens().collect(),
        repos: entries(repos),
        seat_limit: shared.seat_limit,
        load: machine::load(),
        health,
        health_reason: reason.map(|reason| reason.chars().take(limits::NOTE_CHARS).collect()),
        can_clone: shared.can_clone,
        clones: shared.workspace.clones(),
        instance: Some(shared.instance.clone()),
        take_over,
        cost_usd_per_hour: shared.cost_per_hour,
        delivery: Some((*shared.delivery.actual.borrow()).into()),
        accounts: shared.accounts.reports(&shared.engines.known(), accounts::now()),
    };
    let answer = shared.client.heartbeat(&request).await?;
    shared.delivery.want(answer.delivery.into());
    if let Some(membership) = &shared.membership {
        membership.is_to_go(answer.directives.contains(&Directive::Drain));
    }
    Ok((Duration::from_millis(answer.heartbeat_interval_ms), capabilities))
}

/// Retries until the coordinator has accepted a heartbeat; a permanent refusal is an error.
pub(super) async fn until_accepted(
    shared: &Shared,
    take_over: bool,
    stop: &CancellationToken,
) -> Result<(), AgentError> {
    loop {
        match send(shared, take_over).await {
            Ok(_) => return Ok(()),
            Err(ClientError::Problem(problem)) if problem.code == ProblemCode::FactoryInUse => {
                return Err(AgentError::NameInUse(problem.detail.clone()));
            }
            Err(error) if !error.is_passing() => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "the coordinator does not answer yet; retrying"),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(RETRY_DELAY) => {}
        }
    }
}

/// Sends one now, for callers that need the coordinator to know first; it does not wait for long.
pub(super) async fn send_now(shared: &Shared) {
    match tokio::time::timeout(SEND_TIMEOUT, send(shared, false)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a heartbeat failed"),
        Err(_) => tracing::debug!("a heartbeat timed out"),
    }
}

pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let mut actual = shared.delivery.actual.subscribe();
    let mut delay = RETRY_DELAY;
    let mut reported = None;
    loop {
        let last = Instant::now();
        let hinted = async {
            shared.heartbeat_hint.notified().await;
            tokio::time::sleep_until(last + HINT_INTERVAL).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
            _ = actual.changed() => {}
            () = hinted => {}
        }
        actual.mark_unchanged();
        delay = match send(&shared, false).await {
            Ok((interval, capabilities)) => {
                // A job may have waited for this capability, and the version of the queue does not change with it.
                if reported.as_ref() != Some(&capabilities) {
                    shared.new_capabilities.notify_one();
                    reported = Some(capabilities);
                }
                interval
            }
            // Whoever took the name over gets its jobs from now on. What is held here is saved and given back.
            Err(ClientError::Problem(problem)) if problem.code == ProblemCode::FactoryInUse => {
                tracing::error!("{}", problem.detail);
                let _ = shared.replaced.set(problem.detail.clone());
                stop.cancel();
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "a heartbeat failed");
                RETRY_DELAY
            }
        };
    }
}
