//! What reaches the listener: bounded, readable, without secrets, and never at the engine's cost.

use std::time::Duration;

use giga_domain::{FailReason, Usd};
use giga_factory::engines::{EngineEvent, EngineOutcome, Secret, Stream};
use tokio::sync::mpsc;

use crate::engines::kit::{Bench, fixture, nothing_is_left};

const RESULT: &str =
    r#"print {"type":"result","subtype":"success","is_error":false,"result":"fine","total_cost_usd":0.25}"#;

#[tokio::test]
async fn lines_come_in_order_with_their_stream() {
    let ran = Bench::new("plain", &["print one", "print two", "print "]).run().await;
    assert_eq!(ran.lines(), ["one", "two", ""]);
    assert_eq!(ran.report.summary.as_deref(), Some("two"));
    let ran = Bench::new("plain", &["complain oops", "exit 1"]).run().await;
    assert_eq!(ran.events, [EngineEvent::Output { stream: Stream::Stderr, line: "oops".into() }]);
    assert!(ran.failure().detail.contains("oops"), "the last complaint explains the failure");
}

#[tokio::test]
async fn a_flood_is_cut_and_the_end_is_still_understood() {
    let bench = Bench::new("claude", &["flood 3000000", RESULT]);
    let ran = bench.with(|request| request.output_limit = 10_000).run().await;
    ran.succeeded();
    assert_eq!(ran.report.usage.cost, Some(Usd::from_micros(250_000)));
    assert_eq!(ran.lines().len(), 100);
    let notes = ran.notes();
    assert!(notes.len() == 1 && notes[0].contains("10000 bytes"), "{notes:?}");
}

#[tokio::test]
async fn a_long_line_is_cut_with_a_note() {
    let ran = Bench::new("claude", &["long-line 5000000", "print next", RESULT]).run().await;
    ran.succeeded();
    let lines = ran.lines();
    assert_eq!(lines.iter().map(|line| line.len()).take(2).collect::<Vec<_>>(), [65_536, 4]);
    assert!(ran.notes()[0].contains("4934464 bytes"), "{:?}", ran.notes());
}

#[tokio::test]
async fn what_is_no_text_is_replaced() {
    let ran = Bench::new("plain", &["bytes", "print after"]).run().await;
    ran.succeeded();
    assert_eq!(ran.lines(), ["caf\u{fffd} \u{fffd}\u{fffd} end", "after"]);
}

#[tokio::test]
async fn secrets_do_not_leave() {
    let steps = [
        "print the password is correct-horse",
        "halves correct-horse",
        "complain correct-horse again",
        "print ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "print giga_job_0123456789abcdefghijABCDEFGHIJ",
        "print Authorization: Bearer abcdefgh.ijkl",
        "print value-of-the-key and battery-staple",
        "exit 1",
    ];
    let mut bench = Bench::new("claude", &steps);
    bench.host.push(("ANTHROPIC_API_KEY".into(), "value-of-the-key".into()));
    let ran = bench
        .with(|request| {
            request.redact.push(Secret::new("correct-horse"));
            request.env.push(("GIGA_JOB_TOKEN".into(), "battery-staple".into()));
        })
        .run()
        .await;
    let all = format!("{:?} {:?}", ran.report, ran.events);
    for secret in
        ["correct-horse", "ghp_", "giga_job_", "abcdefgh.ijkl", "value-of-the-key", "battery-staple"]
    {
        assert!(!all.contains(secret), "{secret} is in {all}");
    }
    assert!(ran.lines().contains(&"[redacted]"), "a secret in two writes is one secret");
    assert!(ran.failure().detail.contains("[redacted] again"));
}

#[tokio::test]
async fn a_secret_in_the_reply_or_the_error_does_not_leave_either() {
    let error =
        r#"print {"type":"result","subtype":"success","is_error":true,"result":"correct-horse was refused"}"#;
    let ran =
        Bench::new("claude", &[error]).with(|request| request.redact = vec![Secret::new("correct-horse")]);
    let ran = ran.run().await;
    assert_eq!(ran.failure().detail, "[redacted] was refused");
    assert_eq!(ran.report.summary.as_deref(), Some("[redacted] was refused"));
}

#[tokio::test]
async fn a_listener_that_is_gone_changes_nothing() {
    let bench = Bench::new("claude", &["flood 1000000", &format!("emit {}", fixture("claude-success"))]);
    let (events, receiver) = mpsc::channel(1);
    drop(receiver);
    let report = bench.run_into(events).await;
    assert_eq!(report.outcome, EngineOutcome::Succeeded);
    assert_eq!(report.summary.as_deref(), Some("The greeting is fixed."));
}

#[tokio::test]
async fn a_listener_that_is_stuck_neither_holds_the_engine_nor_hides_its_end() {
    let bench = Bench::new("claude", &["flood 1000000", &format!("emit {}", fixture("claude-success"))]);
    let (events, _never_read) = mpsc::channel(1);
    let report = bench.run_into(events).await;
    assert_eq!(report.outcome, EngineOutcome::Succeeded);
}

#[tokio::test]
async fn a_stuck_listener_does_not_hold_up_a_watchdog() {
    let bench = Bench::new("plain", &["flood 1000000", "trickle 10"])
        .with(|request| request.watchdog.wall = Duration::from_millis(500));
    let (events, _never_read) = mpsc::channel(1);
    let report = bench.run_into(events).await;
    let EngineOutcome::Failed(failure) = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(failure.reason, FailReason::Timeout);
    nothing_is_left(&bench.marker, &[]).await;
}
