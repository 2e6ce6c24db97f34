//! What an engine can see of the machine: its folder, a small environment, and an input that has an end.

use giga_factory::engines::{EngineRequest, Program};

use crate::engines::kit::Bench;

fn every_program() -> impl Iterator<Item = &'static str> {
    Program::ALL.iter().map(|program| program.as_str())
}

/// A factory with everything that an engine must not see.
fn on_a_rich_host(engine: &str, steps: &[&str]) -> Bench {
    let mut bench = Bench::new(engine, steps);
    for (name, value) in [
        ("GIGA_TOKEN", "giga-secret-1"),
        ("GIGA_FACTORY_TOKEN", "giga-secret-2"),
        ("GIGA_STORE", "postgres://giga-secret-3"),
        ("DATABASE_URL", "giga-secret-4"),
        ("AWS_SECRET_ACCESS_KEY", "giga-secret-5"),
        ("SSH_AUTH_SOCK", "/run/giga-secret-6"),
        ("OPENAI_API_KEY", "key-of-openai"),
        ("ANTHROPIC_API_KEY", "key-of-anthropic"),
        ("LANG", "C.UTF-8"),
    ] {
        bench.host.push((name.into(), value.into()));
    }
    bench.with(|request: &mut EngineRequest| request.env.push(("GIGA_JOB_ID".into(), "job-1".into())))
}

#[tokio::test]
async fn the_environment_holds_no_secret_of_ours() {
    for engine in every_program().chain(["plain"]) {
        let bench = on_a_rich_host(engine, &["show-environ"]);
        // Even an operator's slip does not hand out our own.
        let bench = bench.configured(|config| {
            for program in config.programs.values_mut() {
                program.pass_env = vec!["GIGA_TOKEN".into()];
            }
            config.commands.get_mut("plain").unwrap().pass_env = vec!["GIGA_FACTORY_TOKEN".into()];
        });
        let ran = bench.run().await;
        let names: Vec<&str> = ran.lines().iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let all = ran.lines().join("\n");
        assert!(!all.contains("giga-secret"), "{engine}: {all}");
        for expected in ["PATH", "LANG", "GIGA_JOB_ID", "GIGA_RUN_ID", "GIGA_PROMPT_FILE", "PWD"] {
            assert!(names.contains(&expected), "{engine} has no {expected}: {names:?}");
        }
        assert_eq!(names.contains(&"ANTHROPIC_API_KEY"), matches!(engine, "claude" | "opencode"), "{engine}");
        assert_eq!(names.contains(&"OPENAI_API_KEY"), matches!(engine, "codex" | "opencode"), "{engine}");
    }
}

#[tokio::test]
async fn the_shell_sees_no_key_at_all() {
    let script = "tr '\\0' '\\n' < /proc/self/environ; cat /proc/$$/environ | tr '\\0' '\\n'";
    let ran = on_a_rich_host("shell", &[]).with(|request| request.script = Some(script.into())).run().await;
    ran.succeeded();
    let all = ran.lines().join("\n");
    assert!(!all.contains("giga-secret") && !all.contains("key-of-"), "{all}");
    assert!(all.contains("GIGA_JOB_ID=job-1"));
}

#[tokio::test]
async fn the_folder_is_the_work_tree_and_the_input_is_closed() {
    let ran = Bench::new("plain", &["show-dir", "show-stdin"]).run().await;
    ran.succeeded();
    let dir = ran.dir.path().canonicalize().unwrap();
    assert_eq!(ran.lines(), [dir.to_str().unwrap(), "stdin 0 "]);
}

#[tokio::test]
async fn a_long_prompt_arrives_whole() {
    let prompt = "x".repeat(1_000_000);
    for engine in every_program() {
        let bench = Bench::new(engine, &["show-stdin", "show-args"]);
        let ran = bench.with(|request| request.prompt.clone_from(&prompt)).run().await;
        assert_eq!(ran.lines()[0], format!("stdin 1000000 {}", "x".repeat(20)), "{engine}");
        assert!(ran.lines()[1..].iter().all(|line| line.len() < 1000), "{engine}");
    }
}

#[tokio::test]
async fn the_prompt_file_is_private_and_goes_with_the_run() {
    let script = "stat -c '%a' \"$(dirname \"$GIGA_PROMPT_FILE\")\"; cat \"$GIGA_PROMPT_FILE\"; echo; echo \"$GIGA_PROMPT_FILE\"";
    let ran = Bench::new("shell", &[]).with(|request| request.script = Some(script.into())).run().await;
    let lines = ran.lines();
    assert_eq!(lines[..2], ["700", "Fix the greeting."]);
    let file = std::path::Path::new(lines[2]);
    assert!(!file.starts_with(ran.dir.path()) && !file.exists());
    assert_eq!(std::fs::read_dir(ran.dir.path()).unwrap().count(), 0, "nothing of ours is in the work tree");
}

#[tokio::test]
async fn a_script_finds_reviewers_words_in_a_file_and_the_job_alone_in_its_prompt() {
    let script = "cat \"$GIGA_PROMPT_FILE\"; echo; cat \"$GIGA_REVIEW_COMMENTS\"; echo; echo \"$GIGA_REVIEW_COMMENTS\"";
    let bench = Bench::new("shell", &[]).with(|request| {
        request.script = Some(script.into());
        request.persona = Some("You are careful.".into());
        request.review = Some("> $(touch canary)".into());
    });
    let ran = bench.run().await;
    let lines = ran.lines();
    assert_eq!(lines[..2], ["Fix the greeting.", "> $(touch canary)"]);
    let file = std::path::Path::new(lines[2]);
    assert!(!file.starts_with(ran.dir.path()) && !file.exists());
    let ran = Bench::new("shell", &[]).with(|request| request.script = Some("env".into())).run().await;
    assert!(!ran.lines().join("\n").contains("GIGA_REVIEW_COMMENTS"), "only where there was a review");
}

/// Fields of a job that would do something if a shell or an option parser ever saw them.
#[tokio::test]
async fn hostile_fields_stay_text() {
    let hostile = [
        "$(touch canary)",
        "`touch canary`",
        "; touch canary #",
        "--dangerously-skip-permissions",
        "-",
        "--help\n--version",
        "'\"\\ | touch canary",
        "nul\0byte",
    ];
    for engine in every_program().chain(["plain"]) {
        for field in hostile {
            let bench = Bench::new(engine, &["show-args"]).with(|request| {
                request.prompt = field.to_owned();
                request.resume = Some(field.to_owned());
            });
            let ran = bench.run().await;
            assert!(!ran.dir.path().join("canary").exists(), "{engine}: {field:?}");
            let arg = serde_json::to_string(field).unwrap();
            let whole = ran
                .lines()
                .iter()
                .filter(|line| **line == arg || line.ends_with(&format!("={}", &arg[1..])))
                .count();
            assert!(
                whole <= 1,
                "{engine}: {field:?} is given once at most, never as a session: {:?}",
                ran.lines()
            );
            assert!(ran.notes()[0].contains("a new one is begun"), "{engine}: {field:?}");
        }
    }
}

#[tokio::test]
async fn edits_and_commits_land_in_the_work_tree() {
    let bench = Bench::new("plain", &["write greeting.txt hello", "commit fix the greeting"]);
    let git = |args: &[&str]| {
        let output =
            std::process::Command::new("git").args(args).current_dir(bench.dir.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    let dir = bench.dir.path().to_owned();
    let ran = bench.run().await;
    ran.succeeded();
    assert_eq!(std::fs::read_to_string(dir.join("greeting.txt")).unwrap(), "hello\n");
    let log =
        std::process::Command::new("git").args(["log", "--format=%s"]).current_dir(&dir).output().unwrap();
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "fix the greeting\n");
}
