//! Bytes are not what is simulated: nothing is kept and nothing fails.

use async_trait::async_trait;
use giga_domain::{Epoch, JobId};
use giga_ports::blobs::LogSlice;
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

    async fn remove(&self, _: JobId) -> Result<(), BlobError> {
        Ok(())
    }
}

#[async_trait]
impl Artifacts for NoBlobs {
    async fn put(&self, _: &str, _: Vec<u8>) -> Result<(), BlobError> {
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>, BlobError> {
        Err(BlobError::NotFound(key.to_owned()))
    }

    async fn delete(&self, _: &str) -> Result<(), BlobError> {
        Ok(())
    }

    async fn delete_all(&self, _: &str) -> Result<(), BlobError> {
        Ok(())
    }
}
