//! Puts the parts to work: an intake, a keeper of leases, clerks who report, and as many lanes as handlers may run at once.
//!
//! A lane is a task that lives as long as the worker: it takes a job, runs its handler, leaves the result, takes the next.
//! So a job costs no task of its own, and no more handlers can run than there are lanes.

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

use crate::appetite::Appetite;
use crate::desk::Desk;
use crate::intake::Intake;
use crate::reports::{CLERKS, clerk};
use crate::{Client, Error, JobError, Task, keeper};

/// Limits of the coordinator.
const TOPICS: usize = 100;
const IN_FLIGHT: usize = 10_000;

type Handler = Box<dyn Fn(Task) -> BoxFuture<'static, Result<(), JobError>> + Send + Sync>;

/// Serves topics with handlers, until it is told to stop.
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
    /// Given back, because the worker stopped.
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

    /// How many handlers run at once, at most. 100 unless said otherwise.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// How many jobs the coordinator may send before it has heard of their results. Unless said otherwise it follows the
    /// pace of the handlers: what they work on, and what they get through in a twentieth of a second.
    pub fn max_in_flight(mut self, jobs: usize) -> Self {
        self.max_in_flight = Some(jobs);
        self
    }

    /// The name that operators see. Host, process and a few random letters unless said otherwise.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// How long handlers may go on after the worker was told to stop. 30 seconds unless said otherwise.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Works until the future ends (a [`CancellationToken`]'s `cancelled()`, `ctrl_c()`, ...), then drains: takes no more
    /// jobs, gives back those that were not started, lets the others finish for [`Worker::drain_timeout`] and gives back
    /// the rest, and returns when all of that is reported.
    ///
    /// A coordinator that cannot be reached is waited for. One that refuses (a bad token, a topic that is no topic) ends
    /// the worker with an error; handlers that are still at it then find their jobs lost.
    pub async fn run<U: Future>(self, until: U) -> Result<Summary, Error> {
        let mut crew = Crew::start(self)?;
        let refused = tokio::select! {
            _ = until => None,
            refused = crew.refusal() => Some(refused),
        };
        crew.drain(refused).await
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics: Vec<&str> = self.handlers.iter().map(|(topic, _)| topic.as_str()).collect();
        let mut worker = f.debug_struct("Worker");
        worker.field("topics", &topics).field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

/// A worker at work. Dropping it ends all of its tasks.
struct Crew {
    desk: Arc<Desk>,
    stop: CancellationToken,
    keeping: CancellationToken,
    lanes: JoinSet<()>,
    office: JoinSet<Result<(), Error>>,
    drain_timeout: Duration,
}

impl Crew {
    fn start(worker: Worker) -> Result<Self, Error> {
        let appetite = Appetite::new(worker.concurrency, worker.max_in_flight, IN_FLIGHT);
        let max_in_flight = appetite.max_in_flight();
        check(&worker, max_in_flight)?;
        let topics: Vec<String> = worker.handlers.iter().map(|(topic, _)| topic.clone()).collect();
        let handlers: Arc<HashMap<String, Handler>> = Arc::new(worker.handlers.into_iter().collect());
        let worker_id = worker.id.unwrap_or_else(own_name);
        info!(worker_id, ?topics, concurrency = worker.concurrency, max_in_flight, "starting");

        let desk = Arc::new(Desk::new(appetite));
        let (stop, keeping) = (CancellationToken::new(), CancellationToken::new());
        let mut lanes = JoinSet::new();
        for _ in 0..worker.concurrency {
            lanes.spawn(lane(desk.clone(), handlers.clone()));
        }
        let mut office = JoinSet::new();
        for _ in 0..CLERKS {
            office.spawn(clerk(worker.client.clone(), worker_id.clone(), desk.clone()));
        }
        let keeper = keeper::keep(worker.client.clone(), worker_id.clone(), desk.clone());
        let kept = keeping.clone();
        office.spawn(async move { kept.run_until_cancelled(keeper).await.unwrap_or(Ok(())) });
        let request = v1::StreamJobsRequest { topics, worker_id, max_in_flight: max_in_flight as u32 };
        let intake = Intake { client: worker.client, desk: desk.clone(), request, stop: stop.clone() };
        let intake_desk = desk.clone();
        office.spawn(async move {
            let ended = intake.run().await;
            intake_desk.stop_starting();
            intake_desk.stopped();
            ended
        });
        Ok(Self { desk, stop, keeping, lanes, office, drain_timeout: worker.drain_timeout })
    }

    /// Waits for the first refusal; nobody in the office leaves for another reason before the drain.
    async fn refusal(&mut self) -> Error {
        loop {
            match self.office.join_next().await {
                Some(left) => {
                    if let Err(refused) = flatten(left) {
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
            self.desk.lose_all();
        }
        let handlers_end = async { while self.lanes.join_next().await.is_some() {} };
        if timeout(self.drain_timeout, handlers_end).await.is_err() {
            warn!(handlers = self.lanes.len(), "handlers did not end in time; their jobs are given back");
            self.lanes.shutdown().await;
        }
        self.keeping.cancel();
        self.desk.close();
        while let Some(left) = self.office.join_next().await {
            if let Err(error) = flatten(left) {
                refused.get_or_insert(error);
            }
        }
        let summary = self.desk.summary();
        info!(?summary, "stopped");
        refused.map_or(Ok(summary), Err)
    }
}

async fn lane(desk: Arc<Desk>, handlers: Arc<HashMap<String, Handler>>) {
    while let Some(task) = desk.next().await {
        let (job_id, epoch) = (task.job_id.clone(), task.epoch);
        let outcome = match handlers.get(&task.topic) {
            Some(handler) => attempt(handler, task).await,
            None => Err(JobError::new(format!("this worker has no handler for topic `{}`", task.topic))),
        };
        desk.finish(
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
    // What a handler leaves half-done when it panics is the handler's own; nothing of ours is shared with it.
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
            return Err(Error::setting("handle", format!("topic `{topic}` has two handlers; which is it?")));
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

/// A panic in one of our own tasks is a bug of ours and goes on to the caller.
fn flatten(left: Result<Result<(), Error>, JoinError>) -> Result<(), Error> {
    match left {
        Ok(ended) => ended,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
    }
}
