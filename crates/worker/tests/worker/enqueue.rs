//! Enqueueing: every field gets there, many jobs go in as few calls as the coordinator allows, nothing is repeated unasked.

use std::time::{Duration, SystemTime};

use giga_proto::v1;
use giga_worker::{Enqueued, Error, Job, Priority, Retry};
use tonic::{Code, Status};

use crate::stub::{EnqueueCall, Stub, TOKEN};

fn accept(call: EnqueueCall, first: usize) -> usize {
    let count = call.request.jobs.len();
    let ids = (first..first + count).map(|n| v1::Enqueued { job_id: n.to_string(), existing: n % 2 == 1 });
    call.answer(v1::EnqueueResponse { jobs: ids.collect() });
    count
}

#[tokio::test]
async fn every_field_of_a_job_is_sent() {
    let mut stub = Stub::start();
    let client = stub.client().await;
    let when = SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000);
    let job = Job::new("mail", "hello")
        .priority(Priority::Critical)
        .run_at(when)
        .key("welcome-ana")
        .retry(Retry { max: 3, backoff: Duration::from_secs(2) });
    let (enqueued, ()) = tokio::join!(client.enqueue(job), async {
        let call = stub.enqueues.next().await;
        assert_eq!(call.metadata.get("authorization").unwrap(), &format!("Bearer {TOKEN}"));
        assert_eq!(
            call.request.jobs,
            [v1::NewJob {
                topic: "mail".to_owned(),
                payload: b"hello".to_vec(),
                priority: v1::Priority::Critical.into(),
                run_at: Some(when.into()),
                idempotency_key: "welcome-ana".to_owned(),
                retry: Some(v1::Retry { max: 3, backoff_ms: 2_000 }),
            }]
        );
        accept(call, 1);
    });
    assert_eq!(enqueued.unwrap(), Enqueued { job_id: "1".to_owned(), existing: true });
}

#[tokio::test]
async fn many_jobs_go_in_calls_of_a_thousand() {
    let mut stub = Stub::start();
    let client = stub.client().await;
    let jobs = (0..2_500).map(|n: u32| Job::new("mail", n.to_be_bytes()));
    let (enqueued, sizes) = tokio::join!(client.enqueue_many(jobs), async {
        let (mut sizes, mut first) = (Vec::new(), 0);
        while first < 2_500 {
            let size = accept(stub.enqueues.next().await, first);
            first += size;
            sizes.push(size);
        }
        sizes
    });
    assert_eq!(sizes, [1_000, 1_000, 500]);
    let ids: Vec<String> = enqueued.unwrap().into_iter().map(|job| job.job_id).collect();
    assert_eq!(ids, (0..2_500).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn large_jobs_go_in_calls_that_a_server_takes() {
    let mut stub = Stub::start();
    let client = stub.client().await;
    let jobs = (0..40).map(|_| Job::new("mail", vec![7; 256 * 1024]));
    let (enqueued, calls) = tokio::join!(client.enqueue_many(jobs), async {
        let (mut calls, mut first) = (0, 0);
        while first < 40 {
            first += accept(stub.enqueues.next().await, first);
            calls += 1;
        }
        calls
    });
    assert_eq!(enqueued.unwrap().len(), 40);
    assert!((5..=8).contains(&calls), "{calls} calls for 10 MiB");
}

#[tokio::test]
async fn nothing_to_enqueue_is_no_call() {
    let mut stub = Stub::start();
    assert_eq!(stub.client().await.enqueue_many([]).await.unwrap(), []);
    assert!(stub.enqueues.none_came());
}

#[tokio::test]
async fn a_failed_enqueue_is_the_callers_to_repeat() {
    let mut stub = Stub::start();
    let client = stub.client().await;
    let (failed, ()) = tokio::join!(client.enqueue(Job::new("mail", "")), async {
        stub.enqueues.next().await.fail(Status::unavailable("the store is away"));
    });
    assert!(failed.unwrap_err().is_transient());
    let (refused, ()) = tokio::join!(client.enqueue(Job::new("a b", "")), async {
        stub.enqueues.next().await.fail(Status::invalid_argument("jobs[0].topic: `a b` is no topic"));
    });
    let error = refused.unwrap_err();
    assert!(
        matches!(error, Error::Refused { call: "Enqueue", code: Code::InvalidArgument, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("jobs[0].topic"), "{error}");
    assert!(stub.enqueues.none_came());
}
