//! Artifacts in an object store; a folder is one.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use giga_ports::{Artifacts, BlobError};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};

#[derive(Debug, Clone)]
pub struct ObjectArtifacts {
    store: Arc<dyn ObjectStore>,
}

impl ObjectArtifacts {
    /// Makes the folder where it is missing.
    pub fn folder(folder: &Path) -> Result<Self, BlobError> {
        std::fs::create_dir_all(folder).map_err(BlobError::unavailable)?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(BlobError::unavailable)?;
        // A job that is gone leaves no empty folders behind.
        Ok(Self { store: Arc::new(store.with_automatic_cleanup(true)) })
    }
}

/// Keys are cut at `/` and each part is escaped, so a key can never leave its folder.
fn key(key: &str) -> Key {
    key.split('/').filter(|part| !part.is_empty()).collect()
}

fn error(key: &str, error: object_store::Error) -> BlobError {
    match error {
        object_store::Error::NotFound { .. } => BlobError::NotFound(key.to_owned()),
        other => BlobError::unavailable(other),
    }
}

#[async_trait]
impl Artifacts for ObjectArtifacts {
    async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.store.put(&key(name), bytes.into()).await.map(|_| ()).map_err(|e| error(name, e))
    }

    async fn get(&self, name: &str) -> Result<Vec<u8>, BlobError> {
        let found = self.store.get(&key(name)).await.map_err(|e| error(name, e))?;
        found.bytes().await.map(|bytes| bytes.to_vec()).map_err(|e| error(name, e))
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.store.delete(&key(name)).await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(other) => Err(error(name, other)),
        }
    }

    async fn delete_all(&self, folder: &str) -> Result<(), BlobError> {
        let mut found = self.store.list(Some(&key(folder)));
        while let Some(object) = found.try_next().await.map_err(|e| error(folder, e))? {
            match self.store.delete(&object.location).await {
                Err(object_store::Error::NotFound { .. }) | Ok(()) => {}
                Err(other) => return Err(error(folder, other)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_put_comes_back_until_it_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = ObjectArtifacts::folder(folder.path()).unwrap();
        artifacts.put("job/1/report.txt", b"fine".to_vec()).await.unwrap();
        assert_eq!(artifacts.get("job/1/report.txt").await.unwrap(), b"fine");
        artifacts.delete("job/1/report.txt").await.unwrap();
        artifacts.delete("job/1/report.txt").await.unwrap();
        assert!(matches!(artifacts.get("job/1/report.txt").await, Err(BlobError::NotFound(_))));
    }

    #[tokio::test]
    async fn a_folder_goes_with_all_that_is_in_it_and_with_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = ObjectArtifacts::folder(folder.path()).unwrap();
        for key in ["one/1/a", "one/2/b", "one-more/1/a"] {
            artifacts.put(key, b"x".to_vec()).await.unwrap();
        }
        for _ in 0..2 {
            artifacts.delete_all("one").await.unwrap();
            assert!(matches!(artifacts.get("one/1/a").await, Err(BlobError::NotFound(_))));
            assert_eq!(artifacts.get("one-more/1/a").await.unwrap(), b"x");
        }
        assert!(!folder.path().join("one").exists(), "no empty folder stays");
    }

    #[tokio::test]
    async fn no_key_leads_out_of_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let inside = outer.path().join("artifacts");
        let artifacts = ObjectArtifacts::folder(&inside).unwrap();
        for hostile in ["../escaped", "a/../../escaped", "/etc/escaped", "a//../..//escaped"] {
            artifacts.put(hostile, b"x".to_vec()).await.unwrap();
            assert_eq!(artifacts.get(hostile).await.unwrap(), b"x");
        }
        let outside: Vec<_> =
            std::fs::read_dir(outer.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(outside, ["artifacts"]);
    }
}
