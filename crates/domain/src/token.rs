//! Tokens: `giga_<kind>_<43 random><6 checksum>`. Shown once; only the hash is kept.
//!
//! The checksum lets a mangled paste be told from a revoked token without asking the store. Randomness is an
//! argument.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::factory::FactoryScope;
use crate::word::words;
use crate::{FactoryId, PoolName, ProductId, Timestamp, TokenId};

words! {
    "role",
    pub enum Role {
        /// Serves topics: streams their jobs, keeps them and reports. Reads nothing.
        Worker,
        /// Reads, nothing else.
        Viewer,
        /// Submits jobs and reads.
        Submitter,
        /// Steers jobs and factories, submits and reads.
        Operator,
        /// Everything, tokens and flags included.
        Admin,
    }
}

/// What tokens of people and programs are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    ServeTopics,
    Read,
    Submit,
    /// Jobs and factories.
    Steer,
    /// Tokens, flags, budgets and the like.
    Administer,
}

impl Role {
    /// Who may do what. Routes name the least role that may call them, which is the lowest here with the right.
    pub const fn may(self, right: Right) -> bool {
        match self {
            Self::Worker => matches!(right, Right::ServeTopics),
            Self::Viewer => matches!(right, Right::Read),
            Self::Submitter => matches!(right, Right::Read | Right::Submit),
            Self::Operator => !matches!(right, Right::Administer),
            Self::Admin => true,
        }
    }

    /// The same for people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Worker => "take, renew and report topic jobs",
            Self::Viewer => "read",
            Self::Submitter => "read, submit",
            Self::Operator => "read, submit, steer jobs and factories",
            Self::Admin => "everything, tokens and flags included",
        }
    }
}

/// What a token may do. Empty products mean every product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Permission {
    User {
        role: Role,
        products: Vec<ProductId>,
    },
    Factory {
        factory: FactoryId,
        scope: FactoryScope,
    },
    /// Enrols factories of a pool, and does nothing else: that one, or whichever its bearer starts.
    Pool {
        pool: PoolName,
        factory: Option<FactoryId>,
    },
    /// Asks how many factories of a pool are wanted, and nothing else.
    Scaler {
        pool: PoolName,
    },
}

impl Permission {
    /// The factory that it is for, and nobody else.
    pub fn factory(&self) -> Option<&FactoryId> {
        match self {
            Self::Factory { factory, .. } => Some(factory),
            Self::Pool { factory, .. } => factory.as_ref(),
            Self::User { .. } | Self::Scaler { .. } => None,
        }
    }
}

/// How long a token lives, counted from now: `90d`, `12h`, `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    For(Duration),
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a lifetime; use a time from 1s to 3650d such as 12h or 90d, or never")]
pub struct LifetimeError(String);

impl Lifetime {
    /// Of people and programs, unless said otherwise.
    pub const USER: Self = Self::For(Duration::from_hours(90 * 24));
    /// Of a factory and of the local admin: renewed by itself while its bearer is alive.
    pub const RENEWED: Self = Self::For(Duration::from_hours(30 * 24));
    const LONGEST: Duration = Duration::from_hours(3650 * 24);

    pub fn ends(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::For(time) => Some(now.plus(time)),
            Self::Never => None,
        }
    }
}

impl FromStr for Lifetime {
    type Err = LifetimeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let wrong = || LifetimeError(text.chars().take(40).collect());
        let (count, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let seconds: u64 = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(wrong()),
        };
        let count: u64 = count.parse().map_err(|_| wrong())?;
        let time = Duration::from_secs(count.checked_mul(seconds).ok_or_else(wrong)?);
        if time.is_zero() || time > Self::LONGEST { Err(wrong()) } else { Ok(Self::For(time)) }
    }
}

/// A token as it is kept: everything but the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub id: TokenId,
    pub hash: TokenHash,
    pub permission: Permission,
    pub label: String,
    pub created_at: Timestamp,
    /// None: never. A rotation brings the end of the old token near: both work until then.
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl TokenRecord {
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}

/// SHA-256 of the whole token text. Equality takes the same time whatever differs.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    pub fn to_hex(&self) -> String {
        const_hex::encode(self.0)
    }

    /// What the token is called: enough of the hash to tell tokens apart, and nothing that helps to guess one.
    pub fn token_id(&self) -> TokenId {
        let id = format!("tok-{}", &self.to_hex()[..16]);
        id.parse().expect("`tok-` and hex digits fit the grammar of token ids")
    }

    pub fn from_hex(hex: &str) -> Option<Self> {
        // The length is checked here, because the decoder would skip a leading `0x`.
        if hex.len() != 64 {
            return None;
        }
        const_hex::decode_to_array(hex).ok().map(Self)
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..8])
    }
}

/// The token itself. `Debug` hides it, so that it cannot slip into a log.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a token of this system: it should look like giga_user_… or giga_factory_… and its checksum must match; was it cut off when pasted?"
)]
pub struct MalformedToken;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARS: usize = 43;
const CHECK_CHARS: usize = 6;

impl TokenSecret {
    /// 256 random bits as 43 characters of base 62.
    pub fn from_random(kind: &str, random: [u8; 32]) -> Self {
        let head = format!("giga_{kind}_{}", base62(random));
        let check = checksum(&head);
        Self(head + &check)
    }

    /// Checks form and checksum only; whether it is live, the store knows.
    pub fn parse(text: &str) -> Result<Self, MalformedToken> {
        let tail = text.strip_prefix("giga_").and_then(|rest| rest.split_once('_')).ok_or(MalformedToken)?.1;
        if tail.len() != RANDOM_CHARS + CHECK_CHARS || !text.is_ascii() {
            return Err(MalformedToken);
        }
        let (head, check) = text.split_at(text.len() - CHECK_CHARS);
        if checksum(head) == check { Ok(Self(text.to_owned())) } else { Err(MalformedToken) }
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0.as_bytes()).into())
    }

    /// The kind of what somebody gets who signs in.
    pub const SIGN_IN: &str = "login";

    /// Was it made by signing in?
    pub fn is_of_sign_in(&self) -> bool {
        self.0.split('_').nth(1) == Some(Self::SIGN_IN)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn of_text(text: String) -> Self {
        Self(text)
    }
}

/// 256 bits as 43 characters.
pub(crate) fn base62(mut number: [u8; 32]) -> String {
    let mut digits = Vec::with_capacity(RANDOM_CHARS);
    for _ in 0..RANDOM_CHARS {
        let mut remainder = 0u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            *byte = (value / 62) as u8;
            remainder = value % 62;
        }
        digits.push(ALPHABET[remainder as usize]);
    }
    String::from_utf8(digits).expect("the alphabet is ASCII")
}

pub(crate) fn checksum(head: &str) -> String {
    let digest = Sha256::digest(head.as_bytes());
    digest.iter().take(CHECK_CHARS).map(|b| char::from(ALPHABET[usize::from(*b) % 62])).collect()
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text_form_and_nothing_else_does() {
        let secret = TokenSecret::from_random("user", [7; 32]);
        let text = secret.reveal().to_owned();
        assert_eq!(TokenSecret::parse(&text), Ok(secret.clone()));
        assert_eq!(TokenSecret::parse(&text[..text.len() - 1]), Err(MalformedToken));
        let mut flipped = text.clone().into_bytes();
        flipped[20] ^= 1;
        assert_eq!(TokenSecret::parse(&String::from_utf8(flipped).unwrap()), Err(MalformedToken));
        assert_eq!(TokenHash::from_hex(&secret.hash().to_hex()), Some(secret.hash()));
        assert_eq!(TokenHash::from_hex(&"+f".repeat(32)), None, "a sign is not a digit");
        assert!(!format!("{secret:?}").contains(&text[12..20]));
    }

    #[test]
    fn lifetimes_are_a_number_and_a_unit_or_never() {
        assert_eq!("90d".parse(), Ok(Lifetime::USER));
        assert_eq!("never".parse(), Ok(Lifetime::Never));
        assert_eq!("90s".parse(), Ok(Lifetime::For(Duration::from_secs(90))));
        for wrong in [
            "",
            "90",
            "0d",
            "-1d",
            "1.5h",
            "3651d",
            "99999999999999999999d",
            "Never",
            "1w",
            "9223372036854775807d",
        ] {
            assert!(wrong.parse::<Lifetime>().is_err(), "{wrong}");
        }
        assert_eq!(Lifetime::Never.ends(Timestamp::ZERO), None);
    }

    #[test]
    fn a_higher_role_may_all_that_a_lower_one_may() {
        for right in [Right::Read, Right::Submit, Right::Steer, Right::Administer] {
            assert!(Role::ALL.is_sorted_by_key(|role| role.may(right)), "{right:?}");
        }
    }

    #[test]
    fn every_random_bit_counts() {
        let mut bytes = [0u8; 32];
        let zero = TokenSecret::from_random("user", bytes);
        bytes[31] = 1;
        let one = TokenSecret::from_random("user", bytes);
        bytes[31] = 0;
        bytes[0] = 0x80;
        let high = TokenSecret::from_random("user", bytes);
        assert!(zero != one && one != high && zero != high);
    }
}
