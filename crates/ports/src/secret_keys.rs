//! The keys that secrets of jobs are sealed with. They live outside of the database, and nothing here says where.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Where the keys come from. Asked each time, so that a key which was added is used without a restart.
pub trait SecretKeys: Send + Sync {
    /// All that there are. Makes the first one where there may be one and is none.
    fn to_seal(&self) -> Result<SecretKeyRing, SecretKeyError>;

    /// All that there are; none where there is none yet.
    fn to_open(&self) -> Result<SecretKeyRing, SecretKeyError>;
}

/// The first seals, all of them open.
#[derive(Clone, Default)]
pub struct SecretKeyRing(pub Vec<SecretKey>);

#[derive(Clone)]
pub struct SecretKey {
    /// Says which key it is and nothing about it.
    pub id: String,
    pub bytes: Arc<[u8; 32]>,
}

impl fmt::Debug for SecretKeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// In words that an operator can act on; they hold no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SecretKeyError(pub String);

/// No keys at all: secrets can neither be set nor used.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecretKeys;

impl NoSecretKeys {
    pub const REMEDY: &str = "no key for secrets is set up here: give every coordinator the same file with --secrets-key \
        (`openssl rand -hex 32` makes a key), and keep a copy of it elsewhere";
}

impl SecretKeys for NoSecretKeys {
    fn to_seal(&self) -> Result<SecretKeyRing, SecretKeyError> {
        Err(SecretKeyError(Self::REMEDY.to_owned()))
    }

    fn to_open(&self) -> Result<SecretKeyRing, SecretKeyError> {
        Err(SecretKeyError(Self::REMEDY.to_owned()))
    }
}
