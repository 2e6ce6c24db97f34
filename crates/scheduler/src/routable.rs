//! Whether a job could ever run on this fleet, and what it asks for in vain.
//!
//! Looks only at what does not change by itself: capabilities, repositories, token scopes. It never considers seats,
//! load, pauses, drains or staleness, so that a busy night does not refuse a submit.

use std::fmt;

use giga_domain::job::repo_name;
use giga_domain::{Access, Capability, ClosedEngine, EngineChoice, FactoryId, ProductId};

use crate::feasible;
use crate::{FactoryView, JobView, Snapshot};

/// The first reason why no factory of the fleet could run the job, however idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unroutable {
    NoFactories,
    /// Asked for and offered by no factory at all.
    Capabilities(Vec<MissingCapability>),
    /// No factory's token admits the product.
    Product(ProductId),
    /// Each is offered somewhere, but not all of them by one factory that takes the product's jobs.
    NoSingleFactory {
        closest: FactoryId,
        /// In words.
        lacks: Vec<String>,
    },
    /// None of the engines that it may use is anywhere.
    Engines(EngineChoice),
    Repo {
        repo: String,
        did_you_mean: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingCapability {
    pub capability: Capability,
    pub did_you_mean: Option<Capability>,
}

/// Could any factory of the fleet ever run it?
pub fn routable(job: &JobView, snapshot: &Snapshot) -> Result<(), Unroutable> {
    let factories = &snapshot.factories;
    if factories.is_empty() {
        return Err(Unroutable::NoFactories);
    }
    let missing = missing_everywhere(job, factories);
    if !missing.is_empty() {
        return Err(Unroutable::Capabilities(missing));
    }
    let several = job.engine.alternatives();
    let has_one = |f: &FactoryView| several.iter().any(|pick| f.capabilities.contains(&pick.capability()));
    if !several.is_empty() && !factories.iter().any(has_one) {
        return Err(Unroutable::Engines(job.engine.clone()));
    }
    let admitting: Vec<&FactoryView> =
        factories.iter().filter(|f| feasible::admits_product(job, f)).collect();
    let Some(closest) = admitting.iter().min_by_key(|f| (feasible::lacks(job, f), &f.id)) else {
        return Err(Unroutable::Product(job.product.clone()));
    };
    let lacks = lacked(job, closest);
    if !lacks.is_empty() {
        return Err(Unroutable::NoSingleFactory { closest: closest.id.clone(), lacks });
    }
    let capable = admitting.iter().filter(|f| feasible::is_capable(job, f));
    if capable.clone().any(|f| feasible::reaches_repo(job, f)) {
        return Ok(());
    }
    let mut capable = capable.peekable();
    let unreached = capable.peek().and_then(|f| feasible::unreached_repo(job, f));
    let repo = unreached.unwrap_or_default().to_owned();
    let known = capable.flat_map(|f| f.repos.iter().map(|r| r.name.as_str()));
    let did_you_mean = nearest(repo_name(&repo), known).map(str::to_owned);
    Err(Unroutable::Repo { repo, did_you_mean })
}

fn missing_everywhere(job: &JobView, factories: &[FactoryView]) -> Vec<MissingCapability> {
    let nobody_has = |c: &&Capability| !factories.iter().any(|f| f.capabilities.contains(c));
    let known = || factories.iter().flat_map(|f| f.capabilities.iter()).filter(|c| !is_any_engine(c));
    let missing = job.capabilities.iter().filter(nobody_has);
    missing
        .map(|capability| {
            let did_you_mean = nearest(capability.as_str(), known().map(Capability::as_str))
                .filter(|_| !is_any_engine(capability));
            let did_you_mean = did_you_mean.and_then(|near| known().find(|c| c.as_str() == near)).cloned();
            MissingCapability { capability: capability.clone(), did_you_mean }
        })
        .collect()
}

/// The known word that was probably meant: the same word with or without its class (`build`, `has:build`), else one
/// that is at most a third of it away in edits.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let bare = |word: &str| word.split_once(':').map_or(word, |(_, value)| value).to_ascii_lowercase();
    let lower = word.to_ascii_lowercase();
    let distance = |other: &str| {
        let other_lower = other.to_ascii_lowercase();
        let one_is_bare = word.contains(':') != other.contains(':');
        if lower == other_lower || (one_is_bare && bare(word) == bare(other)) {
            0
        } else {
            strsim::damerau_levenshtein(&lower, &other_lower)
        }
    };
    known
        .filter(|other| *other != word)
        .map(|other| (distance(other), other))
        .filter(|(distance, other)| *distance <= word.len().max(other.len()) / 3)
        .min()
        .map(|(_, other)| other)
}

impl fmt::Display for Unroutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFactories => f.write_str("no factory has joined yet"),
            Self::Capabilities(missing) => {
                let names: Vec<&Capability> = missing.iter().map(|m| &m.capability).collect();
                if names.iter().any(|name| is_any_engine(name)) {
                    let near: Vec<&Capability> =
                        missing.iter().filter_map(|m| m.did_you_mean.as_ref()).collect();
                    return write!(f, "no factory has {}{}", either(&names), suggestion(&near));
                }
                let word = if names.len() == 1 { "capability" } else { "capabilities" };
                let near: Vec<&Capability> = missing.iter().filter_map(|m| m.did_you_mean.as_ref()).collect();
                write!(f, "no factory has the {word} {}{}", quoted(&names), suggestion(&near))
            }
            Self::Engines(choice) => {
                let names: Vec<String> = choice.names().map(|name| format!("`{name}`")).collect();
                write!(f, "no factory has any of the engines that it may use, {}", listed(&names, "or"))
            }
            Self::Product(product) => write!(f, "no factory's token admits the product `{product}`"),
            Self::NoSingleFactory { closest, lacks } => {
                write!(
                    f,
                    "no single factory has all that it needs; {closest} comes closest and lacks {}",
                    listed(lacks, "and")
                )
            }
            Self::Repo { repo, did_you_mean } => {
                let near: Vec<&String> = did_you_mean.iter().collect();
                let near = suggestion(&near);
                write!(f, "no factory that could run it has the repository `{repo}` or may clone it{near}")
            }
        }
    }
}

impl std::error::Error for Unroutable {}

fn suggestion<T: fmt::Display>(near: &[T]) -> String {
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", quoted(near)) }
}

/// What a job that names no engine asks for, which nobody advertises by that name.
pub(crate) fn is_any_engine(capability: &Capability) -> bool {
    capability.as_engine() == Some(Capability::ANY_ENGINE)
}

/// What the job asks for and the factory has not, in words; of several engines it lacks one.
pub(crate) fn lacked(job: &JobView, factory: &FactoryView) -> Vec<String> {
    let missing = feasible::lacking(job, factory);
    let too_few = |capability: &Capability| {
        let has = factory.capabilities.units(capability)?;
        Some(format!("`{}` (it has {has})", job.capabilities.token(capability)))
    };
    let mut words: Vec<String> = spelled_out(&missing)
        .into_iter()
        .zip(&missing)
        .map(|(word, capability)| too_few(capability).unwrap_or(word))
        .collect();
    let several = job.engine.alternatives();
    if feasible::lacks(job, factory) > missing.len() {
        let names: Vec<String> = several.iter().map(|pick| format!("`{}`", pick.capability())).collect();
        words.push(listed(&names, "or"));
    }
    let wanted = |closed: &&ClosedEngine| job.engine.has(&closed.engine);
    let signed_out = factory.closed.iter().filter(|closed| closed.access == Access::SignedOut).find(wanted);
    if let (Some(closed), Some(last)) = (signed_out, words.last_mut()) {
        *last = format!("{last} ({} is signed out there)", closed.engine);
    }
    words
}

/// `a`, `b` and an engine that reads prompts.
pub(crate) fn needed(job: &JobView, factory: &FactoryView) -> String {
    listed(&lacked(job, factory), "and")
}

fn either(capabilities: &[&Capability]) -> String {
    listed(&spelled_out(capabilities), "or")
}

fn spelled_out(capabilities: &[&Capability]) -> Vec<String> {
    let words = capabilities.iter().map(|capability| {
        if is_any_engine(capability) {
            "an engine that reads prompts".to_owned()
        } else {
            format!("`{capability}`")
        }
    });
    words.collect()
}

/// `a`, `b` and `c`.
pub(crate) fn quoted<T: fmt::Display>(words: &[T]) -> String {
    let words: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
    listed(&words, "and")
}

pub(crate) fn listed(words: &[String], joint: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {joint} {last}", most.join(", ")),
    }
}
