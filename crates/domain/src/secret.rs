//! Named secrets of a product: what is known of one without its value, and where a job wants it.
//!
//! No value ever passes through here but as sealed bytes, or inside [`Leaks`], which shows nothing.

mod leaks;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::IdError;
use crate::{Actor, ProductId, Timestamp};

pub use leaks::{Leaks, PiecewiseCheck};

const NAME_CHARS: usize = 64;

/// An environment variable in capitals, because that is how most jobs see it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(Arc<str>);

impl SecretName {
    pub const RULE: &str = "1 to 64 of A-Z, 0-9 and `_`, starting with a letter";

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let legal = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let starts_well = text.starts_with(|c: char| c.is_ascii_uppercase());
        if starts_well && text.len() <= NAME_CHARS && text.chars().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(IdError::new("secret name", text, Self::RULE))
        }
    }
}

impl TryFrom<String> for SecretName {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0.to_string()
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Everything about a secret that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub product: ProductId,
    pub name: SecretName,
    /// How often it was set since it was made: 1 at first.
    pub version: u64,
    /// Which key its value is sealed with.
    pub key_id: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Who set this version.
    pub updated_by: Actor,
}

/// A secret with its value, which only the key opens.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    pub secret: Secret,
    pub sealed: Vec<u8>,
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedSecret").field("secret", &self.secret).finish_non_exhaustive()
    }
}

/// A secret that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SecretUse {
    pub name: SecretName,
    pub place: SecretPlace,
}

/// Where what runs inside a job finds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SecretPlace {
    /// In this environment variable.
    Env(String),
    /// In this file, below the job's home.
    File(String),
}

impl SecretPlace {
    pub fn env(&self) -> Option<&str> {
        match self {
            Self::Env(name) => Some(name),
            Self::File(_) => None,
        }
    }

    pub fn file(&self) -> Option<&str> {
        match self {
            Self::File(path) => Some(path),
            Self::Env(_) => None,
        }
    }
}

/// As a manifest writes it.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

impl Serialize for SecretUse {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { name, place } = self;
        Written { name: name.as_str(), env: place.env(), file: place.file() }.serialize(serializer)
    }
}

/// In words, for refusals.
pub const VARIABLE_RULE: &str =
    "the name of an environment variable: 1 to 64 letters, digits and `_`, not starting with a digit";

pub fn is_variable(text: &str) -> bool {
    text.len() <= NAME_CHARS
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What the factory or the dynamic linker goes by: a secret there would change how a job is run, not what it knows.
pub fn is_reserved(variable: &str) -> bool {
    const PREFIXES: [&str; 5] = ["GIGA_", "LD_", "DYLD_", "XDG_", "BASH_FUNC_"];
    const NAMES: [&str; 27] = [
        "ALL_PROXY",
        "BASH_ENV",
        "CARGO_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "ENV",
        "FTP_PROXY",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "IFS",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "NO_PROXY",
        "PATH",
        "PWD",
        "RUSTUP_HOME",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    ];
    let capitals = variable.to_ascii_uppercase();
    PREFIXES.iter().any(|prefix| capitals.starts_with(prefix)) || NAMES.contains(&capitals.as_str())
}

/// In words, for refusals.
pub const FILE_RULE: &str =
    "a relative path below the job's home, such as .npmrc or .aws/credentials, without `..`";

pub fn is_home_file(text: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..");
    text.len() <= 200 && text.chars().all(|c| c.is_ascii_graphic() && c != '\\') && text.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_variables_and_files() {
        for good in ["A", "API_KEY", "NPM_TOKEN2", &"X".repeat(64)] {
            assert!(good.parse::<SecretName>().is_ok() && is_variable(good), "{good}");
        }
        for bad in ["", "a", "_A", "1A", "A-B", "A B", "É", "A=B", &"X".repeat(65)] {
            assert!(bad.parse::<SecretName>().is_err(), "{bad}");
        }
        assert!(is_variable("npm_config__auth") && !is_variable("1x") && !is_variable("a-b"));
        for reserved in
            ["PATH", "HOME", "GIGA_TOKEN", "LD_PRELOAD", "http_proxy", "HTTPS_PROXY", "XDG_DATA_HOME"]
        {
            assert!(is_reserved(reserved), "{reserved}");
        }
        assert!(!is_reserved("API_KEY") && !is_reserved("PATHS"));
        for good in [".npmrc", ".aws/credentials", "a/b/c"] {
            assert!(is_home_file(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "a/.", "a b", "a\\b", "a\0b", "é"]
        {
            assert!(!is_home_file(bad), "{bad:?}");
        }
    }
}
