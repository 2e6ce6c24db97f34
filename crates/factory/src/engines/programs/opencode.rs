//! opencode. It serves many providers, so "signed in" means that it can name a model.
//!
//! Never told to approve everything by itself: what its own settings leave to a person is refused, and the log says so.

mod events;

use std::ffi::OsString;

use serde_json::Value;

use super::{Call, Cli, SignIn, arguments};
use crate::engines::config::ProgramConfig;
use crate::engines::engine::EngineFailure;
use crate::engines::events::LineEvent;
use crate::engines::process::Probe;
use crate::sandbox::HomeFile;

pub(super) struct Opencode;

impl Cli for Opencode {
    fn variables(&self) -> &[&'static str] {
        &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_API_KEY",
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
                kept: &["storage"],
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

    fn shut_variables(&self) -> &[(&'static str, &'static str)] {
        &[("OPENCODE_DISABLE_PROJECT_CONFIG", "1")]
    }

    fn instruction_files(&self) -> &[&'static str] {
        &["AGENTS.md"]
    }

    fn args(&self, call: &Call<'_>, config: &ProgramConfig) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["run", "--format", "json"]);
        args.extend(call.session.into_iter().flat_map(|id| arguments(["-s", id])));
        args.extend(config.options("-m"));
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Ask {
            args: arguments(["models"]),
            is_signed_in: |answer: &Probe| answer.succeeded && answer.stdout.contains('/'),
            remedy: "run `opencode auth login`, or set a provider's key for the factory".to_owned(),
        }
    }

    fn how_to_install(&self) -> &'static str {
        "install opencode: npm install -g opencode-ai"
    }

    fn read(&self, event: &Value) -> Vec<LineEvent> {
        events::read(event)
    }
}
