//! Pools over HTTP, and KEDA's contract with a client generated from its messages.

use std::collections::HashMap;
use std::time::Duration;

use giga_domain::token::Role;
use giga_proto::externalscaler::external_scaler_client::ExternalScalerClient;
use giga_proto::externalscaler::{GetMetricsRequest, ScaledObjectRef};
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::world::World;

async fn set(world: &World, settings: Value) -> Value {
    world
        .call(reqwest::Method::PUT, "/api/fleet/pools/burst")
        .token(&world.admin)
        .json(settings)
        .gives(200)
        .await
        .json()
}

async fn credential(world: &World, kind: &str) -> String {
    let call = world.post("/api/fleet/pools/burst/credentials").token(&world.admin);
    let answer = call.json(json!({ "kind": kind })).gives(201).await.json();
    answer["token"].as_str().unwrap().to_owned()
}

async fn keda(world: &World) -> ExternalScalerClient<Channel> {
    ExternalScalerClient::new(Channel::from_shared(world.url.clone()).unwrap().connect().await.unwrap())
}

fn asking(pool: &str, token: &str) -> ScaledObjectRef {
    let metadata = [("pool", pool), ("tokenFromEnv", token)];
    ScaledObjectRef {
        name: "so".to_owned(),
        namespace: "ci".to_owned(),
        scaler_metadata: metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    }
}

fn is(status: &Status, code: Code, text: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(text), "{} does not say `{text}`", status.message());
}

#[tokio::test]
async fn a_pool_is_set_shown_paused_and_removed() {
    let world = World::start().await;
    let made = set(&world, json!({ "driver": "keda", "max": 3, "costUsdPerHour": 1.5 })).await;
    assert_eq!((&made["name"], &made["rev"], &made["state"]), (&json!("burst"), &json!(1), &json!("quiet")));
    assert_eq!(made["settings"]["costUsdPerHour"], json!(1.5));
    let paused = world.post("/api/fleet/pools/burst/pause").token(&world.admin).gives(200).await.json();
    assert_eq!((&paused["state"], &paused["settings"]["max"]), (&json!("paused"), &json!(3)));
    world.post("/api/fleet/pools/burst/resume").token(&world.admin).gives(200).await;
    let listed = world.get("/api/fleet/pools").token(&world.admin).gives(200).await.json();
    assert_eq!(listed["pools"].as_array().unwrap().len(), 1);
    let remove = || world.call(reqwest::Method::DELETE, "/api/fleet/pools/burst").token(&world.admin);
    remove().gives(204).await;
    remove().gives(404).await;
    world.get("/api/fleet/pools/burst").token(&world.admin).gives(404).await;
}

#[tokio::test]
async fn settings_that_make_no_sense_name_their_field_and_change_nothing() {
    let world = World::start().await;
    let before = set(&world, json!({ "max": 3 })).await;
    for (wrong, field) in [
        (json!({ "max": 3, "min": 4 }), "min"),
        (json!({ "max": 3, "warm": 9 }), "warm"),
        (json!({ "max": 3, "seats": 0 }), "seats"),
        (json!({ "max": 3, "idleMs": 0 }), "idle"),
        (json!({ "driver": "command", "max": 3 }), "command"),
        (json!({ "driver": "kubernetes", "max": 3 }), "image"),
        (json!({ "max": 3, "chargeTo": "demo" }), "costPerHour"),
        (json!({ "max": 3, "capabilities": ["a b"] }), "capabilities"),
        (json!({ "maximum": 3 }), "maximum"),
    ] {
        let call = world.call(reqwest::Method::PUT, "/api/fleet/pools/burst").token(&world.admin);
        let refused = call.json(wrong.clone()).gives(400).await.json();
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(field), "{wrong}: {detail}");
    }
    let after = world.get("/api/fleet/pools/burst").token(&world.admin).gives(200).await.json();
    assert_eq!(after, before);
}

#[tokio::test]
async fn each_credential_opens_its_own_door_and_no_other() {
    let world = World::start().await;
    set(&world, json!({ "driver": "keda", "max": 1 })).await;
    let (enroll, scaler) = (credential(&world, "enroll").await, credential(&world, "scaler").await);
    let join = |token: &str| world.post("/api/fleet/pools/burst/enroll").token(token).json(json!({}));
    for wrong in [scaler.as_str(), &world.admin, &world.token(Role::Operator, &[]).await] {
        join(wrong).gives(403).await;
    }
    for token in [&enroll, &scaler] {
        for path in ["/api/fleet/pools", "/api/fleet/jobs", "/api/fleet/factories", "/api/fleet/queue-state"]
        {
            world.get(path).token(token).gives(403).await;
        }
        world
            .post("/api/fleet/claim")
            .token(token)
            .json(json!({ "factoryId": "x", "requestId": "r" }))
            .gives(403)
            .await;
    }
    let elsewhere = world.post("/api/fleet/pools/other/enroll").token(&enroll).json(json!({}));
    elsewhere.gives(403).await;
    let joined = join(&enroll).gives(201).await.json();
    let own = joined["token"].as_str().unwrap();
    let id = joined["factoryId"].as_str().unwrap();
    assert!(id.starts_with("burst-"), "{id}");
    world.get("/api/fleet/queue-state").token(own).gives(200).await;
    let full = join(&enroll).gives(409).await.json();
    assert_eq!(full["code"], json!("not_expected"));
    let in_use = world.call(reqwest::Method::DELETE, "/api/fleet/pools/burst").token(&world.admin);
    assert_eq!(in_use.gives(409).await.json()["code"], json!("pool_in_use"));
}

#[tokio::test]
async fn keda_is_told_how_many_are_wanted_and_at_once() {
    let world = World::start().await;
    set(&world, json!({ "driver": "keda", "max": 5, "capabilities": ["engine:shell"] })).await;
    let token = credential(&world, "scaler").await;
    let mut keda = keda(&world).await;
    let asked = asking("burst", &token);
    assert!(!keda.is_active(asked.clone()).await.unwrap().into_inner().result);
    let spec = keda.get_metric_spec(asked.clone()).await.unwrap().into_inner().metric_specs.remove(0);
    assert_eq!((spec.metric_name.as_str(), spec.target_size), ("factories", 1));
    let mut pushed = keda.stream_is_active(asked.clone()).await.unwrap().into_inner();
    let next = async |pushed: &mut tonic::Streaming<giga_proto::externalscaler::IsActiveResponse>| {
        let message = tokio::time::timeout(Duration::from_secs(20), pushed.message()).await;
        message.expect("nothing was pushed").unwrap().expect("the stream ended").result
    };
    assert!(!next(&mut pushed).await);
    for name in ["one", "two", "three"] {
        world.submit("alpha", &format!("name: {name}\nengine: shell\nscript: x")).await;
    }
    assert!(next(&mut pushed).await, "pushed");
    let metrics = GetMetricsRequest { scaled_object_ref: Some(asked), metric_name: "factories".to_owned() };
    let value = keda.get_metrics(metrics.clone()).await.unwrap().into_inner().metric_values.remove(0);
    assert_eq!((value.metric_name.as_str(), value.metric_value), ("factories", 3));
    let other = GetMetricsRequest { metric_name: "s0-queue".to_owned(), ..metrics };
    is(&keda.get_metrics(other).await.unwrap_err(), Code::InvalidArgument, "`factories`");
}

#[tokio::test]
async fn keda_needs_the_credential_of_that_very_pool() {
    let world = World::start().await;
    set(&world, json!({ "driver": "keda", "max": 5 })).await;
    let token = credential(&world, "scaler").await;
    let enroll = credential(&world, "enroll").await;
    let mut keda = keda(&world).await;
    let mut refused = async |asked: ScaledObjectRef| keda.is_active(asked).await.unwrap_err();
    is(&refused(asking("other", &token)).await, Code::PermissionDenied, "pool other");
    is(
        &refused(asking("burst", &enroll)).await,
        Code::PermissionDenied,
        "the scaler credential of pool burst",
    );
    is(
        &refused(asking("burst", &world.admin)).await,
        Code::PermissionDenied,
        "the scaler credential of pool burst",
    );
    is(&refused(asking("burst", "nonsense")).await, Code::Unauthenticated, "token");
    let nobody = ScaledObjectRef { scaler_metadata: HashMap::new(), ..asking("burst", &token) };
    is(&refused(nobody).await, Code::InvalidArgument, "pool");
    let silent = HashMap::from([("pool".to_owned(), "burst".to_owned())]);
    let silent = ScaledObjectRef { scaler_metadata: silent, ..asking("burst", &token) };
    is(&refused(silent).await, Code::InvalidArgument, "tokenFromEnv");
}
