//! Files that runs leave behind: what points to them in the store, their bytes in the object store.
//!
//! Bytes are put first, under a key that nobody else ever uses (job, epoch and a fresh id), so a writer that turns out
//! to be fenced has replaced nothing. A crash can leave bytes that nothing points to, never the other way round; they
//! go when their job is retired, because then its whole folder goes.

use std::ops::Range;

use futures::StreamExt;
use giga_domain::{Actor, Artifact, ArtifactId, ArtifactName, Epoch, Holder, JobId, limits};
use giga_ports::blobs::{ByteStream, FileLabels};
use giga_ports::store::{DeleteArtifact, PutArtifact};
use giga_ports::{BlobError, StoreError};

use crate::{Coordinator, Error, FieldProblem};

fn blob_key(job: JobId, epoch: Epoch, id: ArtifactId) -> String {
    format!("{job}/{epoch}/{id}")
}

pub(crate) fn key_of(artifact: &Artifact) -> String {
    blob_key(artifact.job, artifact.epoch, artifact.id)
}

/// A file that a holder wants to leave.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    pub job: JobId,
    pub holder: Holder,
    /// The holder itself, or what runs inside the job.
    pub actor: Actor,
    pub name: ArtifactName,
    pub media_type: String,
}

impl Coordinator {
    /// The largest artifact that is taken.
    pub fn artifact_bytes(&self) -> u64 {
        self.fleet.flag("artifact_mib").as_u64().unwrap_or(64) * 1024 * 1024
    }

    pub async fn put_artifact(&self, new: NewArtifact, bytes: ByteStream) -> Result<Artifact, Error> {
        let NewArtifact { job, holder, actor, name, media_type } = new;
        let held = self.core.store.read().job(job).await?.ok_or(StoreError::NoSuchJob(job))?;
        // Only spares the upload: whether the writer still holds the job is judged by the write below.
        giga_domain::transition::check_holder(&held, &holder).map_err(StoreError::from)?;
        self.check_room(job, holder.epoch, &name).await?;
        let id = self.core.random.artifact_id(self.core.clock.now());
        let key = blob_key(job, holder.epoch, id);
        let labels =
            FileLabels { content_type: media_type.clone(), content_disposition: name.content_disposition() };
        let size = self.blobs.artifacts.put(&key, &labels, up_to(self.artifact_bytes(), bytes)).await?;
        let put = PutArtifact { id, job, holder, actor, name, media_type, size };
        match self.core.store.put_artifact(put).await {
            Ok(put) => {
                if let Some(old) = put.replaced {
                    self.delete_bytes(&key_of(&old)).await;
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

    /// Racing writers of one job may pass the limit by as many as they are.
    async fn check_room(&self, job: JobId, epoch: Epoch, name: &ArtifactName) -> Result<(), Error> {
        let there = self.core.store.read().artifacts(job).await?;
        let replaced = there.iter().any(|artifact| artifact.epoch == epoch && artifact.name == *name);
        if there.len() < limits::JOB_ARTIFACTS || replaced {
            return Ok(());
        }
        let message = format!("the job has {} artifacts already, the most there can be", there.len());
        Err(FieldProblem::new("name", message).into())
    }

    /// These bytes of it.
    pub async fn artifact_stream(&self, artifact: &Artifact, range: Range<u64>) -> Result<ByteStream, Error> {
        match self.blobs.artifacts.get(&key_of(artifact), range).await {
            // Replaced or deleted since it was looked up.
            Err(BlobError::NotFound(_)) => Err(StoreError::NoSuchArtifact(artifact.id).into()),
            other => Ok(other?),
        }
    }

    pub async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<(), Error> {
        let key = key_of(&artifact);
        self.core.store.delete_artifact(DeleteArtifact { artifact, actor }).await?;
        self.delete_bytes(&key).await;
        Ok(())
    }

    /// Logs and artifacts of a job that is about to be retired. Can be repeated.
    pub(crate) async fn remove_bytes_of(&self, job: JobId) -> Result<(), BlobError> {
        self.blobs.logs.remove(job).await?;
        self.blobs.artifacts.delete_all(&job.to_string()).await
    }

    /// What stays costs some space until the job is retired, and nothing else.
    async fn delete_bytes(&self, key: &str) {
        if let Err(error) = self.blobs.artifacts.delete(key).await {
            tracing::warn!(%error, key, "bytes that nothing points to could not be deleted");
        }
    }
}

/// The same bytes, until there are too many.
fn up_to(limit: u64, bytes: ByteStream) -> ByteStream {
    let mut seen = 0;
    let counted = move |piece: Result<bytes::Bytes, BlobError>| {
        let piece = piece?;
        seen += piece.len() as u64;
        if seen > limit { Err(BlobError::TooLarge { what: "the artifact", limit }) } else { Ok(piece) }
    };
    bytes.map(counted).boxed()
}
