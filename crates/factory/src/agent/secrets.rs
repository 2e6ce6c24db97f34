//! The secrets of one run: asked for right before it, given to what runs inside the job, and kept out of all that leaves.
//!
//! They live in memory for as long as the run, and in its private home while a process of it runs.

use std::time::Duration;

use giga_api::wire::{Checkpoint, ProblemCode, RunReport};
use giga_domain::secret::Leaks;
use giga_domain::{FailReason, SecretPlace, secret};
use zeroize::Zeroizing;

use super::ending::{Ending, RunFailure};
use super::job::JobRun;
use super::lease;
use super::lease::StopCause;
use super::place::Place;
use super::plan::Work;
use crate::engines::{JobSecret, Secret};

const RETRY_DELAY: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct RunSecrets {
    pub(super) given: Vec<JobSecret>,
    /// For text that people may see.
    pub(super) shown: Leaks,
    /// For what is refused when it has one in it.
    kept_back: Leaks,
}

impl RunSecrets {
    fn new(given: Vec<JobSecret>, nameless: &[Secret]) -> Self {
        let named = given.iter().map(|secret| (Some(secret.name.as_str()), secret.value.as_slice()));
        let nameless = nameless.iter().map(|secret| (None, secret.expose().as_bytes()));
        let kept_back = given.iter().map(|secret| (secret.name.as_str(), secret.value.as_slice()));
        let (shown, kept_back) = (Leaks::shown(named.chain(nameless)), Leaks::kept_back(kept_back));
        Self { given, shown, kept_back }
    }

    /// Whatever is told of the run: nothing of it may hold one.
    pub(super) fn clean(&self, ending: Ending) -> Ending {
        match ending {
            Ending::Succeeded(report) => Ending::Succeeded(Box::new(self.clean_report(*report))),
            Ending::Failed(failure) => {
                Ending::Failed(RunFailure { detail: self.shown.redact(&failure.detail), ..failure })
            }
            stopped @ Ending::Stopped(_) => stopped,
        }
    }

    fn clean_report(&self, mut report: RunReport) -> RunReport {
        for text in [&mut report.summary, &mut report.unseen].into_iter().flatten() {
            *text = self.shown.redact(text);
        }
        for check in &mut report.checks {
            check.output = self.shown.redact(&check.output);
        }
        report
    }

    /// An engine names its own sessions, and may call one after a secret.
    pub(super) fn clean_checkpoint(&self, mut checkpoint: Checkpoint) -> Checkpoint {
        let is_secret = |id: &String| self.shown.redact(id) != *id;
        if checkpoint.session_id.as_ref().is_some_and(is_secret) {
            checkpoint.session_id = None;
            checkpoint.session_engine = None;
            checkpoint.session_spend = None;
        }
        checkpoint.note = checkpoint.note.map(|note| self.shown.redact(&note));
        checkpoint
    }
}

impl JobRun<'_> {
    /// Those that the job names; the folder pushes nothing from then on that has one of them in it.
    pub(super) async fn take_secrets(&self, work: &Work, place: &Place) -> Result<(), Ending> {
        let given = if work.has_secrets { self.ask_for_secrets().await? } else { Vec::new() };
        if !given.is_empty() {
            self.check_places(work, &given)?;
            let names: Vec<&str> = given.iter().map(|secret| secret.name.as_str()).collect();
            self.log.note(&format!("secrets: {}", names.join(", ")));
        }
        let nameless: Vec<Secret> = self.shared.secrets.iter().cloned().chain(self.job_token()).collect();
        let secrets = RunSecrets::new(given, &nameless);
        if let (Place::Repo(folder), false) = (place, secrets.kept_back.is_empty()) {
            folder.keep_back(&secrets.kept_back)?;
        }
        self.log.keep_out(secrets.shown.clone());
        // Set once: this is the only place.
        let _ = self.secrets.set(secrets);
        Ok(())
    }

    async fn ask_for_secrets(&self) -> Result<Vec<JobSecret>, Ending> {
        loop {
            let asked = tokio::select! {
                biased;
                () = self.keeper.stop.cancelled() => return Err(self.keeper.stopped()),
                asked = self.shared.client.job_secrets(&self.held.job, self.held.epoch) => asked,
            };
            let error = match asked {
                Ok(answer) => return answer.secrets.iter().map(read).collect(),
                Err(error) => error,
            };
            // The lease ends this wait, where nobody answers.
            if error.is_passing() {
                tokio::select! {
                    () = self.keeper.stop.cancelled() => return Err(self.keeper.stopped()),
                    () = tokio::time::sleep(RETRY_DELAY) => continue,
                }
            }
            return Err(match error.code() {
                Some(ProblemCode::NoSecret) => {
                    Ending::Failed(RunFailure::new(FailReason::Secret, error.to_string()))
                }
                _ if lease::is_final(&error) => Ending::Stopped(StopCause::LeaseLost),
                _ => Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string())),
            });
        }
    }

    /// Whether this machine can put each of them where the job wants it.
    fn check_places(&self, work: &Work, given: &[JobSecret]) -> Result<(), Ending> {
        let unfit =
            |detail: String| Err(Ending::Failed(RunFailure::new(FailReason::CapabilityMismatch, detail)));
        if work.engine.elsewhere().is_some() {
            let engine = work.engine.name();
            return unfit(format!("{engine} works on other machines, where secrets of this fleet do not go"));
        }
        let in_sandbox = self.shared.machine.is_sandboxed();
        for secret in given {
            match &secret.place {
                SecretPlace::File(_) if !in_sandbox => {
                    return unfit(format!(
                        "the secret {} is wanted as a file in the job's own home, and without a sandbox this factory \
                         has none to give",
                        secret.name
                    ));
                }
                SecretPlace::Env(_) if secret.value.contains(&0) => {
                    let detail = format!(
                        "the secret {} contains the byte 0, which no environment variable can hold; give it to the job as \
                         a file",
                        secret.name
                    );
                    return Err(Ending::Failed(RunFailure::new(FailReason::Secret, detail)));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A coordinator checked all of this; one that was not ours to trust must not choose a path or a variable here.
fn read(given: &giga_api::wire::JobSecret) -> Result<JobSecret, Ending> {
    let place = match (&given.env, &given.file) {
        (Some(env), None) if secret::is_variable(env) && !secret::is_reserved(env) => {
            Some(SecretPlace::Env(env.clone()))
        }
        (None, Some(file)) if secret::is_home_file(file) => Some(SecretPlace::File(file.clone())),
        _ => None,
    };
    if let (Some(place), Some(value), Ok(name)) = (place, given.bytes(), given.name.parse()) {
        return Ok(JobSecret { name, place, value: Zeroizing::new(value) });
    }
    let detail = "the coordinator sent a secret that cannot be read";
    Err(Ending::Failed(RunFailure::new(FailReason::Infrastructure, detail)))
}
