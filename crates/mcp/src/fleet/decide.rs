//! What ends a wait, or a job. Each tool is one call, so that a client can ask its user about each by its name.

use giga_api::client::RawCall;
use giga_api::wire::{OperatorAction, ReviewVerdict};
use giga_domain::limits;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Caller, JobArg, Word};
use crate::api::ask;
use crate::reply::{Refusal, Reply};
use crate::tool::{Effect, Entry};

pub(super) fn tools() -> Vec<Entry<Caller>> {
    vec![
        Entry::new(
            "review_job",
            "Review a job",
            Effect::Decides,
            "A verdict on a job in review, signed with the label of the token: `approve`, `request_changes` (the job runs again \
             with the comment) or `reject`. Read the diff first, and give its commit and leaseEpoch: the review is refused \
             where the job has another result by now.",
            |api: Caller, args: ReviewArgs| async move {
                let request = json!({
                    "verdict": args.verdict.0,
                    "comment": args.comment,
                    "leaseEpoch": args.lease_epoch,
                    "commit": args.commit,
                    "acknowledgeUnseen": args.acknowledge_unseen,
                });
                let call = RawCall::post(&["jobs", args.job_id.as_str(), "review"]).json(&request);
                Ok(Reply::facts(super::look::brief(&ask(&*api, call).await?)))
            },
        ),
        Entry::new(
            "ship_job",
            "Ship a job",
            Effect::Decides,
            "Approve the result of a job that is ready to ship for its target branch. It is merged as it stands, which cannot \
             be taken back.",
            |api: Caller, args: ActArgs| async move { act(&api, OperatorAction::Ship, args).await },
        ),
        Entry::new(
            "requeue_job",
            "Requeue a job",
            Effect::AddsOnce,
            "Run a failed job again, from its last checkpoint.",
            |api: Caller, args: ActArgs| async move { act(&api, OperatorAction::Requeue, args).await },
        ),
        Entry::new(
            "cancel_job",
            "Cancel a job",
            Effect::Decides,
            "End a job for good, wherever it is. What it did so far is not merged.",
            |api: Caller, args: ActArgs| async move { act(&api, OperatorAction::Cancel, args).await },
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReviewArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    verdict: Word<ReviewVerdict>,
    /// Needed for `request_changes` and `reject`: what should change, or why.
    #[schemars(length(max = limits::REASON_CHARS))]
    comment: Option<String>,
    /// Of the result that was looked at, from read_diff.
    lease_epoch: u64,
    /// The commit that was looked at, from read_diff; left out where the result has none.
    #[schemars(length(max = limits::COMMIT_CHARS))]
    commit: Option<String>,
    /// Needed for an approval where the diff does not show everything (`unseen` in read_diff).
    #[serde(default)]
    acknowledge_unseen: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActArgs {
    /// The job's id, of 26 characters.
    job_id: JobArg,
    /// Why, for the history.
    #[schemars(length(max = limits::REASON_CHARS))]
    reason: Option<String>,
    /// Only if the job is still at this revision (`rev` in show_job).
    rev: Option<u64>,
}

async fn act(api: &Caller, action: OperatorAction, args: ActArgs) -> Result<Reply, Refusal> {
    let call = RawCall::post(&["jobs", args.job_id.as_str(), "actions", action.as_str()])
        .json(&json!({"reason": args.reason}))
        .header("if-match", args.rev.map(|rev| format!("\"rev-{rev}\"")));
    Ok(Reply::facts(super::look::brief(&ask(&**api, call).await?)))
}
