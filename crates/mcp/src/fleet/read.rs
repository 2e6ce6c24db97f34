//! Reading what a run left: its log, its diff, its files. Piece by piece.

use giga_api::client::RawCall;
use giga_domain::ArtifactId;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{Caller, JobArg, OneJob};
use crate::api::ask;
use crate::reply::{Refusal, Reply};
use crate::tool::{Effect, Entry};

/// Bytes in one answer.
const PIECE: u64 = 16 * 1024;
const MOST: u64 = 32 * 1024;

/// What a factory calls the changes of a run.
const DIFF: &str = "changes.diff";

pub(super) fn tools() -> Vec<Entry<Caller>> {
    vec![
        Entry::new(
            "read_log",
            "Read the log of a run",
            Effect::Reads,
            "A piece of the log of a run: its end if no offset is given, the newest run if no epoch is. `nextOffset` in the \
             answer goes into `offset` for what follows; `complete` says that the run is over and this is its end.",
            |api: Caller, args: LogArgs| async move { log(&api, args).await },
        ),
        Entry::new(
            "read_diff",
            "Read the changes of a job",
            Effect::Reads,
            "A piece of the diff of the job's result, or of the run with the given epoch. The answer names the commit and the \
             epoch that it belongs to, which review_job takes, and says in `unseen` what the diff does not show.",
            |api: Caller, args: DiffArgs| async move { diff(&api, args).await },
        ),
        Entry::new(
            "list_artifacts",
            "List the files of a job",
            Effect::Reads,
            "The files that all runs of a job left, with their ids, sizes and epochs.",
            |api: Caller, args: OneJob| async move {
                Ok(Reply::facts(
                    ask(&*api, RawCall::get(&["jobs", args.job_id.as_str(), "artifacts"])).await?,
                ))
            },
        ),
        Entry::new(
            "read_artifact",
            "Read a file of a job",
            Effect::Reads,
            "A piece of a text file that a run left, by the id from list_artifacts.",
            |api: Caller, args: FileArgs| async move {
                let (offset, length) = (args.offset.unwrap_or(0), checked(args.length)?);
                let Piece { text, next, is_last } = piece(&api, &args.artifact_id.0, offset, length).await?;
                let facts = json!({"artifactId": args.artifact_id.0, "offset": offset, "nextOffset": next, "complete": is_last});
                Ok(Reply::with_text(facts, text))
            },
        ),
    ]
}

/// The most that an answer may hold is less than what the API would send.
fn checked(length: Option<u64>) -> Result<u64, Refusal> {
    match length {
        Some(length) if length == 0 || length > MOST => {
            Err(Refusal::field("length", format!("it must be from 1 to {MOST}; it is {length}")))
        }
        length => Ok(length.unwrap_or(PIECE)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LogArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    /// The run, by its lease epoch; the newest if left out.
    epoch: Option<u64>,
    /// Where to begin, in bytes; the end of the log if left out.
    offset: Option<u64>,
    /// How many bytes at most; 16384 if left out.
    #[schemars(range(min = 1, max = MOST))]
    length: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DiffArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    /// Another run than that of the result, by its lease epoch.
    epoch: Option<u64>,
    /// Where to begin, in bytes; the beginning if left out.
    offset: Option<u64>,
    /// How many bytes at most; 16384 if left out.
    #[schemars(range(min = 1, max = MOST))]
    length: Option<u64>,
}

#[derive(Debug, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
struct ArtifactArg(#[schemars(regex(pattern = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"))] String);

impl<'de> Deserialize<'de> for ArtifactArg {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<ArtifactId>() {
            Ok(_) => Ok(Self(text)),
            Err(error) => Err(serde::de::Error::custom(format!("{error}; list_artifacts has the ids"))),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileArgs {
    /// The file's id, from list_artifacts.
    artifact_id: ArtifactArg,
    /// Where to begin, in bytes; the beginning if left out.
    offset: Option<u64>,
    /// How many bytes at most; 16384 if left out.
    #[schemars(range(min = 1, max = MOST))]
    length: Option<u64>,
}

async fn log(api: &Caller, args: LogArgs) -> Result<Reply, Refusal> {
    let length = checked(args.length)?;
    let read = async |offset: u64| {
        let call = RawCall::get(&["jobs", args.job_id.as_str(), "logs"])
            .query("epoch", args.epoch)
            .query("offset", Some(offset));
        ask(&**api, call).await
    };
    let offset = if let Some(offset) = args.offset {
        offset
    } else {
        // Past every log there can be: answered with how long this one is.
        let total = read(giga_domain::limits::LOG_BYTES).await?["total"].as_u64().unwrap_or(0);
        total.saturating_sub(length)
    };
    let mut log = read(offset).await?;
    let text = log["text"].take();
    let text = text.as_str().unwrap_or_default();
    let kept = &text[..text.floor_char_boundary(usize::try_from(length).unwrap_or(usize::MAX))];
    if kept.len() < text.len() {
        let begin = log["offset"].as_u64().unwrap_or(offset);
        log["nextOffset"] = json!(begin + kept.len() as u64);
        log["complete"] = json!(false);
    }
    if let Some(facts) = log.as_object_mut() {
        facts.remove("text");
    }
    Ok(Reply::with_text(log, kept.to_owned()))
}

async fn diff(api: &Caller, args: DiffArgs) -> Result<Reply, Refusal> {
    let (offset, length) = (args.offset.unwrap_or(0), checked(args.length)?);
    let id = args.job_id.as_str();
    let job = ask(&**api, RawCall::get(&["jobs", id])).await?;
    let result = &job["result"];
    let Some(epoch) = args.epoch.or_else(|| result["leaseEpoch"].as_u64()) else {
        let stage = job["stage"].as_str().unwrap_or_default();
        return Err(Refusal::new(format!(
            "job {id} has no result yet: it is at stage `{stage}`. explain_job says what it waits for, read_log what it does"
        )));
    };
    let files = ask(&**api, RawCall::get(&["jobs", id, "artifacts"])).await?;
    let is_diff = |file: &&Value| file["name"] == DIFF && file["leaseEpoch"] == json!(epoch);
    let Some(file) = files["artifacts"].as_array().and_then(|files| files.iter().find(is_diff)) else {
        return Err(Refusal::field(
            "epoch",
            format!("the run with epoch {epoch} left no diff; show_job lists the runs"),
        ));
    };
    let size = file["size"].as_u64().unwrap_or(0);
    let is_result = result["leaseEpoch"] == json!(epoch);
    let file_id = file["id"].as_str().unwrap_or_default();
    let piece = if offset < size {
        piece(api, file_id, offset, length).await?
    } else {
        Piece { text: String::new(), next: size, is_last: true }
    };
    let mut facts = json!({
        "jobId": id,
        "leaseEpoch": epoch,
        "isResult": is_result,
        "size": size,
        "offset": offset,
        "nextOffset": piece.next,
        "rev": job["rev"],
    });
    for name in ["commit", "unseen"].into_iter().filter(|_| is_result) {
        if !result[name].is_null() {
            facts[name] = result[name].clone();
        }
    }
    Ok(Reply::with_text(facts, piece.text))
}

struct Piece {
    text: String,
    /// Where the next one begins.
    next: u64,
    is_last: bool,
}

/// Bytes as text, cut between characters; what is no text is shown as such.
async fn piece(api: &Caller, artifact: &str, offset: u64, length: u64) -> Result<Piece, Refusal> {
    let range = format!("bytes={offset}-{}", offset.saturating_add(length - 1));
    let call = RawCall::get(&["artifacts", artifact]).header("range", Some(range));
    let mut bytes = api.call(call).await?;
    let is_last = (bytes.len() as u64) < length;
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
        && !is_last
    {
        bytes.truncate(error.valid_up_to());
    }
    let next = offset + bytes.len() as u64;
    Ok(Piece { text: String::from_utf8_lossy(&bytes).into_owned(), next, is_last })
}
