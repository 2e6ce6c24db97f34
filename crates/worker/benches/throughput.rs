//! How many no-op jobs per second the library carries, against a coordinator that costs next to nothing: it deals a new job
//! for each that is reported, from its own threads. `cargo bench -p giga-worker --bench throughput`; another number of
//! seconds, of handlers at once or of bytes of payload by SECONDS, CONCURRENCY and PAYLOAD.
#![expect(clippy::unwrap_used, reason = "a benchmark has nobody to hand an error to")]
#![expect(clippy::print_stdout, reason = "its numbers are what it is for")]

use std::collections::HashMap;
use std::pin::Pin;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use giga_proto::v1;
use giga_proto::v1::dispatch_server::{Dispatch, DispatchServer};
use giga_worker::{Client, Config, Task, Worker};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

type Sent = Result<v1::StreamJobsResponse, Status>;

#[derive(Default)]
struct Dealer {
    stream: Mutex<Option<mpsc::UnboundedSender<Sent>>>,
    dealt: AtomicU64,
    reports: Arc<Reports>,
    payload: usize,
}

#[derive(Default)]
struct Reports {
    calls: AtomicU64,
    results: AtomicU64,
}

impl Dealer {
    fn deal(&self, count: usize) {
        let first = self.dealt.fetch_add(count as u64, Ordering::Relaxed);
        let assignments = (first..first + count as u64).map(|n| v1::Assignment {
            job_id: format!("{n:026}"),
            topic: "noop".to_owned(),
            epoch: 1,
            attempt: 1,
            priority: v1::Priority::Normal.into(),
            payload: vec![7; self.payload],
            created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 1 }),
            expires_at: Some(prost_types::Timestamp { seconds: 1_800_000_060, nanos: 1 }),
            lease_ms: 60_000,
        });
        let message = v1::StreamJobsResponse { assignments: assignments.collect() };
        if let Some(stream) = &*self.stream.lock() {
            let _ = stream.send(Ok(message));
        }
    }
}

#[tonic::async_trait]
impl Dispatch for Dealer {
    type StreamJobsStream = Pin<Box<dyn futures::Stream<Item = Sent> + Send>>;

    async fn stream_jobs(
        &self,
        request: Request<v1::StreamJobsRequest>,
    ) -> Result<Response<Self::StreamJobsStream>, Status> {
        let (stream, mut sent) = mpsc::unbounded_channel();
        *self.stream.lock() = Some(stream);
        self.deal(request.into_inner().max_in_flight as usize);
        Ok(Response::new(Box::pin(futures::stream::poll_fn(move |context| sent.poll_recv(context)))))
    }

    async fn report_result(
        &self,
        request: Request<v1::ReportResultRequest>,
    ) -> Result<Response<v1::ReportResultResponse>, Status> {
        let count = request.into_inner().results.len();
        self.reports.calls.fetch_add(1, Ordering::Relaxed);
        self.reports.results.fetch_add(count as u64, Ordering::Relaxed);
        self.deal(count);
        let statuses = vec![v1::ResultStatus::Recorded.into(); count];
        Ok(Response::new(v1::ReportResultResponse { statuses }))
    }

    async fn heartbeat(
        &self,
        _: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        Ok(Response::new(v1::HeartbeatResponse::default()))
    }

    async fn enqueue(&self, _: Request<v1::EnqueueRequest>) -> Result<Response<v1::EnqueueResponse>, Status> {
        Err(Status::unimplemented("nothing is enqueued here"))
    }
}

fn runtime(name: &str) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).thread_name(name).enable_all().build().unwrap()
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Seconds of processor time by the name of the thread, where the kernel tells.
fn processor_time() -> HashMap<String, f64> {
    let mut times = HashMap::new();
    for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        let scheduled = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let nanos: f64 = scheduled.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        *times.entry(name.trim().to_owned()).or_default() += nanos / 1e9;
    }
    times
}

fn main() {
    let seconds = setting("SECONDS", 5);
    let concurrency = setting("CONCURRENCY", 100);
    let dealer = Dealer { payload: setting("PAYLOAD", 200), ..Dealer::default() };
    let reports = dealer.reports.clone();
    let (server, worker) = (runtime("dealer"), runtime("worker"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    server.spawn(async move {
        let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener).unwrap());
        let incoming = incoming.with_nodelay(Some(true));
        Server::builder()
            .add_service(DispatchServer::new(dealer))
            .serve_with_incoming(incoming)
            .await
            .unwrap();
    });
    let started = Instant::now();
    let summary = worker.block_on(async move {
        let client = Client::connect(Config::new(url, "giga_bench")).await.unwrap();
        let worker = Worker::new(client).concurrency(concurrency).handle("noop", |_: Task| async { Ok(()) });
        worker.run(tokio::time::sleep(Duration::from_secs(seconds as u64))).await.unwrap()
    });
    let elapsed = started.elapsed().as_secs_f64();
    let (calls, results) = (reports.calls.load(Ordering::Relaxed), reports.results.load(Ordering::Relaxed));
    let rate = summary.succeeded as f64 / elapsed;
    println!("{rate:.0} jobs/s with {concurrency} handlers at once over {elapsed:.1} s: {summary:?}");
    println!(
        "{:.1} results per report, {:.0} reports/s",
        results as f64 / calls as f64,
        calls as f64 / elapsed
    );
    let times = processor_time();
    for part in ["worker", "dealer"] {
        let used = times.get(part).copied().unwrap_or_default();
        let per_job = used * 1e6 / results as f64;
        println!("{part}: {:.2} processors, {per_job:.2} µs per job", used / elapsed);
    }
}
