//! Files that runs leave behind: what points to them in the store, their bytes in the object store.
//!
//! Bytes are put first, under a key that nobody else ever uses (job, epoch and a fresh id), so a writer that turns out
//! to be fenced has replaced nothing. A crash can leave bytes that nothing points to, never the other way round; they
//! go when their job is retired, because then its whole folder goes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use giga_domain::secret::Leaks;
use giga_domain::{Actor, Artifact, ArtifactId, ArtifactName, Epoch, Holder, JobId, ProductId, limits};
use giga_ports::blobs::{ByteStream, FileLabels};
use giga_ports::store::{DeleteArtifact, PutArtifact};
use giga_ports::{BlobError, StoreError};

use parking_lot::Mutex;

use crate::{Coordinator, Error, FieldProblem};

const MIB: u64 = 1024 * 1024;
/// Bytes between two looks at how much room the disk has.
const CHECK_DISK_EVERY: u64 = 4 * MIB;

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
        let _upload = self.begin_upload(job)?;
        self.check_disk()?;
        let room = self.room_for(&held.product, job, holder.epoch, &name).await?;
        let id = self.core.random.artifact_id(self.core.clock.now());
        let key = blob_key(job, holder.epoch, id);
        let labels =
            FileLabels { content_type: media_type.clone(), content_disposition: name.content_disposition() };
        let leaks = self.leaks_of(&held).await?;
        if let Some(secret) = leaks.find(name.as_str().as_bytes()) {
            return Err(FieldProblem::new("name", format!("it contains the secret {secret}")).into());
        }
        let bytes = without(leaks, bytes);
        let bytes = self.while_the_disk_lasts(up_to(&room, bytes));
        let size = self.blobs.artifacts.put(&key, &labels, bytes).await?;
        // Others of this job may have come in the meantime; whoever is last is over.
        if let Err(error) = self.check_size(&held.product, job, holder.epoch, &name, size).await {
            self.delete_bytes(&key).await;
            return Err(error);
        }
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

    /// How much may come, and which limit that is. Racing writers of one job may pass the number of artifacts by as many
    /// as they are.
    async fn room_for(
        &self,
        product: &ProductId,
        job: JobId,
        epoch: Epoch,
        name: &ArtifactName,
    ) -> Result<Room, Error> {
        let there = self.core.store.read().artifacts(job).await?;
        let replaced = there.iter().find(|artifact| artifact.epoch == epoch && artifact.name == *name);
        if there.len() >= limits::JOB_ARTIFACTS && replaced.is_none() {
            let message = format!("the job has {} artifacts already, the most there can be", there.len());
            return Err(FieldProblem::new("name", message).into());
        }
        let freed = replaced.map_or(0, |artifact| artifact.size);
        let used = there.iter().map(|artifact| artifact.size).sum::<u64>() - freed;
        let one = self.artifact_bytes();
        let mut room = Room { left: one, what: "the artifact", limit: one, remedy: None };
        let of_job = self.mib("artifact_job_mib");
        room.narrow(
            of_job.saturating_sub(used),
            "the artifacts of the job together",
            of_job,
            "delete some, or raise the flag `artifact_job_mib`",
        );
        let everyone = Some(self.mib("artifact_product_mib")).filter(|most| *most > 0);
        let own = self.floor_of(product).max_artifact_mib.map(|most| most.saturating_mul(MIB));
        let own = own.filter(|own| everyone.is_none_or(|everyone| *own < everyone));
        if let Some(of_product) = own.or(everyone) {
            let used = self.core.store.read().artifact_bytes(product).await? - freed;
            let remedy = if own.is_some() {
                "delete some, or let its policy have more with `giga product policy --max-artifact-mib`"
            } else {
                "delete some, let old ones go sooner with the flag `artifact_retention_hours`, or raise `artifact_product_mib`"
            };
            let left = of_product.saturating_sub(used);
            room.narrow(left, "the artifacts of the product together", of_product, remedy);
        }
        Ok(room)
    }

    async fn check_size(
        &self,
        product: &ProductId,
        job: JobId,
        epoch: Epoch,
        name: &ArtifactName,
        size: u64,
    ) -> Result<(), Error> {
        let room = self.room_for(product, job, epoch, name).await?;
        if size <= room.left { Ok(()) } else { Err(room.exceeded().into()) }
    }

    fn mib(&self, flag: &str) -> u64 {
        self.fleet.flag(flag).as_u64().unwrap_or(0) * MIB
    }

    /// Logs and artifacts end before the database has no room left, which stands on the same disk where all is in one
    /// folder.
    pub(crate) fn check_disk(&self) -> Result<(), BlobError> {
        let blobs = &self.blobs;
        check_disk(self.mib("disk_floor_mib"), [blobs.artifacts.free_bytes(), blobs.logs.free_bytes()])
    }

    /// The same bytes, as long as the disk has room for more.
    fn while_the_disk_lasts(&self, bytes: ByteStream) -> ByteStream {
        let (floor, artifacts) = (self.mib("disk_floor_mib"), self.blobs.artifacts.clone());
        let mut unchecked = 0;
        let checked = move |piece: Result<bytes::Bytes, BlobError>| {
            let piece = piece?;
            unchecked += piece.len() as u64;
            if unchecked >= CHECK_DISK_EVERY {
                unchecked = 0;
                check_disk(floor, [artifacts.free_bytes()])?;
            }
            Ok(piece)
        };
        bytes.map(checked).boxed()
    }

    /// A few at a time, so that one job cannot take all of the memory that uploads have.
    fn begin_upload(&self, job: JobId) -> Result<Upload, Error> {
        let mut under_way = self.blobs.uploads.lock();
        let count = under_way.entry(job).or_default();
        if *count >= limits::JOB_UPLOADS {
            return Err(Error::TooMany {
                reason: format!(
                    "{} uploads of this job are under way, the most there can be at once; finish one first",
                    limits::JOB_UPLOADS
                ),
                retry_after: Duration::from_secs(1),
            });
        }
        *count += 1;
        Ok(Upload { job, under_way: self.blobs.uploads.clone() })
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

/// How much may still come, and why not more.
#[derive(Debug, Clone, Copy)]
struct Room {
    left: u64,
    what: &'static str,
    limit: u64,
    remedy: Option<&'static str>,
}

impl Room {
    fn narrow(&mut self, left: u64, what: &'static str, limit: u64, remedy: &'static str) {
        if left < self.left {
            *self = Self { left, what, limit, remedy: Some(remedy) };
        }
    }

    fn exceeded(&self) -> BlobError {
        BlobError::TooLarge { what: self.what, limit: self.limit, remedy: self.remedy }
    }
}

/// One that is under way, until it is dropped.
struct Upload {
    job: JobId,
    under_way: Arc<Mutex<HashMap<JobId, usize>>>,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut under_way = self.under_way.lock();
        if let Some(count) = under_way.get_mut(&self.job) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.job);
            }
        }
    }
}

fn check_disk(floor: u64, free: impl IntoIterator<Item = Option<u64>>) -> Result<(), BlobError> {
    match free.into_iter().flatten().min() {
        Some(free) if free < floor => Err(BlobError::NoRoom { free_mib: free / MIB, floor_mib: floor / MIB }),
        _ => Ok(()),
    }
}

/// The same bytes, until a secret of the job is among them.
fn without(leaks: Leaks, bytes: ByteStream) -> ByteStream {
    if leaks.is_empty() {
        return bytes;
    }
    let mut check = leaks.piecewise();
    let checked = move |piece: Result<bytes::Bytes, BlobError>| {
        let piece = piece?;
        match check.next(&piece) {
            Some(name) => Err(BlobError::BrokeOff(format!("it contains the secret {name}; leave that out"))),
            None => Ok(piece),
        }
    };
    bytes.map(checked).boxed()
}

/// The same bytes, until there are too many.
fn up_to(room: &Room, bytes: ByteStream) -> ByteStream {
    let room = *room;
    let mut seen = 0;
    let counted = move |piece: Result<bytes::Bytes, BlobError>| {
        let piece = piece?;
        seen += piece.len() as u64;
        if seen > room.left { Err(room.exceeded()) } else { Ok(piece) }
    };
    bytes.map(counted).boxed()
}
