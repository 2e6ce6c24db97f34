//! Streams that misbehave, against a stand-in for the coordinator's stream; everything else is the real coordinator.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::Stream;
use giga_api::client::{Client, ClientOptions};
use giga_api::wire::{ClaimAnswer, ClaimRequest, Health, HeartbeatRequest, RepoEntry, RunOutcome, Stage};
use giga_domain::{Delivery, Timestamp};
use giga_proto::v1::fleet_server::{Fleet, FleetServer};
use giga_proto::v1::receive_grants_response::Event;
use giga_proto::v1::{Grant, News, ReceiveGrantsRequest, ReceiveGrantsResponse};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, broadcast};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use super::proxy::Proxy;
use super::world::{Factory, LEASE_MS, LOOK_AGAIN, PATIENCE, World, mirror_branches, work_folders};

/// How often a factory says that it is there.
const OFTEN_MS: u64 = 250;

/// Sends what the test says.
#[derive(Clone)]
struct StandIn {
    say: broadcast::Sender<Event>,
    /// Who asked, with what token.
    asked: Arc<Mutex<Vec<(String, String)>>>,
    knows_streams: bool,
}

type GrantStream = Pin<Box<dyn Stream<Item = Result<ReceiveGrantsResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Fleet for StandIn {
    type ReceiveGrantsStream = GrantStream;

    async fn receive_grants(
        &self,
        request: Request<ReceiveGrantsRequest>,
    ) -> Result<Response<GrantStream>, Status> {
        if !self.knows_streams {
            return Err(Status::unimplemented("no such thing"));
        }
        let token = request.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
        self.asked.lock().await.push((request.into_inner().factory_id, token));
        let events = futures::stream::unfold(self.say.subscribe(), async |mut events| {
            let event = events.recv().await.ok()?;
            Some((Ok(ReceiveGrantsResponse { event: Some(event) }), events))
        });
        Ok(Response::new(Box::pin(events)))
    }
}

impl StandIn {
    async fn start(knows_streams: bool) -> (Self, SocketAddr) {
        let stand_in = Self { say: broadcast::Sender::new(64), asked: Arc::default(), knows_streams };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder().add_service(FleetServer::new(stand_in.clone()));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        (stand_in, address)
    }

    fn grant(&self, claim: &ClaimAnswer) {
        self.say.send(Event::Grant(giga_server::grant_message(claim.clone()))).unwrap();
    }
}

struct Scene {
    world: World,
    _proxy: Proxy,
    stand_in: StandIn,
    factory: Factory,
    claims: AtomicU64,
}

impl Scene {
    async fn start(knows_streams: bool, heartbeat_ms: u64, seats: u32) -> Self {
        let world = World::start().await;
        world.set_flag("heartbeat_interval_ms", json!(heartbeat_ms)).await;
        world.set_flag("delivery", json!("stream")).await;
        let proxy = Proxy::of(&world.url).await;
        let (stand_in, address) = StandIn::start(knows_streams).await;
        proxy.streams_to(address);
        let mut config = world.config("a");
        config.url.clone_from(&proxy.url);
        config.seats = seats;
        let factory = Factory::start(config);
        Self { world, _proxy: proxy, stand_in, factory, claims: AtomicU64::new(0) }
    }

    fn token(&self) -> String {
        std::fs::read_to_string(self.world.base("a").join("factory.token")).unwrap().trim().to_owned()
    }

    /// Claims as the coordinator does for a factory that streams.
    async fn claim(&self, count: u32) -> Vec<ClaimAnswer> {
        let options = ClientOptions {
            url: self.world.url.clone(),
            token: Some(self.token()),
            ..ClientOptions::default()
        };
        let client = Client::new(options).unwrap();
        let waited = tokio::time::timeout(PATIENCE, async {
            let mut claims = Vec::new();
            while claims.len() < count as usize {
                // Its own heartbeats tell of fewer seats; this one speaks for the moment.
                let beat = HeartbeatRequest {
                    factory_id: "a".to_owned(),
                    capabilities: vec!["engine:shell".to_owned()],
                    repos: vec![RepoEntry::Name("hello".to_owned())],
                    seat_limit: count,
                    load: 0.0,
                    health: Health::Ok,
                    health_reason: None,
                    can_clone: false,
                    clones: Vec::new(),
                    instance: None,
                    take_over: false,
                    cost_usd_per_hour: None,
                    delivery: Some(Delivery::Stream.into()),
                    accounts: Vec::new(),
                };
                client.heartbeat(&beat).await.unwrap();
                let request = ClaimRequest {
                    factory_id: "a".to_owned(),
                    request_id: format!("for-the-stream-{}", self.claims.fetch_add(1, Ordering::Relaxed)),
                    ..ClaimRequest::default()
                };
                claims.extend(client.claim(&request).await.unwrap());
            }
            claims
        });
        waited.await.expect("there is something to claim")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_comes_twice_is_run_once() {
    let scene = Scene::start(true, OFTEN_MS, 3).await;
    let world = &scene.world;
    world.until_delivered_by("a", Delivery::Stream).await;
    assert_eq!(
        *scene.stand_in.asked.lock().await,
        [("a".to_owned(), format!("Bearer {}", scene.token()))],
        "it asked once, for itself, with its own token"
    );
    let (gate, count) = (world.gate("gate"), world.path().join("count"));
    let script = format!("echo once >> {}; echo up; read _ < {}", count.display(), gate.display());
    let job = world.submit("twice", "ship: auto", &script).await;
    let claim = scene.claim(1).await.remove(0);
    scene.stand_in.grant(&claim);
    scene.stand_in.grant(&claim);
    world.until_logged(&job, "up\n").await;
    scene.stand_in.grant(&claim);
    std::fs::write(gate, "go\n").unwrap();
    world.until_stage(&job, Stage::Shipped).await;
    // What comes after the third has been read after it.
    let next = world.submit("next", "ship: auto", "true").await;
    scene.stand_in.grant(&scene.claim(1).await[0]);
    world.until_stage(&next, Stage::Shipped).await;
    assert_eq!(std::fs::read_to_string(count).unwrap(), "once\n");
    assert_eq!(world.runs(&job).await.len(), 1);
    scene.factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_without_a_seat_keeps_its_lease_until_there_is_one() {
    let scene = Scene::start(true, OFTEN_MS, 1).await;
    let world = &scene.world;
    world.until_delivered_by("a", Delivery::Stream).await;
    let gate = world.gate("gate");
    let first = world.submit("first", "ship: auto", &format!("echo up; read _ < {}", gate.display())).await;
    let second = world.submit("second", "ship: auto", "true").await;
    let claims = scene.claim(2).await;
    let first_claim = claims.iter().find(|claim| claim.job.id == first).unwrap();
    let second_claim = claims.iter().find(|claim| claim.job.id == second).unwrap();
    scene.stand_in.grant(first_claim);
    world.until_logged(&first, "up\n").await;
    scene.stand_in.grant(second_claim);
    // Only who renews is still the holder after twice the length of a lease.
    let long_after = expiry(second_claim).plus(Duration::from_millis(2 * LEASE_MS));
    let waited = tokio::time::timeout(PATIENCE, async {
        while world.lease_of(&second).await.is_none_or(|expires| expires < long_after) {
            assert_eq!(world.job(&second).await.stage, Stage::Assigned);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    });
    waited.await.expect("the lease is renewed");
    std::fs::write(gate, "go\n").unwrap();
    for job in [&first, &second] {
        assert_eq!(world.until_stage(job, Stage::Shipped).await.lease_epoch, 1);
    }
    scene.factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_comes_too_late_leaves_no_trace() {
    let scene = Scene::start(true, OFTEN_MS, 1).await;
    let world = &scene.world;
    world.origin("hello");
    world.until_delivered_by("a", Delivery::Stream).await;
    let more = "repo: hello\nship: auto\nretry: {max: 3, backoff: 0s}";
    let job = world.submit("late", more, "echo hello > greeting.txt").await;
    let late = scene.claim(1).await.remove(0);
    // As on a line that was cut: the lease ends, and what was sent arrives afterwards.
    world.until(&job, |job| job.lease.is_none()).await;
    scene.stand_in.grant(&late);
    scene.stand_in.grant(&scene.claim(1).await[0]);
    world.until_stage(&job, Stage::Shipping).await;
    scene.stand_in.say.send(Event::News(News {})).unwrap();
    world.until_stage(&job, Stage::Shipped).await;
    let outcomes: Vec<_> = world.runs(&job).await.into_iter().map(|run| run.outcome).collect();
    assert_eq!(outcomes, [RunOutcome::Expired, RunOutcome::Succeeded]);
    scene.factory.drain().await;
    assert_eq!(mirror_branches(&world.base("a"), "giga/quarantine"), Vec::<String>::new());
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_on_a_stream_is_passed_over() {
    let scene = Scene::start(true, OFTEN_MS, 1).await;
    let world = &scene.world;
    world.until_delivered_by("a", Delivery::Stream).await;
    let job = world.submit("fine", "ship: auto", "true").await;
    let claim = scene.claim(1).await.remove(0);
    scene.stand_in.say.send(Event::Grant(Grant { job_id: "{".to_owned(), ..Grant::default() })).unwrap();
    scene.stand_in.say.send(Event::News(News {})).unwrap();
    scene.stand_in.grant(&claim);
    assert_eq!(world.until_stage(&job, Stage::Shipped).await.lease_epoch, 1);
    assert_eq!(scene.stand_in.asked.lock().await.len(), 1, "the stream went on");
    scene.factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn news_make_it_look_at_once() {
    // With heartbeats so rare, only news can be the reason.
    let scene = Scene::start(true, 600_000, 1).await;
    let world = &scene.world;
    world.origin("hello");
    world.until_delivered_by("a", Delivery::Stream).await;
    let job = world.submit("fix", "repo: hello\nship: auto", "echo hello > greeting.txt").await;
    scene.stand_in.grant(&scene.claim(1).await[0]);
    world.until_stage(&job, Stage::Shipping).await;
    scene.stand_in.say.send(Event::News(News {})).unwrap();
    world.until_merged(&job).await;

    world.set_flag("delivery.a", json!("poll")).await;
    scene.stand_in.say.send(Event::News(News {})).unwrap();
    world.until_delivered_by("a", Delivery::Poll).await;
    scene.factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_that_knows_no_streams_is_polled() {
    let scene = Scene::start(false, OFTEN_MS, 1).await;
    let job = scene.world.submit("polled", "ship: auto", "true").await;
    scene.world.until_stage(&job, Stage::Shipped).await;
    scene.world.until_delivered_by("a", Delivery::Poll).await;
    scene.factory.drain().await;
}

fn expiry(claim: &ClaimAnswer) -> Timestamp {
    claim.expires_at.parse().unwrap()
}
