//! Submitting a job, for real and as a dry run.

use giga_api::client::RawCall;
use giga_domain::limits;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Caller;
use crate::api::ask;
use crate::manifest::ManifestFields;
use crate::reply::{Refusal, Reply};
use crate::tool::{Effect, Entry};

pub(super) fn tools() -> Vec<Entry<Caller>> {
    vec![
        Entry::new(
            "submit_job",
            "Submit a job",
            Effect::Adds,
            "Submit a coding job to the fleet. Give `manifest` (its fields) with `prompt` (what the engine is to do), or \
             `markdown` (both as one document with YAML front matter). The job is stored when this returns. With an \
             `idempotencyKey`, sending the same again gives the same job.",
            |api: Caller, args: SubmitArgs| async move {
                let call = args.call(&["jobs"])?.header("idempotency-key", args.idempotency_key.as_ref());
                let answer = ask(&*api, call.repeatable(args.idempotency_key.is_some())).await?;
                Ok(Reply::facts(super::look::submitted(&answer)))
            },
        ),
        Entry::new(
            "plan_job",
            "Plan a job",
            Effect::Reads,
            "What submit_job would do with the same arguments, without doing it: whether any factory could run the job, \
             where it would go, what it would wait for, what it could cost. Also checks the manifest.",
            |api: Caller, args: PlanArgs| async move {
                let PlanArgs { manifest, prompt, markdown } = args;
                let args = SubmitArgs { manifest, prompt, markdown, idempotency_key: None };
                let answer = ask(&*api, args.call(&["plan"])?.repeatable(true)).await?;
                Ok(Reply::facts(answer))
            },
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", inline)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SubmitArgs {
    pub(crate) manifest: Option<ManifestFields>,
    /// What the engine is to do, in Markdown; goes with `manifest`.
    #[schemars(length(max = limits::MANIFEST_BYTES))]
    pub(crate) prompt: Option<String>,
    /// A whole manifest: YAML front matter between two lines of `---`, then the prompt. Instead of `manifest` and `prompt`.
    #[schemars(length(min = 1, max = limits::MANIFEST_BYTES))]
    pub(crate) markdown: Option<String>,
    /// The same key and content give the same job, however often they are sent.
    #[schemars(length(min = 1, max = limits::IDEMPOTENCY_KEY_CHARS))]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlanArgs {
    manifest: Option<ManifestFields>,
    /// What the engine is to do, in Markdown; goes with `manifest`.
    #[schemars(length(max = limits::MANIFEST_BYTES))]
    prompt: Option<String>,
    /// A whole manifest: YAML front matter between two lines of `---`, then the prompt. Instead of `manifest` and `prompt`.
    #[schemars(length(min = 1, max = limits::MANIFEST_BYTES))]
    markdown: Option<String>,
}

impl SubmitArgs {
    fn call(&self, path: &[&str]) -> Result<RawCall, Refusal> {
        match (&self.manifest, &self.prompt, &self.markdown) {
            (Some(manifest), prompt, None) => {
                let body = prompt.as_deref().unwrap_or_default();
                Ok(RawCall::post(path).json(&json!({"manifest": manifest.0, "bodyMd": body})))
            }
            (None, None, Some(markdown)) => {
                Ok(RawCall::post(path).body("text/markdown", markdown.clone().into_bytes()))
            }
            _ => Err(either()),
        }
    }

    /// As one of several.
    pub(crate) fn item(self) -> Result<Value, Refusal> {
        let mut item = match (self.manifest, self.prompt, self.markdown) {
            (Some(manifest), prompt, None) => {
                json!({"manifest": manifest.0, "bodyMd": prompt.unwrap_or_default()})
            }
            (None, None, Some(markdown)) => json!({"markdown": markdown}),
            _ => return Err(either()),
        };
        if let Some(key) = self.idempotency_key {
            item["idempotencyKey"] = json!(key);
        }
        Ok(item)
    }
}

fn either() -> Refusal {
    Refusal::field(
        "manifest",
        "give `manifest` with `prompt`, or `markdown` alone, such as {\"manifest\": {\"name\": \"fix-greeting\", \
         \"repo\": \"hello\"}, \"prompt\": \"Fix the greeting.\"}",
    )
}
