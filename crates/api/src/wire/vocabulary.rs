//! The words of the wire: enums that mirror those of the domain.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How bad an alert is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    Warning,
    Info,
}

impl From<giga_domain::Severity> for Severity {
    fn from(severity: giga_domain::Severity) -> Self {
        match severity {
            giga_domain::Severity::Critical => Self::Critical,
            giga_domain::Severity::Warning => Self::Warning,
            giga_domain::Severity::Info => Self::Info,
        }
    }
}
