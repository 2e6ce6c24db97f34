//! What a run leaves for the next one: checkpoints while it works and at its end.
//!
//! Decides nothing about the job. Work that the origin does not accept stays on this host, and the checkpoint notes that.

use std::time::Duration;

use giga_api::wire::{Checkpoint, PatchRequest, RunReport};
use giga_domain::FailReason;
use tokio_util::sync::CancellationToken;

use super::ending::Ending;
use super::job::{JobRun, Place};
use crate::workspace::{Saved, WorkspaceError};

/// How long a run that has to stop waits for the origin to take its work. After that it lies on this host only: a seat
/// that somebody else needs is not held for it.
const LAST_PUSH: Duration = Duration::from_secs(10);

impl JobRun<'_> {
    /// Saves the work while the engine runs, so that a dead machine loses little.
    pub(super) async fn save_periodically(&self, place: &Place, until: CancellationToken) {
        loop {
            tokio::select! {
                () = until.cancelled() => return,
                () = tokio::time::sleep(self.shared.checkpoint_every) => {}
                // At once: whoever comes after a crash can go on with it only if somebody knows it.
                () = self.meter.new_session() => {}
            }
            self.note_spend(place);
            let saved = tokio::select! {
                saved = self.save(place, "while running") => saved,
                () = self.stopped_for(LAST_PUSH) => return,
            };
            let known = self.known.lock().clone();
            let is_new = saved.is_some();
            let mut checkpoint = saved.or_else(|| known.clone()).unwrap_or_default();
            self.meter.note_session(&mut checkpoint);
            if !is_new && known.is_some_and(|known| known.session_id == checkpoint.session_id) {
                continue;
            }
            if checkpoint == Checkpoint::default() {
                continue;
            }
            let checkpoint = self.clean_checkpoint(checkpoint);
            let patch = PatchRequest {
                lease_epoch: self.held.epoch,
                stage: None,
                checkpoint: Some(checkpoint.clone()),
            };
            match self.shared.client.patch_job(&self.held.job, &patch).await {
                Ok(_) => *self.known.lock() = Some(checkpoint),
                Err(error) => {
                    tracing::warn!(job = self.held.job, %error, "the checkpoint could not be reported");
                }
            }
        }
    }

    /// What the run has used up so far, beside its work: a restart finds it there.
    pub(super) fn note_spend(&self, place: &Place) {
        let Place::Repo(folder) = place else { return };
        if let Err(error) = folder.note_spend(&self.meter.note()) {
            tracing::warn!(job = self.held.job, %error, "the spend could not be noted");
        }
    }

    fn clean_checkpoint(&self, checkpoint: Checkpoint) -> Checkpoint {
        match self.secrets.get() {
            Some(secrets) => secrets.clean_checkpoint(checkpoint),
            None => checkpoint,
        }
    }

    async fn stopped_for(&self, time: Duration) {
        self.keeper.stop.cancelled().await;
        tokio::time::sleep(time).await;
    }

    /// A checkpoint of everything so far; `None` when there is nothing new, or it could not be taken.
    pub(super) async fn save(&self, place: &Place, note: &str) -> Option<Checkpoint> {
        let Place::Repo(folder) = place else { return None };
        let saved = folder.checkpoint(note, true).await;
        self.saved(saved)
    }

    /// The same, for whoever has to let go: what the origin does not take in time stays on this host.
    pub(super) async fn save_with_deadline(&self, place: &Place, note: &str) -> Option<Checkpoint> {
        let Place::Repo(folder) = place else { return None };
        if let Err(error) = folder.checkpoint(note, false).await {
            return self.saved(Err(error));
        }
        if let Ok(saved) = tokio::time::timeout(LAST_PUSH, folder.checkpoint(note, true)).await {
            return self.saved(saved);
        }
        self.log.note(&format!("the origin did not answer within {} seconds", LAST_PUSH.as_secs()));
        self.saved(Ok(folder.last_checkpoint().await))
    }

    fn saved(&self, saved: Result<Option<Saved>, WorkspaceError>) -> Option<Checkpoint> {
        match saved {
            Ok(saved) => {
                let saved = saved?;
                if let Some(why) = &saved.not_pushed {
                    self.log.note(&format!("the checkpoint stays on this machine: {why}"));
                }
                let mut checkpoint = Checkpoint::from(&saved.checkpoint);
                checkpoint.factory_id = saved.not_pushed.is_some().then(|| self.shared.id.to_string());
                Some(checkpoint)
            }
            Err(error) => {
                self.log.note(&format!("the checkpoint failed: {error}"));
                None
            }
        }
    }

    /// Where the next run begins; `None` where the coordinator knows it already. A session that failed is not gone on
    /// with, unless nothing was wrong with it.
    pub(super) fn checkpoint_after(&self, ending: &Ending, saved: Option<Checkpoint>) -> Option<Checkpoint> {
        let known = self.known.lock().clone();
        let mut checkpoint = saved.or_else(|| known.clone()).unwrap_or_default();
        match ending {
            Ending::Failed(failure) if failure.reason != FailReason::Infrastructure => {
                checkpoint.session_id = None;
                checkpoint.session_spend = None;
            }
            _ => self.meter.note_session(&mut checkpoint),
        }
        Some(self.clean_checkpoint(checkpoint)).filter(|checkpoint| *checkpoint != known.unwrap_or_default())
    }
}

/// Where the next run goes on when a reviewer asks for changes.
pub(super) fn result_checkpoint(report: &RunReport) -> Option<Checkpoint> {
    let (branch, commit) = (report.branch.clone()?, report.commit.clone()?);
    let repos = report.repos.clone();
    Some(Checkpoint { wip_ref: Some(branch), commit: Some(commit), repos, ..Checkpoint::default() })
}
