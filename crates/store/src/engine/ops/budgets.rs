//! What people change about a budget.

use giga_domain::{Budget, BudgetChange};
use giga_ports::StoreError;
use giga_ports::store::ChangeBudget;

use super::super::{Needs, Op, Working};

impl Op for ChangeBudget {
    fn needs(&self, needs: &mut Needs) {
        needs.budgets.insert(self.product.clone());
        if matches!(self.change, BudgetChange::Correct { .. }) {
            needs.corrections.insert((self.product.clone(), self.request.clone()));
        }
    }

    fn decide(&self, working: &mut Working) -> Result<Budget, StoreError> {
        let Self { product, change, if_rev, request, actor } = self;
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
