//! Calls about the files that runs leave behind.

use futures::StreamExt;
use futures::stream::BoxStream;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{Artifact, ArtifactLink, ArtifactList};

/// What is read into memory is meant to be small; larger files are for [`Client::artifact_stream`].
const IN_MEMORY: u64 = 64 * 1024 * 1024;

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
        self.fetch(Call::get(&["artifacts", id]).moves(IN_MEMORY)).await
    }

    /// Piece by piece, however large it is. One that breaks off ends with an error.
    pub async fn artifact_stream(
        &self,
        id: &str,
    ) -> std::result::Result<BoxStream<'static, std::result::Result<Vec<u8>, ClientError>>, ClientError> {
        let response = self.send(&Call::get(&["artifacts", id]), None).await?;
        let base = self.base.clone();
        let broke_off = move |source| ClientError::unreachable(&base, source);
        Ok(response.bytes_stream().map(move |piece| piece.map(Vec::from).map_err(&broke_off)).boxed())
    }

    /// A link that works without a token.
    pub async fn artifact_link(&self, id: &str, ttl: Option<&str>) -> Result<ArtifactLink> {
        self.ask(Call::get(&["artifacts", id, "link"]).query("ttl", ttl)).await
    }

    pub async fn delete_artifact(&self, id: &str) -> Result<()> {
        self.done(Call::delete(&["artifacts", id])).await
    }
}
