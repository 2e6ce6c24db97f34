//! Talking with a job: what it asks, what people answer and say.

use giga_api::client::RawCall;
use giga_domain::limits;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Caller, JobArg, OneJob};
use crate::api::ask;
use crate::reply::Reply;
use crate::tool::{Effect, Entry};

pub(super) fn tools() -> Vec<Entry<Caller>> {
    vec![
        Entry::new(
            "list_questions",
            "What a job asks",
            Effect::Reads,
            "The conversation with a job: its questions, open ones among them with their options, default and deadline, and what \
             people answered and said. list_jobs shows which jobs need input.",
            |api: Caller, args: OneJob| async move {
                let call = RawCall::get(&["jobs", args.job_id.as_str(), "conversation"]);
                Ok(Reply::facts(ask(&*api, call).await?))
            },
        ),
        Entry::new(
            "answer_question",
            "Answer a job",
            Effect::Decides,
            "Answer a question of a job in the name of the token. It cannot be taken back: the job goes on with it. A permission \
             is answered with one of its options.",
            |api: Caller, args: AnswerArgs| async move {
                let call = RawCall::post(&["jobs", args.job_id.as_str(), "answer"])
                    .json(&json!({"question": args.question, "answer": args.answer}));
                Ok(Reply::facts(super::look::brief(&ask(&*api, call).await?)))
            },
        ),
        Entry::new(
            "say_to_job",
            "Say something to a job",
            Effect::Adds,
            "A message to the engine of a job, which gets it at its next turn, at the latest when it runs next.",
            |api: Caller, args: SayArgs| async move {
                let call = RawCall::post(&["jobs", args.job_id.as_str(), "messages"])
                    .json(&json!({"text": args.text}));
                Ok(Reply::facts(super::look::brief(&ask(&*api, call).await?)))
            },
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnswerArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    /// Its number, from list_questions; the only open one if left out.
    #[schemars(range(min = 1))]
    question: Option<u32>,
    #[schemars(length(min = 1, max = limits::QUESTION_CHARS))]
    answer: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SayArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    #[schemars(length(min = 1, max = limits::MESSAGE_CHARS))]
    text: String,
}
