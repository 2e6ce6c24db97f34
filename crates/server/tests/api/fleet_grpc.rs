//! `gigafactory.v1.Fleet` with the generated client: jobs for factories, by their own token and no other.

use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::token::Role;
use giga_domain::{CapabilitySet, Delivery, Stage};
use giga_proto::v1::fleet_client::FleetClient;
use giga_proto::v1::receive_grants_response::Event;
use giga_proto::v1::{ReceiveGrantsRequest, ReceiveGrantsResponse};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::world::World;

async fn client(world: &World) -> FleetClient<Channel> {
    FleetClient::new(Channel::from_shared(world.url.clone()).unwrap().connect().await.unwrap())
}

fn by(token: &str, factory: &str) -> Request<ReceiveGrantsRequest> {
    let mut request = Request::new(ReceiveGrantsRequest { factory_id: factory.to_owned() });
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

async fn streaming(world: &World, id: &str) -> String {
    let token = world.factory(id, &["alpha"]).await;
    let advertised = Advertised {
        capabilities: CapabilitySet::parse(["os:linux"]).unwrap(),
        seat_limit: 1,
        can_clone: true,
        delivery: Some(Delivery::Stream),
        ..Advertised::default()
    };
    world.coordinator.heartbeat(id.parse().unwrap(), advertised).await.unwrap();
    token
}

async fn next(stream: &mut Streaming<ReceiveGrantsResponse>) -> Result<Event, Status> {
    let message = tokio::time::timeout(Duration::from_secs(20), stream.message()).await;
    let message = message.expect("nothing came")?;
    Ok(message.expect("the stream ended without a status").event.expect("an empty message"))
}

fn is(status: &Status, code: Code, text: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(text), "{} does not say `{text}`", status.message());
}

#[tokio::test]
async fn a_job_comes_down_the_stream_as_a_claim_would_have_given_it() {
    let world = World::start().await;
    let token = streaming(&world, "f1").await;
    let mut stream = client(&world).await.receive_grants(by(&token, "f1")).await.unwrap().into_inner();
    let job = world.submit("alpha", "name: one\nrepo: hello").await;
    let Event::Grant(grant) = next(&mut stream).await.unwrap() else { panic!("no grant") };
    let (lease, spec) = (grant.lease.unwrap(), grant.spec.unwrap());
    assert_eq!((grant.job_id, lease.epoch), (job.id.to_string(), 1));
    assert_eq!((grant.name.as_str(), grant.body_md.as_str()), ("one", "Do it.\n"));
    assert_eq!((spec.repo.as_deref(), spec.engine), (Some("hello"), None));
    assert_eq!(world.job(job.id).await.stage(), Stage::Assigned);
    assert!(lease.granted_at.unwrap().seconds < lease.expires_at.unwrap().seconds);
    assert!(!grant.job_token.is_empty());
}

#[tokio::test]
async fn only_the_factory_itself_may_listen() {
    let world = World::start().await;
    let token = streaming(&world, "f1").await;
    let other = streaming(&world, "f2").await;
    let mut client = client(&world).await;
    let mut refusal = async |token: &str, factory: &str| {
        client.receive_grants(by(token, factory)).await.expect_err("it was let in")
    };
    is(&refusal(&other, "f1").await, Code::PermissionDenied, "f2");
    is(&refusal(&world.admin.clone(), "f1").await, Code::PermissionDenied, "the token of the factory itself");
    let worker = world.token(Role::Worker, &["alpha"]).await;
    is(&refusal(&worker, "f1").await, Code::PermissionDenied, "the token of the factory itself");
    is(&refusal("nonsense", "f1").await, Code::Unauthenticated, "token");
    is(&refusal(&token, "no such id").await, Code::InvalidArgument, "factory_id");
    let id = "f1".parse().unwrap();
    world.coordinator.revoke_factory_tokens(id, crate::world::actor()).await.unwrap();
    is(&refusal(&token, "f1").await, Code::Unauthenticated, "revoked");
}

#[tokio::test]
async fn one_that_has_said_nothing_yet_is_told_to() {
    let world = World::start().await;
    let enrolled = world
        .coordinator
        .enroll("mute".parse().unwrap(), FactoryScope::default(), crate::world::actor())
        .await;
    let (_, secret) = enrolled.unwrap();
    let refused = client(&world).await.receive_grants(by(secret.reveal(), "mute")).await.unwrap_err();
    is(&refused, Code::FailedPrecondition, "has not sent a heartbeat yet");
}

#[tokio::test]
async fn a_newer_stream_ends_the_older_with_the_reason() {
    let world = World::start().await;
    let token = streaming(&world, "f1").await;
    let mut client = client(&world).await;
    let mut older = client.receive_grants(by(&token, "f1")).await.unwrap().into_inner();
    let mut newer = client.receive_grants(by(&token, "f1")).await.unwrap().into_inner();
    is(&next(&mut older).await.unwrap_err(), Code::Aborted, "a newer stream of this factory took over");
    world.submit("alpha", "name: one").await;
    assert!(matches!(next(&mut newer).await.unwrap(), Event::Grant(_)));
}

#[tokio::test]
async fn a_revoked_token_and_a_shutdown_end_the_stream() {
    let world = World::start().await;
    let token = streaming(&world, "f1").await;
    let second = streaming(&world, "f2").await;
    let mut client = client(&world).await;
    let mut revoked = client.receive_grants(by(&token, "f1")).await.unwrap().into_inner();
    let mut kept = client.receive_grants(by(&second, "f2")).await.unwrap().into_inner();
    world.coordinator.revoke_factory_tokens("f1".parse().unwrap(), crate::world::actor()).await.unwrap();
    is(&next(&mut revoked).await.unwrap_err(), Code::Unauthenticated, "revoked");
    world.shutdown.cancel();
    is(&next(&mut kept).await.unwrap_err(), Code::Unavailable, "shutting down");
}

#[tokio::test]
async fn news_come_when_the_mode_should_change() {
    let world = World::start().await;
    let token = streaming(&world, "f1").await;
    let mut stream = client(&world).await.receive_grants(by(&token, "f1")).await.unwrap().into_inner();
    world.coordinator.set_flag("delivery.f1", "poll".into(), crate::world::actor()).await.unwrap();
    assert!(matches!(next(&mut stream).await.unwrap(), Event::News(_)));
}
