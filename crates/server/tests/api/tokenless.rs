//! What is open without a token is bounded in number and time, and holds nobody else up.

use std::time::Duration;

use futures::StreamExt;
use giga_server::ServerOptions;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::client::PATIENCE;
use crate::streams::Sse;
use crate::world::World;

async fn health(world: &World) -> HealthClient<Channel> {
    HealthClient::new(Channel::from_shared(world.url.clone()).unwrap().connect().await.unwrap())
}

async fn watch(health: &mut HealthClient<Channel>) -> Result<Streaming<HealthCheckResponse>, Status> {
    let mut watched = health.watch(HealthCheckRequest::default()).await?.into_inner();
    let first = tokio::time::timeout(PATIENCE, watched.message()).await.unwrap()?;
    assert_eq!(first.unwrap().status(), ServingStatus::Serving);
    Ok(watched)
}

#[tokio::test]
async fn health_watches_are_bounded_in_number() {
    let options = ServerOptions { tokenless_per_peer: 4, ..ServerOptions::default() };
    let world = World::start_with(options).await;
    let mut health = health(&world).await;
    let mut watches = Vec::new();
    for _ in 0..4 {
        watches.push(watch(&mut health).await.unwrap());
    }
    let refused = watch(&mut health).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().starts_with("4 streams of this address are open"), "{refused:?}");
    health.check(HealthCheckRequest::default()).await.expect("a check is over at once");
    Sse::open(world.get("/api/fleet/events/stream").token(&world.admin)).await;
    drop(watches.pop());
    let again = async {
        while let Err(refused) = watch(&mut health).await {
            assert_eq!(refused.code(), Code::ResourceExhausted);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("a stream that ended makes room");
}

#[tokio::test]
async fn a_health_watch_ends_after_its_time_and_can_be_opened_again() {
    let options = ServerOptions { tokenless_longest: Duration::from_millis(100), ..ServerOptions::default() };
    let world = World::start_with(options).await;
    let mut health = health(&world).await;
    for _ in 0..2 {
        let mut watched = watch(&mut health).await.unwrap();
        let ended = tokio::time::timeout(PATIENCE, watched.message()).await.unwrap().unwrap_err();
        assert_eq!(ended.code(), Code::Unavailable);
        assert!(ended.message().contains("open it again"), "{ended:?}");
    }
}

#[tokio::test]
async fn a_flood_of_readiness_probes_asks_the_store_one_at_a_time() {
    let world = World::start().await;
    let before = *world.store.pings.borrow();
    let probes = futures::stream::iter(0..500).map(|_| world.get("/readyz").gives(200));
    probes.buffer_unordered(100).collect::<Vec<_>>().await;
    let (pings, at_once) = (*world.store.pings.borrow() - before, *world.store.most_pings.borrow());
    assert!(pings <= 500 && at_once == 1, "{pings} pings, {at_once} at once");
}
