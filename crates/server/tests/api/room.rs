//! How much a job, a product and a disk have room for.

use futures::{SinkExt, StreamExt};
use giga_domain::Job;
use serde_json::json;

use crate::client::{Call, PATIENCE};
use crate::world::World;

const MIB: usize = 1024 * 1024;

fn put(world: &World, job: &Job, token: &str, name: &str) -> Call {
    let path = format!("/api/fleet/jobs/{}/artifacts?leaseEpoch={}&name={name}", job.id, job.epoch.0);
    world.post(&path).token(token)
}

async fn set(world: &World, flag: &str, value: u64) {
    let call = world.call(axum::http::Method::PUT, &format!("/api/fleet/flags/{flag}"));
    call.token(&world.admin).json(json!({ "value": value })).gives(200).await;
}

async fn artifacts(world: &World, job: &Job) -> usize {
    world.coordinator.reads().artifacts(job.id).await.unwrap().len()
}

#[tokio::test]
async fn the_artifacts_of_a_job_are_bounded_together() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    set(&world, "artifact_job_mib", 1).await;
    let file = |size: usize| vec![b'x'; size];
    put(&world, &job, &token, "a").body("text/plain", file(700 * 1024)).gives(201).await;
    let over = put(&world, &job, &token, "b").body("text/plain", file(400 * 1024));
    let text = "the artifacts of the job together would be larger than 1048576 bytes; delete some, or raise the flag \
                `artifact_job_mib`";
    over.refused(413, "payload_too_large", text).await;
    assert_eq!(artifacts(&world, &job).await, 1);
    put(&world, &job, &token, "a").body("text/plain", file(MIB)).gives(201).await;
    put(&world, &job, &token, "b")
        .body("text/plain", "x")
        .refused(413, "payload_too_large", "together")
        .await;
    let other = world.building("demo", "f-1", "b").await;
    put(&world, &other, &token, "a").body("text/plain", file(MIB)).gives(201).await;
}

#[tokio::test]
async fn the_artifacts_of_a_product_can_be_bounded() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let (one, two) = (world.building("demo", "f-1", "a").await, world.building("demo", "f-1", "b").await);
    let elsewhere = world.building("other", "f-1", "c").await;
    set(&world, "artifact_product_mib", 1).await;
    let file = vec![b'x'; 700 * 1024];
    put(&world, &one, &token, "a").body("text/plain", file.clone()).gives(201).await;
    let over = put(&world, &two, &token, "a").body("text/plain", file.clone());
    over.refused(413, "payload_too_large", "the artifacts of the product together").await;
    put(&world, &elsewhere, &token, "a").body("text/plain", file).gives(201).await;
    assert_eq!(artifacts(&world, &two).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_a_few_uploads_at_a_time_and_another_job_its_own() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let other = world.building("demo", "f-1", "b").await;
    let mut unfinished = Vec::new();
    for number in 0..4 {
        let (mut body, bytes) = futures::channel::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(0);
        let upload = put(&world, &job, &token, &format!("half-{number}"))
            .body("text/plain", reqwest::Body::wrap_stream(bytes));
        let upload = tokio::spawn(upload.send());
        body.send(Ok(vec![b'x'; 300 * 1024])).await.unwrap();
        unfinished.push((body, upload));
    }
    // The server has begun each of them when it has written the first part of each.
    let folder = world.folder.path().join(format!("artifacts/{}/{}", job.id, job.epoch));
    let begun = async {
        while std::fs::read_dir(&folder).map_or(0, Iterator::count) < 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("four uploads are under way");
    let refused = put(&world, &job, &token, "fifth").body("text/plain", "x").gives(429).await;
    assert!(refused.text.contains("4 uploads of this job are under way"), "{}", refused.text);
    assert_eq!(refused.header("retry-after"), "1");
    put(&world, &other, &token, "a").body("text/plain", "x").gives(201).await;
    for (body, upload) in unfinished {
        drop(body);
        assert_eq!(upload.await.unwrap().status, 201);
    }
    put(&world, &job, &token, "fifth").body("text/plain", "x").gives(201).await;
}

#[tokio::test]
async fn a_disk_with_little_room_takes_neither_files_nor_logs() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    // More than any disk has.
    set(&world, "disk_floor_mib", 1_073_741_824).await;
    let log = |text: &str| {
        let path = format!("/api/fleet/jobs/{}/logs?leaseEpoch={}&offset=0", job.id, job.epoch.0);
        world.post(&path).token(&token).body("application/octet-stream", text.to_owned())
    };
    let words = "stay free for the database; free some space, or lower the flag `disk_floor_mib`";
    put(&world, &job, &token, "a").body("text/plain", "x").refused(507, "storage_full", words).await;
    log("one\n").refused(507, "storage_full", words).await;
    assert_eq!(artifacts(&world, &job).await, 0);
    world.submit("demo", "name: b").await;
    set(&world, "disk_floor_mib", 0).await;
    put(&world, &job, &token, "a").body("text/plain", "x").gives(201).await;
    log("one\n").gives(200).await;
}

#[tokio::test]
async fn submits_have_a_rate_per_product() {
    let world = World::start().await;
    set(&world, "submits_per_minute", 1).await;
    let submit = |product: &str, number: usize| {
        let text = format!("---\nname: a{number}\nproduct: {product}\nidempotencyKey: k{number}\n---\n");
        world.post("/api/fleet/jobs").token(&world.admin).markdown(&text)
    };
    for number in 0..10 {
        submit("alpha", number).gives(201).await;
    }
    let head = world.feed().await.len();
    let refused = submit("alpha", 10).refused(429, "too_many_requests", "`submits_per_minute`").await;
    assert_eq!(refused.header("retry-after"), "60");
    assert_eq!(refused.json()["retryAfterMs"], 60_000);
    let many = json!({"jobs": [{"manifest": {"name": "b", "product": "alpha"}}]});
    let many = world.post("/api/fleet/jobs/batch").token(&world.admin).json(many).send().await;
    assert_eq!(many.status, 429, "{}", many.text);
    assert_eq!(world.feed().await.len(), head, "nothing was made");
    submit("alpha", 3).gives(200).await;
    submit("beta", 0).gives(201).await;
    world.clock.advance(std::time::Duration::from_mins(1));
    submit("alpha", 10).gives(201).await;
}

#[tokio::test]
async fn a_product_has_so_many_jobs_waiting_and_no_more() {
    let world = World::start().await;
    set(&world, "max_queued_jobs", 3).await;
    let submit = |product: &str| {
        let text = format!("---\nname: a\nproduct: {product}\n---\n");
        world.post("/api/fleet/jobs").token(&world.admin).markdown(&text)
    };
    let parent = submit("alpha").gives(201).await.json()["job"]["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        submit("alpha").gives(201).await;
    }
    submit("alpha").refused(429, "too_many_requests", "has 3 jobs that wait, and 3 are the most").await;
    let children = world.post(&format!("/api/fleet/jobs/{parent}/children")).token(&world.admin);
    let children = children.json(json!({"children": [{"manifest": {"name": "b"}}]}));
    children.refused(429, "too_many_requests", "`max_queued_jobs`").await;
    submit("beta").gives(201).await;
    world.factory("f-1", &["alpha"]).await;
    world.claim("f-1", "r").await;
    submit("alpha").gives(201).await;
}

#[tokio::test]
async fn enqueues_have_a_rate_per_product() {
    let world = World::start().await;
    set(&world, "enqueues_per_second", 1).await;
    let enqueue = |product: &str| {
        let jobs = json!({"payload": {"to": "ana"}});
        let path = "/api/fleet/topics/mail/jobs";
        world.post(path).token(&world.admin).header("x-product-id", product).json(jobs)
    };
    futures::stream::iter(0..60)
        .for_each_concurrent(8, |_| async { drop(enqueue("alpha").gives(201).await) })
        .await;
    enqueue("alpha").refused(429, "too_many_requests", "`enqueues_per_second`").await;
    enqueue("beta").gives(201).await;
    world.clock.advance(std::time::Duration::from_secs(1));
    enqueue("alpha").gives(201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typed_client_waits_for_its_turn() {
    use giga_api::client::{Client, ClientOptions};
    let world = World::start().await;
    set(&world, "enqueues_per_second", 1).await;
    let path = "/api/fleet/topics/mail/jobs";
    for _ in 0..60 {
        world.post(path).token(&world.admin).json(json!({"payload": 1})).gives(201).await;
    }
    let options = ClientOptions {
        url: world.url.clone(),
        token: Some(world.admin.clone()),
        ..ClientOptions::default()
    };
    let client = Client::new(options).unwrap();
    let waiting = tokio::spawn(async move {
        let job = serde_json::from_value(json!({"payload": 2})).unwrap();
        client.enqueue("mail", &job).await
    });
    let refused = async {
        let line = "route=\"/api/fleet/topics/{name}/jobs\",status=\"429\"} 1";
        while !world.get("/metrics").token(&world.admin).gives(200).await.text.contains(line) {}
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("it is refused first");
    world.clock.advance(std::time::Duration::from_secs(1));
    waiting.await.unwrap().expect("and comes again when it was told to");
}
