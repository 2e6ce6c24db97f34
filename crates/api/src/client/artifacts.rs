//! Calls about the files that runs leave behind.

use giga_domain::limits;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{Artifact, ArtifactList};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    /// As the holder of the job. Repeating it leaves one file under the name.
    pub async fn put_artifact(
        &self,
        job: &str,
        lease_epoch: u64,
        name: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<Artifact> {
        let call = Call::post(&["jobs", job, "artifacts"])
            .query("name", Some(name))
            .query("leaseEpoch", Some(lease_epoch))
            .bytes(media_type, bytes);
        self.ask(call.repeatable(true)).await
    }

    pub async fn artifacts(&self, job: &str) -> Result<ArtifactList> {
        self.ask(Call::get(&["jobs", job, "artifacts"])).await
    }

    pub async fn artifact_bytes(&self, id: &str) -> std::result::Result<Vec<u8>, ClientError> {
        self.fetch(Call::get(&["artifacts", id]).moves(limits::ARTIFACT_BYTES as u64)).await
    }

    pub async fn delete_artifact(&self, id: &str) -> Result<()> {
        self.done(Call::delete(&["artifacts", id])).await
    }
}
