//! The manifest's script, for jobs that need no account.
//!
//! The script is a file that `sh` reads: nothing of the job is ever part of a command line. It finds the job's text in
//! the file that GIGA_PROMPT_FILE names, and the reviews of an earlier run in the one that GIGA_REVIEW_COMMENTS
//! names.

use std::ffi::OsString;
use std::path::Path;

use giga_domain::FailReason;

use super::{Call, Reads, Recipe, no_scratch, write_private};
use crate::engines::config::EventFormat;
use crate::engines::engine::EngineFailure;

#[derive(Debug)]
pub(in crate::engines) struct Shell;

impl Recipe for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn program(&self) -> &Path {
        Path::new("sh")
    }

    fn format(&self) -> EventFormat {
        EventFormat::Text
    }

    fn variables(&self) -> Vec<&str> {
        Vec::new()
    }

    fn reads(&self) -> Reads {
        Reads::JobTextOnly
    }

    fn has_account(&self) -> bool {
        false
    }

    fn args(&self, call: &Call<'_>) -> Result<Vec<OsString>, EngineFailure> {
        let Some(script) = &call.request.script else {
            let detail = "the shell engine needs a `script` in the manifest";
            return Err(EngineFailure::lasting(FailReason::CapabilityMismatch, detail));
        };
        let file = call.scratch.join("script.sh");
        write_private(&file, script).map_err(|error| no_scratch(&error))?;
        Ok(vec!["-eu".into(), file.into()])
    }

    fn version_args(&self) -> Option<Vec<OsString>> {
        Some(vec!["-c".into(), ":".into()])
    }

    fn how_to_install(&self) -> String {
        "put a POSIX `sh` on the factory's PATH".to_owned()
    }
}
