//! Picks from the queue by itself: lists candidates, keeps those that this machine can run, and claims them in one call.
//!
//! The scheduler is not involved, so it must claim no more than it can run: its own capabilities, its own repositories.

use std::sync::Arc;

use giga_api::client::ClientError;
use giga_api::wire::{Candidate, ClaimRequest};
use giga_domain::CapabilitySet;
use giga_domain::job::repo_name;
use giga_domain::repo::is_known;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{claim, poll};
use crate::agent::{AgentError, Shared, heartbeat, merges};

/// How many are looked at at once: enough to find something among jobs for others, and still one small answer.
const CANDIDATES: u32 = 100;

pub(super) async fn run(shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), AgentError> {
    let mut known = None;
    while let Some(seat) = poll::seat(shared, end).await {
        match claim_next(shared, known, seat, end).await {
            Ok(version) => known = version,
            Err(error) => poll::fail_or_wait(error, end).await?,
        }
    }
    Ok(())
}

/// Returns the version of the queue that was seen with nothing to take.
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
    let version = poll::changed(shared, known, end).await?;
    if end.is_cancelled() {
        return Ok(known);
    }
    let candidates = shared.client.candidates(shared.id.as_str(), CANDIDATES).await?;
    let mut wanted = what_fits(shared, candidates).await;
    if wanted.is_empty() {
        return Ok(version);
    }
    let more = std::iter::from_fn(|| shared.seats.clone().try_acquire_owned().ok());
    let seats: Vec<OwnedSemaphorePermit> = std::iter::once(seat).chain(more.take(wanted.len() - 1)).collect();
    // A few to spare: others pick from the same queue.
    wanted.truncate((seats.len() * 2).min(CANDIDATES as usize));
    // Do not cancel from here on: a claim whose answer is lost would be held by nobody.
    let request = ClaimRequest {
        factory_id: shared.id.to_string(),
        request_id: merges::request_id(),
        job_ids: wanted,
        max: u32::try_from(seats.len()).ok(),
    };
    let something = claim::send(shared, request, seats).await?;
    // There may be more: the next poll returns at once.
    Ok(if something { None } else { version })
}

async fn what_fits(shared: &Shared, candidates: Vec<Candidate>) -> Vec<String> {
    let repos = shared.workspace.discover().await;
    let capabilities = heartbeat::capabilities(shared, &repos);
    let mut fitting = Vec::new();
    for candidate in candidates.into_iter().filter(|candidate| has_all(&capabilities, candidate)) {
        let mut reachable = true;
        for repo in candidate.repo.iter().chain(&candidate.more_repos) {
            let here = is_known(repo_name(repo), repos.iter().map(|local| local.name.as_str()));
            reachable &= here || (shared.can_clone && shared.workspace.resolve(repo).await.is_ok());
        }
        if reachable {
            fitting.push(candidate.job_id);
        }
    }
    fitting
}

/// Engines are among the capabilities. What cannot even be read is not here.
fn has_all(capabilities: &CapabilitySet, candidate: &Candidate) -> bool {
    CapabilitySet::parse(&candidate.capabilities).is_ok_and(|wanted| wanted.is_subset(capabilities))
}

#[cfg(test)]
mod tests {
    use giga_api::wire::Priority;

    use super::*;

    #[test]
    fn only_a_machine_that_has_everything_will_do() {
        let has = CapabilitySet::parse(["os:linux", "engine:shell"]).unwrap();
        let fits = |wanted: &[&str]| {
            let candidate = Candidate {
                job_id: "j".to_owned(),
                product_id: "demo".to_owned(),
                priority: Priority::Normal,
                capabilities: wanted.iter().map(|wanted| (*wanted).to_owned()).collect(),
                repo: None,
                more_repos: Vec::new(),
            };
            has_all(&has, &candidate)
        };
        assert!(fits(&[]) && fits(&["os:linux"]) && fits(&["engine:shell", "os:linux"]));
        assert!(!fits(&["os:linux", "gpu"]) && !fits(&["engine:claude"]) && !fits(&["not a capability"]));
    }
}
