//! What products may spend, what is reserved, and the ledger of what was charged.

use std::time::Duration;

use giga_domain::{Actor, Budget, BudgetChange, Charge, JobId, ProductId, RequestId, Rev, Timestamp, Usd};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! budgets {
    ($make:ident) => {
        $make! {
            writes BudgetStore {
                /// What people change about a budget. The same request again is answered and does nothing.
                change_budget(ChangeBudget) -> Budget;
            }
            reads BudgetReads {
                /// `None` for a product that nothing was ever set, reserved or charged for.
                budget(product: &ProductId) -> Option<Budget>;

                /// Those of them that there are, by product.
                budgets() -> Vec<Budget>;

                /// What was charged in each stretch of `bucket` from `from` on, up to `to`; empty stretches are left out.
                burndown(product: &ProductId, from: Timestamp, to: Timestamp, bucket: Duration) -> Vec<SpendBucket>;

                /// The ledger of a job, by epoch.
                charges(job: JobId) -> Vec<Charge>;

                /// What was charged to each of these jobs, all of its runs together; those that cost nothing may be left
                /// out.
                charged_to(jobs: &[JobId]) -> Vec<(JobId, Usd)>;
            }
        }
    };
}
budgets!(traits);
pub(super) use budgets;

#[derive(Debug, Clone)]
pub struct ChangeBudget {
    pub product: ProductId,
    pub change: BudgetChange,
    /// Another revision is refused with [`super::StoreError::RevMismatch`].
    pub if_rev: Option<Rev>,
    pub request: RequestId,
    pub actor: Actor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendBucket {
    pub from: Timestamp,
    pub usd: Usd,
    pub tokens: u64,
    pub runs: u64,
}
