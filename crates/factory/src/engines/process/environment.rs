//! The environment of an engine, built up from nothing.
//!
//! Nothing is inherited: what is not on a list here is not there. No variable of ours (`GIGA_…`) ever comes from the
//! factory's own environment, whatever the operator's configuration says; the run's own come with the request.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Enough to find programs, a home, a language and a place for temporary files.
const BASE: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

const OURS: &str = "GIGA_";

/// The factory's environment as it was when the engines were made.
#[derive(Clone, Default)]
pub struct HostEnvironment(BTreeMap<OsString, OsString>);

impl HostEnvironment {
    pub fn of_this_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// What an engine gets: the base, the named variables, and then `own`, which is stronger.
    pub(crate) fn for_engine<'a>(
        &self,
        pass: impl IntoIterator<Item = &'a str>,
        own: &[(String, String)],
    ) -> BTreeMap<OsString, OsString> {
        let passed = BASE.into_iter().chain(pass).filter(|name| !name.starts_with(OURS));
        let mut environment: BTreeMap<OsString, OsString> = passed
            .filter_map(|name| Some((OsString::from(name), self.0.get(OsStr::new(name))?.clone())))
            .collect();
        environment.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
        environment
    }

    /// The program as a path: itself when it has a folder, otherwise the first match on the PATH.
    pub(crate) fn find_program(&self, program: &Path) -> Option<PathBuf> {
        let is_program = |path: &PathBuf| path.is_file() && is_executable(path);
        if program.components().count() > 1 {
            return Some(program.to_owned()).filter(is_program);
        }
        let path = self.get("PATH")?;
        std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(is_program)
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for HostEnvironment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Names only: the values are what must not be shown.
impl std::fmt::Debug for HostEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_along_that_is_not_listed() {
        let host: HostEnvironment = [
            ("PATH", "/bin"),
            ("GIGA_TOKEN", "secret"),
            ("DATABASE_URL", "secret"),
            ("ANTHROPIC_API_KEY", "key"),
            ("SSH_AUTH_SOCK", "/run/agent"),
        ]
        .into_iter()
        .collect();
        let own = [("GIGA_JOB_ID".to_owned(), "J".to_owned()), ("PATH".to_owned(), "/own".to_owned())];
        let environment = host.for_engine(["ANTHROPIC_API_KEY", "GIGA_TOKEN"], &own);
        let names: Vec<_> = environment.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["ANTHROPIC_API_KEY", "GIGA_JOB_ID", "PATH"]);
        assert_eq!(environment[OsStr::new("PATH")], "/own");
    }

    #[test]
    fn debugging_shows_no_value() {
        let host: HostEnvironment = [("NAME", "value")].into_iter().collect();
        assert_eq!(format!("{host:?}"), r#"{"NAME"}"#);
    }
}
