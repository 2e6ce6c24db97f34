//! Bytes that do not belong into a database: the logs of runs, and artifacts.
//!
//! Neither knows about leases. Whoever writes has been fenced before, and a log belongs to one epoch, so that a zombie
//! could at worst write to its own old log.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use giga_domain::{Epoch, JobId};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum BlobError {
    #[error("the log stands at byte {expected}, not {given}; send what follows from there")]
    Gap { expected: u64, given: u64 },
    #[error("{what} would be larger than {limit} bytes{}", remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default())]
    TooLarge { what: &'static str, limit: u64, remedy: Option<&'static str> },
    /// Less is free than has to stay free.
    #[error(
        "the disk with logs and artifacts has {free_mib} MiB left, and {floor_mib} MiB stay free for the database; free some \
         space, or lower the flag `disk_floor_mib`"
    )]
    NoRoom { free_mib: u64, floor_mib: u64 },
    #[error("{0}")]
    Busy(&'static str),
    #[error("there is nothing under `{0}`")]
    NotFound(String),
    /// Whoever sent the bytes stopped before their end.
    #[error("the bytes broke off: {0}")]
    BrokeOff(String),
    #[error("the blob store cannot be used: {reason}")]
    Unavailable {
        reason: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl BlobError {
    pub fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable { reason: source.to_string(), source: Some(Box::new(source)) }
    }
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSlice {
    pub bytes: Vec<u8>,
    pub offset: u64,
    /// How long the log is now.
    pub total: u64,
}

/// One log per run, growing at its end while the run goes on.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Adds bytes at `offset`, which must be the log's end. Bytes that are there already are passed over, so that a
    /// repeated call adds nothing. Returns the new length.
    async fn append(&self, job: JobId, epoch: Epoch, offset: u64, bytes: &[u8]) -> Result<u64, BlobError>;

    /// Up to `limit` bytes from `offset` on. A run that wrote nothing has an empty log.
    async fn read(&self, job: JobId, epoch: Epoch, offset: u64, limit: usize) -> Result<LogSlice, BlobError>;

    /// Takes back what stands from there on: it was written while the right to write was lost, and nobody was told that it
    /// is there.
    async fn cut(&self, job: JobId, epoch: Epoch, from: u64) -> Result<(), BlobError>;

    /// Every log of the job is gone afterwards.
    async fn remove(&self, job: JobId) -> Result<(), BlobError>;

    /// Bytes that are free where logs go; `None` where nobody can say.
    fn free_bytes(&self) -> Option<u64> {
        None
    }
}

/// Bytes on their way, piece by piece: a file never has to stand in memory whole.
pub type ByteStream = BoxStream<'static, Result<Bytes, BlobError>>;

/// What is in memory anyway, in one piece.
pub fn in_one_piece(bytes: impl Into<Bytes>) -> ByteStream {
    let bytes = bytes.into();
    futures::stream::once(async move { Ok(bytes) }).boxed()
}

/// What an object store tells whoever follows a link to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLabels {
    pub content_type: String,
    pub content_disposition: String,
}

/// Files that a run leaves behind, by key.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// All of the bytes or nothing: an error in the stream leaves nothing under the key. Returns how many there were.
    async fn put(&self, key: &str, labels: &FileLabels, bytes: ByteStream) -> Result<u64, BlobError>;

    /// These bytes of the file. An error before the first one where it does not exist.
    async fn get(&self, key: &str, range: Range<u64>) -> Result<ByteStream, BlobError>;

    /// Deleting what is not there is fine.
    async fn delete(&self, key: &str) -> Result<(), BlobError>;

    /// Deletes whatever stands below `folder/`.
    async fn delete_all(&self, folder: &str) -> Result<(), BlobError>;

    /// A link to the file that needs no other permission, for that long; `None` where the place cannot make one.
    async fn signed_url(&self, key: &str, ttl: Duration) -> Result<Option<String>, BlobError>;

    /// Writes something small and deletes it again.
    async fn check(&self) -> Result<(), BlobError>;

    /// Bytes that are free where artifacts go; `None` where nobody can say.
    fn free_bytes(&self) -> Option<u64> {
        None
    }
}
