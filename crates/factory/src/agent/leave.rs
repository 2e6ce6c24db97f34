//! How a factory of a pool goes for good: the coordinator forgets it, its token ends, and the process with it.
//!
//! The coordinator has the last word. It answers that the factory has left only if the factory holds nothing there, and until
//! it has, this process goes on: nothing that runs here loses its token.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::LeaveRequest;
use giga_domain::PoolName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::lease::is_final;
use super::{AgentError, Shared, enroll};

/// How often a draining factory looks whether it still works. This asks nobody.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What it holds according to the coordinator alone, such as a grant on its way, is asked about again so much later.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A process that was told to stop does not wait for longer than this for a coordinator that is away, which will notice.
const LEAVE_WITHIN: Duration = Duration::from_secs(8);

/// What is left behind, for whoever removes the folder: nothing in it may be removed that is nowhere else.
const LEFT: &str = "left.json";

/// That of a factory in its pool.
pub(super) struct Membership {
    pool: PoolName,
    /// The coordinator wants it to go.
    is_to_go: watch::Sender<bool>,
    has_left: AtomicBool,
}

impl Membership {
    pub(super) fn new(pool: PoolName) -> Self {
        Self { pool, is_to_go: watch::Sender::new(false), has_left: AtomicBool::new(false) }
    }

    /// As the last heartbeat was answered: an operator may have changed his mind.
    pub(super) fn is_to_go(&self, so: bool) {
        self.is_to_go.send_if_modified(|known| std::mem::replace(known, so) != so);
    }

    fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }
}

/// Leaves as soon as the coordinator drains this factory and nothing runs here, then stops everything.
pub(super) async fn when_drained(shared: Arc<Shared>, stop: CancellationToken) {
    let Some(membership) = &shared.membership else { return };
    let mut is_to_go = membership.is_to_go.subscribe();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = is_to_go.wait_for(|so| *so) => {}
        }
        let mut pause = LOOK_EVERY;
        if shared.running.is_empty() && shared.jobs.is_empty() && shared.pending_claim.is_none() {
            match ask(&shared).await {
                Ok(Asked::Left) => {
                    tracing::info!(factory = %shared.id, pool = %membership.pool, "drained; left the fleet");
                    membership.has_left.store(true, Ordering::Release);
                    return stop.cancel();
                }
                Ok(Asked::Holds(count)) => {
                    tracing::debug!(
                        count,
                        "drained, but the coordinator has something for this factory still"
                    );
                }
                Err(error) => tracing::warn!(%error, "cannot leave yet; retrying"),
            }
            pause = ASK_EVERY;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// After the last job has been saved and handed back. Whoever has left already was refused from then on, which is no error.
pub(super) async fn at_the_end(shared: &Shared, ended: Result<(), AgentError>) -> Result<(), AgentError> {
    let Some(membership) = &shared.membership else { return ended };
    if !membership.has_left() {
        ended?;
        let left = tokio::time::timeout(LEAVE_WITHIN, leave(shared)).await;
        if !left.is_ok_and(|left| left) {
            tracing::warn!(
                factory = %shared.id,
                "could not leave the fleet; the coordinator forgets this factory after a while"
            );
            return Ok(());
        }
        membership.has_left.store(true, Ordering::Release);
        tracing::info!(factory = %shared.id, pool = %membership.pool, "left the fleet");
    }
    enroll::forget_token(&shared.base);
    let kept = shared.workspace.only_here().await;
    if !kept.is_empty() {
        tracing::warn!(kept = kept.join(", "), base = %shared.base.display(), "left work that is nowhere else");
    }
    note_left(&shared.base, &kept);
    Ok(())
}

enum Asked {
    Left,
    Holds(u64),
}

async fn ask(shared: &Shared) -> Result<Asked, ClientError> {
    match shared.client.leave(&LeaveRequest { factory_id: shared.id.to_string() }).await {
        Ok(answer) if answer.left => Ok(Asked::Left),
        Ok(answer) => Ok(Asked::Holds(answer.holds)),
        // An answer before this one was lost, or somebody has removed it.
        Err(error) if is_final(&error) => Ok(Asked::Left),
        Err(error) => Err(error),
    }
}

/// What it holds by now, nobody here works at: its leases end by themselves.
async fn leave(shared: &Shared) -> bool {
    let mut backoff = Backoff::new();
    loop {
        match ask(shared).await {
            Ok(Asked::Left) => return true,
            Ok(Asked::Holds(count)) => {
                tracing::warn!(count, "the coordinator has something for this factory still");
                return false;
            }
            Err(error) if error.is_passing() => backoff.wait().await,
            Err(error) => {
                tracing::warn!(%error, "the coordinator does not let this factory go");
                return false;
            }
        }
    }
}

/// Whoever works here again has not left.
pub(super) fn forget_note(base: &Path) {
    let _ = std::fs::remove_file(base.join(LEFT));
}

fn note_left(base: &Path, kept: &[String]) {
    let path = base.join(LEFT);
    let text = serde_json::json!({ "kept": kept }).to_string();
    if let Err(error) = std::fs::write(&path, text) {
        // Without it everything is kept.
        tracing::warn!(path = %path.display(), %error, "cannot note what is left behind");
    }
}
