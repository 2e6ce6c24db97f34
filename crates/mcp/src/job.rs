//! Tools for what runs inside a job, with the job's own token: about that job and nothing else, for as long as its epoch
//! holds it.

mod agent;
mod file;
mod talk;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use giga_api::client::RawCall;
use giga_domain::limits;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::api::{Api, ask};
use crate::fleet::look::{at_most, history, submitted};
use crate::fleet::submit::SubmitArgs;
use crate::reply::{Refusal, Reply};
use crate::tool::{Effect, Entry};

pub use agent::{Agent, AgentError, Saved, SocketAgent};

/// Of one call; a job that has more to say calls again.
const MOST_CHILDREN: usize = 50;
const MOST_EVENTS: usize = 100;

/// Which run of which job it is, as its environment says.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    pub job_id: String,
    pub lease_epoch: u64,
}

/// What a call needs.
#[derive(Debug, Clone)]
pub struct JobTools {
    pub api: Arc<dyn Api>,
    pub run: RunIdentity,
    /// The agent that runs the job, where it listens.
    pub agent: Option<Arc<dyn Agent>>,
    /// What paths are relative to: the work tree.
    pub folder: PathBuf,
}

pub(crate) const INSTRUCTIONS: &str = "\
You run inside a job of Gigafactory. These tools are about this job only: ask a person, save a file for the people who \
will look at the result, start child jobs on other machines, save your work so far so that it survives this machine, and read what happened to \
this job before. Your changes in the work tree are committed by themselves when you are done; you need no tool for that.";

pub(crate) fn tools() -> &'static [Entry<JobTools>] {
    static TOOLS: LazyLock<Vec<Entry<JobTools>>> = LazyLock::new(|| {
        vec![
            Entry::new(
                "save_artifact",
                "Save a file with the job",
                Effect::AddsOnce,
                "Keep a file with this run, where people and later runs find it: a report, a screenshot, a build. Give \
                 `path` (a file here), `text`, or `base64`. A name that this run has used before gets the new file.",
                |tools: JobTools, args: ArtifactArgs| async move { save_artifact(&tools, args).await },
            ),
            Entry::new(
                "ask_person",
                "Ask a person",
                Effect::AddsOnce,
                "Ask the people who look after this job something that only they can decide, and wait for the answer. They may \
                 take a while: where nobody answers in time, the call returns and the question stays open. Do not ask what you \
                 can find out yourself.",
                |tools: JobTools, args: talk::AskArgs| async move { talk::ask_person(&tools, args).await },
            ),
            Entry::new(
                "spawn_children",
                "Start child jobs",
                Effect::Adds,
                "Start jobs below this one, all or none, in the same product. They never get more than this job has: \
                 repositories, engines, capabilities, budget, gates. Their `deps` may name each other. You do not wait for \
                 them; list_children says how far they are. Give each an `idempotencyKey`, so that a second run of this job \
                 does not start them twice.",
                |tools: JobTools, args: ChildrenArgs| async move { spawn(&tools, args).await },
            ),
            Entry::new(
                "list_children",
                "List child jobs",
                Effect::Reads,
                "This job and all jobs below it: where each is, and how far they are together.",
                |tools: JobTools, _: Nothing| async move {
                    let call = RawCall::get(&["jobs", &tools.run.job_id, "dag"]);
                    Ok(Reply::facts(ask(&*tools.api, call).await?))
                },
            ),
            Entry::new(
                "checkpoint",
                "Save the work so far",
                Effect::AddsOnce,
                "Save the work tree as it is now, where another machine can go on from it if this run is cut off. Call it \
                 after a part that was expensive. It does not end the run and is not the result.",
                |tools: JobTools, args: CheckpointArgs| async move { checkpoint(&tools, args).await },
            ),
            Entry::new(
                "job_history",
                "History of this job",
                Effect::Reads,
                "What happened to this job so far, oldest first: earlier runs, failures, reviews, questions and answers. \
                 `nextAfter` in the answer goes into `after` for the next page.",
                |tools: JobTools, args: HistoryArgs| async move {
                    history(&tools.api, &tools.run.job_id, args.after, args.limit).await
                },
            ),
            Entry::new(
                "show_job",
                "Show this job",
                Effect::Reads,
                "This job as people see it: manifest and prompt, reviews, failure, the result of an earlier run, and every \
                 run with what it cost.",
                |tools: JobTools, _: Nothing| async move {
                    let id = &tools.run.job_id;
                    let job = ask(&*tools.api, RawCall::get(&["jobs", id])).await?;
                    let runs = ask(&*tools.api, RawCall::get(&["jobs", id, "runs"])).await?;
                    Ok(Reply::facts(json!({"job": job, "runs": runs["runs"]})))
                },
            ),
        ]
    });
    &TOOLS
}

/// The names of all of them, for engines that want to be told beforehand which to allow.
pub fn tool_names() -> impl Iterator<Item = &'static str> {
    tools().iter().map(|entry| entry.tool.name.as_ref())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ArtifactArgs {
    /// What the file is called; the last part of `path` if left out.
    #[schemars(length(min = 1, max = limits::ARTIFACT_NAME_CHARS))]
    name: Option<String>,
    /// A file here, absolute or relative to the work tree.
    #[schemars(length(min = 1, max = 4096))]
    path: Option<String>,
    /// The content itself.
    text: Option<String>,
    /// The content itself, where it is no text.
    base64: Option<String>,
    /// Such as `text/markdown`; `text/plain` for `text`, and otherwise `application/octet-stream`, if left out.
    #[schemars(length(min = 3, max = 120), regex(pattern = "^[^/ ]+/[^/ ]+( *;.*)?$"))]
    media_type: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChildrenArgs {
    #[schemars(length(min = 1, max = MOST_CHILDREN))]
    children: Vec<SubmitArgs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckpointArgs {
    /// What is done and what comes next, in a sentence or two, for the log of the job.
    #[schemars(length(max = limits::NOTE_CHARS))]
    note: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HistoryArgs {
    /// `nextAfter` of the page before; from the beginning if left out.
    after: Option<u64>,
    /// How many at most; 20 if left out.
    #[schemars(range(min = 1, max = MOST_EVENTS))]
    #[serde(default, deserialize_with = "at_most::<_, MOST_EVENTS>")]
    limit: Option<u16>,
}

async fn save_artifact(tools: &JobTools, args: ArtifactArgs) -> Result<Reply, Refusal> {
    let ArtifactArgs { name, path, text, base64, media_type } = args;
    let last_part = path.as_deref().and_then(|path| std::path::Path::new(path).file_name()?.to_str());
    let Some(name) = name.or_else(|| last_part.map(str::to_owned)) else {
        return Err(Refusal::field("name", "say what the file is to be called"));
    };
    let (bytes, kind) = match (path, text, base64) {
        (Some(path), None, None) => (file::read(&tools.folder.join(path)).await?, "application/octet-stream"),
        (None, Some(text), None) => (text.into_bytes(), "text/plain"),
        (None, None, Some(base64)) => {
            let bytes = BASE64_STANDARD.decode(base64.trim());
            let bytes =
                bytes.map_err(|error| Refusal::field("base64", format!("it is malformed: {error}")))?;
            (bytes, "application/octet-stream")
        }
        _ => return Err(Refusal::field("path", "give exactly one of `path`, `text` and `base64`")),
    };
    let call = RawCall::post(&["jobs", &tools.run.job_id, "artifacts"])
        .query("name", Some(name))
        .query("leaseEpoch", Some(tools.run.lease_epoch))
        .body(media_type.as_deref().unwrap_or(kind), bytes)
        .repeatable(true);
    Ok(Reply::facts(ask(&*tools.api, call).await?))
}

async fn spawn(tools: &JobTools, args: ChildrenArgs) -> Result<Reply, Refusal> {
    let count = args.children.len();
    if count == 0 || count > MOST_CHILDREN {
        let message = format!("it must have from 1 to {MOST_CHILDREN} jobs; it has {count}");
        return Err(Refusal::field("children", message));
    }
    let mut children = Vec::with_capacity(count);
    for (at, child) in args.children.into_iter().enumerate() {
        children.push(child.item().map_err(|refusal| refusal.within(&format!("children[{at}]")))?);
    }
    let repeatable = children.iter().all(|child| child.get("idempotencyKey").is_some());
    let call = RawCall::post(&["jobs", &tools.run.job_id, "children"])
        .json(&json!({"children": children}))
        .repeatable(repeatable);
    let answer = ask(&*tools.api, call).await?;
    let made = answer["jobs"].as_array().into_iter().flatten();
    let made = made.map(|made| {
        let mut facts = submitted(made);
        facts["created"] = made["created"].clone();
        facts
    });
    let made: Vec<_> = made.collect();
    Ok(Reply::facts(json!({"children": made})))
}

async fn checkpoint(tools: &JobTools, args: CheckpointArgs) -> Result<Reply, Refusal> {
    let note = args.note.unwrap_or_default();
    let chars = note.chars().count();
    if chars > limits::NOTE_CHARS {
        let message = format!("it may have at most {} characters; it has {chars}", limits::NOTE_CHARS);
        return Err(Refusal::field("note", message));
    }
    let Some(agent) = &tools.agent else {
        let why =
            "this factory does not take checkpoints on demand; it saves the work every few minutes by itself";
        return Err(Refusal::new(why));
    };
    let saved = agent.checkpoint(note).await.map_err(|error| Refusal::new(error.to_string()))?;
    Ok(Reply::facts(match saved {
        Saved::Saved { commit } => json!({"saved": true, "commit": commit}),
        Saved::NothingNew => {
            json!({"saved": false, "reason": "nothing has changed since the last checkpoint"})
        }
    }))
}
