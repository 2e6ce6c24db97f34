//! What a granted job asks of this machine, read once from its grant.

use std::sync::Arc;

use giga_api::wire::Job;
pub(super) use giga_domain::engine::SHELL;
use giga_domain::job::BudgetCaps;
use giga_domain::{
    Checkpoint, EngineChoice, EngineHere, Epoch, FailReason, JobId, NotUsed, PassedOver, Permissions, Spend,
    Usd,
};

use super::comments;
use super::ending::RunFailure;
use super::grant::{Grant, Spec};
use crate::engines::{Engine, Usage};

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
    /// Instead of the operator's.
    pub(super) model: Option<String>,
    /// Engines that the job prefers to this one.
    pub(super) passed_over: Vec<PassedOver>,
    /// Runs the verify commands; there where the job has any.
    pub(super) shell: Option<Arc<dyn Engine>>,
}

impl Work {
    /// `engines` are those that are ready, and `here` the same with what their accounts allow.
    pub(super) fn of(
        grant: &Grant,
        engines: &[Arc<dyn Engine>],
        here: &[EngineHere<'_>],
    ) -> Result<Self, RunFailure> {
        let spec = grant.spec.as_ref().ok_or_else(|| {
            RunFailure::new(FailReason::Infrastructure, "the grant has no manifest that can be read")
        })?;
        let Taken { engine, model, passed_over } = choose(spec, engines, here)?;
        let shell = named(engines, SHELL);
        if shell.is_none() && !spec.verify.is_empty() {
            let detail = "the job has `verify` commands, and this factory runs no commands";
            return Err(RunFailure::new(FailReason::NoEngine, detail));
        }
        let checkpoint = grant.checkpoint.as_ref().map(|c| Checkpoint {
            wip_ref: c.wip_ref.clone(),
            commit: c.commit.clone(),
            session_id: c.session_id.clone(),
            session_engine: c.session_engine.clone(),
            session_spend: c.session_spend.map(|spend| Spend { usd: spend.usd, tokens: spend.tokens }),
            repos: c.repos.iter().cloned().map(Into::into).collect(),
            factory: c.factory_id.as_ref().and_then(|id| id.parse().ok()),
            note: c.note.clone(),
        });
        // No engine can go on with another one's conversation.
        let is_own = |c: &&Checkpoint| c.session_engine.as_deref().is_none_or(|own| own == engine.name());
        let own_session = checkpoint.as_ref().filter(is_own);
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
            session_usage: own_session.and_then(|c| c.session_spend).map_or_else(Usage::default, usage),
            session: own_session.and_then(|c| c.session_id.clone()),
            checkpoint: checkpoint.clone(),
            engine,
            model,
            passed_over,
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

struct Taken {
    engine: Arc<dyn Engine>,
    model: Option<String>,
    passed_over: Vec<PassedOver>,
}

/// The same choice that placed the job here, with what this machine knows by now; a script needs the shell.
fn choose(spec: &Spec, engines: &[Arc<dyn Engine>], here: &[EngineHere<'_>]) -> Result<Taken, RunFailure> {
    let script = EngineChoice::one(SHELL);
    let wanted = if spec.engine.is_any() && spec.script.is_some() { &script } else { &spec.engine };
    let is_elsewhere = |name| named(engines, name).is_some_and(|engine| engine.elsewhere().is_some());
    // Elsewhere they would not reach it, and a job that names them does not go there.
    let usable: Vec<EngineHere<'_>> = here
        .iter()
        .filter(|engine| !(spec.has_secrets && wanted.is_any() && is_elsewhere(engine.name)))
        .copied()
        .collect();
    let passed_over = match wanted.choose(&usable) {
        Ok(chosen) => match named(engines, chosen.engine) {
            Some(engine) => {
                let model = chosen.model.map(str::to_owned);
                return Ok(Taken { engine, model, passed_over: chosen.passed_over });
            }
            None => chosen.passed_over,
        },
        Err(passed_over) => passed_over,
    };
    if wanted.has(SHELL) {
        let detail = "this factory runs no scripts: commands are switched off, or it has no shell";
        return Err(RunFailure::new(FailReason::NoEngine, detail));
    }
    let why: Vec<String> = passed_over.iter().map(ToString::to_string).collect();
    let is = |reason: fn(NotUsed) -> bool| passed_over.iter().any(|passed| reason(passed.why));
    if is(|why| matches!(why, NotUsed::OutOfQuota { .. })) {
        return Err(RunFailure::new(FailReason::OutOfQuota, why.join("; ")));
    }
    if is(|why| why == NotUsed::SignedOut) {
        return Err(RunFailure::new(FailReason::SignedOut, why.join("; ")));
    }
    let wanted =
        if wanted.is_any() { "any engine that reads prompts".to_owned() } else { wanted.to_string() };
    Err(RunFailure::new(
        FailReason::NoEngine,
        format!("{wanted} is not ready on this machine; `giga doctor` says why"),
    ))
}
