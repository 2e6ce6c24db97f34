//! Merges of what is shipping: a queue per repository, one factory at a time at each.

use std::collections::{BTreeMap, HashSet};

use giga_domain::job::MergeBy;
use giga_domain::product::MERGE_BATCH;
use giga_domain::transition::transition;
use giga_domain::{Actor, Command, Factory, FactoryState, Job, Merge, ProductId, Refusal, State, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::{HoldMerge, HoldMerges, TakeMerges, TakeRequestNews};

use super::super::{Needs, Op, Working};

/// How many jobs are looked at for one that the factory may merge.
const LOOK_AT: usize = 200;

impl Op for TakeMerges {
    fn needs(&self, needs: &mut Needs) {
        needs.mergeable = needs.mergeable.max(LOOK_AT);
        needs.factories.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<Job>, StoreError> {
        let factory = working.factory(&self.factory)?.clone();
        if factory.state == FactoryState::Draining {
            return Ok(Vec::new());
        }
        let actor = Actor::Factory(self.factory.clone());
        let now = working.now();
        let mut waiting = working.loaded().mergeable.clone();
        // What is announced comes first: it may be in by now. The others by how long they have been shipping.
        waiting.sort_by_key(|id| {
            let job = working.job(*id).ok();
            let announced = job.and_then(|job| job.merge.as_ref()).is_some_and(Merge::is_pushing);
            (!announced, job.and_then(since), *id)
        });
        // Two candidates on one tip cannot both be pushed: whoever is at a branch has it alone.
        let busy: HashSet<Queue> = waiting
            .iter()
            .filter_map(|id| working.job(*id).ok())
            .filter(|job| job.merge.as_ref().is_some_and(|m| m.holder().is_some() && m.due() > Some(now)))
            .map(queue)
            .collect();
        let mut taken: Vec<Job> = Vec::new();
        // As they were before: what was announced together is finished together.
        let mut first: Option<Job> = None;
        for id in waiting {
            let most = first.as_ref().map_or(1, |first| most(&self.batches, &first.product));
            if taken.len() >= most {
                break;
            }
            let fits = |job: &Job| {
                reaches(&factory, job)
                    && !busy.contains(&queue(job))
                    && first.as_ref().is_none_or(|first| go_together(first, job))
            };
            let Some(before) = working.job(id).ok().filter(|job| fits(job)).cloned() else { continue };
            let joins = first.is_some();
            let command = Command::TakeMerge { factory: self.factory.clone(), lease: self.lease, joins };
            match working.apply(id, &command, &actor) {
                Ok(job) => taken.push(job.clone()),
                Err(StoreError::Refused(Refusal::NotClaimable(_))) => continue,
                Err(error) => return Err(error),
            }
            first.get_or_insert(before);
        }
        Ok(taken)
    }
}

fn most(batches: &BTreeMap<ProductId, u32>, product: &ProductId) -> usize {
    let most = batches.get(product).copied().unwrap_or(MERGE_BATCH);
    usize::try_from(most).unwrap_or(usize::MAX).max(1)
}

fn since(job: &Job) -> Option<Timestamp> {
    match job.state {
        State::Shipping { since } => Some(since),
        _ => None,
    }
}

/// One batch: for the same branch, and either both announced as such, or both at the start.
fn go_together(first: &Job, other: &Job) -> bool {
    let pushed = |job: &Job| job.merge.as_ref()?.candidate().map(|candidate| candidate.pushed().to_owned());
    // What failed before is tried alone: it holds nobody else up.
    let is_fresh = |job: &Job| job.merge.as_ref().is_some_and(|merge| merge.failures == 0);
    // A pull request shows one result, and several repositories are checked together in a folder of their own.
    let is_alone =
        |job: &Job| job.spec.merge.by == Some(MergeBy::PullRequest) || !job.spec.more_repos.is_empty();
    if is_alone(first) || is_alone(other) {
        return false;
    }
    queue(first) == queue(other)
        && match (pushed(first), pushed(other)) {
            (None, None) => is_fresh(first) && is_fresh(other),
            (one, another) => one == another,
        }
}

/// What two jobs have in common whose results go into one branch. A product's are its own, so that nobody holds up
/// another's. Two names for one branch are two queues: then the repository says who was first.
fn queue(job: &Job) -> Queue {
    let repo = job.merging().map(|merging| merging.repo.to_owned());
    (job.product.clone(), repo, job.spec.target.clone())
}

type Queue = (ProductId, Option<String>, Option<String>);

/// It may serve the product, and has the job's repositories or can get them: the checks need all of them.
fn reaches(factory: &Factory, job: &Job) -> bool {
    factory.scope.allows_product(&job.product)
        && job.merging().is_some()
        && job.spec.repos().all(|repo| factory.advertised.reaches_repo(repo))
}

impl Op for HoldMerges {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.extend(self.holds.iter().map(|hold| hold.job));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<Job>, StoreError> {
        let commands: Vec<_> = self
            .holds
            .iter()
            .map(|HoldMerge { job, attempt, action }| {
                let (factory, action) = (self.factory.clone(), action.clone());
                (*job, Command::HoldMerge { factory, attempt: *attempt, action })
            })
            .collect();
        // All of them or none.
        for (job, command) in &commands {
            transition(working.job(*job)?, command, working.now())?;
        }
        let actor = Actor::Factory(self.factory.clone());
        commands.iter().map(|(job, command)| working.apply(*job, command, &actor).cloned()).collect()
    }
}

impl Op for TakeRequestNews {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.job);
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let command = Command::RequestNews(self.news.clone());
        working.apply(self.job, &command, &Actor::system("forge")).cloned()
    }
}
