//! The shell and the operator's own commands.

use giga_domain::FailReason;
use giga_factory::engines::{EnginesConfig, EventFormat, Program};

use crate::engines::kit::{Bench, fake_engine, fixture};

fn script(text: &str) -> Bench {
    Bench::new("shell", &[]).with(|request| request.script = Some(text.to_owned()))
}

#[tokio::test]
async fn a_script_does_a_real_job() {
    let ran = script("echo hello > greeting.txt\necho fixed").run().await;
    ran.succeeded();
    assert_eq!(std::fs::read_to_string(ran.dir.path().join("greeting.txt")).unwrap(), "hello\n");
    assert_eq!(ran.report.summary.as_deref(), Some("fixed"));
}

#[tokio::test]
async fn a_script_stops_at_its_first_mistake() {
    for text in ["false\ntouch went-on", "echo \"$not_set\"\ntouch went-on"] {
        let ran = script(text).run().await;
        ran.failed(FailReason::Crash, false);
        assert!(!ran.dir.path().join("went-on").exists());
    }
}

#[tokio::test]
async fn a_script_may_be_long() {
    let ran = script(&format!("# {}\necho done", "x".repeat(900_000))).run().await;
    ran.succeeded();
}

#[tokio::test]
async fn a_script_that_leaves_things_running() {
    let ran = script("sleep 1000 &\n(setsid sleep 1000 &)\necho left").run().await;
    ran.succeeded();
    ran.nothing_is_left().await;
}

fn template(argv: &[&str], resume_argv: Option<&[&str]>) -> Bench {
    let own = |argv: &[&str]| {
        let program = fake_engine().display().to_string();
        std::iter::once(program).chain(argv.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>()
    };
    Bench::new("plain", &["show-args"]).configured(|config| {
        let command = config.commands.get_mut("plain").unwrap();
        command.argv = own(argv);
        command.resume_argv = resume_argv.map(own);
    })
}

#[tokio::test]
async fn placeholders_are_filled_inside_their_argument() {
    let bench = template(&["--in={prompt_file}", "{dir}", "{session}", "{other} {{dir}}", "{"], None);
    let ran = bench.run().await;
    let dir = ran.dir.path().display().to_string();
    let lines: Vec<String> = ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0].starts_with("--in=/") && lines[0].ends_with("/prompt.md"), "{lines:?}");
    assert_eq!(lines[1..], [dir.clone(), String::new(), format!("{{other}} {{{dir}}}"), "{".to_owned()]);
}

#[tokio::test]
async fn a_session_is_resumed_by_its_own_template() {
    let bench = template(&["begin"], Some(&["resume", "{session}"]));
    let ran = bench.with(|request| request.resume = Some("ses-1".into())).run().await;
    assert_eq!(ran.lines(), ["\"resume\"", "\"ses-1\""]);
}

#[tokio::test]
async fn a_template_may_speak_a_known_dialect() {
    let bench = Bench::new("plain", &[&format!("emit {}", fixture("claude-signed-out")), "exit 0"]);
    let ran = bench
        .configured(|config| {
            config.commands.get_mut("plain").unwrap().events = EventFormat::Program(Program::Claude);
        })
        .run()
        .await;
    ran.failed(FailReason::SignedOut, true);
}

#[test]
fn the_configuration_is_read_from_text() {
    let text = r#"{
        "disabled": ["devin"],
        "claude": {"program": "/opt/claude", "model": "big", "extra-args": ["--x"], "pass-env": ["MY_KEY"]},
        "devin": {"poll-interval-ms": 1000, "usd-micros-per-acu": 2250000},
        "commands": {"aider": {"argv": ["aider", "--message-file", "{prompt_file}"], "events": "text"}},
        "prices": {"default": {"input": 1, "cached-input": 0.1, "output": 4}}
    }"#;
    let config: EnginesConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.commands["aider"].argv[0], "aider");
    assert_eq!(config.devin.base_url, "https://api.devin.ai/v1", "what is not said keeps its default");
    assert!(serde_json::from_str::<EnginesConfig>(r#"{"clude": {}}"#).is_err(), "a slip is refused");
}
