//! Capability tokens such as `os:linux`, `engine:claude`, `has:git` or a bare `gpu`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::IdError;
use crate::repo::is_repo_name;

mod set;

pub use set::{CapabilitySet, UnitsInUse};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Capability(Arc<str>);

impl Capability {
    const GRAMMAR: &str = "a capability is `word` or `class:value` of letters, digits, `.`, `_`, `-` and `+`, at most 100 characters, such as os:linux";

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

    /// Whether the operator of a machine may say that it has it, rather than the machine itself.
    pub fn is_for_operators(&self) -> bool {
        !self.shuts_in() && !["engine:", "repo:"].iter().any(|class| self.0.starts_with(class))
    }

    /// Whether a factory may have a number of it. Of an engine or a repository there is one or none.
    pub fn is_countable(&self) -> bool {
        const WHOLE: [&str; 7] = ["engine:", "repo:", "os:", "arch:", "has:", "sandbox:", "network:"];
        !WHOLE.iter().any(|class| self.0.starts_with(class))
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
            Err(IdError::new("capability", text, Self::GRAMMAR))
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
}
