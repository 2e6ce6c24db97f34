//! Trackers: where work comes from, and is told about, in somebody else's system.
//!
//! Set up by the operator, each under a name. What an item is called is read strictly: it becomes part of a path.

use std::fmt;

use giga_domain::{ProductId, Stage};
use giga_ports::EffectsError;
use giga_ports::effects::TrackerItem;
use serde::Deserialize;
use serde_json::Value;

/// A tracker as the operator sets it up.
#[derive(Clone)]
pub struct TrackerConfig {
    /// What jobs and people call it, such as `github`.
    pub name: String,
    pub kind: TrackerKind,
    /// Where its API is.
    pub api: String,
    pub token: Secret,
    /// Close the item when its job ships.
    pub close_on_ship: bool,
    /// Which product may use which repository with the token; empty where nothing is said about any.
    pub repos: Vec<Grant>,
}

/// A repository, or all of an owner, for one product or for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    product: Option<ProductId>,
    owner: String,
    /// `None`: all of them.
    repo: Option<String>,
}

impl Grant {
    /// `acme/app`, `acme/*`, `demo=acme/app`.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            let given: String = text.chars().take(80).flat_map(char::escape_default).collect();
            format!("`{given}` is no repository: it is written as owner/repo, owner/* or PRODUCT=owner/repo")
        };
        let (product, place) = match text.split_once('=') {
            Some((product, place)) => (Some(product.parse().map_err(|_| wrong())?), place),
            None => (None, text),
        };
        let (owner, repo) = place.split_once('/').ok_or_else(wrong)?;
        if !is_owner(owner) || !(repo == "*" || is_repo(repo)) {
            return Err(wrong());
        }
        let repo = (repo != "*").then(|| repo.to_ascii_lowercase());
        Ok(Self { product, owner: owner.to_ascii_lowercase(), repo })
    }

    pub(crate) fn allows(&self, repository: &str, product: &ProductId) -> bool {
        let Some((owner, repo)) = repository.split_once('/') else { return false };
        self.product.as_ref().is_none_or(|only| only == product)
            && self.owner.eq_ignore_ascii_case(owner)
            && self.repo.as_ref().is_none_or(|only| only.eq_ignore_ascii_case(repo))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackerKind {
    GitHub,
}

/// Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Debug for TrackerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackerConfig")
            .field("name", &self.name)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

/// Where a job stands, as its item is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) job_id: String,
    pub(crate) name: String,
    #[serde(deserialize_with = "stage")]
    pub(crate) to: Stage,
    /// The place in the job's history: a newer one is never overwritten by an older.
    pub(crate) seq: u64,
    pub(crate) at: String,
    #[serde(default)]
    pub(crate) cause: String,
}

fn stage<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Stage, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl Status {
    pub(crate) fn read(payload: &Value) -> Result<Self, String> {
        serde_json::from_value(payload.clone())
            .map_err(|error| format!("its payload makes no sense: {error}"))
    }
}

/// `owner/repo#12`, in lower case: GitHub does not tell cases apart, so there is one spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IssueRef {
    pub(crate) owner: String,
    pub(crate) repo: String,
    pub(crate) number: u64,
}

impl IssueRef {
    /// `owner/repo#12`, or the address of the issue on `web`, such as `https://github.com`.
    pub(crate) fn read(text: &str, web: &str) -> Result<Self, EffectsError> {
        let wrong = || {
            let given: String = text.chars().take(80).flat_map(char::escape_default).collect();
            let rule = format!("an issue is written as owner/repo#12 or {web}/owner/repo/issues/12");
            EffectsError::Malformed(format!("`{given}` is no issue: {rule}"))
        };
        let on_web = text.strip_prefix(web).and_then(|rest| rest.strip_prefix('/'));
        let (owner, repo, number) = if let Some(path) = on_web {
            let parts: Vec<&str> = path.split('/').collect();
            let [owner, repo, "issues", number] = parts[..] else { return Err(wrong()) };
            (owner, repo, number)
        } else {
            let (repository, number) = text.split_once('#').ok_or_else(wrong)?;
            let (owner, repo) = repository.split_once('/').ok_or_else(wrong)?;
            (owner, repo, number)
        };
        if !is_owner(owner) || !is_repo(repo) || !is_number(number) {
            return Err(wrong());
        }
        Ok(Self {
            owner: owner.to_ascii_lowercase(),
            repo: repo.to_ascii_lowercase(),
            number: number.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for IssueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.owner, self.repo, self.number)
    }
}

fn is_owner(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=39).contains(&text.len()) && text.chars().all(legal) && !text.starts_with('-')
}

fn is_repo(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=100).contains(&text.len()) && text.chars().all(legal) && !matches!(text, "." | "..")
}

fn is_number(text: &str) -> bool {
    (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0')
}

pub(crate) fn no_such(tracker: &str, item: &impl ToString, reason: impl Into<String>) -> EffectsError {
    EffectsError::NoSuchItem { tracker: tracker.to_owned(), item: item.to_string(), reason: reason.into() }
}

/// What an API says about an issue, as far as it is needed here.
#[derive(Debug, Deserialize)]
pub(crate) struct Issue {
    pub(crate) number: u64,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) labels: Vec<Label>,
    /// Pull requests are issues too, for this API.
    #[serde(default)]
    pub(crate) pull_request: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Label {
    pub(crate) name: String,
}

impl Issue {
    pub(crate) fn into_item(self, issue: &IssueRef, web: &str) -> TrackerItem {
        TrackerItem {
            item: issue.to_string(),
            url: format!("{web}/{}/{}/issues/{}", issue.owner, issue.repo, issue.number),
            title: self.title,
            body: self.body.unwrap_or_default(),
            labels: self.labels.into_iter().map(|label| label.name).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "https://github.com";

    #[test]
    fn an_issue_has_one_spelling() {
        for text in ["acme/app#12", "Acme/App#12", "https://github.com/acme/app/issues/12"] {
            assert_eq!(IssueRef::read(text, WEB).unwrap().to_string(), "acme/app#12", "{text}");
        }
        assert!(IssueRef::read("a/.github#1", WEB).is_ok());
    }

    #[test]
    fn nothing_else_is_an_issue() {
        for text in [
            "",
            "acme",
            "acme/app",
            "acme#1",
            "acme/app#",
            "acme/app#0",
            "acme/app#012",
            "acme/app#-1",
            "acme/app#1x",
            "acme/app#1#2",
            "acme/../app#1",
            "acme/..#1",
            "../../user#1",
            "acme/app/x#1",
            "-a/app#1",
            "a b/app#1",
            "acme/app?x=1#1",
            "acme/app%2f#1",
            "acme/app\n#1",
            "http://github.com/acme/app/issues/1",
            "https://github.com/acme/app/pull/1",
            "https://github.com/acme/app/issues/1/",
            "https://github.com/acme/app/issues/1?x",
            "https://github.com.evil.org/acme/app/issues/1",
            "https://evil.org/acme/app/issues/1",
            "acme/app#9999999999999",
            "https://github.com//acme/app/issues/1",
            "https://github.com/acme/app/issues/1#issuecomment-2",
        ] {
            assert!(IssueRef::read(text, WEB).is_err(), "{text:?}");
        }
        assert!(IssueRef::read(&format!("{}/app#1", "a".repeat(40)), WEB).is_err());
        assert!(IssueRef::read(&format!("a/{}#1", "a".repeat(101)), WEB).is_err());
    }

    #[test]
    fn a_grant_says_who_may_use_what() {
        let (demo, other): (ProductId, ProductId) = ("demo".parse().unwrap(), "other".parse().unwrap());
        let may =
            |grant: &str, repo: &str, product: &ProductId| Grant::read(grant).unwrap().allows(repo, product);
        assert!(may("Acme/App", "acme/app", &demo) && may("acme/*", "acme/tools", &other));
        assert!(!may("acme/app", "acme/app2", &demo) && !may("acme/*", "acme2/app", &demo));
        assert!(may("demo=acme/*", "acme/app", &demo) && !may("demo=acme/*", "acme/app", &other));
        for wrong in
            ["", "*", "*/*", "acme", "acme/", "/app", "=acme/app", "De Mo=acme/app", "acme/app/x", "acme/a*"]
        {
            assert!(Grant::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let config = TrackerConfig {
            name: "github".to_owned(),
            kind: TrackerKind::GitHub,
            api: "https://api.github.com".to_owned(),
            token: Secret("ghp_secret".to_owned()),
            close_on_ship: false,
            repos: Vec::new(),
        };
        assert!(!format!("{config:?} {:?}", config.token).contains("ghp_secret"));
    }
}
