//! Runs whose engine works elsewhere: what it is given, and what is taken from it.
//!
//! Decides nothing about the result: what was pushed is in the work folder afterwards, and goes the way of all results.

use std::time::Duration;

use giga_domain::FailReason;

use super::ending::RunFailure;
use super::job::JobRun;
use super::place::Place;
use super::plan::Work;
use crate::engines::{
    Engine, EngineFailure, EngineOutcome, EngineReport, EngineRequest, RemoteRepository, Usage,
};
use crate::workspace::{Protocol, RepoSource, Taken, WorkFolder, WorkspaceError};

/// How often the origin is asked for what was pushed, and how long it gets between two times.
const TRIES: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Before anything is fetched or paid for: whether the engine can get at the job's repositories.
pub(super) fn check_reach(engine: &dyn Engine, repos: &[(String, RepoSource)]) -> Result<(), RunFailure> {
    let Some(reaches) = engine.elsewhere() else { return Ok(()) };
    for (name, source) in repos {
        let url = &source.url;
        let on_network = matches!(url.protocol(), Protocol::Https | Protocol::Ssh);
        if reaches.iter().any(|prefix| prefix.covers(url)) || (reaches.is_empty() && on_network) {
            continue;
        }
        let engine = engine.name();
        let why = if on_network {
            format!("{url} is not among the `repositories` that the settings of {engine} name")
        } else {
            "it is a folder of this machine, without an origin on the network".to_owned()
        };
        let detail =
            format!("{engine} works on other machines and cannot reach the repository {name}: {why}");
        let reason = FailReason::CapabilityMismatch;
        return Err(RunFailure { retryable: false, ..RunFailure::new(reason, detail) });
    }
    Ok(())
}

impl JobRun<'_> {
    /// Puts the work where an engine elsewhere finds it; for any other this does nothing.
    pub(super) async fn offer(
        &self,
        work: &Work,
        place: &Place,
        request: &mut EngineRequest,
    ) -> Result<(), Box<EngineReport>> {
        let (Place::Repo(folder), Some(_)) = (place, work.engine.elsewhere()) else { return Ok(()) };
        match folder.offer(work.session.is_some()).await {
            Ok(offers) => {
                for offer in offers {
                    if let Some(earlier) = &offer.earlier {
                        self.log.note(earlier);
                    }
                    self.log.note(&format!("{} finds its work on {}", work.engine.name(), offer.branch));
                    request
                        .repositories
                        .push(RemoteRepository { url: offer.repository, branch: offer.branch });
                }
                Ok(())
            }
            Err(error) => {
                self.settle_offer(folder).await;
                Err(Box::new(EngineReport {
                    outcome: EngineOutcome::Failed(failure(&error)),
                    session_id: None,
                    usage: Usage::default(),
                    metered: true,
                    summary: None,
                }))
            }
        }
    }

    /// Brings what an engine elsewhere has pushed so far into the folder.
    pub(super) async fn take_so_far(&self, place: &Place) {
        let Place::Repo(folder) = place else { return };
        if let Err(error) = folder.take_pushed().await {
            self.log.note(&format!("what was pushed elsewhere could not be taken yet: {error}"));
        }
    }

    /// The same at the end of the run, however it ended: nothing that is pushed later counts.
    pub(super) async fn take_elsewhere(
        &self,
        work: &Work,
        place: &Place,
        mut report: EngineReport,
    ) -> EngineReport {
        let (Place::Repo(folder), Some(_)) = (place, work.engine.elsewhere()) else { return report };
        let taken = take(folder).await;
        self.settle_offer(folder).await;
        if report.outcome != EngineOutcome::Succeeded {
            if let Err(error) = &taken {
                self.log.note(&format!("what was pushed elsewhere could not be taken: {error}"));
            }
            return report;
        }
        let name = work.engine.name();
        let nothing = |why: &str| {
            let said = report.summary.as_deref().map(|text| format!("; it said: {text}")).unwrap_or_default();
            EngineFailure::lasting(FailReason::Crash, format!("{name} ended, but {why}{said}"))
        };
        let failed = match taken {
            Ok(Taken::Work | Taken::NoOffer) => None,
            Ok(Taken::Nothing) => Some(nothing("pushed nothing to the branch that it was given")),
            Ok(Taken::BranchGone) => Some(nothing("the branch that it was given is gone from the origin")),
            Err(error) => Some(failure(&error)),
        };
        if let Some(failure) = failed {
            report.outcome = EngineOutcome::Failed(failure);
        }
        report
    }

    async fn settle_offer(&self, folder: &WorkFolder) {
        if let Err(error) = folder.settle_offer().await {
            // The clean-up after the job finds it.
            self.log.note(&format!("the branch for the work elsewhere is still there: {error}"));
        }
    }
}

async fn take(folder: &WorkFolder) -> Result<Taken, WorkspaceError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match folder.take_pushed().await {
            Err(error) if error.is_retryable() && tries < TRIES => tokio::time::sleep(RETRY_DELAY).await,
            other => return other,
        }
    }
}

fn failure(error: &WorkspaceError) -> EngineFailure {
    let detail = error.to_string();
    match error {
        // What it pushed is at fault, and not this machine.
        WorkspaceError::Refused { .. } => EngineFailure::lasting(FailReason::Crash, detail),
        error if error.is_retryable() => EngineFailure::passing(error.fail_reason(), detail),
        error => EngineFailure::lasting(error.fail_reason(), detail),
    }
}
