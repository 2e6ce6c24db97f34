//! The private home of a run: empty, but for what its engine needs of its owner's.
//!
//! Made anew for every process, so that nothing in it was put there by a job and what is copied goes where it should.
//! Copies, because an engine writes to its own settings, and a job must not write to the operator's.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use giga_domain::SecretPlace;
use giga_domain::secret::is_home_file;
use serde::Deserialize;

use crate::engines::{HomeSettings, HostEnvironment, JobSecret, merge};

/// A folder of the operator's home that belongs to an engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HomeFile {
    /// Below the home; empty for the home itself.
    pub(crate) folder: &'static str,
    /// A variable that says where the folder is instead, and what to add to its value.
    pub(crate) variable: Option<(&'static str, &'static str)>,
    /// Files in it that are copied: its settings and its account.
    pub(crate) copied: &'static [&'static str],
    /// Folders in it that a later run of the same job finds again: its sessions.
    pub(crate) kept: &'static [&'static str],
}

/// The same, as an operator writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, try_from = "HomeFolderText")]
pub struct HomeFolder {
    /// Below the home.
    pub folder: String,
    /// Files in it that are copied: settings and account.
    pub copied: Vec<String>,
    /// Folders in it that a later run of the same job finds again: sessions.
    pub kept: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct HomeFolderText {
    folder: String,
    #[serde(default)]
    copied: Vec<String>,
    #[serde(default)]
    kept: Vec<String>,
}

impl TryFrom<HomeFolderText> for HomeFolder {
    type Error = String;

    fn try_from(text: HomeFolderText) -> Result<Self, String> {
        let HomeFolderText { folder, copied, kept } = text;
        let bad = [&folder].into_iter().chain(&copied).chain(&kept).find(|path| !is_home_file(path));
        if let Some(bad) = bad {
            return Err(format!("`{bad}` is no path below the home, such as `.config/agent`"));
        }
        Ok(Self { folder, copied, kept })
    }
}

/// Where things of the operator's are, as the variables have it; inside, they would lead nowhere.
const PLACES: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
];

pub(super) fn is_place(variable: &std::ffi::OsStr) -> bool {
    PLACES.iter().any(|place| variable == *place)
}

/// The next free name: what an earlier process of the job left behind is not gone back to.
pub(super) fn create(wanted: &Path) -> io::Result<PathBuf> {
    let mut path = wanted.to_owned();
    for number in 2.. {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
        let mut next = OsString::from(wanted);
        next.push(format!("-{number}"));
        path = next.into();
    }
    unreachable!("numbers do not end")
}

/// Copies what the engine needs, and answers where the folders it keeps belong: (kept in, seen at).
pub(super) fn fill(
    home: &Path,
    files: &[HomeFile],
    folders: &[HomeFolder],
    kept: Option<&Path>,
    host: &HostEnvironment,
) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut bound = Vec::new();
    for file in files {
        fill_one(home, file.folder, source(file, host), file.copied, file.kept, kept, &mut bound)?;
    }
    let operators = host.get("HOME").map(Path::new);
    for HomeFolder { folder, copied, kept: sessions } in folders {
        let from = operators.map(|home| home.join(folder));
        fill_one(home, folder, from, copied, sessions, kept, &mut bound)?;
    }
    Ok(bound)
}

fn fill_one<S: AsRef<Path>>(
    home: &Path,
    folder: &str,
    from: Option<PathBuf>,
    copied: &[S],
    sessions: &[S],
    kept: Option<&Path>,
    bound: &mut Vec<(PathBuf, PathBuf)>,
) -> io::Result<()> {
    let to = home.join(folder);
    let private = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder);
    for name in copied {
        let Some(source) = from.as_ref().map(|from| from.join(name)).filter(|source| source.is_file()) else {
            continue;
        };
        let to = to.join(name);
        to.parent().map_or(Ok(()), private)?;
        std::fs::copy(&source, &to)?;
        std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600))?;
    }
    for name in sessions {
        let seen = to.join(name);
        private(&seen)?;
        if let Some(kept) = kept {
            let store = kept.join(folder).join(name);
            private(&store)?;
            bound.push((store, seen));
        }
    }
    Ok(())
}

/// Into the copy of the operator's settings, where there is one. One that is no plain JSON is left as it is: an engine that can
/// sign in is worth more than a tool.
pub(super) fn add_settings(home: &Path, added: Option<&HomeSettings>) -> io::Result<()> {
    let Some(HomeSettings { file, settings }) = added else { return Ok(()) };
    let path = home.join(file);
    let mut whole = match std::fs::read_to_string(&path) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(whole) => whole,
            Err(error) => {
                tracing::warn!(file, %error, "the engine is not told of the job's tools: its settings are no plain JSON");
                return Ok(());
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => serde_json::json!({}),
        Err(error) => return Err(error),
    };
    merge(&mut whole, settings.clone());
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    std::fs::write(&path, whole.to_string())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
}

/// Secrets that a job wants as files, for its owner alone. The home is new: nothing in it was put there by the job, so no
/// link leads out of it. One takes the place of what the engine was given under that name.
pub(super) fn put_secrets(home: &Path, secrets: &[JobSecret]) -> io::Result<()> {
    for secret in secrets {
        let SecretPlace::File(path) = &secret.place else { continue };
        let path = home.join(path);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&secret.value)?;
    }
    Ok(())
}

fn source(file: &HomeFile, host: &HostEnvironment) -> Option<PathBuf> {
    let named = file.variable.and_then(|(name, below)| Some(Path::new(host.get(name)?).join(below)));
    named.or_else(|| Some(Path::new(host.get("HOME")?).join(file.folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [HomeFile; 1] = [HomeFile {
        folder: ".tool",
        variable: Some(("TOOL_HOME", "")),
        copied: &["account.json", "missing.json"],
        kept: &["sessions"],
    }];

    #[test]
    fn only_what_is_named_comes_along() {
        let owner = tempfile::tempdir().unwrap();
        std::fs::create_dir(owner.path().join(".tool")).unwrap();
        for name in ["account.json", "history.json"] {
            std::fs::write(owner.path().join(".tool").join(name), name).unwrap();
        }
        let run = tempfile::tempdir().unwrap();
        let host: HostEnvironment = [("HOME", owner.path())].into_iter().collect();
        let home = create(&run.path().join("home")).unwrap();
        let bound = fill(&home, &FILES, &[], Some(&run.path().join("kept")), &host).unwrap();
        assert_eq!(std::fs::read_to_string(home.join(".tool/account.json")).unwrap(), "account.json");
        assert!(!home.join(".tool/history.json").exists());
        assert_eq!(bound, [(run.path().join("kept/.tool/sessions"), home.join(".tool/sessions"))]);
        let second = create(&run.path().join("home")).unwrap();
        assert_eq!(second, run.path().join("home-2"), "a home that was used is not used again");
    }

    #[test]
    fn secrets_are_for_their_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".npmrc"), "the engine's").unwrap();
        let secret = |path: &str| JobSecret {
            name: "KEY".parse().unwrap(),
            place: SecretPlace::File(path.to_owned()),
            value: b"hunter22".to_vec().into(),
        };
        put_secrets(home.path(), &[secret(".npmrc"), secret(".aws/credentials")]).unwrap();
        for path in [".npmrc", ".aws/credentials"] {
            let path = home.path().join(path);
            assert_eq!(std::fs::read(&path).unwrap(), b"hunter22");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(home.path().join(".aws").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn settings_are_added_to_those_of_the_operator() {
        let home = tempfile::tempdir().unwrap();
        let added =
            HomeSettings { file: ".tool/s.json", settings: serde_json::json!({"servers": {"giga": 1}}) };
        let read = || std::fs::read_to_string(home.path().join(".tool/s.json")).unwrap();
        add_settings(home.path(), Some(&added)).unwrap();
        assert_eq!(read(), r#"{"servers":{"giga":1}}"#);
        std::fs::write(home.path().join(".tool/s.json"), r#"{"servers":{"own":2},"auth":"key"}"#).unwrap();
        add_settings(home.path(), Some(&added)).unwrap();
        assert_eq!(read(), r#"{"servers":{"own":2,"giga":1},"auth":"key"}"#);
        std::fs::write(home.path().join(".tool/s.json"), "{} // mine").unwrap();
        add_settings(home.path(), Some(&added)).unwrap();
        assert_eq!(read(), "{} // mine", "what cannot be read is not lost");
    }

    #[test]
    fn a_variable_says_where_it_is_instead() {
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("account.json"), "x").unwrap();
        let host: HostEnvironment =
            [("HOME", Path::new("/nowhere")), ("TOOL_HOME", elsewhere.path())].into_iter().collect();
        let home = tempfile::tempdir().unwrap();
        fill(home.path(), &FILES, &[], None, &host).unwrap();
        assert!(home.path().join(".tool/account.json").is_file());
        assert!(is_place("CODEX_HOME".as_ref()) && !is_place("PATH".as_ref()));
    }
}
