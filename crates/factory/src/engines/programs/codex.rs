//! Codex. Its own sandbox lets it write in the work tree and nowhere else.
//!
//! The sandbox and the folder are options of `exec` and must stand before `resume`, which does not take them.

mod events;

use std::ffi::OsString;

use serde_json::Value;

use super::{Call, Cli, SignIn, arguments};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::Probe;
use crate::sandbox::HomeFile;

pub(super) struct Codex;

impl Cli for Codex {
    fn variables(&self) -> &[&'static str] {
        &["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"]
    }

    fn home_files(&self) -> &'static [HomeFile] {
        &[HomeFile {
            folder: ".codex",
            variable: Some(("CODEX_HOME", "")),
            copied: &["auth.json", "config.toml"],
            kept: &["sessions"],
        }]
    }

    fn hosts(&self) -> &[&'static str] {
        &["api.openai.com", "auth.openai.com", "chatgpt.com"]
    }

    fn address_variables(&self) -> &[&'static str] {
        &["OPENAI_BASE_URL"]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-C"]);
        args.push(call.request.dir.clone().into());
        args.extend(config.options("-m"));
        if call.session.is_some() {
            args.push("resume".into());
        }
        args.push("--".into());
        args.extend(call.session.map(OsString::from));
        // A lone dash stands for standard input.
        args.push(call.prompt.unwrap_or("-").into());
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Ask {
            args: arguments(["login", "status"]),
            is_signed_in: |answer: &Probe| answer.succeeded,
            remedy: "run `codex login`, or `codex login --with-api-key`".to_owned(),
        }
    }

    fn how_to_install(&self) -> &'static str {
        "install Codex: npm install -g @openai/codex"
    }

    fn read(&self, event: &Value) -> Vec<LineEvent> {
        events::read(event)
    }
}
