//! What we depend on: licences, banned crates, and where they come from, by the rules of deny.toml; and what is known to be
//! wrong with it, where somebody can be asked.
//!
//! The rules are cargo-deny's, and so is the file. The check is ours because cargo-deny takes longer to build than the rest of
//! a test run; where it is installed, it is asked for advisories as well.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::{cargo, root, run};

const CRATES_IO: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];
const ADVISORIES: &str = "https://github.com/RustSec/advisory-db";

pub(crate) fn check() -> Result<()> {
    let rules = std::fs::read_to_string(root().join("deny.toml")).context("deny.toml cannot be read")?;
    let rules = Rules::read(&rules)?;
    let printed = cargo()
        .args(["metadata", "--format-version", "1", "--all-features", "--locked"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()?;
    let metadata: Metadata =
        serde_json::from_slice(&printed.stdout).context("cargo metadata said nothing useful")?;
    let wrong = rules.judge(&metadata)?;
    if !wrong.is_empty() {
        bail!("deny.toml does not allow this:\n  {}", wrong.join("\n  "));
    }
    eprintln!("{} crates: licences, bans and sources are as deny.toml wants them", metadata.packages.len());
    advisories()?;
    npm_audit()
}

/// The parts of deny.toml that are checked here, and those that are not and stand there for cargo-deny.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rules {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
    #[serde(rename = "graph")]
    _graph: toml::Table,
    #[serde(rename = "advisories")]
    _advisories: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    allow: BTreeSet<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    wildcards: Level,
    deny: Vec<Banned>,
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Level,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Banned {
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: Level,
    unknown_git: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Allow,
    Warn,
    Deny,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

impl Rules {
    fn read(text: &str) -> Result<Self> {
        let rules: Self =
            toml::from_str(text).context("deny.toml has something that `cargo xtask deny` does not know")?;
        for name in rules.licenses.allow.iter().chain(rules.licenses.exceptions.iter().flat_map(|e| &e.allow))
        {
            Licensee::parse(name).with_context(|| format!("deny.toml: `{name}` is no licence of SPDX"))?;
        }
        Ok(rules)
    }

    fn judge(&self, metadata: &Metadata) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for package in &metadata.packages {
            let shown = format!("{} {}", package.name, package.version);
            if let Some(banned) = self.bans.deny.iter().find(|banned| banned.name == package.name) {
                wrong.push(format!("{shown} is banned: {}", banned.reason));
            }
            wrong.extend(self.license(package)?.map(|why| format!("{shown}: {why}")));
            wrong.extend(self.source(package).map(|why| format!("{shown}: {why}")));
            let is_ours = package.source.is_none();
            let any = |d: &&Dependency| d.req == "*" && d.path.is_none();
            if is_ours && self.bans.wildcards == Level::Deny {
                let any = package.dependencies.iter().filter(any);
                wrong.extend(any.map(|d| format!("{shown} takes any version of {}", d.name)));
            }
        }
        Ok(wrong)
    }

    fn license(&self, package: &Package) -> Result<Option<String>> {
        let Some(license) = &package.license else { return Ok(Some("it names no licence".to_owned())) };
        let expression = Expression::parse_mode(license, ParseMode::LAX)
            .with_context(|| format!("{}: its licence `{license}` cannot be read", package.name))?;
        let mut allowed: BTreeMap<&str, Licensee> = BTreeMap::new();
        let excepted = self.licenses.exceptions.iter().filter(|exception| exception.name == package.name);
        for name in self.licenses.allow.iter().chain(excepted.flat_map(|exception| &exception.allow)) {
            allowed.insert(name, Licensee::parse(name)?);
        }
        let is_allowed = expression.evaluate(|asked| allowed.values().any(|ours| ours.satisfies(asked)));
        Ok((!is_allowed).then(|| format!("its licence `{license}` is not among those that are allowed")))
    }

    fn source(&self, package: &Package) -> Option<String> {
        let source = package.source.as_deref()?;
        let level =
            if source.starts_with("git+") { self.sources.unknown_git } else { self.sources.unknown_registry };
        let is_known = CRATES_IO.contains(&source);
        (!is_known && level == Level::Deny).then(|| format!("it comes from {source}"))
    }
}

/// Only where cargo-deny is installed and the advisories can be had: a check must not depend on somebody else's server.
fn advisories() -> Result<()> {
    let is_installed =
        cargo().args(["deny", "--version"]).output().is_ok_and(|output| output.status.success());
    if !is_installed {
        eprintln!("advisories: not checked, cargo-deny is not installed (cargo install cargo-deny)");
        return Ok(());
    }
    let mut ask = Command::new("git");
    ask.args(["ls-remote", "--exit-code", ADVISORIES, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    if !ask.output().is_ok_and(|output| output.status.success()) {
        eprintln!("advisories: not checked, {ADVISORIES} does not answer");
        return Ok(());
    }
    run(cargo().args(["deny", "--all-features", "check", "advisories"]).current_dir(root()))
}

/// What is known about the packages that are in the page, not about those that build it.
fn npm_audit() -> Result<()> {
    let mut npm = Command::new("npm");
    npm.args(["audit", "--omit=dev", "--json", "--fetch-retries=0", "--fetch-timeout=20000"]);
    let output = npm.current_dir(root().join("web")).stderr(Stdio::null()).output();
    let printed = output.map(|output| output.stdout).unwrap_or_default();
    match findings(&printed) {
        None => eprintln!("npm audit: not checked, the registry does not answer"),
        Some(found) if found.is_empty() => eprintln!("npm audit: nothing of high severity is known"),
        Some(found) => bail!(
            "packages of the page with known faults of high severity: {}; `npm audit fix` in web/ says what helps",
            found.join(", ")
        ),
    }
    Ok(())
}

/// The packages with faults of high severity; `None` where it is no answer.
fn findings(printed: &[u8]) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_slice(printed).ok()?;
    let found = answer.get("vulnerabilities")?.as_object()?;
    let is_high = |about: &Value| matches!(about["severity"].as_str(), Some("high" | "critical"));
    Some(found.iter().filter(|(_, about)| is_high(about)).map(|(name, _)| name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules::read(&std::fs::read_to_string(root().join("deny.toml")).unwrap()).unwrap()
    }

    fn package(name: &str, license: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            source: source.map(str::to_owned),
            dependencies: Vec::new(),
        }
    }

    fn judged(package: Package) -> Vec<String> {
        rules().judge(&Metadata { packages: vec![package] }).unwrap()
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let from = Some(CRATES_IO[0]);
        for right in ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
            assert_eq!(judged(package("a", Some(right), from)), [""; 0], "{right}");
        }
        for wrong in
            ["GPL-3.0-only", "MIT AND GPL-3.0-only", "MPL-2.0", "Apache-2.0 WITH Bison-exception-2.2"]
        {
            assert!(judged(package("a", Some(wrong), from))[0].contains("not among"), "{wrong}");
        }
        assert_eq!(judged(package("cssparser", Some("MPL-2.0"), from)), [""; 0], "it is excepted");
        assert_eq!(judged(package("a", None, from)), ["a 1.0.0: it names no licence"]);
    }

    #[test]
    fn what_is_banned_or_comes_from_elsewhere_is_named() {
        let banned = judged(package("openssl", Some("Apache-2.0"), Some(CRATES_IO[1])));
        assert_eq!(banned, ["openssl 1.0.0 is banned: TLS is rustls everywhere"]);
        for source in ["git+https://example.invalid/a#1", "registry+https://example.invalid/index"] {
            assert_eq!(
                judged(package("a", Some("MIT"), Some(source))),
                [format!("a 1.0.0: it comes from {source}")]
            );
        }
        let mut ours = package("ours", Some("MIT"), None);
        ours.dependencies.push(Dependency { name: "b".to_owned(), req: "*".to_owned(), path: None });
        assert_eq!(judged(ours), ["ours 1.0.0 takes any version of b"]);
    }

    #[test]
    fn an_audit_is_an_answer_only_where_it_is_one() {
        assert_eq!(findings(br#"{"message":"405 Method Not Allowed","error":{}}"#), None);
        assert_eq!(findings(b""), None);
        assert_eq!(findings(br#"{"vulnerabilities":{}}"#), Some(vec![]));
        let found = br#"{"vulnerabilities":{"a":{"severity":"high"},"b":{"severity":"low"}}}"#;
        assert_eq!(findings(found), Some(vec!["a".to_owned()]));
    }
}
