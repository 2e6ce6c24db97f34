//! Merges of what is shipping: a queue per repository, one factory at a time at each.

use std::collections::HashSet;

use giga_domain::job::repo_name;
use giga_domain::{Actor, Command, Factory, FactoryState, Job, Refusal};
use giga_ports::StoreError;
use giga_ports::store::{HoldMerge, TakeMerge};

use super::super::{Needs, Op, Working};

/// How many jobs are looked at for one that the factory may merge.
const LOOK_AT: usize = 200;

impl Op for TakeMerge {
    fn needs(&self, needs: &mut Needs) {
        needs.mergeable = needs.mergeable.max(LOOK_AT);
        needs.factories.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Option<Job>, StoreError> {
        let factory = working.factory(&self.factory)?.clone();
        if factory.state == FactoryState::Draining {
            return Ok(None);
        }
        let actor = Actor::Factory(self.factory.clone());
        let command = Command::TakeMerge { factory: self.factory.clone(), lease: self.lease };
        let waiting = working.loaded().mergeable.clone();
        let now = working.now();
        // Two candidates on one tip cannot both be pushed: whoever is at a branch has it alone.
        let busy: HashSet<String> = waiting
            .iter()
            .filter_map(|id| working.job(*id).ok())
            .filter(|job| job.merge.as_ref().is_some_and(|m| m.holder().is_some() && m.due() > Some(now)))
            .map(queue)
            .collect();
        for id in waiting {
            let fits = |job: &Job| reaches(&factory, job) && !busy.contains(&queue(job));
            if !working.job(id).is_ok_and(fits) {
                continue;
            }
            match working.apply(id, &command, &actor) {
                Ok(job) => return Ok(Some(job.clone())),
                Err(StoreError::Refused(Refusal::NotClaimable(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// What two jobs have in common whose results go into one branch. Two names for one repository are two queues: then the
/// repository says who was first.
fn queue(job: &Job) -> String {
    repo_name(job.spec.repo.as_deref().unwrap_or_default()).to_owned()
}

/// It may serve the product, and has the repository or can get it.
fn reaches(factory: &Factory, job: &Job) -> bool {
    factory.scope.allows_product(&job.product)
        && (factory.advertised.can_clone
            || factory.advertised.repos.iter().any(|known| known.name == queue(job)))
}

impl Op for HoldMerge {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.job);
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let Self { job, factory, attempt, action } = self;
        let command =
            Command::HoldMerge { factory: factory.clone(), attempt: *attempt, action: action.clone() };
        working.apply(*job, &command, &Actor::Factory(factory.clone())).cloned()
    }
}
