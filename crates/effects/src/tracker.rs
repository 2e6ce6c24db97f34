//! Trackers: somebody else's systems where work comes from and its status goes to.
//!
//! A kind of tracker is one file that implements [`Tracker`] and one line in [`TRACKERS`]; settings, flags and texts
//! follow from its [`TrackerKind`]. Set up by the operator, each under the name of its kind. What an item is called is read
//! strictly: it becomes part of a path.

use std::fmt;

use async_trait::async_trait;
use giga_domain::{EffectOutcome, ProductId, Stage, Timestamp};
use giga_ports::EffectsError;
use giga_ports::effects::{ItemName, TrackerItem};
use serde::Deserialize;
use serde_json::Value;

use crate::github::GitHub;
use crate::http::Http;

/// Every kind of tracker that can be set up.
pub static TRACKERS: &[TrackerKind] = &[GitHub::KIND];

/// Somebody else's system with items that become jobs and get their status. It keeps nothing.
#[async_trait]
pub(crate) trait Tracker: Send + Sync {
    /// How the item is called, without a look at it.
    fn named(&self, item: &str) -> Result<ItemName, EffectsError>;

    /// What marks what we write there: whoever shares the key knows what any of them wrote. Without one, only what was
    /// written with the same token is known.
    fn mark_with(&mut self, key: [u8; 32]);

    async fn item(&self, item: &str, now: Timestamp) -> Result<TrackerItem, EffectsError>;

    /// Updates the item with its job's status. The same one may come again, and an older one late.
    async fn echo(&self, item: &str, status: &Status, now: Timestamp) -> EffectOutcome;
}

/// Sets one up; the text says what is wrong with the settings.
pub(crate) type OpenTracker = fn(&TrackerConfig, Http) -> Result<Box<dyn Tracker>, String>;

/// What is known of a kind of tracker before one is set up.
pub struct TrackerKind {
    /// What jobs, settings and commands call it, such as `github`.
    pub name: &'static str,
    /// What people call it.
    pub display_name: &'static str,
    pub default_api: &'static str,
    pub settings: TrackerSettings,
    pub(crate) open: OpenTracker,
}

impl PartialEq for TrackerKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TrackerKind {}

impl fmt::Debug for TrackerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TrackerKind").field(&self.name).finish()
    }
}

/// The settings of one kind. Each as it stands in giga.toml, as a flag, and as a variable.
#[derive(Debug)]
pub struct TrackerSettings {
    pub api: SettingNames,
    pub token_file: SettingNames,
    pub repos: SettingNames,
    /// The token itself comes only from this variable.
    pub token_variable: &'static str,
    /// What the token is called where settings are listed.
    pub token: &'static str,
}

pub type SettingNames = (&'static str, &'static str, &'static str);

/// Made from the name of the kind, in lower and in upper case.
macro_rules! settings {
    ($lower:literal, $upper:literal) => {
        $crate::tracker::TrackerSettings {
            api: (concat!($lower, "-api"), concat!("--", $lower, "-api"), concat!("GIGA_", $upper, "_API")),
            token_file: (
                concat!($lower, "-token-file"),
                concat!("--", $lower, "-token-file"),
                concat!("GIGA_", $upper, "_TOKEN_FILE"),
            ),
            repos: (
                concat!($lower, "-repos"),
                concat!("--", $lower, "-repos"),
                concat!("GIGA_", $upper, "_REPOS"),
            ),
            token_variable: concat!("GIGA_", $upper, "_TOKEN"),
            token: concat!($lower, "-token"),
        }
    };
}

pub(crate) use settings;

/// A tracker as the operator sets it up.
#[derive(Clone)]
pub struct TrackerConfig {
    pub kind: &'static TrackerKind,
    /// Where its API is.
    pub api: String,
    pub token: TrackerToken,
    /// Close the item when its job ships.
    pub close_on_ship: bool,
    /// Which product may use which repository with the token; empty where none is configured.
    pub repos: Vec<RepoAccess>,
}

/// A repository, or all of an owner, for one product or for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoAccess {
    product: Option<ProductId>,
    owner: String,
    /// `None`: all of them.
    repo: Option<String>,
}

impl RepoAccess {
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
        if !is_owner(owner) || !(repo == "*" || repo.split('/').all(is_repo)) {
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

/// Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct TrackerToken(pub String);

impl fmt::Debug for TrackerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrackerToken(…)")
    }
}

impl fmt::Debug for TrackerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackerConfig")
            .field("kind", &self.kind.name)
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

/// A job's status, as its item gets it.
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

pub(crate) fn is_owner(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=39).contains(&text.len()) && text.chars().all(legal) && !text.starts_with('-')
}

pub(crate) fn is_repo(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=100).contains(&text.len()) && text.chars().all(legal) && !matches!(text, "." | "..")
}

pub(crate) fn no_such(kind: &TrackerKind, item: &impl ToString, reason: impl Into<String>) -> EffectsError {
    EffectsError::NoSuchItem {
        tracker: kind.display_name.to_owned(),
        item: item.to_string(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_who_may_use_what() {
        let (demo, other): (ProductId, ProductId) = ("demo".parse().unwrap(), "other".parse().unwrap());
        let may = |rule: &str, repo: &str, product: &ProductId| {
            RepoAccess::read(rule).unwrap().allows(repo, product)
        };
        assert!(may("Acme/App", "acme/app", &demo) && may("acme/*", "acme/tools", &other));
        assert!(!may("acme/app", "acme/app2", &demo) && !may("acme/*", "acme2/app", &demo));
        assert!(may("demo=acme/*", "acme/app", &demo) && !may("demo=acme/*", "acme/app", &other));
        for wrong in
            ["", "*", "*/*", "acme", "acme/", "/app", "=acme/app", "De Mo=acme/app", "acme/app//x", "acme/a*"]
        {
            assert!(RepoAccess::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let config = TrackerConfig {
            kind: &TRACKERS[0],
            api: "https://api.github.com".to_owned(),
            token: TrackerToken("ghp_secret".to_owned()),
            close_on_ship: false,
            repos: Vec::new(),
        };
        assert!(!format!("{config:?} {:?}", config.token).contains("ghp_secret"));
    }
}
