//! Bytes are not what is simulated: nothing is kept and nothing fails.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{Epoch, JobId};
use giga_ports::blobs::{ByteStream, FileLabels, LogSlice};
use giga_ports::{Artifacts, BlobError, Logs};

#[derive(Debug)]
pub(crate) struct NoBlobs;

#[async_trait]
impl Logs for NoBlobs {
    async fn append(&self, _: JobId, _: Epoch, offset: u64, bytes: &[u8]) -> Result<u64, BlobError> {
        Ok(offset + bytes.len() as u64)
    }

    async fn read(&self, _: JobId, _: Epoch, offset: u64, _: usize) -> Result<LogSlice, BlobError> {
        Ok(LogSlice { bytes: Vec::new(), offset, total: 0 })
    }

    async fn cut(&self, _: JobId, _: Epoch, _: u64) -> Result<(), BlobError> {
        Ok(())
    }

    async fn remove(&self, _: JobId) -> Result<(), BlobError> {
        Ok(())
    }
}

#[async_trait]
impl Artifacts for NoBlobs {
    async fn put(&self, _: &str, _: &FileLabels, _: ByteStream) -> Result<u64, BlobError> {
        Ok(0)
    }

    async fn get(&self, key: &str, _: Range<u64>) -> Result<ByteStream, BlobError> {
        Err(BlobError::NotFound(key.to_owned()))
    }

    async fn delete(&self, _: &str) -> Result<(), BlobError> {
        Ok(())
    }

    async fn delete_all(&self, _: &str) -> Result<(), BlobError> {
        Ok(())
    }

    async fn signed_url(&self, _: &str, _: Duration) -> Result<Option<String>, BlobError> {
        Ok(None)
    }

    async fn check(&self) -> Result<(), BlobError> {
        Ok(())
    }
}
