//! Orders to merge what has shipped.

use std::time::Duration;

use giga_domain::job::repo_name;
use giga_domain::{Actor, Command, Factory, FactoryId, FactoryState, Job, Refusal};
use giga_ports::StoreError;
use giga_ports::store::SettleMerge;

use super::super::{Needs, Op, Working};

/// How many orders are looked at for one that the factory may carry out.
const LOOK_AT: usize = 50;

pub(in crate::engine) struct TakeMerge {
    pub(in crate::engine) factory: FactoryId,
    pub(in crate::engine) lease: Duration,
}

impl Op for TakeMerge {
    type Reply = Option<Job>;

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

pub(in crate::engine) struct Settle(pub(in crate::engine) SettleMerge);

impl Op for Settle {
    type Reply = Job;

    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.0.job);
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let SettleMerge { job, factory, attempt, outcome } = &self.0;
        let command =
            Command::SettleMerge { factory: factory.clone(), attempt: *attempt, outcome: outcome.clone() };
        working.apply(*job, &command, &Actor::Factory(factory.clone())).cloned()
    }
}
