//! Every bad behaviour with every way out: the reason is right and no process is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use giga_domain::{FailReason, Usd};
use giga_factory::engines::{Asking, EngineEvent, EngineOutcome, Inbox, Program, RUN_MARKER, kill_run};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engines::kit::{Bench, PATIENCE, Ran, fake_engine, marked, nothing_is_left};

/// What the engine does before it comes to its end.
const BEHAVIOURS: [&[&str]; 9] = [
    &[],
    &["child", "child"],
    &["nameless-child"],
    &["group-child"],
    &["runaway"],
    &["fork-storm 3"],
    &["ignore-term"],
    &["ignore-term", "child", "runaway", "group-child"],
    &["flood 300000", "complain now I am done"],
];

const BIG_MESSAGE: &str = r#"print {"type":"assistant","message":{"id":"m","content":[],"usage":{"input_tokens":900000,"output_tokens":100000}}}"#;

/// Runs each behaviour to the end that `last` describes.
async fn each(engine: &str, last: &[&str], end: impl AsyncFn(Bench) -> Ran, check: impl Fn(&Ran)) {
    for behaviour in BEHAVIOURS {
        let steps: Vec<&str> = behaviour.iter().chain(&["print up"]).chain(last).copied().collect();
        let ran = end(Bench::new(engine, &steps)).await;
        check(&ran);
        ran.nothing_is_left().await;
    }
}

#[tokio::test]
async fn success() {
    each("plain", &["exit 0"], Bench::run, Ran::succeeded).await;
}

#[tokio::test]
async fn failure() {
    each("plain", &["exit 3"], Bench::run, |ran| {
        ran.failed(FailReason::Crash, false);
        assert!(ran.failure().detail.starts_with("exited with code 3"), "{:?}", ran.failure());
    })
    .await;
}

#[tokio::test]
async fn death_by_a_signal() {
    each("plain", &["abort"], Bench::run, |ran| {
        ran.failed(FailReason::Crash, true);
        assert!(ran.failure().detail.starts_with("was ended by signal 6"), "{:?}", ran.failure());
    })
    .await;
}

#[tokio::test]
async fn silence() {
    let run = async |bench: Bench| {
        bench.with(|request| request.watchdog.idle = Duration::from_millis(300)).run().await
    };
    each("plain", &["hang"], run, |ran| ran.failed(FailReason::Timeout, true)).await;
}

#[tokio::test]
async fn silence_while_people_are_asked_is_none() {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&looks);
    // Open at two looks, and answered long ago at the third.
    let asking = Asking::new(move || {
        let look = counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Some(if look < 2 { Duration::ZERO } else { Duration::from_mins(1) }))
    });
    let bench = Bench::new("plain", &["hang"]).with(|request| {
        request.watchdog.idle = Duration::from_millis(300);
        request.asking = Some(asking);
    });
    bench.run().await.failed(FailReason::Timeout, true);
    assert_eq!(looks.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn silence_behind_closed_output() {
    let bench = Bench::new("plain", &["print up", "closed-hang"]);
    let ran = bench.with(|request| request.watchdog.idle = Duration::from_millis(300)).run().await;
    ran.failed(FailReason::Timeout, true);
    ran.nothing_is_left().await;
}

#[tokio::test]
async fn taking_too_long_while_talking() {
    let run = async |bench: Bench| {
        bench.with(|request| request.watchdog.wall = Duration::from_millis(400)).run().await
    };
    each("plain", &["trickle 20"], run, |ran| ran.failed(FailReason::Timeout, false)).await;
}

#[tokio::test]
async fn the_jobs_own_cap_on_time() {
    let run = async |bench: Bench| bench.with(|request| request.budget.wall_ms = Some(400)).run().await;
    each("plain", &["trickle 20"], run, |ran| ran.failed(FailReason::BudgetExceeded, false)).await;
}

#[tokio::test]
async fn too_many_tokens() {
    let run = async |bench: Bench| bench.with(|request| request.budget.tokens = Some(999_999)).run().await;
    each("claude", &[BIG_MESSAGE, "hang"], run, |ran| {
        ran.failed(FailReason::BudgetExceeded, false);
        assert_eq!(ran.report.usage.tokens, 1_000_000);
    })
    .await;
}

#[tokio::test]
async fn too_many_dollars() {
    let run = async |bench: Bench| {
        bench.with(|request| request.budget.usd = Some(Usd::from_dollars(1))).run().await
    };
    each("claude", &[BIG_MESSAGE, "hang"], run, |ran| ran.failed(FailReason::BudgetExceeded, false)).await;
}

#[tokio::test]
async fn a_budget_that_is_not_used_up_stops_nothing() {
    let bench = Bench::new("claude", &[BIG_MESSAGE, r#"print {"type":"result","subtype":"success"}"#]);
    let ran = bench.with(|request| request.budget.tokens = Some(1_000_000)).run().await;
    ran.succeeded();
}

#[tokio::test]
async fn stopping() {
    let stop = async |bench: Bench| bench.stop_at("up").await;
    each("plain", &["hang"], stop, |ran| assert_eq!(ran.report.outcome, EngineOutcome::Stopped)).await;
}

#[tokio::test]
async fn stopping_an_engine_that_talks() {
    let stop = async |bench: Bench| bench.stop_at("up").await;
    each("plain", &["trickle 5"], stop, |ran| assert_eq!(ran.report.outcome, EngineOutcome::Stopped)).await;
}

#[tokio::test]
async fn a_polite_engine_is_asked_and_heard() {
    let bench = Bench::new("plain", &["tell-term", "print up", "hang"]);
    let ran = bench.with(|request| request.watchdog.kill_grace = PATIENCE).stop_at("up").await;
    assert_eq!(ran.report.outcome, EngineOutcome::Stopped);
    assert_eq!(ran.lines(), ["up", "asked to go"], "asked once");
}

#[tokio::test]
async fn a_stop_before_the_start_starts_nothing() {
    let bench = Bench::new("plain", &["write started yes"]);
    let stop = CancellationToken::new();
    stop.cancel();
    let (events, _receiver) = mpsc::channel(8);
    let report = bench.engine().run(bench.request.clone(), events, Inbox::closed(), stop).await;
    assert_eq!(report.outcome, EngineOutcome::Stopped);
    assert!(!bench.dir.path().join("started").exists());
}

#[tokio::test]
async fn a_run_whose_task_is_aborted() {
    for behaviour in BEHAVIOURS {
        let steps: Vec<&str> = behaviour.iter().chain(&["print up", "hang"]).copied().collect();
        let bench = Bench::new("plain", &steps);
        let (sender, mut events) = mpsc::channel(64);
        let (engine, request) = (bench.engine(), bench.request.clone());
        let task = tokio::spawn(async move {
            engine.run(request, sender, Inbox::closed(), CancellationToken::new()).await
        });
        let up = async {
            let mut pids = Vec::new();
            while let Some(event) = events.recv().await {
                if let EngineEvent::Output { line, .. } = event {
                    pids.extend(line.strip_prefix("pid ").and_then(|id| id.parse::<u32>().ok()));
                    if line == "up" {
                        break;
                    }
                }
            }
            pids
        };
        let mut pids: Vec<u32> = tokio::time::timeout(PATIENCE, up).await.unwrap();
        pids.extend(marked(&bench.marker));
        assert!(!pids.is_empty(), "the engine itself is alive");
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        // Dropping cannot wait, so whoever it killed may still be on the way out.
        let gone = async {
            while !marked(&bench.marker).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap();
        nothing_is_left(&bench.marker, &pids).await;
    }
}

/// What a factory does that came back after a crash.
#[tokio::test]
async fn what_a_dead_factory_left_can_be_killed_by_name() {
    let bench = Bench::new("plain", &[]);
    let mut orphan = tokio::process::Command::new(fake_engine())
        .args(["--fake", "ignore-term", "--fake", "runaway", "--fake", "hang"])
        .env(RUN_MARKER, &bench.marker)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // The runaway says that it is there.
    let mut first = [0; 4];
    tokio::io::AsyncReadExt::read_exact(orphan.stdout.as_mut().unwrap(), &mut first).await.unwrap();
    assert_eq!(&first, b"pid ");
    assert_eq!(kill_run(&format!("{}-other", bench.marker)), 0);
    assert_eq!(kill_run(&bench.marker), 2);
    orphan.wait().await.unwrap();
    let gone = async {
        while kill_run(&bench.marker) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn what_cannot_start() {
    let missing = Bench::new("claude", &[])
        .configured(|config| {
            config.programs.entry(Program::Claude).or_default().program = Some("/no/such/program".into());
        })
        .run()
        .await;
    missing.failed(FailReason::NoEngine, false);

    let no_dir = Bench::new("plain", &[]).with(|request| request.dir = "/no/such/folder".into()).run().await;
    no_dir.failed(FailReason::Infrastructure, true);

    let no_script = Bench::new("shell", &[]).run().await;
    no_script.failed(FailReason::CapabilityMismatch, false);
}
