//! A certificate and a key that somebody else keeps fresh. Contents are compared, not times: what renews certificates
//! copies, renames, or turns a link around.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::sign::CertifiedKey;

use super::{Current, TlsError, certified};

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct CertificateFiles {
    cert: PathBuf,
    key: PathBuf,
    first: Contents,
}

#[derive(Clone, PartialEq, Eq)]
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    pub(super) fn read(cert: &Path, key: &Path) -> Result<(Self, CertifiedKey), TlsError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| TlsError::file(path, error));
        let first = Contents { cert: read(cert)?, key: read(key)? };
        let certificate =
            certified(&first.cert, &first.key).map_err(|reason| TlsError::file(cert, reason))?;
        Ok((Self { cert: cert.to_owned(), key: key.to_owned(), first }, certificate))
    }

    pub(super) async fn watch(&self, current: &Current) {
        let mut seen = self.first.clone();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // Away for a moment while it is replaced, perhaps: the next look tells.
            let (Ok(cert), Ok(key)) = (tokio::fs::read(&self.cert).await, tokio::fs::read(&self.key).await)
            else {
                continue;
            };
            let contents = Contents { cert, key };
            if contents == seen {
                continue;
            }
            match certified(&contents.cert, &contents.key) {
                Ok(certificate) => {
                    current.replace(certificate);
                    tracing::info!(file = %self.cert.display(), "the TLS certificate was replaced");
                }
                Err(reason) => tracing::warn!(
                    file = %self.cert.display(),
                    reason,
                    "the new TLS certificate cannot be used; the old one stays"
                ),
            }
            seen = contents;
        }
    }
}
