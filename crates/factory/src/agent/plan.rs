//! What a granted job asks of this machine, read once from its wire form.

use std::sync::Arc;

use giga_api::wire::Job;
use giga_domain::job::BudgetCaps;
use giga_domain::manifest::{self, Manifest};
use giga_domain::{Checkpoint, Epoch, FailReason, JobId};

use super::ending::RunFailure;
use crate::engines::Engine;

pub(super) struct Work {
    pub(super) job: JobId,
    pub(super) epoch: Epoch,
    pub(super) title: String,
    pub(super) prompt: String,
    pub(super) repo: Option<String>,
    pub(super) script: Option<String>,
    pub(super) verify: Vec<String>,
    pub(super) budget: BudgetCaps,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) session: Option<String>,
    pub(super) engine: Arc<dyn Engine>,
    /// Runs the verify commands.
    pub(super) shell: Arc<dyn Engine>,
}

impl Work {
    /// `engines` are those that are ready.
    pub(super) fn of(job: &Job, engines: &[Arc<dyn Engine>]) -> Result<Self, RunFailure> {
        let broken = |what: &str| {
            RunFailure::new(FailReason::Infrastructure, format!("the grant is unreadable: {what}"))
        };
        let id: JobId = job.id.parse().map_err(|_| broken("its id"))?;
        let snapshot = job.manifest.as_ref().ok_or_else(|| broken("it has no manifest"))?;
        let manifest: Manifest = manifest::from_json(snapshot).map_err(|error| broken(&error.to_string()))?;
        let engine = choose(&manifest, engines)?;
        let shell = named(engines, "shell")
            .ok_or_else(|| RunFailure::new(FailReason::NoEngine, "verify commands need the shell engine"))?;
        let checkpoint = job.checkpoint.as_ref().map(|c| Checkpoint {
            wip_ref: c.wip_ref.clone(),
            commit: c.commit.clone(),
            session_id: c.session_id.clone(),
            factory: c.factory_id.as_ref().and_then(|id| id.parse().ok()),
            note: c.note.clone(),
        });
        Ok(Self {
            job: id,
            epoch: Epoch(job.lease_epoch),
            title: job.name.clone(),
            prompt: job.body_md.clone().unwrap_or_default(),
            repo: manifest.repo.clone(),
            script: manifest.script.clone(),
            verify: manifest.verify.clone(),
            budget: manifest.budget,
            session: checkpoint.as_ref().and_then(|c| c.session_id.clone()),
            checkpoint,
            engine,
            shell,
        })
    }
}

fn named(engines: &[Arc<dyn Engine>], name: &str) -> Option<Arc<dyn Engine>> {
    engines.iter().find(|engine| engine.name() == name).cloned()
}

/// The engine that was asked for; for `any`, the shell where there is a script, otherwise the first that is ready and
/// reads prompts.
fn choose(manifest: &Manifest, engines: &[Arc<dyn Engine>]) -> Result<Arc<dyn Engine>, RunFailure> {
    let found = match &manifest.engine {
        Some(name) => named(engines, name),
        None if manifest.script.is_some() => named(engines, "shell"),
        None => engines.iter().find(|engine| engine.name() != "shell").cloned(),
    };
    found.ok_or_else(|| {
        let wanted = manifest.engine.as_deref().unwrap_or("any engine that reads prompts");
        RunFailure::new(
            FailReason::NoEngine,
            format!("{wanted} is not ready on this machine; `giga doctor` says why"),
        )
    })
}
