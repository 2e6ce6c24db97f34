//! What a crash left behind: the coordinator is asked whose it is now, and the answer decides.

use std::time::Duration;

use giga_api::wire::{Checkpoint, ReleaseRequest};

use super::{Shared, job::run_marker};
use crate::engines::kill_run;
use crate::workspace::{Leftover, Worktree};

const LOOKS: u32 = 200;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Settles every leftover. A failure leaves the folder as it is, for the next start.
pub(super) async fn settle_leftovers(shared: &Shared) {
    clear_scratch(shared).await;
    for leftover in shared.workspace.find_leftovers().await {
        match shared.workspace.adopt(&leftover) {
            Ok(tree) => settle(shared, &leftover, tree).await,
            Err(error) => {
                tracing::warn!(job = %leftover.job, %error, "a leftover could not be taken in hand");
            }
        }
    }
}

async fn settle(shared: &Shared, leftover: &Leftover, tree: Worktree) {
    let id = leftover.job.to_string();
    // Its engine may have outlived the agent, and must not write while the work is saved.
    kill_engine(&run_marker(&id, leftover.epoch.0)).await;
    let job = match shared.client.job(&id).await {
        Ok(job) => Some(job.value),
        Err(error) if error.code() == Some("not_found") => None,
        Err(error) => {
            tracing::warn!(job = id, %error, "nobody could be asked about a leftover; it is kept");
            return;
        }
    };
    let still_ours = job.as_ref().is_some_and(|job| {
        job.lease_epoch == leftover.epoch.0
            && job.lease.as_ref().is_some_and(|lease| lease.factory_id == shared.id.as_str())
    });
    let said =
        if still_ours { hand_back(shared, &id, leftover, &tree).await } else { quarantine(&id, &tree).await };
    if said && let Err(error) = tree.remove().await {
        tracing::warn!(job = id, %error, "a leftover could not be removed");
    }
}

/// Until nobody is left: whoever was forking while it was killed has a child.
async fn kill_engine(marker: &str) {
    for _ in 0..LOOKS {
        if kill_run(marker) == 0 {
            return;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    tracing::warn!(run = marker, "an engine of before the crash could not be ended");
}

/// Jobs without a repository have nothing to save: their leases end by themselves.
async fn clear_scratch(shared: &Shared) {
    let scratch = shared.base.join("scratch");
    for folder in std::fs::read_dir(&scratch).into_iter().flatten().flatten() {
        // The folder is named as the run is.
        if let Ok(marker) = folder.file_name().into_string() {
            kill_engine(&marker).await;
        }
        if let Err(error) = std::fs::remove_dir_all(folder.path()) {
            tracing::warn!(folder = %folder.path().display(), %error, "a leftover could not be removed");
        }
    }
}

/// The lease is still this factory's: the work is saved and the job goes back to the queue, to be resumed from there
/// without having used up an attempt.
async fn hand_back(shared: &Shared, id: &str, leftover: &Leftover, tree: &Worktree) -> bool {
    let saved = match tree.checkpoint("after a crash of the agent", true).await {
        Ok(saved) => saved,
        Err(error) => {
            tracing::warn!(job = id, %error, "a leftover could not be saved");
            return false;
        }
    };
    let checkpoint = saved.map(|saved| {
        let mut checkpoint = Checkpoint::from(&saved.checkpoint);
        checkpoint.factory_id = saved.not_pushed.is_some().then(|| shared.id.to_string());
        checkpoint
    });
    let request = ReleaseRequest { lease_epoch: leftover.epoch.0, checkpoint };
    match shared.client.release(id, &request).await {
        Ok(_) => {
            tracing::info!(job = id, "interrupted work was saved and handed back");
            true
        }
        Err(error) if error.is_passing() => false,
        Err(_) => quarantine(id, tree).await,
    }
}

async fn quarantine(id: &str, tree: &Worktree) -> bool {
    match tree.quarantine("found after a restart; the job is no longer this factory's").await {
        Ok(branch) => {
            tracing::warn!(job = id, branch, "leftover work is in quarantine");
            true
        }
        Err(error) => {
            tracing::warn!(job = id, %error, "a leftover could not be quarantined");
            false
        }
    }
}
