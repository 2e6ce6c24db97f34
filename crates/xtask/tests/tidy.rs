//! The style rules that can be checked: which crate may know which, how long a file may grow, what a test may not do.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources() -> Vec<(String, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root.join("crates"), &mut found);
    found.sort();
    assert!(found.len() > 50, "the walk found the tree");
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    found.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// `crate -> [ours that it depends on outside of tests]`, read from the manifests.
fn edges() -> BTreeMap<String, Vec<String>> {
    let mut edges = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("\n[").find(|s| s.starts_with("dependencies]")).unwrap_or_default();
        let ours = dependencies.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        let mut ours: Vec<String> =
            ours.filter_map(|name| name.strip_prefix("giga-")).map(str::to_owned).collect();
        ours.sort();
        edges.insert(entry.file_name().into_string().unwrap(), ours);
    }
    edges
}

#[test]
fn arrows_point_inward() {
    let allowed: &[(&str, &[&str])] = &[
        ("domain", &[]),
        ("scheduler", &["domain"]),
        ("ports", &["domain"]),
        ("postgres", &[]),
        ("store", &["domain", "ports", "postgres"]),
        ("blobs", &["domain", "ports"]),
        ("drivers", &["domain", "ports"]),
        ("effects", &["domain", "ports"]),
        ("oidc", &["domain"]),
        ("coordinator", &["domain", "ports", "scheduler"]),
        ("broker", &["domain", "ports", "postgres"]),
        ("proto", &[]),
        ("api", &["domain"]),
        ("web", &[]),
        ("mcp", &["api", "domain"]),
        ("server", &["api", "coordinator", "domain", "mcp", "oidc", "ports", "proto", "scheduler", "web"]),
        ("tui", &["api", "domain"]),
        ("factory", &["api", "broker", "domain", "ports", "proto"]),
        ("worker", &["proto"]),
        ("bench", &["api", "domain", "factory", "proto", "worker"]),
        (
            "giga",
            &[
                "api",
                "blobs",
                "broker",
                "coordinator",
                "domain",
                "drivers",
                "effects",
                "factory",
                "mcp",
                "oidc",
                "ports",
                "server",
                "store",
                "tui",
            ],
        ),
        ("sim", &["broker", "coordinator", "domain", "ports", "scheduler", "store"]),
        ("scripted-model", &[]),
        ("engine-matrix", &["api", "domain", "factory", "scripted-model"]),
        ("testkit", &["domain", "ports"]),
        ("xtask", &[]),
    ];
    let edges = edges();
    assert_eq!(
        edges.keys().map(String::as_str).collect::<Vec<_>>(),
        {
            let mut known: Vec<_> = allowed.iter().map(|(name, _)| *name).collect();
            known.sort_unstable();
            known
        },
        "a new crate belongs into this table and into docs/architecture.md"
    );
    for (name, may) in allowed {
        for dependency in &edges[*name] {
            assert!(may.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn drivers_stay_where_they_belong() {
    let homes: &[(&str, &[&str])] = &[
        ("rusqlite", &["crates/store"]),
        (
            "tokio_postgres",
            &[
                "crates/postgres",
                "crates/store",
                "crates/broker",
                "crates/testkit",
                "crates/giga/tests",
                "crates/bench",
            ],
        ),
        ("async_nats", &["crates/broker", "crates/testkit"]),
        ("fe2o3_amqp", &["crates/broker"]),
        (
            "tonic",
            &[
                "crates/proto",
                "crates/server",
                "crates/worker",
                "crates/factory",
                "crates/giga/tests",
                "crates/bench",
            ],
        ),
        (
            "axum",
            &[
                "crates/server",
                "crates/scripted-model",
                "crates/drivers/tests",
                "crates/effects/tests",
                "crates/factory/tests",
                "crates/giga/tests",
            ],
        ),
        (
            "reqwest",
            &[
                "crates/api",
                "crates/broker",
                "crates/drivers",
                "crates/effects",
                "crates/factory",
                "crates/oidc",
                "crates/scripted-model",
                "crates/server/tests",
                "crates/giga/tests",
                "crates/blobs/tests",
            ],
        ),
        ("object_store", &["crates/blobs"]),
        (
            "std::time::SystemTime",
            &["crates/giga", "crates/bench", "crates/factory", "crates/store/benches", "crates/broker/tests"],
        ),
    ];
    for (path, text) in
        sources().iter().filter(|(path, _)| !path.ends_with("purity.rs") && !path.contains("xtask"))
    {
        for (driver, homes) in homes {
            let used = text
                .lines()
                .any(|line| !line.trim_start().starts_with("//") && line.contains(&format!("{driver}::")));
            assert!(!used || homes.iter().any(|home| path.starts_with(home)), "{path} knows {driver}");
        }
    }
}

#[test]
fn files_stay_short_enough_to_read() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, n)| *n > 800)
        .collect();
    assert!(long.is_empty(), "split these: {long:?}");
}

#[test]
fn modules_say_what_they_are() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !path.contains("/snapshots/") && !text.trim_start().starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert!(silent.is_empty(), "start these with a few lines of why: {silent:?}");
}

#[test]
fn no_test_is_switched_off_and_none_waits_for_time() {
    let ignored = concat!("#[ign", "ore");
    let sleeps = concat!("thread::sl", "eep(");
    for (path, text) in sources() {
        assert!(!text.contains(ignored), "{path} switches a test off");
        assert!(!text.contains(sleeps), "{path} sleeps; wait on a signal instead");
    }
}

#[test]
fn every_direct_dependency_has_its_reason_and_is_used() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table = manifest.split("[workspace.dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let users: Vec<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .flatten()
        .map(|entry| std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap())
        .collect();
    for line in table.lines().filter(|line| line.contains('=') && !line.trim_start().starts_with('#')) {
        let name = line.split(['=', ' ']).next().unwrap();
        let is_used = |manifest: &String| {
            manifest
                .lines()
                .any(|line| line.starts_with(&format!("{name}.")) || line.starts_with(&format!("{name} =")))
        };
        assert!(
            name.starts_with("giga-") || users.iter().any(is_used),
            "{name} is listed but no crate uses it"
        );
        assert!(name.starts_with("giga-") || line.contains(" # "), "say in a line why {name} is there");
    }
}

/// Every case is run by being written (`testkit/build.rs`), so a call that is in one is tested.
#[test]
fn the_suite_calls_the_whole_port() {
    let all = sources();
    let under = |folder: &'static str| all.iter().filter(move |(path, _)| path.starts_with(folder));
    let suite: String = under("crates/testkit/src/store_suite/").map(|(_, text)| text.as_str()).collect();
    let mut calls = 0;
    for (path, text) in under("crates/ports/src/store/") {
        let mut in_list = false;
        for line in text.lines().map(str::trim) {
            let begins = line.starts_with("writes ") || line.starts_with("reads ");
            in_list = (in_list || begins && line.ends_with('{')) && line != "}";
            let Some((name, _)) = line.split_once('(').filter(|_| in_list && line.ends_with(';')) else {
                continue;
            };
            calls += 1;
            assert!(suite.contains(&format!(".{name}(")), "{path}: no case of the suite calls `{name}`");
        }
    }
    assert!(calls > 60, "the lists of the port were found");
}
