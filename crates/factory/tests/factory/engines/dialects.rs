//! What the event streams of each engine mean. The samples follow the formats that the engines document.

use std::time::Duration;

use giga_domain::FailReason::{
    BudgetExceeded, ContextTooLong, Crash, Infrastructure, NoEngine, OutOfQuota, Refused, SignedOut,
};
use giga_domain::Usd;
use giga_factory::engines::{EngineEvent, Price, Program, Usage};

use crate::engines::kit::{Bench, Ran, fixture};

fn bench(engine: &str, sample: &str, last: &str) -> Bench {
    Bench::new(engine, &[&format!("emit {}", fixture(sample)), last])
}

async fn run(engine: &str, sample: &str, last: &str) -> Ran {
    bench(engine, sample, last).run().await
}

fn usage(tokens: u64, micros: i64) -> Usage {
    Usage { tokens, cost: Some(Usd::from_micros(micros)) }
}

/// What the real programs printed in runs of the matrix (`cargo xtask engines matrix --record`).
#[tokio::test]
async fn recorded_runs_of_the_real_programs() {
    for program in Program::ALL {
        let engine = program.as_str();
        let ran = run(engine, &format!("real-{engine}-edit"), "").await;
        ran.succeeded();
        // Two turns of 1,000 and 50 each.
        assert_eq!(ran.report.usage.tokens, 2_100, "{engine}");
        assert!(ran.report.metered && ran.report.session_id.is_some(), "{engine}: {:?}", ran.report);
        assert!(ran.report.summary.as_deref().unwrap().ends_with("Done."), "{engine}: {:?}", ran.report);
        let ran = run(engine, &format!("real-{engine}-signed-out"), "exit 1").await;
        ran.failed(SignedOut, true);
        assert!(ran.report.metered, "{engine}: nothing was used");
        assert_eq!(ran.report.usage.tokens, 0, "{engine}");
    }
}

#[tokio::test]
async fn claude_succeeds() {
    let ran = run("claude", "claude-success", "").await;
    ran.succeeded();
    assert_eq!(ran.report.session_id.as_deref(), Some("5b0c9a52-5a0e-4c3f-9f0e-0e6f6b1c2d3e"));
    assert_eq!(ran.report.summary.as_deref(), Some("The greeting is fixed."));
    assert_eq!(ran.report.usage, usage(26_085, 31_200));
    // While it ran: each message counted once, at the listed price; at the end, its own word.
    let tokens: Vec<u64> = ran.usages().iter().map(|usage| usage.tokens).collect();
    assert_eq!(tokens, [13_044, 13_059, 26_085, 26_085]);
    let sessions = ran.events.iter().filter(|event| matches!(event, EngineEvent::Session { .. })).count();
    assert_eq!(sessions, 1, "told once");
    assert_eq!(ran.lines().len(), 9, "every raw line is kept");
    assert_eq!(ran.notes(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_resumed_sum_is_not_counted_twice() {
    let before = usage(20_000, 30_000);
    let resume = |bench: Bench| {
        bench.with(|request| {
            request.resume = Some("5b0c9a52-5a0e-4c3f-9f0e-0e6f6b1c2d3e".into());
            request.usage_before = before;
        })
    };
    let message = r#"print {"type":"assistant","message":{"id":"m","usage":{"input_tokens":6000}}}"#;
    let sum = r#"print {"type":"result","subtype":"success","total_cost_usd":0.0312,"usage":{"input_tokens":26085}}"#;
    let ran = resume(Bench::new("claude", &[message, sum])).run().await;
    assert_eq!(ran.report.usage, usage(6_085, 1_200));
    // One that names no more than this run's own messages has begun to count anew.
    let ran = resume(bench("claude", "claude-success", "")).run().await;
    assert_eq!(ran.report.usage, usage(26_085, 31_200));
    let ran = resume(bench("codex", "codex-success", "")).run().await;
    assert_eq!(ran.report.usage.tokens, 24_885 - 20_000);
    // opencode counts steps, so there is nothing to take off.
    let ran = resume(bench("opencode", "opencode-success", "")).run().await;
    assert_eq!(ran.report.usage, usage(44_094, 3_500));
    // A sum that is smaller than what was before cannot contain it.
    let ran =
        resume(bench("claude", "claude-budget", "")).with(|request| request.usage_before = usage(0, 900_000));
    assert_eq!(ran.run().await.report.usage.cost, Some(Usd::from_micros(520_000)));
}

/// A run that is stopped has used what its answers so far cost, their output included.
#[tokio::test]
async fn claude_counts_answers_as_they_come() {
    let start = |id: &str| {
        format!(
            r#"print {{"type":"stream_event","event":{{"type":"message_start","message":{{"id":"{id}","usage":{{"input_tokens":1000,"cache_read_input_tokens":200,"output_tokens":1}}}}}}}}"#
        )
    };
    let end = |id: &str| {
        format!(
            r#"print {{"type":"stream_event","event":{{"type":"message_delta","usage":{{"output_tokens":50}}}},"api_message_id":"{id}"}}"#
        )
    };
    let init = r#"print {"type":"system","subtype":"init","session_id":"s","model":"claude-sonnet-4-5"}"#;
    let steps = [init, &start("a"), &end("a"), &start("b"), "print up", "hang"];
    let ran = Bench::new("claude", &steps).stop_at("up").await;
    assert_eq!(ran.report.usage.tokens, 1_250 + 1_201);
    assert!(ran.report.metered);
    assert_eq!(ran.lines().len(), 2, "how far an answer is does not fill the log: {:?}", ran.lines());
    // What is used since the last result is exactly that; messages after it are added.
    let part = r#"print {"type":"result","subtype":"success","total_cost_usd":9.5,"model_usage_since_last_result":{"m":{"inputTokens":1000,"cacheReadInputTokens":200,"outputTokens":50,"costUSD":0.5}}}"#;
    let ran = Bench::new("claude", &[init, &start("a"), part, &start("b"), part]).run().await;
    ran.succeeded();
    assert_eq!(ran.report.usage, usage(2_500, 1_000_000));
    let tokens: Vec<u64> = ran.usages().iter().map(|usage| usage.tokens).collect();
    assert_eq!(tokens, [1_201, 1_250, 2_451, 2_500]);
}

#[tokio::test]
async fn claude_fails() {
    // Signed out: `success` and `is_error` in one event.
    let ran = run("claude", "claude-signed-out", "exit 1").await;
    ran.failed(SignedOut, true);
    let ran = run("claude", "claude-rate-limit", "exit 1").await;
    ran.failed(OutOfQuota, true);
    assert!(ran.notes()[0].contains("five_hour rate limit is used up"), "{:?}", ran.notes());
    assert_eq!(ran.failure().resets_in, None, "that time is over");
    run("claude", "claude-budget", "exit 1").await.failed(BudgetExceeded, false);
}

#[tokio::test]
async fn exit_statuses_are_not_believed() {
    let error =
        r#"print {"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it broke"]}"#;
    let ran = Bench::new("claude", &[error, "exit 0"]).run().await;
    ran.failed(Crash, true);
    assert_eq!(ran.failure().detail, "it broke");

    let ran = run("claude", "claude-success", "exit 1").await;
    ran.succeeded();
    assert!(ran.notes()[0].contains("then exited with code 1"), "{:?}", ran.notes());

    for program in Program::ALL {
        let ran = Bench::new(program.as_str(), &["print all is well", "exit 0"]).run().await;
        ran.failed(Crash, true);
        assert!(ran.failure().detail.contains("without saying that it was done"), "{:?}", ran.failure());
    }
}

#[tokio::test]
async fn garbage_and_broken_lines_mean_nothing() {
    let ran = run("claude", "claude-broken", "exit 0").await;
    ran.failed(Crash, true);
    assert_eq!(ran.report.session_id.as_deref(), Some("44444444-4444-4444-8444-444444444444"));
    assert_eq!(ran.lines().len(), 7);
    for program in Program::ALL {
        run(program.as_str(), "claude-broken", "exit 0").await.failed(Crash, true);
    }
}

#[tokio::test]
async fn a_huge_event_line_before_the_end_does_no_harm() {
    let ran = Bench::new("codex", &["long-line 3000000", &format!("emit {}", fixture("codex-success"))])
        .run()
        .await;
    ran.succeeded();
}

#[tokio::test]
async fn codex_succeeds() {
    let ran = bench("codex", "codex-success", "")
        .configured(|config| {
            config.programs.entry(Program::Codex).or_default().model = Some("gpt-5-codex".into());
        })
        .run()
        .await;
    ran.succeeded();
    assert_eq!(ran.report.session_id.as_deref(), Some("0199a213-81c0-7800-8aa1-bbab2a035a53"));
    assert_eq!(ran.report.summary.as_deref(), Some("The greeting is fixed."));
    // 315 × 1.25 + 24448 × 0.125 + 122 × 10
    assert_eq!(ran.report.usage, usage(24_885, 4_670));
    assert_eq!(ran.notes(), ["a feature is deprecated"], "a passing error is no end");
}

#[tokio::test]
async fn an_unknown_model_is_priced_dear_and_said_so() {
    let ran = run("codex", "codex-success", "").await;
    assert_eq!(ran.report.usage, usage(24_885, 315 * 5 + 24_448 / 2 + 122 * 30));
    assert!(ran.notes()[1].contains("did not name its model"), "{:?}", ran.notes());
    let own = Price { input: 1.0, cached_input: 0.0, output: 0.0 };
    let ran = bench("gemini", "gemini-error", "exit 54")
        .configured(|config| config.prices = [("gemini-next".to_owned(), own)].into())
        .run()
        .await;
    assert_eq!(ran.report.usage, usage(100, 90));
    assert_eq!(ran.notes(), Vec::<&str>::new());
    let ran = run("gemini", "gemini-error", "exit 54").await;
    assert!(ran.notes()[0].contains("no price is known for the model gemini-next"), "{:?}", ran.notes());
}

#[tokio::test]
async fn codex_fails() {
    for (sample, reason, retryable) in [
        ("codex-signed-out", SignedOut, true),
        ("codex-rate-limit", Infrastructure, true),
        ("codex-overloaded", Infrastructure, true),
        ("codex-lost", Infrastructure, true),
        ("codex-quota", OutOfQuota, true),
        ("codex-context", ContextTooLong, false),
    ] {
        let ran = run("codex", sample, "exit 1").await;
        ran.failed(reason, retryable);
        assert!(ran.report.metered && ran.report.usage == Usage::default(), "{sample}: {:?}", ran.report);
    }
    run("codex", "codex-cut-off", "exit 0").await.failed(Crash, true);
    let ran = Bench::new("codex", &["complain Not logged in", "exit 1"]).run().await;
    ran.failed(SignedOut, true);
}

/// It ends with exit 0 and says that all is well.
#[tokio::test]
async fn a_model_that_declines_has_not_succeeded() {
    let ran = run("codex", "codex-refusal", "exit 0").await;
    ran.failed(Refused, false);
    assert_eq!(ran.report.usage.tokens, 1_050, "an answer that says nothing costs what it costs");
    let ran = run("gemini", "gemini-refusal", "exit 0").await;
    ran.failed(Refused, false);
    assert!(ran.failure().detail.contains("blocked due to safety"), "{:?}", ran.failure());
}

/// Codex prints the time of day in words; its session's file has the moment.
#[tokio::test]
async fn when_the_account_opens_again_is_in_the_sessions_file() {
    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 3_600;
    let recorded = std::fs::read_to_string(fixture("codex-quota-rollout")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rollout");
    std::fs::write(&file, recorded.replace("1794989105", &soon.to_string())).unwrap();
    let id = "01a1ed79-324a-7082-a1af-0feac2557816";
    let record = format!("record {} .codex/sessions/2026/11/18/rollout-{id}.jsonl", file.display());
    let mut bench = Bench::new("codex", &[&record, &format!("emit {}", fixture("codex-quota")), "exit 1"]);
    bench.host.push(("HOME".to_owned(), home.path().display().to_string()));
    let ran = bench.run().await;
    ran.failed(OutOfQuota, true);
    let resets_in = ran.failure().resets_in.unwrap();
    assert!(resets_in > Duration::from_mins(50) && resets_in <= Duration::from_hours(1), "{resets_in:?}");
}

#[tokio::test]
async fn opencode_succeeds() {
    let ran = run("opencode", "opencode-success", "").await;
    ran.succeeded();
    assert_eq!(ran.report.session_id.as_deref(), Some("ses_494719016ffe85dkDMj0FPRbHK"));
    assert_eq!(ran.report.summary.as_deref(), Some("The greeting is fixed."));
    assert_eq!(ran.report.usage, usage(44_094, 3_500));
    let ran = run("opencode", "opencode-done", "").await;
    ran.succeeded();
    assert_eq!(ran.notes(), ["opencode was refused permissions: bash"]);
}

#[tokio::test]
async fn opencode_fails() {
    run("opencode", "opencode-error", "exit 0").await.failed(SignedOut, true);
    let ran = run("opencode", "opencode-length", "exit 0").await;
    ran.failed(Crash, false);
    assert!(ran.failure().detail.contains("length"));
}

#[tokio::test]
async fn gemini_succeeds() {
    let ran = run("gemini", "gemini-success", "").await;
    ran.succeeded();
    assert_eq!(ran.report.session_id.as_deref(), Some("a1b2c3d4-0000-4000-8000-000000000000"));
    assert_eq!(ran.report.summary.as_deref(), Some("The greeting is fixed."));
    // 6000 × 1.25 + 4000 × 0.125 + 1000 × 10: thoughts are output
    assert_eq!(ran.report.usage, usage(11_000, 18_000));
    assert_eq!(ran.notes(), ["a loop was suspected"]);
}

#[tokio::test]
async fn gemini_fails() {
    run("gemini", "gemini-error", "exit 54").await.failed(Infrastructure, true);
    for (sample, reason, retryable) in [
        ("gemini-quota", OutOfQuota, true),
        ("gemini-daily-quota", OutOfQuota, true),
        ("gemini-signed-out", SignedOut, true),
        ("gemini-context", ContextTooLong, false),
        ("gemini-lost", Infrastructure, true),
        // It went in circles, and says success.
        ("gemini-multi", Crash, true),
    ] {
        run("gemini", sample, "exit 1").await.failed(reason, retryable);
    }
    for (status, reason, retryable) in [
        (41, SignedOut, true),
        (42, Crash, false),
        (44, Infrastructure, false),
        (52, NoEngine, false),
        (53, BudgetExceeded, false),
        (54, Infrastructure, true),
        (55, NoEngine, false),
        (130, Crash, true),
        (1, Crash, true),
    ] {
        let ran = Bench::new("gemini", &["complain it is so", &format!("exit {status}")]).run().await;
        ran.failed(reason, retryable);
        assert!(ran.failure().detail.contains("it is so"), "{:?}", ran.failure());
    }
}

/// A job that moved to another machine brings a session that is not there.
#[tokio::test]
async fn a_session_of_another_machine_is_begun_anew() {
    for program in Program::ALL {
        let (resume, refusal) = match program {
            Program::Claude => ("--resume", "No conversation found with session ID: ses-1"),
            Program::Codex => ("resume", "Error: no rollout found for thread id ses-1"),
            Program::Opencode => ("-s", "Error: Session not found"),
            Program::Gemini => ("--resume=ses-1", "Error resuming session: Invalid session identifier"),
        };
        let engine = program.as_str();
        let refusal = format!("on {resume} complain {refusal}");
        let success = format!("without {resume} emit {}", fixture(&format!("{engine}-success")));
        let bench = Bench::new(engine, &[&refusal, &success]);
        let ran = bench
            .with(|request| {
                request.resume = Some("ses-1".into());
                request.usage_before = usage(1_000, 1_000);
            })
            .run()
            .await;
        ran.succeeded();
        assert!(ran.notes().iter().any(|note| note.contains("not on this machine")), "{engine}");
        let fresh = Bench::new(engine, &[&success]).run().await;
        assert_eq!(ran.report.usage, fresh.report.usage, "{engine}: nothing is taken off a new session");
    }
}

#[tokio::test]
async fn a_finished_run_over_its_budget_is_kept_and_noted() {
    let bench = bench("codex", "codex-success", "").with(|request| request.budget.tokens = Some(10));
    let ran = bench.run().await;
    // Its only count comes with its last event.
    ran.succeeded();
    assert!(ran.notes().iter().any(|note| note.contains("24885 tokens are used")), "{:?}", ran.notes());
}

/// What an engine that was cut off has used is known only where it counts as it goes.
#[tokio::test]
async fn a_run_is_metered_where_its_figure_covers_it() {
    const CODEX: &str = r#"print {"type":"turn.started"}"#;
    const SUM: &str = r#"print {"type":"turn.completed","usage":{"input_tokens":1}}"#;
    const ITEM: &str = r#"print {"type":"item.completed","item":{"type":"command_execution"}}"#;
    const SIGNED_OUT: &str = r#"print {"type":"turn.failed","error":{"message":"401 Unauthorized"}}"#;
    const BUSY: &str = r#"print {"type":"turn.failed","error":{"message":"429 Too Many Requests"}}"#;
    const LOST: &str = r#"print {"type":"turn.failed","error":{"message":"stream disconnected"}}"#;
    const GEMINI: &str = r#"print {"type":"init","session_id":"s","model":"m"}"#;
    const INIT: &str = r#"print {"type":"system","subtype":"init","session_id":"s"}"#;
    const BEGUN: &str =
        r#"print {"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}"#;
    const MESSAGE: &str = r#"print {"type":"assistant","message":{"id":"m","usage":{"input_tokens":1}}}"#;
    const STEP: &str = r#"print {"type":"step_finish","part":{"reason":"tool-calls","cost":0.1}}"#;
    let cases: &[(&str, &[&str], bool)] = &[
        // The model never answered.
        ("codex", &[CODEX], true),
        ("codex", &[CODEX, ITEM], false),
        ("codex", &[CODEX, ITEM, SUM], true),
        ("codex", &[CODEX, SUM, CODEX], false),
        ("codex", &[CODEX, SIGNED_OUT, "exit 1"], true),
        ("codex", &[CODEX, ITEM, SIGNED_OUT, "exit 1"], false),
        ("codex", &[CODEX, BUSY, "exit 1"], true),
        ("codex", &[CODEX, LOST, "exit 1"], true),
        ("codex", &[CODEX, ITEM, LOST, "exit 1"], false),
        ("codex", &["print nothing that is known", "exit 1"], false),
        ("gemini", &[GEMINI], true),
        ("gemini", &["exit 41"], true),
        ("claude", &[INIT], true),
        ("claude", &[INIT, BEGUN], false),
        ("claude", &[INIT, MESSAGE], true),
        ("opencode", &[STEP], true),
        ("plain", &["exit 3"], false),
        ("plain", &["exit 0"], false),
    ];
    for (engine, steps, metered) in cases {
        let ran = Bench::new(engine, steps).run().await;
        assert_eq!(ran.report.metered, *metered, "{engine} {steps:?}: {:?}", ran.report);
    }
    let ran = Bench::new("shell", &[]).with(|request| request.script = Some("exit 3".to_owned())).run().await;
    assert!(ran.report.metered, "a script has no account");
    let ran = Bench::new("codex", &[CODEX, ITEM, "print up", "hang"]).stop_at("up").await;
    assert!(!ran.report.metered, "{:?}", ran.report);
    let ran = Bench::new("codex", &[CODEX, "print up", "hang"]).stop_at("up").await;
    assert!(ran.report.metered, "{:?}", ran.report);
}
