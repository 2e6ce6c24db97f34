//! The keys of a manifest, what each may hold, and what stands in for it when it is left out.
//!
//! Never looks outside the manifest: whether a repository, profile or dependency exists is for others to say.

use std::collections::HashSet;

use super::error::{ManifestError, Problem, Problems, quoted};
use super::reader::{Field, Section};
use super::tree::Node;
use super::{Dep, Manifest, engine, grammar, secrets};
use crate::engine::SHELL;
use crate::id::IdError;
use crate::job::{
    BudgetCaps, Concurrency, DepsMode, FailurePolicy, JobKind, MergeSettings, RetryPolicy, ReviewGate,
    ShipMode,
};
use crate::repo::{folder_name, is_repo_name};
use crate::{AskPolicy, CapabilitySet, EngineChoice, FailReason, JobId, Priority, limits};

/// Idempotency keys that begin so are made from the items of trackers, and by nobody else.
pub const TRACKER_KEY: &str = "tracker:";

/// Every key that a manifest may have.
pub const KEYS: &[&str] = &[
    "name",
    "product",
    "repo",
    "repos",
    "engine",
    "model",
    "script",
    "persona",
    "capabilities",
    "priority",
    "kind",
    "deps",
    "depsMode",
    "onFailure",
    "onConflict",
    "base",
    "target",
    "merge",
    "budget",
    "retry",
    "verify",
    "secrets",
    "review",
    "ship",
    "permissions",
    "ask",
    "concurrency",
    "idempotencyKey",
    "runAt",
];

const MOST_TOKENS: u64 = 1_000_000_000_000;
const MOST_RETRIES: u64 = 100;
const MOST_AT_ONCE: u64 = 10_000;
const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
/// The longest a run may take.
const MOST_WALL_MS: u64 = 30 * 24 * HOUR_MS;

/// Reads the whole tree; `before` is what was already found wrong with the document.
pub(super) fn read(
    root: &Node,
    before: impl IntoIterator<Item = Problem>,
) -> Result<Manifest, ManifestError> {
    let mut problems = Problems::default();
    for problem in before {
        problems.add(&problem.field, problem.line, problem.message);
    }
    let manifest = manifest(root, &mut problems);
    match problems.into_error() {
        Some(error) => Err(error),
        None => Ok(manifest.expect("a manifest that cannot be made is noted as a problem")),
    }
}

/// `None` only with a problem noted. A refused optional field leaves its default behind, which nobody will see.
fn manifest(root: &Node, problems: &mut Problems) -> Option<Manifest> {
    let p = problems;
    let top = Section::open("", root, KEYS, p)?;
    let name = top.require("name", "name: fix-greeting", p).and_then(|f| f.printable(limits::NAME_CHARS, p));
    let engine = engine::read(&top, p);
    let script = top.get("script").and_then(|f| script(&f, &engine, p));
    let persona = top.get("persona").and_then(|f| {
        let persona = f.text(grammar::PERSONA_RULE, p).map(grammar::parse_persona)?;
        if persona.is_none() {
            f.expected(grammar::PERSONA_RULE, p);
        }
        persona
    });
    let product = top.get("product").and_then(|f| parsed(&f, "a product id", p));
    let repo = top.get("repo").and_then(|f| repo(&f, p));
    let mut repos = top.get("repos").map(|f| repos(&f, repo.is_some(), p)).unwrap_or_default().into_iter();
    let repo = repo.or_else(|| repos.next());
    let capabilities = top.get("capabilities").map(|f| capabilities(&f, p)).unwrap_or_default();
    let priority = top.get("priority").and_then(|f| f.word(p)).unwrap_or_default();
    let kind = top.get("kind").and_then(|f| f.word(p)).unwrap_or_default();
    let deps = top.get("deps").map(|f| deps(&f, name.as_deref(), p)).unwrap_or_default();
    let deps_mode = top.get("depsMode").and_then(|f| f.word(p)).unwrap_or_default();
    let on_failure = top.get("onFailure").and_then(|f| on_failure(&f, kind, p)).unwrap_or_default();
    let on_conflict = top.get("onConflict").and_then(|f| f.word(p)).unwrap_or_default();
    let base = top.get("base").and_then(|f| branch(&f, p));
    let target = top.get("target").and_then(|f| branch(&f, p));
    let merge = top.get("merge").and_then(|f| merge(&f, p)).unwrap_or_default();
    let budget = top.get("budget").and_then(|f| budget(&f, p)).unwrap_or_default();
    let (retry, retry_on) = top.get("retry").and_then(|f| retry(&f, p)).unwrap_or_default();
    let verify = top.get("verify").map(|f| verify(&f, p)).unwrap_or_default();
    let secrets = top.get("secrets").map(|f| secrets::read(&f, &engine, p)).unwrap_or_default();
    let review = top.get("review").and_then(|f| review(&f, p)).unwrap_or_default();
    // A composite has nothing of its own to ship: its children have been shipped, each by its own gate.
    let ship_unsaid = if kind == JobKind::Composite { ShipMode::Auto } else { ShipMode::default() };
    let ship = top.get("ship").and_then(|f| f.word(p)).unwrap_or(ship_unsaid);
    let permissions = top.get("permissions").and_then(|f| f.word(p));
    let ask = top.get("ask").and_then(|f| ask(&f, p)).unwrap_or_default();
    let concurrency = top.get("concurrency").and_then(|f| concurrency(&f, p));
    let idempotency_key =
        top.get("idempotencyKey").and_then(|f| f.printable(limits::IDEMPOTENCY_KEY_CHARS, p));
    let run_at = top.get("runAt").and_then(|f| parsed(&f, "a time", p));
    let manifest = Manifest {
        name: name?,
        product,
        repo,
        more_repos: repos.collect(),
        engine,
        script,
        persona,
        capabilities,
        priority,
        kind,
        deps,
        deps_mode,
        on_failure,
        on_conflict,
        base,
        target,
        merge,
        budget,
        retry,
        retry_on,
        verify,
        review,
        ship,
        permissions,
        ask,
        concurrency,
        idempotency_key,
        secrets,
        run_at,
        written: None,
    };
    if kind == JobKind::Composite {
        refuse_what_runs(&manifest, &top, p);
    } else if manifest.repo.is_none() {
        for field in ["base", "target"].into_iter().filter_map(|key| top.get(key)) {
            field.refuse("is a branch of `repo`, which is not set; name the repository, or leave it out", p);
        }
    }
    Some(manifest)
}

/// A composite groups its children. What would be read and then mean nothing is refused; its default, written out,
/// is what is done anyway.
fn refuse_what_runs(manifest: &Manifest, top: &Section<'_>, p: &mut Problems) {
    let refused = [
        ("repo", manifest.repo.is_some(), "it has no result of its own to merge"),
        ("repos", manifest.repo.is_some(), "it has no result of its own to merge"),
        ("base", manifest.base.is_some(), "it has no result of its own to merge"),
        ("target", manifest.target.is_some(), "it has no result of its own to merge"),
        ("merge", !manifest.merge.is_unsaid(), "it has no result of its own to merge"),
        ("engine", !manifest.engine.is_any(), "it runs nothing itself"),
        ("model", true, "it runs nothing itself"),
        ("script", manifest.script.is_some(), "it runs nothing itself"),
        ("persona", manifest.persona.is_some(), "it runs nothing itself"),
        ("capabilities", !manifest.capabilities.is_empty(), "it is never placed on a factory"),
        ("priority", manifest.priority != Priority::default(), "it waits for no place on a factory"),
        ("budget", manifest.budget != BudgetCaps::default(), "it spends nothing itself"),
        (
            "retry",
            manifest.retry != RetryPolicy::default() || !manifest.retry_on.is_empty(),
            "it has no attempts of its own",
        ),
        ("verify", !manifest.verify.is_empty(), "it has no result of its own to check"),
        ("secrets", !manifest.secrets.is_empty(), "it runs nothing itself"),
        ("permissions", manifest.permissions.is_some(), "it runs nothing itself"),
        ("ask", !manifest.ask.is_unsaid(), "it runs nothing itself"),
        ("concurrency", manifest.concurrency.is_some(), "it is never held"),
        ("runAt", manifest.run_at.is_some(), "it begins when its first child does"),
    ];
    for (key, _, why) in refused.into_iter().filter(|(_, is_set, _)| *is_set) {
        if let Some(field) = top.get(key) {
            field.refuse(format!("belongs to its children, not to `kind: composite`: {why}"), p);
        }
    }
    if let Some(field) = top.get("depsMode").filter(|_| manifest.deps_mode == DepsMode::Any) {
        let message = "must be all for `kind: composite`, whose children wait for all of its deps; \
                       put depsMode: any on the children that need it";
        field.refuse(message, p);
    }
}

fn repo(field: &Field<'_>, p: &mut Problems) -> Option<String> {
    let text = field.text(grammar::REPO_RULE, p)?;
    if !grammar::is_repo(text) {
        field.expected(grammar::REPO_RULE, p);
    }
    Some(text.to_owned())
}

/// Several in one work folder, each in a folder of its own.
fn repos(field: &Field<'_>, has_repo: bool, p: &mut Problems) -> Vec<String> {
    if has_repo {
        field.refuse("stands beside `repo`; put all of them into repos, and leave repo out", p);
    }
    let mut repos: Vec<String> = Vec::new();
    for item in field.items("repositories", limits::JOB_REPOS, p) {
        let Some(text) = repo(&item, p) else { continue };
        let folder = folder_name(&text);
        if !is_repo_name(folder) {
            item.refuse("must end in a name that a folder can have, such as https://host/team/app", p);
        } else if let Some(other) = repos.iter().find(|other| folder_name(other).eq_ignore_ascii_case(folder))
        {
            let message = format!(
                "would be the folder {} as {} is; name each repository once",
                quoted(folder),
                quoted(other)
            );
            item.refuse(message, p);
        }
        repos.push(text);
    }
    if repos.is_empty() {
        field.expected("a list of repositories, such as [app, lib]", p);
    }
    repos
}

fn script(field: &Field<'_>, engine: &EngineChoice, p: &mut Problems) -> Option<String> {
    if engine.single().is_none_or(|only| only.name != SHELL) {
        let engine = if engine.is_any() {
            "which is not set".to_owned()
        } else {
            format!("which is {}", quoted(&engine.to_string()))
        };
        let message = format!(
            "belongs to `engine: shell`, not to the engine of this manifest, {engine}; set engine to shell, or put the prompt into the body"
        );
        field.refuse(message, p);
    }
    field.command("the command that the shell engine runs, such as ./fix.sh", p)
}

/// A value with a grammar of its own, whose error says what would be right.
fn parsed<T>(field: &Field<'_>, what: &str, p: &mut Problems) -> Option<T>
where
    T: std::str::FromStr<Err = IdError>,
{
    match field.text(what, p)?.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            malformed(field, &error, p);
            None
        }
    }
}

fn malformed(field: &Field<'_>, error: &IdError, p: &mut Problems) {
    field.refuse(format!("is malformed: {}; it is {}", error.rule, field.node.described()), p);
}

fn capabilities(field: &Field<'_>, p: &mut Problems) -> CapabilitySet {
    let mut capabilities = CapabilitySet::new();
    for item in field.items("capabilities", limits::CAPABILITIES, p) {
        let Some(token) = item.text("a capability", p) else { continue };
        if let Err(error) = capabilities.insert_token(token) {
            malformed(&item, &error, p);
        }
    }
    capabilities
}

fn deps(field: &Field<'_>, own_name: Option<&str>, p: &mut Problems) -> Vec<Dep> {
    let mut deps = Vec::new();
    let mut seen = HashSet::new();
    for item in field.items("job ids or names", limits::DEPS, p) {
        let Some(text) = item.printable(limits::NAME_CHARS, p) else { continue };
        if own_name == Some(text.as_str()) {
            item.refuse("is the job itself; a job cannot wait for itself", p);
        }
        if !seen.insert(text.clone()) {
            item.refuse(format!("repeats {}; name each job once", quoted(&text)), p);
        }
        deps.push(text.parse::<JobId>().map_or(Dep::Name(text), Dep::Id));
    }
    deps
}

fn on_failure(field: &Field<'_>, kind: JobKind, p: &mut Problems) -> Option<FailurePolicy> {
    if kind != JobKind::Composite {
        field.refuse(
            "belongs to `kind: composite`: it says what becomes of the others when one child fails",
            p,
        );
    }
    field.word(p)
}

fn branch(field: &Field<'_>, p: &mut Problems) -> Option<String> {
    let text = field.text(grammar::BRANCH_RULE, p)?;
    if !grammar::is_branch(text) {
        field.expected(grammar::BRANCH_RULE, p);
    }
    Some(text.to_owned())
}

fn merge(field: &Field<'_>, p: &mut Problems) -> Option<MergeSettings> {
    let keys = ["strategy", "by", "feedback", "message", "author"];
    let section = Section::open(&field.path, field.node, &keys, p)?;
    let message = section.get("message").and_then(|f| {
        let text = f.command("the message of the merge, such as `{name}`", p)?;
        if let Err(why) = crate::merge_message::check(&text) {
            f.refuse(why, p);
        }
        Some(text)
    });
    let author = section.get("author").and_then(|f| {
        let text = f.printable(limits::NAME_CHARS, p)?;
        if !grammar::is_author(&text) {
            f.expected(grammar::AUTHOR_RULE, p);
        }
        Some(text)
    });
    Some(MergeSettings {
        strategy: section.get("strategy").and_then(|f| f.word(p)),
        by: section.get("by").and_then(|f| f.word(p)),
        feedback: section.get("feedback").and_then(|f| f.word(p)),
        message,
        author,
    })
}

fn budget(field: &Field<'_>, p: &mut Problems) -> Option<BudgetCaps> {
    let section = Section::open(&field.path, field.node, &["usd", "tokens", "wall"], p)?;
    Some(BudgetCaps {
        usd: section.get("usd").and_then(|f| f.dollars(p)),
        tokens: section.get("tokens").and_then(|f| f.whole_number(0..=MOST_TOKENS, p)),
        wall_ms: section.get("wall").and_then(|f| f.duration(SECOND_MS..=MOST_WALL_MS, p)),
    })
}

fn retry(field: &Field<'_>, p: &mut Problems) -> Option<(RetryPolicy, Vec<FailReason>)> {
    let section = Section::open(&field.path, field.node, &["max", "backoff", "on"], p)?;
    let default = RetryPolicy::default();
    let max = section.get("max").and_then(|f| f.whole_number(0..=MOST_RETRIES, p));
    // Longer than an hour would be cut by the policy, which doubles the wait only up to there.
    let backoff = section.get("backoff").and_then(|f| f.duration(0..=HOUR_MS, p));
    let on = section.get("on").map(|f| retry_on(&f, p)).unwrap_or_default();
    let policy = RetryPolicy {
        max: max.map_or(default.max, |max| max as u32),
        backoff_ms: backoff.unwrap_or(default.backoff_ms),
    };
    Some((policy, on))
}

fn retry_on(field: &Field<'_>, p: &mut Problems) -> Vec<FailReason> {
    let known = FailReason::RETRIED_ON_REQUEST;
    let mut on = Vec::new();
    for item in field.items("reasons", known.len(), p) {
        let Some(text) = item.text("a reason", p) else { continue };
        match known.into_iter().find(|reason| reason.as_str() == text) {
            Some(reason) if on.contains(&reason) => {
                item.refuse(format!("repeats {}; name each reason once", quoted(text)), p);
            }
            Some(reason) => on.push(reason),
            None => {
                let names = known.map(FailReason::as_str).join(", ");
                item.expected(&format!("one of {names}"), p);
            }
        }
    }
    on
}

fn verify(field: &Field<'_>, p: &mut Problems) -> Vec<String> {
    let items = field.items("commands", limits::VERIFY_COMMANDS, p);
    items.iter().filter_map(|item| item.command("a command, such as cargo test", p)).collect()
}

fn review(field: &Field<'_>, p: &mut Problems) -> Option<ReviewGate> {
    let section = Section::open(&field.path, field.node, &["quorum", "reviewers"], p)?;
    let mut reviewers: Vec<String> = Vec::new();
    let named = section.get("reviewers").map(|f| f.items("reviewers", limits::REVIEWERS, p));
    for item in named.unwrap_or_default() {
        let Some(name) = item.printable(limits::NAME_CHARS, p) else { continue };
        if reviewers.contains(&name) {
            item.refuse(format!("repeats {}; name each reviewer once", quoted(&name)), p);
        } else {
            reviewers.push(name);
        }
    }
    let quorum = section.get("quorum").and_then(|f| {
        let quorum = f.whole_number(0..=limits::REVIEWERS as u64, p)?;
        if !reviewers.is_empty() && quorum > reviewers.len() as u64 {
            let message = format!(
                "asks for {quorum} approvals, but reviewers names only {}; lower it or name more",
                reviewers.len()
            );
            f.refuse(message, p);
        }
        Some(quorum as u32)
    });
    // Whoever names reviewers wants a review.
    let quorum = quorum.unwrap_or(u32::from(!reviewers.is_empty()));
    Some(ReviewGate { quorum, reviewers })
}

fn ask(field: &Field<'_>, p: &mut Problems) -> Option<AskPolicy> {
    let section = Section::open(&field.path, field.node, &["parkAfter", "deadline"], p)?;
    let time =
        |key: &str, p: &mut Problems| section.get(key).and_then(|f| f.duration(SECOND_MS..=MOST_WALL_MS, p));
    Some(AskPolicy { park_after_ms: time("parkAfter", p), deadline_ms: time("deadline", p) })
}

fn concurrency(field: &Field<'_>, p: &mut Problems) -> Option<Concurrency> {
    let section = Section::open(&field.path, field.node, &["key", "limit"], p)?;
    let key = section.require("key", "key: repo:hello", p);
    let key = key.and_then(|f| f.printable(limits::CONCURRENCY_KEY_CHARS, p));
    let limit = section.get("limit").map_or(Some(1), |f| f.whole_number(1..=MOST_AT_ONCE, p));
    Some(Concurrency { key: key?, limit: limit? as u32 })
}
