//! What a granted job asks of this machine, read once from its grant.

use std::sync::Arc;

use giga_api::wire::Job;
use giga_domain::job::BudgetCaps;
use giga_domain::{Checkpoint, Epoch, FailReason, JobId, Permissions, Spend, Usd};

use super::comments;
use super::ending::RunFailure;
use super::grant::{Grant, Spec};
use crate::engines::{Engine, Usage};

/// The engine that runs scripts and verify commands.
pub(super) const SHELL: &str = "shell";

pub(super) struct Work {
    pub(super) job: JobId,
    pub(super) epoch: Epoch,
    pub(super) title: String,
    pub(super) prompt: String,
    pub(super) persona: Option<String>,
    /// Review comments since the last run.
    pub(super) review: Option<String>,
    /// In the order in which they are merged.
    pub(super) repos: Vec<String>,
    /// The branch that the work starts from, if not the repository's own.
    pub(super) base: Option<String>,
    pub(super) script: Option<String>,
    pub(super) verify: Vec<String>,
    pub(super) has_secrets: bool,
    pub(super) permissions: Option<Permissions>,
    pub(super) budget: BudgetCaps,
    /// What the claim reserved for this run.
    pub(super) reserved: Usd,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) session: Option<String>,
    /// What the session has used up since it began.
    pub(super) session_usage: Usage,
    pub(super) engine: Arc<dyn Engine>,
    /// Runs the verify commands; there where the job has any.
    pub(super) shell: Option<Arc<dyn Engine>>,
}

impl Work {
    /// `engines` are those that are ready.
    pub(super) fn of(grant: &Grant, engines: &[Arc<dyn Engine>]) -> Result<Self, RunFailure> {
        let spec = grant.spec.as_ref().ok_or_else(|| {
            RunFailure::new(FailReason::Infrastructure, "the grant has no manifest that can be read")
        })?;
        let engine = choose(spec, engines)?;
        let shell = named(engines, SHELL);
        if shell.is_none() && !spec.verify.is_empty() {
            let detail = "the job has `verify` commands, and this factory runs no commands";
            return Err(RunFailure::new(FailReason::NoEngine, detail));
        }
        let checkpoint = grant.checkpoint.as_ref().map(|c| Checkpoint {
            wip_ref: c.wip_ref.clone(),
            commit: c.commit.clone(),
            session_id: c.session_id.clone(),
            session_spend: c.session_spend.map(|spend| Spend { usd: spend.usd, tokens: spend.tokens }),
            repos: c.repos.iter().cloned().map(Into::into).collect(),
            factory: c.factory_id.as_ref().and_then(|id| id.parse().ok()),
            note: c.note.clone(),
        });
        Ok(Self {
            job: grant.job,
            epoch: grant.epoch,
            title: grant.name.clone(),
            prompt: grant.body.clone(),
            persona: grant.persona.clone(),
            review: comments::since_the_last_run(grant),
            repos: spec.repo.iter().chain(&spec.more_repos).cloned().collect(),
            base: spec.base.clone(),
            script: spec.script.clone(),
            verify: spec.verify.clone(),
            has_secrets: spec.has_secrets,
            permissions: spec.permissions,
            budget: caps(spec.budget, grant.reserved),
            reserved: grant.reserved,
            session_usage: checkpoint
                .as_ref()
                .and_then(|c| c.session_spend)
                .map_or_else(Usage::default, usage),
            session: checkpoint.as_ref().and_then(|c| c.session_id.clone()),
            checkpoint,
            engine,
            shell,
        })
    }
}

/// A job that names no cap of its own gets what its product reserves for it.
fn caps(own: BudgetCaps, reserved: Usd) -> BudgetCaps {
    let reserved = Some(reserved).filter(|share| !share.is_zero());
    BudgetCaps { usd: own.usd.or(reserved), ..own }
}

const fn usage(spend: Spend) -> Usage {
    Usage { tokens: spend.tokens, cost: Some(spend.usd) }
}

fn named(engines: &[Arc<dyn Engine>], name: &str) -> Option<Arc<dyn Engine>> {
    engines.iter().find(|engine| engine.name() == name).cloned()
}

/// Whether the job is one for the shell, as `choose` decides it.
pub(super) fn is_script(job: &Job) -> bool {
    let script = job.manifest.as_ref().and_then(|manifest| manifest.get("script"));
    match &job.engine {
        Some(engine) => engine == SHELL,
        None => script.is_some_and(|script| !script.is_null()),
    }
}

/// The engine that was asked for; for `any`, the shell where there is a script, otherwise the first that is ready and
/// reads prompts.
fn choose(spec: &Spec, engines: &[Arc<dyn Engine>]) -> Result<Arc<dyn Engine>, RunFailure> {
    let found = match &spec.engine {
        Some(name) => named(engines, name),
        None if spec.script.is_some() => named(engines, SHELL),
        None => engines.iter().find(|engine| engine.name() != SHELL).cloned(),
    };
    found.ok_or_else(|| {
        if spec.engine.as_deref() == Some(SHELL) || (spec.engine.is_none() && spec.script.is_some()) {
            let detail = "this factory runs no scripts: commands are switched off, or it has no shell";
            return RunFailure::new(FailReason::NoEngine, detail);
        }
        let wanted = spec.engine.as_deref().unwrap_or("any engine that reads prompts");
        RunFailure::new(
            FailReason::NoEngine,
            format!("{wanted} is not ready on this machine; `giga doctor` says why"),
        )
    })
}
