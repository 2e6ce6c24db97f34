//! Gemini CLI. It has no question about the account, so the preflight looks for what a sign-in leaves.
//!
//! Like Claude Code it may edit by default and not run commands. The work tree is the factory's own, which is why its
//! question whether to trust the folder is skipped. Even so it obeys no `.gemini/settings.json` in a folder that nobody trusted
//! (seen with 0.61), but it takes variables from a `.env` there.

mod events;

use std::ffi::OsString;
use std::path::Path;

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
        let mut args = arguments(["-o", "stream-json", "--approval-mode", "auto_edit", "--skip-trust"]);
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

    fn read_journal(&self, entry: &Value) -> Vec<LineEvent> {
        events::read_journal(entry)
    }

    fn exit_failure(&self, code: i32) -> Option<EngineFailure> {
        events::exit_failure(code)
    }
}

fn is_signed_in(host: &HostEnvironment) -> bool {
    let by_key = KEYS.iter().any(|name| host.get(name).is_some());
    let by_browser = host.get("HOME").map(|home| Path::new(home).join(".gemini/oauth_creds.json"));
    by_key || by_browser.is_some_and(|file| file.is_file())
}
