//! Codex. Its own sandbox lets it write in the work tree and nowhere else.
//!
//! The sandbox and the folder are options of `exec` and must stand before `resume`, which does not take them.

use std::ffi::OsString;
use std::path::Path;

use super::{Call, Recipe, SignIn, arguments, configured, program, variables};
use crate::engines::config::{EventFormat, ProgramConfig};
use crate::engines::engine::EngineFailure;
use crate::engines::process::Probe;

#[derive(Debug)]
pub(in crate::engines) struct Codex(pub(in crate::engines) ProgramConfig);

impl Recipe for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn program(&self) -> &Path {
        program("codex", &self.0)
    }

    fn format(&self) -> EventFormat {
        EventFormat::Codex
    }

    /// Its events do not name it.
    fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    fn variables(&self) -> Vec<&str> {
        variables(&["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"], &self.0)
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let mut args = arguments(["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-C"]);
        args.push(call.request.dir.clone().into());
        args.extend(configured(&self.0, "-m"));
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

    fn how_to_install(&self) -> String {
        "install Codex: npm install -g @openai/codex".to_owned()
    }
}
