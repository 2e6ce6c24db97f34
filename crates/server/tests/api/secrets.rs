//! Named secrets: who may set them, who gets them, and that nobody reads them back.

use axum::http::Method;
use giga_domain::factory::Advertised;
use giga_domain::token::Role;
use giga_domain::{CapabilitySet, EventKind, Holder, HolderAction, Job};
use giga_server::routes;
use serde_json::{Value, json};

use crate::client::Reply;
use crate::walk::{Things, sample};
use crate::world::{World, actor};

const VALUE: &str = "correct-horse-battery-staple";
const HEX: &str = "636f72726563742d686f7273652d626174746572792d737461706c65";
/// `VALUE` in Base64, as the holder gets it.
const ENCODED: &str = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ==";

async fn set(world: &World, product: &str, name: &str, value: &'static str) -> Value {
    let path = format!("/api/fleet/products/{product}/secrets/{name}");
    let call = world.call(Method::PUT, &path).token(&world.admin).body("application/octet-stream", value);
    call.gives(200).await.json()
}

async fn knows_secrets(world: &World, factory: &str) {
    let capabilities = CapabilitySet::parse(["os:linux", "has:secrets"]).unwrap();
    let advertised = Advertised { capabilities, seat_limit: 8, can_clone: true, ..Advertised::default() };
    world.coordinator.heartbeat(factory.parse().unwrap(), advertised).await.unwrap();
}

async fn factory(world: &World, id: &str, products: &[&str]) -> String {
    let token = world.factory(id, products).await;
    knows_secrets(world, id).await;
    token
}

/// A job with a secret that the factory is building.
async fn running(world: &World, product: &str, factory: &str, name: &str) -> Job {
    world.submit(product, &format!("name: {name}\nsecrets: [API_KEY]")).await;
    let job = world.claim(factory, name).await;
    world.hold(&job, vec![HolderAction::Start]).await
}

async fn asked(world: &World, job: &Job, token: &str, epoch: u64) -> Reply {
    let path = format!("/api/fleet/jobs/{}/secrets", job.id);
    world.post(&path).token(token).json(json!({"leaseEpoch": epoch})).send().await
}

#[tokio::test]
async fn a_secret_is_set_listed_and_removed_and_never_read_back() {
    let world = World::start().await;
    let secret = set(&world, "alpha", "API_KEY", VALUE).await;
    assert_eq!((&secret["name"], &secret["version"]), (&json!("API_KEY"), &json!(1)));
    set(&world, "alpha", "API_KEY", VALUE).await;
    set(&world, "alpha", "ANOTHER", VALUE).await;
    let listed = world.get("/api/fleet/products/alpha/secrets").token(&world.admin).gives(200).await.json();
    let names: Vec<_> =
        listed["secrets"].as_array().unwrap().iter().map(|s| (&s["name"], &s["version"])).collect();
    assert_eq!(names, [(&json!("ANOTHER"), &json!(1)), (&json!("API_KEY"), &json!(2))]);

    let path = "/api/fleet/products/alpha/secrets/API_KEY";
    world.get(path).token(&world.admin).refused(405, "method_not_allowed", "").await;
    world.call(Method::DELETE, path).token(&world.admin).gives(204).await;
    world.call(Method::DELETE, path).token(&world.admin).refused(404, "not_found", "no secret API_KEY").await;

    let kinds: Vec<_> = world.feed().await.into_iter().filter(|event| event.product.is_some()).collect();
    let set = EventKind::SecretSet;
    assert_eq!(kinds.iter().map(|e| e.kind).collect::<Vec<_>>(), [set, set, set, EventKind::SecretRemoved]);
    assert!(!format!("{kinds:?}").contains(VALUE));
}

#[tokio::test]
async fn values_and_names_are_judged() {
    let world = World::start().await;
    let put = |name: &str, value: Vec<u8>| {
        let path = format!("/api/fleet/products/alpha/secrets/{name}");
        world.call(Method::PUT, &path).token(&world.admin).body("application/octet-stream", value)
    };
    put("API_KEY", b"short".to_vec()).refused(400, "invalid_request", "fewer than 6 bytes").await;
    put("API_KEY", vec![b'x'; 64 * 1024]).gives(200).await;
    put("API_KEY", vec![b'x'; 64 * 1024 + 1]).refused(413, "payload_too_large", "").await;
    put("api_key", VALUE.into()).refused(400, "invalid_request", "A-Z, 0-9").await;
    put("A%2FB", VALUE.into()).refused(400, "invalid_request", "A-Z, 0-9").await;
}

#[tokio::test]
async fn a_job_names_secrets_of_its_own_product_only() {
    let world = World::start().await;
    set(&world, "alpha", "API_KEY", VALUE).await;
    let submit = |product: &str, secret: &str| {
        let manifest = json!({"name": "x", "product": product, "secrets": [secret]});
        world.post("/api/fleet/jobs").token(&world.admin).json(json!({"manifest": manifest}))
    };
    submit("alpha", "API_KEY").gives(201).await;
    submit("beta", "API_KEY")
        .refused(
            400,
            "invalid_request",
            "no secret API_KEY in product beta; set it with `giga secret set API_KEY",
        )
        .await;
    submit("alpha", "OTHER").refused(400, "invalid_request", "secrets[0]: there is no secret OTHER").await;
    submit("alpha", "PATH").refused(400, "invalid_manifest", "which the factory sets itself").await;
    let many = json!({"jobs": [{"manifest": {"name": "a", "product": "alpha"}},
        {"manifest": {"name": "b", "product": "alpha", "secrets": ["OTHER"]}}]});
    let many = world.post("/api/fleet/jobs/batch").token(&world.admin).json(many);
    many.refused(400, "invalid_request", "jobs[1].secrets[0]").await;
    // What was made once is answered again, whatever has become of the secret.
    let again = || {
        let manifest =
            json!({"name": "k", "product": "alpha", "secrets": ["API_KEY"], "idempotencyKey": "k"});
        world.post("/api/fleet/jobs").token(&world.admin).json(json!({"manifest": manifest}))
    };
    again().gives(201).await;
    world
        .call(Method::DELETE, "/api/fleet/products/alpha/secrets/API_KEY")
        .token(&world.admin)
        .gives(204)
        .await;
    again().gives(200).await;
}

#[tokio::test]
async fn only_the_live_holder_gets_them() {
    let world = World::start().await;
    set(&world, "alpha", "API_KEY", VALUE).await;
    let token = factory(&world, "f-1", &["alpha"]).await;
    let other = factory(&world, "f-2", &["alpha"]).await;
    let stranger = factory(&world, "f-3", &["beta"]).await;
    let job = running(&world, "alpha", "f-1", "a").await;
    let epoch = job.epoch.0;
    let given = asked(&world, &job, &token, epoch).await;
    assert_eq!((given.status, given.header("cache-control")), (200, "no-store"));
    assert_eq!(given.json(), json!({"secrets": [{"name": "API_KEY", "env": "API_KEY", "value": ENCODED}]}));

    // Another factory, another product's, another epoch, people, and what runs inside.
    assert_eq!(asked(&world, &job, &other, epoch).await.status, 409);
    assert_eq!(asked(&world, &job, &stranger, epoch).await.status, 404);
    for wrong in [0, epoch + 1] {
        assert_eq!(asked(&world, &job, &token, wrong).await.status, 409);
    }
    assert_eq!(asked(&world, &job, &world.admin, epoch).await.status, 403);
    let inside = world.coordinator.job_token(job.id, job.epoch).await.unwrap().reveal().to_owned();
    assert_eq!(asked(&world, &job, &inside, epoch).await.status, 403);

    // A zombie: its lease has ended, whether anybody has noticed or not.
    let lease = job.lease().unwrap().expires_at.since(world.coordinator.reads().now().await.unwrap());
    world.clock.advance(lease);
    assert_eq!(asked(&world, &job, &token, epoch).await.status, 409);
}

#[tokio::test]
async fn a_secret_that_was_removed_and_a_key_that_is_gone_are_told_apart() {
    let world = World::start().await;
    set(&world, "alpha", "API_KEY", VALUE).await;
    let token = factory(&world, "f-1", &["alpha"]).await;
    let job = running(&world, "alpha", "f-1", "a").await;
    world.secret_keys.replace(&[2]);
    let reply = asked(&world, &job, &token, job.epoch.0).await;
    let (code, detail) = (reply.json()["code"].clone(), reply.json()["detail"].as_str().unwrap().to_owned());
    assert_eq!((reply.status, code), (409, json!("secret_key")));
    assert!(detail.contains("encrypted with key key-1") && detail.contains("has key-2"), "{detail}");
    world.secret_keys.replace(&[]);
    let put = world.call(Method::PUT, "/api/fleet/products/alpha/secrets/B").token(&world.admin);
    put.body("text/plain", VALUE).refused(409, "secret_key", "has no key in it").await;

    world.secret_keys.replace(&[1]);
    world
        .call(Method::DELETE, "/api/fleet/products/alpha/secrets/API_KEY")
        .token(&world.admin)
        .gives(204)
        .await;
    let reply = asked(&world, &job, &token, job.epoch.0).await;
    assert_eq!((reply.status, reply.json()["code"].clone()), (409, json!("no_secret")));
}

#[tokio::test]
async fn keys_are_rotated() {
    let world = World::start().await;
    set(&world, "alpha", "API_KEY", VALUE).await;
    set(&world, "beta", "API_KEY", VALUE).await;
    let token = factory(&world, "f-1", &["alpha"]).await;
    let job = running(&world, "alpha", "f-1", "a").await;
    world.secret_keys.replace(&[2, 1]);
    let rotate = || world.post("/api/fleet/secrets/rotate").token(&world.admin).gives(200);
    assert_eq!(rotate().await.json(), json!({"keyId": "key-2", "rotated": 2, "unchanged": 0}));
    assert_eq!(rotate().await.json(), json!({"keyId": "key-2", "rotated": 0, "unchanged": 2}));
    // The old key is not needed any more.
    world.secret_keys.replace(&[2]);
    assert_eq!(asked(&world, &job, &token, job.epoch.0).await.json()["secrets"][0]["value"], ENCODED);
    // Without any key that opens it, nothing is changed.
    world.secret_keys.replace(&[3]);
    let refused = world.post("/api/fleet/secrets/rotate").token(&world.admin);
    refused.refused(409, "secret_key", "encrypted with key key-2").await;
    world.secret_keys.replace(&[2]);
    assert_eq!(asked(&world, &job, &token, job.epoch.0).await.status, 200);
}

#[tokio::test]
async fn what_comes_from_inside_carries_no_secret_out() {
    let world = World::start().await;
    set(&world, "alpha", "API_KEY", VALUE).await;
    set(&world, "alpha", "OTHER", "something else").await;
    factory(&world, "f-1", &["alpha"]).await;
    let job = running(&world, "alpha", "f-1", "a").await;
    let inside = world.coordinator.job_token(job.id, job.epoch).await.unwrap().reveal().to_owned();
    let path = format!("/api/fleet/jobs/{}", job.id);
    let upload = |name: &str, body: String| {
        let path = format!("{path}/artifacts?leaseEpoch={}&name={name}", job.epoch);
        world.post(&path).token(&inside).body("text/plain", body)
    };
    for body in [VALUE.to_owned(), format!("{}{ENCODED}", "x".repeat(100_000))] {
        upload("a.txt", body).refused(400, "invalid_request", "it contains the secret API_KEY").await;
    }
    upload(VALUE, "harmless".to_owned()).refused(400, "invalid_request", "contains the secret API_KEY").await;
    upload("b.txt", "something else".to_owned()).gives(201).await;
    let listed = world.get(&format!("{path}/artifacts")).token(&inside).gives(200).await.json();
    assert_eq!(listed["artifacts"].as_array().unwrap().len(), 1, "{listed}");

    let child = |manifest: Value, body: &str| {
        let children = json!({"children": [{"manifest": manifest, "bodyMd": body}]});
        world.post(&format!("{path}/children")).token(&inside).json(children)
    };
    child(json!({"name": "c", "secrets": ["API_KEY"]}), "").gives(201).await;
    child(json!({"name": "c", "secrets": ["OTHER"]}), "")
        .refused(400, "invalid_request", "children[0].secrets[0]: the job that it comes from does not name")
        .await;
    child(json!({"name": "c"}), &format!("use {VALUE}"))
        .refused(400, "invalid_request", "it contains the secret API_KEY")
        .await;
    // People of the product may name all of its secrets for a child.
    let people = world.token(Role::Submitter, &["alpha"]).await;
    let children = json!({"children": [{"manifest": {"name": "d", "secrets": ["OTHER"]}}]});
    world.post(&format!("{path}/children")).token(&people).json(children).gives(201).await;
}

/// Every route that looks, as everybody's admin: none answers with the value, however it is written.
#[tokio::test(flavor = "multi_thread")]
async fn no_look_shows_a_value() {
    let world = World::start().await;
    let things = Things::make(&world, "alpha", "f-alpha").await;
    knows_secrets(&world, "f-alpha").await;
    set(&world, "alpha", "API_KEY", VALUE).await;
    let job = running(&world, "alpha", "f-alpha", "secretive").await;
    let holder = Holder { factory: "f-alpha".parse().unwrap(), epoch: job.epoch };
    world.coordinator.secrets_for_holder(job.id, &holder).await.unwrap();
    world.coordinator.rekey_secrets(actor()).await.unwrap();
    let mut looked = 0;
    for route in routes::table().iter().filter(|route| route.method == Method::GET) {
        if route.operation.starts_with("stream") {
            continue;
        }
        let sample = sample(route, &things);
        let own = route.path.replace("{id}", &job.id.to_string());
        for path in [sample.path, own] {
            let reply = world.get(&path).token(&world.admin).send().await;
            for form in [VALUE, ENCODED, &ENCODED[..30], HEX] {
                assert!(!reply.text.contains(form), "{path}: {}", reply.text);
            }
            looked += usize::from(reply.status == 200);
        }
    }
    assert!(looked > 30, "{looked}");
    assert!(world.feed().await.iter().all(|event| !format!("{event:?}").contains(VALUE)));
}
