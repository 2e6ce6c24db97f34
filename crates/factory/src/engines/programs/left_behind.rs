//! What a run used that ended with its agent: read from what the program keeps of its session, once nothing of the run lives.
//!
//! Never guesses: where the session is not to be found, the answer is that nobody knows. Only what the session has since the
//! run began counts, so that a session that was resumed is not paid for twice. The answer that the model was in the middle of is
//! in no session, and costs nothing here.

use giga_domain::Timestamp;
use serde_json::Value;

use super::{ProgramEngine, is_session_id, preflight};
use crate::engines::engine::{LeftRun, Usage};
use crate::engines::events::{Tally, text};
use crate::engines::process;

impl ProgramEngine {
    pub(super) async fn used_by_left(&self, run: &LeftRun) -> Option<Usage> {
        if !is_session_id(&run.session) {
            return None;
        }
        let model = self.recipe.model().map(str::to_owned);
        let tally = Tally::new(self.recipe.format(), self.prices.clone(), Usage::default(), model);
        if let Some(files) = self.recipe.journal() {
            let variables = self.recipe.variables();
            let env = self.host.for_engine(variables, &[]);
            let (sandbox, run) = (self.sandbox.clone(), run.clone());
            let read = move || {
                let mut tally = tally;
                let found = process::read_journals(files, &sandbox, &env, &run, |line| {
                    if is_since(line, run.began) {
                        tally.journal_line(line);
                    }
                });
                found.then(|| tally.usage())
            };
            return tokio::task::spawn_blocking(read).await.ok()?;
        }
        self.ask(run, tally).await
    }

    /// The program itself, in the sandbox of a run: what a job could reach is read by nobody else.
    async fn ask(&self, run: &LeftRun, mut tally: Tally) -> Option<Usage> {
        let args = self.recipe.ask_for_usage(&run.session, run.began)?;
        let program = self.host.find_program(self.recipe.program())?;
        let (mut launch, _folder) =
            preflight::question(&program, args, self.recipe.as_ref(), &self.host).ok()?;
        launch.view.kept = Some(run.sessions.clone());
        let inside = if self.sandbox.missing().is_none() { self.recipe.sandbox_variables() } else { &[][..] };
        for (name, value) in self.recipe.shut_variables().iter().chain(inside) {
            launch.env.entry(name.into()).or_insert_with(|| value.into());
        }
        let answer = process::probe(launch, &self.sandbox, preflight::PATIENCE).await.ok()??;
        let events = self.recipe.read_usage(&answer.stdout).filter(|_| answer.succeeded)?;
        tally.stored(events);
        Some(tally.usage())
    }
}

/// Lines without a time say nothing of what was used.
fn is_since(line: &str, began: Timestamp) -> bool {
    let entry: Value = serde_json::from_str(line).unwrap_or_default();
    text(&entry, "/timestamp").and_then(|at| at.parse::<Timestamp>().ok()).is_some_and(|at| at >= began)
}
