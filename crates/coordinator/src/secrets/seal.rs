//! How a value is sealed: XChaCha20-Poly1305 with a random nonce. What it belongs to is sealed with it, so that a row which
//! was copied over another does not open.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use giga_domain::{ProductId, SealedSecret, SecretName};
use giga_ports::{SecretKey, SecretKeyError, SecretKeyRing};
use zeroize::Zeroizing;

/// The first byte of what is sealed, for a time when it is done otherwise.
const FORM: u8 = 1;
const NONCE: usize = 24;

#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) product: &'a ProductId,
    pub(super) name: &'a SecretName,
    pub(super) version: u64,
}

impl Place<'_> {
    /// Neither a product nor a name has a slash.
    fn label(&self) -> String {
        format!("giga-secret/{FORM}/{}/{}/{}", self.product, self.name, self.version)
    }
}

/// With the first key: its id, and the sealed bytes.
pub(super) fn seal(
    keys: &SecretKeyRing,
    place: Place<'_>,
    value: &[u8],
    random: [u8; 32],
) -> Result<(String, Vec<u8>), SecretKeyError> {
    let key = keys.0.first().ok_or_else(no_key)?;
    let nonce = &random[..NONCE];
    let label = place.label();
    let payload = Payload { msg: value, aad: label.as_bytes() };
    let closed = cipher(key).encrypt(&nonce_of(nonce), payload);
    let closed = closed.map_err(|_| SecretKeyError("the value could not be encrypted".to_owned()))?;
    let mut sealed = Vec::with_capacity(1 + NONCE + closed.len());
    sealed.push(FORM);
    sealed.extend_from_slice(nonce);
    sealed.extend_from_slice(&closed);
    Ok((key.id.clone(), sealed))
}

pub(super) fn open(
    keys: &SecretKeyRing,
    sealed: &SealedSecret,
) -> Result<Zeroizing<Vec<u8>>, SecretKeyError> {
    let secret = &sealed.secret;
    let (name, product, key_id) = (&secret.name, &secret.product, &secret.key_id);
    let Some(key) = keys.0.iter().find(|key| key.id == *key_id) else {
        let known: Vec<&str> = keys.0.iter().map(|key| key.id.as_str()).collect();
        let known = if known.is_empty() { "no key".to_owned() } else { known.join(", ") };
        return Err(SecretKeyError(format!(
            "the secret {name} of product {product} is encrypted with key {key_id}, and the key file has {known}; \
             put that key back into the file, or set the secret again"
        )));
    };
    let damaged = || {
        SecretKeyError(format!(
            "the secret {name} of product {product} cannot be opened with its key {key_id}: its row was damaged or \
             changed; set it again"
        ))
    };
    let Some((nonce, closed)) =
        sealed.sealed.strip_prefix(&[FORM]).and_then(|rest| rest.split_at_checked(NONCE))
    else {
        return Err(damaged());
    };
    let label = Place { product, name, version: secret.version }.label();
    let payload = Payload { msg: closed, aad: label.as_bytes() };
    cipher(key).decrypt(&nonce_of(nonce), payload).map(Zeroizing::new).map_err(|_| damaged())
}

pub(super) fn no_key() -> SecretKeyError {
    SecretKeyError(
        "the key file for secrets has no key in it; put one in with `openssl rand -hex 32`".to_owned(),
    )
}

fn cipher(key: &SecretKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&(*key.bytes).into())
}

fn nonce_of(bytes: &[u8]) -> XNonce {
    let mut nonce = [0; NONCE];
    nonce.copy_from_slice(bytes);
    nonce.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use giga_domain::{Actor, Secret, Timestamp};

    use super::*;

    fn ring(keys: &[(&str, u8)]) -> SecretKeyRing {
        let key = |(id, byte): &(&str, u8)| SecretKey { id: (*id).to_owned(), bytes: Arc::new([*byte; 32]) };
        SecretKeyRing(keys.iter().map(key).collect())
    }

    fn sealed(keys: &SecretKeyRing, product: &str, name: &str, version: u64) -> SealedSecret {
        let (product, name) = (product.parse().unwrap(), name.parse().unwrap());
        let place = Place { product: &product, name: &name, version };
        let (key_id, sealed) = seal(keys, place, b"hunter22", [7; 32]).unwrap();
        let at = Timestamp::ZERO;
        let updated_by = Actor::system("test");
        let secret = Secret { product, name, version, key_id, created_at: at, updated_at: at, updated_by };
        SealedSecret { secret, sealed }
    }

    #[test]
    fn what_is_sealed_opens_with_its_key_and_in_its_place_only() {
        let keys = ring(&[("k-1", 1)]);
        let one = sealed(&keys, "demo", "KEY", 1);
        assert_eq!(open(&keys, &one).unwrap().as_slice(), b"hunter22");
        assert!(!one.sealed.windows(8).any(|part| part == b"hunter22"));
        // Keys are rotated: the old one still opens, the new one seals.
        let rotated = ring(&[("k-2", 2), ("k-1", 1)]);
        assert_eq!(open(&rotated, &one).unwrap().as_slice(), b"hunter22");
        assert_eq!(sealed(&rotated, "demo", "KEY", 2).secret.key_id, "k-2");

        let missing = open(&ring(&[("k-2", 2)]), &one).unwrap_err().to_string();
        assert!(
            missing.contains("key k-1") && missing.contains("k-2") && missing.contains("KEY"),
            "{missing}"
        );
        assert!(open(&ring(&[]), &one).unwrap_err().to_string().contains("no key"));
        let wrong = open(&ring(&[("k-1", 9)]), &one).unwrap_err().to_string();
        assert!(wrong.contains("k-1") && wrong.contains("damaged"), "{wrong}");

        // A row that was copied over another.
        for (product, name, version) in [("other", "KEY", 1), ("demo", "OTHER", 1), ("demo", "KEY", 2)] {
            let mut swapped = sealed(&keys, product, name, version);
            swapped.sealed.clone_from(&one.sealed);
            assert!(open(&keys, &swapped).is_err(), "{product} {name} {version}");
        }
        for cut in 0..one.sealed.len() {
            let mut cut_off = one.clone();
            cut_off.sealed.truncate(cut);
            assert!(open(&keys, &cut_off).is_err());
        }
    }
}
