//! gRPC on the port of the API, with the generated client.

use std::time::Duration;

use giga_domain::token::Role;
use giga_proto::v1::dispatch_client::DispatchClient;
use giga_proto::v1::{
    EnqueueRequest, Failure, HeartbeatRequest, Held, JobResult, NewJob, Priority, Release,
    ReportResultRequest, ResultStatus, Retry, StreamJobsRequest, StreamJobsResponse, Success, job_result,
};
use giga_server::ServerOptions;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::world::World;

async fn channel(world: &World) -> Channel {
    Channel::from_shared(world.url.clone()).unwrap().connect().await.unwrap()
}

async fn client(world: &World) -> DispatchClient<Channel> {
    DispatchClient::new(channel(world).await)
}

/// As whoever has the token, about the product where one is named.
fn by<T>(token: &str, product: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    if !product.is_empty() {
        request.metadata_mut().insert("x-product-id", MetadataValue::try_from(product).unwrap());
    }
    request
}

fn open(topics: &[&str], max_in_flight: u32) -> StreamJobsRequest {
    StreamJobsRequest {
        topics: topics.iter().map(|&topic| topic.to_owned()).collect(),
        worker_id: "w1".to_owned(),
        max_in_flight,
    }
}

fn job(topic: &str, payload: &str) -> NewJob {
    NewJob { topic: topic.to_owned(), payload: payload.into(), ..NewJob::default() }
}

fn enqueue(jobs: Vec<NewJob>) -> EnqueueRequest {
    EnqueueRequest { jobs }
}

fn success(job_id: &str, epoch: u64) -> JobResult {
    let outcome = Some(job_result::Outcome::Success(Success {}));
    JobResult { job_id: job_id.to_owned(), epoch, outcome }
}

fn report(results: Vec<JobResult>) -> ReportResultRequest {
    ReportResultRequest { worker_id: "w1".to_owned(), results, max_in_flight: 0 }
}

async fn next(stream: &mut Streaming<StreamJobsResponse>) -> Result<StreamJobsResponse, Status> {
    soon(stream.message()).await.map(|message| message.expect("the stream ended without a status"))
}

/// Within a time that only a failure takes.
async fn soon<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), answer).await.expect("nothing came")
}

fn is(status: Status, code: Code, text: &str) {
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(text), "{} does not say `{text}`", status.message());
}

#[tokio::test]
async fn a_job_goes_out_is_kept_and_is_reported() {
    let world = World::start().await;
    let (worker, submitter) =
        (world.token(Role::Worker, &["alpha"]).await, world.token(Role::Submitter, &["alpha"]).await);
    let mut client = client(&world).await;
    let mut stream =
        client.stream_jobs(by(&worker, "", open(&["mail", "sms"], 2))).await.unwrap().into_inner();
    let urgent = NewJob { priority: Priority::High.into(), ..job("mail", "b") };
    let jobs = enqueue(vec![job("mail", "a"), urgent, job("mail", "c")]);
    let enqueued = client.enqueue(by(&submitter, "", jobs)).await.unwrap().into_inner().jobs;
    assert!(enqueued.iter().all(|job| !job.existing));

    let sent = next(&mut stream).await.unwrap().assignments;
    let payloads: Vec<&[u8]> = sent.iter().map(|job| job.payload.as_slice()).collect();
    assert_eq!(payloads, [b"b", b"a"], "the urgent one first, and no more than it can take");
    let first = &sent[0];
    assert_eq!((first.job_id.as_str(), first.topic.as_str()), (enqueued[1].job_id.as_str(), "mail"));
    assert_eq!((first.epoch, first.attempt, first.lease_ms), (1, 1, 30_000));
    assert_eq!(first.priority(), Priority::High);
    let (created, expires) = (first.created_at.unwrap(), first.expires_at.unwrap());
    assert_eq!(expires.seconds - created.seconds, 30);

    let held = |job_id: &str, epoch| Held { job_id: job_id.to_owned(), epoch };
    let beat = |held| HeartbeatRequest { worker_id: "w1".to_owned(), held };
    let zombie = held(&sent[1].job_id, sent[1].epoch + 1);
    let kept = beat(vec![held(&first.job_id, first.epoch), zombie]);
    let renewed = client.heartbeat(by(&worker, "", kept)).await.unwrap().into_inner();
    assert_eq!((renewed.lost_job_ids, renewed.lease_ms), (vec![sent[1].job_id.clone()], 30_000));

    let results = vec![
        success(&first.job_id, first.epoch),
        success(&sent[1].job_id, sent[1].epoch + 1),
        success("01J9ZK3V5N8Q4W2E6R7T1Y0ABC", 1),
    ];
    let statuses = client.report_result(by(&worker, "", report(results))).await.unwrap().into_inner();
    let statuses: Vec<ResultStatus> = statuses.statuses().collect();
    assert_eq!(statuses, [ResultStatus::Recorded, ResultStatus::Fenced, ResultStatus::UnknownJob]);
    let third = next(&mut stream).await.unwrap().assignments;
    assert_eq!(third[0].payload, b"c", "the slot of the first is free");

    let failure = Failure { error: "no".to_owned(), permanent: true };
    let outcomes = [job_result::Outcome::Release(Release {}), job_result::Outcome::Failure(failure)];
    let results = [&sent[1], &third[0]].into_iter().zip(outcomes).map(|(job, outcome)| JobResult {
        job_id: job.job_id.clone(),
        epoch: job.epoch,
        outcome: Some(outcome),
    });
    client.report_result(by(&worker, "", report(results.collect()))).await.unwrap();
    let again = next(&mut stream).await.unwrap().assignments;
    assert_eq!((again[0].payload.as_slice(), again[0].attempt, again[0].epoch), (&b"a"[..], 1, 2));
    let dead = world.get("/api/fleet/topics/mail/jobs?state=dead").token(&submitter).gives(200).await;
    assert_eq!(dead.json()["jobs"][0]["lastError"], "no");
}

#[tokio::test]
async fn a_key_makes_one_job_and_another_payload_is_refused() {
    let world = World::start().await;
    let mut client = client(&world).await;
    let keyed = |payload| NewJob { idempotency_key: "k1".to_owned(), ..job("mail", payload) };
    let mut ask =
        async |payload| client.enqueue(by(&world.admin, "alpha", enqueue(vec![keyed(payload)]))).await;
    let made = ask("a").await.unwrap().into_inner().jobs.remove(0);
    let again = ask("a").await.unwrap().into_inner().jobs.remove(0);
    assert_eq!((again.job_id, again.existing), (made.job_id.clone(), true));
    let refused = ask("b").await.unwrap_err();
    assert!(refused.message().contains(&made.job_id), "{refused:?}");
    is(refused, Code::AlreadyExists, "k1");
}

#[tokio::test]
async fn whoever_may_not_is_told_so_in_the_words_of_the_rest_api() {
    let world = World::start().await;
    let mut client = client(&world).await;
    let factory = world.factory("f1", &[]).await;
    let opened = client.stream_jobs(Request::new(open(&["mail"], 1))).await;
    is(opened.unwrap_err(), Code::Unauthenticated, "this call needs a token");
    let opened = client.stream_jobs(by("giga_user_x", "", open(&["mail"], 1))).await;
    is(opened.unwrap_err(), Code::Unauthenticated, "was it cut off when pasted?");
    let needs = "this call needs the role worker, operator or admin; this ";
    for (token, has) in [
        (world.token(Role::Viewer, &[]).await, "token has the role viewer"),
        (world.token(Role::Submitter, &[]).await, "token has the role submitter"),
        (factory.clone(), "is the token of factory f1"),
    ] {
        let text = format!("{needs}{has}");
        let opened = client.stream_jobs(by(&token, "", open(&["mail"], 1))).await;
        is(opened.unwrap_err(), Code::PermissionDenied, &text);
        let reported = client.report_result(by(&token, "", report(vec![]))).await;
        is(reported.unwrap_err(), Code::PermissionDenied, &text);
        let kept = client.heartbeat(by(&token, "", HeartbeatRequest::default())).await;
        is(kept.unwrap_err(), Code::PermissionDenied, &text);
    }
    for token in [world.token(Role::Worker, &[]).await, world.token(Role::Viewer, &[]).await, factory] {
        let enqueued = client.enqueue(by(&token, "", enqueue(vec![job("mail", "")]))).await;
        is(enqueued.unwrap_err(), Code::PermissionDenied, "this call needs the role submitter or higher");
    }
    let both = world.token(Role::Worker, &["alpha", "beta"]).await;
    let opened = client.stream_jobs(by(&both, "gamma", open(&["mail"], 1))).await;
    is(
        opened.unwrap_err(),
        Code::PermissionDenied,
        "x-product-id: this token is for alpha, beta, not for gamma",
    );
    let opened = client.stream_jobs(by(&both, "", open(&["mail"], 1))).await;
    is(opened.unwrap_err(), Code::InvalidArgument, "x-product-id: say in this header which of alpha, beta");
    assert!(client.stream_jobs(by(&both, "beta", open(&["mail"], 1))).await.is_ok());
    assert!(client.stream_jobs(by(&world.admin, "", open(&["mail"], 1))).await.is_ok());
}

#[tokio::test]
async fn a_worker_reaches_the_jobs_of_its_own_product_only() {
    let world = World::start().await;
    let mut client = client(&world).await;
    let (own, other) =
        (world.token(Role::Worker, &["alpha"]).await, world.token(Role::Worker, &["beta"]).await);
    let mut stream = client.stream_jobs(by(&own, "", open(&["mail"], 5))).await.unwrap().into_inner();
    client.enqueue(by(&world.admin, "beta", enqueue(vec![job("mail", "theirs")]))).await.unwrap();
    client.enqueue(by(&world.admin, "alpha", enqueue(vec![job("mail", "ours")]))).await.unwrap();
    let sent = next(&mut stream).await.unwrap().assignments;
    assert_eq!(sent.iter().map(|job| job.payload.as_slice()).collect::<Vec<_>>(), [b"ours"]);
    let result = || report(vec![success(&sent[0].job_id, sent[0].epoch)]);
    let answer = client.report_result(by(&other, "", result())).await.unwrap().into_inner();
    assert_eq!(answer.statuses().collect::<Vec<_>>(), [ResultStatus::UnknownJob]);
    let answer = client.report_result(by(&own, "", result())).await.unwrap().into_inner();
    assert_eq!(answer.statuses().collect::<Vec<_>>(), [ResultStatus::Recorded]);
}

#[tokio::test]
async fn bad_input_names_the_field_and_changes_nothing() {
    let world = World::start().await;
    let mut client = client(&world).await;
    let token = &world.admin;
    let no_worker = StreamJobsRequest { worker_id: "a b".to_owned(), ..open(&["mail"], 1) };
    for (request, text) in [
        (open(&[], 1), "topics: name 1 to 100 topics, not 0"),
        (open(&["mail", "no good"], 1), "topics[1]: topic `no good` is malformed: 1 to 100 of"),
        (open(&["mail"], 0), "max_in_flight: it must be from 1 to 10000, not 0"),
        (no_worker, "worker_id: worker id `a b` is malformed"),
    ] {
        is(client.stream_jobs(by(token, "", request)).await.unwrap_err(), Code::InvalidArgument, text);
    }
    let run_at = Some(prost_types::Timestamp { seconds: 0, nanos: -1 });
    let retry = Some(Retry { max: 1_001, backoff_ms: 0 });
    let long_key = "k".repeat(201);
    for (bad, text) in [
        (job("", ""), "jobs[1].topic: topic `` is malformed"),
        (NewJob { priority: 9, ..job("mail", "") }, "jobs[1].priority: it must be one of"),
        (NewJob { run_at, ..job("mail", "") }, "jobs[1].run_at: it must be a time"),
        (NewJob { retry, ..job("mail", "") }, "jobs[1].retry.max: it must be from 0 to 1000, not 1001"),
        (
            NewJob { idempotency_key: long_key, ..job("mail", "") },
            "jobs[1].idempotency_key: it must be 1 to 200",
        ),
        (
            NewJob { payload: vec![0; 262_145], ..job("mail", "") },
            "jobs[1].payload: it may have at most 262144",
        ),
    ] {
        let refused = client.enqueue(by(token, "", enqueue(vec![job("mail", "good"), bad]))).await;
        is(refused.unwrap_err(), Code::InvalidArgument, text);
    }
    let none = client.enqueue(by(token, "", enqueue(vec![]))).await.unwrap_err();
    is(none, Code::InvalidArgument, "jobs: send 1 to 1000 jobs in one call, not 0");
    let many = client.enqueue(by(token, "", enqueue(vec![job("mail", ""); 1_001]))).await.unwrap_err();
    is(many, Code::InvalidArgument, "jobs: at most 1000 in one call, not 1001");
    let large = NewJob { payload: vec![0; 262_144], ..job("mail", "") };
    let large = client.enqueue(by(token, "", enqueue(vec![large; 65]))).await.unwrap_err();
    is(
        large,
        Code::ResourceExhausted,
        "larger than 16777216 bytes, the most that one call takes; send fewer",
    );
    let silent = JobResult { job_id: "01J9ZK3V5N8Q4W2E6R7T1Y0ABC".to_owned(), epoch: 1, outcome: None };
    let refused = client.report_result(by(token, "", report(vec![silent]))).await.unwrap_err();
    is(refused, Code::InvalidArgument, "results[0].outcome: it is missing; say success, failure or release");
    let refused = client.report_result(by(token, "", report(vec![success("x", 1)]))).await.unwrap_err();
    is(refused, Code::InvalidArgument, "results[0].job_id: job id `x` is malformed");
    let topics = world.get("/api/fleet/topics").token(token).gives(200).await;
    assert_eq!(topics.json()["topics"], serde_json::json!([]), "nothing was stored");
}

#[tokio::test]
async fn a_stream_ends_when_its_token_is_revoked() {
    let options = ServerOptions { look_every: Duration::from_millis(20), ..ServerOptions::default() };
    let world = World::start_with(options).await;
    let actor = crate::world::actor;
    let issued = world.coordinator.issue_token(Role::Worker, Vec::new(), String::new(), actor());
    let (token, secret) = issued.await.unwrap();
    let mut client = client(&world).await;
    let opened = client.stream_jobs(by(secret.reveal(), "", open(&["mail"], 1))).await;
    let mut stream = opened.unwrap().into_inner();
    world.coordinator.revoke_token(token.id, actor()).await.unwrap();
    is(next(&mut stream).await.unwrap_err(), Code::Unauthenticated, "unknown, revoked or expired");
}

#[tokio::test]
async fn a_worker_that_leaves_is_gone_and_its_unread_jobs_go_to_another() {
    let world = World::start().await;
    let mut leaving = client(&world).await;
    let stream = leaving.stream_jobs(by(&world.admin, "", open(&["mail"], 5))).await.unwrap();
    assert_eq!(
        world.get("/api/fleet/topics").token(&world.admin).gives(200).await.json()["topics"][0]["workers"],
        1
    );
    drop(stream);
    drop(leaving);
    let mut staying = client(&world).await;
    let mut stream =
        staying.stream_jobs(by(&world.admin, "", open(&["mail"], 5))).await.unwrap().into_inner();
    // Whichever of the two is dealt the job: the one that is there gets it, at once or after it was given back.
    staying.enqueue(by(&world.admin, "", enqueue(vec![job("mail", "a")]))).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().assignments[0].payload, b"a");
}

#[tokio::test]
async fn a_shutdown_ends_streams_and_says_that_another_try_is_worth_it() {
    let mut world = World::start().await;
    let mut client = client(&world).await;
    let mut stream = client.stream_jobs(by(&world.admin, "", open(&["mail"], 1))).await.unwrap().into_inner();
    let mut health = HealthClient::new(channel(&world).await);
    let request = HealthCheckRequest { service: "gigafactory.v1.Dispatch".to_owned() };
    let mut watched = health.watch(request).await.unwrap().into_inner();
    assert_eq!(soon(watched.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);
    world.shutdown.cancel();
    is(next(&mut stream).await.unwrap_err(), Code::Unavailable, "shutting down; connect again");
    assert_eq!(soon(watched.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(soon(watched.message()).await.unwrap().is_none(), "the watch does not hold up the shutdown");
    let stopped = tokio::time::timeout(Duration::from_secs(5), &mut world.server).await;
    stopped.expect("the server waits for nobody").unwrap().unwrap();
}

#[tokio::test]
async fn it_can_be_asked_how_it_is_and_what_it_speaks() {
    let world = World::start().await;
    let channel = channel(&world).await;
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "gigafactory.v1.Dispatch", "gigafactory.v1.Fleet"] {
        let answer = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{service}");
    }
    let unknown = health.check(HealthCheckRequest { service: "nobody".to_owned() }).await.unwrap_err();
    is(unknown, Code::NotFound, "there is no service `nobody`");

    let mut reflection = ServerReflectionClient::new(channel);
    let ask = |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
    let asked = futures::stream::iter([
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("gigafactory.v1.Dispatch.Enqueue".to_owned())),
    ]);
    let mut answers = reflection.server_reflection_info(asked).await.unwrap().into_inner();
    let listed = soon(answers.message()).await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(listed) = listed else { panic!("{listed:?}") };
    let names: Vec<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["gigafactory.v1.Dispatch", "gigafactory.v1.Fleet", "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let file = soon(answers.message()).await.unwrap().unwrap().message_response.unwrap();
    assert!(matches!(file, MessageResponse::FileDescriptorResponse(_)), "{file:?}");
}

#[tokio::test]
async fn rest_and_grpc_share_the_port_and_nothing_else_is_served() {
    let world = World::start().await;
    world.get("/livez").gives(200).await;
    world.post("/gigafactory.v1.Nobody/Knows").refused(404, "not_found", "there is no POST").await;
    let wrong = world.post("/gigafactory.v1.Dispatch/Nothing").body("application/grpc", "").gives(200).await;
    assert_eq!(wrong.header("grpc-status"), "12", "UNIMPLEMENTED");
}

#[tokio::test]
async fn a_worker_is_bound_to_its_token() {
    let world = World::start().await;
    let (own, other) =
        (world.token(Role::Worker, &["alpha"]).await, world.token(Role::Worker, &["alpha"]).await);
    let mut client = client(&world).await;
    let mut stream = client.stream_jobs(by(&own, "", open(&["mail"], 1))).await.unwrap().into_inner();
    client.enqueue(by(&world.admin, "alpha", enqueue(vec![job("mail", "a")]))).await.unwrap();
    let sent = next(&mut stream).await.unwrap().assignments.remove(0);
    let result = || report(vec![success(&sent.job_id, sent.epoch)]);
    // Another token gives itself the same name.
    let stolen = client.report_result(by(&other, "", result())).await.unwrap().into_inner();
    assert_eq!(stolen.statuses, [i32::from(ResultStatus::UnknownJob)]);
    let held = vec![Held { job_id: sent.job_id.clone(), epoch: sent.epoch }];
    let beat = HeartbeatRequest { worker_id: "w1".to_owned(), held };
    let beaten = client.heartbeat(by(&other, "", beat.clone())).await.unwrap().into_inner();
    assert_eq!(beaten.lost_job_ids, std::slice::from_ref(&sent.job_id));
    let beaten = client.heartbeat(by(&own, "", beat)).await.unwrap().into_inner();
    assert!(beaten.lost_job_ids.is_empty());
    let path = format!("/api/fleet/topics/mail/jobs/{}", sent.job_id);
    let shown = world.get(&path).token(&world.admin).header("x-product-id", "alpha").gives(200).await.json();
    assert_eq!((&shown["state"], &shown["workerId"]), (&"running".into(), &"w1".into()));
    let done = client.report_result(by(&own, "", result())).await.unwrap().into_inner();
    assert_eq!(done.statuses, [i32::from(ResultStatus::Recorded)]);
}
