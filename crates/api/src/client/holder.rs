//! Calls of a factory: signs of life, claims, and every write of a holder.
//!
//! All of them can be repeated: each carries an identity (a request id, an epoch, an offset) by which the coordinator
//! recognises what it has done already. So a lost reply is never a lost job.

use std::time::Duration;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    ClaimAnswer, ClaimRequest, FailRequest, HeartbeatAnswer, HeartbeatRequest, Job, PatchRequest, QueueState,
    ReleaseRequest, RenewAnswer, RenewRequest, ReportRequest,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    pub async fn heartbeat(&self, request: &HeartbeatRequest) -> Result<HeartbeatAnswer> {
        self.ask(Call::post(&["factories", "heartbeat"]).json(request).repeatable(true)).await
    }

    /// The best job for the factory now, or nothing.
    pub async fn claim(
        &self,
        request: &ClaimRequest,
    ) -> std::result::Result<Option<ClaimAnswer>, ClientError> {
        self.ask_or_nothing(Call::post(&["claim"]).json(request).repeatable(true)).await
    }

    pub async fn patch_job(&self, id: &str, request: &PatchRequest) -> Result<Job> {
        self.ask(Call::patch(&["jobs", id]).json(request).repeatable(true)).await
    }

    pub async fn renew(&self, id: &str, lease_epoch: u64) -> Result<RenewAnswer> {
        let call = Call::post(&["jobs", id, "lease", "renew"]).json(&RenewRequest { lease_epoch });
        self.ask(call.repeatable(true)).await
    }

    pub async fn release(&self, id: &str, request: &ReleaseRequest) -> Result<Job> {
        self.ask(Call::post(&["jobs", id, "lease", "release"]).json(request).repeatable(true)).await
    }

    pub async fn report(&self, id: &str, request: &ReportRequest) -> Result<Job> {
        self.ask(Call::post(&["jobs", id, "report"]).json(request).repeatable(true)).await
    }

    pub async fn fail(&self, request: &FailRequest) -> Result<Job> {
        self.ask(Call::post(&["fail"]).json(request).repeatable(true)).await
    }

    /// Waits up to `wait` for the queue to be at another version than `known`; `None` when it is still the same.
    pub async fn queue_state(
        &self,
        known: Option<u64>,
        wait: Duration,
    ) -> std::result::Result<Option<QueueState>, ClientError> {
        let call = Call::get(&["queue-state"])
            .query("wait", Some(format!("{}s", wait.as_secs())))
            .header("if-none-match", known.map(|version| format!("\"queue-{version}\"")));
        self.ask_or_nothing(call).await
    }
}
