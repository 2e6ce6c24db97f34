//! What a job and people say to each other.

use std::time::Duration;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{AnswerRequest, AskRequest, Conversation, DeliveredRequest, Job, Question, SayRequest};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    /// With nothing newer than `after`, waits up to `wait` for something.
    pub async fn conversation(&self, id: &str, after: u64, wait: Duration) -> Result<Conversation> {
        let call = Call::get(&["jobs", id, "conversation"]).query("after", Some(after));
        self.ask(call.query("wait", Some(format!("{}s", wait.as_secs())))).await
    }

    /// Of a job's holder, or of what runs inside it. The same question again is answered with the first.
    pub async fn ask_people(&self, id: &str, request: &AskRequest) -> Result<Question> {
        self.ask(Call::post(&["jobs", id, "questions"]).json(request).repeatable(true)).await
    }

    pub async fn delivered(&self, id: &str, request: &DeliveredRequest) -> Result<()> {
        self.done(Call::post(&["jobs", id, "conversation", "delivered"]).json(request).repeatable(true)).await
    }

    pub async fn answer(&self, id: &str, request: &AnswerRequest) -> Result<Job> {
        self.ask(Call::post(&["jobs", id, "answer"]).json(request)).await
    }

    pub async fn say(&self, id: &str, request: &SayRequest) -> Result<Job> {
        let repeatable = request.request_id.is_some();
        self.ask(Call::post(&["jobs", id, "messages"]).json(request).repeatable(repeatable)).await
    }
}
