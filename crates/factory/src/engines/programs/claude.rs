//! Claude Code.
//!
//! Edits are allowed by default and commands are not: the job's `permissions` may say otherwise, and whoever wants
//! more adds `--permission-mode` or `--allowedTools` to `extra-args`. Without the settings of a repository it does not read its CLAUDE.md either.

mod events;

use std::ffi::OsString;

use giga_domain::{FailReason, Permissions};
use serde_json::Value;

use super::{Call, Cli, Reads, SignIn, arguments};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::Probe;
use crate::sandbox::HomeFile;

pub(super) struct Claude;

impl Cli for Claude {
    fn variables(&self) -> &[&'static str] {
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
        ]
    }

    fn home_files(&self) -> &'static [HomeFile] {
        &[
            HomeFile {
                folder: ".claude",
                variable: Some(("CLAUDE_CONFIG_DIR", "")),
                copied: &[".credentials.json", "settings.json"],
                kept: &["projects"],
            },
            HomeFile { folder: "", variable: None, copied: &[".claude.json"], kept: &[] },
        ]
    }

    fn reads(&self) -> Reads {
        Reads::PersonaApart
    }

    fn hosts(&self) -> &[&'static str] {
        &["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"]
    }

    fn address_variables(&self) -> &[&'static str] {
        &["ANTHROPIC_BASE_URL"]
    }

    fn instruction_files(&self) -> &[&'static str] {
        &["CLAUDE.md", ".claude/CLAUDE.md"]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["-p", "--output-format", "stream-json", "--verbose"]);
        // What an answer costs is known when it begins, and that it goes on while it does.
        args.extend(arguments(["--include-partial-messages"]));
        args.extend(permissions(call.request.permissions).iter().map(OsString::from));
        if let Some(id) = call.session {
            args.extend(arguments(["--resume", id]));
        } else {
            args.extend(arguments(["--session-id", &new_session_id()?]));
        }
        if let Some(cap) = call.request.budget.usd {
            // It counts what the resumed session cost before.
            let before = call.session.and(call.request.usage_before.cost).unwrap_or_default();
            args.extend(arguments(["--max-budget-usd", &format!("{:#}", cap + before)]));
        }
        if !call.obeys_repository {
            args.extend(arguments(["--setting-sources", "user", "--strict-mcp-config"]));
        }
        args.extend(
            call.persona_file
                .into_iter()
                .flat_map(|file| ["--append-system-prompt-file".into(), file.into()]),
        );
        args.extend(config.options("--model"));
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Ask {
            args: arguments(["auth", "status"]),
            is_signed_in: |answer: &Probe| answer.succeeded && !answer.stdout.contains("\"loggedIn\": false"),
            remedy: "run `claude auth login`, or set ANTHROPIC_API_KEY for the factory".to_owned(),
        }
    }

    fn how_to_install(&self) -> &'static str {
        "install Claude Code: npm install -g @anthropic-ai/claude-code"
    }

    fn read(&self, event: &Value) -> Vec<LineEvent> {
        events::read(event)
    }

    fn is_progress(&self, event: &Value) -> bool {
        events::is_progress(event)
    }

    fn shows_answers(&self) -> bool {
        true
    }

    fn counts_as_it_goes(&self) -> bool {
        true
    }
}

/// What it does without asking. Nobody sits there, so the rest is refused; the mode that refuses nothing does not start as root.
const fn permissions(allowed: Option<Permissions>) -> &'static [&'static str] {
    match allowed {
        Some(Permissions::Ask) => &["--permission-mode", "default", "--disallowedTools", "Bash"],
        // Commands are not allowed here, but some that only write a file are let pass with the edits: a job that is told
        // what it may do has to be told so. Where nobody said anything, the operator's own options may allow them.
        None => &["--permission-mode", "acceptEdits"],
        Some(Permissions::Edit) => &["--permission-mode", "acceptEdits", "--disallowedTools", "Bash"],
        Some(Permissions::Commands) => &["--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
        Some(Permissions::All) => {
            &["--permission-mode", "acceptEdits", "--allowedTools", "Bash,WebFetch,WebSearch,Task"]
        }
    }
}

/// A random UUID, which is the only form that the program takes.
fn new_session_id() -> Result<String, EngineFailure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        EngineFailure::passing(FailReason::Infrastructure, format!("no randomness for a session id: {error}"))
    })?;
    let random = u128::from_be_bytes(bytes);
    let version_4 = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{version_4:032x}");
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
