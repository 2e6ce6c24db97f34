//! Finding jobs, and seeing where one is and why.

use giga_api::client::RawCall;
use giga_api::wire::{Priority, Stage};
use giga_domain::limits;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Caller, JobArg, OneJob, Word};
use crate::api::ask;
use crate::reply::Reply;
use crate::tool::{Effect, Entry};

/// Of jobs and events in one answer.
const PAGE: usize = 20;
const MOST_JOBS: usize = 50;
const MOST_EVENTS: usize = 100;

pub(super) fn tools() -> Vec<Entry<Caller>> {
    vec![
        Entry::new(
            "list_jobs",
            "List jobs",
            Effect::Reads,
            "Jobs, newest first, a line of facts for each. Narrow them by stage, priority, repository, factory, parent or a \
             part of the name. `nextCursor` in the answer goes into `cursor` for the next page.",
            |api: Caller, args: ListArgs| async move {
                let call = RawCall::get(&["jobs"])
                    .query("stage", joined(&args.stages))
                    .query("priority", joined(&args.priorities))
                    .query("repo", args.repo)
                    .query("factory", args.factory)
                    .query("parent", args.parent.as_ref().map(JobArg::as_str))
                    .query("name", args.name)
                    .query("needsInput", args.needs_input.then_some(true))
                    .query("limit", Some(args.limit.unwrap_or(PAGE as u16)))
                    .query("cursor", args.cursor);
                let mut page = ask(&*api, call).await?;
                for job in page["jobs"].as_array_mut().into_iter().flatten() {
                    *job = brief(job);
                }
                Ok(Reply::facts(page))
            },
        ),
        Entry::new(
            "show_job",
            "Show a job",
            Effect::Reads,
            "Everything about one job: its manifest and prompt, where it is, its result, reviews, failure, and each of its \
             runs with what it cost. Texts that are too long are cut.",
            |api: Caller, args: OneJob| async move {
                let id = args.job_id.as_str();
                let job = ask(&*api, RawCall::get(&["jobs", id])).await?;
                let runs = ask(&*api, RawCall::get(&["jobs", id, "runs"])).await?;
                Ok(Reply::facts(json!({"job": job, "runs": runs["runs"]})))
            },
        ),
        Entry::new(
            "explain_job",
            "Explain a job",
            Effect::Reads,
            "Why a job is where it is: what blocks it, which factory could run it or why none can, and the smallest change \
             that would move it.",
            |api: Caller, args: OneJob| async move {
                Ok(Reply::facts(ask(&*api, RawCall::get(&["jobs", args.job_id.as_str(), "explain"])).await?))
            },
        ),
        Entry::new(
            "job_history",
            "History of a job",
            Effect::Reads,
            "What happened to a job, oldest first, each with its time, cause and actor. `nextAfter` in the answer goes into \
             `after` for the next page.",
            |api: Caller, args: HistoryArgs| async move {
                history(&api, args.job_id.as_str(), args.after, args.limit).await
            },
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListArgs {
    /// In one of these stages.
    #[serde(default)]
    stages: Vec<Word<Stage>>,
    /// Of one of these priorities.
    #[serde(default)]
    priorities: Vec<Word<Priority>>,
    /// Exactly this repository.
    #[schemars(length(min = 1, max = limits::REPO_URL_CHARS))]
    repo: Option<String>,
    /// Held by this factory now.
    #[schemars(length(min = 1, max = 64))]
    factory: Option<String>,
    /// Children of this job, by its id.
    parent: Option<JobArg>,
    /// The name contains this, in upper or lower case.
    #[schemars(length(min = 1, max = limits::NAME_CHARS))]
    name: Option<String>,
    /// Only those that a person has to answer.
    #[serde(default)]
    needs_input: bool,
    /// How many at most; 20 if left out.
    #[schemars(range(min = 1, max = MOST_JOBS))]
    #[serde(default, deserialize_with = "at_most::<_, MOST_JOBS>")]
    limit: Option<u16>,
    /// `nextCursor` of the page before, as it came.
    #[schemars(length(max = 100))]
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HistoryArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    /// `nextAfter` of the page before; from the beginning if left out.
    after: Option<u64>,
    /// How many at most; 20 if left out.
    #[schemars(range(min = 1, max = MOST_EVENTS))]
    #[serde(default, deserialize_with = "at_most::<_, MOST_EVENTS>")]
    limit: Option<u16>,
}

/// `a,b,c`, or nothing for none.
fn joined<T: Copy + Into<&'static str>>(words: &[Word<T>]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(|word| word.0.into()).collect();
    (!words.is_empty()).then(|| words.join(","))
}

/// The API allows longer pages than a model should be given at once.
pub(crate) fn at_most<'de, D: serde::Deserializer<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<Option<u16>, D::Error> {
    let given = Option::<u64>::deserialize(deserializer)?;
    match given {
        Some(number) if number == 0 || number > MOST as u64 => {
            Err(serde::de::Error::custom(format!("it must be from 1 to {MOST}; it is {number}")))
        }
        given => Ok(given.and_then(|number| u16::try_from(number).ok())),
    }
}

pub(crate) async fn history(
    api: &Caller,
    job: &str,
    after: Option<u64>,
    limit: Option<u16>,
) -> Result<Reply, crate::reply::Refusal> {
    let call = RawCall::get(&["jobs", job, "events"])
        .query("after", after)
        .query("limit", Some(limit.unwrap_or(PAGE as u16)));
    let mut page = ask(&**api, call).await?;
    for event in page["events"].as_array_mut().into_iter().flatten() {
        *event = picked(event, &["seq", "at", "type", "from", "to", "cause", "actor"]);
    }
    Ok(Reply::facts(page))
}

/// What tells one job from another.
pub(crate) fn brief(job: &Value) -> Value {
    let mut brief = picked(
        job,
        &[
            "id",
            "name",
            "productId",
            "stage",
            "priority",
            "repo",
            "engine",
            "parentId",
            "attempts",
            "createdAt",
            "updatedAt",
        ],
    );
    // Only where it is so: most jobs ask nothing.
    if job["needsInput"] == true {
        brief["needsInput"] = json!(true);
    }
    for (name, at) in [
        ("factoryId", "/lease/factoryId"),
        ("failure", "/failure/reason"),
        ("failureDetail", "/failure/detail"),
    ] {
        if let Some(value) = job.pointer(at).filter(|value| !value.is_null()) {
            brief[name] = value.clone();
        }
    }
    brief
}

/// The answer to a submit.
pub(crate) fn submitted(answer: &Value) -> Value {
    json!({"job": brief(&answer["job"]), "routable": answer["routable"], "warnings": answer["warnings"]})
}

fn picked(of: &Value, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| {
        let value = of.get(name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}
