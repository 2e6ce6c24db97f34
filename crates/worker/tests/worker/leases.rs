//! Leases: renewed together while handlers work, and what a handler hears when one is lost.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use giga_proto::v1::job_result::Outcome;
use giga_worker::{JobError, Task};
use tokio::sync::{Semaphore, mpsc};
use tonic::Status;

use crate::stub::{Running, Stub, job, next_event};

/// Short enough to wait for, long enough for a busy machine.
const LEASE_MS: u32 = 1_500;

fn short(id: &str, epoch: u64) -> v1::Assignment {
    v1::Assignment { epoch, lease_ms: LEASE_MS, ..job(id) }
}

fn kept(lost: &[&str]) -> v1::HeartbeatResponse {
    v1::HeartbeatResponse { lost_job_ids: lost.iter().map(|&id| id.to_owned()).collect(), lease_ms: LEASE_MS }
}

fn ids(request: &v1::HeartbeatRequest) -> Vec<(String, u64)> {
    let mut ids: Vec<_> = request.held.iter().map(|held| (held.job_id.clone(), held.epoch)).collect();
    ids.sort();
    ids
}

/// A worker whose handlers say that they started, then wait to be let go or for their job to be lost.
async fn waiting(stub: &Stub) -> (Running, Arc<Semaphore>, mpsc::UnboundedReceiver<String>) {
    let gate = Arc::new(Semaphore::new(0));
    let (event_sender, events) = mpsc::unbounded_channel();
    let held = gate.clone();
    let handler = move |task: Task| {
        let (gate, event_sender) = (held.clone(), event_sender.clone());
        async move {
            let name = format!("{}/{}", task.job_id, task.epoch);
            event_sender.send(format!("{name} started")).unwrap();
            tokio::select! {
                permit = gate.acquire() => permit.unwrap().forget(),
                () = task.lost().cancelled() => {
                    event_sender.send(format!("{name} lost")).unwrap();
                    return Err(JobError::new("stopped in the middle"));
                }
            }
            Ok(())
        }
    };
    (Running::start(stub.worker().await.handle("mail", handler)), gate, events)
}

#[tokio::test]
async fn long_work_is_renewed_in_one_call_for_all() {
    let mut stub = Stub::start();
    let (running, gate, mut events) = waiting(&stub).await;
    stub.streams.next().await.open().send([short("a", 3), short("b", 5)]);
    next_event(&mut events).await;
    next_event(&mut events).await;
    // Past the end of the first lease, and through a heartbeat that fails.
    for beat in 0..4 {
        let call = stub.heartbeats.next().await;
        assert_eq!(call.request.worker_id, "tester");
        assert_eq!(ids(&call.request), [("a".to_owned(), 3), ("b".to_owned(), 5)]);
        if beat == 1 {
            call.fail(Status::unavailable("away"));
        } else {
            call.answer(kept(&[]));
        }
    }
    gate.add_permits(2);
    let mut reported = 0;
    while reported < 2 {
        reported += stub.reports.next().await.record().len();
    }
    let summary = running.stop().await;
    assert_eq!((summary.succeeded, summary.lost), (2, 0));
}

#[tokio::test]
async fn a_lost_lease_cancels_its_handler_and_drops_the_result() {
    let mut stub = Stub::start();
    let (running, gate, mut events) = waiting(&stub).await;
    stub.streams.next().await.open().send([short("mine", 1), short("gone", 1)]);
    next_event(&mut events).await;
    next_event(&mut events).await;
    stub.heartbeats.next().await.answer(kept(&["gone"]));
    assert_eq!(next_event(&mut events).await, "gone/1 lost");
    let call = stub.heartbeats.next().await;
    assert_eq!(ids(&call.request), [("mine".to_owned(), 1)]);
    call.answer(kept(&[]));
    gate.add_permits(1);
    assert_eq!(stub.reports.next().await.record(), ["mine"]);
    let summary = running.stop().await;
    assert_eq!((summary.succeeded, summary.lost), (1, 1));
    assert!(stub.reports.none_came());
}

#[tokio::test]
async fn a_lease_that_nobody_renews_is_lost_when_it_ends() {
    let mut stub = Stub::start();
    let (running, _gate, mut events) = waiting(&stub).await;
    let started = tokio::time::Instant::now();
    stub.streams.next().await.open().send([short("j1", 1)]);
    assert_eq!(next_event(&mut events).await, "j1/1 started");
    // No heartbeat is answered.
    assert_eq!(next_event(&mut events).await, "j1/1 lost");
    assert!(started.elapsed().as_millis() >= u128::from(LEASE_MS), "not before its time");
    assert_eq!(running.stop().await.lost, 1);
    assert!(!stub.heartbeats.none_came());
    assert!(stub.reports.none_came());
}

#[tokio::test]
async fn a_job_that_comes_back_under_a_new_epoch_replaces_the_old_one() {
    let mut stub = Stub::start();
    let (running, gate, mut events) = waiting(&stub).await;
    let stream = stub.streams.next().await.open();
    stream.send([job("j1")]);
    assert_eq!(next_event(&mut events).await, "j1/7 started");
    // The same once more: already in hand, not started again.
    stream.send([job("j1")]);
    stream.send([v1::Assignment { epoch: 9, ..job("j1") }]);
    let mut seen = [next_event(&mut events).await, next_event(&mut events).await];
    seen.sort();
    assert_eq!(seen, ["j1/7 lost", "j1/9 started"]);
    gate.add_permits(1);
    // A report of the old holder does not count as one of the new holder.
    let report = stub.reports.next().await;
    let success = Some(Outcome::Success(v1::Success {}));
    assert_eq!(
        report.request.results,
        [v1::JobResult { job_id: "j1".to_owned(), epoch: 9, outcome: success }]
    );
    report.record();
    let summary = running.stop().await;
    assert_eq!((summary.succeeded, summary.lost), (1, 1));
}

#[tokio::test]
async fn a_late_word_about_an_old_epoch_does_not_touch_the_new_one() {
    let mut stub = Stub::start();
    let (running, gate, mut events) = waiting(&stub).await;
    let stream = stub.streams.next().await.open();
    stream.send([short("j1", 1)]);
    assert_eq!(next_event(&mut events).await, "j1/1 started");
    let beat = stub.heartbeats.next().await;
    assert_eq!(ids(&beat.request), [("j1".to_owned(), 1)]);
    stream.send([short("j1", 2)]);
    let mut seen = [next_event(&mut events).await, next_event(&mut events).await];
    seen.sort();
    assert_eq!(seen, ["j1/1 lost", "j1/2 started"]);
    beat.answer(kept(&["j1"]));
    let next = stub.heartbeats.next().await;
    assert_eq!(ids(&next.request), [("j1".to_owned(), 2)]);
    next.answer(kept(&[]));
    gate.add_permits(1);
    let report = stub.reports.next().await;
    assert_eq!(report.request.results[0].epoch, 2);
    report.record();
    assert_eq!(running.stop().await.succeeded, 1);
}

/// A lost job is no longer in flight: a worker that was full has room for another stream.
#[tokio::test]
async fn a_worker_that_lost_everything_asks_for_jobs_again() {
    for answered in [true, false] {
        let mut stub = Stub::start();
        let (event_sender, mut events) = mpsc::unbounded_channel();
        let worker = stub.worker().await.concurrency(2).max_in_flight(2).drain_timeout(Duration::ZERO);
        let worker = worker.handle("mail", move |task: Task| {
            event_sender.send(task.job_id).unwrap();
            // It never returns, so it has no result either.
            std::future::pending()
        });
        let running = Running::start(worker);
        let stream = stub.streams.next().await.open();
        stream.send([short("a", 1), short("b", 1)]);
        next_event(&mut events).await;
        next_event(&mut events).await;
        stream.fail(Status::unavailable("away"));
        if answered {
            stub.heartbeats.next().await.answer(kept(&["a", "b"]));
        }
        let _again = stub.streams.next().await.open();
        assert_eq!(running.stop().await.lost, 2);
    }
}
