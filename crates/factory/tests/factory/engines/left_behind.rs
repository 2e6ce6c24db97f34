//! What a run used that ended with its agent, as the sessions that the real programs wrote have it.

use std::path::Path;

use giga_factory::engines::{LeftRun, Program, Usage};

use super::kit::{Bench, fixture};

const GEMINI: &str = "7f3ae663-b90a-45cd-b09e-1321366570fe";

async fn used(engine: &str, home: &Path, session: &str, began: &str) -> Option<Usage> {
    let mut bench = Bench::new(engine, &[]);
    bench.host.push(("HOME".to_owned(), home.display().to_string()));
    let sessions = home.join("nothing");
    let run = LeftRun { session: session.to_owned(), sessions, began: began.parse().unwrap() };
    bench.engine().used_by(&run).await
}

fn keep(home: &Path, sample: &str, to: &str) {
    let to = home.join(to);
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(fixture(sample), to).unwrap();
}

fn session_in(sample: &str) -> String {
    let text = std::fs::read_to_string(fixture(sample)).unwrap();
    let meta: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    meta["payload"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn codex_is_charged_what_its_session_has_since_the_run_began() {
    let home = tempfile::tempdir().unwrap();
    let session = session_in("codex-resumed-rollout");
    let tokens = async |began| used("codex", home.path(), &session, began).await.map(|usage| usage.tokens);
    assert_eq!(tokens("2026-11-18T06:59:00Z").await, None, "a session that is not there is not free");
    keep(
        home.path(),
        "codex-resumed-rollout",
        &format!(".codex/sessions/2026/11/18/rollout-2026-{session}.jsonl"),
    );
    assert_eq!(tokens("2026-11-18T06:59:00Z").await, Some(2 * 1_550 + 1_050), "three answers");
    assert_eq!(tokens("2026-11-18T07:00:00Z").await, Some(1_050), "of the second run");
    assert_eq!(tokens("2026-11-18T08:00:00Z").await, Some(0), "it had no answer");
}

#[tokio::test]
async fn gemini_is_charged_each_answer_once() {
    let home = tempfile::tempdir().unwrap();
    let tokens = async |began| used("gemini", home.path(), GEMINI, began).await.map(|usage| usage.tokens);
    assert_eq!(tokens("2026-11-18T06:59:00Z").await, None);
    keep(home.path(), "gemini-multi-session", ".gemini/tmp/tree/chats/session-2026-7f3ae663.jsonl");
    let all = tokens("2026-11-18T06:59:00Z").await;
    assert_eq!(all, Some(4 * 101_000), "each is written down twice");
    assert_eq!(tokens("2026-11-18T06:59:59.650Z").await, all.map(|all| all - 101_000), "from the second on");
}

/// The fake answers like `opencode db`.
#[tokio::test]
async fn opencode_is_asked() {
    let ask = async |answer: &str| {
        let mut bench = Bench::new("opencode", &[]).configured(|config| {
            let opencode = config.programs.get_mut(&Program::Opencode).unwrap();
            opencode.pass_env = vec!["FAKE_ENGINE".to_owned()];
        });
        bench.host.push(("FAKE_ENGINE".to_owned(), answer.to_owned()));
        let sessions = bench.dir.path().join("sessions");
        let run =
            LeftRun { session: "ses_1".to_owned(), sessions, began: "2026-11-18T07:00:00Z".parse().unwrap() };
        bench.engine().used_by(&run).await.map(|usage| usage.tokens)
    };
    let row = r#"print [{"model":"matrix-1","cost":0,"input":2345,"cached":6789,"output":11}]"#;
    assert_eq!(ask(row).await, Some(9_145));
    assert_eq!(ask("print []").await, None, "it does not know the session");
    assert_eq!(ask("exit 1").await, None);
}
