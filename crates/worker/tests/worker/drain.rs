//! Stopping: nothing is started any more, what runs may finish, what does not is released, and all of it is reported.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1::job_result::Outcome;
use giga_worker::{Task, Worker};
use tokio::sync::{Semaphore, mpsc};

use crate::stub::{ReportCall, Running, Stub, jobs, next_event};

fn with_gate(worker: Worker, gate: &Arc<Semaphore>) -> (Worker, mpsc::UnboundedReceiver<String>) {
    let (event_sender, events) = mpsc::unbounded_channel();
    let gate = gate.clone();
    let worker = worker.handle("mail", move |task: Task| {
        let (gate, event_sender) = (gate.clone(), event_sender.clone());
        async move {
            event_sender.send(task.job_id).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(())
        }
    });
    (worker, events)
}

/// Records reports until so many results have come: those released, and those that succeeded.
async fn outcomes(stub: &mut Stub, results: usize) -> (Vec<String>, Vec<String>) {
    let (mut released, mut done) = (Vec::new(), Vec::new());
    while released.len() + done.len() < results {
        let report: ReportCall = stub.reports.next().await;
        for result in &report.request.results {
            match &result.outcome {
                Some(Outcome::Release(_)) => released.push(result.job_id.clone()),
                Some(Outcome::Success(_)) => done.push(result.job_id.clone()),
                other => panic!("{other:?}"),
            }
        }
        report.record();
    }
    released.sort();
    done.sort();
    (released, done)
}

#[tokio::test]
async fn running_work_finishes_and_the_rest_is_given_back() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let (worker, mut events) = with_gate(stub.worker().await, &gate);
    let running = Running::start(worker.concurrency(2).max_in_flight(10));
    let stream = stub.streams.next().await.open();
    stream.send(jobs(0..5));
    next_event(&mut events).await;
    next_event(&mut events).await;
    running.tell_to_stop();
    stream.left().await;
    let (released, done) = outcomes(&mut stub, 3).await;
    assert_eq!((released.as_slice(), done.len()), (["2", "3", "4"].map(String::from).as_slice(), 0));
    gate.add_permits(2);
    let (released, done) = outcomes(&mut stub, 2).await;
    assert_eq!((released.len(), done.as_slice()), (0, ["0", "1"].map(String::from).as_slice()));
    let summary = running.end().await.unwrap();
    assert_eq!((summary.succeeded, summary.released, summary.lost), (2, 3, 0));
    assert!(events.try_recv().is_err(), "a handler was started after the stop");
}

#[tokio::test]
async fn jobs_that_are_on_their_way_when_it_stops_are_given_back() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let (worker, mut events) = with_gate(stub.worker().await, &gate);
    let running = Running::start(worker.concurrency(2).max_in_flight(10));
    let stream = stub.streams.next().await.open();
    stream.send(jobs(0..1));
    next_event(&mut events).await;
    running.tell_to_stop();
    stream.send(jobs(1..3));
    stream.send(jobs(3..4));
    gate.add_permits(4);
    let (released, done) = outcomes(&mut stub, 4).await;
    assert!(released.contains(&"3".to_owned()), "{released:?} released, {done:?} done");
    assert_eq!(running.end().await.unwrap().lost, 0);
}

#[tokio::test]
async fn handlers_that_do_not_end_in_time_are_ended_and_their_jobs_given_back() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let (worker, mut events) = with_gate(stub.worker().await, &gate);
    let running = Running::start(worker.concurrency(2).drain_timeout(Duration::from_millis(50)));
    stub.streams.next().await.open().send(jobs(0..2));
    next_event(&mut events).await;
    next_event(&mut events).await;
    running.tell_to_stop();
    let (released, _) = outcomes(&mut stub, 2).await;
    assert_eq!(released, ["0", "1"]);
    assert_eq!(running.end().await.unwrap().released, 2);
}

#[tokio::test]
async fn an_idle_worker_and_one_without_a_coordinator_stop_at_once() {
    let mut stub = Stub::start();
    let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }));
    let stream = stub.streams.next().await.open();
    assert_eq!(running.stop().await.succeeded, 0);
    stream.left().await;

    let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }));
    stub.streams.next().await.open();
    stub.kill().await;
    assert_eq!(running.stop().await.succeeded, 0);
}

#[tokio::test]
async fn a_worker_that_is_dropped_leaves_nothing_running() {
    let mut stub = Stub::start();
    let gate = Arc::new(Semaphore::new(0));
    let (worker, mut events) = with_gate(stub.worker().await, &gate);
    let run = tokio::spawn(worker.run(std::future::pending::<()>()));
    let stream = stub.streams.next().await.open();
    stream.send(jobs(0..1));
    next_event(&mut events).await;
    run.abort();
    stream.left().await;
    // The handler's end of the channel goes with the handler.
    let ended = tokio::time::timeout(crate::stub::DEADLINE, events.recv()).await;
    assert_eq!(ended.unwrap(), None);
}
