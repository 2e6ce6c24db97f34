//! Files that runs leave behind: what points to them in the store, their bytes in the object store.
//!
//! Bytes are put first, under a key that nobody else ever uses (job, epoch and a fresh id), so a writer that turns out
//! to be fenced has replaced nothing. A crash can leave bytes that nothing points to, never the other way round; they
//! go when their job is retired, because then its whole folder goes.

use giga_domain::{Actor, Artifact, ArtifactId, ArtifactName, Epoch, Holder, JobId, limits};
use giga_ports::store::PutArtifact;
use giga_ports::{BlobError, StoreError};

use crate::{Coordinator, Error, FieldProblem};

fn blob_key(job: JobId, epoch: Epoch, id: ArtifactId) -> String {
    format!("{job}/{epoch}/{id}")
}

impl Coordinator {
    pub async fn put_artifact(
        &self,
        job: JobId,
        holder: Holder,
        name: ArtifactName,
        media_type: String,
        bytes: Vec<u8>,
    ) -> Result<Artifact, Error> {
        if bytes.len() > limits::ARTIFACT_BYTES {
            let message = format!("an artifact has at most {} bytes", limits::ARTIFACT_BYTES);
            return Err(FieldProblem::new("body", message).into());
        }
        let held = self.store.read().job(job).await?.ok_or(StoreError::NoSuchJob(job))?;
        // Only spares the upload: whether the writer still holds the job is judged by the write below.
        giga_domain::transition::check_holder(&held, &holder).map_err(StoreError::from)?;
        let id = self.random.artifact_id(self.clock.now());
        let key = blob_key(job, holder.epoch, id);
        let size = bytes.len() as u64;
        self.artifacts.put(&key, bytes).await?;
        match self.store.put_artifact(PutArtifact { id, job, holder, name, media_type, size }).await {
            Ok(put) => {
                if let Some(old) = put.replaced {
                    self.delete_bytes(&blob_key(old.job, old.epoch, old.id)).await;
                }
                Ok(put.artifact)
            }
            // It may have been written after all: then these are the bytes that it points to.
            Err(error) if error.is_transient() => Err(error.into()),
            Err(error) => {
                self.delete_bytes(&key).await;
                Err(error.into())
            }
        }
    }

    pub async fn artifact_bytes(&self, artifact: &Artifact) -> Result<Vec<u8>, Error> {
        match self.artifacts.get(&blob_key(artifact.job, artifact.epoch, artifact.id)).await {
            // Replaced or deleted since it was looked up.
            Err(BlobError::NotFound(_)) => Err(StoreError::NoSuchArtifact(artifact.id).into()),
            other => Ok(other?),
        }
    }

    pub async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<(), Error> {
        let key = blob_key(artifact.job, artifact.epoch, artifact.id);
        self.store.delete_artifact(artifact, actor).await?;
        self.delete_bytes(&key).await;
        Ok(())
    }

    /// Logs and artifacts of a job that is about to be retired. Can be repeated.
    pub(crate) async fn remove_bytes_of(&self, job: JobId) -> Result<(), BlobError> {
        self.logs.remove(job).await?;
        self.artifacts.delete_all(&job.to_string()).await
    }

    /// What stays costs some space until the job is retired, and nothing else.
    async fn delete_bytes(&self, key: &str) {
        if let Err(error) = self.artifacts.delete(key).await {
            tracing::warn!(%error, key, "bytes that nothing points to could not be deleted");
        }
    }
}
