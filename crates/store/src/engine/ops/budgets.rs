//! What people change about a budget, and holders that are asked to let go.

use std::time::Duration;

use giga_domain::{Actor, Budget, BudgetChange, Command, Evict, Term};
use giga_ports::StoreError;
use giga_ports::store::{BudgetWrite, NewEviction};

use super::super::{Needs, Op, Working};
use super::dispatch::check_term;

pub(in crate::engine) struct ChangeBudget(pub(in crate::engine) BudgetWrite);

impl Op for ChangeBudget {
    type Reply = Budget;

    fn needs(&self, needs: &mut Needs) {
        needs.budgets.insert(self.0.product.clone());
        if matches!(self.0.change, BudgetChange::Correct { .. }) {
            needs.corrections.insert((self.0.product.clone(), self.0.request.clone()));
        }
    }

    fn decide(&self, working: &mut Working) -> Result<Budget, StoreError> {
        let BudgetWrite { product, change, if_rev, request, actor } = &self.0;
        let row = working.budget(product)?;
        // The last call alone is not enough for what adds up: another one may have come in between.
        if row.last_request.as_ref() == Some(request) || working.has_corrected(product, request) {
            return Ok(row.budget.clone());
        }
        let current = row.budget.rev;
        if let Some(given) = if_rev.filter(|given| *given != current) {
            return Err(StoreError::RevMismatch { given, current });
        }
        working.change_budget(product, change, request, actor)
    }
}

pub(in crate::engine) struct EvictJobs {
    pub(in crate::engine) term: Option<Term>,
    pub(in crate::engine) asked: Vec<NewEviction>,
    pub(in crate::engine) grace: Duration,
    pub(in crate::engine) actor: Actor,
}

impl Op for EvictJobs {
    type Reply = Vec<bool>;

    fn needs(&self, needs: &mut Needs) {
        needs.leader |= self.term.is_some();
        needs.jobs.extend(self.asked.iter().map(|asked| asked.job));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<bool>, StoreError> {
        if let Some(term) = self.term {
            check_term(working, term)?;
        }
        self.asked.iter().map(|asked| self.ask(working, asked)).collect()
    }
}

impl EvictJobs {
    /// False for a job that is gone, was let go or changed in any other way since it was looked at.
    fn ask(&self, working: &mut Working, asked: &NewEviction) -> Result<bool, StoreError> {
        let NewEviction { job: id, rev, for_job } = *asked;
        let Ok(job) = working.job(id) else { return Ok(false) };
        // The same call after a lost reply.
        let marked = job.lease().and_then(|lease| lease.evict);
        if job.rev == rev.next() && marked.is_some_and(|evict| evict.for_job == for_job) {
            return Ok(true);
        }
        let evict = Evict::new(for_job, working.now().plus(self.grace));
        match working.apply(id, &Command::Evict { rev, evict }, &self.actor) {
            Ok(_) => Ok(true),
            Err(StoreError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
