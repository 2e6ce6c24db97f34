//! Artifacts in an object store; a folder is one. No file ever stands in memory whole, neither on its way in nor out.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::Fuse;
use futures::{StreamExt, stream};
use giga_ports::blobs::{ByteStream, FileLabels};
use giga_ports::{Artifacts, BlobError};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::signer::Method;
use object_store::{
    Attribute, Attributes, Error, MultipartUpload, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload, PutPayloadMut,
};
use tokio::sync::Semaphore;

use crate::bucket::Bucket;
use crate::folder_logs::free_bytes;

/// What is larger goes up in parts of this size, and everything comes down so. Some stores want all parts but the last
/// to be of one size, none takes less than 5 MiB, and with ten thousand of them a part is large enough for 80 GiB.
const PART: usize = 8 * 1024 * 1024;
/// A folder takes parts of any size.
const FOLDER_PART: usize = 256 * 1024;
/// A part grows by blocks of this size, so that a body that has only begun costs what has come of it.
const BLOCK: usize = 64 * 1024;
/// What all uploads together may hold in memory. Whoever comes when it is used up waits, its bytes unread.
const IN_MEMORY: usize = 128 * 1024 * 1024;
const LONGEST_WAIT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub struct ObjectArtifacts {
    bucket: Bucket,
    part: usize,
    /// One for each part that may be in memory.
    parts: Arc<Semaphore>,
    folder: Option<PathBuf>,
}

impl ObjectArtifacts {
    /// Makes the folder where it is missing.
    pub fn folder(folder: &Path) -> Result<Self, BlobError> {
        std::fs::create_dir_all(folder).map_err(BlobError::unavailable)?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(BlobError::unavailable)?;
        // A job that is gone leaves no empty folders behind.
        let bucket = Bucket::folder(store.with_automatic_cleanup(true));
        Ok(Self { folder: Some(folder.to_owned()), ..Self::new(bucket, FOLDER_PART) })
    }

    pub(crate) fn bucket(bucket: Bucket) -> Self {
        Self::new(bucket, PART)
    }

    fn new(bucket: Bucket, part: usize) -> Self {
        Self { bucket, part, parts: Arc::new(Semaphore::new(IN_MEMORY / part)), folder: None }
    }

    fn attributes(&self, labels: &FileLabels) -> Attributes {
        let mut attributes = Attributes::new();
        if self.bucket.keeps_labels {
            attributes.insert(Attribute::ContentType, labels.content_type.clone().into());
            attributes.insert(Attribute::ContentDisposition, labels.content_disposition.clone().into());
        }
        attributes
    }

    async fn put_parts(
        &self,
        name: &str,
        attributes: Attributes,
        first: PutPayload,
        mut source: Parts,
    ) -> Result<u64, BlobError> {
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let begun = self.bucket.store.put_multipart_opts(&self.bucket.key(name), options).await;
        let mut upload = begun.map_err(|error| self.bucket.error(name, error))?;
        let sent = self.send_parts(name, &mut *upload, first, &mut source).await;
        if sent.is_err() {
            // What cannot be given up either is for the store's own rule about unfinished uploads.
            let _ = upload.abort().await;
        }
        sent
    }

    /// One after the other, so that an upload costs the memory of one part, however large it is.
    async fn send_parts(
        &self,
        name: &str,
        upload: &mut dyn MultipartUpload,
        first: PutPayload,
        source: &mut Parts,
    ) -> Result<u64, BlobError> {
        let mut size = 0;
        let mut next = Some(first);
        while let Some(part) = next {
            size += part.content_length() as u64;
            upload.put_part(part).await.map_err(|error| self.bucket.error(name, error))?;
            next = source.next().await?;
        }
        upload.complete().await.map_err(|error| self.bucket.error(name, error))?;
        Ok(size)
    }
}

/// A stream, cut into parts of one size.
struct Parts {
    source: Fuse<ByteStream>,
    size: usize,
    /// What has come and did not fit into the last part.
    rest: Bytes,
}

impl Parts {
    /// `None` at the end; a stream without bytes has no part. Bytes are copied: a piece of three bytes may be a view into
    /// a buffer of many.
    async fn next(&mut self) -> Result<Option<PutPayload>, BlobError> {
        let mut part = PutPayloadMut::new().with_block_size(BLOCK.min(self.size));
        while part.content_length() < self.size {
            if self.rest.is_empty() {
                match self.source.next().await {
                    Some(piece) => self.rest = piece?,
                    None => break,
                }
            }
            let fits = self.rest.len().min(self.size - part.content_length());
            part.extend_from_slice(&self.rest.split_to(fits));
        }
        Ok(Some(part).filter(|part| !part.is_empty()).map(PutPayloadMut::freeze))
    }
}

#[async_trait]
impl Artifacts for ObjectArtifacts {
    async fn put(&self, name: &str, labels: &FileLabels, bytes: ByteStream) -> Result<u64, BlobError> {
        let room = tokio::time::timeout(LONGEST_WAIT, self.parts.acquire()).await;
        let Ok(Ok(_room)) = room else {
            return Err(BlobError::Busy("too many uploads at once; try again"));
        };
        let attributes = self.attributes(labels);
        let mut source = Parts { source: bytes.fuse(), size: self.part, rest: Bytes::new() };
        let first = source.next().await?.unwrap_or_default();
        if first.content_length() == self.part {
            return self.put_parts(name, attributes, first, source).await;
        }
        let size = first.content_length() as u64;
        let options = PutOptions { attributes, ..PutOptions::default() };
        let key = self.bucket.key(name);
        let put = self.bucket.store.put_opts(&key, first, options);
        put.await.map(|_| size).map_err(|error| self.bucket.error(name, error))
    }

    async fn get(&self, name: &str, range: Range<u64>) -> Result<ByteStream, BlobError> {
        let (bucket, key) = (self.bucket.clone(), self.bucket.key(name));
        if range.is_empty() {
            bucket.store.head(&key).await.map_err(|error| bucket.error(name, error))?;
            return Ok(stream::empty().boxed());
        }
        let first = piece(&bucket, name, &key, &range).await?;
        let rest = range.start + first.len() as u64..range.end;
        let name = name.to_owned();
        // Piece by piece, each fetched when the one before is taken: a slow reader holds no connection to the store open.
        let more = stream::try_unfold(rest, move |rest| {
            let (bucket, key, name) = (bucket.clone(), key.clone(), name.clone());
            async move {
                if rest.is_empty() {
                    return Ok(None);
                }
                let bytes = piece(&bucket, &name, &key, &rest).await?;
                let rest = rest.start + bytes.len() as u64..rest.end;
                Ok(Some((bytes, rest)))
            }
        });
        Ok(stream::once(async move { Ok(first) }).chain(more).boxed())
    }

    async fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.bucket.store.delete(&self.bucket.key(name)).await {
            Err(Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(other) => Err(self.bucket.error(name, other)),
        }
    }

    async fn delete_all(&self, folder: &str) -> Result<(), BlobError> {
        self.bucket.delete_below(folder).await
    }

    async fn signed_url(&self, name: &str, ttl: Duration) -> Result<Option<String>, BlobError> {
        let Some(signer) = &self.bucket.signer else { return Ok(None) };
        match signer.signed_url(Method::GET, &self.bucket.key(name), ttl).await {
            Ok(url) => Ok(Some(url.to_string())),
            Err(Error::NotSupported { .. } | Error::NotImplemented { .. }) => Ok(None),
            Err(other) => Err(self.bucket.error(name, other)),
        }
    }

    async fn check(&self) -> Result<(), BlobError> {
        let name = "check";
        let key = self.bucket.key(name);
        let put = self.bucket.store.put(&key, PutPayload::from_static(b"giga was here\n")).await;
        put.map_err(|error| self.bucket.error(name, error))?;
        self.delete(name).await
    }

    fn free_bytes(&self) -> Option<u64> {
        self.folder.as_deref().and_then(free_bytes)
    }
}

/// As much as is fetched at once. Less than there should be means that somebody shortened the file.
async fn piece(bucket: &Bucket, name: &str, key: &Key, range: &Range<u64>) -> Result<Bytes, BlobError> {
    let wanted = range.start..range.end.min(range.start + PART as u64);
    let bytes = bucket.store.get_range(key, wanted).await.map_err(|error| bucket.error(name, error))?;
    if bytes.is_empty() {
        let reason = format!("`{name}` ends before byte {}", range.start);
        return Err(BlobError::Unavailable { reason, source: None });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use giga_ports::blobs::in_one_piece;

    use super::*;

    #[tokio::test]
    async fn no_key_leads_out_of_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let inside = outer.path().join("artifacts");
        let artifacts = ObjectArtifacts::folder(&inside).unwrap();
        let labels = FileLabels { content_type: String::new(), content_disposition: String::new() };
        for hostile in ["../escaped", "a/../../escaped", "/etc/escaped", "a//../..//escaped"] {
            artifacts.put(hostile, &labels, in_one_piece("x")).await.unwrap();
            assert!(artifacts.get(hostile, 0..1).await.is_ok());
        }
        let outside: Vec<_> =
            std::fs::read_dir(outer.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(outside, ["artifacts"]);
    }

    #[tokio::test]
    async fn a_job_that_is_gone_leaves_no_empty_folder() {
        let folder = tempfile::tempdir().unwrap();
        let artifacts = ObjectArtifacts::folder(folder.path()).unwrap();
        let labels = FileLabels { content_type: String::new(), content_disposition: String::new() };
        artifacts.put("one/1/a", &labels, in_one_piece("x")).await.unwrap();
        artifacts.delete_all("one").await.unwrap();
        assert!(!folder.path().join("one").exists());
    }
}
