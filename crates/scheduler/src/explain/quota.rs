//! What is said of engines whose accounts are closed: which, until when, and what else could run the job.

use giga_domain::{Access, FactoryId, PassedOver, Timestamp};

use super::Remedy;
use super::cause::Case;
use super::words::moment;
use crate::FactoryView;
use crate::feasible;
use crate::routable::listed;

/// `claude is out of quota until …; codex there is free`.
pub(super) fn closed_here(case: &Case<'_>, factory: &FactoryView) -> String {
    closed_at(case, factory, "")
}

fn closed_at(case: &Case<'_>, factory: &FactoryView, place: &str) -> String {
    let closed = wanted(case, factory)
        .map(|(engine, access)| closed_engine(case, &format!("{engine}{place}"), access));
    let closed: Vec<String> = closed.collect();
    let free = others(case, factory);
    let free = match free.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} there is free"),
        several => format!("; {} there are free", listed(several, "and")),
    };
    format!("{}{free}", listed(&closed, "and"))
}

fn closed_engine(case: &Case<'_>, engine: &str, access: Access) -> String {
    match access {
        Access::OutOfQuota { until } => format!("{engine} is out of quota until {}", moment(until, case.now)),
        _ => format!("{engine} is signed out"),
    }
}

/// The same of several factories; the first to open again counts.
pub(super) fn closed_on(case: &Case<'_>, factories: &[&FactoryView]) -> String {
    let first = factories.iter().min_by_key(|factory| (opens_at(case, factory), &factory.id));
    let Some(first) = first else { return String::new() };
    let said = closed_at(case, first, &format!(" on {}", first.id));
    match factories.len() - 1 {
        0 => said,
        1 => format!("{said}; on 1 other factory no earlier"),
        others => format!("{said}; on {others} other factories no earlier"),
    }
}

/// Why the job is not run with the engine that it prefers.
pub(super) fn moved_on(case: &Case<'_>, factory: &FactoryId) -> String {
    let factory = case.snapshot.factories.iter().find(|known| known.id == *factory);
    let engines = factory.map(FactoryView::engines).unwrap_or_default();
    match case.job.engine.choose(&engines) {
        Ok(chosen) if !chosen.passed_over.is_empty() && !case.job.engine.is_any() => {
            let why: Vec<String> = chosen.passed_over.iter().map(PassedOver::to_string).collect();
            format!(" with {} ({})", chosen.engine, why.join("; "))
        }
        _ => String::new(),
    }
}

pub(super) fn remedies(case: &Case<'_>, factories: &[&FactoryView]) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    let free =
        factories.iter().find_map(|factory| Some((factory, others(case, factory).into_iter().next()?)));
    if let Some((factory, engine)) = free.filter(|_| !case.job.engine.is_any()) {
        let mut names: Vec<&str> = case.job.engine.names().collect();
        names.push(&engine);
        remedies.push(Remedy::advice(format!(
            "allow {engine} as well, which is free on {}: `engine: [{}]`",
            factory.id,
            names.join(", ")
        )));
    }
    let or = if remedies.is_empty() { "" } else { "or " };
    let opens = factories.iter().filter_map(|factory| Some((opens_at(case, factory)?, &factory.id))).min();
    remedies.push(match opens {
        Some((at, id)) => Remedy::command(
            format!("{or}wait until {}, when the account opens again on {id}", moment(at, case.now)),
            "giga account list",
        ),
        None => Remedy::command(format!("{or}sign the engine in again on its machine"), "giga account list"),
    });
    remedies
}

/// When the first of the engines that the job may use opens there.
fn opens_at(case: &Case<'_>, factory: &FactoryView) -> Option<Timestamp> {
    let until = |(_, access)| match access {
        Access::OutOfQuota { until } => Some(until),
        _ => None,
    };
    wanted(case, factory).filter_map(until).min()
}

/// The closed engines there that the job may use, the most preferred first.
fn wanted<'a>(case: &'a Case<'_>, factory: &'a FactoryView) -> impl Iterator<Item = (&'a str, Access)> {
    let passed = feasible::engine_for(case.job, factory).err().unwrap_or_default();
    passed.into_iter().filter_map(|passed| {
        factory
            .closed
            .iter()
            .find(|closed| closed.engine == passed.engine)
            .map(|closed| (closed.engine.as_str(), closed.access))
    })
}

/// Engines there that read prompts, are open, and that the job does not allow.
fn others(case: &Case<'_>, factory: &FactoryView) -> Vec<String> {
    let engines = factory.engines();
    let free =
        engines.iter().filter(|here| here.access == Access::Open && here.name != giga_domain::engine::SHELL);
    free.filter(|here| !case.job.engine.has(here.name)).map(|here| here.name.to_owned()).collect()
}
