//! Asking people, and waiting for the answer.

use std::time::Duration;

use giga_api::client::RawCall;
use giga_domain::limits;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::JobTools;
use crate::api::ask;
use crate::reply::{Refusal, Reply};

/// Engines give a tool five minutes and a half.
const MOST_SECONDS: u64 = 300;
const SECONDS: u64 = 240;
/// How long one call to the coordinator waits.
const LOOK_SECONDS: u64 = 30;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AskArgs {
    /// The question, with everything that somebody needs to know to answer it.
    #[schemars(length(min = 1, max = limits::QUESTION_CHARS))]
    question: String,
    /// Answers to choose from; people may give another one.
    #[serde(default)]
    #[schemars(length(max = limits::QUESTION_OPTIONS), inner(length(min = 1, max = limits::QUESTION_OPTION_CHARS)))]
    options: Vec<String>,
    /// The answer if nobody gives one in time. Without one the job fails then.
    #[schemars(length(min = 1, max = limits::QUESTION_OPTION_CHARS))]
    default: Option<String>,
    /// The same key is the same question, in every run of the job; without one, the same text and options are.
    #[schemars(length(min = 1, max = limits::QUESTION_KEY_CHARS))]
    key: Option<String>,
    /// How long people have, such as `30m`; the job's own time if left out, which is also the longest.
    #[schemars(regex(pattern = "^([0-9]+(ms|s|m|h|d))+$"))]
    deadline: Option<String>,
    /// How long this call waits for the answer; 240 if left out.
    #[schemars(range(min = 1, max = MOST_SECONDS))]
    wait_seconds: Option<u64>,
}

pub(super) async fn ask_person(tools: &JobTools, args: AskArgs) -> Result<Reply, Refusal> {
    let AskArgs { question, options, default, key, deadline, wait_seconds } = args;
    let seconds = wait_seconds.unwrap_or(SECONDS);
    if seconds == 0 || seconds > MOST_SECONDS {
        let message = format!("it must be from 1 to {MOST_SECONDS}; it is {seconds}");
        return Err(Refusal::field("waitSeconds", message));
    }
    let until = Instant::now() + Duration::from_secs(seconds);
    let job = &tools.run.job_id;
    let request = json!({
        "leaseEpoch": tools.run.lease_epoch,
        "text": question,
        "options": options,
        "default": default,
        "key": key,
        "deadline": deadline,
    });
    // The same question is the same one, however often it is asked.
    let call = RawCall::post(&["jobs", job, "questions"]).json(&request).repeatable(true);
    let mut asked = ask(&*tools.api, call).await?;
    let number = asked["number"].clone();
    let mut after = 0;
    while asked["state"] == "open" {
        let left = until.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 {
            return Ok(Reply::facts(json!({
                "state": "open",
                "question": number,
                "deadline": asked["deadline"],
                "next": "Nobody has answered yet. Go on with what does not depend on it, or call ask_person again with the same arguments to wait longer.",
            })));
        }
        let call = RawCall::get(&["jobs", job, "conversation"])
            .query("after", Some(after))
            .query("wait", Some(format!("{}s", left.min(LOOK_SECONDS))));
        let talk = ask(&*tools.api, call).await?;
        after = talk["lastSeq"].as_u64().unwrap_or(after);
        let its_own = |question: &&Value| question["number"] == number;
        let Some(found) = talk["questions"].as_array().and_then(|all| all.iter().find(its_own)) else {
            return Err(Refusal::new("the question is not there any more; ask it again"));
        };
        asked = found.clone();
    }
    if let Some(seq) = asked["seq"].as_u64() {
        // The engine has it: it is not told again.
        let delivered = json!({"leaseEpoch": tools.run.lease_epoch, "seqs": [seq]});
        let call = RawCall::post(&["jobs", job, "conversation", "delivered"]).json(&delivered);
        tools.api.call(call.repeatable(true)).await?;
    }
    let mut facts = json!({"question": number, "state": asked["state"]});
    for name in ["answer", "answeredBy"] {
        if !asked[name].is_null() {
            facts[name] = asked[name].clone();
        }
    }
    Ok(Reply::facts(facts))
}
