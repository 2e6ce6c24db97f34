//! `gigafactory.v1.Dispatch`: topic jobs for workers in other people's processes.
//!
//! Nothing is decided here. A stream passes on what the hub dealt to it, as much at once as there is; its end is the end
//! of the worker's presence.

use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::str::FromStr;

use futures::{Stream, stream};
use giga_coordinator::{Dealt, NewTopicWork, OpenStream, ReportStatus, WorkerStream};
use giga_domain::id::IdError;
use giga_domain::job::RetryPolicy;
use giga_domain::topic::{DEFAULT_RETRY, Outcome};
use giga_domain::{Epoch, JobId, Priority, ProductId, Timestamp, WorkerId, limits};
use giga_ports::topics::{Enqueued, Settle};
use giga_proto::v1;
use giga_proto::v1::dispatch_server::{Dispatch, DispatchServer};
use giga_proto::v1::job_result;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::auth::{self, TokenWatch};
use super::{refused, stopping};
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;

/// One message of a stream: large enough that its cost is lost among its jobs, and well below the 4 MiB that clients
/// take by default. The largest payload fits.
const MESSAGE_JOBS: usize = 1_000;
const MESSAGE_BYTES: usize = 1024 * 1024;
/// The longest id of a worker.
const WORKER_CHARS: usize = 100;

pub(super) fn service(app: App) -> DispatchServer<DispatchService> {
    DispatchServer::new(DispatchService(app)).max_decoding_message_size(limits::TOPIC_REQUEST_BYTES)
}

pub(super) struct DispatchService(App);

type Assignments = Pin<Box<dyn Stream<Item = Result<v1::StreamJobsResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Dispatch for DispatchService {
    type StreamJobsStream = Assignments;

    async fn stream_jobs(
        &self,
        request: Request<v1::StreamJobsRequest>,
    ) -> Result<Response<Assignments>, Status> {
        let app = &self.0;
        let tokens = app.coordinator.tokens_changed();
        let caller = auth::worker(app, &request).await?;
        let product = caller.product()?;
        let v1::StreamJobsRequest { topics, worker_id, max_in_flight } = request.into_inner();
        let open = OpenStream {
            product,
            topics: each("topics", topics, |place, topic| id(place, &topic))?,
            worker: bound(&caller, &id("worker_id", &worker_id)?)?,
            max_in_flight,
        };
        if app.stop.is_cancelled() {
            return Err(stopping());
        }
        let jobs = app.coordinator.topics().open_stream(open).map_err(refused)?;
        let token_watch = TokenWatch::new(app, tokens, caller);
        let connected = Connected { jobs, token_watch, stop: app.stop.clone() };
        let messages = stream::unfold(Some(connected), |connected| async {
            let mut connected = connected?;
            match connected.next().await {
                Ok(message) => Some((Ok(message), Some(connected))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Response::new(Box::pin(messages)))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let caller = auth::worker(&self.0, &request).await?;
        let v1::HeartbeatRequest { worker_id, held } = request.into_inner();
        let worker = bound(&caller, &id("worker_id", &worker_id)?)?;
        let held = each("held", held, |place, held| {
            Ok((id(format_args!("{place}.job_id"), &held.job_id)?, Epoch(held.epoch)))
        })?;
        let renewed = self.0.coordinator.topics().renew(within(&caller), &worker, held).await;
        let (lost, lease) = renewed.map_err(refused)?;
        Ok(Response::new(v1::HeartbeatResponse {
            lost_job_ids: lost.iter().map(ToString::to_string).collect(),
            lease_ms: lease.as_millis() as u32,
        }))
    }

    async fn report_result(
        &self,
        request: Request<v1::ReportResultRequest>,
    ) -> Result<Response<v1::ReportResultResponse>, Status> {
        let caller = auth::worker(&self.0, &request).await?;
        let v1::ReportResultRequest { worker_id, results, max_in_flight } = request.into_inner();
        let worker = bound(&caller, &id("worker_id", &worker_id)?)?;
        let results = each("results", results, result)?;
        if max_in_flight > 0 {
            // Before the report: the slots that it frees are dealt by the new number.
            let wish = self.0.coordinator.topics().set_max_in_flight(within(&caller), &worker, max_in_flight);
            wish.map_err(refused)?;
        }
        let reported = self.0.coordinator.topics().report(within(&caller), &worker, results).await;
        let statuses = reported.map_err(refused)?.into_iter().map(|status| match status {
            ReportStatus::Recorded => v1::ResultStatus::Recorded.into(),
            ReportStatus::Fenced => v1::ResultStatus::Fenced.into(),
            ReportStatus::UnknownJob => v1::ResultStatus::UnknownJob.into(),
        });
        Ok(Response::new(v1::ReportResultResponse { statuses: statuses.collect() }))
    }

    async fn enqueue(
        &self,
        request: Request<v1::EnqueueRequest>,
    ) -> Result<Response<v1::EnqueueResponse>, Status> {
        let caller = auth::submitter(&self.0, &request).await?;
        let product = caller.product()?;
        let jobs = each("jobs", request.into_inner().jobs, new_work)?;
        let enqueued = self.0.coordinator.topics().enqueue(&product, jobs).await.map_err(refused)?;
        let answer = |enqueued: &Enqueued| v1::Enqueued {
            job_id: enqueued.id().to_string(),
            existing: matches!(enqueued, Enqueued::Existing(_)),
        };
        Ok(Response::new(v1::EnqueueResponse { jobs: enqueued.iter().map(answer).collect() }))
    }
}

struct Connected {
    jobs: WorkerStream,
    token_watch: TokenWatch,
    stop: CancellationToken,
}

impl Connected {
    async fn next(&mut self) -> Result<v1::StreamJobsResponse, Status> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(stopping()),
            over = self.token_watch.is_over() => Err(over),
            dealt = self.jobs.next(MESSAGE_JOBS, MESSAGE_BYTES) => match dealt {
                Some(dealt) => Ok(v1::StreamJobsResponse {
                    assignments: dealt.into_iter().map(assignment).collect(),
                }),
                None => Err(stopping()),
            },
        }
    }
}

/// The products whose jobs the caller may speak about; `None` for all.
fn within(caller: &Caller) -> Option<&[ProductId]> {
    match &caller.products {
        Products::All => None,
        Products::Only(own) => Some(own),
    }
}

/// The worker as this token's: another token that gives itself the same name is another worker.
fn bound(caller: &Caller, worker: &WorkerId) -> Result<WorkerId, Status> {
    let whole = format!("{worker}:{}", caller.token);
    let bound =
        if whole.len() <= WORKER_CHARS { whole } else { format!("{:016x}:{}", digest(worker), caller.token) };
    bound.parse().map_err(|_| Problem::internal("a worker's name with its token is no worker id").into())
}

/// Tells long names of one token apart.
fn digest(worker: &WorkerId) -> u64 {
    let mut hasher = DefaultHasher::new();
    worker.as_str().hash(&mut hasher);
    hasher.finish()
}

fn id<T: FromStr<Err = IdError>>(field: impl Display, text: &str) -> Result<T, Status> {
    let wrong = |error: IdError| Problem::field(field.to_string(), error.to_string()).into();
    text.parse().map_err(wrong)
}

/// Where in the request something stands, spelled out only where something is wrong with it.
#[derive(Clone, Copy)]
struct Place<'a>(&'a str, usize);

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.0, self.1)
    }
}

/// Each of a list, refused with its place in it. Longer lists than any call takes are not even looked at.
fn each<T, U>(
    field: &str,
    items: Vec<T>,
    read: impl Fn(Place<'_>, T) -> Result<U, Status>,
) -> Result<Vec<U>, Status> {
    let (count, most) = (items.len(), limits::TOPIC_BATCH);
    if count > most {
        let text = format!("{field}: at most {most} in one call, not {count}; send the rest in another");
        return Err(Status::invalid_argument(text));
    }
    items.into_iter().enumerate().map(|(index, item)| read(Place(field, index), item)).collect()
}

fn result(place: Place<'_>, given: v1::JobResult) -> Result<Settle, Status> {
    let outcome = match given.outcome {
        Some(job_result::Outcome::Success(_)) => Outcome::Success,
        Some(job_result::Outcome::Failure(failure)) => {
            Outcome::Failure { error: failure.error, retryable: !failure.permanent }
        }
        Some(job_result::Outcome::Release(_)) => Outcome::Release,
        None => {
            let text = format!("{place}.outcome: it is missing; say success, failure or release");
            return Err(Status::invalid_argument(text));
        }
    };
    let id: JobId = id(format_args!("{place}.job_id"), &given.job_id)?;
    Ok(Settle { id, epoch: Epoch(given.epoch), outcome })
}

fn new_work(place: Place<'_>, job: v1::NewJob) -> Result<NewTopicWork, Status> {
    let wrong = |name: &str, message: &str| Status::invalid_argument(format!("{place}.{name}: {message}"));
    let priority = match v1::Priority::try_from(job.priority) {
        Ok(v1::Priority::Critical) => Priority::Critical,
        Ok(v1::Priority::High) => Priority::High,
        Ok(v1::Priority::Unspecified | v1::Priority::Normal) => Priority::Normal,
        Ok(v1::Priority::Low) => Priority::Low,
        Err(_) => return Err(wrong("priority", "it must be one of the enum's values, 0 to 4")),
    };
    let run_at = match job.run_at {
        None => None,
        Some(at) => Some(from_proto(at).ok_or_else(|| {
            wrong("run_at", "it must be a time between the years 1 and 9999, nanos from 0 to 999999999")
        })?),
    };
    let retry = job
        .retry
        .map_or(DEFAULT_RETRY, |retry| RetryPolicy { max: retry.max, backoff_ms: retry.backoff_ms.into() });
    Ok(NewTopicWork {
        topic: id(format_args!("{place}.topic"), &job.topic)?,
        priority,
        payload: job.payload,
        idempotency_key: Some(job.idempotency_key).filter(|key| !key.is_empty()),
        run_at,
        retry,
    })
}

fn assignment(dealt: Dealt) -> v1::Assignment {
    let Dealt { topic, lease, job } = dealt;
    let priority = match job.priority {
        Priority::Critical => v1::Priority::Critical,
        Priority::High => v1::Priority::High,
        Priority::Normal => v1::Priority::Normal,
        Priority::Low => v1::Priority::Low,
    };
    v1::Assignment {
        job_id: job.id.to_string(),
        topic: topic.to_string(),
        epoch: job.epoch.0,
        attempt: job.attempt,
        priority: priority.into(),
        payload: job.payload,
        created_at: Some(to_proto(job.created_at)),
        expires_at: Some(to_proto(job.expires_at)),
        lease_ms: lease.as_millis() as u32,
    }
}

pub(super) fn to_proto(at: Timestamp) -> prost_types::Timestamp {
    let millis = at.as_millis();
    let nanos = millis.rem_euclid(1_000) * 1_000_000;
    prost_types::Timestamp { seconds: millis.div_euclid(1_000), nanos: nanos as i32 }
}

fn from_proto(at: prost_types::Timestamp) -> Option<Timestamp> {
    let in_range = (-62_135_596_800..=253_402_300_799).contains(&at.seconds);
    let nanos = u32::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    // Rounded up: never before the time that was asked for.
    let millis = i64::from(nanos.div_ceil(1_000_000));
    in_range.then(|| Timestamp::from_millis(at.seconds * 1_000 + millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_wire_and_nonsense_does_not() {
        for millis in [0, 1, 999, 1_000, 1_760_000_000_123, -1, -1_001] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(from_proto(to_proto(at)), Some(at), "{millis}");
        }
        let at = |seconds, nanos| from_proto(prost_types::Timestamp { seconds, nanos });
        assert_eq!(at(7, 1), Some(Timestamp::from_millis(7_001)), "never early");
        for (seconds, nanos) in [(0, -1), (0, 1_000_000_000), (i64::MAX, 0), (i64::MIN, 0)] {
            assert_eq!(at(seconds, nanos), None);
        }
    }
}
