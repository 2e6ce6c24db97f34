//! Caps of engines that print what they used only at their end: the files of their sessions say it while they run. The samples
//! are what Codex 0.169 and Gemini CLI 0.61 wrote in one run against a scripted model.

use std::path::{Path, PathBuf};

use giga_domain::FailReason::BudgetExceeded;
use giga_domain::Usd;
use giga_factory::engines::{EngineOutcome, Usage};
use tempfile::TempDir;

use super::kit::{Bench, fixture};

const CODEX: &str = "01a1ed73-af8a-7e50-9d5e-6e4f8d6b1c11";

/// A home for the sessions and lines of samples.
struct Samples(TempDir);

impl Samples {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn lines(&self, name: &str, lines: &[&str]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }

    fn bench(&self, engine: &str, steps: &[String]) -> Bench {
        let mut bench = Bench::new(engine, &steps.iter().map(String::as_str).collect::<Vec<_>>());
        bench.host.push(("HOME".to_owned(), self.0.path().display().to_string()));
        bench
    }
}

fn sample(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

fn record(file: &Path, session: &str) -> String {
    format!("record {} .codex/sessions/2026/11/18/rollout-2026-{session}.jsonl", file.display())
}

/// The session that a recorded run names.
fn session_of(rollout: &str) -> String {
    let meta: serde_json::Value = serde_json::from_str(rollout.lines().next().unwrap()).unwrap();
    meta["payload"]["id"].as_str().unwrap_or(CODEX).to_owned()
}

/// Seven answers: six of 101,000 tokens at $0.265, and a short one.
fn codex(until: usize) -> (Samples, String, PathBuf, String) {
    let samples = Samples::new();
    let rollout = sample("codex-multi-rollout");
    let answers = rollout.match_indices("token_usage_record").count();
    assert_eq!(answers, 7);
    let mut seen = 0;
    let part: Vec<&str> = rollout
        .lines()
        .take_while(|line| {
            seen += usize::from(line.contains("token_usage_record"));
            seen <= until
        })
        .collect();
    let file = samples.lines("part", &part);
    let begin = sample("codex-multi");
    let begin = samples.lines("begin", &begin.lines().take(2).collect::<Vec<_>>());
    let session = session_of(&rollout);
    (samples, format!("emit {}", begin.display()), file, session)
}

const fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

#[tokio::test]
async fn codex_is_stopped_at_its_cap_and_pays_what_it_used() {
    let (samples, begin, part, session) = codex(4);
    let ran = samples
        .bench("codex", &[begin, record(&part, &session), "hang".to_owned()])
        .with(|request| request.budget.usd = Some(usd(1_000_000)))
        .run()
        .await;
    ran.failed(BudgetExceeded, false);
    assert_eq!(ran.report.usage, Usage { tokens: 404_000, cost: Some(usd(1_060_000)) });
    assert!(ran.report.metered);
}

#[tokio::test]
async fn a_codex_run_that_is_stopped_by_others_pays_what_it_used() {
    let (samples, begin, part, session) = codex(2);
    let steps = [begin, record(&part, &session), "print up".to_owned(), "hang".to_owned()];
    let ran = samples.bench("codex", &steps).stop_at("up").await;
    assert_eq!(ran.report.outcome, EngineOutcome::Stopped);
    assert_eq!(ran.report.usage, Usage { tokens: 202_000, cost: Some(usd(530_000)) });
    assert!(ran.report.metered);
}

#[tokio::test]
async fn success_is_no_way_past_a_cap() {
    // All at once and done, before anybody could look: three answers came after the one that passed the cap.
    let whole = |cap: i64| async move {
        let (samples, _, part, session) = codex(7);
        let all = format!("emit {}", fixture("codex-multi"));
        samples
            .bench("codex", &[record(&part, &session), all])
            .with(|request| request.budget.usd = Some(usd(cap)))
            .run()
            .await
    };
    whole(1_000_000).await.failed(BudgetExceeded, false);
    // Only the last answer passed it, and the work is done.
    let ran = whole(1_591_000).await;
    ran.succeeded();
    assert!(ran.notes().iter().any(|note| note.contains("the job's cap is")), "{:?}", ran.notes());
    let ran = whole(5_000_000).await;
    ran.succeeded();
    assert_eq!(ran.report.usage.tokens, 607_050);
}

#[tokio::test]
async fn a_resumed_session_counts_only_what_is_new() {
    let samples = Samples::new();
    let rollout = sample("codex-resumed-rollout");
    let session = session_of(&rollout);
    // Where the second run begins.
    let (before, new) = rollout.split_at(
        rollout
            .match_indices("{\"timestamp\"")
            .filter_map(|(at, _)| {
                rollout[at..].lines().next().filter(|line| line.contains("turn_context")).map(|_| at)
            })
            .nth(1)
            .unwrap(),
    );
    let old = samples.0.path().join(".codex/sessions/2026/11/18");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join(format!("rollout-2026-{session}.jsonl")), before).unwrap();
    let new = samples.lines("new", &new.lines().collect::<Vec<_>>());
    let all = format!("emit {}", fixture("codex-resumed"));
    let ran = samples
        .bench("codex", &[record(&new, &session), all])
        .with(|request| {
            request.resume = Some(session.clone());
            // Nobody wrote down what the first run used: it was killed.
            request.usage_before = Usage::default();
        })
        .run()
        .await;
    ran.succeeded();
    assert_eq!(ran.report.usage.tokens, 1_050, "{:?}", ran.report);
}

#[tokio::test]
async fn gemini_is_stopped_at_its_cap_and_pays_what_it_used() {
    let samples = Samples::new();
    let begin = sample("gemini-multi");
    let session = sample("gemini-multi-session");
    let part = session.lines().position(|line| line.contains("step 2")).unwrap();
    let part = samples.lines("part", &session.lines().take(part).collect::<Vec<_>>());
    let begin = samples.lines("begin", &begin.lines().take(2).collect::<Vec<_>>());
    let steps = [
        format!("emit {}", begin.display()),
        format!("record {} .gemini/tmp/tree/chats/session-2026-7f3ae663.jsonl", part.display()),
        "hang".to_owned(),
    ];
    let ran =
        samples.bench("gemini", &steps).with(|request| request.budget.tokens = Some(200_000)).run().await;
    ran.failed(BudgetExceeded, false);
    assert_eq!(ran.report.usage.tokens, 202_000, "each answer once, however often it is written down");
    assert!(ran.report.metered);
}
