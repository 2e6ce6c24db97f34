//! A part of an object store that everything of ours is below, and what its errors mean.

use std::fmt;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use giga_ports::BlobError;
use object_store::path::Path as Key;
use object_store::signer::Signer;
use object_store::{ObjectMeta, ObjectStore};

#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Where the store itself can make links.
    pub(crate) signer: Option<Arc<dyn Signer>>,
    /// It keeps the headers that a browser needs for a file.
    pub(crate) keeps_labels: bool,
    root: Key,
    secrets: Arc<[String]>,
}

/// Neither the store's own words nor its settings: they know credentials.
impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Bucket {
    pub(crate) fn folder(store: impl ObjectStore) -> Self {
        let root = Key::default();
        Self { store: Arc::new(store), signer: None, keeps_labels: false, root, secrets: Arc::default() }
    }

    pub(crate) fn cloud<S: ObjectStore + Signer>(store: Arc<S>, root: Key, secrets: Vec<String>) -> Self {
        let signer: Arc<dyn Signer> = store.clone();
        Self { store, signer: Some(signer), keeps_labels: true, root, secrets: secrets.into() }
    }

    pub(crate) fn below(&self, name: &str) -> Self {
        Self { root: self.key(name), ..self.clone() }
    }

    /// Keys are cut at `/` and each part is escaped, so a key can never leave its folder.
    pub(crate) fn key(&self, key: &str) -> Key {
        let own = key.split('/').filter(|part| !part.is_empty()).map(Into::into);
        self.root.parts().chain(own).collect()
    }

    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, BlobError> {
        let found = self.store.list(Some(&self.key(folder)));
        found.try_collect().await.map_err(|error| self.error(folder, error))
    }

    /// Many at once, in as few calls as the store knows how to.
    pub(crate) async fn delete_below(&self, folder: &str) -> Result<(), BlobError> {
        let found = self.store.list(Some(&self.key(folder)));
        let mut gone = self.store.delete_stream(found.map_ok(|object| object.location).boxed());
        while let Some(deleted) = gone.next().await {
            match deleted {
                Err(object_store::Error::NotFound { .. }) | Ok(_) => {}
                Err(other) => return Err(self.error(folder, other)),
            }
        }
        Ok(())
    }

    pub(crate) fn error(&self, key: &str, error: object_store::Error) -> BlobError {
        match error {
            object_store::Error::NotFound { .. } => BlobError::NotFound(key.to_owned()),
            other => BlobError::Unavailable { reason: self.without_secrets(&other), source: None },
        }
    }

    /// What the store says went wrong, down to the first cause. A signed address in it would be a permission.
    pub(crate) fn without_secrets(&self, error: &(dyn std::error::Error + 'static)) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let more = inner.to_string();
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = inner.source();
        }
        self.secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "***"))
    }
}
