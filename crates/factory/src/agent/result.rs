//! What a run hands over: its result, the diff that people are shown, the engine's events.

use giga_api::wire::{Check, RunReport};
use giga_domain::{FailReason, limits};

use super::ending::{Ending, RunFailure};
use super::final_report::plain;
use super::job::{JobRun, LAST_LINES};
use super::lease::{self, StopCause};
use super::place::Place;
use super::plan::Work;
use super::raw_events;
use crate::engines::{EngineReport, Usage};
use crate::workspace::{RunResult, WorkFolder};

/// The artifact that holds a run's changes, and how much of them it holds.
const DIFF_NAME: &str = "changes.diff";
const DIFF_BYTES: usize = 2 * 1024 * 1024;

impl JobRun<'_> {
    pub(super) async fn result(
        &self,
        work: &Work,
        place: &Place,
        engine: &EngineReport,
        checks: Vec<Check>,
    ) -> Ending {
        let Usage { tokens, cost } = self.meter.usage();
        let mut report = RunReport {
            summary: engine.summary.as_deref().map(plain),
            model: self.meter.model().map(|model| plain(&model).chars().take(limits::NAME_CHARS).collect()),
            tokens: (tokens > 0).then_some(tokens),
            cost_usd: cost,
            cost_assumed: self.meter.is_assumed(),
            checks,
            ..RunReport::default()
        };
        let Place::Repo(folder) = place else { return Ending::Succeeded(Box::new(report)) };
        let body = engine.summary.as_deref().unwrap_or_default();
        match folder.commit_result(&work.title, body).await {
            Ok(Some(result)) => {
                if let Err(error) = folder.check_result(&result).await {
                    return error.into();
                }
                if let Err(ending) = self.confirm_hold().await {
                    return ending;
                }
                // What people are shown comes first: it is of this very commit, and nothing is there without it.
                report.unseen = self.keep_diff(folder, &result).await;
                if let Err(error) = folder.push_result(&result).await {
                    return error.into();
                }
                self.log.note(&format!(
                    "{} at {}: {} files, +{} -{}",
                    result.branch,
                    result.commit,
                    result.files_changed,
                    result.lines_added,
                    result.lines_removed
                ));
                if result.squashed {
                    self.log.note("its commits were not made on its base alone, so they are one commit now");
                }
                report.branch = Some(result.branch);
                report.commit = Some(result.commit.to_string());
                report.base = result.base.as_ref().map(ToString::to_string);
                report.repos = result.repos.iter().map(Into::into).collect();
                report.files_changed = u32::try_from(result.files_changed).ok();
                report.lines_added = u32::try_from(result.lines_added).ok();
                report.lines_removed = u32::try_from(result.lines_removed).ok();
                Ending::Succeeded(Box::new(report))
            }
            Ok(None) => {
                self.log.note("nothing was changed");
                Ending::Succeeded(Box::new(report))
            }
            Err(error) => error.into(),
        }
    }

    /// Asks before anything leaves this machine: an agent that was frozen finds its engine done and its lease gone, and
    /// of a job that was cancelled meanwhile nothing is wanted any more.
    async fn confirm_hold(&self) -> Result<(), Ending> {
        if self.keeper.stop.is_cancelled() {
            return Err(self.keeper.stopped());
        }
        match self.shared.client.renew(&self.held.job, self.held.epoch, self.meter.spend()).await {
            Ok(answer) => match lease::asked_to_stop(&answer) {
                Some(cause) => Err(Ending::Stopped(cause)),
                None => Ok(()),
            },
            Err(error) if lease::is_final(&error) => Err(Ending::Stopped(StopCause::LeaseLost)),
            Err(error) => Err(Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string()))),
        }
    }

    /// The changes as an artifact, so that whoever reviews them needs no checkout. Answers what it does not show.
    async fn keep_diff(&self, folder: &WorkFolder, result: &RunResult) -> Option<String> {
        let mut unseen = Vec::new();
        match folder.diff(result, DIFF_BYTES).await {
            Ok(diff) => {
                if diff.truncated {
                    unseen.push(format!("the diff is cut after {} MiB", DIFF_BYTES / (1024 * 1024)));
                }
                let note = if diff.truncated { "\n… cut here: the rest is on the branch\n" } else { "" };
                let bytes = (diff.text + note).into_bytes();
                let (job, epoch) = (&self.held.job, self.held.epoch);
                let kept = self.shared.client.put_artifact(job, epoch, DIFF_NAME, "text/x-diff", bytes).await;
                if let Err(error) = kept {
                    unseen.push(format!("the diff could not be kept: {error}"));
                }
            }
            Err(error) => unseen.push(format!("the diff could not be made: {error}")),
        }
        if !result.binary.is_empty() {
            let named = result.binary.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            unseen.push(format!("{} binary: {named}", result.binary.len()));
        }
        let unseen: String = plain(&unseen.join("; ")).chars().take(limits::NOTE_CHARS).collect();
        (!unseen.is_empty()).then_some(unseen)
    }

    /// As an artifact, while this run may still write.
    pub(super) async fn hand_over_events(&self, ending: &Ending) {
        let Some(bytes) = self.raw_events.take() else { return };
        if matches!(ending, Ending::Stopped(StopCause::LeaseLost | StopCause::Cancelled)) {
            return;
        }
        let (job, epoch) = (&self.held.job, self.held.epoch);
        let put =
            self.shared.client.put_artifact(job, epoch, raw_events::NAME, raw_events::MEDIA_TYPE, bytes);
        match tokio::time::timeout(LAST_LINES, put).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => self.log.note(&format!("the engine's events could not be kept: {error}")),
            Err(_) => self.log.note("the engine's events could not be kept: the coordinator does not answer"),
        }
    }
}
