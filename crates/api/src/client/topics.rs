//! Calls about topics.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    EnqueueAnswer, EnqueueRequest, RetryDeadAnswer, RetryDeadRequest, Topic, TopicGate, TopicJob,
    TopicJobPage, TopicJobState, TopicList,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    pub async fn topics(&self) -> Result<TopicList> {
        self.ask(Call::get(&["topics"])).await
    }

    pub async fn pause_topic(&self, topic: &str) -> Result<Topic> {
        self.ask(Call::post(&["topics", topic, "pause"]).repeatable(true)).await
    }

    pub async fn resume_topic(&self, topic: &str) -> Result<Topic> {
        self.ask(Call::post(&["topics", topic, "resume"]).repeatable(true)).await
    }

    pub async fn pause_all_topics(&self) -> Result<TopicGate> {
        self.ask(Call::post(&["topic-gate", "close"]).repeatable(true)).await
    }

    pub async fn resume_all_topics(&self) -> Result<TopicGate> {
        self.ask(Call::post(&["topic-gate", "open"]).repeatable(true)).await
    }

    /// Repeated by itself only where every job has a key that makes a repetition the same call.
    pub async fn enqueue(&self, topic: &str, request: &EnqueueRequest) -> Result<EnqueueAnswer> {
        let keyed = match &request.jobs {
            Some(jobs) => jobs.iter().all(|job| job.idempotency_key.is_some()),
            None => request.idempotency_key.is_some(),
        };
        self.ask(Call::post(&["topics", topic, "jobs"]).json(request).repeatable(keyed)).await
    }

    /// Jobs in one state, newest first.
    pub async fn topic_jobs(
        &self,
        topic: &str,
        state: TopicJobState,
        limit: Option<usize>,
        cursor: Option<&str>,
    ) -> Result<TopicJobPage> {
        let call = Call::get(&["topics", topic, "jobs"]).query("state", Some(state));
        self.ask(call.query("limit", limit).query("cursor", cursor)).await
    }

    pub async fn topic_job(&self, topic: &str, id: &str) -> Result<TopicJob> {
        self.ask(Call::get(&["topics", topic, "jobs", id])).await
    }

    /// Retries dead jobs: those named, or all where none is named.
    pub async fn retry_dead(&self, topic: &str, jobs: Vec<String>) -> Result<RetryDeadAnswer> {
        let jobs = (!jobs.is_empty()).then_some(jobs);
        self.ask(Call::post(&["topics", topic, "retry"]).json(&RetryDeadRequest { jobs })).await
    }
}
