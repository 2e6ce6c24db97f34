//! What a job and people say to each other.

use giga_domain as domain;
use giga_domain::conversation::ClosedHow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{QuestionKind, QuestionState};

/// Something that a job wants to know of people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Counts from 1 in each job.
    pub number: u32,
    pub kind: QuestionKind,
    pub state: QuestionState,
    pub text: String,
    /// A permission is answered with one of these, a question with one of them or with anything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The answer if nobody gives one by the deadline. Without one the job fails then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What its asker calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of the run that asked.
    pub lease_epoch: u64,
    pub asked_at: String,
    /// From then on its run gives its seat up and goes on when it is answered.
    pub park_at: String,
    pub deadline: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Who answered; missing where the default was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
    /// The place of its answer among all that the job was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
}

/// Something that a person says to a job's engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its place among all that the job was told.
    pub seq: u64,
    pub text: String,
    pub by: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
}

/// Which run was given it, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    pub at: String,
    pub lease_epoch: u64,
}

/// What is open or was not delivered is all here; of the rest the newest 20 of each. The history of the job has the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Oldest first.
    pub questions: Vec<Question>,
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The place of the newest answer or message: `after` of the next call.
    pub last_seq: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskRequest {
    pub lease_epoch: u64,
    pub text: String,
    #[serde(default)]
    pub kind: QuestionKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The same key is the same question, in every run of the job; without one, the same text and options are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Such as 30m, where that is shorter than the job's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerRequest {
    /// Left out: the only open one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u32>,
    pub answer: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SayRequest {
    pub text: String,
    /// Repeating it after a lost reply says nothing twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveredRequest {
    pub lease_epoch: u64,
    /// Places of answers and messages; at most 100.
    pub seqs: Vec<u64>,
}

impl From<&domain::Question> for Question {
    fn from(question: &domain::Question) -> Self {
        let closed = question.closed.as_ref();
        let (state, answered_by) = match closed.map(|closed| &closed.how) {
            None => (QuestionState::Open, None),
            Some(ClosedHow::Answered { by, .. }) => (QuestionState::Answered, Some(by.clone())),
            Some(ClosedHow::Defaulted { .. }) => (QuestionState::Defaulted, None),
            Some(ClosedHow::Expired) => (QuestionState::Expired, None),
            Some(ClosedHow::Withdrawn) => (QuestionState::Withdrawn, None),
        };
        Self {
            number: question.number,
            kind: question.kind.into(),
            state,
            text: question.text.clone(),
            options: question.options.clone(),
            default: question.default.clone(),
            key: question.key.clone(),
            lease_epoch: question.epoch.0,
            asked_at: question.asked_at.to_string(),
            park_at: question.park_at.to_string(),
            deadline: question.deadline.to_string(),
            answer: question.answer().map(str::to_owned),
            answered_by,
            closed_at: closed.map(|closed| closed.at.to_string()),
            seq: closed.and_then(|closed| closed.seq),
            delivered: closed.and_then(|closed| closed.delivered).map(Into::into),
        }
    }
}

impl From<domain::conversation::Delivered> for Delivered {
    fn from(delivered: domain::conversation::Delivered) -> Self {
        Self { at: delivered.at.to_string(), lease_epoch: delivered.epoch.0 }
    }
}

impl From<&domain::Message> for Message {
    fn from(message: &domain::Message) -> Self {
        Self {
            seq: message.seq,
            text: message.text.clone(),
            by: message.by.clone(),
            at: message.at.to_string(),
            delivered: message.delivered.map(Into::into),
        }
    }
}

impl From<&domain::Conversation> for Conversation {
    fn from(talk: &domain::Conversation) -> Self {
        Self {
            questions: talk.questions.iter().map(Into::into).collect(),
            messages: talk.messages.iter().map(Into::into).collect(),
            last_seq: talk.told,
        }
    }
}
