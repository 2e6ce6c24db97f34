//! One connection to the coordinator, shared by all who clone it. It says what was answered and repeats nothing by itself,
//! because only the caller knows whether an enqueue without a key may be sent twice; with one exception: where the
//! coordinator stored nothing and says when to come again.

use std::fmt;
use std::time::Duration;

use giga_proto::v1;
use giga_proto::v1::dispatch_client::DispatchClient;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::config::Credentials;
use crate::{Config, Error, Job};

/// What the coordinator takes in one call.
pub(crate) const BATCH: usize = 1_000;
/// Calls stay well below the four megabytes that gRPC servers accept unless told otherwise.
pub(crate) const CALL_BYTES: usize = 2 * 1024 * 1024;

/// How long an enqueue that comes too fast waits for its turn, all tries together.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Cheap to clone; all clones use one connection, which is made again when it breaks.
#[derive(Clone)]
pub struct Client {
    url: String,
    credentials: Credentials,
    calls: DispatchClient<Channel>,
}

/// What became of an enqueued job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enqueued {
    pub job_id: String,
    /// The key was seen before; this is the job of then.
    pub existing: bool,
}

impl Client {
    /// Connects now, so that a wrong address is found at once.
    pub async fn connect(config: Config) -> Result<Self, Error> {
        let (endpoint, credentials) = (config.endpoint()?, config.credentials()?);
        let channel = endpoint
            .connect()
            .await
            .map_err(|source| Error::Connect { url: config.url().to_owned(), source })?;
        Ok(Self::over(channel, config.url(), credentials))
    }

    /// Connects with the first call: for a process that may start before the coordinator does.
    pub fn connect_lazily(config: Config) -> Result<Self, Error> {
        let (endpoint, credentials) = (config.endpoint()?, config.credentials()?);
        Ok(Self::over(endpoint.connect_lazy(), config.url(), credentials))
    }

    fn over(channel: Channel, url: &str, credentials: Credentials) -> Self {
        // Several large jobs may come in one message, and the coordinator decides how many.
        let calls = DispatchClient::new(channel).max_decoding_message_size(usize::MAX);
        Self { url: url.to_owned(), credentials, calls }
    }

    /// Durable when it returns.
    pub async fn enqueue(&self, job: Job) -> Result<Enqueued, Error> {
        let answers = self.enqueue_batch(vec![job.into_wire()]).await?;
        answers.into_iter().next().ok_or_else(|| no_answer(1, 0))
    }

    /// Durable when it returns; the answers are in the order of the jobs. Many jobs go in several calls of at most 1,000,
    /// each taken whole or not at all: after an error the earlier ones stay, so give keys to jobs that must not double.
    pub async fn enqueue_many(&self, jobs: impl IntoIterator<Item = Job>) -> Result<Vec<Enqueued>, Error> {
        let mut answers = Vec::new();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for job in jobs {
            if batch.len() == BATCH || (bytes + job.size() > CALL_BYTES && !batch.is_empty()) {
                answers.extend(self.enqueue_batch(std::mem::take(&mut batch)).await?);
                bytes = 0;
            }
            bytes += job.size();
            batch.push(job.into_wire());
        }
        if !batch.is_empty() {
            answers.extend(self.enqueue_batch(batch).await?);
        }
        Ok(answers)
    }

    async fn enqueue_batch(&self, jobs: Vec<v1::NewJob>) -> Result<Vec<Enqueued>, Error> {
        let asked = jobs.len();
        let mut waited = Duration::ZERO;
        let answer = loop {
            let request = self.credentials.sign(v1::EnqueueRequest { jobs: jobs.clone() });
            let answer = self.calls.clone().enqueue(request).await;
            // Whoever is told to come later has stored nothing.
            let wait = answer.as_ref().err().and_then(asks_to_wait);
            let Some(wait) = wait.filter(|wait| waited + *wait <= LONGEST_WAIT) else { break answer };
            waited += wait;
            tokio::time::sleep(wait).await;
        };
        let jobs = answer.map_err(|status| Error::from_status("Enqueue", &status))?.into_inner().jobs;
        if jobs.len() != asked {
            return Err(no_answer(asked, jobs.len()));
        }
        Ok(jobs.into_iter().map(|job| Enqueued { job_id: job.job_id, existing: job.existing }).collect())
    }

    pub(crate) async fn stream(
        &self,
        request: v1::StreamJobsRequest,
    ) -> Result<Streaming<v1::StreamJobsResponse>, Status> {
        Ok(self.calls.clone().stream_jobs(self.credentials.sign(request)).await?.into_inner())
    }

    pub(crate) async fn report(
        &self,
        request: v1::ReportResultRequest,
    ) -> Result<v1::ReportResultResponse, Status> {
        Ok(self.calls.clone().report_result(self.credentials.sign(request)).await?.into_inner())
    }

    pub(crate) async fn heartbeat(
        &self,
        request: v1::HeartbeatRequest,
    ) -> Result<v1::HeartbeatResponse, Status> {
        Ok(self.calls.clone().heartbeat(self.credentials.sign(request)).await?.into_inner())
    }
}

/// How gRPC spells Retry-After.
fn asks_to_wait(status: &Status) -> Option<Duration> {
    let given = status.metadata().get("grpc-retry-pushback-ms")?;
    let millis = given.to_str().ok()?.parse().ok()?;
    (status.code() == Code::ResourceExhausted).then(|| Duration::from_millis(millis))
}

fn no_answer(asked: usize, answered: usize) -> Error {
    let message = format!("{asked} jobs were sent and {answered} answered");
    Error::Unavailable { call: "Enqueue", code: Code::Internal, message }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}
