//! Calls about graphs of jobs.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{BatchAnswer, BatchItem, BatchRequest, ChildrenRequest, Dag};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    /// All or none. `repeatable` where every one of them has an idempotency key.
    pub async fn submit_many(&self, jobs: Vec<BatchItem>, repeatable: bool) -> Result<BatchAnswer> {
        let call = Call::post(&["jobs", "batch"]).json(&BatchRequest { jobs });
        self.ask(call.repeatable(repeatable)).await
    }

    /// The same, as children of a job.
    pub async fn submit_children(
        &self,
        parent: &str,
        children: Vec<BatchItem>,
        repeatable: bool,
    ) -> Result<BatchAnswer> {
        let call = Call::post(&["jobs", parent, "children"]).json(&ChildrenRequest { children });
        self.ask(call.repeatable(repeatable)).await
    }

    /// The job and all below it.
    pub async fn dag(&self, id: &str) -> Result<Dag> {
        self.ask(Call::get(&["jobs", id, "dag"])).await
    }
}
