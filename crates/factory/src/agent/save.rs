//! What a run leaves for the next one: checkpoints while it works and at its end.
//!
//! Decides nothing about the job. Work that the origin does not accept stays on this host, and the checkpoint notes that.

use std::time::Duration;

use giga_api::inside::Answer;
use giga_api::wire::{Checkpoint, PatchRequest, RunReport};
use giga_domain::FailReason;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ending::Ending;
use super::final_report::plain;
use super::inside::{self, Wanted};
use super::job::JobRun;
use super::place::Place;
use crate::workspace::{Saved, WorkspaceError};

/// How long a run that has to stop waits for the origin to take its work. After that it lies on this host only: a seat
/// that somebody else needs is not held for it.
const LAST_PUSH: Duration = Duration::from_secs(10);

/// Each may push a large repository.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(5);

fn answer(asked: Option<Wanted>, answer: Answer) {
    if let Some(asked) = asked {
        // Whoever went away needs none.
        let _ = asked.answer.send(answer);
    }
}

fn too_soon(wait: Duration) -> String {
    format!("a checkpoint was asked for a moment ago; wait {} s before the next one", wait.as_secs() + 1)
}

impl JobRun<'_> {
    /// Saves the work while the engine runs, so that a dead machine loses little: every few minutes, and when the job asks
    /// for it.
    pub(super) async fn keep_saving(
        &self,
        place: &Place,
        until: CancellationToken,
        wanted: Option<mpsc::Receiver<Wanted>>,
    ) {
        // Without anybody who could ask, nobody does.
        let (_nobody, silence) = mpsc::channel(1);
        let mut wanted = wanted.unwrap_or(silence);
        let mut asked_at: Option<Instant> = None;
        let mut due = Instant::now() + self.shared.checkpoint_every;
        loop {
            let asked = tokio::select! {
                () = until.cancelled() => return,
                () = tokio::time::sleep_until(due) => None,
                // At once: whoever comes after a crash can go on with it only if somebody knows it.
                () = self.meter.new_session() => None,
                Some(asked) = wanted.recv() => Some(asked),
            };
            if asked.is_some()
                && let Some(wait) = asked_at.and_then(|at| BETWEEN_REQUESTS.checked_sub(at.elapsed()))
            {
                answer(asked, Answer::Refused { reason: too_soon(wait) });
                continue;
            }
            asked_at = asked.as_ref().map(|_| Instant::now()).or(asked_at);
            due = Instant::now() + self.shared.checkpoint_every;
            self.note_spend(place);
            let note = asked.as_ref().map(|asked| plain(&asked.note)).filter(|note| !note.is_empty());
            let saved = tokio::select! {
                saved = self.save_and_report(place, note) => saved,
                () = self.stopped_for(LAST_PUSH) => return,
            };
            answer(asked, saved);
        }
    }

    /// `note` is the job's own, where it asked for this.
    async fn save_and_report(&self, place: &Place, note: Option<String>) -> Answer {
        self.take_so_far(place).await;
        let saved = match place {
            Place::Scratch { .. } => None,
            Place::Repo(folder) => match folder.checkpoint("while running", true).await {
                Ok(saved) => self.saved(Ok(saved)),
                Err(error) => {
                    let reason = format!("the checkpoint failed: {error}");
                    self.saved(Err(error));
                    return inside::refused(&reason);
                }
            },
        };
        let known = self.known.lock().clone().unwrap_or_default();
        let is_new = saved.is_some();
        let mut checkpoint = saved.unwrap_or_else(|| known.clone());
        self.meter.note_session(&mut checkpoint);
        if !is_new && checkpoint.session_id == known.session_id {
            return match place {
                Place::Repo(_) => Answer::NothingNew {},
                Place::Scratch { .. } => inside::refused(
                    "the job has no repository, so there is no work to save; keep files with save_artifact",
                ),
            };
        }
        if let Some(note) = note {
            self.log.note(&format!("checkpoint: {note}"));
            checkpoint.note = Some(note);
        }
        let checkpoint = self.clean_checkpoint(checkpoint);
        let patch = PatchRequest {
            lease_epoch: self.held.epoch,
            checkpoint: Some(checkpoint.clone()),
            ..PatchRequest::default()
        };
        match self.shared.client.patch_job(&self.held.job, &patch).await {
            Ok(_) => {
                let commit = checkpoint.commit.clone().unwrap_or_default();
                *self.known.lock() = Some(checkpoint);
                Answer::Saved { commit }
            }
            Err(error) => {
                tracing::warn!(job = self.held.job, %error, "the checkpoint could not be reported");
                inside::refused(&format!(
                    "it is saved here, but the coordinator does not know of it: {error}"
                ))
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
            Ending::Failed(failure) if !leaves_the_session_whole(failure.reason) => {
                checkpoint.session_id = None;
                checkpoint.session_engine = None;
                checkpoint.session_spend = None;
            }
            _ => self.meter.note_session(&mut checkpoint),
        }
        Some(self.clean_checkpoint(checkpoint)).filter(|checkpoint| *checkpoint != known.unwrap_or_default())
    }
}

/// Whether nothing was wrong with the conversation itself.
fn leaves_the_session_whole(reason: FailReason) -> bool {
    reason == FailReason::Infrastructure || reason.is_of_the_account()
}

/// Where the next run goes on when a reviewer asks for changes.
pub(super) fn result_checkpoint(report: &RunReport) -> Option<Checkpoint> {
    let (branch, commit) = (report.branch.clone()?, report.commit.clone()?);
    let repos = report.repos.clone();
    Some(Checkpoint { wip_ref: Some(branch), commit: Some(commit), repos, ..Checkpoint::default() })
}
