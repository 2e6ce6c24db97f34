//! Merges results, only on the coordinator's order, which names job, epoch and commit.
//!
//! Made and checked here, announced there, and only then pushed: whoever takes over knows what may be on its way.

use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{
    self, ClaimMergeRequest, MergeOrder as Order, PushMergeRequest, RenewMergeRequest, SettleMergeRequest,
};
use giga_domain::{Delivery, Epoch};
use tokio_util::sync::CancellationToken;

use super::backoff::jittered;
use super::checks::Tail;
use super::{Shared, intake, requests};
use crate::engines::{EngineEvent, EngineOutcome, EngineRequest, RUN_MARKER};
use crate::workspace::{Candidate, CommitId, MergeOrder, Prepared, Pushed, WorkspaceError};

/// While a stream delivers hints, how often to look without one: a hint may be lost, or the factory that took an order
/// may have died.
const LOOK_EVERY: Duration = Duration::from_mins(5);

/// Well within the 45 seconds that a merge is ours without a word.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// The end of a check's output is what says why.
const MOST_DETAIL: usize = 2_000;

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
        let lost = CancellationToken::new();
        let carried_out = async {
            let settled = carry_out(shared, &order, &lost).await;
            lost.cancel();
            settled
        };
        let (settled, ()) = tokio::join!(carried_out, keep(shared, &order, &lost));
        let Some(settled) = settled else {
            tracing::warn!(job = order.job_id, "the merge was taken over by another factory");
            continue;
        };
        if let Some(commit) = &settled.commit {
            tracing::info!(job = order.job_id, commit, "merged");
        } else {
            tracing::warn!(job = order.job_id, outcome = %settled.outcome, detail = settled.detail, "not merged");
        }
        match shared.client.settle_merge(&order.job_id, &settled).await {
            // It took so long that somebody else was sent; they will find it as it is.
            Err(error) if !error.is_passing() => {
                tracing::warn!(job = order.job_id, %error, "the merge report was refused");
            }
            settled => drop(settled?),
        }
    }
}

/// Renews the hold on the merge until it is over, or somebody else has it.
async fn keep(shared: &Shared, order: &Order, over: &CancellationToken) {
    let request = RenewMergeRequest { factory_id: shared.id.to_string(), attempt: order.attempt };
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(RENEW_EVERY) => {}
        }
        match shared.client.renew_merge(&order.job_id, &request).await {
            Err(error) if !error.is_passing() => return over.cancel(),
            // Another one follows in time.
            Ok(_) | Err(_) => {}
        }
    }
}

/// `None` where the merge is no longer this factory's.
async fn carry_out(shared: &Shared, order: &Order, lost: &CancellationToken) -> Option<SettleMergeRequest> {
    let outcome = match read(shared, order).await {
        Ok(read) => merge(shared, order, &read, lost).await,
        Err(error) => error.into(),
    };
    let (word, commit, into, detail) = match outcome {
        Outcome::Lost => return None,
        Outcome::Merged { commit, into } => (wire::MergeOutcome::Merged, Some(commit), Some(into), None),
        Outcome::Outrun => (wire::MergeOutcome::Outrun, None, None, None),
        Outcome::Not(word, detail) => (word, None, None, Some(detail.chars().take(MOST_DETAIL).collect())),
    };
    Some(SettleMergeRequest {
        factory_id: shared.id.to_string(),
        attempt: order.attempt,
        outcome: word,
        commit: commit.map(String::from),
        into,
        detail,
    })
}

enum Outcome {
    Merged { commit: CommitId, into: String },
    Outrun,
    Not(wire::MergeOutcome, String),
    Lost,
}

impl From<WorkspaceError> for Outcome {
    fn from(error: WorkspaceError) -> Self {
        let word = match error {
            WorkspaceError::PushRefused { .. }
            | WorkspaceError::Refused { .. }
            | WorkspaceError::UnknownRepo(_) => wire::MergeOutcome::Refused,
            _ => wire::MergeOutcome::Unreachable,
        };
        Self::Not(word, error.to_string())
    }
}

/// The order as the workspace takes it, every word of it checked.
async fn read(shared: &Shared, order: &Order) -> Result<MergeOrder, WorkspaceError> {
    let job = order.job_id.parse().map_err(|_| WorkspaceError::Refused {
        what: "job",
        given: order.job_id.clone(),
        rule: "the order is malformed".to_owned(),
    })?;
    Ok(MergeOrder {
        job,
        epoch: Epoch(order.lease_epoch),
        repo: shared.workspace.resolve(&order.repo).await?,
        branch: order.branch.clone(),
        commit: order.commit.parse()?,
        into: None,
        message: format!("Merge {} ({})", order.name, order.job_id),
    })
}

async fn merge(shared: &Shared, order: &Order, read: &MergeOrder, lost: &CancellationToken) -> Outcome {
    // Announced by whoever had it before: that commit, and nothing else.
    if let Some(announced) = &order.candidate {
        return match candidate(announced) {
            Ok(candidate) => push(shared, read, &candidate).await,
            Err(error) => error.into(),
        };
    }
    match requests::merge(shared, read).await {
        Ok(Some(Prepared::AlreadyMerged { commit, into })) => return Outcome::Merged { commit, into },
        Ok(Some(Prepared::Conflict { detail, .. })) => {
            return Outcome::Not(wire::MergeOutcome::Refused, detail);
        }
        Ok(Some(Prepared::Candidate(_)) | None) => {}
        Err(error) => return error.into(),
    }
    let candidate = match shared.workspace.prepare_merge(read).await {
        Ok(Prepared::Candidate(candidate)) => candidate,
        Ok(Prepared::AlreadyMerged { commit, into }) => return Outcome::Merged { commit, into },
        Ok(Prepared::Conflict { files, detail }) => {
            let detail = format!("conflicts in {}: {detail}", files.join(", "));
            return Outcome::Not(wire::MergeOutcome::Conflict, detail);
        }
        Err(error) => return error.into(),
    };
    if let Err(outcome) = check(shared, order, read, &candidate, lost).await {
        forget(shared, read, &candidate).await;
        return outcome;
    }
    let announcement = PushMergeRequest {
        factory_id: shared.id.to_string(),
        attempt: order.attempt,
        candidate: wire::MergeCandidate {
            commit: candidate.commit.to_string(),
            tip: candidate.tip.as_ref().map(ToString::to_string),
            into: candidate.into.clone(),
        },
    };
    match shared.client.push_merge(&order.job_id, &announcement).await {
        Ok(_) => push(shared, read, &candidate).await,
        Err(error) if error.is_passing() => Outcome::Not(wire::MergeOutcome::Unreachable, error.to_string()),
        Err(_) => Outcome::Lost,
    }
}

fn candidate(announced: &wire::MergeCandidate) -> Result<Candidate, WorkspaceError> {
    Ok(Candidate {
        commit: announced.commit.parse()?,
        tip: announced.tip.as_deref().map(str::parse).transpose()?,
        into: announced.into.clone(),
    })
}

async fn push(shared: &Shared, read: &MergeOrder, candidate: &Candidate) -> Outcome {
    let outcome = match shared.workspace.push_candidate(read, candidate).await {
        Ok(Pushed::Merged { commit, into }) => Outcome::Merged { commit, into },
        Ok(Pushed::Outrun) => Outcome::Outrun,
        Err(error) => return error.into(),
    };
    forget(shared, read, candidate).await;
    outcome
}

async fn forget(shared: &Shared, read: &MergeOrder, candidate: &Candidate) {
    if let Err(error) = shared.workspace.forget_candidate(read, candidate).await {
        // The next clean-up finds it.
        tracing::debug!(job = %read.job, %error, "the candidate's branch stays for now");
    }
}

/// The job's own checks, on the merged tree.
async fn check(
    shared: &Shared,
    order: &Order,
    read: &MergeOrder,
    candidate: &Candidate,
    lost: &CancellationToken,
) -> Result<(), Outcome> {
    if order.verify.is_empty() {
        return Ok(());
    }
    let Some(shell) = shared.engines.iter().find(|engine| engine.name() == "shell") else {
        let detail = "the checks of the merged tree need the shell engine, which is not ready here";
        return Err(Outcome::Not(wire::MergeOutcome::Refused, detail.to_owned()));
    };
    let tree = shared.workspace.candidate_tree(read, candidate).await?;
    for command in &order.verify {
        let mut request = EngineRequest::new(tree.path(), String::new());
        request.script = Some(command.clone());
        request.watchdog = shared.watchdog;
        request.env = vec![(RUN_MARKER.to_owned(), format!("merge-{}", order.job_id))];
        request.redact.clone_from(&shared.secrets);
        let (sender, mut events) = tokio::sync::mpsc::channel(256);
        let mut tail = Tail::default();
        let listen = async {
            while let Some(event) = events.recv().await {
                if let EngineEvent::Output { line, .. } = event {
                    tail.line(&line);
                }
            }
        };
        let (report, ()) = tokio::join!(shell.run(request, sender, lost.clone()), listen);
        match report.outcome {
            EngineOutcome::Succeeded => {}
            EngineOutcome::Stopped => return Err(Outcome::Lost),
            EngineOutcome::Failed(failure) => {
                let detail = format!("`{command}`: {}\n{}", failure.detail, tail.take());
                return Err(Outcome::Not(wire::MergeOutcome::ChecksFailed, detail));
            }
        }
    }
    Ok(())
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
