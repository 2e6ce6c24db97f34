//! The file with the keys that secrets of jobs are encrypted with. It is never in the database, and no key of it is shown.
//!
//! Read each time that a secret is set or used, so that a key which was added is used without a restart.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_ports::{NoSecretKeys, Randomness, SecretKey, SecretKeyError, SecretKeyRing, SecretKeys};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::config::Settings;
use crate::system::SystemRandomness;

/// In the data folder, where the store is there too.
const FILE: &str = "secrets.key";

struct KeyFile {
    path: PathBuf,
    /// Nobody named it, so it is made when the first secret is set.
    is_ours: bool,
}

/// As the settings have it: a file, or one of our own beside an embedded store.
pub(super) fn secret_keys(settings: &Settings, store: &str, data: &Path) -> Arc<dyn SecretKeys> {
    if let Some(path) = settings.secrets_key() {
        return Arc::new(KeyFile { path, is_ours: false });
    }
    // Several coordinators share a database, and none of their folders is the one.
    let is_shared = ["postgres:", "postgresql:", "cosmos:"].iter().any(|shared| store.starts_with(shared));
    if is_shared { Arc::new(NoSecretKeys) } else { in_folder(data) }
}

pub(crate) fn in_folder(data: &Path) -> Arc<dyn SecretKeys> {
    Arc::new(KeyFile { path: data.join(FILE), is_ours: true })
}

impl SecretKeys for KeyFile {
    fn to_seal(&self) -> Result<SecretKeyRing, SecretKeyError> {
        let ring = self.read()?;
        if let Some(ring) = ring.filter(|ring| !ring.0.is_empty()) {
            return Ok(ring);
        }
        if !self.is_ours {
            return Err(self.problem("it has no key in it; `openssl rand -hex 32` makes one"));
        }
        self.make().map_err(|error| self.problem(&error.to_string()))?;
        self.read()?.ok_or_else(|| self.problem("it is gone again"))
    }

    fn to_open(&self) -> Result<SecretKeyRing, SecretKeyError> {
        Ok(self.read()?.unwrap_or_default())
    }
}

impl KeyFile {
    fn problem(&self, what: &str) -> SecretKeyError {
        SecretKeyError(format!("the key file for secrets, {}: {what}", self.path.display()))
    }

    /// `None` for one of ours that is not there yet.
    fn read(&self) -> Result<Option<SecretKeyRing>, SecretKeyError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_ours => return Ok(None),
            Err(error) => return Err(self.problem(&error.to_string())),
        };
        parse(&text).map(Some).map_err(|what| self.problem(&what))
    }

    /// For its owner alone from the beginning. Somebody else may have made it at the same moment: then theirs is the key.
    fn make(&self) -> io::Result<()> {
        let key = Zeroizing::new(const_hex::encode(SystemRandomness.bytes()));
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(&self.path);
        let mut file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        };
        writeln!(
            file,
            "# Keys for the secrets of jobs; see `giga secret rotate --help`. Keep a copy elsewhere."
        )?;
        writeln!(file, "{}", *key)?;
        file.sync_all()
    }
}

/// One per line, as 64 hexadecimal digits; empty lines and those that begin with # do not count.
fn parse(text: &str) -> Result<SecretKeyRing, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let written = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let key = |(number, line): (usize, &str)| match const_hex::decode_to_array::<_, 32>(line) {
        Ok(bytes) => Ok(SecretKey { id: id_of(&bytes), bytes: Arc::new(bytes) }),
        Err(_) => Err(format!(
            "line {} is no key, which is 64 hexadecimal digits, as `openssl rand -hex 32` makes it",
            number + 1
        )),
    };
    written.map(key).collect::<Result<_, _>>().map(SecretKeyRing)
}

/// Tells keys apart and gives nothing of them away.
fn id_of(key: &[u8; 32]) -> String {
    let digest = Sha256::new_with_prefix(b"giga-secret-key-id/").chain_update(key).finalize();
    format!("k-{}", const_hex::encode(&digest[..6]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_made_when_the_first_secret_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let keys = in_folder(folder.path());
        assert!(keys.to_open().unwrap().0.is_empty());
        assert!(!folder.path().join(FILE).exists(), "looking makes nothing");
        let made = keys.to_seal().unwrap();
        assert_eq!(made.0.len(), 1);
        let mode = folder.path().join(FILE).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(keys.to_open().unwrap().0[0].id, made.0[0].id);
        assert_eq!(keys.to_seal().unwrap().0[0].id, made.0[0].id);
    }

    #[test]
    fn a_file_that_was_named_is_never_made_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile { path: folder.path().join("k"), is_ours: false };
        let text = file.to_seal().unwrap_err().to_string();
        assert!(text.contains("No such file") && text.contains("/k"), "{text}");
        std::fs::write(&file.path, "# none\n").unwrap();
        assert!(file.to_seal().unwrap_err().to_string().contains("openssl rand -hex 32"));
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        std::fs::write(&file.path, format!("# new\n{two}\n\n{one}\n")).unwrap();
        let ring = file.to_open().unwrap();
        assert_eq!((ring.0.len(), *ring.0[0].bytes), (2, [0x22; 32]));
        assert!(!format!("{ring:?}").contains("2222"));
        std::fs::write(&file.path, format!("{one}\nhunter22\n")).unwrap();
        let text = file.to_open().unwrap_err().to_string();
        assert!(text.contains("line 2") && !text.contains("hunter22"), "{text}");
    }
}
