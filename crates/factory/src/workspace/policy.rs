//! Which repositories a factory may touch: URLs by an allow-list, names by what is known on the host.
//!
//! Never asks git what a URL means. Whatever this grammar does not understand is refused, so `ext::`, options
//! dressed as hosts, paths that climb and passwords in manifests end here.

use std::ffi::OsString;
use std::fmt;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use giga_domain::factory::is_below;
use sha2::{Digest, Sha256};

use super::error::WorkspaceError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Https,
    Ssh,
    File,
}

impl Protocol {
    /// As `GIT_ALLOW_PROTOCOL` spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

/// Who the factory's own commits are by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// Who a single commit is by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    pub email: String,
    /// As git writes it; now if there is none.
    pub date: Option<String>,
}

impl Author {
    /// `Name <address>`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, email) = text.strip_suffix('>')?.split_once(" <")?;
        giga_domain::manifest::is_author(text).then(|| Self {
            name: name.to_owned(),
            email: email.to_owned(),
            date: None,
        })
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self { name: "Gigafactory".to_owned(), email: "factory@gigafactory.invalid".to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitPolicy {
    pub protocols: Vec<Protocol>,
    /// URLs that a manifest may name, as prefixes that end at a `/`: `https://github.com/org`, `git@host:org`,
    /// or a whole protocol such as `https://`. Empty means none: then only known repositories are used.
    pub allowed: Vec<String>,
    /// A folder whose sub-folders are repositories by their names. Its owner put them there, so their origins
    /// need no place on the allow-list.
    pub repos: Option<PathBuf>,
    /// A branch that is checked out in a folder without an origin may be moved there, with its files, while they are
    /// unchanged.
    pub update_checkouts: bool,
    pub identity: Identity,
    /// Files that git-lfs tracks are checked out with their contents, if it is installed.
    pub large_files: bool,
    pub network_timeout: Duration,
    pub local_timeout: Duration,
}

impl Default for GitPolicy {
    fn default() -> Self {
        Self {
            protocols: vec![Protocol::Https, Protocol::Ssh],
            allowed: Vec::new(),
            repos: None,
            update_checkouts: false,
            identity: Identity::default(),
            large_files: true,
            network_timeout: Duration::from_mins(10),
            local_timeout: Duration::from_mins(5),
        }
    }
}

impl GitPolicy {
    /// Whether every prefix is one.
    pub fn check_prefixes(&self) -> Result<(), WorkspaceError> {
        self.allowed.iter().try_for_each(|prefix| canonical_prefix(prefix).map(drop))
    }

    /// What may be cloned, in the spelling that the coordinator matches by. As many as it takes: more than that say nothing.
    pub(crate) fn clones(&self) -> Vec<String> {
        let prefixes = self.allowed.iter().filter_map(|prefix| canonical_prefix(prefix).ok());
        let prefixes: Vec<String> = prefixes.collect();
        if prefixes.len() > giga_domain::limits::FACTORY_CLONES { Vec::new() } else { prefixes }
    }

    pub(crate) fn permits(&self, url: &GitUrl) -> Result<(), WorkspaceError> {
        if !self.protocols.contains(&url.protocol) {
            let rule = format!("the protocol {} is not allowed on this factory", url.protocol.as_str());
            return Err(WorkspaceError::refused("repository", &url.text, rule));
        }
        let allowed = self.allowed.iter().filter_map(|prefix| canonical_prefix(prefix).ok());
        if allowed.into_iter().any(|prefix| is_below(&url.canonical, &prefix)) {
            return Ok(());
        }
        let rule = "it is not on this factory's allow-list of git URLs (`allowed` in its configuration)";
        Err(WorkspaceError::refused("repository", &url.text, rule))
    }
}

/// A URL that passed the grammar.
#[derive(Clone, PartialEq, Eq)]
pub struct GitUrl {
    text: String,
    protocol: Protocol,
    /// Scheme, host and path alone, the host in lower case: what prefixes and mirrors are matched by.
    canonical: String,
}

impl GitUrl {
    pub fn parse(text: &str) -> Result<Self, WorkspaceError> {
        let rule = "a git URL is https://host/path, ssh://user@host/path, git@host:path or file:///path, without \
                    a password, `..`, `?` or `#`";
        Self::split(text).ok_or_else(|| WorkspaceError::refused("repository", text, rule))
    }

    fn split(text: &str) -> Option<Self> {
        if text.len() > 400 || text.contains('\\') || !text.chars().all(|c| c.is_ascii_graphic()) {
            return None;
        }
        let (protocol, canonical) = if let Some(path) = text.strip_prefix("file:///") {
            (Protocol::File, format!("file:///{}", checked_path(path)?))
        } else if let Some(rest) = text.strip_prefix("https://") {
            let (authority, path) = rest.split_once('/')?;
            (Protocol::Https, format!("https://{}/{}", checked_authority(authority)?, checked_path(path)?))
        } else if let Some(rest) = text.strip_prefix("ssh://") {
            let (authority, path) = rest.split_once('/')?;
            (Protocol::Ssh, format!("ssh://{}/{}", checked_authority(authority)?, checked_path(path)?))
        } else {
            let (authority, path) = text.split_once(':')?;
            // Without a user it could be anything, `ext::…` included.
            authority.contains('@').then_some(())?;
            let host = checked_authority(authority)?;
            (Protocol::Ssh, format!("ssh://{host}/{}", checked_path(path.trim_start_matches('/'))?))
        };
        Some(Self { text: text.to_owned(), protocol, canonical })
    }

    /// The URL of a folder on this host, with what a URL cannot hold percent-encoded.
    pub(crate) fn of_folder(path: &Path) -> Result<Self, WorkspaceError> {
        let mut text = "file://".to_owned();
        for byte in path.as_os_str().as_encoded_bytes() {
            if byte.is_ascii_alphanumeric() || b"/._-+~@".contains(byte) {
                text.push(char::from(*byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
        Self::parse(&text)
    }

    /// The folder of this host that it names.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let path = self.canonical.strip_prefix("file://")?;
        let mut bytes = Vec::with_capacity(path.len());
        let mut parts = path.split('%');
        bytes.extend(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            // Every escape was checked when the URL was parsed.
            bytes.extend(const_hex::decode_to_array::<_, 1>(part.get(..2)?).ok()?);
            bytes.extend(&part.as_bytes()[2..]);
        }
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// One spelling for all that mean the same.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The last part of the path without `.git`: the name that the scheduler goes by, too.
    pub fn short_name(&self) -> &str {
        let path = self.canonical.trim_end_matches('/');
        let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
        last.strip_suffix(".git").unwrap_or(last)
    }

    /// `None` for a folder of this host.
    pub(crate) fn host_and_path(&self) -> Option<(&str, &str)> {
        let rest =
            self.canonical.strip_prefix("https://").or_else(|| self.canonical.strip_prefix("ssh://"))?;
        rest.split_once('/')
    }

    /// A folder name for the mirror: readable, safe everywhere, and another for every other URL.
    pub(crate) fn slug(&self) -> String {
        let digest = Sha256::digest(self.canonical.as_bytes());
        let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let mut slug: String = self.short_name().chars().take(40).map(safe).collect();
        slug.push('-');
        slug.push_str(&const_hex::encode(&digest[..8]));
        slug
    }
}

impl fmt::Display for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for GitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `[user@]host[:port]` without the user, the host in lower case.
fn checked_authority(authority: &str) -> Option<String> {
    let (user, host) = authority.split_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let user_ok = |user: &str| {
        user.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && user.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
    };
    let host_ok = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'));
    (user.is_none_or(user_ok) && host_ok).then(|| host.to_ascii_lowercase())
}

fn checked_path(path: &str) -> Option<&str> {
    let legal = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '~' | '/' | '@' | '%' | '=')
    };
    let segments_ok = || path.split('/').all(|s| s != ".." && s != "." && !s.starts_with('-'));
    (!path.is_empty()
        && !path.starts_with('/')
        && path.chars().all(legal)
        && segments_ok()
        && escapes_ok(path))
    .then_some(path)
}

/// Every `%` begins an escape, and none hides a dot, a slash, a backslash or a control character.
fn escapes_ok(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        let decoded = rest.get(..2).and_then(|digits| const_hex::decode_to_array(digits).ok());
        decoded.is_some_and(|[byte]| byte >= 0x20 && byte != 0x7f && !b"./\\".contains(&byte))
    })
}

pub(crate) fn canonical_prefix(prefix: &str) -> Result<String, WorkspaceError> {
    if matches!(prefix, "https://" | "ssh://" | "file:///") {
        return Ok(prefix.to_owned());
    }
    // A host alone stands for everything on it.
    let with_path = |suffix: &str| GitUrl::split(&format!("{}{suffix}", prefix.trim_end_matches('/')));
    if let Some(url) = GitUrl::split(prefix.trim_end_matches('/')) {
        return Ok(url.canonical);
    }
    if let Some(url) = with_path("/x").or_else(|| with_path("x")) {
        return Ok(url.canonical.strip_suffix('x').unwrap_or(&url.canonical).to_owned());
    }
    Err(WorkspaceError::refused(
        "allowed URL",
        prefix,
        "a prefix such as https://github.com/org or git@host:org",
    ))
}

/// A repository that may be used: what it is called, where it comes from, where its mirror is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoSource {
    pub name: String,
    pub url: GitUrl,
    pub(crate) slug: String,
    /// The owner's folder whose origin it is, where they work on it themselves.
    pub checkout: Option<PathBuf>,
}

impl RepoSource {
    pub(crate) fn new(name: &str, url: GitUrl) -> Self {
        let slug = url.slug();
        Self { name: name.to_owned(), url, slug, checkout: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str]) -> GitPolicy {
        let protocols = vec![Protocol::Https, Protocol::Ssh, Protocol::File];
        GitPolicy {
            protocols,
            allowed: allowed.iter().map(|s| (*s).to_owned()).collect(),
            ..GitPolicy::default()
        }
    }

    #[test]
    fn urls_that_git_could_misread_are_refused() {
        for bad in [
            "",
            "-x",
            "--upload-pack=touch",
            "ext::sh -c id",
            "ext::sh%20-c%20id",
            "fd::17",
            "http://host/x",
            "git://host/x",
            "HTTPS://host/x",
            "https://-oProxyCommand=id/x",
            "ssh://-oProxyCommand=id/x",
            "ssh://u@-oProxyCommand=id/x",
            "-oProxyCommand=id@host:x",
            "git@-host:x",
            "git@host:-x",
            "git@host:",
            "host:path",
            "https://user:password@host/x",
            "https://a@b@c/x",
            "https://host/a/../b",
            "https://host/a/%2e%2e/b",
            "https://host/a%2Fb",
            "https://host/a%00b",
            "https://host/a%0ab",
            "https://host/a%",
            "https://host/a%zz",
            "https://host/a?b",
            "https://host/a#b",
            "https://host/a b",
            "https://host/a\nb",
            "https://host/a\0b",
            "https://host//a",
            "file://host/x",
            "file:///",
            "file:////x",
            "/srv/x",
            "./x",
            "https://host/é",
        ] {
            assert!(GitUrl::parse(bad).is_err(), "{bad:?}");
        }
        assert!(GitUrl::parse(&format!("https://host/{}", "x".repeat(400))).is_err());
    }

    #[test]
    fn a_user_in_a_url_is_no_host() {
        let url = GitUrl::parse("https://github.com@evil.example/org/app").unwrap();
        assert!(policy(&["https://github.com"]).permits(&url).is_err());
        let url = GitUrl::parse("https://me@GitHub.com/org/app").unwrap();
        assert!(policy(&["https://github.com"]).permits(&url).is_ok());
    }

    #[test]
    fn prefixes_end_at_a_slash() {
        let permits =
            |prefix: &str, url: &str| policy(&[prefix]).permits(&GitUrl::parse(url).unwrap()).is_ok();
        assert!(permits("https://github.com/org", "https://github.com/org/app.git"));
        assert!(permits("https://github.com/org/", "https://github.com/org/app"));
        assert!(!permits("https://github.com/org", "https://github.com/organism/app"));
        assert!(!permits("https://github.com", "https://github.com.evil.example/x"));
        assert!(permits("https://github.com/org/app", "https://github.com/org/app.git"));
        assert!(permits("git@host:org", "ssh://git@host/org/app"));
        assert!(permits("ssh://git@host/org", "git@host:org/app.git"));
        assert!(permits("git@host:", "git@host:anything/app"));
        assert!(!permits("https://host/org", "ssh://host/org/app"), "another protocol is another permission");
        assert!(permits("https://", "https://anything/x") && !permits("https://", "ssh://anything/x"));
        assert!(permits("file:///srv/git", "file:///srv/git/x.git"));
        assert!(!permits("file:///srv/git", "file:///srv/gitlab/x.git"));
    }

    #[test]
    fn nothing_is_allowed_unless_somebody_said_so() {
        let url = GitUrl::parse("https://github.com/org/app").unwrap();
        assert!(GitPolicy::default().permits(&url).is_err());
        let file = GitUrl::parse("file:///etc").unwrap();
        let default = GitPolicy { allowed: vec!["file:///".to_owned()], ..GitPolicy::default() };
        assert!(default.permits(&file).is_err(), "the protocol counts too");
        assert!(policy(&["ext::sh"]).check_prefixes().is_err());
        assert!(policy(&["https://github.com/org", "git@host:", "https://host"]).check_prefixes().is_ok());
    }

    #[test]
    fn folders_become_urls_and_mirrors_have_names_of_their_own() {
        let url = GitUrl::of_folder(Path::new("/srv/my repos/ä%x")).unwrap();
        assert_eq!(url.as_str(), "file:///srv/my%20repos/%C3%A4%25x");
        assert_eq!(url.folder().unwrap(), Path::new("/srv/my repos/ä%x"));
        let one = GitUrl::parse("https://host/a/App.git").unwrap();
        let two = GitUrl::parse("https://host/b/App.git").unwrap();
        assert_eq!((one.short_name(), one.folder()), ("App", None));
        assert!(one.slug().starts_with("app-") && one.slug() != two.slug());
    }
}
