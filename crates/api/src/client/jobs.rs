//! Calls about jobs.

use giga_domain::limits;
use serde_json::Value;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    ActionRequest, EventPage, Explanation, Job, JobPage, LogPiece, OperatorAction, PlanAnswer, Priority,
    RequestReviewRequest, ReviewRequest, RunList, Stage, StageList, SubmitAnswer,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

/// What a list is narrowed by. Lists of words are alternatives.
#[derive(Debug, Clone, Default)]
pub struct JobQuery {
    /// At most 100.
    pub ids: Vec<String>,
    pub stages: Vec<Stage>,
    pub priorities: Vec<Priority>,
    pub repo: Option<String>,
    pub factory: Option<String>,
    pub parent: Option<String>,
    pub name: Option<String>,
    /// Only those that a person has to answer.
    pub needs_input: bool,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

/// What keeps a repeated submit from making a second job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idempotency {
    /// Nothing does, so it is not repeated once it may have arrived.
    Nothing,
    /// The manifest has a key.
    InManifest,
    /// This key, for a manifest without one.
    Key(String),
}

/// `a,b,c`, or nothing for none.
fn words(words: &[impl ToString]) -> Option<String> {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// Every parameter of the list, with its value where it has one.
fn pairs(query: &JobQuery) -> [(&'static str, Option<String>); 10] {
    let JobQuery { ids, stages, priorities, repo, factory, parent, name, needs_input, limit, cursor } = query;
    [
        ("id", words(ids)),
        ("stage", words(stages)),
        ("priority", words(priorities)),
        ("repo", repo.clone()),
        ("factory", factory.clone()),
        ("parent", parent.clone()),
        ("name", name.clone()),
        ("needsInput", needs_input.then(|| true.to_string())),
        ("limit", limit.map(|limit| limit.to_string())),
        ("cursor", cursor.clone()),
    ]
}

impl Client {
    /// A Markdown manifest, byte for byte.
    pub async fn submit(&self, manifest: Vec<u8>, idempotency: &Idempotency) -> Result<SubmitAnswer> {
        let key = match idempotency {
            Idempotency::Key(key) => Some(key),
            Idempotency::Nothing | Idempotency::InManifest => None,
        };
        let call = Call::post(&["jobs"]).bytes("text/markdown", manifest).header("idempotency-key", key);
        self.ask(call.repeatable(*idempotency != Idempotency::Nothing)).await
    }

    /// What a submit would do, without doing it.
    pub async fn plan(&self, manifest: Vec<u8>) -> Result<PlanAnswer> {
        self.ask(Call::post(&["plan"]).bytes("text/markdown", manifest).repeatable(true)).await
    }

    pub async fn jobs(&self, query: &JobQuery) -> Result<JobPage> {
        let pairs = pairs(query).into_iter();
        let call = pairs.fold(Call::get(&["jobs"]), |call, (name, value)| call.query(name, value));
        self.ask(call).await
    }

    pub async fn job(&self, id: &str) -> Result<Job> {
        self.ask(Call::get(&["jobs", id])).await
    }

    /// Where these jobs are, at most 100 of them; those that are unknown, or of products that the token does not cover,
    /// are left out.
    pub async fn stages(&self, ids: &[String]) -> Result<StageList> {
        self.ask(Call::get(&["stages"]).query("id", Some(ids.join(",")))).await
    }

    pub async fn runs(&self, id: &str) -> Result<RunList> {
        self.ask(Call::get(&["jobs", id, "runs"])).await
    }

    /// A piece of a run's log from `offset` on; waits up to `wait` for one while the run goes on.
    pub async fn log(
        &self,
        id: &str,
        epoch: Option<u64>,
        offset: u64,
        wait: std::time::Duration,
    ) -> Result<LogPiece> {
        let call = Call::get(&["jobs", id, "logs"])
            .query("epoch", epoch)
            .query("offset", Some(offset))
            .query("wait", Some(format!("{}s", wait.as_secs())));
        self.ask(call).await
    }

    pub async fn explain(&self, id: &str) -> Result<Explanation> {
        self.ask(Call::get(&["jobs", id, "explain"])).await
    }

    /// The job's history after `after`, oldest first.
    pub async fn job_events(&self, id: &str, after: Option<u64>) -> Result<EventPage> {
        let call = Call::get(&["jobs", id, "events"]).query("after", after);
        self.ask(call.query("limit", Some(limits::PAGE_MAX))).await
    }

    /// With `rev`, only if nobody changed the job meanwhile.
    pub async fn act(
        &self,
        id: &str,
        action: OperatorAction,
        reason: Option<String>,
        rev: Option<u64>,
    ) -> Result<Job> {
        let call = Call::post(&["jobs", id, "actions", action.as_str()]).json(&ActionRequest { reason });
        self.ask(call.header("if-match", rev.map(|rev| format!("\"rev-{rev}\"")))).await
    }

    pub async fn review(&self, id: &str, request: &ReviewRequest) -> Result<Job> {
        self.ask(Call::post(&["jobs", id, "review"]).json(request)).await
    }

    /// Asks for a review before the job goes on.
    pub async fn request_review(&self, id: &str, request: &RequestReviewRequest) -> Result<Job> {
        self.ask(Call::post(&["jobs", id, "review", "request"]).json(request).repeatable(true)).await
    }

    /// The JSON of a call that answers nothing is `null`.
    pub(super) async fn done(&self, call: Call<'_>) -> Result<()> {
        let answer = self.ask::<Value>(call).await?;
        Ok(Answer { value: (), json: answer.json, status: answer.status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_knows_every_filter_of_the_list() {
        let document: Value = serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap();
        let parameters = document.pointer("/paths/~1api~1fleet~1jobs/get/parameters").unwrap();
        let in_query = parameters.as_array().unwrap().iter().filter(|parameter| parameter["in"] == "query");
        let documented: Vec<&str> = in_query.filter_map(|parameter| parameter["name"].as_str()).collect();
        assert_eq!(pairs(&JobQuery::default()).map(|(name, _)| name).to_vec(), documented);
    }
}
