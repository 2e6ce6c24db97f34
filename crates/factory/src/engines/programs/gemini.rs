//! Gemini CLI. It has no question about the account, so the preflight looks for what a sign-in leaves.
//!
//! Like Claude Code it may edit by default and not run commands. The work tree is the factory's own, which is why its
//! question whether to trust the folder is skipped.

use std::ffi::OsString;
use std::path::Path;

use super::{Call, Recipe, SignIn, arguments, configured, program, variables};
use crate::engines::config::{EventFormat, ProgramConfig};
use crate::engines::engine::EngineFailure;
use crate::engines::process::HostEnvironment;

const KEYS: [&str; 3] = ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"];

#[derive(Debug)]
pub(in crate::engines) struct Gemini(pub(in crate::engines) ProgramConfig);

impl Recipe for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn program(&self) -> &Path {
        program("gemini", &self.0)
    }

    fn format(&self) -> EventFormat {
        EventFormat::Gemini
    }

    fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    fn variables(&self) -> Vec<&str> {
        let [gemini, google, credentials] = KEYS;
        let usual = [
            gemini,
            google,
            credentials,
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ];
        variables(&usual, &self.0)
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["-o", "stream-json", "--approval-mode", "auto_edit", "--skip-trust"]);
        // Written with `=`, so that nothing in the value can be taken for an option.
        args.extend(call.session.map(|id| OsString::from(format!("--resume={id}"))));
        args.extend(configured(&self.0, "-m"));
        args.extend(call.prompt.map(|prompt| OsString::from(format!("--prompt={prompt}"))));
        Ok(args)
    }

    fn sign_in(&self) -> SignIn {
        SignIn::Look {
            is_signed_in,
            remedy: "start `gemini` once and sign in, or set GEMINI_API_KEY for the factory".to_owned(),
        }
    }

    fn how_to_install(&self) -> String {
        "install Gemini CLI: npm install -g @google/gemini-cli".to_owned()
    }
}

fn is_signed_in(host: &HostEnvironment) -> bool {
    let by_key = KEYS.iter().any(|name| host.get(name).is_some());
    let by_browser = host.get("HOME").map(|home| Path::new(home).join(".gemini/oauth_creds.json"));
    by_key || by_browser.is_some_and(|file| file.is_file())
}
