//! `sslmode` and `sslrootcert` of a URL, with the meaning that libpq gives them.
//!
//! | mode | TLS | who the server is |
//! | --- | --- | --- |
//! | `disable` | never | not asked |
//! | `allow` | where the server takes nothing else | not asked, unless `sslrootcert` is given: then as `verify-ca` |
//! | `prefer` (default) | where the server has it and the handshake succeeds | the same |
//! | `require` | always | the same |
//! | `verify-ca` | always | has a certificate of the CA |
//! | `verify-full` | always | has a certificate of the CA for the host of the URL |
//!
//! One difference: libpq looks for `~/.postgresql/root.crt` where no `sslrootcert` is given. Here `verify-full` then goes by
//! the roots of the system, as `sslrootcert=system` does, and `verify-ca` wants to be told.

use std::str::FromStr;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::ConnectorError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl FromStr for Mode {
    type Err = ConnectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" => Self::Allow,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(wrong("sslmode: use disable, allow, prefer, require, verify-ca or verify-full"));
            }
        })
    }
}

/// What a URL says about TLS, and the URL without it.
#[derive(Debug)]
pub(crate) struct SslSettings {
    pub(crate) url: String,
    mode: Option<Mode>,
    root: Option<Root>,
}

#[derive(Debug)]
enum Root {
    System,
    File(String),
}

fn wrong(text: &str) -> ConnectorError {
    ConnectorError::Tls(text.to_owned())
}

impl SslSettings {
    pub(crate) fn of(url: &str) -> Result<Self, ConnectorError> {
        let mut settings = Self { url: url.to_owned(), mode: None, root: None };
        let Some((before, query)) = url.split_once('?') else { return Ok(settings) };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = || {
                let decoded = percent_decode_str(value).decode_utf8();
                decoded.map_err(|_| ConnectorError::Tls(format!("{name}: is not UTF-8")))
            };
            match name {
                "sslmode" => settings.mode = Some(text()?.parse()?),
                "sslrootcert" if text()? == "system" => settings.root = Some(Root::System),
                "sslrootcert" => settings.root = Some(Root::File(text()?.into_owned())),
                _ => rest.push(pair),
            }
        }
        settings.url =
            if rest.is_empty() { before.to_owned() } else { format!("{before}?{}", rest.join("&")) };
        Ok(settings)
    }

    pub(crate) fn mode(&self) -> Mode {
        match (self.mode, &self.root) {
            (Some(mode), _) => mode,
            (None, Some(Root::System)) => Mode::VerifyFull,
            (None, _) => Mode::Prefer,
        }
    }

    /// How connections are made where they are made with TLS.
    pub(crate) fn tls(&self) -> Result<MakeRustlsConnect, ConnectorError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectorError::Tls(error.to_string()))?;
        let verifier: Arc<dyn ServerCertVerifier> = match (self.mode(), &self.root) {
            (Mode::VerifyFull, None | Some(Root::System)) => verifier(system_roots()?, provider)?,
            (Mode::VerifyFull, Some(Root::File(file))) => verifier(roots_in(file)?, provider)?,
            (_, Some(Root::System)) => return Err(wrong("sslrootcert: `system` needs sslmode=verify-full")),
            (Mode::VerifyCa, None) => {
                return Err(wrong("sslrootcert: sslmode=verify-ca needs the file of the CA's certificate"));
            }
            (_, Some(Root::File(file))) => Arc::new(AnyName(verifier(roots_in(file)?, provider)?)),
            _ => Arc::new(AnyServer(provider)),
        };
        let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }
}

fn verifier(
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, ConnectorError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| ConnectorError::Tls(error.to_string()))
}

/// `SSL_CERT_FILE` names others.
fn system_roots() -> Result<RootCertStore, ConnectorError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(ConnectorError::Tls(format!(
            "sslmode=verify-full without sslrootcert needs the system's root certificates, and there are none: {}",
            why.join("; ")
        )));
    }
    Ok(roots)
}

/// The path is part of the URL, which is never repeated.
fn roots_in(file: &str) -> Result<RootCertStore, ConnectorError> {
    let cannot = |why: String| ConnectorError::Tls(format!("sslrootcert: cannot use the file: {why}"));
    let pem = std::fs::read(file).map_err(|error| cannot(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| cannot(error.to_string()))?;
        roots.add(certificate).map_err(|error| cannot(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(cannot("there is no CERTIFICATE in it".to_owned()));
    }
    Ok(roots)
}

/// Keeps out those who only listen, and nobody else.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Whoever has a certificate of the CA, for whatever host.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is looked at last, when everything else was in order.
        match self.0.verify_server_cert(certificate, others, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_about_tls_is_taken_out() {
        let of = |url: &str| SslSettings::of(url).unwrap();
        let plain = of("postgres://ana@db/giga");
        assert_eq!((plain.url.as_str(), plain.mode()), ("postgres://ana@db/giga", Mode::Prefer));
        let some = of("postgres://db/giga?a=1&sslmode=verify-full&sslrootcert=%2Fa%20b&b=2");
        assert_eq!((some.url.as_str(), some.mode()), ("postgres://db/giga?a=1&b=2", Mode::VerifyFull));
        assert!(matches!(some.root, Some(Root::File(file)) if file == "/a b"));
        assert_eq!(of("postgres://db/giga?sslrootcert=system").mode(), Mode::VerifyFull);
        assert_eq!(of("postgres://db/giga?sslmode=require").url, "postgres://db/giga");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let refused = |query: &str| {
            let settings = SslSettings::of(&format!("postgres://db/giga?{query}"));
            settings.and_then(|settings| settings.tls().map(|_| ())).unwrap_err().to_string()
        };
        assert!(refused("sslmode=on").contains("sslmode: use disable, allow, prefer"));
        assert!(refused("sslmode=verify-ca").contains("needs the file"));
        assert!(refused("sslmode=require&sslrootcert=system").contains("needs sslmode=verify-full"));
        assert!(
            refused("sslmode=verify-full&sslrootcert=/nowhere").contains("sslrootcert: cannot use the file")
        );
        assert!(refused("sslmode=verify-ca&sslrootcert=/dev/null").contains("no CERTIFICATE"));
    }
}
