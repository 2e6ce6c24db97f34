//! The stream: what is asked for, how it comes back after it broke, and what ends the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use giga_proto::v1;
use giga_worker::{Client, Config, Error, Priority, Task, Worker};
use tokio::sync::{Semaphore, mpsc};
use tonic::{Code, Status};

use crate::stub::{Running, Stub, TOKEN, job, jobs, next_event};

#[tokio::test]
async fn the_stream_says_who_asks_for_what() {
    let mut stub = Stub::start();
    let nothing = |_: Task| async { Ok(()) };
    let worker = stub.worker().await.handle("mail", nothing).handle("fax", nothing);
    let running = Running::start(worker.concurrency(21));
    let call = stub.streams.next().await;
    assert_eq!(call.metadata.get("authorization").unwrap(), &format!("Bearer {TOKEN}"));
    assert_eq!(call.metadata.get("x-product-id").unwrap(), "demo");
    assert_eq!(
        call.request,
        v1::StreamJobsRequest {
            topics: vec!["mail".to_owned(), "fax".to_owned()],
            worker_id: "tester".to_owned(),
            max_in_flight: 24,
        }
    );
    let stream = call.open();
    running.stop().await;
    stream.left().await;
}

#[tokio::test]
async fn a_handler_sees_the_whole_assignment() {
    let mut stub = Stub::start();
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let worker = stub.worker().await.handle("mail", move |task: Task| {
        event_sender.send(task).unwrap();
        async { Ok(()) }
    });
    let running = Running::start(worker);
    let created = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_001);
    stub.streams.next().await.open().send([v1::Assignment {
        payload: b"hello".to_vec(),
        attempt: 3,
        priority: v1::Priority::High.into(),
        created_at: Some(created.into()),
        ..job("j1")
    }]);
    let task = next_event(&mut events).await;
    assert_eq!((task.job_id.as_str(), task.topic.as_str(), task.attempt, task.epoch), ("j1", "mail", 3, 7));
    assert_eq!((task.payload.as_slice(), task.priority), (b"hello".as_slice(), Priority::High));
    assert_eq!(task.created_at, Some(created));
    assert!(!task.lost().is_cancelled());
    stub.reports.next().await.record();
    assert_eq!(running.stop().await.succeeded, 1);
}

#[tokio::test]
async fn no_more_handlers_run_at_once_than_allowed() {
    let mut stub = Stub::start();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let handler = {
        let (now, most, gate) = (now.clone(), most.clone(), gate.clone());
        move |_: Task| {
            let (now, most, gate, event_sender) =
                (now.clone(), most.clone(), gate.clone(), event_sender.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                event_sender.send(()).unwrap();
                gate.acquire().await.unwrap().forget();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        }
    };
    let running = Running::start(stub.worker().await.handle("mail", handler).concurrency(3));
    let stream = stub.streams.next().await.open();
    stream.send(jobs(0..6));
    for _ in 0..3 {
        next_event(&mut events).await;
    }
    // A handler that returns makes room for one more, also while its result is not answered yet.
    for _ in 0..3 {
        gate.add_permits(1);
        next_event(&mut events).await;
    }
    gate.add_permits(3);
    let mut reported = 0;
    while reported < 6 {
        reported += stub.reports.next().await.record().len();
    }
    assert_eq!(running.stop().await.succeeded, 6);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_broken_stream_is_opened_again_and_work_goes_on() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let worker = stub.worker().await.handle("mail", move |task: Task| {
        let gate = held.clone();
        async move {
            if task.job_id == "slow" {
                gate.acquire().await.unwrap().forget();
            }
            Ok(())
        }
    });
    let running = Running::start(worker);
    let stream = stub.streams.next().await.open();
    stream.send([job("slow")]);
    stream.fail(Status::unavailable("the coordinator is stopping"));
    // Also when the first try to come back fails.
    stub.streams.next().await.fail(Status::unavailable("not yet"));
    let stream = stub.streams.next().await.open();
    stream.send([job("quick")]);
    assert_eq!(stub.reports.next().await.record(), ["quick"]);
    gate.add_permits(1);
    assert_eq!(stub.reports.next().await.record(), ["slow"]);
    assert_eq!(running.stop().await.succeeded, 2);
}

#[tokio::test]
async fn a_coordinator_that_dies_and_comes_back_is_found_again() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let worker = stub.worker().await.handle("mail", move |task: Task| {
        let (gate, event_sender) = (held.clone(), event_sender.clone());
        async move {
            event_sender.send(task.job_id).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(())
        }
    });
    let running = Running::start(worker);
    stub.streams.next().await.open().send([job("survivor")]);
    assert_eq!(next_event(&mut events).await, "survivor");
    let address = stub.kill().await;
    // The handler returns while nobody is there to be events.
    gate.add_permits(1);
    let mut stub = Stub::start_at(address);
    let report = stub.reports.next().await;
    assert_eq!(report.request.results[0].epoch, 7);
    assert_eq!(report.record(), ["survivor"]);
    stub.streams.next().await.open();
    assert_eq!(running.stop().await.succeeded, 1);
}

#[tokio::test]
async fn full_hands_are_emptied_before_a_new_stream_brings_more() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let worker = stub.worker().await.handle("mail", move |_: Task| {
        let (gate, event_sender) = (held.clone(), event_sender.clone());
        async move {
            event_sender.send(()).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(())
        }
    });
    let running = Running::start(worker.concurrency(2).max_in_flight(2));
    let stream = stub.streams.next().await.open();
    stream.send(jobs(0..2));
    next_event(&mut events).await;
    next_event(&mut events).await;
    stream.fail(Status::unavailable("gone"));
    // Many times the first wait.
    let early = tokio::time::timeout(Duration::from_millis(500), stub.streams.next()).await;
    assert!(early.is_err(), "a stream was opened with full hands");
    gate.add_permits(1);
    stub.reports.next().await.record();
    stub.streams.next().await.open();
    gate.add_permits(1);
    stub.reports.next().await.record();
    assert_eq!(running.stop().await.succeeded, 2);
}

#[tokio::test]
async fn a_refusal_ends_the_worker_and_never_shows_the_token() {
    for status in [
        Status::unauthenticated("the token is not known"),
        Status::permission_denied("the token is not for topics"),
        Status::invalid_argument("topics: `a b` is no topic"),
    ] {
        let mut stub = Stub::start();
        let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }));
        stub.streams.next().await.fail(status.clone());
        let error = running.end().await.unwrap_err();
        assert!(!error.is_transient());
        let text = format!("{error} {error:?}");
        assert!(text.contains(status.message()) && !text.contains(TOKEN), "{text}");
    }
}

#[tokio::test]
async fn a_refusal_in_the_middle_tells_handlers_that_their_jobs_are_lost() {
    let mut stub = Stub::start();
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let worker = stub.worker().await.handle("mail", move |task: Task| {
        let event_sender = event_sender.clone();
        async move {
            event_sender.send("started").unwrap();
            task.lost().cancelled().await;
            event_sender.send("stopped").unwrap();
            Ok(())
        }
    });
    let running = Running::start(worker);
    let stream = stub.streams.next().await.open();
    stream.send([job("j1")]);
    assert_eq!(next_event(&mut events).await, "started");
    stream.fail(Status::unauthenticated("the token was revoked"));
    assert_eq!(next_event(&mut events).await, "stopped");
    assert!(matches!(running.end().await, Err(Error::Refused { code: Code::Unauthenticated, .. })));
}

#[tokio::test]
async fn settings_that_cannot_work_are_named() {
    let stub = Stub::start();
    let nothing = |_: Task| async { Ok(()) };
    let refused = async |worker: Worker| {
        let error = worker.run(std::future::pending::<()>()).await.unwrap_err();
        assert!(matches!(error, Error::Setting { .. }), "{error:?}");
        error.to_string()
    };
    let fresh = || async { stub.worker().await };
    assert!(refused(fresh().await).await.starts_with("handle: the worker serves no topic"));
    let twice = fresh().await.handle("mail", nothing).handle("mail", nothing);
    assert!(refused(twice).await.contains("topic `mail` has two handlers"));
    let none = fresh().await.handle("mail", nothing).concurrency(0);
    assert!(refused(none).await.starts_with("concurrency: "));
    let many = fresh().await.handle("mail", nothing).max_in_flight(10_001);
    assert!(refused(many).await.starts_with("max_in_flight: 10001"));
    let starved = fresh().await.handle("mail", nothing).concurrency(10).max_in_flight(9);
    assert!(refused(starved).await.starts_with("concurrency: 10 handlers"));
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named() {
    let address = Stub::start().kill().await;
    let url = format!("http://{address}");
    let error = Client::connect(Config::new(&url, TOKEN)).await.unwrap_err();
    assert!(error.is_transient());
    let text = format!("{error} {error:?}");
    assert!(text.contains(&url) && !text.contains(TOKEN), "{text}");
    Client::connect_lazily(Config::new(&url, TOKEN)).unwrap();
}
