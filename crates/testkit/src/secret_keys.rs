//! Keys for secrets that a test holds in its hand: it adds, swaps and loses them.

use std::sync::Arc;

use giga_ports::{SecretKey, SecretKeyError, SecretKeyRing, SecretKeys};
use parking_lot::Mutex;

#[derive(Debug)]
pub struct TestSecretKeys(Mutex<SecretKeyRing>);

impl TestSecretKeys {
    /// The first seals. Each is made from one byte, and called after it.
    pub fn new(keys: &[u8]) -> Self {
        Self(Mutex::new(ring(keys)))
    }

    pub fn replace(&self, keys: &[u8]) {
        *self.0.lock() = ring(keys);
    }
}

impl Default for TestSecretKeys {
    fn default() -> Self {
        Self::new(&[1])
    }
}

fn ring(keys: &[u8]) -> SecretKeyRing {
    let key = |byte: &u8| SecretKey { id: format!("key-{byte}"), bytes: Arc::new([*byte; 32]) };
    SecretKeyRing(keys.iter().map(key).collect())
}

impl SecretKeys for TestSecretKeys {
    fn to_seal(&self) -> Result<SecretKeyRing, SecretKeyError> {
        Ok(self.0.lock().clone())
    }

    fn to_open(&self) -> Result<SecretKeyRing, SecretKeyError> {
        Ok(self.0.lock().clone())
    }
}
