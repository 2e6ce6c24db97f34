//! Named secrets of a batch: all of a product at once, which are few.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{ProductId, SealedSecret, SecretName};

type SecretKey = (ProductId, SecretName);

/// Of the products that a batch is about.
pub type SecretsLoaded = BTreeMap<SecretKey, SealedSecret>;

#[derive(Debug, Default)]
pub struct SecretWrites {
    /// Each secret appears in at most one of these two.
    pub put: Vec<SealedSecret>,
    pub delete: Vec<SecretKey>,
}

impl SecretWrites {
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.delete.is_empty()
    }
}

/// The rows while the commands of a batch are decided.
#[derive(Debug, Default)]
pub(super) struct Secrets {
    loaded: SecretsLoaded,
    changed: BTreeSet<SecretKey>,
}

impl Secrets {
    pub(super) fn new(loaded: SecretsLoaded) -> Self {
        Self { loaded, changed: BTreeSet::new() }
    }

    pub(super) fn get(&self, product: &ProductId, name: &SecretName) -> Option<&SealedSecret> {
        self.loaded.get(&(product.clone(), name.clone()))
    }

    pub(super) fn count(&self, product: &ProductId) -> usize {
        self.loaded.keys().filter(|(of, _)| of == product).count()
    }

    pub(super) fn put(&mut self, secret: SealedSecret) {
        let key = (secret.secret.product.clone(), secret.secret.name.clone());
        self.changed.insert(key.clone());
        self.loaded.insert(key, secret);
    }

    pub(super) fn remove(&mut self, product: &ProductId, name: &SecretName) -> Option<SealedSecret> {
        let key = (product.clone(), name.clone());
        let removed = self.loaded.remove(&key)?;
        self.changed.insert(key);
        Some(removed)
    }

    pub(super) fn into_writes(mut self) -> SecretWrites {
        let mut writes = SecretWrites::default();
        for key in self.changed {
            match self.loaded.remove(&key) {
                Some(secret) => writes.put.push(secret),
                None => writes.delete.push(key),
            }
        }
        writes
    }
}
