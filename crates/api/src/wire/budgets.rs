//! What a product may spend and has spent. Money is dollars, exact to a millionth.

use giga_domain as domain;
use giga_domain::budget::{self, Pause, PerPeriod};
use giga_domain::{Timestamp, Usd, usd};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{PauseCause, Period};

/// What a run has used so far, in total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spend {
    #[serde(default)]
    #[schema(value_type = f64, minimum = 0)]
    pub usd: Usd,
    #[serde(default)]
    pub tokens: u64,
}

/// In dollars; one that is `null` or left out is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ceilings {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "usd::exact_or_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub day: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "usd::exact_or_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub week: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "usd::exact_or_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub month: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "usd::exact_or_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub total: Option<Usd>,
}

/// Replaces what was set. What is left out is none from then on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetBudgetRequest {
    #[serde(default)]
    pub ceilings: Ceilings,
    /// The cap of a job that names none, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "usd::exact_or_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub job_usd: Option<Usd>,
}

/// An empty body is fine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PauseBudgetRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Running jobs are asked to save a checkpoint and stop too; they go on when it is resumed.
    #[serde(default)]
    pub stop_running: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseBudgetAnswer {
    pub budget: Budget,
    /// How many running jobs were asked to stop.
    pub stopped: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CorrectBudgetRequest {
    /// In dollars; negative where less was spent than the ledger says.
    #[serde(deserialize_with = "usd::exact")]
    #[schema(value_type = f64)]
    pub usd: Usd,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    pub product_id: String,
    /// Raised by what people change, not by what is spent; the ETag is made from it.
    pub rev: u64,
    pub ceilings: Ceilings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub job_usd: Option<Usd>,
    /// While nothing of the product is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<BudgetPause>,
    /// What running jobs may still spend: reserved, not spent.
    #[schema(value_type = f64)]
    pub reserved_usd: Usd,
    /// What is left of the tightest limit; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub left_usd: Option<Usd>,
    /// Which limit that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tightest: Option<Period>,
    /// Day, week, month and total, as of now.
    pub periods: Vec<BudgetPeriod>,
    /// What the settings leave open, with the remedy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetPause {
    pub at: String,
    pub cause: PauseCause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `ceiling`: of those that are reached now, the one whose period ends last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetPeriod {
    pub period: Period,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    #[schema(value_type = f64)]
    pub spent_usd: Usd,
    pub tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub ceiling_usd: Option<Usd>,
    /// Limit less spent less reserved, 0 at least; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub left_usd: Option<Usd>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetList {
    /// By product.
    pub budgets: Vec<Budget>,
}

/// What was spent, stretch by stretch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Burndown {
    pub product_id: String,
    pub from: String,
    pub to: String,
    pub bucket_ms: u64,
    /// The limit of the shortest period that all of it lies in, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub ceiling_usd: Option<Usd>,
    /// Which period that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_of: Option<Period>,
    #[schema(value_type = f64)]
    pub total_usd: Usd,
    pub buckets: Vec<BurndownBucket>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BurndownBucket {
    pub from: String,
    /// In this stretch. Negative where corrections outweigh what was spent.
    #[schema(value_type = f64)]
    pub usd: Usd,
    pub tokens: u64,
    pub runs: u64,
    /// From the beginning to the end of this stretch.
    #[schema(value_type = f64)]
    pub cumulative_usd: Usd,
}

impl Budget {
    pub fn of(budget: &domain::Budget, now: Timestamp) -> Self {
        let left = budget.left(now);
        Self {
            product_id: budget.product.to_string(),
            rev: budget.rev.0,
            ceilings: (&budget.settings.limits).into(),
            job_usd: budget.settings.job_cap,
            paused: budget.pause_now(now).as_ref().map(Into::into),
            reserved_usd: budget.reserved,
            left_usd: left.map(|(left, _)| left),
            tightest: left.map(|(_, period)| period.into()),
            periods: domain::Period::ALL.map(|period| BudgetPeriod::of(budget, period, now)).into(),
            warnings: warnings(&budget.settings, &budget.product),
        }
    }
}

/// What the settings do not do though somebody may think so.
fn warnings(settings: &domain::BudgetSettings, product: &domain::ProductId) -> Vec<String> {
    let limited = domain::Period::ALL.iter().any(|period| settings.limits.of(*period).is_some());
    let uncapped = limited && settings.job_cap.is_none();
    let warning = format!(
        "jobs whose manifest has no `budget.usd` have no cap: nothing is reserved for them, and they can overrun the \
         limit; give them one with `giga budget set {product} --job USD` (`jobUsd`)"
    );
    uncapped.then_some(warning).into_iter().collect()
}

impl BudgetPeriod {
    fn of(budget: &domain::Budget, period: domain::Period, now: Timestamp) -> Self {
        let spent = budget.spent_in(period, now);
        let limit = *budget.settings.limits.of(period);
        Self {
            period: period.into(),
            since: period.end(now).map(|_| period.start(now).to_string()),
            until: period.end(now).map(|at| at.to_string()),
            spent_usd: spent.usd,
            tokens: spent.tokens,
            ceiling_usd: limit,
            left_usd: limit.map(|limit| limit.less(spent.usd + budget.reserved)),
        }
    }
}

impl From<&PerPeriod<Option<Usd>>> for Ceilings {
    fn from(limits: &PerPeriod<Option<Usd>>) -> Self {
        let PerPeriod { day, week, month, total } = *limits;
        Self { day, week, month, total }
    }
}

impl From<&Pause> for BudgetPause {
    fn from(pause: &Pause) -> Self {
        let (cause, by, reason, period) = match &pause.cause {
            budget::PauseCause::Operator { by, reason } => {
                (PauseCause::Operator, Some(by.to_string()), reason.clone(), None)
            }
            budget::PauseCause::Limit { period } => (PauseCause::Ceiling, None, None, Some((*period).into())),
        };
        Self { at: pause.at.to_string(), cause, by, reason, period }
    }
}
