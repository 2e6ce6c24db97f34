//! Golden texts of what a person reads who got a manifest wrong.
//!
//! Each case is a whole document (or JSON); the snapshot shows input and answer side by side.

use std::fmt::Write as _;

use giga_domain::manifest::{from_json, parse_markdown};

/// Front matter only; the rest of the document is the same for all.
const FRONT_MATTER: &[(&str, &str)] = &[
    ("nothing at all", ""),
    ("name left empty", "name:"),
    ("name with a line break", "name: \"two\\nlines\""),
    ("name that hides its direction", "name: \"abc\\u202Edef\""),
    (
        "name too long",
        "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
    ("name as a number", "name: 2024"),
    ("key with a slip of the pen", "name: x\npriorty: high"),
    ("key in another spelling", "name: x\nidempotency_key: a"),
    ("key that is like no other", "name: x\nzzzzzzzzzz: 1"),
    ("nested key with a slip", "name: x\nbudget: {dollars: 2}\nretry:\n  maxx: 3"),
    ("merge key", "name: x\n<<: {priority: high}"),
    ("key that is not text", "name: x\n7: seven\n[a, b]: c"),
    ("key given twice", "name: x\nname: y\npriority: hihg"),
    ("nested key given twice", "name: x\nbudget: {usd: 1, usd: 2}"),
    ("a list instead of a map", "- name: x"),
    ("a text instead of a map", "just text"),
    ("bad product", "name: x\nproduct: a/b"),
    ("repos", "name: x\nrepo: \"ext::sh -c id\""),
    ("repo with an option", "name: x\nrepo: -upload-pack=x"),
    ("repo in another spelling", "name: x\nrepo: https://example.org/team/%6eotes"),
    ("engine with a blank", "name: x\nengine: claude code"),
    ("engines", "name: x\nengine: [claude, Claude Code, any, claude, shell]"),
    ("no engine in the list", "name: x\nengine: []"),
    ("engine as a map with a slip", "name: x\nengine: {name: claude, modle: opus}"),
    ("a list of one shell without a script", "name: x\nengine: [shell]"),
    ("a model without an engine", "name: x\nmodel: opus"),
    ("a model of several engines", "name: x\nengine: [claude, codex]\nmodel: opus"),
    ("a model of the shell", "name: x\nengine: shell\nscript: make\nmodel: opus"),
    ("a model that is an option", "name: x\nengine: claude\nmodel: --dangerous"),
    ("a model twice", "name: x\nengine: {name: claude, model: opus}\nmodel: haiku"),
    ("secrets for an engine elsewhere", "name: x\nengine: [claude, devin]\nsecrets: [KEY]"),
    ("script without shell", "name: x\nscript: ./fix.sh"),
    ("script with another engine", "name: x\nengine: claude\nscript: ./fix.sh"),
    ("blank script", "name: x\nengine: shell\nscript: \"  \""),
    ("persona without a version", "name: x\npersona: coder"),
    ("bad capabilities", "name: x\ncapabilities:\n  - os:linux\n  - has git\n  - 20\n  -"),
    ("capabilities as a map", "name: x\ncapabilities: {os: linux}"),
    ("words", "name: x\npriority: urgent\nkind: agnet\ndepsMode: some\nship: true"),
    (
        "a composite that would run",
        "name: x\nkind: composite\nrepo: hello\nengine: shell\nscript: ./fix.sh\nverify: [cargo test]\nbudget: {usd: 1}\npriority: high\nconcurrency: {key: a}",
    ),
    ("a composite that waits for any", "name: x\nkind: composite\ndeps: [a, b]\ndepsMode: any"),
    ("a policy for children of an agent", "name: x\nonFailure: continue"),
    ("deps twice and itself", "name: x\ndeps: [a, b, a, x]"),
    ("budget of wrong types", "name: x\nbudget:\n  usd: lots\n  tokens: -1\n  wall: 20"),
    ("budget out of range", "name: x\nbudget: {usd: 1000000.01, tokens: 1.5, wall: 400d}"),
    ("budget without end", "name: x\nbudget: {usd: .inf, wall: 0s}"),
    ("budget as a number", "name: x\nbudget: 5"),
    ("retry", "name: x\nretry: {max: 101, backoff: 2 hours}"),
    ("retry on what is not to be retried", "name: x\nretry: {on: [exit, crash, crash, 3, budget_exceeded]}"),
    ("retry on", "name: x\nretry: {on: [crashed, crash, crash]}"),
    ("a shell without a script", "name: x\nengine: shell"),
    ("backoff past the policy", "name: x\nretry: {backoff: 1h1ms}"),
    ("verify", "name: x\nverify: [cargo test, \"\", \"a\\0b\", [x]]"),
    ("review", "name: x\nreview: {quorum: 3, reviewers: [ana, bo]}"),
    ("reviewers twice", "name: x\nreview: {reviewers: [ana, ana]}"),
    ("concurrency", "name: x\nconcurrency: {limit: 0}"),
    ("key as a number", "name: x\nidempotencyKey: 812"),
    ("time without a zone", "name: x\nrunAt: 2026-12-01T09:00:00"),
    ("many at once", "nam: x\npriority: hi\nbudget: {usd: x}\nruntAt: now"),
    ("not YAML: unclosed list", "name: x\ndeps: [a, b"),
    ("not YAML: unclosed quote", "name: \"x"),
    ("not YAML: bad indentation", "name: x\n  priority: high"),
    ("not YAML: tab", "budget:\n\tusd: 1"),
    ("alias that is not defined", "name: x\nverify: [*all]"),
    ("tag", "name: !secret x"),
    ("second document", "name: x\n--- \nname: y"),
    ("nested too deeply", "name: [[[[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]]]"),
];

const DOCUMENTS: &[(&str, &[u8])] = &[
    ("empty", b""),
    ("no front matter", b"# Fix the greeting\n\nIt says hello twice.\n"),
    ("opening line with a blank", b"--- \nname: x\n---\n"),
    ("no closing line", b"---\nname: x\n\nbody\n"),
    ("not UTF-8", b"---\nname: caf\xe9\n---\n"),
    ("windows line ends", b"---\r\nname: x\r\npriorty: high\r\n---\r\nbody\r\n"),
    ("byte order mark", b"\xef\xbb\xbf---\nname: x\nshipp: auto\n---\nbody\n"),
];

const JSON: &[(&str, &str)] = &[
    ("a list", "[]"),
    ("null", "null"),
    ("empty object", "{}"),
    ("same rules, no lines", r#"{"name": "x", "prioritty": "high", "budget": {"usd": "lots", "wall": 20}}"#),
    ("NUL", r#"{"name": "x", "verify": ["a\u0000b"]}"#),
    ("numbers", r#"{"name": "x", "retry": {"max": 2.5}, "budget": {"tokens": 1e30}}"#),
];

#[test]
fn every_refusal_reads_well() {
    let mut page = String::new();
    for (title, front) in FRONT_MATTER {
        let text = format!("---\n{front}\n---\nbody\n");
        let error = parse_markdown(text.as_bytes()).expect_err(title);
        writeln!(page, "## {title}\n{front}\n=>\n{error}\n").unwrap();
    }
    for (title, bytes) in DOCUMENTS {
        let error = parse_markdown(bytes).expect_err(title);
        writeln!(page, "## document: {title}\n{}\n=>\n{error}\n", bytes.escape_ascii()).unwrap();
    }
    for (title, json) in JSON {
        let error = from_json(&serde_json::from_str(json).unwrap()).expect_err(title);
        writeln!(page, "## json: {title}\n{json}\n=>\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(page);
}
