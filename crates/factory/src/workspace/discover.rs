//! Which repositories this host knows: folders that the owner put under `repos`, and mirrors made before.
//!
//! Never clones anything, and never takes a name for a path.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use giga_domain::Timestamp;
use parking_lot::Mutex;

use super::Workspace;
use super::error::WorkspaceError;
use super::mirror::MirrorNote;
use super::policy::{GitUrl, RepoSource, is_repo_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRepo {
    pub name: String,
    pub url: GitUrl,
    /// When a job last used the mirror; `None` while no job has.
    pub last_used_at: Option<Timestamp>,
}

impl Workspace {
    /// By name, each name once; a folder under `repos` wins over a mirror of another origin.
    pub async fn discover(&self) -> Vec<LocalRepo> {
        let mut found: Vec<LocalRepo> = Vec::new();
        for name in self.folder_names() {
            match self.folder_source(&name).await {
                Ok(Some(source)) => {
                    let last_used_at = self.last_used_at(&source);
                    found.push(LocalRepo { name, url: source.url, last_used_at });
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%name, %error, "a folder under `repos` is left out"),
            }
        }
        for source in self.mirrored().filter(|source| self.inner.policy.permits(&source.url).is_ok()) {
            let last_used_at = self.last_used_at(&source);
            found.push(LocalRepo { name: source.name, url: source.url, last_used_at });
        }
        // Stable, so folders stay before mirrors.
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|later, first| later.name == first.name);
        found
    }

    /// Which URLs may be cloned, as prefixes in one spelling.
    pub(crate) fn clones(&self) -> Vec<String> {
        self.inner.policy.clones()
    }

    /// A manifest's `repo`: a known name, or a URL that the allow-list permits.
    pub async fn resolve(&self, repo: &str) -> Result<RepoSource, WorkspaceError> {
        if is_repo_name(repo) {
            if let Some(source) = self.folder_source(repo).await? {
                return Ok(source);
            }
            let mirrored = self.mirrored().find(|source| source.name == repo);
            let source = mirrored.ok_or_else(|| WorkspaceError::UnknownRepo(repo.to_owned()))?;
            self.inner.policy.permits(&source.url)?;
            return Ok(source);
        }
        let url = GitUrl::parse(repo)?;
        // A known repository may be named by its URL, too.
        for name in self.folder_names() {
            if let Ok(Some(source)) = self.folder_source(&name).await
                && source.url == url
            {
                return Ok(source);
            }
        }
        self.inner.policy.permits(&url)?;
        Ok(RepoSource::new(url.short_name(), url.clone()))
    }

    fn folder_names(&self) -> Vec<String> {
        let Some(repos) = &self.inner.policy.repos else { return Vec::new() };
        let names = std::fs::read_dir(repos).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .map(|name| name.strip_suffix(".git").unwrap_or(&name).to_owned())
            .filter(|n| is_repo_name(n))
            .collect()
    }

    /// `None` when there is no repository of that name under `repos`.
    async fn folder_source(&self, name: &str) -> Result<Option<RepoSource>, WorkspaceError> {
        let Some(repos) = &self.inner.policy.repos else { return Ok(None) };
        let checkout = repos.join(name);
        let bare = repos.join(format!("{name}.git"));
        let (folder, git_dir) = if checkout.join(".git").exists() {
            (checkout.clone(), checkout.join(".git"))
        } else if let Some(dir) = [checkout, bare].into_iter().find(|dir| dir.join("HEAD").is_file()) {
            (dir.clone(), dir)
        } else {
            return Ok(None);
        };
        let folder = folder.canonicalize().map_err(WorkspaceError::io(folder))?;
        let stamp = Stamp::of(&git_dir.join("config"));
        if let Some(url) = self.inner.origins.known(&folder, stamp) {
            return Ok(Some(RepoSource::new(name, url)));
        }
        let call = self.git().at(&git_dir, format!("reading the origin of {name}"));
        let origin = call.args(["config", "--get", "remote.origin.url"]).run_any().await?;
        let url = match origin.status.code() {
            Some(0) => origin_url(&folder, &origin.text())?,
            Some(1) => GitUrl::of_folder(&folder)?,
            _ => return Err(origin.error()),
        };
        self.inner.origins.remember(folder, stamp, &url);
        Ok(Some(RepoSource::new(name, url)))
    }

    pub(crate) fn mirrored(&self) -> impl Iterator<Item = RepoSource> + use<> {
        let entries = std::fs::read_dir(self.inner.base.join("mirrors")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "json")).filter_map(|entry| {
            let note: MirrorNote = serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok()?;
            let source = RepoSource::new(&note.name, GitUrl::parse(&note.url).ok()?);
            (entry.path().file_stem()?.to_str()? == source.slug).then_some(source)
        })
    }

    pub(crate) fn last_used_at(&self, source: &RepoSource) -> Option<Timestamp> {
        let note = self.inner.base.join("mirrors").join(format!("{}.json", source.slug));
        let modified = std::fs::metadata(note).ok()?.modified().ok()?;
        let millis = modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
        i64::try_from(millis).ok().map(Timestamp::from_millis)
    }
}

/// Origins as they were last read: a heartbeat looks at every folder, and git is asked again only about one whose
/// configuration has changed.
#[derive(Debug, Default)]
pub(crate) struct Origins(Mutex<HashMap<PathBuf, (Stamp, GitUrl)>>);

/// When a file was written and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    bytes: u64,
}

impl Stamp {
    /// `None` for what cannot be remembered, such as a work tree whose repository is elsewhere.
    fn of(file: &Path) -> Option<Self> {
        let found = std::fs::metadata(file).ok()?;
        Some(Self { modified: found.modified().ok()?, bytes: found.len() })
    }
}

impl Origins {
    fn known(&self, folder: &Path, stamp: Option<Stamp>) -> Option<GitUrl> {
        let all = self.0.lock();
        all.get(folder).filter(|(seen, _)| Some(*seen) == stamp).map(|(_, url)| url.clone())
    }

    fn remember(&self, folder: PathBuf, stamp: Option<Stamp>, url: &GitUrl) {
        let mut all = self.0.lock();
        match stamp {
            Some(stamp) => all.insert(folder, (stamp, url.clone())),
            None => all.remove(&folder),
        };
    }
}

/// The origin of a checkout may be a path, also one beside it.
fn origin_url(folder: &Path, origin: &str) -> Result<GitUrl, WorkspaceError> {
    match GitUrl::parse(origin) {
        Ok(url) => Ok(url),
        Err(error) => match folder.join(origin).canonicalize() {
            Ok(path) if !origin.contains("::") => GitUrl::of_folder(&path),
            _ => Err(error),
        },
    }
}
