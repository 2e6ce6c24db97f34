//! Remedies that are one step, which anybody with the right may take at once.
//!
//! Here the step is a command line. The server tells it as a call too, since it alone knows routes and who may take
//! them. What needs more than is known here, a name to choose, a read before the write or somebody's judgement, is no
//! such step.

use giga_domain::{FactoryId, JobId, ProductId};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fix {
    ResumeBudget(ProductId),
    EndDrain(FactoryId),
    Requeue(JobId),
    Ship(JobId),
    Cancel(JobId),
    /// A flag that is true or false.
    SwitchOn(&'static str),
}

impl Fix {
    pub fn command(&self) -> String {
        match self {
            Self::ResumeBudget(product) => format!("giga budget resume {product}"),
            Self::EndDrain(factory) => format!("giga factory drain {factory} --undo"),
            Self::Requeue(job) => format!("giga job requeue {job}"),
            Self::Ship(job) => format!("giga job ship {job}"),
            Self::Cancel(job) => format!("giga job cancel {job}"),
            Self::SwitchOn(flag) => format!("giga flags set {flag} true"),
        }
    }
}
