//! Calls about webhooks, trackers and the outbox.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    AddWebhookAnswer, AddWebhookRequest, EchoRequest, Effect, EffectPage, EffectState, IngestRequest,
    SubmitAnswer, WebhookList,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

/// Everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct EffectQuery {
    pub state: Option<EffectState>,
    pub webhook: Option<String>,
    pub job: Option<String>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

impl Client {
    pub async fn webhooks(&self) -> Result<WebhookList> {
        self.ask(Call::get(&["webhooks"])).await
    }

    pub async fn add_webhook(&self, request: &AddWebhookRequest) -> Result<AddWebhookAnswer> {
        self.ask(Call::post(&["webhooks"]).json(request)).await
    }

    pub async fn remove_webhook(&self, id: &str) -> Result<()> {
        self.done(Call::delete(&["webhooks", id]).repeatable(true)).await
    }

    /// Sends it something that is no event.
    pub async fn test_webhook(&self, id: &str) -> Result<Effect> {
        self.ask(Call::post(&["webhooks", id, "test"])).await
    }

    /// Newest first.
    pub async fn effects(&self, query: &EffectQuery) -> Result<EffectPage> {
        let call = Call::get(&["effects"])
            .query("state", query.state)
            .query("webhook", query.webhook.as_ref())
            .query("job", query.job.as_ref())
            .query("limit", query.limit)
            .query("cursor", query.cursor.as_ref());
        self.ask(call).await
    }

    pub async fn effect(&self, id: &str) -> Result<Effect> {
        self.ask(Call::get(&["effects", id])).await
    }

    /// Retries one that was given up.
    pub async fn retry_effect(&self, id: &str) -> Result<Effect> {
        self.ask(Call::post(&["effects", id, "retry"]).repeatable(true)).await
    }

    /// The item has one job, however often this is sent.
    pub async fn ingest(&self, request: &IngestRequest) -> Result<SubmitAnswer> {
        self.ask(Call::post(&["tracker", "ingest"]).json(request).repeatable(true)).await
    }

    pub async fn echo(&self, job: &str) -> Result<Effect> {
        let request = EchoRequest { job_id: job.to_owned() };
        self.ask(Call::post(&["tracker", "echo"]).json(&request).repeatable(true)).await
    }
}
