//! Gemini CLI. It has no question about the account, so the preflight looks for what a sign-in leaves.
//!
//! Like Claude Code it may edit by default and not run commands; the job's `permissions` may say otherwise. The work tree is the factory's own, which is why its
//! question whether to trust the folder is skipped. Even so it obeys no `.gemini/settings.json` in a folder that nobody trusted
//! (seen with 0.61), but it takes variables from a `.env` there.

mod events;

use std::ffi::OsString;
use std::path::Path;

use giga_domain::Permissions;
use serde_json::Value;

use super::{Call, Cli, SignIn, arguments};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::{HostEnvironment, JournalFiles};
use crate::sandbox::HomeFile;

const KEYS: [&str; 3] = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];

const ADDRESSES: [&str; 2] = ["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"];

pub(super) struct Gemini;

impl Cli for Gemini {
    fn variables(&self) -> &[&'static str] {
        &[
            KEYS[0],
            KEYS[1],
            KEYS[2],
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_GENAI_USE_VERTEXAI",
            ADDRESSES[0],
            ADDRESSES[1],
        ]
    }

    fn home_files(&self) -> &'static [HomeFile] {
        &[HomeFile {
            folder: ".gemini",
            variable: None,
            copied: &["oauth_creds.json", "google_accounts.json", "installation_id", "settings.json"],
            kept: &["tmp"],
        }]
    }

    fn file_variables(&self) -> &[&'static str] {
        &[KEYS[2]]
    }

    fn hosts(&self) -> &[&'static str] {
        &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "aiplatform.googleapis.com",
        ]
    }

    fn address_variables(&self) -> &[&'static str] {
        &ADDRESSES
    }

    /// A `.env` of the repository sets what is not set, and one that is empty counts as set.
    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        &[
            (ADDRESSES[0], ""),
            (ADDRESSES[1], ""),
            ("CODE_ASSIST_ENDPOINT", ""),
            ("HTTP_PROXY", ""),
            ("HTTPS_PROXY", ""),
            ("http_proxy", ""),
            ("https_proxy", ""),
            ("GEMINI_SANDBOX", ""),
            ("NODE_TLS_REJECT_UNAUTHORIZED", ""),
        ]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["-o", "stream-json"]);
        args.extend(permissions(call.request.permissions).iter().map(OsString::from));
        args.extend(arguments(["--skip-trust"]));
        // Written with `=`, so that nothing in the value can be taken for an option.
        args.extend(call.session.map(|id| OsString::from(format!("--resume={id}"))));
        args.extend(config.options("-m"));
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Look {
            is_signed_in,
            remedy: "start `gemini` once and sign in, or set GEMINI_API_KEY for the factory".to_owned(),
        }
    }

    fn how_to_install(&self) -> &'static str {
        "install Gemini CLI: npm install -g @google/gemini-cli"
    }

    fn read(&self, event: &Value) -> Vec<LineEvent> {
        events::read(event)
    }

    /// `tmp/<project>/chats/session-<time>-<beginning of the session>.jsonl`
    fn journal(&self) -> Option<JournalFiles> {
        Some(JournalFiles {
            folder: ".gemini",
            variable: None,
            kept: "tmp",
            depth: 2,
            prefix: "session-",
            named_by: 8,
        })
    }

    /// Named by the minute, and emptied before it is read (0.61): a session would be lost to a run within the minute in which
    /// it was begun.
    fn loads_over_its_journal(&self) -> bool {
        true
    }

    fn read_journal(&self, entry: &Value) -> Vec<LineEvent> {
        events::read_journal(entry)
    }

    fn exit_failure(&self, code: i32) -> Option<EngineFailure> {
        events::exit_failure(code)
    }
}

/// What it does without asking. Nobody sits there, so the rest is refused.
const fn permissions(allowed: Option<Permissions>) -> &'static [&'static str] {
    match allowed {
        Some(Permissions::Ask) => &["--approval-mode", "default"],
        None | Some(Permissions::Edit) => &["--approval-mode", "auto_edit"],
        // Written with `=`: it takes as many words as follow.
        Some(Permissions::Commands) => &["--approval-mode", "auto_edit", "--allowed-tools=run_shell_command"],
        Some(Permissions::All) => &["--approval-mode", "yolo"],
    }
}

/// As 0.61 goes about it: by what its settings select, otherwise by its variables. A key that it would not use is none.
fn is_signed_in(host: &HostEnvironment) -> Result<(), String> {
    let home = host.get("HOME").map(|home| Path::new(home).join(".gemini"));
    let read = |name: &str| std::fs::read_to_string(home.as_ref()?.join(name)).ok();
    let settings: Value =
        read("settings.json").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let selected = settings.pointer("/security/auth/selectedType").and_then(Value::as_str);
    let is_set = |name: &str| host.get(name).is_some();
    let is_true = |name: &str| host.get(name).is_some_and(|value| value == "true");
    let by_variables = if is_true("GOOGLE_GENAI_USE_VERTEXAI") {
        Some("vertex-ai")
    } else if is_set(ADDRESSES[0]) {
        Some("gateway")
    } else if is_set(KEYS[0]) {
        Some("gemini-api-key")
    } else {
        None
    };
    let missing = |what: &str| Err(what.to_owned());
    match selected.or(by_variables) {
        Some("gemini-api-key") if is_set(KEYS[0]) => Ok(()),
        Some("gemini-api-key") => {
            missing("its settings ask for GEMINI_API_KEY, which is not set for the factory")
        }
        Some("vertex-ai") if is_set(KEYS[1]) => Ok(()),
        Some("vertex-ai") if is_set("GOOGLE_CLOUD_PROJECT") && is_set("GOOGLE_CLOUD_LOCATION") => Ok(()),
        Some("vertex-ai") => {
            missing("Vertex AI takes GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION")
        }
        Some("oauth-personal") if home.is_some_and(|home| home.join("oauth_creds.json").is_file()) => Ok(()),
        Some("oauth-personal") => missing("its settings ask for a Google account, and nobody signed in"),
        Some("gateway") => missing(
            "with GOOGLE_GEMINI_BASE_URL it wants `security.auth.selectedType` in ~/.gemini/settings.json",
        ),
        Some("compute-default-credentials") => Ok(()),
        Some(other) => Err(format!("it does not know the sign-in `{other}` that its settings select")),
        None if is_set(KEYS[1]) => {
            missing("it takes GOOGLE_API_KEY only with GOOGLE_GENAI_USE_VERTEXAI=true")
        }
        None => missing("nothing says which account to use"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(settings: Option<&str>, variables: &[(&str, &str)]) -> Result<(), String> {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".gemini")).unwrap();
        if let Some(settings) = settings {
            std::fs::write(home.path().join(".gemini/settings.json"), settings).unwrap();
        }
        let home = home.path().display().to_string();
        is_signed_in(&variables.iter().copied().chain([("HOME", home.as_str())]).collect())
    }

    #[test]
    fn only_what_the_program_takes_signs_in() {
        const BY_KEY: &str = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#;
        assert_eq!(found(None, &[("GEMINI_API_KEY", "k")]), Ok(()));
        assert!(found(None, &[("GOOGLE_API_KEY", "k")]).unwrap_err().contains("USE_VERTEXAI"));
        assert_eq!(found(None, &[("GOOGLE_API_KEY", "k"), ("GOOGLE_GENAI_USE_VERTEXAI", "true")]), Ok(()));
        assert!(found(None, &[("GOOGLE_APPLICATION_CREDENTIALS", "/x")]).is_err());
        assert!(found(Some(BY_KEY), &[]).is_err());
        let gateway = [("GEMINI_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", "http://x")];
        assert!(found(None, &gateway).unwrap_err().contains("selectedType"));
        assert_eq!(found(Some(BY_KEY), &gateway), Ok(()));
        assert!(found(Some(r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#), &[]).is_err());
    }
}
