//! A server of its own for each test.

use std::sync::Arc;

use axum::http::Method;
use giga_blobs::{FolderLogs, ObjectArtifacts};
use giga_broker::Embedded;
use giga_coordinator::{
    AddWebhook, Coordinator, MergeHolder, NewTopicWork, OpenStream, Options, Ports, SubmitRequest,
};
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::manifest::parse_markdown;
use giga_domain::token::Role;
use giga_domain::topic::{DEFAULT_RETRY, Outcome};
use giga_domain::{
    Actor, CapabilitySet, Event, EventKind, FactoryId, FeedPos, Holder, HolderAction, Job, JobId,
    MergeOutcome, Priority, ProductId, ProfileContent, RunReport, TopicName, WorkerId,
};
use giga_ports::Store;
use giga_ports::effects::TrackerItem;
use giga_ports::topics::Settle;
use giga_server::{ServerOptions, serve};
use giga_store::{BatchStore, MemoryBackend, MemoryTopics, Tuning};
use giga_testkit::effects::Recorded;
use giga_testkit::secret_keys::TestSecretKeys;
use giga_testkit::{ManualClock, SeededRandomness};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::Call;
use crate::probe::Probe;

pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<Probe>,
    pub(crate) coordinator: Arc<Coordinator>,
    /// The world outside.
    pub(crate) outside: Arc<Recorded>,
    pub(crate) secret_keys: Arc<TestSecretKeys>,
    pub(crate) url: String,
    pub(crate) http: reqwest::Client,
    pub(crate) shutdown: CancellationToken,
    pub(crate) server: JoinHandle<std::io::Result<()>>,
    /// For every product.
    pub(crate) admin: String,
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(ServerOptions::default()).await
    }

    pub(crate) async fn start_with(options: ServerOptions) -> Self {
        Self::build(options, false).await
    }

    /// One whose commits all seem to come from another process.
    pub(crate) async fn start_deaf(options: ServerOptions) -> Self {
        Self::build(options, true).await
    }

    async fn build(options: ServerOptions, deaf: bool) -> Self {
        let clock = Arc::new(ManualClock::default());
        let backend = MemoryBackend::new(clock.clone());
        let memory: Arc<dyn Store> = Arc::new(BatchStore::start(backend, Tuning::default()).await.unwrap());
        let store = Arc::new(Probe::new(memory, deaf));
        let random = Arc::new(SeededRandomness::new(11));
        let folder = tempfile::tempdir().unwrap();
        let outside = Arc::new(Recorded::default());
        let secret_keys = Arc::new(TestSecretKeys::default());
        let ports = Ports {
            store: store.clone(),
            topics: Arc::new(MemoryTopics::new(clock.clone())),
            broker: Arc::new(Embedded::new()),
            clock: clock.clone(),
            random,
            logs: Arc::new(FolderLogs::new(folder.path().join("logs"))),
            artifacts: Arc::new(ObjectArtifacts::folder(&folder.path().join("artifacts")).unwrap()),
            effects: outside.clone(),
            secret_keys: secret_keys.clone(),
            pool_drivers: giga_ports::PoolDrivers::default(),
        };
        let coordinator = Coordinator::start(ports, Options::default()).await.unwrap();
        let admin = coordinator.new_admin().await.unwrap().reveal().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let server = tokio::spawn(serve(coordinator.clone(), listener, options, shutdown.clone()));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { clock, store, coordinator, outside, secret_keys, url, http, shutdown, server, admin, folder }
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(&self.http, method, format!("{}{path}", self.url))
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }

    pub(crate) async fn token(&self, role: Role, products: &[&str]) -> String {
        let products = products.iter().map(|p| p.parse().unwrap()).collect();
        let (_, secret) = self.coordinator.issue_token(role, products, String::new(), actor()).await.unwrap();
        secret.reveal().to_owned()
    }

    /// Enrolled and seen once; its token.
    pub(crate) async fn factory(&self, id: &str, products: &[&str]) -> String {
        let products: Vec<ProductId> = products.iter().map(|p| p.parse().unwrap()).collect();
        let scope = FactoryScope { products, capabilities: None };
        let id: FactoryId = id.parse().unwrap();
        let (_, secret) = self.coordinator.enroll(id.clone(), scope, actor()).await.unwrap();
        let advertised = Advertised {
            capabilities: CapabilitySet::parse(["os:linux"]).unwrap(),
            seat_limit: 8,
            can_clone: true,
            ..Advertised::default()
        };
        self.coordinator.heartbeat(id, advertised).await.unwrap();
        secret.reveal().to_owned()
    }

    /// Enqueued, sent to a worker, and failed for good.
    pub(crate) async fn dead_topic_job(&self, product: &str, topic: &str) -> JobId {
        let product: ProductId = product.parse().unwrap();
        let (topic, worker) = (topic.parse::<TopicName>().unwrap(), "w-dead".parse::<WorkerId>().unwrap());
        let work = NewTopicWork {
            topic: topic.clone(),
            priority: Priority::Normal,
            payload: b"{}".to_vec(),
            idempotency_key: None,
            run_at: None,
            retry: DEFAULT_RETRY,
        };
        let enqueued = self.coordinator.topics().enqueue(&product, vec![work]).await.unwrap();
        let open = OpenStream { product, topics: vec![topic], worker: worker.clone(), max_in_flight: 1 };
        let mut stream = self.coordinator.topics().open_stream(open).unwrap();
        let dealt = stream.next(1, 1).await.unwrap().remove(0);
        let outcome = Outcome::Failure { error: "no such address".to_owned(), retryable: false };
        let result = Settle { id: dealt.job.id, epoch: dealt.job.epoch, outcome };
        self.coordinator.topics().report(None, &worker, vec![result]).await.unwrap();
        enqueued[0].id()
    }

    /// The next version of a profile.
    pub(crate) async fn profile(&self, product: &str, name: &str, front_matter: &str) -> u32 {
        let text = format!("---\n{front_matter}---\nYou are {name}.\n");
        let content = ProfileContent::from_markdown(text.as_bytes()).unwrap();
        let added =
            self.coordinator.add_profile(product.parse().unwrap(), name.to_owned(), content, actor()).await;
        added.unwrap().version
    }

    /// An item in the tracker `github`.
    pub(crate) fn item(&self, repo: &str, number: u32) {
        let item = TrackerItem {
            item: format!("acme/{repo}#{number}"),
            url: format!("https://github.com/acme/{repo}/issues/{number}"),
            title: format!("Item {number}"),
            body: "It says helo.".to_owned(),
            labels: Vec::new(),
        };
        self.outside.put_item("github", item);
    }

    /// The job of such an item.
    pub(crate) async fn tracked(&self, product: &str, number: u32) -> Job {
        self.item(product, number);
        let manifest = json!({ "product": product });
        let item = format!("acme/{product}#{number}");
        let body = json!({ "tracker": "github", "item": item, "manifest": manifest });
        let made = self.post("/api/fleet/tracker/ingest").token(&self.admin).json(body).gives(201).await;
        self.job(made.json()["job"]["id"].as_str().unwrap().parse().unwrap()).await
    }

    /// A webhook of the product, and what a test of it put into the outbox.
    pub(crate) async fn webhook(&self, product: &str) -> (String, String) {
        let add = AddWebhook {
            product: Some(product.parse().unwrap()),
            url: "https://example.com/hook".to_owned(),
            kinds: vec![EventKind::Diverged],
            actor: actor(),
        };
        let webhook = self.coordinator.effects().add_webhook(add).await.unwrap();
        let effect = self.coordinator.effects().test_webhook(&webhook, &actor()).await.unwrap();
        (webhook.id.to_string(), effect.id.to_string())
    }

    /// A token with a label, which is whom it speaks for.
    pub(crate) async fn labelled(&self, role: Role, label: &str) -> String {
        let issued = self.coordinator.issue_token(role, Vec::new(), label.to_owned(), actor()).await;
        issued.unwrap().1.reveal().to_owned()
    }

    pub(crate) async fn submit(&self, product: &str, front_matter: &str) -> Job {
        let text = format!("---\n{front_matter}\n---\nDo it.\n");
        let (manifest, body) = parse_markdown(text.as_bytes()).unwrap();
        let request = SubmitRequest { product: product.parse().unwrap(), manifest, body, actor: actor() };
        self.coordinator.submit(request).await.unwrap().job
    }

    pub(crate) async fn claim(&self, factory: &str, request: &str) -> Job {
        let claimed =
            self.coordinator.claims().claim(factory.parse().unwrap(), request.parse().unwrap()).await;
        claimed.unwrap().expect("a job to claim")
    }

    pub(crate) async fn hold(&self, job: &Job, actions: Vec<HolderAction>) -> Job {
        let holder = Holder { factory: job.last_factory.clone().unwrap(), epoch: job.epoch };
        self.coordinator.hold(job.id, holder, actions).await.unwrap()
    }

    /// A job that the factory is building.
    pub(crate) async fn building(&self, product: &str, factory: &str, name: &str) -> Job {
        self.submit(product, &format!("name: {name}")).await;
        let job = self.claim(factory, name).await;
        self.hold(&job, vec![HolderAction::Start]).await
    }

    pub(crate) async fn in_review(&self, product: &str, factory: &str, name: &str) -> Job {
        self.submit(product, &format!("name: {name}\nreview: {{quorum: 1}}")).await;
        let job = self.claim(factory, name).await;
        self.hold(&job, vec![HolderAction::Start, HolderAction::Report(RunReport::default())]).await
    }

    /// A job that ran on the factory, handed a branch over, and was shipped.
    pub(crate) async fn shipped(&self, product: &str, factory: &str, name: &str) -> Job {
        self.submit(product, &format!("name: {name}\nrepo: hello")).await;
        let job = self.claim(factory, name).await;
        let report = RunReport {
            branch: Some(format!("giga/job/{}/1", job.id)),
            commit: Some("c0ffee".to_owned()),
            ..RunReport::default()
        };
        let job = self.hold(&job, vec![HolderAction::Start, HolderAction::Report(report)]).await;
        let path = format!("/api/fleet/jobs/{}/actions/ship", job.id);
        self.post(&path).token(&self.admin).gives(200).await;
        self.job(job.id).await
    }

    /// A job that is shipping, merged by the factory that ran it.
    pub(crate) async fn merged(&self, job: &Job) {
        let factory = self.job(job.id).await.last_factory.expect("it ran");
        let taken = self.coordinator.take_merges(factory.clone()).await.unwrap().remove(0).job;
        let holder = MergeHolder::one(factory, taken.id, taken.merge.expect("it was taken").attempt);
        let outcome = MergeOutcome::Merged { commit: "abc".to_owned(), into: "main".to_owned(), note: None };
        let merged = self.coordinator.settle_merge(holder, outcome).await.unwrap();
        assert_eq!(merged.id, job.id);
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.coordinator.reads().job(id).await.unwrap().unwrap()
    }

    pub(crate) async fn feed(&self) -> Vec<Event> {
        self.coordinator.feed(FeedPos::ZERO, 100_000).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) fn actor() -> Actor {
    Actor::system("test")
}
