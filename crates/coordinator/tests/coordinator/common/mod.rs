//! A coordinator on the memory store with a clock that the test moves.

pub(crate) mod counted;

use std::sync::Arc;
use std::time::Duration;

use giga_blobs::{FolderLogs, ObjectArtifacts};
use giga_broker::Embedded;
use giga_coordinator::{Coordinator, Options, Ports, SubmitAnswer, SubmitRequest};
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::manifest::parse_markdown;
use giga_domain::{
    Actor, CapabilitySet, Delivery, FactoryId, Holder, HolderAction, Job, JobId, RequestId, RunReport, Stage,
};
use giga_ports::Store;
use giga_store::{BatchStore, MemoryBackend, MemoryTopics, Tuning};
use giga_testkit::{ManualClock, SeededRandomness};

pub(crate) struct Fleet {
    pub(crate) clock: Arc<ManualClock>,
    /// The same one, unless the test asked for another.
    pub(crate) store_clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) broker: Embedded,
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) ports: Ports,
    _folder: tempfile::TempDir,
}

pub(crate) fn operator() -> Actor {
    Actor::system("test")
}

pub(crate) fn factory_id(id: &str) -> FactoryId {
    id.parse().unwrap()
}

pub(crate) fn request(id: impl AsRef<str>) -> RequestId {
    id.as_ref().parse().unwrap()
}

impl Fleet {
    pub(crate) async fn start() -> Self {
        Self::start_with(Arc::new(ManualClock::default())).await
    }

    pub(crate) async fn start_with(clock: Arc<ManualClock>) -> Self {
        let (store, broker, ports, folder) = world(&clock, &clock).await;
        let coordinator = Coordinator::start(ports.clone(), Options::default()).await.unwrap();
        Self { store_clock: clock.clone(), clock, store, broker, coordinator, ports, _folder: folder }
    }

    /// Nothing happens by itself: the test calls the steps.
    pub(crate) async fn by_hand() -> Self {
        let clock = Arc::new(ManualClock::default());
        Self::by_hand_with(clock.clone(), clock).await
    }

    /// The store has a clock of its own.
    pub(crate) async fn by_hand_with(clock: Arc<ManualClock>, store_clock: Arc<ManualClock>) -> Self {
        let (store, broker, ports, folder) = world(&clock, &store_clock).await;
        let coordinator = Coordinator::by_hand(ports.clone(), Options::default()).await.unwrap();
        Self { clock, store_clock, store, broker, coordinator, ports, _folder: folder }
    }

    /// Another coordinator on the same store and broker.
    pub(crate) async fn another_by_hand(&self) -> Arc<Coordinator> {
        Coordinator::by_hand(self.ports.clone(), Options::default()).await.unwrap()
    }

    /// A factory that says it is reached this way.
    pub(crate) async fn factory_by(&self, delivery: Delivery, id: &str, seats: u32) -> FactoryId {
        let id = factory_id(id);
        self.coordinator.enroll(id.clone(), FactoryScope::default(), operator()).await.unwrap();
        self.reached_by(&id, delivery, seats).await;
        id
    }

    /// Its heartbeat, in which it says how it is reached now.
    pub(crate) async fn reached_by(&self, id: &FactoryId, delivery: Delivery, seats: u32) {
        let says = Advertised { delivery: Some(delivery), ..advertised(&[], seats) };
        self.coordinator.heartbeat(id.clone(), says).await.unwrap();
    }

    /// Until the coordinator dispatches.
    pub(crate) async fn until_it_leads(&self) {
        let wait = async {
            while self.coordinator.dispatch().leading().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("nobody leads");
    }

    pub(crate) async fn set_flag(&self, name: &str, value: impl Into<serde_json::Value>) {
        self.coordinator.set_flag(name, value.into(), operator()).await.unwrap();
    }

    pub(crate) async fn factory(&self, id: &str, capabilities: &[&str], seats: u32) -> FactoryId {
        let id = factory_id(id);
        self.coordinator.enroll(id.clone(), FactoryScope::default(), operator()).await.unwrap();
        self.coordinator.heartbeat(id.clone(), advertised(capabilities, seats)).await.unwrap();
        id
    }

    pub(crate) async fn try_submit(
        &self,
        front_matter: &str,
    ) -> Result<SubmitAnswer, giga_coordinator::Error> {
        self.try_submit_for("demo", front_matter).await
    }

    pub(crate) async fn try_submit_for(
        &self,
        product: &str,
        front_matter: &str,
    ) -> Result<SubmitAnswer, giga_coordinator::Error> {
        let text = format!("---\n{front_matter}\n---\nDo it.\n");
        let (manifest, body) = parse_markdown(text.as_bytes()).unwrap();
        let product = product.parse().unwrap();
        self.coordinator.submit(SubmitRequest { product, manifest, body, actor: operator() }).await
    }

    pub(crate) async fn submit(&self, front_matter: &str) -> Job {
        self.try_submit(front_matter).await.unwrap().job
    }

    pub(crate) async fn claim(&self, factory: &FactoryId, name: &str) -> Option<Job> {
        self.coordinator.claims().claim(factory.clone(), request(name)).await.unwrap()
    }

    pub(crate) async fn hold(
        &self,
        job: &Job,
        actions: Vec<HolderAction>,
    ) -> Result<Job, giga_coordinator::Error> {
        let holder = Holder { factory: job.last_factory.clone().unwrap(), epoch: job.epoch };
        self.coordinator.hold(job.id, holder, actions).await
    }

    /// Starts and reports a claimed job.
    pub(crate) async fn finish(&self, job: &Job) -> Job {
        self.hold(job, vec![HolderAction::Start, HolderAction::Report(RunReport::default())]).await.unwrap()
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.read().job(id).await.unwrap().unwrap()
    }

    /// Waits for commits, not for time.
    pub(crate) async fn until_stage(&self, id: JobId, stage: Stage) -> Job {
        let mut head = self.store.head();
        let wait = async {
            loop {
                let job = self.job(id).await;
                if job.stage() == stage {
                    return job;
                }
                head.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the job never got there")
    }
}

pub(crate) fn advertised(capabilities: &[&str], seats: u32) -> Advertised {
    Advertised {
        capabilities: CapabilitySet::parse(capabilities).unwrap(),
        seat_limit: seats,
        can_clone: true,
        ..Advertised::default()
    }
}

async fn world(
    clock: &Arc<ManualClock>,
    store_clock: &Arc<ManualClock>,
) -> (Arc<dyn Store>, Embedded, Ports, tempfile::TempDir) {
    let backend = MemoryBackend::new(store_clock.clone());
    let store: Arc<dyn Store> = Arc::new(BatchStore::start(backend, Tuning::default()).await.unwrap());
    let broker = Embedded::with_clock(clock.clone());
    let folder = tempfile::tempdir().unwrap();
    let ports = Ports {
        store: store.clone(),
        topics: Arc::new(MemoryTopics::new(clock.clone())),
        broker: Arc::new(broker.clone()),
        clock: clock.clone(),
        random: Arc::new(SeededRandomness::new(7)),
        logs: Arc::new(FolderLogs::new(folder.path().join("logs"))),
        artifacts: Arc::new(ObjectArtifacts::folder(folder.path()).unwrap()),
        effects: Arc::new(giga_testkit::effects::Recorded::default()),
        secret_keys: Arc::new(giga_ports::NoSecretKeys),
        pool_drivers: giga_ports::PoolDrivers::default(),
    };
    (store, broker, ports, folder)
}
