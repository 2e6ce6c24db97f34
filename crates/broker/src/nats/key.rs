//! A user's key at NATS: the server's configuration has the public half, and only its owner has the seed.

use std::fmt;
use std::path::Path;

use giga_ports::BrokerError;
use nkeys::{KeyPair, KeyPairType};

/// The seed never shows.
#[derive(Clone)]
pub struct NatsKey {
    seed: String,
    public: String,
}

impl NatsKey {
    /// From 32 random bytes.
    pub fn from_random(bytes: [u8; 32]) -> Result<Self, BrokerError> {
        let pair = KeyPair::new_from_raw(KeyPairType::User, bytes).map_err(BrokerError::from_source)?;
        Ok(Self { seed: pair.seed().map_err(BrokerError::from_source)?, public: pair.public_key() })
    }

    /// From a file as `giga broker nats-config` and the `nk` tool write it.
    pub fn read(path: &Path) -> Result<Self, BrokerError> {
        let wrong = |why: &str| BrokerError::because(format!("the key of NATS in {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        let seed = text.lines().map(str::trim).find(|line| line.starts_with("SU"));
        // What the library says could repeat a piece of the seed.
        let pair = seed.and_then(|seed| KeyPair::from_seed(seed).ok());
        let (Some(seed), Some(pair)) = (seed, pair) else {
            return Err(wrong("it holds no seed of a user, which starts with `SU`"));
        };
        Ok(Self { seed: seed.to_owned(), public: pair.public_key() })
    }

    pub fn seed(&self) -> &str {
        &self.seed
    }

    pub fn public(&self) -> NatsPublicKey {
        NatsPublicKey(self.public.clone())
    }
}

impl fmt::Debug for NatsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NatsKey").field(&self.public).finish()
    }
}

/// The half that a server may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsPublicKey(String);

impl NatsPublicKey {
    pub fn parse(text: &str) -> Result<Self, BrokerError> {
        let text = text.trim();
        match KeyPair::from_public_key(text) {
            Ok(pair) if pair.key_pair_type() == KeyPairType::User => Ok(Self(text.to_owned())),
            _ => Err(BrokerError::because("it is no public key of a NATS user, which starts with `U`")),
        }
    }
}

impl fmt::Display for NatsPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written_and_not_shown() {
        let key = NatsKey::from_random([7; 32]).unwrap();
        let file = std::env::temp_dir().join(format!("giga-key-{}", std::process::id()));
        std::fs::write(&file, format!("# of mac-1\n{}\n", key.seed())).unwrap();
        let read = NatsKey::read(&file).unwrap();
        assert_eq!(read.public(), key.public());
        assert_eq!(NatsPublicKey::parse(&key.public().to_string()).unwrap(), key.public());
        assert!(!format!("{read:?}").contains(key.seed()));
        let broken = key.seed().replace('A', "B");
        std::fs::write(&file, &broken).unwrap();
        let error = format!("{:?}", NatsKey::read(&file).unwrap_err());
        std::fs::remove_file(&file).unwrap();
        assert!(error.contains("starts with `SU`") && !error.contains(&broken), "{error}");
        assert!(NatsPublicKey::parse(key.seed()).is_err());
        assert!(NatsPublicKey::parse("").is_err());
    }
}
