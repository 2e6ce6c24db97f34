//! Writes the macros that run the suites: a case is run everywhere by being written.
//!
//! A case is a `pub async fn NAME(world: &…)` at the margin of a file of its suite's folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

struct Suite {
    name: &'static str,
    /// How a case gets its world.
    world: &'static str,
}

const SUITES: [Suite; 5] = [
    Suite { name: "store", world: "$crate::store_suite::World::open($fixture).await" },
    Suite { name: "topic", world: "$crate::topic_suite::TopicWorld::open($fixture).await" },
    Suite { name: "broker", world: "$crate::broker_suite::BrokerWorld::new($fixture)" },
    Suite { name: "blob", world: "$fixture" },
    Suite { name: "driver", world: "$fixture" },
];

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    for suite in &SUITES {
        let folder = root.join(format!("src/{}_suite", suite.name));
        println!("cargo::rerun-if-changed={}", folder.display());
        let written = std::fs::write(out.join(format!("{}.rs", suite.name)), suite.conformance(&folder));
        written.expect("the folder for output can be written to");
    }
}

impl Suite {
    fn conformance(&self, folder: &Path) -> String {
        let Self { name, world } = self;
        let mut modules = String::new();
        for (module, cases) in cases(folder) {
            // On one thread everything that a case asks for at once waits together for the writer: it is one batch for
            // certain, where with several threads it may be any number.
            let flavor = if module.ends_with("batches") { "current_thread" } else { "multi_thread" };
            let _ = writeln!(modules, "mod {module} {{ use super::*;");
            for case in cases {
                let _ = writeln!(
                    modules,
                    "#[tokio::test(flavor = \"{flavor}\")] async fn {case}() {{ \
                         let world = {world}; \
                         $crate::{name}_suite::{module}::{case}(&world).await; }}"
                );
            }
            modules.push_str("}\n");
        }
        format!(
            "/// One test per case for the fixture that the expression makes: `{name}_conformance!(MyFixture::new());`\n\
             #[macro_export] macro_rules! {name}_conformance {{ ($fixture:expr) => {{\n{modules}}}; }}"
        )
    }
}

/// `(module, its cases)`, by name.
fn cases(folder: &Path) -> Vec<(String, Vec<String>)> {
    let files = std::fs::read_dir(folder).expect("the folder of the suite").flatten();
    let mut found: Vec<_> = files.filter_map(|file| cases_in(&file.path())).collect();
    found.sort();
    found
}

fn cases_in(file: &Path) -> Option<(String, Vec<String>)> {
    let source = std::fs::read_to_string(file).expect("a file of the suite");
    let module = file.file_stem()?.to_str()?.to_owned();
    if module == "world" {
        return None;
    }
    let case = |line: &str| {
        let (name, arguments) = line.strip_prefix("pub async fn ")?.split_once('(')?;
        // Nothing behind the parenthesis: rustfmt broke the line. Anything else would be a case that nobody runs.
        let is_case = arguments.is_empty() || arguments.starts_with("world: &");
        assert!(is_case, "{module}::{name} takes no `world: &…`, so it is no case; make it `pub(crate)`");
        Some(name.to_owned())
    };
    let cases: Vec<_> = source.lines().filter_map(case).collect();
    (!cases.is_empty()).then_some((module, cases))
}
