//! Profiles: what one may say, and how it fills in what a manifest leaves out.

use giga_domain::manifest::{Draft, Manifest, ManifestError, ProfileRef, parse_markdown};
use giga_domain::{Actor, EngineChoice, Profile, ProfileContent, Timestamp, Usd, limits};
use serde_json::{Map, Value, json};

fn content(front: &str, persona: &str) -> ProfileContent {
    ProfileContent::from_markdown(format!("---\n{front}---\n{persona}").as_bytes()).unwrap()
}

fn profile(version: u32, front: &str) -> Profile {
    Profile {
        product: "demo".parse().unwrap(),
        name: "coder".to_owned(),
        version,
        content: content(front, "You write code.\n"),
        created_at: Timestamp::ZERO,
        created_by: Actor::system("test"),
    }
}

fn draft(front: &str) -> Draft {
    Draft::from_markdown(format!("---\nname: x\n{front}---\nDo it.\n").as_bytes()).unwrap()
}

fn filled(manifest: &str, profile_front: &str) -> Manifest {
    draft(manifest).finish(Some(&profile(3, profile_front))).unwrap().0
}

fn refused(front: &str, persona: &str) -> String {
    let text = format!("---\n{front}---\n{persona}");
    ProfileContent::from_markdown(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn what_is_left_out_is_filled_in_and_what_is_written_stands() {
    let front = "engine: claude\npriority: high\nship: auto\nverify: [cargo test]\nreview: {quorum: 1}\n";
    let silent = filled("persona: coder\n", front);
    assert_eq!(silent.engine, EngineChoice::one("claude"));
    assert_eq!((silent.priority.as_str(), silent.verify.len(), silent.review.quorum), ("high", 1, 1));
    let own = "persona: coder\nengine: codex\npriority: low\nship: manual\nverify: []\nreview: {quorum: 0}\n";
    let spoken = filled(own, front);
    assert_eq!(spoken.engine, EngineChoice::one("codex"));
    assert_eq!((spoken.priority.as_str(), spoken.verify.len(), spoken.review.quorum), ("low", 0, 0));
    let empty = filled("persona: coder\nengine:\n", front);
    assert_eq!(empty.engine, EngineChoice::one("claude"), "a key with nothing after it is left out");
    let front = "engine: claude\nmodel: opus\n";
    assert_eq!(filled("persona: coder\n", front).engine.to_string(), "claude (opus)");
    assert_eq!(filled("persona: coder\nmodel: haiku\n", front).engine.to_string(), "claude (haiku)");
    assert_eq!(
        filled("persona: coder\nengine: codex\n", front).engine.to_string(),
        "codex",
        "it is claude's"
    );
}

#[test]
fn capabilities_are_united_and_caps_filled_part_by_part() {
    let front =
        "capabilities: [os:linux, has:git]\nbudget: {usd: 5, wall: 20m}\nretry: {max: 7, backoff: 1s}\n";
    let manifest =
        filled("persona: coder\ncapabilities: [gpu, has:git]\nbudget: {usd: 1}\nretry: {max: 0}\n", front);
    let capabilities: Vec<String> = manifest.capabilities.iter().map(ToString::to_string).collect();
    assert_eq!(capabilities, ["gpu", "has:git", "os:linux"]);
    assert_eq!((manifest.budget.usd, manifest.budget.wall_ms), (Some(Usd::from_dollars(1)), Some(1_200_000)));
    assert_eq!((manifest.retry.max, manifest.retry.backoff_ms), (0, 1_000));
    let alone = filled("persona: coder\ncapabilities: gpu\n", front);
    assert_eq!(alone.capabilities.iter().count(), 3, "one that stands alone is a list of one");
}

#[test]
fn a_review_belongs_together_and_is_not_mixed() {
    let manifest = filled("persona: coder\nreview: {reviewers: [ana]}\n", "review: {quorum: 2}\n");
    assert_eq!((manifest.review.quorum, manifest.review.reviewers.as_slice()), (1, &["ana".to_owned()][..]));
}

#[test]
fn the_snapshot_says_which_version_it_was_and_reads_back() {
    let manifest = filled("persona: coder\n", "engine: claude\n");
    assert_eq!(manifest.persona.as_ref().unwrap().to_string(), "coder@3");
    let snapshot = serde_json::to_value(&manifest).unwrap();
    assert_eq!((&snapshot["persona"], &snapshot["engine"]), (&json!("coder@3"), &json!("claude")));
    assert_eq!(snapshot.get("written"), None);
    let again: Manifest = serde_json::from_value(snapshot).unwrap();
    assert_eq!(again, Manifest { written: None, ..manifest });
}

#[test]
fn a_profile_can_be_named_with_and_without_its_version() {
    let named = |text: &str| draft(&format!("persona: {text}\n")).persona();
    let coder = |version| Some(ProfileRef { name: "coder".to_owned(), version });
    assert_eq!((named("coder"), named("coder@12")), (coder(None), coder(Some(12))));
    for malformed in ["coder@", "coder@0", "'a b'", "-x", "7"] {
        assert_eq!(named(malformed), None, "{malformed}");
        let error = draft(&format!("persona: {malformed}\n")).finish(None).unwrap_err();
        assert_eq!(error.problems[0].field, "persona", "{malformed}");
    }
}

#[test]
fn the_same_text_is_the_same_submit_whatever_became_of_its_profile() {
    let fingerprint = |manifest: &str, version: u32, front: &str| {
        let (manifest, body) = draft(manifest).finish(Some(&profile(version, front))).unwrap();
        manifest.fingerprint(&body)
    };
    let first = fingerprint("persona: coder\nengine: codex\n", 3, "priority: high\n");
    assert_eq!(first, fingerprint("engine: codex\npersona: coder\n", 4, "priority: low\n"));
    assert_ne!(first, fingerprint("persona: coder@4\nengine: codex\n", 4, "priority: low\n"));
    assert_ne!(first, fingerprint("persona: coder\nengine: claude\n", 3, "priority: high\n"));
}

#[test]
fn without_a_profile_the_fingerprint_is_what_it_always_was() {
    let (manifest, body) =
        parse_markdown(b"---\nname: fix-greeting\nproduct: demo\n---\nSay hello.\n").unwrap();
    assert_eq!(manifest.fingerprint(&body), PINNED);
}

/// Of what was stored before there were profiles: a repeated submit must still find its job.
const PINNED: &str = "8a7658c948d3c9bddd622cff239df9d90dda6b3b88bc0c4b6a0808984db2528c";

#[test]
fn a_missing_profile_is_told_with_everything_else() {
    let draft = draft("prioritty: high\npersona: codr\nscript: ./x\n");
    let error: ManifestError = draft.refuse_persona("names the profile codr, which does not exist");
    let problems: Vec<(&str, Option<usize>)> =
        error.problems.iter().map(|p| (p.field.as_str(), p.line)).collect();
    assert_eq!(problems, [("prioritty", Some(3)), ("persona", Some(4))]);
}

#[test]
fn a_malformed_product_is_told_before_any_profile_is_looked_for() {
    let error = draft("persona: coder\nproduct: a b\nspeed: 9\n").product().unwrap_err();
    assert!(error.problems.iter().any(|p| p.field == "product"), "{error}");
    assert!(error.problems.iter().any(|p| p.field == "speed"), "{error}");
    assert_eq!(draft("product: demo\n").product().unwrap(), Some("demo".parse().unwrap()));
}

#[test]
fn what_belongs_to_a_job_is_no_matter_of_profiles() {
    for (key, value) in [
        ("name", "x"),
        ("product", "demo"),
        ("repo", "hello"),
        ("script", "./x"),
        ("persona", "coder@1"),
        ("kind", "composite"),
        ("deps", "[]"),
        ("depsMode", "any"),
        ("onFailure", "continue"),
        ("idempotencyKey", "k"),
        ("runAt", "2026-12-01T09:00:00Z"),
    ] {
        let message = refused(&format!("engine: shell\n{key}: {value}\n"), "p");
        assert!(message.starts_with(&format!("line 3: {key} belongs to each job")), "{message}");
    }
    let message = refused("prority: high\n", "p");
    assert_eq!(message, "line 2: \"prority\" is not a key of a profile; did you mean `priority`?");
}

#[test]
fn the_values_of_a_profile_are_judged_when_it_is_made() {
    let message = refused("priority: urgent\nbudget: {usd: -1}\nverify: ['']\n", "p");
    let lines: Vec<&str> = message.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(lines, ["line 2", "line 3", "line 4"], "{message}");
    assert!(refused("", " \n").contains("it has neither"));
    assert!(refused("", "a\0b").contains("NUL"));
    assert!(refused("", &"x".repeat(limits::PERSONA_BYTES + 1)).contains("64 KiB"));
    assert!(refused("- a\n", "p").contains("must be a map"));
    let bare = ProfileContent::from_markdown(b"You write code.\n").unwrap_err().to_string();
    assert!(bare.contains("the first line must be `---`"), "{bare}");
    assert!(refused("engine: a\nengine: b\n", "p").contains("given twice"));
}

#[test]
fn both_forms_of_a_profile_say_the_same() {
    let markdown = content("engine: claude\nbudget: {usd: 2.50, tokens: 200000}\nship:\n", "Be brief.\n");
    let defaults: Map<String, Value> =
        serde_json::from_value(json!({"engine": "claude", "budget": {"usd": 2.5, "tokens": 200_000}}))
            .unwrap();
    let from_json = ProfileContent::from_json("Be brief.\n".to_owned(), defaults).unwrap();
    assert_eq!(markdown, from_json);
    assert_eq!(content("", "Only words.\n").defaults, Map::new());
}
