//! Which factories may run a job at all: the filters, in the order in which they are asked.
//!
//! This module never scores and never remembers: it judges one job against one factory as the snapshot has them.
//! A plan asks the same questions of thousands of pairs through the interned form in `fleet`; the property tests
//! hold the two to the same answers.

use giga_domain::factory::{may_clone, repo_meant};
use giga_domain::{AccountId, Capability, FactoryState, Health, NotUsed, PassedOver, Timestamp};
use serde::Serialize;
use strum::Display;

use crate::{FactoryView, JobView, Policy, Snapshot};

/// In the order in which they are asked; the first that fails is the rejection. Up to `InUse` they are about a
/// factory, from `NotReady` to `Concurrency` about the job alone, the last three about the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Filter {
    Draining,
    Stale,
    Down,
    Product,
    Capabilities,
    Repo,
    Quota,
    Seats,
    /// Of a capability that the factory has a number of, too few are left.
    InUse,
    NotReady,
    Paused,
    Budget,
    Concurrency,
    Offered,
    Excluded,
    Unfit,
}

impl Filter {
    /// Whether it passes by itself when running jobs end.
    pub(crate) fn passes_with_running_jobs(self) -> bool {
        matches!(self, Self::Seats | Self::InUse)
    }
}

/// Why a factory cannot take the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    pub filter: Filter,
    pub detail: String,
}

/// Whether the factory takes anything new at all.
pub(crate) fn standing(factory: &FactoryView) -> Option<Filter> {
    if factory.state == FactoryState::Draining {
        Some(Filter::Draining)
    } else if !factory.live {
        Some(Filter::Stale)
    } else if factory.health == Health::Down {
        Some(Filter::Down)
    } else {
        None
    }
}

pub(crate) fn admits_product(job: &JobView, factory: &FactoryView) -> bool {
    factory.products.is_empty() || factory.products.contains(&job.product)
}

/// All that the job asks for; of several engines one, open or not.
pub(crate) fn is_capable(job: &JobView, factory: &FactoryView) -> bool {
    job.capabilities.is_subset(&factory.capabilities) && !lacks_every_engine(job, factory)
}

fn lacks_every_engine(job: &JobView, factory: &FactoryView) -> bool {
    let several = job.engine.alternatives();
    !several.is_empty() && !several.iter().any(|pick| factory.capabilities.contains(&pick.capability()))
}

/// The engine that would run the job there, and what is preferred to it and cannot; the error has all of them.
pub(crate) fn engine_for(job: &JobView, factory: &FactoryView) -> Result<String, Vec<PassedOver>> {
    job.engine.choose(&factory.engines()).map(|chosen| chosen.engine.to_owned())
}

/// It has an engine for the job, and the account of every such engine is closed.
pub(crate) fn is_out_of_quota(job: &JobView, factory: &FactoryView) -> bool {
    if factory.closed.is_empty() {
        return false;
    }
    let is_there = |passed: &PassedOver| passed.why != NotUsed::Missing;
    engine_for(job, factory).is_err_and(|passed| passed.iter().any(is_there))
}

/// The first of its repositories that the factory neither has nor may clone.
pub(crate) fn unreached_repo<'j>(job: &'j JobView, factory: &FactoryView) -> Option<&'j str> {
    let reaches = |repo: &str| {
        repo_meant(&factory.repos, repo).is_some() || may_clone(factory.can_clone, &factory.clones, repo)
    };
    job.repo.iter().chain(&job.more_repos).map(String::as_str).find(|repo| !reaches(repo))
}

pub(crate) fn reaches_repo(job: &JobView, factory: &FactoryView) -> bool {
    unreached_repo(job, factory).is_none()
}

/// Every filter about the factory that fails, in order. Empty: it could take the job now, as far as it is concerned.
pub(crate) fn factory_failures(job: &JobView, factory: &FactoryView) -> Vec<Filter> {
    let mut failures = Vec::new();
    if factory.state == FactoryState::Draining {
        failures.push(Filter::Draining);
    }
    if !factory.live {
        failures.push(Filter::Stale);
    }
    if factory.health == Health::Down {
        failures.push(Filter::Down);
    }
    if !admits_product(job, factory) {
        failures.push(Filter::Product);
    }
    if !is_capable(job, factory) {
        failures.push(Filter::Capabilities);
    }
    if !reaches_repo(job, factory) {
        failures.push(Filter::Repo);
    }
    if is_out_of_quota(job, factory) {
        failures.push(Filter::Quota);
    }
    if factory.free_seats() == 0 {
        failures.push(Filter::Seats);
    }
    if is_capable(job, factory) && factory.short_of(job).next().is_some() {
        failures.push(Filter::InUse);
    }
    failures
}

/// Whether the factory has what the job asks for and enough of it left, with an account that takes work. Nothing else is asked.
pub fn can_run(job: &JobView, factory: &FactoryView) -> bool {
    is_capable(job, factory) && !is_out_of_quota(job, factory) && factory.short_of(job).next().is_none()
}

/// Whether the job waits for this account and for nothing else that does not pass by itself: it has no place now, and
/// would have one, seats aside, if the account were open.
pub fn runs_but_for(job: &JobView, snapshot: &Snapshot, account: &AccountId) -> bool {
    let suits =
        |factory: &FactoryView| factory_failures(job, factory).iter().all(|f| f.passes_with_running_jobs());
    let opened = |factory: &FactoryView| {
        let mut factory = factory.clone();
        for closed in factory.closed.iter().filter(|closed| closed.account == *account) {
            // One that is signed out is not advertised.
            factory.capabilities.extend(Capability::engine(&closed.engine));
            factory.capabilities.extend(Capability::engine(Capability::ANY_ENGINE));
        }
        factory.closed.retain(|closed| closed.account != *account);
        factory
    };
    let holds = |factory: &&FactoryView| factory.closed.iter().any(|closed| closed.account == *account);
    !snapshot.factories.iter().any(suits)
        && snapshot.factories.iter().filter(holds).any(|f| suits(&opened(f)))
}

/// Every filter about the job alone that fails, in order.
pub(crate) fn job_failures(
    job: &JobView,
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
) -> Vec<Filter> {
    let mut failures = Vec::new();
    if job.ready_at > now {
        failures.push(Filter::NotReady);
    }
    if let Some(product) = policy.products.get(&job.product) {
        if product.paused {
            failures.push(Filter::Paused);
        }
        if !product.affords(job, product.budget_left) {
            failures.push(Filter::Budget);
        }
    }
    if let Some(concurrency) = &job.concurrency
        && running_with_key(job, snapshot) >= concurrency.limit
    {
        failures.push(Filter::Concurrency);
    }
    failures
}

/// The filters about this pair that fail, in order.
pub(crate) fn pair_failures(job: &JobView, factory: &FactoryView, now: Timestamp) -> Vec<Filter> {
    let mut failures = Vec::new();
    if live_offer(job, now).is_some_and(|to| *to != factory.id) {
        failures.push(Filter::Offered);
    }
    if is_excluded(job, factory, now) {
        failures.push(Filter::Excluded);
    }
    if is_unfit(job, factory) {
        failures.push(Filter::Unfit);
    }
    failures
}

pub(crate) fn live_offer(job: &JobView, now: Timestamp) -> Option<&giga_domain::FactoryId> {
    job.offered_to.as_ref().filter(|(_, deadline)| *deadline > now).map(|(to, _)| to)
}

/// It had the job and could not run it: asking again changes nothing.
pub(crate) fn is_unfit(job: &JobView, factory: &FactoryView) -> bool {
    job.unfit().contains(&factory.id)
}

/// A pickup that it missed counts against a factory until it shows that it is there: by asking for work itself. While
/// the job is on offer to it nothing was missed yet.
pub(crate) fn is_excluded(job: &JobView, factory: &FactoryView, now: Timestamp) -> bool {
    if factory.asks || live_offer(job, now) == Some(&factory.id) {
        return false;
    }
    job.excluded.iter().any(|(id, until)| *id == factory.id && *until > now)
}

pub(crate) fn running_with_key(job: &JobView, snapshot: &Snapshot) -> u32 {
    let Some(concurrency) = &job.concurrency else { return 0 };
    let key = (job.product.clone(), concurrency.key.clone());
    snapshot.running_by_key.get(&key).copied().unwrap_or(0)
}

/// What the job asks for and the factory has not.
pub(crate) fn lacking<'a>(job: &'a JobView, factory: &'a FactoryView) -> Vec<&'a Capability> {
    job.capabilities.missing_from(&factory.capabilities).collect()
}

/// How much the factory lacks: of several engines it lacks one.
pub(crate) fn lacks(job: &JobView, factory: &FactoryView) -> usize {
    lacking(job, factory).len() + usize::from(lacks_every_engine(job, factory))
}

#[cfg(test)]
mod tests {
    use giga_domain::job::repo_name;

    #[test]
    fn a_git_url_goes_by_the_name_of_its_last_segment() {
        for url in [
            "https://example.org/team/notes.git",
            "https://example.org/team/notes",
            "https://example.org/team/notes/",
            "git@example.org:team/notes.git",
            "git@example.org:notes.git",
            "ssh://git@example.org:22/notes.git",
            "notes",
        ] {
            assert_eq!(repo_name(url), "notes", "{url}");
        }
        assert_eq!(repo_name("team/notes"), "team/notes", "a plain name is taken as it is");
    }
}
