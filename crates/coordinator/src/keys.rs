//! What this coordinator signs with, so that any other one can tell: keys that the store keeps for all of them.
//!
//! Three things are signed: links to artifacts, the tokens of what runs inside jobs, and what a browser carries while somebody
//! signs in. None is kept anywhere. Each has a key
//! of its own, which is replaced every month or when somebody says so; what the key before it signed stays good until the next
//! time, which is longer than a link or a job lives.

use std::time::Duration;

use giga_domain::job_token::mac;
use giga_domain::token::TokenSecret;
use giga_domain::{Actor, Artifact, ArtifactId, Epoch, Holder, Job, JobId, JobToken, Timestamp};
use giga_ports::store::{KeyRing, RotateKey};
use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::{Coordinator, Error};

/// How old a key becomes.
const MONTH: Duration = Duration::from_hours(30 * 24);
/// How long keys are remembered: another coordinator may have replaced them.
const REMEMBER: Duration = Duration::from_mins(1);
/// The same for one that did not fit. Longer than nothing, so that forgeries do not reach the store.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
enum Purpose {
    Links,
    JobTokens,
    SignIns,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Links, Self::JobTokens, Self::SignIns];

    /// Of the key, and of the one before it.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Links => ("links", "links.previous"),
            Self::JobTokens => ("job-tokens", "job-tokens.previous"),
            Self::SignIns => ("sign-ins", "sign-ins.previous"),
        }
    }
}

/// As they were when the store was last asked.
#[derive(Default)]
pub(crate) struct Keys {
    links: Mutex<Option<(KeyRing, Timestamp)>>,
    job_tokens: Mutex<Option<(KeyRing, Timestamp)>>,
    sign_ins: Mutex<Option<(KeyRing, Timestamp)>>,
}

impl Keys {
    fn slot(&self, purpose: Purpose) -> &Mutex<Option<(KeyRing, Timestamp)>> {
        match purpose {
            Purpose::Links => &self.links,
            Purpose::JobTokens => &self.job_tokens,
            Purpose::SignIns => &self.sign_ins,
        }
    }
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
    /// Replaces every key now, whatever its age: their names.
    pub async fn rotate_keys(&self, actor: Actor) -> Result<Vec<&'static str>, Error> {
        for purpose in Purpose::ALL {
            self.ask_for_keys(purpose, Duration::ZERO, actor.clone()).await?;
        }
        Ok(Purpose::ALL.iter().map(|purpose| purpose.names().0).collect())
    }

    async fn ask_for_keys(
        &self,
        purpose: Purpose,
        older_than: Duration,
        actor: Actor,
    ) -> Result<KeyRing, Error> {
        let (name, previous) = purpose.names();
        let fresh = self.core.random.bytes();
        let asked_at = self.core.clock.now();
        let ring = self.core.store.rotate_key(RotateKey { name, previous, fresh, older_than, actor }).await?;
        *self.caches.keys.slot(purpose).lock() = Some((ring, asked_at));
        Ok(ring)
    }

    async fn keys(&self, purpose: Purpose, remembered_for: Duration) -> Result<KeyRing, Error> {
        let now = self.core.clock.now();
        let known = *self.caches.keys.slot(purpose).lock();
        if let Some((ring, at)) = known
            && now.since(at) < remembered_for
        {
            return Ok(ring);
        }
        self.ask_for_keys(purpose, MONTH, Actor::system("keys")).await
    }

    /// Whether one of the keys fits, those that another coordinator made a moment ago included.
    async fn is_signed(&self, purpose: Purpose, fits: impl Fn(&[u8; 32]) -> bool) -> Result<bool, Error> {
        let any = |ring: KeyRing| fits(&ring.current) || ring.previous.is_some_and(|key| fits(&key));
        Ok(any(self.keys(purpose, REMEMBER).await?) || any(self.keys(purpose, LOOK_AGAIN).await?))
    }

    /// For what runs inside this job, under this lease.
    pub async fn job_token(&self, job: JobId, epoch: Epoch) -> Result<TokenSecret, Error> {
        let key = self.keys(Purpose::JobTokens, REMEMBER).await?.current;
        Ok(JobToken::new(&key, job, epoch).secret())
    }

    /// The job that the token is for and who holds it, while its epoch does.
    pub async fn authenticate_job(&self, token: &JobToken) -> Result<Option<(Job, Holder)>, Error> {
        if !self.is_signed(Purpose::JobTokens, |key| token.is_sealed_by(key)).await? {
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
        let signed = self.blobs.artifacts.signed_url(&crate::artifacts::key_of(artifact), ttl).await?;
        let to = if let Some(url) = signed {
            LinkTo::Store(url)
        } else {
            let key = self.keys(Purpose::Links, REMEMBER).await?.current;
            LinkTo::Coordinator { signature: sign_link(&key, artifact.id, expires_at) }
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
        if expires_at <= self.core.store_now() {
            return Ok(false);
        }
        let fits = |key: &[u8; 32]| {
            let expected = sign_link(key, id, expires_at);
            expected.as_bytes().ct_eq(signature.as_bytes()).into()
        };
        self.is_signed(Purpose::Links, fits).await
    }
}

/// What a browser brings back after it was elsewhere to sign in.
impl Coordinator {
    pub async fn seal_sign_in(&self, text: &str) -> Result<String, Error> {
        let key = self.keys(Purpose::SignIns, REMEMBER).await?.current;
        Ok(seal_of(&key, text))
    }

    /// Was it sealed here or by another coordinator of this store?
    pub async fn is_sealed_sign_in(&self, text: &str, seal: &str) -> Result<bool, Error> {
        let fits = |key: &[u8; 32]| seal_of(key, text).as_bytes().ct_eq(seal.as_bytes()).into();
        self.is_signed(Purpose::SignIns, fits).await
    }
}

fn seal_of(key: &[u8; 32], text: &str) -> String {
    const_hex::encode(mac(key, &format!("sign-in/{text}")))
}

fn sign_link(key: &[u8; 32], id: ArtifactId, expires_at: Timestamp) -> String {
    const_hex::encode(mac(key, &format!("artifact-link/{id}/{}", expires_at.as_millis())))
}
