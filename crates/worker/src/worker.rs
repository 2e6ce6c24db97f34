//! Starts the worker's tasks: an intake, a lease keeper, report loops, and as many handler loops as handlers may run at once.
//!
//! A handler loop lives as long as the worker: it takes a job, runs its handler, stores the result and takes the next. So a
//! job needs no task of its own, and no more handlers can run than there are loops.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use giga_proto::v1;
use giga_proto::v1::job_result::Outcome;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::in_flight::InFlight;
use crate::intake::Intake;
use crate::prefetch::Prefetch;
use crate::reports::{REPORT_LOOPS, report_loop};
use crate::{Client, Error, JobError, Task, keeper};

/// Limits of the coordinator.
const TOPICS: usize = 100;
const IN_FLIGHT: usize = 10_000;

type Handler = Box<dyn Fn(Task) -> BoxFuture<'static, Result<(), JobError>> + Send + Sync>;

/// Serves topics with handlers until it is stopped.
#[must_use = "a worker does nothing until it is `run`"]
pub struct Worker {
    client: Client,
    handlers: Vec<(String, Handler)>,
    id: Option<String>,
    concurrency: usize,
    max_in_flight: Option<usize>,
    drain_timeout: Duration,
}

/// What became of the jobs that a worker was sent, as the coordinator recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    pub succeeded: u64,
    /// Failed attempts, whether they are tried again or not.
    pub failed: u64,
    /// Released, because the worker stopped.
    pub released: u64,
    /// The lease was lost; what the handler did was not recorded.
    pub lost: u64,
}

impl Worker {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            handlers: Vec::new(),
            id: None,
            concurrency: 100,
            max_in_flight: None,
            drain_timeout: Duration::from_secs(30),
        }
    }

    /// Serves a topic. `Ok` is success; an error is a failure, tried again as the job's retry policy says, unless it is
    /// [`crate::Permanent`].
    pub fn handle<F, R>(mut self, topic: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Task) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        self.handlers.push((topic.into(), Box::new(move |task| handler(task).boxed())));
        self
    }

    /// How many handlers run at once, at most. 100 by default.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// How many jobs the coordinator may send before their results are reported. By default it follows the rate of the
    /// handlers: the jobs that they run, and those that they finish in a twentieth of a second.
    pub fn max_in_flight(mut self, jobs: usize) -> Self {
        self.max_in_flight = Some(jobs);
        self
    }

    /// The name that operators see. By default the host, the process id and a few random digits.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// How long handlers may keep running after the worker was asked to stop. 30 seconds by default.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Works until the future ends (a [`CancellationToken`]'s `cancelled()`, `ctrl_c()`, ...), then drains: takes no more
    /// jobs, releases those that were not started, lets the others finish for [`Worker::drain_timeout`], releases the
    /// rest, and returns when all of that is reported.
    ///
    /// While the coordinator is unreachable the worker keeps retrying. If the coordinator refuses it (a bad token, an
    /// invalid topic), `run` returns an error, and handlers that are still running find their jobs lost.
    pub async fn run<U: Future>(self, until: U) -> Result<Summary, Error> {
        let mut tasks = WorkerTasks::start(self)?;
        let refused = tokio::select! {
            _ = until => None,
            refused = tasks.refusal() => Some(refused),
        };
        tasks.drain(refused).await
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics: Vec<&str> = self.handlers.iter().map(|(topic, _)| topic.as_str()).collect();
        let mut worker = f.debug_struct("Worker");
        worker.field("topics", &topics).field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

/// The tasks of a running worker. Dropping this ends all of them.
struct WorkerTasks {
    in_flight: Arc<InFlight>,
    stop: CancellationToken,
    keeping: CancellationToken,
    handler_loops: JoinSet<()>,
    background: JoinSet<Result<(), Error>>,
    drain_timeout: Duration,
}

impl WorkerTasks {
    fn start(worker: Worker) -> Result<Self, Error> {
        let prefetch = Prefetch::new(worker.concurrency, worker.max_in_flight, IN_FLIGHT);
        let max_in_flight = prefetch.max_in_flight();
        check(&worker, max_in_flight)?;
        let topics: Vec<String> = worker.handlers.iter().map(|(topic, _)| topic.clone()).collect();
        let handlers: Arc<HashMap<String, Handler>> = Arc::new(worker.handlers.into_iter().collect());
        let worker_id = worker.id.unwrap_or_else(own_name);
        info!(worker_id, ?topics, concurrency = worker.concurrency, max_in_flight, "starting");

        let in_flight = Arc::new(InFlight::new(prefetch));
        let (stop, keeping) = (CancellationToken::new(), CancellationToken::new());
        let mut handler_loops = JoinSet::new();
        for _ in 0..worker.concurrency {
            handler_loops.spawn(handler_loop(in_flight.clone(), handlers.clone()));
        }
        let mut background = JoinSet::new();
        for _ in 0..REPORT_LOOPS {
            background.spawn(report_loop(worker.client.clone(), worker_id.clone(), in_flight.clone()));
        }
        let keeper = keeper::keep(worker.client.clone(), worker_id.clone(), in_flight.clone());
        let kept = keeping.clone();
        background.spawn(async move { kept.run_until_cancelled(keeper).await.unwrap_or(Ok(())) });
        let request = v1::StreamJobsRequest { topics, worker_id, max_in_flight: max_in_flight as u32 };
        let intake =
            Intake { client: worker.client, in_flight: in_flight.clone(), request, stop: stop.clone() };
        let received = in_flight.clone();
        background.spawn(async move {
            let ended = intake.run().await;
            received.stop_starting();
            received.intake_ended();
            ended
        });
        Ok(Self { in_flight, stop, keeping, handler_loops, background, drain_timeout: worker.drain_timeout })
    }

    /// Waits for the first refusal; background tasks end for no other reason before the drain.
    async fn refusal(&mut self) -> Error {
        loop {
            match self.background.join_next().await {
                Some(ended) => {
                    if let Err(refused) = flatten(ended) {
                        return refused;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    async fn drain(mut self, mut refused: Option<Error>) -> Result<Summary, Error> {
        self.stop.cancel();
        if refused.is_some() {
            self.in_flight.lose_all();
        }
        let handlers_end = async { while self.handler_loops.join_next().await.is_some() {} };
        if timeout(self.drain_timeout, handlers_end).await.is_err() {
            warn!(
                handlers = self.handler_loops.len(),
                "handlers did not finish within the drain timeout; their jobs are released"
            );
            self.handler_loops.shutdown().await;
        }
        self.keeping.cancel();
        self.in_flight.close();
        while let Some(ended) = self.background.join_next().await {
            if let Err(error) = flatten(ended) {
                refused.get_or_insert(error);
            }
        }
        let summary = self.in_flight.summary();
        info!(?summary, "stopped");
        refused.map_or(Ok(summary), Err)
    }
}

async fn handler_loop(in_flight: Arc<InFlight>, handlers: Arc<HashMap<String, Handler>>) {
    while let Some(task) = in_flight.next().await {
        let (job_id, epoch) = (task.job_id.clone(), task.epoch);
        let outcome = match handlers.get(&task.topic) {
            Some(handler) => attempt(handler, task).await,
            None => Err(JobError::new(format!("this worker has no handler for topic `{}`", task.topic))),
        };
        in_flight.finish(
            job_id,
            epoch,
            match outcome {
                Ok(()) => Outcome::Success(v1::Success {}),
                Err(error) => Outcome::Failure(error.into_wire()),
            },
        );
    }
}

async fn attempt(handler: &Handler, task: Task) -> Result<(), JobError> {
    // A handler shares no state with us that a panic could leave inconsistent.
    let attempt = AssertUnwindSafe(async { handler(task).await }).catch_unwind();
    attempt.await.unwrap_or_else(|panic| Err(JobError::from_panic(panic.as_ref())))
}

fn check(worker: &Worker, max_in_flight: usize) -> Result<(), Error> {
    if worker.handlers.is_empty() {
        return Err(Error::setting("handle", "the worker serves no topic; give it at least one handler"));
    }
    if worker.handlers.len() > TOPICS {
        let problem = format!("{} topics; a worker serves at most {TOPICS}", worker.handlers.len());
        return Err(Error::setting("handle", problem));
    }
    for (at, (topic, _)) in worker.handlers.iter().enumerate() {
        if worker.handlers[..at].iter().any(|(other, _)| other == topic) {
            return Err(Error::setting("handle", format!("topic `{topic}` has two handlers")));
        }
    }
    if worker.concurrency == 0 {
        return Err(Error::setting("concurrency", "0 handlers would never do anything; 1 or more"));
    }
    if !(1..=IN_FLIGHT).contains(&max_in_flight) {
        let problem = format!("{max_in_flight} is not possible; 1 to {IN_FLIGHT}");
        return Err(Error::setting("max_in_flight", problem));
    }
    if max_in_flight < worker.concurrency {
        let problem = format!("{} handlers, but only {max_in_flight} jobs in flight", worker.concurrency);
        return Err(Error::setting("concurrency", problem));
    }
    Ok(())
}

fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let host: String =
        host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(60).collect();
    let host = host.trim_start_matches('-');
    let host = if host.is_empty() { "worker" } else { host };
    // Only a name: what seeds the standard library's hash maps is random enough.
    let random = RandomState::new().build_hasher().finish();
    format!("{host}-{}-{:06x}", std::process::id(), random & 0x00ff_ffff)
}

/// A panic in one of our own tasks is our bug and is passed on to the caller.
fn flatten(joined: Result<Result<(), Error>, JoinError>) -> Result<(), Error> {
    match joined {
        Ok(ended) => ended,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
    }
}
