//! Certificates of a CA that a test makes for itself.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

/// A CA. Its own certificate, and those that it issues, are files in a folder that goes with it.
#[derive(Debug)]
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, both PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Issued {
    /// Takes the place of another, as whoever renews certificates does: key first, then the certificate.
    pub fn replace(&self, other: &Self) {
        let into = |from: &Path, to: &Path| {
            let aside = to.with_extension("aside");
            std::fs::copy(from, &aside).unwrap();
            std::fs::rename(aside, to).unwrap();
        };
        into(&self.key, &other.key);
        into(&self.cert, &other.cert);
    }
}

impl Authority {
    #[expect(clippy::new_without_default, reason = "makes files")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "a CA of the tests");
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// Whom to trust, as a file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub fn pem(&self) -> Vec<u8> {
        std::fs::read(self.file()).unwrap()
    }

    /// For these names and addresses, kept under a name of its own.
    pub fn issue(&self, name: &str, subjects: &[&str]) -> Issued {
        self.sign(name, subjects, |_| {})
    }

    pub fn issue_expired(&self, name: &str, subjects: &[&str]) -> Issued {
        self.sign(name, subjects, |params| params.not_after = date_time_ymd(2020, 1, 1))
    }

    fn sign(&self, name: &str, subjects: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let subjects: Vec<String> = subjects.iter().map(|subject| (*subject).to_owned()).collect();
        let mut params = CertificateParams::new(subjects).unwrap();
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2099, 1, 1);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let path = |kind: &str| self.folder.path().join(format!("{name}.{kind}.pem"));
        std::fs::write(path("cert"), cert.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        Issued { cert: path("cert"), key: path("key") }
    }
}
