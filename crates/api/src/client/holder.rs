//! Calls of a factory: signs of life, claims, and every write of a holder.
//!
//! All of them can be repeated: each carries an identity (a request id, an epoch, an offset) by which the coordinator
//! recognises what it has done already. So a lost reply is never a lost job.

use std::time::Duration;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    AcceptRequest, AppendLogAnswer, Candidate, CandidateList, ClaimAnswer, ClaimManyAnswer,
    ClaimMergesRequest, ClaimRequest, FailRequest, HeartbeatAnswer, HeartbeatRequest, Job, MergeOrders,
    PatchRequest, PushMergesRequest, QueueState, ReleaseRequest, RenewAnswer, RenewMergesAnswer,
    RenewMergesRequest, RenewRequest, ReportRequest, SettleMergeRequest, Spend,
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

    /// What is queued that this factory may be given, best first.
    pub async fn candidates(
        &self,
        factory_id: &str,
        limit: u32,
    ) -> std::result::Result<Vec<Candidate>, ClientError> {
        let call =
            Call::get(&["candidates"]).query("factoryId", Some(factory_id)).query("limit", Some(limit));
        let answer: Answer<CandidateList> = self.ask(call).await?;
        Ok(answer.value.candidates)
    }

    /// A claim that says how many it wants at most (`max`), and which (`job_ids`).
    pub async fn claim_many(
        &self,
        request: &ClaimRequest,
    ) -> std::result::Result<Vec<ClaimAnswer>, ClientError> {
        let call = Call::post(&["claim"]).json(request).repeatable(true);
        Ok(self.ask_or_nothing::<ClaimManyAnswer>(call).await?.map_or_else(Vec::new, |answer| answer.grants))
    }

    /// Takes what an offer of the broker speaks of.
    pub async fn accept(&self, request: &AcceptRequest) -> std::result::Result<ClaimAnswer, ClientError> {
        let answer: Answer<ClaimAnswer> =
            self.ask(Call::post(&["accept"]).json(request).repeatable(true)).await?;
        Ok(answer.value)
    }

    pub async fn patch_job(&self, id: &str, request: &PatchRequest) -> Result<Job> {
        self.ask(Call::patch(&["jobs", id]).json(request).repeatable(true)).await
    }

    /// With what the run has used up so far, where that is known.
    pub async fn renew(&self, id: &str, lease_epoch: u64, spend: Option<Spend>) -> Result<RenewAnswer> {
        let call = Call::post(&["jobs", id, "lease", "renew"]).json(&RenewRequest { lease_epoch, spend });
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

    /// Adds to the log of the run; returns its length.
    pub async fn append_log(
        &self,
        id: &str,
        lease_epoch: u64,
        offset: u64,
        bytes: Vec<u8>,
    ) -> std::result::Result<u64, ClientError> {
        let call = Call::post(&["jobs", id, "logs"])
            .query("leaseEpoch", Some(lease_epoch))
            .query("offset", Some(offset))
            .bytes("application/octet-stream", bytes);
        let answer: Answer<AppendLogAnswer> = self.ask(call.repeatable(true)).await?;
        Ok(answer.length)
    }

    /// What is to be merged together, or nothing.
    pub async fn claim_merges(
        &self,
        request: &ClaimMergesRequest,
    ) -> std::result::Result<Option<MergeOrders>, ClientError> {
        // Not repeatable: what a lost reply took comes back by itself after a while.
        self.ask_or_nothing(Call::post(&["merges", "claim"]).json(request)).await
    }

    pub async fn renew_merges(&self, request: &RenewMergesRequest) -> Result<RenewMergesAnswer> {
        self.ask(Call::post(&["merges", "renew"]).json(request).repeatable(true)).await
    }

    pub async fn push_merges(&self, request: &PushMergesRequest) -> std::result::Result<(), ClientError> {
        self.fetch(Call::post(&["merges", "push"]).json(request).repeatable(true)).await.map(drop)
    }

    pub async fn settle_merge(&self, id: &str, request: &SettleMergeRequest) -> Result<Job> {
        self.ask(Call::post(&["merges", id, "settle"]).json(request).repeatable(true)).await
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
