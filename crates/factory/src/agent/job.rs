//! One job on this machine, from its grant to the holder's final report.
//!
//! Whatever happens, exactly one final report is sent (report, fail or release), the work is saved first, and the folder
//! is removed afterwards. Work whose lease was lost is quarantined: kept here, never pushed, never reported.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_api::wire::{self, Checkpoint, EngineNotUsed, PatchRequest, Stage};
use giga_domain::exit::words;
use giga_domain::{FailReason, NotUsed, PassedOver, Timestamp};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::ending::{Ending, RunFailure};
use super::final_report::{self, Handover, Receipt};
use super::grant::Grant;
use super::lease::{Held, LeaseKeeper, StopCause};
use super::log::RunLog;
use super::meter::Meter;
use super::place::{Place, SCRATCH, SCRATCH_RUN};
use super::plan::Work;
use super::raw_events::RawEvents;
use super::secrets::RunSecrets;
use super::{Shared, accounts, heartbeat, lease, recover, remote, save};
use crate::workspace::{Start, WorkFolder};

/// How long the rest of a log may take, if the coordinator answers.
pub(super) const LAST_LINES: Duration = Duration::from_secs(10);

/// Runs the job to its end. Never fails: what goes wrong is the job's ending.
pub(super) async fn run(shared: Arc<Shared>, grant: Grant, held: Held, seat: Option<OwnedSemaphorePermit>) {
    let (done, meter) = (CancellationToken::new(), Meter::default());
    let keeper =
        LeaseKeeper::start(shared.client.clone(), held.clone(), meter.clone(), &shared.drain, done.clone());
    // Until everything of this job is cleared away.
    let _seat = match seat {
        Some(seat) => seat,
        None => match seat_for(&shared, &keeper).await {
            Ok(seat) => seat,
            Err(ending) => {
                final_report::send(&shared, &held, &ending, &Handover::default()).await;
                done.cancel();
                return;
            }
        },
    };
    // Until everything of this job is cleared away, as the seat.
    let _place = tokio::select! {
        place = shared.places.enter(&held.job) => place,
        () = keeper.stop.cancelled() => {
            final_report::send(&shared, &held, &keeper.stopped(), &Handover::default()).await;
            done.cancel();
            return;
        }
    };
    let log = match RunLog::create(&shared.base.join("logs"), &held) {
        Ok(log) => log,
        Err(error) => {
            let failure = RunFailure::of_this_machine(format!("the log cannot be written: {error}"));
            let ending = blame(&shared, &held.job, Ending::Failed(failure)).await;
            final_report::send(&shared, &held, &ending, &Handover::default()).await;
            done.cancel();
            return;
        }
    };
    let ship_done = CancellationToken::new();
    let shipping = tokio::spawn(log.clone().ship(shared.client.clone(), held.clone(), ship_done.clone()));
    tracing::info!(job = held.job, epoch = held.epoch, name = grant.name, "running");
    log.note(&format!("{} on {}, epoch {}", grant.name, shared.id, held.epoch));

    let known = Mutex::new(grant.checkpoint.clone());
    let secrets = OnceLock::new();
    let raw_events = RawEvents::new(&shared.base.join("logs"), &held);
    let run = JobRun {
        shared: &shared,
        grant: &grant,
        held: &held,
        keeper: &keeper,
        log: &log,
        raw_events: &raw_events,
        meter: &meter,
        known: &known,
        secrets: &secrets,
    };
    let (ending, place) = run.work().await;
    run.finish(ending, place, ship_done, shipping).await;
    done.cancel();
}

/// The lease is kept meanwhile; whatever ends it ends the wait.
async fn seat_for(shared: &Shared, keeper: &LeaseKeeper) -> Result<OwnedSemaphorePermit, Ending> {
    tokio::select! {
        biased;
        () = keeper.stop.cancelled() => Err(keeper.stopped()),
        seat = shared.seats.clone().acquire_owned() => Ok(seat.expect("seats are never closed")),
    }
}

pub(super) struct JobRun<'a> {
    pub(super) shared: &'a Shared,
    pub(super) grant: &'a Grant,
    pub(super) held: &'a Held,
    pub(super) keeper: &'a LeaseKeeper,
    pub(super) log: &'a RunLog,
    pub(super) raw_events: &'a RawEvents,
    pub(super) meter: &'a Meter,
    /// The job's checkpoint as the coordinator has it.
    pub(super) known: &'a Mutex<Option<Checkpoint>>,
    /// Once the work has started.
    pub(super) secrets: &'a OnceLock<RunSecrets>,
}

impl JobRun<'_> {
    async fn work(&self) -> (Ending, Option<Place>) {
        let known = self.shared.engines.known();
        let here = self.shared.accounts.here(&known, accounts::now());
        let work = match Work::of(self.grant, &self.shared.engines.ready(), &here) {
            Ok(work) => work,
            Err(failure) => return (Ending::Failed(failure), None),
        };
        if let Err(ending) = self.free_the_place(&work).await {
            return (ending, None);
        }
        let place = match self.prepare(&work).await {
            Ok(place) => place,
            Err(ending) => return (ending, None),
        };
        if let Err(ending) = self.start(&work).await {
            // Nothing was done in it, so there is nothing to keep: a grant that came too late leaves no trace.
            self.clear(place).await;
            return (ending, None);
        }
        let ending = match self.take_secrets(&work, &place).await {
            Ok(()) => Box::pin(self.engine_and_verify(&work, &place)).await,
            Err(ending) => ending,
        };
        (ending, Some(place))
    }

    /// Nothing of an earlier epoch may still run where this one is going to work.
    async fn free_the_place(&self, work: &Work) -> Result<(), Ending> {
        if let Some(earlier) =
            self.shared.workspace.worked_in_by(work.job).filter(|epoch| *epoch != work.epoch)
        {
            recover::kill_engine(&run_marker(&self.held.job, earlier.0)).await;
        }
        recover::clear_scratch_of(&self.scratch())
            .await
            .map_err(|error| Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string())))
    }

    /// The folder of a job without a repository: the same for every epoch, like that of any other.
    fn scratch(&self) -> PathBuf {
        self.shared.base.join(SCRATCH).join(&self.held.job)
    }

    async fn prepare(&self, work: &Work) -> Result<Place, Ending> {
        if work.repos.is_empty() {
            let folder = self.scratch();
            let tree = folder.join("tree");
            let made = std::fs::create_dir_all(&tree).and_then(|()| {
                std::fs::write(folder.join(SCRATCH_RUN), run_marker(&self.held.job, self.held.epoch))
            });
            return match made {
                Ok(()) => Ok(Place::Scratch { folder, tree }),
                Err(error) => {
                    let detail = format!("{}: {error}", tree.display());
                    Err(Ending::Failed(RunFailure::of_this_machine(detail)))
                }
            };
        }
        let mut repos = Vec::with_capacity(work.repos.len());
        for repo in &work.repos {
            repos.push((repo.clone(), self.shared.workspace.resolve(repo).await?));
        }
        remote::check_reach(&*work.engine, &repos).map_err(Ending::Failed)?;
        let log = self.log.clone();
        let workspace = self.shared.workspace.noting(move |text| log.note(text));
        let (base, checkpoint) = (work.base.as_deref(), work.checkpoint.as_ref());
        let folder = tokio::select! {
            folder = workspace.open_folder(work.job, work.epoch, &repos, base, checkpoint) => folder?,
            () = self.keeper.stop.cancelled() => return Err(self.keeper.stopped()),
        };
        let start = match folder.start() {
            Start::Fresh => "new work folder",
            Start::Resumed => "resumed from the checkpoint",
            Start::CheckpointMissing => "the checkpoint was not found; starting over",
        };
        self.log.note(&format!("{}: {start}", work.repos.join(", ")));
        Ok(Place::Repo(Box::new(folder)))
    }

    async fn start(&self, work: &Work) -> Result<(), Ending> {
        let now = accounts::now();
        let engine = work.engine.name();
        for passed in &work.passed_over {
            self.log.note(&format!("{passed}; {engine} runs it"));
        }
        let patch = PatchRequest {
            lease_epoch: self.held.epoch,
            stage: Some(Stage::Building),
            checkpoint: None,
            engine: Some(engine.to_owned()),
            model: work.model.clone().or_else(|| work.engine.model().map(str::to_owned)),
            passed_over: work.passed_over.iter().map(|passed| passed_over(passed, now)).collect(),
        };
        match self.shared.client.patch_job(&self.held.job, &patch).await {
            Ok(_) => Ok(()),
            Err(error) if lease::is_final(&error) => Err(Ending::Stopped(StopCause::LeaseLost)),
            Err(error) => Err(Ending::Failed(RunFailure::new(FailReason::Infrastructure, error.to_string()))),
        }
    }

    /// Saves or quarantines, ships the rest of the log, sends the final report, and cleans up.
    async fn finish(
        &self,
        ending: Ending,
        place: Option<Place>,
        ship_done: CancellationToken,
        shipping: tokio::task::JoinHandle<()>,
    ) {
        let ending = match self.secrets.get() {
            Some(secrets) => secrets.clean(ending),
            None => ending,
        };
        let ending = blame(self.shared, &self.held.job, ending).await;
        let saved = match (&ending, &place) {
            (Ending::Succeeded(report), _) => save::result_checkpoint(report),
            (Ending::Stopped(StopCause::LeaseLost | StopCause::Cancelled), _) | (_, None) => None,
            (Ending::Stopped(_), Some(place)) => self.save_with_deadline(place, "at the end of a run").await,
            (Ending::Failed(_), Some(place)) => self.save(place, "at the end of a run").await,
        };
        let handover = Handover {
            checkpoint: self.checkpoint_after(&ending, saved),
            spend: self.meter.spend(),
            assumed: self.meter.is_assumed(),
        };
        self.hand_over_events(&ending).await;
        self.log.note(&describe(&ending));
        ship_done.cancel();
        // A log that is not accepted must not hold the job up. Where nobody answers, the report below would wait as well.
        let patience = match &ending {
            Ending::Stopped(StopCause::Draining) => LAST_LINES,
            _ => self.held.lease.max(LAST_LINES),
        };
        let _ = tokio::time::timeout(patience, shipping).await;
        let receipt = final_report::send(self.shared, self.held, &ending, &handover).await;
        match place {
            Some(Place::Repo(folder)) => self.leave(*folder, receipt).await,
            Some(scratch @ Place::Scratch { .. }) => self.clear(scratch).await,
            None => {}
        }
    }

    async fn clear(&self, place: Place) {
        let cleared = match place {
            Place::Repo(folder) => folder.remove().await.map_err(|error| error.to_string()),
            Place::Scratch { folder, .. } => {
                std::fs::remove_dir_all(folder).map_err(|error| error.to_string())
            }
        };
        if let Err(error) = cleared {
            tracing::warn!(job = self.held.job, error, "a work folder could not be removed");
        }
    }

    async fn leave(&self, folder: WorkFolder, receipt: Receipt) {
        match receipt {
            Receipt::Accepted => {}
            Receipt::Fenced => match folder.quarantine("the lease was lost").await {
                Ok(branch) => {
                    tracing::warn!(job = self.held.job, branch, "fenced: the work is in quarantine");
                }
                Err(error) => {
                    tracing::error!(job = self.held.job, %error, "fenced, and quarantine failed; the folder is kept");
                    return;
                }
            },
            // The folder is kept, and the next start asks the coordinator what became of the job.
            Receipt::Unanswered => return,
        }
        self.clear(Place::Repo(Box::new(folder))).await;
    }
}

/// Times as lengths: the coordinator's clock is another one.
fn passed_over(passed: &PassedOver, now: Timestamp) -> wire::PassedOver {
    let (reason, until) = match passed.why {
        NotUsed::Missing => (EngineNotUsed::Missing, None),
        NotUsed::SignedOut => (EngineNotUsed::SignedOut, None),
        NotUsed::OutOfQuota { until } => (EngineNotUsed::OutOfQuota, until),
    };
    let opens_in_ms = until.and_then(|until| u64::try_from(until.since(now).as_millis()).ok());
    wire::PassedOver { engine: passed.engine.clone(), reason, opens_in_ms }
}

/// A job that failed because this machine is down says nothing about the job: it is released, after the coordinator knows that
/// this machine takes nothing more.
async fn blame(shared: &Shared, job: &str, ending: Ending) -> Ending {
    match ending {
        Ending::Failed(failure) if shared.health.failed(job, &failure) => {
            tracing::error!(detail = failure.detail, "this machine is down; the job is released");
            heartbeat::send_now(shared).await;
            Ending::Stopped(StopCause::MachineDown)
        }
        Ending::Succeeded(report) => {
            shared.health.worked();
            Ending::Succeeded(report)
        }
        other => other,
    }
}

/// Marks every process that a run starts, so that a later agent can find them.
pub(super) fn run_marker(job: &str, epoch: u64) -> String {
    format!("{job}.{epoch}")
}

fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Succeeded(_) => "succeeded".to_owned(),
        Ending::Failed(failure) => format!("failed: {}", words(failure.reason, Some(&failure.detail))),
        Ending::Stopped(cause) => format!("stopped: {cause:?}"),
    }
}
