//! HTTPS on the listener: HTTP/1, HTTP/2 and gRPC behind one handshake, with a certificate that can be replaced while
//! connections are open. A connection keeps what it was opened with; the next one gets the new certificate.
//!
//! Where the certificate comes from is `files` (an operator's) or `acme` (a CA's). A certificate that cannot be used never
//! replaces one that can.

mod acme;
mod files;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

pub use acme::{AcmeOptions, LETS_ENCRYPT};

/// How long a peer may take to say hello properly.
const HANDSHAKE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("the ACME server at {directory} gave no certificate for {domain}: {reason}")]
    Acme { domain: String, directory: String, reason: String },
}

impl TlsError {
    fn file(path: &Path, reason: impl fmt::Display) -> Self {
        Self::File { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// What connections come in by.
#[derive(Debug)]
pub struct Listener {
    pub(crate) tcp: TcpListener,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) metrics: Option<TcpListener>,
}

impl Listener {
    pub fn new(tcp: TcpListener, tls: Option<Tls>) -> Self {
        Self { tcp, tls: tls.map(Arc::new), metrics: None }
    }

    /// `/metrics` here as well: without a token, in plain HTTP, and nothing else.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Option<TcpListener>) -> Self {
        self.metrics = metrics;
        self
    }
}

impl From<TcpListener> for Listener {
    fn from(tcp: TcpListener) -> Self {
        Self::new(tcp, None)
    }
}

pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
    source: Source,
}

enum Source {
    Files(files::CertificateFiles),
    Acme(Box<acme::Acme>),
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// A certificate chain and its key, both PEM; read again when they change.
    pub fn from_files(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let (files, first) = files::CertificateFiles::read(cert, key)?;
        let current = Arc::new(Current::default());
        current.replace(first);
        Ok(Self::new(current, Source::Files(files), &[]))
    }

    /// A certificate from a CA: the one that was kept, or a new one, which the CA gives to whoever answers at the domain.
    /// That is this listener, so nothing else is served until it is there.
    pub async fn from_acme(options: AcmeOptions, listener: &TcpListener) -> Result<Self, TlsError> {
        let current = Arc::new(Current::default());
        let acme = Box::new(acme::Acme::new(options, current.clone())?);
        let tls = Self::new(current, Source::Acme(acme), &[acme::ALPN]);
        let Source::Acme(acme) = &tls.source else { unreachable!("made a line above") };
        tokio::select! {
            obtained = acme.first() => obtained?,
            () = tls.shake_hands(listener) => {}
        }
        Ok(tls)
    }

    fn new(current: Arc<Current>, source: Source, more: &[&[u8]]) -> Self {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has the cipher suites of these versions");
        let mut config = builder.with_no_client_auth().with_cert_resolver(current.clone());
        config.alpn_protocols =
            [b"h2".as_slice(), b"http/1.1"].iter().chain(more).map(|p| p.to_vec()).collect();
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), current, source }
    }

    /// Nothing where the peer only wanted to see a certificate, as an ACME server does.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        let shaken = tokio::time::timeout(HANDSHAKE, self.acceptor.accept(stream)).await;
        let stream = shaken.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let is_challenge = stream.get_ref().1.alpn_protocol() == Some(acme::ALPN);
        Ok((!is_challenge).then_some(stream))
    }

    async fn shake_hands(&self, listener: &TcpListener) {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                // One at a time would let a silent peer keep the CA out.
                let acceptor = self.acceptor.clone();
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
                });
            }
        }
    }

    /// Runs as long as the server: replaces the certificate when its files change, or when its end comes near.
    pub(crate) async fn keep_current(&self) {
        match &self.source {
            Source::Files(files) => files.watch(&self.current).await,
            Source::Acme(acme) => acme.renew().await,
        }
    }

    /// What a client on this machine can call the coordinator by, so that the certificate is for it.
    pub fn host(&self, address: IpAddr) -> String {
        let names = self.current.certificate().map(|certificate| names(&certificate)).unwrap_or_default();
        let shown = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        if names.addresses.contains(&address) {
            return shown;
        }
        let local = names.domains.iter().find(|name| address.is_loopback() && *name == "localhost");
        local.or_else(|| names.domains.iter().find(|name| !name.contains('*'))).cloned().unwrap_or(shown)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The certificate for whoever connects now.
#[derive(Default)]
struct Current {
    certificate: RwLock<Option<Arc<CertifiedKey>>>,
    /// What an ACME server is shown while it looks.
    challenge: RwLock<Option<Arc<CertifiedKey>>>,
}

impl Current {
    fn replace(&self, certificate: CertifiedKey) {
        *self.certificate.write() = Some(Arc::new(certificate));
    }

    fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.certificate.read().as_ref()?.cert.first().cloned()
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_challenge = hello.alpn().is_some_and(|mut offered| offered.any(|name| name == acme::ALPN));
        if is_challenge { self.challenge.read().clone() } else { self.certificate.read().clone() }
    }
}

/// A chain and a key that belong together.
fn certified(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate is not PEM: {error}"))?;
    if chain.is_empty() {
        return Err("there is no CERTIFICATE in it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| format!("there is no usable private key: {error}"))?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => "the private key is not the certificate's".to_owned(),
        other => other.to_string(),
    })
}

#[derive(Default)]
struct Names {
    domains: Vec<String>,
    addresses: Vec<IpAddr>,
}

fn names(certificate: &CertificateDer<'_>) -> Names {
    let mut names = Names::default();
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return names };
    let Ok(Some(alternatives)) = parsed.subject_alternative_name() else { return names };
    for name in &alternatives.value.general_names {
        match name {
            GeneralName::DNSName(name) => names.domains.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                names.addresses.extend(four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)));
            }
            _ => {}
        }
    }
    names
}
