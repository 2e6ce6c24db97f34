//! Coordinators on one store of topics that counts what it is asked, with a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use giga_blobs::{FolderLogs, ObjectArtifacts};
use giga_broker::Embedded;
use giga_coordinator::{
    Coordinator, Dealt, NewTopicWork, OpenStream, Options, Ports, ReportStatus, WorkerStream,
};
use giga_domain::topic::{DEFAULT_RETRY, Outcome, TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, JobId, Priority};
use giga_ports::topics::{Assignment, Enqueued, Settle, Swept, TopicClaim};
use giga_ports::{InterceptTopics, StoreError, TopicStore};
use giga_store::{BatchStore, MemoryBackend, MemoryTopics, Tuning};
use giga_testkit::{ManualClock, SeededRandomness};
use parking_lot::Mutex;

type Result<T> = std::result::Result<T, StoreError>;

/// Counts calls, and fails claims and looks for ended leases when told to.
pub(crate) struct Counting {
    inner: MemoryTopics,
    calls: AtomicUsize,
    claims: AtomicUsize,
    expiries: AtomicUsize,
    lowered: Mutex<Vec<(TopicKey, JobId)>>,
    pub(crate) claims_fail: AtomicBool,
    pub(crate) expiries_fail: AtomicBool,
}

impl Counting {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn claims(&self) -> usize {
        self.claims.load(Ordering::SeqCst)
    }

    pub(crate) fn expiries(&self) -> usize {
        self.expiries.load(Ordering::SeqCst)
    }

    /// What the store was told to look below for.
    pub(crate) fn lowered(&self) -> Vec<(TopicKey, JobId)> {
        self.lowered.lock().clone()
    }
}

fn told_to_fail() -> StoreError {
    StoreError::Unavailable { reason: "told to fail".to_owned(), source: None }
}

impl InterceptTopics for Counting {
    fn inner(&self) -> &dyn TopicStore {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        _: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        answer.await
    }

    async fn claim(&self, claim: TopicClaim) -> Result<Vec<Assignment>> {
        self.claims.fetch_add(1, Ordering::SeqCst);
        if self.claims_fail.load(Ordering::SeqCst) {
            return Err(told_to_fail());
        }
        self.inner.claim(claim).await
    }

    async fn expire(&self, limit: usize) -> Result<Swept> {
        self.expiries.fetch_add(1, Ordering::SeqCst);
        if self.expiries_fail.load(Ordering::SeqCst) {
            return Err(told_to_fail());
        }
        self.inner.expire(limit).await
    }

    fn ready_below(&self, key: &TopicKey, lowest: JobId) {
        self.lowered.lock().push((key.clone(), lowest));
    }
}

pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) topics: Arc<Counting>,
    pub(crate) broker: Embedded,
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) ports: Ports,
    _folder: tempfile::TempDir,
}

impl World {
    /// Everything runs by itself.
    pub(crate) async fn start() -> Self {
        Self::build(true).await
    }

    /// Nothing happens but what the test calls.
    pub(crate) async fn by_hand() -> Self {
        Self::build(false).await
    }

    async fn build(by_itself: bool) -> Self {
        let clock = Arc::new(ManualClock::default());
        let backend = MemoryBackend::new(clock.clone());
        let store = Arc::new(BatchStore::start(backend, Tuning::default()).await.unwrap());
        let topics = Arc::new(Counting {
            inner: MemoryTopics::new(clock.clone()),
            calls: AtomicUsize::new(0),
            claims: AtomicUsize::new(0),
            expiries: AtomicUsize::new(0),
            lowered: Mutex::default(),
            claims_fail: AtomicBool::new(false),
            expiries_fail: AtomicBool::new(false),
        });
        let broker = Embedded::new();
        let folder = tempfile::tempdir().unwrap();
        let ports = Ports {
            store,
            topics: topics.clone(),
            broker: Arc::new(broker.clone()),
            clock: clock.clone(),
            random: Arc::new(SeededRandomness::new(3)),
            logs: Arc::new(FolderLogs::new(folder.path().join("logs"))),
            artifacts: Arc::new(ObjectArtifacts::folder(folder.path()).unwrap()),
            effects: Arc::new(giga_testkit::effects::Recorded::default()),
            secret_keys: Arc::new(giga_ports::NoSecretKeys),
            pool_drivers: giga_ports::PoolDrivers::default(),
        };
        let started = if by_itself {
            Coordinator::start(ports.clone(), Options::default()).await
        } else {
            Coordinator::by_hand(ports.clone(), Options::default()).await
        };
        Self { clock, topics, broker, coordinator: started.unwrap(), ports, _folder: folder }
    }

    /// Another coordinator on the same stores and broker.
    pub(crate) async fn another(&self) -> Arc<Coordinator> {
        Coordinator::start(self.ports.clone(), Options::default()).await.unwrap()
    }

    pub(crate) fn open(&self, worker: &str, topics: &[&str], max_in_flight: u32) -> WorkerStream {
        open(&self.coordinator, worker, topics, max_in_flight)
    }

    pub(crate) async fn enqueue(&self, topic: &str, count: usize) -> Vec<JobId> {
        enqueue(&self.coordinator, (0..count).map(|_| work(topic)).collect()).await
    }

    pub(crate) async fn claim(&self) {
        self.coordinator.topics().claim_once().await.unwrap();
    }

    pub(crate) async fn report(&self, dealt: &Dealt, outcome: Outcome) -> ReportStatus {
        report(&self.coordinator, dealt, outcome).await
    }

    pub(crate) async fn job(&self, id: JobId) -> TopicJob {
        self.topics.inner.job(id).await.unwrap().unwrap()
    }

    pub(crate) async fn stage(&self, id: JobId) -> TopicStage {
        self.job(id).await.head.state.stage()
    }
}

pub(crate) fn actor() -> Actor {
    Actor::system("test")
}

pub(crate) fn key(topic: &str) -> TopicKey {
    TopicKey { product: "demo".parse().unwrap(), topic: topic.parse().unwrap() }
}

pub(crate) fn work(topic: &str) -> NewTopicWork {
    NewTopicWork {
        topic: topic.parse().unwrap(),
        priority: Priority::Normal,
        payload: b"{}".to_vec(),
        idempotency_key: None,
        run_at: None,
        retry: DEFAULT_RETRY,
    }
}

pub(crate) async fn enqueue(coordinator: &Coordinator, jobs: Vec<NewTopicWork>) -> Vec<JobId> {
    let product = "demo".parse().unwrap();
    let enqueued = coordinator.topics().enqueue(&product, jobs).await.unwrap();
    enqueued.iter().map(Enqueued::id).collect()
}

pub(crate) fn open(
    coordinator: &Arc<Coordinator>,
    worker: &str,
    topics: &[&str],
    max_in_flight: u32,
) -> WorkerStream {
    let open = OpenStream {
        product: "demo".parse().unwrap(),
        topics: topics.iter().map(|topic| topic.parse().unwrap()).collect(),
        worker: worker.parse().unwrap(),
        max_in_flight,
    };
    coordinator.topics().open_stream(open).unwrap()
}

pub(crate) async fn report(coordinator: &Coordinator, dealt: &Dealt, outcome: Outcome) -> ReportStatus {
    let result = Settle { id: dealt.job.id, epoch: dealt.job.epoch, outcome };
    coordinator.topics().report(None, &dealt.job.worker, vec![result]).await.unwrap()[0]
}

/// What waits in the stream now.
pub(crate) async fn taken(stream: &mut WorkerStream) -> Vec<Dealt> {
    let now = tokio::time::timeout(Duration::ZERO, stream.next(usize::MAX, usize::MAX)).await;
    now.ok().flatten().unwrap_or_default()
}

/// The next that comes, within a time that only a failure takes.
pub(crate) async fn next(stream: &mut WorkerStream) -> Vec<Dealt> {
    let next = tokio::time::timeout(Duration::from_secs(20), stream.next(usize::MAX, usize::MAX)).await;
    next.expect("nothing came").expect("the stream ended")
}

pub(crate) fn ids(dealt: &[Dealt]) -> Vec<JobId> {
    dealt.iter().map(|dealt| dealt.job.id).collect()
}
