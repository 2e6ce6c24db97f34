//! A certificate from a CA by ACME, proven by TLS-ALPN-01: the CA connects to the domain and looks at a certificate that only
//! the owner of the account could have made. Needs no port but the listener's.
//!
//! What is kept lies in a folder per ACME server, readable by the owner only: the account, and the certificate with its key.
//! A certificate is renewed when a third of its life is left; until it worked, the old one stays.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::Timestamp;
use giga_ports::Clock;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Identifier, NewAccount, NewOrder,
    OrderStatus, RetryPolicy,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Current, TlsError, certified, provider};

/// What an ACME server speaks when it looks, by RFC 8737.
pub(super) const ALPN: &[u8] = b"acme-tls/1";
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// How often it is looked whether a renewal is due, and how soon a failed one is tried again: CAs count failures.
const LOOK_EVERY: Duration = Duration::from_hours(1);
/// For each of: the CA has looked, the certificate is made.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Clone)]
pub struct AcmeOptions {
    pub domain: String,
    /// Of the ACME server; [`LETS_ENCRYPT`] is one.
    pub directory: String,
    pub folder: PathBuf,
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for AcmeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AcmeOptions").field("domain", &self.domain).finish_non_exhaustive()
    }
}

pub(super) struct Acme {
    options: AcmeOptions,
    folder: PathBuf,
    current: Arc<Current>,
}

impl Acme {
    pub(super) fn new(options: AcmeOptions, current: Arc<Current>) -> Result<Self, TlsError> {
        let server: String =
            options.directory.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let folder = options.folder.join(server);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| TlsError::file(&folder, error))?;
        Ok(Self { options, folder, current })
    }

    /// The one that was kept, where it still has some life; else a new one.
    pub(super) async fn first(&self) -> Result<(), TlsError> {
        if let Ok(pem) = std::fs::read(self.certificate_file())
            && let Ok(kept) = certified(&pem, &pem)
            && !self.is_due(&kept)
        {
            self.current.replace(kept);
            return Ok(());
        }
        self.order().await
    }

    pub(super) async fn renew(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let due =
                self.current.certificate.read().as_ref().is_none_or(|certificate| self.is_due(certificate));
            if due && let Err(error) = self.order().await {
                tracing::error!(%error, "the TLS certificate was not renewed; trying again in an hour");
            }
        }
    }

    fn is_due(&self, certificate: &CertifiedKey) -> bool {
        let Some((from, to)) = certificate.cert.first().and_then(|der| life(der)) else { return true };
        let third = to.since(from) / 3;
        self.options.clock.now() >= to.minus(third)
    }

    async fn order(&self) -> Result<(), TlsError> {
        let AcmeOptions { domain, directory, .. } = &self.options;
        let failed =
            |reason: String| TlsError::Acme { domain: domain.clone(), directory: directory.clone(), reason };
        let ordered = self.order_certificate().await;
        *self.current.challenge.write() = None;
        let pem = ordered.map_err(|Refused(reason)| failed(reason))?;
        let certificate = certified(pem.as_bytes(), pem.as_bytes()).map_err(failed)?;
        let file = self.certificate_file();
        write_private(&file, pem.as_bytes()).map_err(|error| TlsError::file(&file, error))?;
        self.current.replace(certificate);
        tracing::info!(domain, "a new TLS certificate is in use");
        Ok(())
    }

    /// The key and the chain, as PEM.
    async fn order_certificate(&self) -> Result<String, Refused> {
        let account = self.account().await?;
        let names = [Identifier::Dns(self.options.domain.clone())];
        let mut order = account.new_order(&NewOrder::new(&names)).await?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            match authorization.status {
                AuthorizationStatus::Pending => {}
                AuthorizationStatus::Valid => continue,
                other => return Err(Refused(format!("its authorization is {other:?}"))),
            }
            let challenge = authorization.challenge(ChallengeType::TlsAlpn01);
            let mut challenge =
                challenge.ok_or_else(|| Refused("the server does not offer tls-alpn-01".to_owned()))?;
            let proof = proof(&self.options.domain, challenge.key_authorization().digest().as_ref())?;
            *self.current.challenge.write() = Some(Arc::new(proof));
            challenge.set_ready().await?;
        }
        let patience = RetryPolicy::default().timeout(PATIENCE);
        match order.poll_ready(&patience).await? {
            OrderStatus::Ready => {}
            other => {
                return Err(Refused(
                    self.why(&mut order).await.unwrap_or_else(|| format!("the order is {other:?}")),
                ));
            }
        }
        let key = order.finalize().await?;
        let chain = order.poll_certificate(&patience).await?;
        Ok(format!("{key}\n{chain}"))
    }

    /// What the server found when it looked.
    async fn why(&self, order: &mut instant_acme::Order) -> Option<String> {
        let mut authorizations = order.authorizations();
        let authorization = authorizations.next().await?.ok()?;
        let problem = authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref())?;
        problem.detail.clone()
    }

    async fn account(&self) -> Result<Account, Refused> {
        let file = self.folder.join("account.json");
        let kept = std::fs::read(&file).ok();
        if let Some(kept) = kept.and_then(|json| serde_json::from_slice::<AccountCredentials>(&json).ok()) {
            return Ok(Account::builder()?.from_credentials(kept).await?);
        }
        let new = NewAccount { contact: &[], terms_of_service_agreed: true, only_return_existing: false };
        let directory = self.options.directory.clone();
        let (account, credentials) = Account::builder()?.create(&new, directory, None).await?;
        let json = serde_json::to_vec(&credentials).map_err(|error| Refused(error.to_string()))?;
        write_private(&file, &json).map_err(|error| Refused(format!("{}: {error}", file.display())))?;
        Ok(account)
    }

    fn certificate_file(&self) -> PathBuf {
        self.folder.join(format!("{}.pem", self.options.domain))
    }
}

struct Refused(String);

impl From<instant_acme::Error> for Refused {
    fn from(error: instant_acme::Error) -> Self {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            text = inner.to_string();
            source = inner.source();
        }
        Self(text)
    }
}

/// The certificate that shows the CA whose account it is.
fn proof(domain: &str, digest: &[u8]) -> Result<CertifiedKey, Refused> {
    let wrong = |error: rcgen::Error| Refused(error.to_string());
    let key = rcgen::KeyPair::generate().map_err(wrong)?;
    let mut params = rcgen::CertificateParams::new(vec![domain.to_owned()]).map_err(wrong)?;
    params.custom_extensions = vec![rcgen::CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key).map_err(wrong)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|error| Refused(error.to_owned()))?;
    let key = provider().key_provider.load_private_key(key).map_err(|error| Refused(error.to_string()))?;
    // Not checked against the key: the extension is critical, and only an ACME server knows it.
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

fn life(der: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let at = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1_000));
    let validity = certificate.validity();
    Some((at(validity.not_before.timestamp()), at(validity.not_after.timestamp())))
}

/// Whole or not at all, and never readable by others.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_the_one_that_the_library_knows() {
        assert_eq!(instant_acme::LetsEncrypt::Production.url(), LETS_ENCRYPT);
    }
}
