//! What this coordinator signs with, so that any other one can tell: keys that the store keeps for all of them.
//!
//! Two things are signed: links to artifacts, and the tokens of what runs inside jobs. Neither is kept anywhere.

use giga_ports::store::ShareKey;
use std::time::Duration;

use giga_domain::job_token::mac;
use giga_domain::token::TokenSecret;
use giga_domain::{Artifact, ArtifactId, Epoch, Holder, Job, JobId, JobToken, Timestamp};
use subtle::ConstantTimeEq;
use tokio::sync::OnceCell;

use crate::{Coordinator, Error};

/// Asked for once and kept: they never change.
#[derive(Default)]
pub(crate) struct Keys {
    links: OnceCell<[u8; 32]>,
    job_tokens: OnceCell<[u8; 32]>,
}

/// Where an artifact can be fetched without a token, until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactLink {
    pub to: LinkTo,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTo {
    /// The object store answers it.
    Store(String),
    /// A coordinator answers it, given this signature.
    Coordinator { signature: String },
}

impl Coordinator {
    async fn key(&self, cell: &OnceCell<[u8; 32]>, name: &'static str) -> Result<[u8; 32], Error> {
        let ask =
            || async { self.core.store.share_key(ShareKey { name, fresh: self.core.random.bytes() }).await };
        Ok(*cell.get_or_try_init(ask).await?)
    }

    /// For what runs inside this job, under this lease.
    pub async fn job_token(&self, job: JobId, epoch: Epoch) -> Result<TokenSecret, Error> {
        let key = self.key(&self.caches.keys.job_tokens, "job-tokens").await?;
        Ok(JobToken::new(&key, job, epoch).secret())
    }

    /// The job that the token is for and who holds it, while its epoch does.
    pub async fn authenticate_job(&self, token: &JobToken) -> Result<Option<(Job, Holder)>, Error> {
        let key = self.key(&self.caches.keys.job_tokens, "job-tokens").await?;
        if !token.is_sealed_by(&key) {
            return Ok(None);
        }
        let job = self.core.store.read().job(token.job).await?;
        Ok(job.filter(|job| job.epoch == token.epoch).and_then(|job| {
            let holder = Holder { factory: job.lease()?.factory.clone(), epoch: job.epoch };
            Some((job, holder))
        }))
    }

    pub async fn artifact_link(&self, artifact: &Artifact, ttl: Duration) -> Result<ArtifactLink, Error> {
        let expires_at = self.core.store_now().plus(ttl);
        let to = match self.blobs.artifacts.signed_url(&crate::artifacts::key_of(artifact), ttl).await? {
            Some(url) => LinkTo::Store(url),
            None => LinkTo::Coordinator { signature: self.sign_link(artifact.id, expires_at).await? },
        };
        Ok(ArtifactLink { to, expires_at })
    }

    /// Was the link signed here or by another coordinator of this store, and is its time not over?
    pub async fn is_link(
        &self,
        id: ArtifactId,
        expires_at: Timestamp,
        signature: &str,
    ) -> Result<bool, Error> {
        let expected = self.sign_link(id, expires_at).await?;
        let same: bool = expected.as_bytes().ct_eq(signature.as_bytes()).into();
        Ok(same && expires_at > self.core.store_now())
    }

    async fn sign_link(&self, id: ArtifactId, expires_at: Timestamp) -> Result<String, Error> {
        let key = self.key(&self.caches.keys.links, "links").await?;
        let signed = mac(&key, &format!("artifact-link/{id}/{}", expires_at.as_millis()));
        Ok(const_hex::encode(signed))
    }
}
