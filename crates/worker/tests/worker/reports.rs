//! Reports: one per outcome, batched, retried until answered.

use giga_proto::v1;
use giga_proto::v1::job_result::Outcome;
use giga_worker::{Error, JobError, Permanent, Task};
use tokio::sync::mpsc;
use tonic::{Code, Status};

use crate::stub::{Running, Stub, job, jobs, next_event};

#[tokio::test]
async fn each_way_out_of_a_handler_has_its_outcome() {
    let mut stub = Stub::start();
    let worker = stub.worker().await.handle("mail", |task: Task| async move {
        match task.job_id.as_str() {
            "fails" => Err(std::io::Error::other("the post office is closed"))?,
            "cannot" => Err(Permanent("no such address"))?,
            "panics" => panic!("out of {}", "ink"),
            _ => Ok(()),
        }
    });
    let running = Running::start(worker.concurrency(1));
    let stream = stub.streams.next().await.open();
    let failure =
        |error: &str, permanent| Outcome::Failure(v1::Failure { error: error.to_owned(), permanent });
    for (id, outcome) in [
        ("works", Outcome::Success(v1::Success {})),
        ("fails", failure("the post office is closed", false)),
        ("cannot", failure("no such address", true)),
        ("panics", failure("the handler panicked: out of ink", false)),
        ("works again", Outcome::Success(v1::Success {})),
    ] {
        stream.send([job(id)]);
        let report = stub.reports.next().await;
        assert_eq!(report.request.worker_id, "tester");
        assert_eq!(
            report.request.results,
            [v1::JobResult { job_id: id.to_owned(), epoch: 7, outcome: Some(outcome) }]
        );
        report.record();
    }
    let summary = running.stop().await;
    assert_eq!((summary.succeeded, summary.failed, summary.lost), (2, 3, 0));
}

#[tokio::test]
async fn what_finishes_while_reports_are_under_way_goes_with_the_next() {
    let mut stub = Stub::start();
    let (event_sender, mut events) = mpsc::unbounded_channel();
    let worker = stub.worker().await.handle("mail", move |_| {
        event_sender.send(()).unwrap();
        async { Ok(()) }
    });
    let running = Running::start(worker.concurrency(1).max_in_flight(2_000));
    let stream = stub.streams.next().await.open();
    stream.send([job("first")]);
    let first = stub.reports.next().await;
    stream.send([job("second")]);
    let second = stub.reports.next().await;
    stream.send(jobs(0..1_200));
    // The only handler loop has stored a result before it takes the next job.
    for _ in 0..1_202 {
        next_event(&mut events).await;
    }
    assert!(stub.reports.none_came(), "a third report was started");
    first.record();
    let third = stub.reports.next().await;
    assert_eq!(third.ids().len(), 1_000, "one call takes what the coordinator allows");
    second.record();
    let mut rest = 1_200 - third.record().len();
    while rest > 0 {
        rest -= stub.reports.next().await.record().len();
    }
    assert_eq!(running.stop().await.succeeded, 1_202);
}

#[tokio::test]
async fn long_error_texts_do_not_make_a_report_too_large_to_be_taken() {
    let mut stub = Stub::start();
    let worker = stub.worker().await.handle("mail", |_| async { Err(JobError::new("€".repeat(4_000))) });
    let running = Running::start(worker.concurrency(1).max_in_flight(2_000));
    let stream = stub.streams.next().await.open();
    stream.send([job("first")]);
    let first = stub.reports.next().await;
    stream.send(jobs(0..700));
    // All of them would be more than eight megabytes, twice what the stub takes.
    first.record();
    let mut rest = 700;
    while rest > 0 {
        rest -= stub.reports.next().await.record().len();
    }
    assert_eq!(running.stop().await.failed, 701);
}

#[tokio::test]
async fn a_report_is_repeated_as_it_was_until_it_is_answered() {
    let mut stub = Stub::start();
    let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }));
    stub.streams.next().await.open().send([job("j1")]);
    let first = stub.reports.next().await;
    let sent = first.request.clone();
    first.fail(Status::unavailable("the store is away"));
    for status in [Status::internal("oops"), Status::deadline_exceeded("slow"), Status::unknown("cut")] {
        let again = stub.reports.next().await;
        assert_eq!(again.request, sent);
        again.fail(status);
    }
    assert_eq!(stub.reports.next().await.record(), ["j1"]);
    assert_eq!(running.stop().await.succeeded, 1);
}

#[tokio::test]
async fn a_report_that_nobody_hears_is_given_up_when_the_lease_is_over() {
    let mut stub = Stub::start();
    let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }));
    let short = v1::Assignment { lease_ms: 150, ..job("j1") };
    stub.streams.next().await.open().send([short]);
    let report = stub.reports.next().await;
    running.tell_to_stop();
    report.fail(Status::unavailable("away"));
    let summary = tokio::select! {
        ended = running.end() => ended.unwrap(),
        () = async { loop { stub.reports.next().await.fail(Status::unavailable("away")) } } => unreachable!(),
    };
    assert_eq!((summary.succeeded, summary.lost), (0, 1));
}

#[tokio::test]
async fn a_result_that_is_not_taken_counts_as_lost() {
    let mut stub = Stub::start();
    let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }).concurrency(1));
    let stream = stub.streams.next().await.open();
    for status in [v1::ResultStatus::Fenced, v1::ResultStatus::UnknownJob] {
        stream.send([job(status.as_str_name())]);
        stub.reports.next().await.answer(v1::ReportResultResponse { statuses: vec![status.into()] });
    }
    let summary = running.stop().await;
    assert_eq!((summary.succeeded, summary.lost), (0, 2));
}

#[tokio::test]
async fn a_refused_report_ends_the_worker() {
    let mut stub = Stub::start();
    let running = Running::start(stub.worker().await.handle("mail", |_| async { Ok(()) }));
    stub.streams.next().await.open().send([job("j1")]);
    stub.reports.next().await.fail(Status::permission_denied("the token was changed"));
    let error = running.end().await.unwrap_err();
    assert!(
        matches!(error, Error::Refused { call: "ReportResult", code: Code::PermissionDenied, .. }),
        "{error:?}"
    );
}
