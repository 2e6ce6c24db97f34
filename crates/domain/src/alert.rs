//! What somebody should look at: which kinds of alerts there are, and how bad they can be.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::word::words;

/// Worst first: lists of alerts are in this order.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
#[strum(parse_err_ty = crate::id::IdError, parse_err_fn = Self::unknown)]
pub enum AlertKind {
    DeadLetters,
    BudgetExhausted,
    FactoryDown,
    MergeConflict,
    EffectsGivenUp,
    NoEligibleFactory,
    Starvation,
    StaleFactory,
    BudgetNear,
    BudgetPaused,
    EffectsWaiting,
}

words!(AlertKind, "alert kind");

/// Worst first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
#[strum(parse_err_ty = crate::id::IdError, parse_err_fn = Self::unknown)]
pub enum Severity {
    /// Work is lost or stopped until somebody acts.
    Critical,
    /// Work waits longer than it should.
    Warning,
    /// Worth knowing.
    Info,
}

words!(Severity, "severity");
