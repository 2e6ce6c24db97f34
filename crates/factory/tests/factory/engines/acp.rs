//! Agents that speak ACP, played by one that is built with the same library's other side.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use giga_domain::{FailReason, Permissions, QuestionKind, Usd};
use giga_factory::engines::{
    AcpConfig, Answer, EngineEvent, EngineOutcome, Inbox, Input, Preflight, Program, Question,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engines::kit::{Bench, PATIENCE, Ran};

fn agent() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| giga_testkit::binary::built("giga-testkit", "fake-acp-agent"))
}

fn acp(steps: &[&str]) -> Bench {
    let mut bench = Bench::new("agent", &[]).configured(|config| {
        let agent = AcpConfig {
            argv: vec![agent().display().to_string()],
            account: None,
            pass_env: Vec::new(),
            env: [("FAKE_ACP".to_owned(), steps.join("\n"))].into(),
            hosts: Vec::new(),
            home: Vec::new(),
            model: None,
            mode: None,
            permissions: Permissions::Edit,
            reports_usage: true,
        };
        config.acp = [("agent".to_owned(), agent)].into();
    });
    // Its sessions are there, and go with the test.
    bench.host.retain(|(name, _)| name != "HOME");
    bench.host.push(("HOME".to_owned(), bench.dir.path().join("home").display().to_string()));
    bench
}

/// As the adapter of Codex sends it.
const WARNING: &str = "Model metadata for `m` not found. Defaulting to fallback metadata; this can degrade.";

#[tokio::test]
async fn a_warning_of_its_own_is_shown_and_is_no_answer() {
    let of_codex = |steps: &[&str]| {
        acp(steps).configured(|config| {
            config.acp.get_mut("agent").unwrap().account = Some(Program::Codex);
        })
    };
    let warning = format!("say {WARNING}");
    let ran = of_codex(&[&warning, "say Done.", "usage 10"]).run().await;
    ran.succeeded();
    assert_eq!(ran.report.summary.as_deref(), Some("Done."));
    assert!(ran.lines().contains(&WARNING), "{:?}", ran.lines());
    let ran = of_codex(&[&warning]).run().await;
    assert_eq!(ran.failure().reason, FailReason::Refused, "without a word of the model's");
    let ran = acp(&[&warning]).run().await;
    assert_eq!(ran.report.summary.as_deref(), Some(WARNING), "another agent may say it");
}

#[tokio::test]
async fn a_session_to_its_end() {
    let ran = acp(&[
        "line I begin.",
        "edit hello.txt hello",
        "junk",
        "say It is",
        "say  done.",
        "usage 1200",
        "cost 0.25",
    ])
    .run()
    .await;
    ran.succeeded();
    let hello = std::fs::read_to_string(ran.dir.path().join("hello.txt")).unwrap();
    assert_eq!(hello, "hello");
    let session = ran.report.session_id.clone().unwrap();
    assert!(session.starts_with("session-"), "{session}");
    assert!(
        ran.events.iter().any(|event| matches!(event, EngineEvent::Session { id, .. } if *id == session))
    );
    assert_eq!((ran.report.usage.tokens, ran.report.usage.cost), (1_200, Some(Usd::from_micros(250_000))));
    assert!(ran.report.metered);
    assert_eq!(ran.report.summary.as_deref(), Some("I begin.\nIt is done."));
    assert_eq!(ran.lines(), ["I begin.", "It is done."]);
    assert!(ran.notes().contains(&"fake 1.2.3"), "{:?}", ran.notes());
    ran.nothing_is_left().await;
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_where_nobody_can_be_asked() {
    let steps = ["edit a.txt a", "run b.txt", "edit ../c.txt c", "usage 1", "say Done."];
    for (permissions, written) in [
        (Permissions::Ask, vec![]),
        (Permissions::Edit, vec!["a.txt"]),
        (Permissions::Commands, vec!["a.txt", "b.txt"]),
    ] {
        let ran = acp(&steps).with(|request| request.permissions = Some(permissions)).run().await;
        ran.succeeded();
        let there: Vec<_> = ["a.txt", "b.txt", "../c.txt"]
            .into_iter()
            .filter(|name| ran.dir.path().join(name).exists())
            .collect();
        assert_eq!(there, written, "{permissions}");
        let noted = ran.notes().iter().filter(|note| note.starts_with("not allowed")).count();
        assert_eq!(noted, 3 - written.len(), "{:?}", ran.notes());
    }
}

/// Runs it with somebody who answers each question so.
async fn talk(bench: Bench, first: Option<Input>, answer: &str) -> (Ran, Vec<Question>) {
    let (sender, mut events) = mpsc::channel(64);
    let (say, inbox) = Inbox::channel(8);
    if let Some(first) = first {
        say.send(first).await.unwrap();
    }
    let engine = bench.engine();
    let run = engine.run(bench.request.clone(), sender, inbox, CancellationToken::new());
    let listen = async {
        let (mut all, mut questions) = (Vec::new(), Vec::new());
        while let Some(event) = events.recv().await {
            if let EngineEvent::Question(question) = &event {
                let answer = Answer::Given { text: answer.to_owned(), by: Some("ana".to_owned()) };
                say.send(Input::Answer { seq: 9, question: question.id.clone(), answer }).await.unwrap();
                questions.push(question.clone());
            }
            all.push(event);
        }
        (all, questions)
    };
    let both = async { tokio::join!(run, listen) };
    let (report, (events, questions)) = tokio::time::timeout(PATIENCE, both).await.expect("it ends");
    (Ran { report, events, marker: bench.marker, dir: bench.dir }, questions)
}

#[tokio::test]
async fn a_person_is_asked_for_leave() {
    for (answer, is_run) in [("Once", true), ("No", false), ("what?", false)] {
        let (ran, questions) = talk(acp(&["run b.txt", "usage 1", "say Done."]), None, answer).await;
        ran.succeeded();
        let [question] = questions.as_slice() else { panic!("{questions:?}") };
        assert_eq!(question.kind, QuestionKind::Permission);
        assert_eq!((question.text.as_str(), question.default.as_deref()), ("run b.txt", Some("No")));
        assert_eq!(question.options, ["Always", "Once", "No"]);
        assert_eq!(ran.dir.path().join("b.txt").exists(), is_run, "{answer}");
        assert!(ran.events.contains(&EngineEvent::Delivered { seq: 9 }));
    }
}

#[tokio::test]
async fn what_people_say_is_the_next_turn() {
    let words = Input::Message { seq: 4, by: "ana".to_owned(), text: "use tabs".to_owned() };
    let steps = ["say First.", "usage 10", "turn", "show-prompt", "usage 5"];
    let (ran, _) = talk(acp(&steps), Some(words), "").await;
    ran.succeeded();
    assert!(ran.events.contains(&EngineEvent::Delivered { seq: 4 }));
    assert!(ran.lines().contains(&"ana: use tabs"), "{:?}", ran.lines());
    assert_eq!(ran.report.usage.tokens, 15, "both turns");
}

#[tokio::test]
async fn a_session_is_loaded_and_its_history_is_not_told_again() {
    let steps = ["say Said.", "usage 10"];
    let first = acp(&steps);
    let home = first.dir.path().join("home");
    let first = first.run().await;
    let again = |resume: &str| {
        let resume = resume.to_owned();
        let mut bench = acp(&steps).with(|request| {
            request.resume = Some(resume);
            request.usage_before.tokens = 10;
        });
        bench.host.retain(|(name, _)| name != "HOME");
        bench.host.push(("HOME".to_owned(), home.display().to_string()));
        bench
    };
    let session = first.report.session_id.clone().unwrap();
    let second = again(&session).run().await;
    second.succeeded();
    assert_eq!(second.report.session_id, Some(session));
    assert_eq!(second.lines(), ["Said."], "the old words are old");
    let unknown = again("session-of-another-machine").run().await;
    unknown.succeeded();
    assert!(unknown.notes().iter().any(|note| note.contains("a new one is begun")), "{:?}", unknown.notes());
    assert_ne!(unknown.report.session_id.as_deref(), Some("session-of-another-machine"));
}

#[tokio::test]
async fn reasons_to_stop() {
    for (steps, reason, retryable) in [
        (["say Never.", "stop refusal"], FailReason::Refused, false),
        (["say Long.", "stop max_tokens"], FailReason::ContextTooLong, false),
        (["say Many.", "stop max_turn_requests"], FailReason::Timeout, false),
        (["say Hm.", "stop cancelled"], FailReason::Crash, true),
        (["say Hm.", "fail 529 overloaded"], FailReason::Infrastructure, true),
        (["say Hm.", "fail the model does not exist"], FailReason::Crash, false),
        (["complain it broke", "exit 3"], FailReason::Crash, true),
        (["usage 1", "stop end_turn"], FailReason::Refused, false),
    ] {
        let ran = acp(&steps).run().await;
        ran.failed(reason, retryable);
        ran.nothing_is_left().await;
    }
    let ran = acp(&["complain it broke", "exit 3"]).run().await;
    let detail = &ran.failure().detail;
    assert!(detail.contains("exited with code 3") && detail.contains("it broke"), "{detail}");
    let ran = acp(&["signed-out"]).run().await;
    ran.failed(FailReason::SignedOut, true);
    assert!(ran.report.metered, "nothing was asked of the model");
}

#[tokio::test]
async fn a_stopped_run_is_cancelled_and_says_what_it_used() {
    let ran = acp(&["line working", "hang"]).stop_at("working").await;
    assert_eq!(ran.report.outcome, EngineOutcome::Stopped);
    assert_eq!(ran.report.usage.tokens, 7, "as it said when it was cancelled");
    ran.nothing_is_left().await;
    let deaf = acp(&["line working", "deaf"]).stop_at("working").await;
    assert_eq!(deaf.report.outcome, EngineOutcome::Stopped);
    assert!(!deaf.report.metered);
    deaf.nothing_is_left().await;
}

#[tokio::test]
async fn while_a_person_thinks_silence_is_no_trouble() {
    // The clock that goes on is the one that ends it.
    let bench = acp(&["run ran.txt"]).with(|request| {
        request.watchdog.idle = Duration::from_secs(2);
        request.watchdog.wall = Duration::from_secs(5);
    });
    let (sender, mut events) = mpsc::channel(64);
    let (_nobody_answers, inbox) = Inbox::channel(8);
    let engine = bench.engine();
    let run = engine.run(bench.request.clone(), sender, inbox, CancellationToken::new());
    let heard = async {
        let mut asked = 0;
        while let Some(event) = events.recv().await {
            asked += usize::from(matches!(event, EngineEvent::Question(_)));
        }
        asked
    };
    let (report, asked) = tokio::join!(run, heard);
    assert_eq!(asked, 1);
    let EngineOutcome::Failed(failure) = report.outcome else { panic!("{:?}", report.outcome) };
    assert!(failure.detail.contains("still going after 5s"), "{}", failure.detail);
}

#[tokio::test]
async fn watchdogs_and_budgets_end_it() {
    let idle = acp(&["deaf"]).with(|request| request.watchdog.idle = Duration::from_millis(500)).run().await;
    idle.failed(FailReason::Timeout, true);
    idle.nothing_is_left().await;
    let cap = acp(&["context 5000", "hang"]).with(|request| request.budget.tokens = Some(1_000)).run().await;
    cap.failed(FailReason::BudgetExceeded, false);
    let usd = acp(&["cost 3.5", "hang"])
        .with(|request| request.budget.usd = Some(Usd::from_dollars(1)))
        .run()
        .await;
    usd.failed(FailReason::BudgetExceeded, false);
}

#[tokio::test]
async fn an_agent_whose_figures_are_not_believed_is_not_metered() {
    let bench = acp(&["say Done.", "usage 5"])
        .configured(|config| config.acp.get_mut("agent").unwrap().reports_usage = false);
    assert!(!bench.run().await.report.metered);
    assert!(!acp(&["say Done."]).run().await.report.metered, "it names none");
}

#[tokio::test]
async fn preflights() {
    let ready = Preflight::Ready { version: Some("1.2.3".to_owned()) };
    assert_eq!(acp(&[]).engine().preflight().await, ready);
    let signed_out = acp(&["signed-out"]).engine().preflight().await;
    assert!(matches!(signed_out, Preflight::NotSignedIn { .. }), "{signed_out:?}");
    let argv = |argv: &[&str]| {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        acp(&[]).configured(|config| config.acp.get_mut("agent").unwrap().argv = argv)
    };
    let missing = argv(&["no-such-agent"]).engine().preflight().await;
    assert!(matches!(missing, Preflight::NotInstalled { .. }), "{missing:?}");
    let other = argv(&["/bin/echo", "hello"]).engine().preflight().await;
    assert!(matches!(&other, Preflight::Broken { .. }), "{other:?}");
}
