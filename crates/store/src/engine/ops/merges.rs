//! Orders to merge what has shipped.

use giga_domain::job::repo_name;
use giga_domain::{Actor, Command, Factory, FactoryState, Job, Refusal};
use giga_ports::StoreError;
use giga_ports::store::{SettleMerge, TakeMerge};

use super::super::{Needs, Op, Working};

/// How many orders are looked at for one that the factory may carry out.
const LOOK_AT: usize = 50;

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
        for id in working.loaded().mergeable.clone() {
            if !working.job(id).is_ok_and(|job| reaches(&factory, job)) {
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

/// It may serve the product, and has the repository or can get it.
fn reaches(factory: &Factory, job: &Job) -> bool {
    let repo = job.spec.repo.as_deref().unwrap_or_default();
    factory.scope.allows_product(&job.product)
        && (factory.advertised.can_clone
            || factory.advertised.repos.iter().any(|known| known.name == repo_name(repo)))
}

impl Op for SettleMerge {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.job);
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let Self { job, factory, attempt, outcome } = self;
        let command =
            Command::SettleMerge { factory: factory.clone(), attempt: *attempt, outcome: outcome.clone() };
        working.apply(*job, &command, &Actor::Factory(factory.clone())).cloned()
    }
}
