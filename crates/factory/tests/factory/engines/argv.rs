//! How each program is called, word for word.

use giga_domain::job::BudgetCaps;
use giga_domain::{Permissions, Usd};
use giga_factory::engines::{Program, Talked, Usage};

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

const LEFT_ALONE: [&str; 3] = ["--setting-sources", "user", "--strict-mcp-config"];

#[tokio::test]
async fn claude() {
    let mut fresh = argv("claude", |bench| bench).await;
    let id = fresh.remove(8);
    let form: String = id.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
    assert_eq!(form, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    assert!(
        id[14..].starts_with('4') && id[19..].starts_with(['8', '9', 'a', 'b']),
        "a version 4 UUID: {id}"
    );
    let output = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    let fixed = [&output[..], &["--permission-mode", "acceptEdits"]].concat();
    assert_eq!(fresh, [&fixed[..], &["--session-id"], &LEFT_ALONE].concat());
    let again = argv("claude", |bench| configured(resumed(bench))).await;
    let resumes = ["--resume", "ses-1", "--max-budget-usd", "2.25"];
    assert_eq!(again, [&fixed[..], &resumes, &LEFT_ALONE, &["--model", "big", "--extra"]].concat());
}

#[tokio::test]
async fn claude_does_what_the_job_allows() {
    for (permissions, expected) in [
        (Permissions::Ask, &["--permission-mode", "default", "--disallowedTools", "Bash"][..]),
        (Permissions::Edit, &["--permission-mode", "acceptEdits", "--disallowedTools", "Bash"]),
        (Permissions::Commands, &["--permission-mode", "acceptEdits", "--allowedTools", "Bash"]),
    ] {
        let asked = |bench: Bench| bench.with(|request| request.permissions = Some(permissions));
        let args = argv("claude", asked).await;
        let at = args.iter().position(|arg| arg == "--permission-mode").unwrap();
        assert_eq!(args[at..at + expected.len()], *expected, "{permissions}: {args:?}");
        assert_eq!(args[at + expected.len()], "--session-id", "and nothing else: {args:?}");
    }
}

#[tokio::test]
async fn codex_and_gemini_do_what_the_job_allows() {
    const NO_SHELL: [&str; 4] = ["--disable", "shell_tool", "--disable", "unified_exec"];
    for (permissions, codex_has_shell, codex_sandbox, gemini) in [
        (Permissions::Ask, false, "read-only", &["--approval-mode", "default"][..]),
        (Permissions::Edit, false, "workspace-write", &["--approval-mode", "auto_edit"]),
        (
            Permissions::Commands,
            true,
            "workspace-write",
            &["--approval-mode", "auto_edit", "--allowed-tools=run_shell_command"],
        ),
        (Permissions::All, true, "workspace-write", &["--approval-mode", "yolo"]),
    ] {
        let asked = |bench: Bench| bench.with(|request| request.permissions = Some(permissions));
        let args = argv("codex", asked).await;
        assert_eq!(args.windows(4).any(|four| four == NO_SHELL), !codex_has_shell, "{permissions}: {args:?}");
        assert!(args.windows(2).any(|two| two == ["-s", codex_sandbox]), "{permissions}: {args:?}");
        let args = argv("gemini", asked).await;
        assert_eq!(args[2..2 + gemini.len()], *gemini, "{permissions}: {args:?}");
        assert_eq!(args[2 + gemini.len()], "--skip-trust", "and nothing else: {args:?}");
    }
}

/// The job's word comes before the operator's.
#[tokio::test]
async fn opencode_does_what_the_job_allows() {
    for (permissions, edit, bash) in [
        (Permissions::Ask, Some("deny"), Some("deny")),
        (Permissions::Edit, Some("allow"), Some("deny")),
        (Permissions::Commands, Some("allow"), Some("allow")),
        (Permissions::All, None, None),
    ] {
        let mut bench = Bench::new("opencode", &["show-env"]);
        bench.host.push(("OPENCODE_PERMISSION".into(), r#"{"operator":"allow"}"#.into()));
        let ran = bench.with(|request| request.permissions = Some(permissions)).run().await;
        let lines = ran.lines();
        let text = lines.iter().find_map(|line| line.strip_prefix("OPENCODE_PERMISSION=")).unwrap();
        let told: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!((told["edit"].as_str(), told["bash"].as_str()), (edit, bash), "{permissions}: {told}");
        assert_eq!(told["operator"].as_str(), None, "{permissions}: {told}");
    }
}

#[tokio::test]
async fn what_people_said_follows_the_prompt() {
    let talked = Talked { whole: "all of it".to_owned(), new: Some("what is new".to_owned()) };
    let said = |bench: Bench| bench.with(|request| request.talked = Some(talked.clone()));
    for engine in Program::ALL.iter().map(|program| program.as_str()) {
        let (_, fresh) = reading(engine, said).await;
        assert!(fresh.ends_with("\n\nall of it"), "{engine}: {fresh}");
        let (_, again) = reading(engine, |bench| resumed(said(bench))).await;
        assert!(again.ends_with("\n\nwhat is new"), "{engine}: {again}");
    }
}

/// What an engine is given to read: the persona apart, and standard input.
async fn reading(engine: &str, change: impl Fn(Bench) -> Bench) -> (Option<String>, String) {
    let ran = change(Bench::new(engine, &["show-args", "show-persona", "show-whole-stdin"])).run().await;
    let lines = ran.lines();
    let text = |mark: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(mark))?;
        Some(serde_json::from_str::<String>(line).unwrap())
    };
    (text("persona "), text("stdin ").unwrap())
}

/// Apart where the program has an option for it, otherwise before the prompt; reviewers' words come last. Nothing of it is an
/// argument.
#[tokio::test]
async fn a_persona_and_reviewers_words() {
    let with_both = |bench: Bench| {
        bench.with(|request| {
            request.persona = Some("--You are careful.".into());
            request.review = Some("> Say hello.".into());
        })
    };
    let both = "Fix the greeting.\n\n> Say hello.";
    assert_eq!(reading("claude", with_both).await, (Some("--You are careful.".into()), both.into()));
    for engine in ["codex", "opencode", "gemini"] {
        let all = format!("--You are careful.\n\n{both}");
        assert_eq!(reading(engine, with_both).await, (None, all), "{engine}");
    }
    for program in Program::ALL {
        let argv = argv(program.as_str(), with_both).await;
        for word in ["careful", "greeting", "Say hello"] {
            assert!(!argv.iter().any(|argument| argument.contains(word)), "{argv:?}");
        }
    }
}

/// Without the settings of a repository, its instructions are handed over as text.
#[tokio::test]
async fn instructions_of_the_repository() {
    let with_files = |obeyed: bool| {
        move |bench: Bench| {
            for name in ["CLAUDE.md", "AGENTS.md", "GEMINI.md"] {
                std::fs::write(bench.dir.path().join(name), format!("I am {name}.\n")).unwrap();
            }
            bench.configured(|config| config.repository_settings = obeyed)
        }
    };
    let from = |name: &str| format!("The repository's own instructions, from {name}:\n\nI am {name}.");
    let prompt = "Fix the greeting.".to_owned();
    assert_eq!(reading("claude", with_files(false)).await, (Some(from("CLAUDE.md")), prompt.clone()));
    for engine in ["codex", "opencode"] {
        let all = format!("{}\n\n{prompt}", from("AGENTS.md"));
        assert_eq!(reading(engine, with_files(false)).await, (None, all), "{engine}");
        // The session has them already.
        let resumes = |bench| resumed(with_files(false)(bench));
        assert_eq!(reading(engine, resumes).await, (None, prompt.clone()), "{engine}");
    }
    // It reads its own by itself.
    assert_eq!(reading("gemini", with_files(false)).await, (None, prompt.clone()));
    for program in Program::ALL {
        assert_eq!(reading(program.as_str(), with_files(true)).await, (None, prompt.clone()), "{program}");
    }
}

#[tokio::test]
async fn codex() {
    let fixed = ["exec", "--json", "--skip-git-repo-check", "-s", "workspace-write"];
    let untrusted = ["-C", "DIR", "-c", "projects={\"DIR\"={trust_level=\"untrusted\"}}"];
    // Without a sandbox of ours it keeps out of /tmp, which is everybody's.
    let own_folder = |argv: &mut Vec<String>| {
        let own: Vec<String> = argv.drain(fixed.len()..fixed.len() + 4).collect();
        assert_eq!((own[0].as_str(), own[2].as_str()), ("-c", "-c"));
        let (writable, temporary) = (&own[1], &own[3]);
        assert!(writable.starts_with("sandbox_workspace_write={exclude_slash_tmp=true,"), "{writable}");
        let folder =
            temporary.trim_start_matches("shell_environment_policy.set={TMPDIR=").trim_end_matches('}');
        assert!(folder.ends_with("/tmp\"") && writable.contains(folder), "{temporary}");
    };
    let mut fresh = argv("codex", |bench| bench).await;
    own_folder(&mut fresh);
    assert_eq!(fresh, [&fixed[..], &untrusted, &["--", "-"]].concat());
    let mut again = argv("codex", |bench| configured(resumed(bench))).await;
    own_folder(&mut again);
    let rest = ["-m", "big", "--extra", "resume", "--", "ses-1", "-"];
    assert_eq!(again, [&fixed[..], &untrusted, &rest].concat());
}

#[tokio::test]
async fn opencode() {
    let fixed = ["run", "--format", "json", "--print-logs", "--log-level", "ERROR"];
    assert_eq!(argv("opencode", |bench| bench).await, [&fixed[..], &["--title", "giga"]].concat());
    let again = argv("opencode", |bench| configured(resumed(bench))).await;
    assert_eq!(again, [&fixed[..], &["-s", "ses-1", "-m", "big", "--extra"]].concat());
}

#[tokio::test]
async fn gemini() {
    let fixed = ["-o", "stream-json", "--approval-mode", "auto_edit", "--skip-trust"];
    assert_eq!(argv("gemini", |bench| bench).await, fixed);
    let again = argv("gemini", |bench| configured(resumed(bench))).await;
    assert_eq!(again, [&fixed[..], &["--resume=ses-1", "-m", "big", "--extra"]].concat());
}

/// Where the operator says so, a repository's settings count, as the programs have it by themselves.
#[tokio::test]
async fn settings_of_the_repository_are_obeyed_on_demand() {
    let obeyed = |bench: Bench| bench.configured(|config| config.repository_settings = true);
    for program in Program::ALL {
        let argv = argv(program.as_str(), obeyed).await;
        for word in ["--setting-sources", "--strict-mcp-config", "projects="] {
            assert!(!argv.iter().any(|argument| argument.starts_with(word)), "{argv:?}");
        }
    }
    let environment = async |engine: &str, change: fn(Bench) -> Bench| {
        change(Bench::new(engine, &["show-env"])).run().await.lines().join("\n")
    };
    for (engine, variable) in
        [("opencode", "OPENCODE_DISABLE_PROJECT_CONFIG=1"), ("gemini", "GOOGLE_GEMINI_BASE_URL=")]
    {
        let left_alone = environment(engine, |bench| bench).await;
        assert!(left_alone.lines().any(|line| line == variable), "{left_alone}");
        let obeys = environment(engine, |bench| bench.configured(|config| config.repository_settings = true));
        assert!(!obeys.await.contains(variable), "{engine}");
    }
    // What the operator set stays.
    let mut bench = Bench::new("gemini", &["show-env"]);
    bench.host.push(("GOOGLE_GEMINI_BASE_URL".into(), "https://gateway.example".into()));
    let ran = bench.run().await;
    assert!(ran.lines().contains(&"GOOGLE_GEMINI_BASE_URL=https://gateway.example"), "{:?}", ran.lines());
}

/// Every user of the machine can read the arguments of a process.
#[tokio::test]
async fn no_process_has_the_prompt_in_its_arguments() {
    const MARK: &str = "prompt-7f3a91";
    for program in Program::ALL {
        let bench = Bench::new(program.as_str(), &["look-for-args", "show-whole-stdin"]).with(|request| {
            request.prompt = format!("Do {MARK}.");
            request.persona = Some(format!("You are {MARK}."));
            request.review = Some(format!("> {MARK}"));
            request.env.push(("LOOK_FOR".into(), MARK.into()));
        });
        let ran = bench.run().await;
        let lines = ran.lines();
        assert!(lines.iter().any(|line| line.starts_with("stdin ") && line.contains(MARK)), "{lines:?}");
        assert!(lines.contains(&"found in the arguments of 0 processes"), "{program}: {lines:?}");
    }
}
