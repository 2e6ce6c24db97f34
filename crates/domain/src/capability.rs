//! Capability tokens such as `os:linux`, `engine:claude`, `has:git` or a bare `gpu`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::IdError;
use crate::repo::is_repo_name;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Capability(Arc<str>);

impl Capability {
    /// The engine of a job that leaves the choice to the factory. One that has any engine but the shell has this, too.
    pub const ANY_ENGINE: &str = "any";
    /// To work on several repositories in one folder; factories of before could not.
    pub const SEVERAL_REPOS: &str = "has:several-repos";
    /// To ask for the secrets of a job and keep them out of what leaves; factories of before could not.
    pub const SECRETS: &str = "has:secrets";

    /// To choose among several engines, and to pass a model on; factories of before could not.
    pub const ENGINE_CHOICE: &str = "has:engine-choice";

    /// Jobs run in a sandbox.
    pub const SANDBOX: &str = "sandbox:bwrap";
    /// Jobs reach what the factory lists at most, be that nothing.
    pub const NETWORK_CLOSED: &str = "network:closed";
    /// Jobs reach nothing but the coordinator and what their engine cannot do without.
    pub const NETWORK_NONE: &str = "network:none";

    /// Whether it says how far jobs are shut in, rather than what they find.
    pub fn shuts_in(&self) -> bool {
        ["sandbox:", "network:"].iter().any(|class| self.0.starts_with(class))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `repo:<name>`: what a factory advertises for a repository that it has at hand.
    pub fn repo(name: &str) -> Result<Self, IdError> {
        format!("repo:{name}").parse()
    }

    /// The engine, where it is one.
    pub fn as_engine(&self) -> Option<&str> {
        self.0.strip_prefix("engine:")
    }

    /// `engine:<name>`: what a job with that engine needs.
    pub fn engine(name: &str) -> Result<Self, IdError> {
        format!("engine:{name}").parse()
    }
}

impl FromStr for Capability {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
        };
        let legal = match text.split_once(':') {
            Some(("repo", name)) if is_repo_name(name) => true,
            Some((class, value)) => part(class) && part(value),
            None => part(text),
        };
        if legal && text.len() <= 100 {
            Ok(Self(text.into()))
        } else {
            Err(IdError::new(
                "capability",
                text,
                "a capability is `word` or `class:value` of letters, digits, `.`, `_`, `-` and `+`, at most 100 characters, such as os:linux",
            ))
        }
    }
}

impl TryFrom<String> for Capability {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Capability> for String {
    fn from(capability: Capability) -> String {
        capability.0.to_string()
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sorted set, so that equal sets print, hash and compare alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CapabilitySet(BTreeSet<Capability>);

impl CapabilitySet {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses each token; the first bad one is the error.
    pub fn parse<S: AsRef<str>>(tokens: impl IntoIterator<Item = S>) -> Result<Self, IdError> {
        tokens.into_iter().map(|t| t.as_ref().parse()).collect::<Result<_, _>>().map(Self)
    }

    pub fn insert(&mut self, capability: Capability) -> bool {
        self.0.insert(capability)
    }

    /// For what may not be a capability after all.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Capability>) {
        self.0.extend(more);
    }

    pub fn contains(&self, capability: &Capability) -> bool {
        self.0.contains(capability)
    }

    pub fn is_subset(&self, of: &Self) -> bool {
        self.0.is_subset(&of.0)
    }

    /// What is asked for here and missing there, in order.
    pub fn missing_from<'a>(&'a self, there: &'a Self) -> impl Iterator<Item = &'a Capability> {
        self.0.difference(&there.0)
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Capability> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in ["os:linux", "gpu", "node:20", "repo:my_app-2.0", "repo:team/my app", "c++"] {
            assert!(good.parse::<Capability>().is_ok(), "{good}");
        }
        for bad in [
            "",
            ":",
            "os:",
            ":linux",
            "a:b:c",
            "os:lin ux",
            "os:a/b",
            "repo:",
            "repo:-x",
            "repo:../x",
            "-x",
            "os:-x",
            "a\nb",
            "../x",
        ] {
            assert!(bad.parse::<Capability>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn missing_names_exactly_what_is_missing() {
        let wants = CapabilitySet::parse(["os:linux", "build"]).unwrap();
        let has = CapabilitySet::parse(["engine:shell", "os:linux"]).unwrap();
        assert!(!wants.is_subset(&has));
        assert_eq!(wants.missing_from(&has).map(Capability::as_str).collect::<Vec<_>>(), ["build"]);
    }
}
