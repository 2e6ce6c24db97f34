//! How each program is called, word for word.

use giga_domain::Usd;
use giga_domain::job::BudgetCaps;
use giga_factory::engines::Usage;

use crate::engines::kit::{Bench, Ran};

async fn argv(engine: &str, change: impl FnOnce(Bench) -> Bench) -> Vec<String> {
    let ran = change(Bench::new(engine, &["show-args"])).run().await;
    args(&ran)
}

fn args(ran: &Ran) -> Vec<String> {
    let dir = ran.dir.path().display().to_string();
    ran.lines()
        .iter()
        .map(|line| serde_json::from_str::<String>(line).unwrap().replace(&dir, "DIR"))
        .collect()
}

fn resumed(bench: Bench) -> Bench {
    bench.with(|request| {
        request.resume = Some("ses-1".into());
        request.usage_before = Usage { tokens: 10, cost: Some(Usd::from_micros(250_000)) };
        request.budget = BudgetCaps { usd: Some(Usd::from_dollars(2)), ..BudgetCaps::default() };
    })
}

fn configured(bench: Bench) -> Bench {
    bench.configured(|config| {
        for program in config.programs.values_mut() {
            program.model = Some("big".into());
            program.extra_args = vec!["--extra".into()];
        }
    })
}

#[tokio::test]
async fn claude() {
    let mut fresh = argv("claude", |bench| bench).await;
    let id = fresh.remove(7);
    let form: String = id.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
    assert_eq!(form, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    assert!(
        id[14..].starts_with('4') && id[19..].starts_with(['8', '9', 'a', 'b']),
        "a version 4 UUID: {id}"
    );
    assert_eq!(
        fresh,
        [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
            "--session-id",
            "--",
            "Fix the greeting."
        ]
    );
    let again = argv("claude", |bench| configured(resumed(bench))).await;
    assert_eq!(
        again[6..],
        [
            "--resume",
            "ses-1",
            "--max-budget-usd",
            "2.25",
            "--model",
            "big",
            "--extra",
            "--",
            "Fix the greeting."
        ]
    );
}

/// Apart where the program has an option for it, otherwise before the prompt; reviewers' words come last.
#[tokio::test]
async fn a_persona_and_reviewers_words() {
    let with_both = |bench: Bench| {
        bench.with(|request| {
            request.persona = Some("--You are careful.".into());
            request.review = Some("> Say hello.".into());
        })
    };
    let both = "Fix the greeting.\n\n> Say hello.";
    let claude = argv("claude", with_both).await;
    assert_eq!(claude[8..], ["--append-system-prompt=--You are careful.", "--", both]);
    let all = format!("--You are careful.\n\n{both}");
    assert_eq!(argv("codex", with_both).await.last(), Some(&all));
    assert_eq!(argv("opencode", with_both).await[3..], ["--", &all]);
    assert_eq!(argv("gemini", with_both).await.last(), Some(&format!("--prompt={all}")));
}

#[tokio::test]
async fn codex() {
    let fixed = ["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write", "-C", "DIR"];
    let fresh = argv("codex", |bench| bench).await;
    assert_eq!(fresh, [&fixed[..], &["--", "Fix the greeting."]].concat());
    let again = argv("codex", |bench| configured(resumed(bench))).await;
    let rest = ["-m", "big", "--extra", "resume", "--", "ses-1", "Fix the greeting."];
    assert_eq!(again, [&fixed[..], &rest].concat());
}

#[tokio::test]
async fn opencode() {
    let fresh = argv("opencode", |bench| bench).await;
    assert_eq!(fresh, ["run", "--format", "json", "--", "Fix the greeting."]);
    let again = argv("opencode", |bench| configured(resumed(bench))).await;
    assert_eq!(
        again,
        ["run", "--format", "json", "-s", "ses-1", "-m", "big", "--extra", "--", "Fix the greeting."]
    );
}

#[tokio::test]
async fn gemini() {
    let fixed = ["-o", "stream-json", "--approval-mode", "auto_edit", "--skip-trust"];
    let fresh = argv("gemini", |bench| bench).await;
    assert_eq!(fresh, [&fixed[..], &["--prompt=Fix the greeting."]].concat());
    let again = argv("gemini", |bench| configured(resumed(bench))).await;
    let rest = ["--resume=ses-1", "-m", "big", "--extra", "--prompt=Fix the greeting."];
    assert_eq!(again, [&fixed[..], &rest].concat());
}
