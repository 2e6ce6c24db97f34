//! opencode. It serves many providers, so "signed in" means that it can name a model that needs an account: those that its
//! makers host for everybody do not count, because nobody agreed to send them code.
//!
//! Like Claude Code it may edit by default and not run commands, and nothing is left to a person: a question that nobody
//! answers would end its run. The job's `permissions` may say otherwise; whoever wants more for all jobs sets
//! `OPENCODE_PERMISSION` for the factory.

mod events;
mod stored;

use std::ffi::OsString;

use giga_domain::{Permissions, Timestamp};
use serde_json::Value;

use super::{Call, Cli, SignIn, arguments};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::Probe;
use crate::sandbox::HomeFile;

const SESSIONS: &str = "sessions";

/// What it does without asking, and that it does nothing else.
const PERMISSION: (&str, &str) = (
    "OPENCODE_PERMISSION",
    r#"{"edit":"allow","bash":"deny","external_directory":"deny","doom_loop":"deny","question":"deny"}"#,
);

const NO_EDITS: (&str, &str) = (
    PERMISSION.0,
    r#"{"edit":"deny","bash":"deny","webfetch":"deny","websearch":"deny","external_directory":"deny","doom_loop":"deny","question":"deny"}"#,
);
const COMMANDS: (&str, &str) = (
    PERMISSION.0,
    r#"{"edit":"allow","bash":"allow","external_directory":"deny","doom_loop":"deny","question":"deny"}"#,
);
const EVERYTHING: (&str, &str) = (PERMISSION.0, r#"{"*":"allow","doom_loop":"deny","question":"deny"}"#);

pub(super) struct Opencode;

impl Cli for Opencode {
    fn variables(&self) -> &[&'static str] {
        &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_API_KEY",
            PERMISSION.0,
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "GEMINI_API_KEY",
        ]
    }

    fn home_files(&self) -> &'static [HomeFile] {
        &[
            HomeFile {
                folder: ".local/share/opencode",
                variable: Some(("XDG_DATA_HOME", "opencode")),
                copied: &["auth.json"],
                kept: &[SESSIONS],
            },
            HomeFile {
                folder: ".config/opencode",
                variable: Some(("XDG_CONFIG_HOME", "opencode")),
                copied: &["opencode.json", "opencode.jsonc"],
                kept: &[],
            },
        ]
    }

    fn file_variables(&self) -> &[&'static str] {
        &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"]
    }

    fn hosts(&self) -> &[&'static str] {
        &[
            "opencode.ai",
            "models.dev",
            "api.anthropic.com",
            "api.openai.com",
            "openrouter.ai",
            "generativelanguage.googleapis.com",
        ]
    }

    /// It serves many providers.
    fn main_host(&self) -> Option<&'static str> {
        None
    }

    /// These keep it from the settings of a repository, and not from its plugins (seen with 1.18.33).
    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        &[("OPENCODE_DISABLE_PROJECT_CONFIG", "1"), ("OPENCODE_PURE", "1")]
    }

    fn covered_folders(&self) -> &[&'static str] {
        &[".opencode"]
    }

    fn own_variables(&self) -> &[(&'static str, &'static str)] {
        &[PERMISSION]
    }

    fn permission_variables(&self, allowed: Permissions) -> &[(&'static str, &'static str)] {
        match allowed {
            Permissions::Ask => &[NO_EDITS],
            Permissions::Edit => &[PERMISSION],
            Permissions::Commands => &[COMMANDS],
            Permissions::All => &[EVERYTHING],
        }
    }

    /// Its sessions are in one file, which lies among others: here in a folder that can be kept.
    fn sandbox_variables(&self) -> &[(&'static str, &'static str)] {
        &[("OPENCODE_DB", "sessions/opencode.db")]
    }

    fn instruction_files(&self) -> &[&'static str] {
        &["AGENTS.md"]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["run", "--format", "json"]);
        // Where it waits for a provider it prints nothing else, and it waits for ever.
        args.extend(arguments(["--print-logs", "--log-level", "ERROR"]));
        match call.session {
            Some(id) => args.extend(arguments(["-s", id])),
            // It would ask the model for a title, and count that nowhere.
            None => args.extend(arguments(["--title", "giga"])),
        }
        args.extend(config.options("-m"));
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Ask {
            args: arguments(["models"]),
            is_signed_in: |answer: &Probe| answer.succeeded && names_an_account(&answer.stdout),
            remedy: "run `opencode auth login`, or set a provider's key for the factory".to_owned(),
        }
    }

    fn how_to_install(&self) -> &'static str {
        "install opencode: npm install -g opencode-ai"
    }

    fn read(&self, event: &Value) -> Vec<LineEvent> {
        events::read(event)
    }

    fn ask_for_usage(&self, session: &str, since: Timestamp) -> Option<Vec<OsString>> {
        Some(stored::question(session, since))
    }

    fn read_usage(&self, answer: &str) -> Option<Vec<LineEvent>> {
        stored::read(answer)
    }

    fn read_stderr(&self, line: &str) -> Vec<LineEvent> {
        events::read_log(line)
    }

    fn shows_answers(&self) -> bool {
        true
    }
}

/// Of the models that it lists, `provider/model` each, those of `opencode` are there for everybody.
fn names_an_account(models: &str) -> bool {
    models.lines().any(|line| line.trim().split_once('/').is_some_and(|(provider, _)| provider != "opencode"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_for_everybody_is_no_account() {
        assert!(!names_an_account("opencode/big-pickle\nopencode/nemotron-3-ultra-free\n"));
        assert!(!names_an_account(""));
        assert!(names_an_account("opencode/big-pickle\nanthropic/claude-sonnet-4-5\n"));
        assert!(names_an_account("opencode-go/glm-5.1\n"), "only with a key");
    }

    #[test]
    fn its_permissions_can_be_read() {
        for (_, text) in [PERMISSION, NO_EDITS, COMMANDS, EVERYTHING] {
            serde_json::from_str::<Value>(text).unwrap();
        }
    }
}
