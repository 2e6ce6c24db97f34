//! Remedies that are one step, which anybody with the right may take at once.
//!
//! Here the step is a command line. The server tells it as a call too, since it alone knows routes and who may take
//! them. What needs more than is known here, a name to choose or a read before the write, is no such step.

use giga_domain::{Epoch, FactoryId, JobId, ProductId};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fix {
    ResumeBudget(ProductId),
    EndDrain(FactoryId),
    Requeue(JobId),
    Ship(JobId),
    Cancel(JobId),
    /// Of the result that this epoch handed over, and of no later one.
    Approve {
        job: JobId,
        epoch: Option<Epoch>,
    },
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
            Self::Approve { job, .. } => format!("giga review {job} --approve"),
            Self::SwitchOn(flag) => format!("giga flags set {flag} true"),
        }
    }
}
