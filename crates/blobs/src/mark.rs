//! How a place is told from others: a small object at its root, written once, that goes wherever the place is copied.
//!
//! It says nothing about what is there, and it is no secret.

use giga_ports::BlobError;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::bucket::Bucket;

/// Beside `logs` and `artifacts`.
const NAME: &str = "giga-place";

/// What the place is known by: random, and the same for everybody who sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceId(pub [u8; 32]);

/// Short enough for a sentence, and the beginning of what is in the object.
impl std::fmt::Display for PlaceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&const_hex::encode(&self.0[..4]))
    }
}

/// The one that is there; of those who come first at the same moment, one wins.
pub(crate) async fn read_or_write(bucket: &Bucket, fresh: [u8; 32]) -> Result<PlaceId, BlobError> {
    if let Some(known) = read(bucket).await? {
        return Ok(known);
    }
    let text = format!("{}\n", const_hex::encode(fresh));
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    match bucket.store.put_opts(&bucket.key(NAME), PutPayload::from(text), options).await {
        Ok(_) => Ok(PlaceId(fresh)),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
            let gone = || BlobError::NotFound(NAME.to_owned());
            read(bucket).await?.ok_or_else(gone)
        }
        Err(other) => Err(bucket.error(NAME, other)),
    }
}

async fn read(bucket: &Bucket) -> Result<Option<PlaceId>, BlobError> {
    let got = match bucket.store.get(&bucket.key(NAME)).await {
        Ok(got) => got.bytes().await,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(other) => Err(other),
    };
    let bytes = got.map_err(|error| bucket.error(NAME, error))?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if let Ok(id) = const_hex::decode_to_array(text) {
        return Ok(Some(PlaceId(id)));
    }
    let reason = format!(
        "`{NAME}` should hold 64 hexadecimal digits; remove it if nothing else of this place is damaged"
    );
    Err(BlobError::Unavailable { reason, source: None })
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn whoever_comes_first_names_the_place() {
        let bucket = Bucket::folder(InMemory::new());
        let first = read_or_write(&bucket, [1; 32]).await.unwrap();
        assert_eq!(first, PlaceId([1; 32]));
        assert_eq!(read_or_write(&bucket, [2; 32]).await.unwrap(), first);
        assert_eq!(first.to_string(), "01010101");
    }

    #[tokio::test]
    async fn of_two_that_come_at_once_both_see_one() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let store = object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap();
            Bucket::folder(store)
        };
        let (one, other) = (open(), open());
        let both = tokio::join!(read_or_write(&one, [1; 32]), read_or_write(&other, [2; 32]));
        assert_eq!(both.0.unwrap(), both.1.unwrap());
    }

    #[tokio::test]
    async fn what_is_no_name_is_refused_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), "hello").unwrap();
        let store = object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap();
        let text = read_or_write(&Bucket::folder(store), [1; 32]).await.unwrap_err().to_string();
        assert!(text.contains("64 hexadecimal digits"), "{text}");
        assert_eq!(std::fs::read_to_string(folder.path().join(NAME)).unwrap(), "hello");
    }
}
