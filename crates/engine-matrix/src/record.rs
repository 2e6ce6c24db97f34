//! Keeps what an engine printed, so that the ordinary tests can replay it without the engine.

use std::path::{Path, PathBuf};

use anyhow::Result;
use giga_factory::engines::{EngineEvent, Program, Stream};

use crate::behaviour::Behaviour;
use crate::bench::{Ran, Trial, put};

/// One cell's, or nobody's.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: Option<PathBuf>,
}

impl Recorder {
    pub(crate) fn new(folder: Option<&Path>, engine: Program, behaviour: Behaviour) -> Self {
        Self { file: folder.map(|folder| folder.join(format!("real-{engine}-{behaviour}.jsonl"))) }
    }

    /// Standard output as it was, but for the paths of this machine; standard error beside it, where there was any.
    pub(crate) fn keep(&self, trial: &Trial, ran: &Ran) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let here = trial.path("").display().to_string();
        let here = here.trim_end_matches('/');
        let printed = |which: Stream| -> String {
            let lines = ran.events.iter().filter_map(|event| match event {
                EngineEvent::Output { stream, line } if *stream == which => Some(line.replace(here, "/job")),
                _ => None,
            });
            // Claude Code writes paths with dashes, too.
            lines.map(|line| line.replace(&here.replace(['/', '.'], "-"), "-job") + "\n").collect()
        };
        put(file, &printed(Stream::Stdout))?;
        let errors = printed(Stream::Stderr);
        if errors.is_empty() { Ok(()) } else { put(&file.with_extension("stderr"), &errors) }
    }
}
