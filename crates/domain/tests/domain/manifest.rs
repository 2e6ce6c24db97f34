//! What a manifest means: values, defaults, lines, bounds.

use std::time::Duration;

use giga_domain::job::{
    BudgetCaps, Concurrency, ConflictPolicy, DepsMode, FailurePolicy, JobKind, MergeBy, MergeFeedback,
    MergeSettings, MergeStrategy, RetryPolicy, ReviewGate, ShipMode,
};
use giga_domain::manifest::{
    Dep, Draft, Manifest, ManifestError, Persona, from_json, parse_markdown, suggest,
};
use giga_domain::{
    AskPolicy, CapabilitySet, FailReason, JobId, Permissions, Priority, Timestamp, Usd, limits,
};
use serde_json::json;

fn read(front: &str) -> Result<Manifest, ManifestError> {
    parse_markdown(format!("---\n{front}\n---\n").as_bytes()).map(|(manifest, _)| manifest)
}

fn accepted(front: &str) -> Manifest {
    read(front).unwrap_or_else(|error| panic!("{front}\n{error}"))
}

fn refused(front: &str) -> ManifestError {
    read(front).expect_err(front)
}

/// The example of the specification, every key in use.
const FULL: &str = r#"---
name: fix-greeting            # required; 1–120 printable characters
product: demo
repo: hello
engine: shell
script: ./fix.sh
persona: coder@3
capabilities: [os:linux, has:git]
priority: high
kind: agent
deps: [01J9ZK3V5N8Q4W2E6R7T1Y0ABC, other-job]
depsMode: any
onConflict: fail
base: main
target: release/2.1
merge: {strategy: squash, by: push, feedback: changes, message: "{name}\n", author: Ana <ana@example.org>}
budget: {usd: 2.50, tokens: 200000, wall: 20m}
retry: {max: 5, backoff: 45s, on: [crash, verify_failed]}
verify: [cargo test]
review: {quorum: 1, reviewers: [ana, bo]}
ship: auto
permissions: edit
ask: {parkAfter: 5m, deadline: 2h}
concurrency: {key: "repo:hello", limit: 2}
idempotencyKey: ticket-812
runAt: 2026-12-01T09:00:00Z
---
The body is the prompt, kept byte for byte.
"#;

#[test]
fn the_full_example() {
    let (manifest, body) = parse_markdown(FULL.as_bytes()).unwrap();
    assert_eq!(body, "The body is the prompt, kept byte for byte.\n");
    let id: JobId = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC".parse().unwrap();
    let expected = Manifest {
        name: "fix-greeting".to_owned(),
        product: Some("demo".parse().unwrap()),
        repo: Some("hello".to_owned()),
        more_repos: Vec::new(),
        engine: Some("shell".to_owned()),
        script: Some("./fix.sh".to_owned()),
        persona: Some(Persona { name: "coder".to_owned(), version: 3 }),
        capabilities: CapabilitySet::parse(["has:git", "os:linux"]).unwrap(),
        priority: Priority::High,
        kind: JobKind::Agent,
        deps: vec![Dep::Id(id), Dep::Name("other-job".to_owned())],
        deps_mode: DepsMode::Any,
        on_failure: FailurePolicy::FailFast,
        on_conflict: ConflictPolicy::Fail,
        base: Some("main".to_owned()),
        target: Some("release/2.1".to_owned()),
        merge: MergeSettings {
            strategy: Some(MergeStrategy::Squash),
            by: Some(MergeBy::Push),
            feedback: Some(MergeFeedback::Changes),
            message: Some("{name}\n".to_owned()),
            author: Some("Ana <ana@example.org>".to_owned()),
        },
        budget: BudgetCaps {
            usd: Some(Usd::from_micros(2_500_000)),
            tokens: Some(200_000),
            wall_ms: Some(1_200_000),
        },
        retry: RetryPolicy { max: 5, backoff_ms: 45_000 },
        retry_on: vec![FailReason::Crash, FailReason::VerifyFailed],
        verify: vec!["cargo test".to_owned()],
        review: ReviewGate { quorum: 1, reviewers: vec!["ana".to_owned(), "bo".to_owned()] },
        ship: ShipMode::Auto,
        permissions: Some(Permissions::Edit),
        ask: AskPolicy { park_after_ms: Some(300_000), deadline_ms: Some(7_200_000) },
        concurrency: Some(Concurrency { key: "repo:hello".to_owned(), limit: 2 }),
        idempotency_key: Some("ticket-812".to_owned()),
        secrets: Vec::new(),
        run_at: Some("2026-12-01T09:00:00Z".parse().unwrap()),
        written: None,
    };
    assert_eq!(manifest, expected);
    insta::assert_json_snapshot!(manifest);
}

#[test]
fn everything_but_the_name_has_a_default() {
    let manifest = accepted("name: x");
    let expected = Manifest {
        name: "x".to_owned(),
        product: None,
        repo: None,
        more_repos: Vec::new(),
        engine: None,
        script: None,
        persona: None,
        capabilities: CapabilitySet::new(),
        priority: Priority::Normal,
        kind: JobKind::Agent,
        deps: Vec::new(),
        deps_mode: DepsMode::All,
        on_failure: FailurePolicy::FailFast,
        on_conflict: ConflictPolicy::Redo,
        base: None,
        target: None,
        merge: MergeSettings::default(),
        budget: BudgetCaps::default(),
        retry: RetryPolicy { max: 3, backoff_ms: 30_000 },
        retry_on: Vec::new(),
        verify: Vec::new(),
        review: ReviewGate { quorum: 0, reviewers: Vec::new() },
        ship: ShipMode::Manual,
        permissions: None,
        ask: AskPolicy::default(),
        concurrency: None,
        idempotency_key: None,
        secrets: Vec::new(),
        run_at: None,
        written: None,
    };
    assert_eq!(manifest, expected);
    insta::assert_json_snapshot!(manifest);
    let blank =
        "name: x\nproduct:\nrepo: ~\nengine: any\nbudget:\nretry: {}\nverify: []\ndeps:\ncapabilities: null";
    assert_eq!(accepted(blank), expected, "empty values count as left out");
    assert_eq!(accepted("{name: x, budget: {}, retry: {}, review: {}}"), expected);
}

#[test]
fn the_shell_needs_a_script_and_the_rest_a_prompt() {
    let error = refused("name: x\nengine: shell");
    assert_eq!(error.problems[0].field, "script");
    assert_eq!(error.problems[0].line, Some(3), "where the engine is named");
    let kept = serde_json::json!({"name": "x", "engine": "shell"});
    assert!(from_json(&kept).is_ok(), "what was taken before can be read");
    let needs = |front: &str| {
        let spec = accepted(front).to_spec(Vec::new(), None);
        spec.capabilities.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(needs("name: x"), ["engine:any"]);
    assert_eq!(needs("name: x\nengine: any\ncapabilities: [gpu]"), ["engine:any", "gpu"]);
    assert_eq!(needs("name: x\nengine: claude"), ["engine:claude"]);
    assert_eq!(needs("name: x\nengine: shell\nscript: ./fix.sh"), ["engine:shell"]);
    assert_eq!(needs("name: x\nkind: composite"), [""; 0], "it runs nowhere");
}

#[test]
fn what_stands_alone_is_a_list_of_one() {
    let manifest =
        accepted("name: x\nverify: cargo test\ncapabilities: os:linux\ndeps: a\nreview: {reviewers: ana}");
    assert_eq!(manifest.verify, ["cargo test"]);
    assert_eq!(manifest.capabilities, CapabilitySet::parse(["os:linux"]).unwrap());
    assert_eq!(manifest.deps, [Dep::Name("a".to_owned())]);
    assert_eq!(manifest.review, ReviewGate { quorum: 1, reviewers: vec!["ana".to_owned()] });
}

#[test]
fn gates_and_limits_fill_in_what_is_meant() {
    let review = |front: &str| accepted(&format!("name: x\nreview: {front}")).review;
    assert_eq!(review("{reviewers: [ana, bo]}").quorum, 1, "naming reviewers asks for a review");
    assert_eq!(review("{reviewers: [ana, bo], quorum: 0}").quorum, 0, "unless it is said otherwise");
    assert_eq!(review("{quorum: 2}"), ReviewGate { quorum: 2, reviewers: Vec::new() });
    assert_eq!(review("{reviewers: []}").quorum, 0);
    assert_eq!(accepted("name: x\nconcurrency: {key: k}").concurrency.unwrap().limit, 1);
    assert_eq!(accepted("name: x\nretry: {max: 0}").retry, RetryPolicy { max: 0, backoff_ms: 30_000 });
    assert_eq!(accepted("name: x\nretry: {backoff: 0s}").retry.backoff(1), Duration::ZERO);
    assert_eq!(accepted("name: x\nbudget: {tokens: 2e5}").budget.tokens, Some(200_000));
    assert_eq!(accepted("name: x\nbudget: {usd: 0.1}").budget.usd, Some(Usd::from_micros(100_000)));
    assert_eq!(accepted("name: x\nbudget: {usd: 1000000}").budget.usd, Some(Usd::from_dollars(1_000_000)));
}

#[test]
fn words_that_old_yaml_took_for_booleans_are_words() {
    assert_eq!(accepted("name: x\nreview: {reviewers: [no, on, y]}").review.reviewers, ["no", "on", "y"]);
    assert_eq!(accepted("name: yes").name, "yes");
}

#[test]
fn several_lines_of_script_are_kept() {
    let manifest = accepted("name: x\nengine: shell\nscript: |\n  set -e\n  ./fix.sh\nship: auto");
    assert_eq!(manifest.script.as_deref(), Some("set -e\n./fix.sh\n"));
}

#[test]
fn each_problem_has_its_field_and_its_line() {
    let error =
        refused("name: x\nbudget:\n  usd: 1\n  wall: 20\ndeps:\n  - a\n  - ok\n  - a\nreview: {quorums: 1}");
    let found: Vec<_> = error.problems.iter().map(|p| (p.field.as_str(), p.line)).collect();
    assert_eq!(
        found,
        [("budget.wall", Some(5)), ("deps[2]", Some(9)), ("review.quorums", Some(10))],
        "{error}"
    );
    let error = from_json(&json!({"name": "x", "deps": ["a", 7]})).unwrap_err();
    assert_eq!((error.problems[0].field.as_str(), error.problems[0].line), ("deps[1]", None));
}

#[test]
fn lines_are_those_of_the_document_after_a_mark_and_windows_line_ends() {
    let error =
        parse_markdown(b"\xef\xbb\xbf---\r\nname: x\r\n\r\n# note\r\nshp: auto\r\n---\r\n").unwrap_err();
    assert_eq!(error.problems[0].line, Some(5));
}

#[test]
fn an_alias_is_reported_where_it_is_used() {
    let manifest = accepted("name: &n x\nidempotencyKey: *n");
    assert_eq!(manifest.idempotency_key.as_deref(), Some("x"));
    assert_eq!(refused("name: &n x\n\nship: *n").problems[0].line, Some(4));
}

#[test]
fn the_number_of_items_is_bounded() {
    let list = |key: &str, count: usize| {
        let items: Vec<String> = (0..count).map(|n| format!("i{n}")).collect();
        format!("name: x\n{key}: [{}]", items.join(", "))
    };
    for (key, most) in
        [("capabilities", limits::CAPABILITIES), ("deps", limits::DEPS), ("verify", limits::VERIFY_COMMANDS)]
    {
        accepted(&list(key, most));
        let error = refused(&list(key, most + 1));
        assert_eq!(error.problems.len(), 1);
        assert!(error.to_string().contains(&format!("at most {most}")), "{error}");
    }
}

#[test]
fn lengths_are_counted_in_characters() {
    accepted(&format!("name: {}", "é".repeat(limits::NAME_CHARS)));
    refused(&format!("name: {}", "é".repeat(limits::NAME_CHARS + 1)));
    accepted(&format!("name: x\nidempotencyKey: {}", "k".repeat(limits::IDEMPOTENCY_KEY_CHARS)));
    refused(&format!("name: x\nidempotencyKey: {}", "k".repeat(limits::IDEMPOTENCY_KEY_CHARS + 1)));
}

#[test]
fn bombs_stay_small() {
    let lines = |count: usize, line: fn(usize) -> String| (0..count).map(line).collect::<Vec<_>>().join("\n");
    let laughs = lines(14, |n| match n {
        0 => "name: x\nk0: &a0 [lol]".to_owned(),
        n => format!("k{n}: &a{n} [{}]", vec![format!("*a{}", n - 1); 10].join(", ")),
    });
    for (bomb, answer) in [
        (laughs, "too large"),
        (format!("name: x\nverify: [{}]", "a, ".repeat(300_000)), "too large"),
        (lines(100_000, |n| format!("k{n}: 1")), "too large"),
        (lines(1_000, |n| format!("k{n}: &a{n} 1")), "too large"),
        (lines(600, |depth| format!("{}k:", " ".repeat(depth))), "too large"),
        (format!("name: &n x\nverify: [{}]", "*n, ".repeat(150)), "too large"),
        (format!("k: &l [{}]\nverify: [{}]", "a, ".repeat(1_000), "*l, ".repeat(90)), "too large"),
        (format!("name: {}x{}", "[".repeat(100_000), "]".repeat(100_000)), "recursion limit"),
        (lines(5_000, |n| format!("k{n}: 1")), "and 4951 more problems"),
    ] {
        let text = refused(&bomb).to_string();
        assert!(text.contains(answer) && text.len() < 20_000, "{} bytes: {text:.300}", text.len());
    }
    let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
    assert!(from_json(&json!({"name": deep})).unwrap_err().to_string().contains("nested too deeply"));
    let long = "x".repeat(limits::MANIFEST_BYTES);
    assert!(from_json(&json!({"name": "x", "verify": long})).unwrap_err().to_string().contains("1 MiB"));
}

/// The coordinator gives such a key to what it makes from an item, and has to read its own snapshot again.
#[test]
fn the_key_of_a_tracker_is_read_back_and_taken_from_nobody() {
    let mut made = accepted("name: x");
    made.idempotency_key = Some("tracker:github:acme/app#12".to_owned());
    let snapshot = serde_json::to_value(&made).unwrap();
    assert_eq!(from_json(&snapshot).unwrap(), made);
    let sent = Draft::from_json(&snapshot, String::new()).unwrap().finish(None).unwrap_err();
    let [problem] = &sent.problems[..] else { panic!("{sent}") };
    assert_eq!(problem.field, "idempotencyKey");
    let sent = refused("name: x\nidempotencyKey: tracker:github:acme/app#12\npriority: urgent");
    assert_eq!(sent.problems.len(), 2, "with whatever else is wrong: {sent}");
    assert_eq!(sent.problems[0].line, Some(3));
    assert!(sent.to_string().contains("line 3: idempotencyKey may not begin with `tracker:`"), "{sent}");
}

/// As large as a document that holds both, and no larger.
#[test]
fn a_body_beside_a_manifest_has_its_bounds() {
    let manifest = json!({"name": "x"});
    let room = limits::MANIFEST_BYTES - manifest.to_string().len();
    Draft::from_json(&manifest, "x".repeat(room)).unwrap();
    let error = Draft::from_json(&manifest, "x".repeat(room + 1)).unwrap_err();
    assert_eq!(error.problems[0].field, "bodyMd", "{error}");
}

#[test]
fn an_error_is_one_printable_line_per_problem() {
    let error =
        refused("name: \"\\e[31m\\n\"\n\"\\e[2J\\n\\0\": 1\npriority: \"\\e[2J\\n\"\nrepo: \"\\r\\n\"");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(error.problems.iter().all(|p| !p.field.chars().any(char::is_control)));
}

#[test]
fn the_spec_is_what_the_scheduler_needs() {
    let manifest = accepted("name: x\nengine: claude\ncapabilities: [os:linux]\nrepo: hello\npriority: low");
    let parent: JobId = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC".parse().unwrap();
    let dep = JobId::from_parts(Timestamp::from_millis(5), 5);
    let spec = manifest.to_spec(vec![dep], Some(parent));
    assert_eq!(spec.capabilities, CapabilitySet::parse(["engine:claude", "os:linux"]).unwrap());
    assert_eq!((spec.engine.as_deref(), spec.repo.as_deref()), (Some("claude"), Some("hello")));
    assert_eq!((spec.deps, spec.parent, spec.priority), (vec![dep], Some(parent), Priority::Low));
    let any = accepted("name: x\nengine: any").to_spec(Vec::new(), None);
    let prompts = CapabilitySet::parse(["engine:any"]).unwrap();
    assert!(any.capabilities == prompts && any.engine.is_none(), "whichever reads prompts");
    let longest = format!("name: x\nengine: {}", "e".repeat(64));
    assert_eq!(
        accepted(&longest).to_spec(Vec::new(), None).capabilities.len(),
        1,
        "every engine is a capability"
    );
}

#[test]
fn the_fingerprint_follows_meaning_and_body() {
    let one = accepted("name: x\nbudget: {wall: 60m, usd: 2.50}\ncapabilities: [b, a]");
    let same =
        accepted("capabilities: [a, b]\nname: \"x\"\nbudget:\n  usd: 2.5\n  wall: 1h\npriority: normal");
    let other = accepted("name: x\nbudget: {wall: 61m, usd: 2.50}\ncapabilities: [b, a]");
    assert_eq!(one.fingerprint("body"), same.fingerprint("body"));
    assert_ne!(one.fingerprint("body"), other.fingerprint("body"));
    assert_ne!(one.fingerprint("body"), one.fingerprint("body "));
    let hex = one.fingerprint("");
    assert!(hex.len() == 64 && hex.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{hex}");
}

#[test]
fn suggestions_are_near_or_absent() {
    let known = ["priority", "product", "persona", "ship", "usd"];
    for (given, near) in [
        ("priorty", Some("priority")),
        ("Priority", Some("priority")),
        ("pirority", Some("priority")),
        ("prodcut", Some("product")),
        ("sihp", Some("ship")),
        ("us", Some("usd")),
        ("zzz", None),
        ("", None),
        ("elephant", None),
    ] {
        assert_eq!(suggest(given, known), near, "{given}");
    }
    assert_eq!(suggest(&"priority".repeat(10_000), known), None);
}

#[test]
fn a_composite_says_how_its_children_are_taken() {
    let plain = accepted("name: x\nkind: composite");
    assert_eq!((plain.on_failure, plain.ship), (FailurePolicy::FailFast, ShipMode::Auto));
    let patient = accepted(
        "name: x\nkind: composite\nonFailure: continue\ndeps: [a]\nreview: {quorum: 1}\nship: manual",
    );
    assert_eq!((patient.on_failure, patient.ship), (FailurePolicy::Continue, ShipMode::Manual));
    assert_eq!(patient.deps, [Dep::Name("a".to_owned())]);
    // What is done anyway may be said.
    let defaults = "name: x\nkind: composite\nengine: any\npriority: normal\ndepsMode: all\nretry: {max: 3}";
    assert_eq!(accepted(defaults), plain);
}

#[test]
fn several_repositories_stand_side_by_side() {
    let both = accepted("name: x\nrepos: [app, team/lib]\nbase: dev");
    assert_eq!(both.repos().collect::<Vec<_>>(), ["app", "team/lib"]);
    let spec = both.to_spec(Vec::new(), None);
    assert_eq!((spec.repo.as_deref(), spec.more_repos), (Some("app"), vec!["team/lib".to_owned()]));
    assert!(spec.capabilities.contains(&"has:several-repos".parse().unwrap()));
    let json = serde_json::to_value(&both).unwrap();
    assert_eq!((json.get("repo"), &json["repos"]), (None, &json!(["app", "team/lib"])));
    assert_eq!(from_json(&json).unwrap(), both);
    assert_eq!(accepted("name: x\nrepos: [app]"), accepted("name: x\nrepo: app"), "one is one");
    for (given, said) in [
        ("repos: [app, lib]\nrepo: app", "stands beside `repo`"),
        ("repos: [app, team/App]", "would be the folder \"App\" as \"app\" is"),
        ("repos: [app, https://host/team/.git]", "a name that a folder can have"),
        ("repos: [app, ../x]", "must be a repository name"),
        ("repos: []", "a list of repositories"),
        ("repos: [a, b, c, d, e, f, g, h, i]", "at most 8"),
        ("kind: composite\nrepos: [app]", "belongs to its children"),
    ] {
        let error = refused(&format!("name: x\n{given}")).to_string();
        assert!(error.contains(said), "{given}: {error}");
    }
}

#[test]
fn secrets_are_named_with_a_place() {
    let text = "---\nname: x\nsecrets:\n  - NPM_TOKEN\n  - {name: DEPLOY_KEY, file: .ssh/id}\n  - {name: DEPLOY_KEY, env: npm_config_key}\n---\n";
    let (manifest, _) = parse_markdown(text.as_bytes()).unwrap();
    let places: Vec<_> = manifest
        .secrets
        .iter()
        .map(|used| (used.name.as_str(), used.place.env(), used.place.file()))
        .collect();
    assert_eq!(
        places,
        [
            ("NPM_TOKEN", Some("NPM_TOKEN"), None),
            ("DEPLOY_KEY", None, Some(".ssh/id")),
            ("DEPLOY_KEY", Some("npm_config_key"), None)
        ]
    );
    let spec = manifest.to_spec(Vec::new(), None);
    assert!(spec.capabilities.iter().any(|capability| capability.as_str() == "has:secrets"));
    let snapshot = serde_json::to_value(&manifest).unwrap();
    assert_eq!(from_json(&snapshot).unwrap(), manifest);
}

#[test]
fn secrets_that_would_change_how_a_job_is_run_are_refused() {
    let refused = |entry: &str, expected: &str| {
        let text = format!("---\nname: x\nsecrets: [{entry}]\n---\n");
        let error = parse_markdown(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{entry}: {error}");
    };
    for variable in ["PATH", "HOME", "GIGA_TOKEN", "LD_PRELOAD", "HTTPS_PROXY"] {
        refused(variable, "which the factory sets itself");
    }
    refused("{name: A, env: http_proxy}", "which the factory sets itself");
    refused("{name: A, env: a-b}", "the name of an environment variable");
    for file in ["/etc/passwd", "../x", "a/../b", "a//b"] {
        refused(&format!("{{name: A, file: {file}}}"), "a relative path below the job's home");
    }
    refused("lower", "the name of a secret");
    refused("A, A", "give each a place of its own");
    refused("{name: A, file: x}, {name: B, file: x/y}", "give each a place of its own");
    refused("{name: A, env: B, file: x}", "has both env and file");
    refused("{env: B}", "name is required");
    let devin = b"---\nname: x\nengine: devin\nsecrets: [A]\n---\n";
    assert!(parse_markdown(devin).unwrap_err().to_string().contains("its vendor's machines"));
}
