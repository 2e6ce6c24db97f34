//! opencode. It serves many providers, so "signed in" means that it can name a model.
//!
//! Never told to approve everything by itself: what its own settings leave to a person is refused, and the log says so.

use std::ffi::OsString;
use std::path::Path;

use super::{Call, Recipe, SignIn, arguments, configured, program, variables};
use crate::engines::config::{EventFormat, ProgramConfig};
use crate::engines::engine::EngineFailure;
use crate::engines::process::Probe;

#[derive(Debug)]
pub(in crate::engines) struct Opencode(pub(in crate::engines) ProgramConfig);

impl Recipe for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn program(&self) -> &Path {
        program("opencode", &self.0)
    }

    fn format(&self) -> EventFormat {
        EventFormat::Opencode
    }

    fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    fn variables(&self) -> Vec<&str> {
        let usual = [
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_API_KEY",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "GEMINI_API_KEY",
        ];
        variables(&usual, &self.0)
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["run", "--format", "json"]);
        args.extend(call.session.into_iter().flat_map(|id| arguments(["-s", id])));
        args.extend(configured(&self.0, "-m"));
        args.extend(call.prompt.into_iter().flat_map(|prompt| arguments(["--", prompt])));
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Ask {
            args: arguments(["models"]),
            is_signed_in: |answer: &Probe| answer.succeeded && answer.stdout.contains('/'),
            remedy: "run `opencode auth login`, or set a provider's key for the factory".to_owned(),
        }
    }

    fn how_to_install(&self) -> String {
        "install opencode: npm install -g opencode-ai".to_owned()
    }
}
