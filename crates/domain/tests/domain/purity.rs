//! `domain` and `scheduler` decide from their arguments alone: no async runtime, no clock, no randomness, no I/O.
//!
//! Whoever needs one of these builds it in another crate and passes the value in. A new dependency goes on the
//! list only when it is as pure as the rest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PURE_CRATES: [&str; 2] = ["domain", "scheduler"];

const PURE_DEPENDENCIES: [&str; 15] = [
    "aho-corasick",
    "base64",
    "const-hex",
    "giga-domain",
    "hmac",
    "jiff",
    "serde",
    "serde-saphyr",
    "serde_json",
    "sha2",
    "strsim",
    "strum",
    "subtle",
    "thiserror",
    "ulid",
];

/// Words that no pure source has a use for, wherever they stand.
const FORBIDDEN_WORDS: [&str; 11] = [
    "SystemTime",
    "Instant",
    "tokio",
    "async",
    "await",
    "rand",
    "getrandom",
    "fastrand",
    "chrono",
    "println",
    "eprintln",
];
/// Modules of the standard library that reach the outside.
const FORBIDDEN_STD: [&str; 6] = ["fs", "net", "env", "process", "thread", "io"];

fn crate_dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// The names under every `dependencies` and `build-dependencies` table, those per platform included.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    fn collect(table: &toml::Table, found: &mut BTreeSet<String>) {
        for (key, value) in table {
            let Some(inner) = value.as_table() else { continue };
            match key.as_str() {
                "dependencies" | "build-dependencies" => found.extend(inner.keys().cloned()),
                "dev-dependencies" => {}
                _ => collect(inner, found),
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(&manifest.parse().expect("a TOML manifest"), &mut found);
    found
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs")
            && path.file_stem().is_some_and(|s| s != "tests")
        {
            found.push(path);
        }
    }
}

/// The source without comments and without what is compiled for tests only.
fn product_code(source: &str) -> String {
    let mut code = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            // rustfmt puts the end of the item at the indentation of its attribute.
            let indent = &line[..line.len() - line.trim_start().len()];
            lines.by_ref().find(|line| {
                line.starts_with(&format!("{indent}}}"))
                    || (line.starts_with(&format!("{indent}mod")) && line.ends_with(';'))
            });
            continue;
        }
        // A comment starts a line or follows a blank; `https://` inside a text is none.
        if !line.trim_start().starts_with("//") {
            code.push_str(line.split(" //").next().unwrap_or_default());
        }
        code.push('\n');
    }
    code
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// What the source uses and should not.
fn impurities(source: &str) -> BTreeSet<String> {
    let code = product_code(source);
    let squeezed: String = code.split_whitespace().collect();
    let mut found: BTreeSet<String> =
        words(&code).filter(|word| FORBIDDEN_WORDS.contains(word)).map(str::to_owned).collect();
    for module in FORBIDDEN_STD {
        // As a path, and inside a group such as `use std::{fmt, fs}`.
        let in_group = code.split(';').map(str::trim).filter(|s| s.starts_with("use std::{"));
        let path = format!("std::{module}");
        let is_path = squeezed.match_indices(&path).any(|(at, _)| {
            !squeezed[at + path.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        });
        if is_path || in_group.flat_map(words).any(|word| word == module) {
            found.insert(path);
        }
    }
    // Time is an argument called `now`; a call of that name reads a clock.
    if squeezed.contains("::now(") || squeezed.contains(".now(") || squeezed.contains("Ulid::new(") {
        found.insert("now()".to_owned());
    }
    found
}

#[test]
fn the_pure_crates_depend_on_pure_crates_only() {
    let allowed: BTreeSet<String> = PURE_DEPENDENCIES.iter().map(|name| (*name).to_owned()).collect();
    for name in PURE_CRATES {
        let manifest = fs::read_to_string(crate_dir(name).join("Cargo.toml")).expect("a manifest");
        let used = dependencies(&manifest);
        assert!(!used.is_empty(), "{name}: nothing was read");
        let foreign: Vec<_> = used.difference(&allowed).collect();
        assert!(foreign.is_empty(), "{name} may not depend on {foreign:?}: it has no runtime, clock or I/O");
    }
}

#[test]
fn the_pure_crates_reach_for_nothing_outside() {
    for name in PURE_CRATES {
        let mut files = Vec::new();
        rust_files(&crate_dir(name).join("src"), &mut files);
        assert!(!files.is_empty(), "{name}: nothing was read");
        for file in files {
            let source = fs::read_to_string(&file).expect("a source file");
            let found = impurities(&source);
            assert!(found.is_empty(), "{} uses {found:?}; pass the value in instead", file.display());
        }
    }
}

#[test]
fn every_way_to_add_a_runtime_is_seen() {
    for manifest in [
        "[dependencies]\ntokio.workspace = true",
        "[dependencies]\ntokio = { version = \"1\", features = [\"rt\"] }",
        "[dependencies.tokio]\nversion = \"1\"",
        "[target.'cfg(unix)'.dependencies]\ntokio = \"1\"",
        "[build-dependencies]\ntokio = \"1\"",
    ] {
        assert!(dependencies(manifest).contains("tokio"), "{manifest}");
    }
    assert!(dependencies("[dev-dependencies]\ntokio = \"1\"").is_empty(), "tests may");
}

#[test]
fn every_way_to_reach_outside_is_seen() {
    for source in [
        "use std::time::SystemTime;",
        "use std::time::{Duration, Instant};",
        "let t = Timestamp::now();",
        "let t = jiff::Timestamp :: now ();",
        "let t = clock.now();",
        "use std::fs;",
        "use std::{\n    fmt,\n    fs,\n};",
        "let x = std::env::var(\"X\");",
        "std::process::exit(1)",
        "use std::net::TcpStream;",
        "pub async fn plan() {}",
        "let id = ulid::Ulid::new();",
        "use tokio::sync::Mutex;",
        "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\nlet x = rand::random();",
        "let url = \"https://host\"; let x = std::env::var(url);",
        "#[cfg(test)]\nmod tests;\nlet x = rand::random();",
    ] {
        assert!(!impurities(source).is_empty(), "not seen: {source}");
    }
    for source in [
        "use std::time::Duration; fn at(now: Timestamp) -> Timestamp { now.plus(LEASE) }",
        "// there is no `now()` here, nor std::fs",
        "let operand = random_looking; use std::fmt;",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n",
    ] {
        assert_eq!(impurities(source), BTreeSet::new(), "{source}");
    }
}
