//! The budgets of a batch: what is reserved with a lease, and what is charged when it ends.
//!
//! A budget follows its leases inside the same transaction, so the two can never come apart: `reserved` is
//! the sum over the leases of the product before the batch and after it.

use std::collections::{BTreeSet, HashMap, HashSet};

use giga_domain::budget::Closed;
use giga_domain::transition::{Refund, RunCharge};
use giga_domain::{
    Actor, Budget, BudgetChange, Charge, ChargeHow, Job, NewEvent, ProductId, RequestId, Timestamp, Usd,
};
use giga_ports::StoreError;

use super::{Needs, Working};

/// A budget with the last call that changed it: the same one again is answered and does nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetRow {
    pub budget: Budget,
    pub last_request: Option<RequestId>,
}

impl BudgetRow {
    pub fn new(product: ProductId) -> Self {
        Self { budget: Budget::new(product), last_request: None }
    }

    /// Whether there is anything to say about it. One that nothing was ever set, reserved or charged for is as good as
    /// none, whether or not it has a row.
    pub fn is_blank(&self) -> bool {
        self.budget == Budget::new(self.budget.product.clone())
    }
}

/// A line of the ledger. A correction by hand stands there under the call that made it, which books nothing a second
/// time, however late it comes again.
#[derive(Debug, Clone, PartialEq)]
pub struct ChargeRow {
    pub charge: Charge,
    pub request: Option<RequestId>,
}

#[derive(Debug, Default)]
pub(super) struct Money {
    budgets: HashMap<ProductId, BudgetRow>,
    /// Those that have to be written.
    dirty: BTreeSet<ProductId>,
    /// Calls that have corrected something, those of this batch included.
    corrected: HashSet<(ProductId, RequestId)>,
    charges: Vec<ChargeRow>,
}

impl Money {
    pub(super) fn new(
        budgets: HashMap<ProductId, BudgetRow>,
        corrected: HashSet<(ProductId, RequestId)>,
    ) -> Self {
        Self { budgets, corrected, ..Self::default() }
    }

    fn budget(&self, product: &ProductId) -> Result<&BudgetRow, StoreError> {
        let missing = || StoreError::broken_because(format!("the budget of {product} was not loaded"));
        self.budgets.get(product).ok_or_else(missing)
    }

    fn change(&mut self, product: &ProductId) -> &mut Budget {
        self.dirty.insert(product.clone());
        let new = || BudgetRow::new(product.clone());
        &mut self.budgets.entry(product.clone()).or_insert_with(new).budget
    }

    /// Nothing is known to have changed before this was asked: a batch that has not loaded a budget must not move money.
    pub(super) fn check(
        &self,
        before: &Job,
        after: &Job,
        charge: Option<RunCharge>,
        refund: Option<Refund>,
    ) -> Result<(), StoreError> {
        let moves = charge.is_some_and(|charge| !charge.spend.is_zero());
        if moves || refund.is_some() || reserved(before) != reserved(after) {
            self.budget(&after.product)?;
        }
        Ok(())
    }

    /// What stands on the job's lease before and after.
    pub(super) fn reserve(&mut self, before: &Job, after: &Job) {
        let (was, is) = (reserved(before), reserved(after));
        if was != is {
            let budget = self.change(&after.product);
            budget.reserved = budget.reserved.less(was) + is;
        }
    }

    /// With the events where a limit is reached by it. A run that cost nothing leaves no trace.
    pub(super) fn charge(&mut self, ended: &Job, charge: RunCharge, at: Timestamp) -> Vec<NewEvent> {
        let RunCharge { spend, how } = charge;
        if spend.is_zero() {
            return Vec::new();
        }
        self.book(Charge {
            product: ended.product.clone(),
            run: Some((ended.id, ended.epoch)),
            at,
            usd: spend.usd,
            tokens: spend.tokens,
            how,
        });
        self.change(&ended.product).charge(spend.usd, spend.tokens, at)
    }

    fn charge_hours(&mut self, product: &ProductId, usd: Usd, at: Timestamp) -> Vec<NewEvent> {
        if usd.is_zero() {
            return Vec::new();
        }
        let how = ChargeHow::PoolHours;
        self.book(Charge { product: product.clone(), run: None, at, usd, tokens: 0, how });
        self.change(product).charge(usd, 0, at)
    }

    /// Stands in the ledger at the time of the charge that it mends, as it does in the budget.
    pub(super) fn refund(&mut self, ended: &Job, refund: Refund, now: Timestamp) -> Vec<NewEvent> {
        let Refund { usd, tokens, charged_at } = refund;
        if usd.is_zero() && tokens == 0 {
            return Vec::new();
        }
        self.book(Charge {
            product: ended.product.clone(),
            run: Some((ended.id, ended.epoch)),
            at: charged_at,
            usd: -usd,
            tokens,
            how: ChargeHow::Correction,
        });
        self.change(&ended.product).refund(refund, now)
    }

    fn book(&mut self, charge: Charge) {
        self.charges.push(ChargeRow { charge, request: None });
    }

    /// Sorted by product.
    pub(super) fn into_writes(mut self) -> (Vec<BudgetRow>, Vec<ChargeRow>) {
        let changed = self.dirty.iter().filter_map(|product| self.budgets.remove(product)).collect();
        (changed, self.charges)
    }
}

fn reserved(job: &Job) -> Usd {
    job.lease().map_or(Usd::ZERO, |lease| lease.reserved)
}

fn budget_actor() -> Actor {
    Actor::system("budget")
}

impl Working {
    /// What is to be reserved for the job, or why it may not be claimed now. A pause that holds no longer is taken back
    /// by whoever finds it first.
    pub(super) fn admit(
        &mut self,
        product: &ProductId,
        cap: Option<Usd>,
    ) -> Result<Result<Usd, Closed>, StoreError> {
        let now = self.now();
        let BudgetRow { budget, .. } = self.money.budget(product)?;
        if budget.paused.is_some()
            && budget.pause_now(now).is_none()
            && let Some(event) = self.money.change(product).reopen(now)
        {
            self.append(Some(product.clone()), None, budget_actor(), event);
        }
        let BudgetRow { budget, .. } = self.money.budget(product)?;
        Ok(budget.admits(cap, now).map(|()| budget.share_of(cap)))
    }

    /// Charges a run that ended, or gives back what it was charged too much, and tells what became of the budget by it.
    pub(super) fn settle(&mut self, ended: &Job, charge: Option<RunCharge>, refund: Option<Refund>) {
        let now = self.now();
        let mut events = Vec::new();
        if let Some(charge) = charge {
            events.extend(self.money.charge(ended, charge, now));
        }
        if let Some(refund) = refund {
            events.extend(self.money.refund(ended, refund, now));
        }
        for event in events {
            self.append(Some(ended.product.clone()), None, budget_actor(), event);
        }
    }

    /// Hours of factories of a pool.
    pub(super) fn charge_hours(&mut self, product: &ProductId, usd: Usd) {
        for event in self.money.charge_hours(product, usd, self.now()) {
            self.append(Some(product.clone()), None, budget_actor(), event);
        }
    }

    /// Whether that call has corrected the budget before.
    pub(super) fn has_corrected(&self, product: &ProductId, request: &RequestId) -> bool {
        self.money.corrected.contains(&(product.clone(), request.clone()))
    }

    pub(super) fn budget(&self, product: &ProductId) -> Result<&BudgetRow, StoreError> {
        self.money.budget(product)
    }

    /// What people change. The call is remembered with the change itself.
    pub(super) fn change_budget(
        &mut self,
        product: &ProductId,
        change: &BudgetChange,
        request: &RequestId,
        actor: &Actor,
    ) -> Result<Budget, StoreError> {
        let now = self.now();
        let mut row = self.money.budget(product)?.clone();
        let events = row.budget.change(change, actor, now);
        if events.is_empty() {
            return Ok(row.budget);
        }
        row.last_request = Some(request.clone());
        if let BudgetChange::Correct { usd, .. } = change {
            let how = ChargeHow::Correction;
            let (product, usd) = (product.clone(), *usd);
            self.money.corrected.insert((product.clone(), request.clone()));
            let charge = Charge { product, run: None, at: now, usd, tokens: 0, how };
            self.money.charges.push(ChargeRow { charge, request: Some(request.clone()) });
        }
        for event in events {
            self.append(Some(product.clone()), None, actor.clone(), event);
        }
        self.money.dirty.insert(product.clone());
        self.money.budgets.insert(product.clone(), row.clone());
        Ok(row.budget)
    }
}

impl Needs {
    /// No look finds the product of a job that is made by this very batch.
    pub(super) fn budgets_of_made_jobs(&mut self) {
        let spenders = self.claims.union(&self.money);
        self.budgets.extend(spenders.filter_map(|id| self.made.get(id)).cloned());
    }
}
