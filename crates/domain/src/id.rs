//! One newtype per id, so that a job id can never stand where a factory id belongs.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// Why a piece of text is not an id. The text names what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} `{given}` is malformed: {rule}")]
pub struct IdError {
    pub what: &'static str,
    pub given: String,
    pub rule: Cow<'static, str>,
}

impl IdError {
    pub(crate) fn new(what: &'static str, given: &str, rule: impl Into<Cow<'static, str>>) -> Self {
        // Bounded, so that hostile input does not come back in full in an error.
        let given = given.chars().take(80).flat_map(char::escape_default).collect();
        Self { what, given, rule: rule.into() }
    }

    /// None of the words that there are.
    pub(crate) fn no_word(what: &'static str, given: &str, words: &[&str]) -> Self {
        Self::new(what, given, format!("it is one of {}", words.join(", ")))
    }
}

/// ULIDs: 26 characters of Crockford base 32 that sort by creation time.
macro_rules! ulid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(ulid::Ulid);

        impl $name {
            /// Time and randomness are arguments: the composition root owns both.
            pub fn from_parts(at: crate::Timestamp, random: u128) -> Self {
                Self(ulid::Ulid::from_parts(at.as_millis().max(0).cast_unsigned(), random))
            }

            /// The same 128 bits, for stores that keep ids as numbers.
            pub const fn as_u128(self) -> u128 {
                self.0.0
            }

            pub const fn from_u128(bits: u128) -> Self {
                Self(ulid::Ulid(bits))
            }

            pub const MIN: Self = Self(ulid::Ulid(0));
            pub const MAX: Self = Self(ulid::Ulid(u128::MAX));
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                // `Ulid` accepts lower case and overflow; one spelling per id keeps ids comparable as text.
                let id = ulid::Ulid::from_string(text).map_err(|_| IdError::new($what, text, $rule))?;
                if id.to_string() == text { Ok(Self(id)) } else { Err(IdError::new($what, text, $rule)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

ulid_id!(
    /// A job.
    JobId,
    "job id",
    "a job id is 26 characters of 0-9 and A-Z without I, L, O, U, such as 01J9ZK3V5N8Q4W2E6R7T1Y0ABC"
);
ulid_id!(
    /// A file that a run left behind, this version of it and no other.
    ArtifactId,
    "artifact id",
    "an artifact id is 26 characters of 0-9 and A-Z without I, L, O, U, such as 01J9ZK3V5N8Q4W2E6R7T1Y0ABC"
);

ulid_id!(
    /// An endpoint that events are sent to.
    WebhookId,
    "webhook id",
    "a webhook id is 26 characters of 0-9 and A-Z without I, L, O, U, such as 01J9ZK3V5N8Q4W2E6R7T1Y0ABC"
);

/// Text ids with a grammar that is safe in URLs, refs, file names and metric labels.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $rule:literal, $extra:pat) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, $extra);
                let starts_well = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
                if starts_well && text.len() <= $max && text.chars().all(legal) && !text.contains("..") {
                    Ok(Self(text.into()))
                } else {
                    Err(IdError::new($what, text, $rule))
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.to_string()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

text_id!(
    /// The tenant. Budgets, visibility and token scopes hang on it; routing never does.
    ProductId,
    "product id",
    64,
    "1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-'
);
text_id!(
    /// A worker host.
    FactoryId,
    "factory id",
    64,
    "1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-'
);
text_id!(
    /// A template of factories. Short enough that its members are called after it.
    PoolName,
    "pool name",
    40,
    "1 to 40 of a-z, A-Z, 0-9, `.`, `_` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-'
);
text_id!(
    /// Chosen by a caller so that a repeated call is recognised as the same one.
    RequestId,
    "request id",
    128,
    "1 to 128 of a-z, A-Z, 0-9, `.`, `_`, `:` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-' | ':'
);
text_id!(
    /// One message to one receiver: its idempotency key, however often it is sent.
    EffectId,
    "effect id",
    200,
    "1 to 200 of a-z, A-Z, 0-9, `.`, `_`, `:` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-' | ':'
);
text_id!(
    /// The login of an engine, by a fingerprint that says nothing about its credential.
    AccountId,
    "account id",
    64,
    "1 to 64 of a-z, A-Z, 0-9, `_` and `-`, starting with a letter or digit, such as 3f9a0c1b77de",
    '_' | '-'
);

impl AccountId {
    /// The first 12 hex digits of SHA-256 over the vendor and whatever tells its logins apart.
    pub fn fingerprint(vendor: &str, identity: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        // The length keeps the border between the two from moving.
        hasher.update((vendor.len() as u64).to_be_bytes());
        hasher.update(vendor.as_bytes());
        hasher.update(identity);
        Self(const_hex::encode(&hasher.finalize()[..6]).into())
    }
}

text_id!(
    /// Names a token without being it; safe to show and log.
    TokenId,
    "token id",
    64,
    "1 to 64 of a-z, A-Z, 0-9, `_` and `-`, starting with a letter or digit",
    '_' | '-'
);

text_id!(
    /// A named class of plain jobs, within a product.
    TopicName,
    "topic",
    100,
    "1 to 100 of a-z, A-Z, 0-9, `.`, `_`, `:` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-' | ':'
);
text_id!(
    /// A process that serves topics; it names itself.
    WorkerId,
    "worker id",
    100,
    "1 to 100 of a-z, A-Z, 0-9, `.`, `_`, `:` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-' | ':'
);
text_id!(
    /// One running coordinator; a restart is another node.
    NodeId,
    "node id",
    64,
    "1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`, starting with a letter or digit, without `..`",
    '.' | '_' | '-'
);

/// Counters that only rise. Each is its own type because mixing them up would compile otherwise.
macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            pub const ZERO: Self = Self(0);

            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter!(
    /// The fencing token of a job: every grant raises it, for ever. Whoever names an older one is a zombie.
    Epoch
);
counter!(
    /// A job's revision, raised by every change of the job but a lease renewal. Claims compare and set on it.
    Rev
);
counter!(
    /// How many times a job was given a target; with the job id it is the broker's message id.
    DispatchSeq
);
counter!(
    /// The fencing token of the dispatcher: every change of leader raises it. Whoever names an older one leads no more.
    Term
);
counter!(
    /// An event's place in its job's history: 1, 2, 3, … without gaps, in commit order.
    EventSeq
);
counter!(
    /// An event's place in the fleet-wide feed, rising in commit order. Readers resume from it.
    FeedPos
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_id_has_one_spelling() {
        let id = JobId::from_parts(crate::Timestamp::from_millis(1_700_000_000_000), 7);
        let text = id.to_string();
        assert_eq!(text.len(), 26);
        assert_eq!(text.parse::<JobId>(), Ok(id));
        assert!(text.to_lowercase().parse::<JobId>().is_err());
        assert!("8ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse::<JobId>().is_err(), "overflows 128 bits");
        assert!("".parse::<JobId>().is_err());
    }

    #[test]
    fn job_ids_sort_by_creation_time() {
        let early = JobId::from_parts(crate::Timestamp::from_millis(1), u128::MAX);
        let late = JobId::from_parts(crate::Timestamp::from_millis(2), 0);
        assert!(early < late && early.to_string() < late.to_string());
    }

    #[test]
    fn text_ids_refuse_what_would_be_dangerous_elsewhere() {
        for hostile in ["", "-rf", "../etc", "a/b", "a b", "a\nb", "a\0b", "a..b", ".hidden", "ext::sh", "é"]
        {
            assert!(hostile.parse::<FactoryId>().is_err(), "{hostile:?}");
            assert!(hostile.parse::<ProductId>().is_err(), "{hostile:?}");
        }
        assert!("mac-1.local".parse::<FactoryId>().is_ok());
        assert!("x".repeat(65).parse::<FactoryId>().is_err());
    }

    #[test]
    fn a_fingerprint_tells_vendors_and_logins_apart_and_is_an_id() {
        let one = AccountId::fingerprint("anthropic", b"sk-1");
        assert_eq!(one.as_str().len(), 12);
        assert_eq!(one.as_str().parse::<AccountId>().as_ref(), Ok(&one));
        assert_ne!(one, AccountId::fingerprint("anthropic", b"sk-2"));
        assert_ne!(one, AccountId::fingerprint("anthropics", b"k-1"));
    }

    #[test]
    fn an_id_error_is_bounded_and_printable() {
        let error = "\u{1b}[31m".repeat(1000).parse::<FactoryId>().unwrap_err().to_string();
        assert!(error.len() < 1500 && !error.contains('\u{1b}'));
    }
}
