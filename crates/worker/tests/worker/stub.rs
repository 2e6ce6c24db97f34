//! A coordinator whose every answer is given by the test. Calls come to the test in the order of their arrival; waiting for
//! one has a deadline, so a test that would wait for ever fails instead.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use giga_proto::v1;
use giga_proto::v1::dispatch_server::{Dispatch, DispatchServer};
use giga_worker::{Client, Config, Error, Summary, Worker};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
pub(crate) const TOKEN: &str = "giga_secret_of_the_tests";

#[derive(Debug)]
pub(crate) struct Call<Q, A> {
    pub(crate) request: Q,
    pub(crate) metadata: MetadataMap,
    answer: oneshot::Sender<Result<A, Status>>,
}

impl<Q, A> Call<Q, A> {
    pub(crate) fn answer(self, answer: A) {
        let _ = self.answer.send(Ok(answer));
    }

    pub(crate) fn fail(self, status: Status) {
        let _ = self.answer.send(Err(status));
    }
}

impl Call<v1::ReportResultRequest, v1::ReportResultResponse> {
    /// Answers with "recorded" for each and returns the ids.
    pub(crate) fn record(self) -> Vec<String> {
        let ids = self.ids();
        let statuses = vec![v1::ResultStatus::Recorded.into(); ids.len()];
        self.answer(v1::ReportResultResponse { statuses });
        ids
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.request.results.iter().map(|result| result.job_id.clone()).collect()
    }
}

pub(crate) type StreamCall = Call<v1::StreamJobsRequest, mpsc::UnboundedReceiver<Sent>>;
pub(crate) type ReportCall = Call<v1::ReportResultRequest, v1::ReportResultResponse>;
pub(crate) type HeartbeatCall = Call<v1::HeartbeatRequest, v1::HeartbeatResponse>;
pub(crate) type EnqueueCall = Call<v1::EnqueueRequest, v1::EnqueueResponse>;
type Sent = Result<v1::StreamJobsResponse, Status>;

/// An open stream, from the coordinator's side.
pub(crate) struct Stream(mpsc::UnboundedSender<Sent>);

impl Stream {
    pub(crate) fn send(&self, assignments: impl IntoIterator<Item = v1::Assignment>) {
        let assignments = assignments.into_iter().collect();
        self.0.send(Ok(v1::StreamJobsResponse { assignments })).unwrap();
    }

    pub(crate) fn fail(self, status: Status) {
        self.0.send(Err(status)).unwrap();
    }

    /// Waits until the worker has hung up.
    pub(crate) async fn left(&self) {
        tokio::time::timeout(DEADLINE, self.0.closed()).await.expect("the worker hangs up");
    }
}

impl StreamCall {
    pub(crate) fn open(self) -> Stream {
        let (jobs, sent) = mpsc::unbounded_channel();
        self.answer(sent);
        Stream(jobs)
    }
}

struct Service {
    streams: mpsc::UnboundedSender<StreamCall>,
    reports: mpsc::UnboundedSender<ReportCall>,
    heartbeats: mpsc::UnboundedSender<HeartbeatCall>,
    enqueues: mpsc::UnboundedSender<EnqueueCall>,
}

async fn ask<Q, A>(calls: &mpsc::UnboundedSender<Call<Q, A>>, request: Request<Q>) -> Result<A, Status> {
    let (answer, answered) = oneshot::channel();
    let (metadata, _, request) = request.into_parts();
    let _ = calls.send(Call { request, metadata, answer });
    // A call that the test drops is one that is never answered.
    match answered.await {
        Ok(answer) => answer,
        Err(_) => std::future::pending().await,
    }
}

#[tonic::async_trait]
impl Dispatch for Service {
    type StreamJobsStream = Pin<Box<dyn futures::Stream<Item = Sent> + Send>>;

    async fn stream_jobs(
        &self,
        request: Request<v1::StreamJobsRequest>,
    ) -> Result<Response<Self::StreamJobsStream>, Status> {
        let mut sent = ask(&self.streams, request).await?;
        Ok(Response::new(Box::pin(futures::stream::poll_fn(move |context| sent.poll_recv(context)))))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        Ok(Response::new(ask(&self.heartbeats, request).await?))
    }

    async fn report_result(
        &self,
        request: Request<v1::ReportResultRequest>,
    ) -> Result<Response<v1::ReportResultResponse>, Status> {
        Ok(Response::new(ask(&self.reports, request).await?))
    }

    async fn enqueue(
        &self,
        request: Request<v1::EnqueueRequest>,
    ) -> Result<Response<v1::EnqueueResponse>, Status> {
        Ok(Response::new(ask(&self.enqueues, request).await?))
    }
}

pub(crate) struct Stub {
    /// Its own, so that ending it cuts every connection as a kill would.
    runtime: Option<Runtime>,
    pub(crate) address: SocketAddr,
    pub(crate) streams: Calls<v1::StreamJobsRequest, mpsc::UnboundedReceiver<Sent>>,
    pub(crate) reports: Calls<v1::ReportResultRequest, v1::ReportResultResponse>,
    pub(crate) heartbeats: Calls<v1::HeartbeatRequest, v1::HeartbeatResponse>,
    pub(crate) enqueues: Calls<v1::EnqueueRequest, v1::EnqueueResponse>,
}

pub(crate) struct Calls<Q, A>(mpsc::UnboundedReceiver<Call<Q, A>>);

impl<Q, A> Calls<Q, A> {
    pub(crate) async fn next(&mut self) -> Call<Q, A> {
        tokio::time::timeout(DEADLINE, self.0.recv()).await.expect("a call comes").unwrap()
    }

    pub(crate) fn none_came(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

impl Stub {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (streams, stream_calls) = mpsc::unbounded_channel();
        let (reports, report_calls) = mpsc::unbounded_channel();
        let (heartbeats, heartbeat_calls) = mpsc::unbounded_channel();
        let (enqueues, enqueue_calls) = mpsc::unbounded_channel();
        let service = DispatchServer::new(Service { streams, reports, heartbeats, enqueues });
        runtime.spawn(async move {
            let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener).unwrap());
            Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
        });
        Self {
            runtime: Some(runtime),
            address,
            streams: Calls(stream_calls),
            reports: Calls(report_calls),
            heartbeats: Calls(heartbeat_calls),
            enqueues: Calls(enqueue_calls),
        }
    }

    /// As when its machine loses its power; the address is free again when this returns.
    pub(crate) async fn kill(mut self) -> SocketAddr {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(DEADLINE)).await.unwrap();
        self.address
    }

    pub(crate) fn config(&self) -> Config {
        Config::new(format!("http://{}", self.address), TOKEN).product("demo")
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.config()).await.unwrap()
    }

    pub(crate) async fn worker(&self) -> Worker {
        Worker::new(self.client().await).id("tester")
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A worker that runs until the test stops it.
pub(crate) struct Running {
    stop: CancellationToken,
    ended: JoinHandle<Result<Summary, Error>>,
}

impl Running {
    pub(crate) fn start(worker: Worker) -> Self {
        let stop = CancellationToken::new();
        let ended = tokio::spawn(worker.run(stop.clone().cancelled_owned()));
        Self { stop, ended }
    }

    pub(crate) fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    /// How it ended, by itself or because it was asked to.
    pub(crate) async fn end(self) -> Result<Summary, Error> {
        tokio::time::timeout(DEADLINE, self.ended).await.expect("the worker ends").unwrap()
    }

    pub(crate) async fn stop(self) -> Summary {
        self.tell_to_stop();
        self.end().await.unwrap()
    }
}

pub(crate) fn job(id: impl Into<String>) -> v1::Assignment {
    v1::Assignment {
        job_id: id.into(),
        topic: "mail".to_owned(),
        epoch: 7,
        attempt: 1,
        lease_ms: 60_000,
        ..v1::Assignment::default()
    }
}

pub(crate) fn jobs(ids: std::ops::Range<usize>) -> Vec<v1::Assignment> {
    ids.map(|n| job(n.to_string())).collect()
}

/// Waits for the next word of a handler.
pub(crate) async fn next_event<T>(channel: &mut mpsc::UnboundedReceiver<T>) -> T {
    tokio::time::timeout(DEADLINE, channel.recv()).await.expect("a handler speaks").unwrap()
}
