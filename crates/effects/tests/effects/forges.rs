//! Forges: whose repository a job's is, and which of their messages are believed, about what.

use giga_effects::{Config, FORGES, ForgeConfig, RepoAccess, TrackerToken};
use giga_ports::Effects as _;
use giga_ports::effects::{HookError, HookMessage, HookSubject, RepoPlace};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::common::with;

const SECRET: &str = "it's a secret";

fn forge(name: &str, api: &str, secret: Option<&str>) -> ForgeConfig {
    ForgeConfig {
        kind: FORGES.iter().find(|kind| kind.name == name).unwrap(),
        api: api.to_owned(),
        token: TrackerToken("token".to_owned()),
        secret: secret.map(|secret| TrackerToken(secret.to_owned())),
        repos: vec![RepoAccess::read("acme/*").unwrap()],
    }
}

fn both() -> giga_effects::HttpEffects {
    let github = forge("github", "https://api.github.com", Some(SECRET));
    let gitlab = forge("gitlab", "https://git.example.org/api/v4", Some(SECRET));
    with(Config { forges: vec![github, gitlab], ..Config::default() })
}

fn place(repo: &str, origin: Option<&str>) -> RepoPlace {
    RepoPlace { repo: repo.to_owned(), origin: origin.map(str::to_owned) }
}

#[test]
fn a_repository_is_of_the_forge_that_its_address_leads_to() {
    let effects = both();
    for (repo, origin, forge, name) in [
        ("https://github.com/acme/app.git", None, "github", "acme/app"),
        ("git@github.com:acme/app.git", None, "github", "acme/app"),
        ("app", Some("github.com/acme/app.git"), "github", "acme/app"),
        ("app", Some("git.example.org:2222/group/sub/app"), "gitlab", "group/sub/app"),
    ] {
        let found = effects.forge_of(&place(repo, origin)).unwrap();
        assert_eq!((found.forge.as_str(), found.repo.as_str()), (forge, name), "{repo} {origin:?}");
    }
    for (repo, origin) in [
        ("https://elsewhere.org/acme/app", None),
        ("https://github.com/acme/app/x", None),
        ("app", Some("elsewhere.org/acme/app")),
        // The manifest says where it is, whatever a factory says.
        ("https://elsewhere.org/acme/app", Some("github.com/acme/app")),
        ("acme/app", None),
    ] {
        let error = effects.forge_of(&place(repo, origin)).unwrap_err().to_string();
        assert!(
            error.contains("there is github at github.com, gitlab at git.example.org"),
            "{repo}: {error}"
        );
    }
    let one = forge("github", "https://api.github.com", None);
    let one = with(Config { forges: vec![one], ..Config::default() });
    assert_eq!(one.forge_of(&place("acme/app", None)).unwrap().repo, "acme/app", "it can only mean one");
    assert!(one.forge_of(&place("app", None)).is_err());
    let demo = "demo".parse().unwrap();
    assert_eq!(one.allows("github", "acme/app", &demo), Some(true));
    assert_eq!(one.allows("github", "other/app", &demo), Some(false));
}

fn signature(body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    format!("sha256={}", const_hex::encode(mac.finalize().into_bytes()))
}

fn read(forge: &str, headers: &[(&str, &str)], body: &str) -> Result<Option<HookSubject>, HookError> {
    let header =
        |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    both().read_hook(forge, &HookMessage { header: &header, body: body.as_bytes() })
}

fn github(event: &str, body: &str) -> Option<HookSubject> {
    let signature = signature(body);
    read("github", &[("x-hub-signature-256", &signature), ("x-github-event", event)], body).unwrap()
}

fn subject(branch: Option<&str>, number: Option<u64>) -> HookSubject {
    HookSubject { repo: "acme/app".to_owned(), branch: branch.map(str::to_owned), number }
}

fn of_repo(more: Value) -> String {
    let mut body = more;
    body["repository"] = json!({"full_name": "acme/app"});
    body.to_string()
}

#[test]
fn every_kind_of_message_leads_to_its_request_and_all_others_to_none() {
    let branch = "giga/request/01J9ZK3V5N8Q4W2E6R7T1Y0ABC";
    let pull = of_repo(json!({"pull_request": {"number": 7, "head": {"ref": branch}}}));
    for event in ["pull_request", "pull_request_review", "pull_request_review_comment"] {
        assert_eq!(github(event, &pull), Some(subject(Some(branch), Some(7))), "{event}");
    }
    let comment = of_repo(json!({"issue": {"number": 7, "pull_request": {"url": "x"}}}));
    assert_eq!(github("issue_comment", &comment), Some(subject(None, Some(7))));
    assert_eq!(github("issue_comment", &of_repo(json!({"issue": {"number": 7}}))), None, "an issue");
    let run = of_repo(json!({"check_run": {"check_suite": {"head_branch": branch}}}));
    assert_eq!(github("check_run", &run), Some(subject(Some(branch), None)));
    let status = of_repo(json!({"branches": [{"name": "main"}, {"name": branch}]}));
    assert_eq!(github("status", &status), Some(subject(Some(branch), None)));
    let form = format!("payload={}", pull.replace('{', "%7B").replace('"', "%22"));
    assert_eq!(github("pull_request", &form), Some(subject(Some(branch), Some(7))), "as a form");
    for (event, body) in [("ping", pull.as_str()), ("push", pull.as_str()), ("pull_request", "{}")] {
        assert_eq!(github(event, body), None, "{event}");
    }
    let project = json!({"path_with_namespace": "acme/app"});
    let attributes = json!({"source_branch": branch, "iid": 7, "ref": branch});
    for (event, key, number) in [
        ("Merge Request Hook", "object_attributes", Some(7)),
        ("Note Hook", "merge_request", Some(7)),
        ("Pipeline Hook", "object_attributes", None),
    ] {
        let body = json!({"project": project, key: attributes}).to_string();
        let heard = read("gitlab", &[("x-gitlab-token", SECRET), ("x-gitlab-event", event)], &body);
        assert_eq!(heard.unwrap(), Some(subject(Some(branch), number)), "{event}");
    }
}

#[test]
fn what_is_not_signed_with_the_secret_is_not_heard() {
    let body = "{}";
    let good = signature(body);
    for headers in [
        &[][..],
        &[("x-hub-signature-256", "")],
        &[("x-hub-signature-256", "sha256=")],
        &[("x-hub-signature-256", &good["sha256=".len()..])],
        &[("x-hub-signature-256", &good[..good.len() - 2])],
        &[("x-gitlab-token", SECRET)],
    ] {
        assert_eq!(read("github", headers, body), Err(HookError::Unsigned), "{headers:?}");
    }
    assert_eq!(
        read("github", &[("x-hub-signature-256", &good)], "{ }"),
        Err(HookError::Unsigned),
        "of another"
    );
    for token in ["", "it's a secre", "it's a secret!", &good] {
        assert_eq!(read("gitlab", &[("x-gitlab-token", token)], body), Err(HookError::Unsigned), "{token}");
    }
    let junk = signature("junk");
    let malformed = read("github", &[("x-hub-signature-256", &junk)], "junk").unwrap_err();
    assert!(matches!(malformed, HookError::Malformed(_)), "{malformed}");
    assert!(matches!(read("nobody", &[], body), Err(HookError::NoSuchForge(_))));
    let unset = forge("github", "https://api.github.com", None);
    let unset = with(Config { forges: vec![unset], ..Config::default() });
    let message = HookMessage { header: &|_| None, body: b"{}" };
    let error = unset.read_hook("github", &message).unwrap_err().to_string();
    assert!(error.contains("--github-webhook-secret-file"), "{error}");
}
