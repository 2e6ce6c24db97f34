//! How tokens travel: what a client asks of the way to its coordinator, and how a coordinator proves itself.

use std::path::PathBuf;

use giga_api::client::Trust;

use super::{Key, Setting, Settings};
use crate::exit::CliError;

/// With fewer, a few factories and a page would be in each other's way.
const LEAST_CONNECTIONS: usize = 16;

/// Where a coordinator has its certificate from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tls {
    Files { cert: PathBuf, key: PathBuf },
    Acme { domain: String, directory: String },
}

impl Settings {
    pub(crate) fn trust(&self) -> Result<Trust, CliError> {
        let read = |Setting { value, origin }: Setting<String>| match std::fs::read(&value) {
            Ok(pem) if String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") => Ok(pem),
            Ok(_) => Err(CliError::Config(format!("{origin}: {value} has no CERTIFICATE in PEM"))),
            Err(error) => Err(CliError::Config(format!("{origin}: cannot read {value}: {error}"))),
        };
        Ok(Trust {
            allow_plain_http: self.allow_plain_http()?.value,
            ca_cert: self.get(Key::CaCert).map(read).transpose()?,
        })
    }

    pub(crate) fn allow_plain_http(&self) -> Result<Setting<bool>, CliError> {
        self.switch(Key::AllowPlainHttp)
    }

    /// Where `/metrics` is served without a token; nowhere by default.
    pub(crate) fn metrics_listen(&self) -> Option<Setting<String>> {
        self.get(Key::MetricsListen)
    }

    /// None where it follows from how many files a process may have open.
    pub(crate) fn max_connections(&self) -> Result<Option<usize>, CliError> {
        let Some(Setting { value, origin }) = self.get(Key::MaxConnections) else { return Ok(None) };
        match value.parse() {
            Ok(count) if count >= LEAST_CONNECTIONS => Ok(Some(count)),
            _ => Err(CliError::Config(format!(
                "{origin}: `{value}` is not a number of connections, {LEAST_CONNECTIONS} or more"
            ))),
        }
    }

    /// None where the coordinator speaks plain HTTP.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, CliError> {
        let [cert, key, domain] = [Key::TlsCert, Key::TlsKeyFile, Key::TlsAcme].map(|key| self.get(key));
        let wrong = |set: &Setting<String>, text: String| CliError::Config(format!("{}: {text}", set.origin));
        let alone = |set: &Setting<String>, has: Key, needs: Key| {
            let text = format!("`{}` needs `{}` too ({})", has.name(), needs.name(), needs.flag());
            Err(wrong(set, text))
        };
        match (cert, key, domain) {
            (None, None, None) => Ok(None),
            (Some(cert), Some(key), None) => {
                Ok(Some(Tls::Files { cert: cert.value.into(), key: key.value.into() }))
            }
            (Some(cert), None, None) => alone(&cert, Key::TlsCert, Key::TlsKeyFile),
            (None, Some(key), None) => alone(&key, Key::TlsKeyFile, Key::TlsCert),
            (None, None, Some(domain)) if !is_domain(&domain.value) => {
                let text = format!("`{}` is not a domain such as giga.example.com", domain.value);
                Err(wrong(&domain, text))
            }
            (None, None, Some(domain)) => {
                let directory = self.tls_acme_directory();
                if !directory.value.starts_with("https://") {
                    let text = format!("`{}` is not an https:// URL", directory.value);
                    return Err(wrong(&directory, text));
                }
                Ok(Some(Tls::Acme { domain: domain.value, directory: directory.value }))
            }
            (_, _, Some(domain)) => {
                let text = "use either `tls-acme`, or `tls-cert` with `tls-key`".to_owned();
                Err(wrong(&domain, text))
            }
        }
    }

    pub(crate) fn tls_acme_directory(&self) -> Setting<String> {
        self.get_or(Key::TlsAcmeDirectory, giga_server::LETS_ENCRYPT)
    }
}

/// Names only: no CA vouches for an address or for every name at once.
fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253
        && text.contains('.')
        && text.split('.').all(label)
        && text.parse::<std::net::IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_a_name() {
        for right in ["giga.example.com", "a-b.example"] {
            assert!(is_domain(right), "{right}");
        }
        for wrong in
            ["", "localhost", "127.0.0.1", "*.example.com", "a..b", "-a.b", "https://a.b", "a.b:443", "a.b/"]
        {
            assert!(!is_domain(wrong), "{wrong}");
        }
    }
}
