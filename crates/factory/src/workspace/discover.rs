//! Which repositories this host knows: those under the owner's folder, and mirrors made before.
//!
//! Never clones anything.

use giga_domain::Timestamp;
use giga_domain::repo::{is_repo_name, meant_by};

use super::Workspace;
use super::error::WorkspaceError;
use super::folders::Folders;
use super::mirror::MirrorNote;
use super::policy::{GitUrl, RepoSource};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRepo {
    pub name: String,
    pub url: GitUrl,
    /// When a job last used the mirror; `None` while no job has.
    pub last_used_at: Option<Timestamp>,
    /// Where results will go, in words.
    pub merges_into: String,
}

impl Workspace {
    /// By name, each name once; a folder under `repos` wins over a mirror of another origin.
    pub async fn discover(&self) -> Vec<LocalRepo> {
        let survey = self.folders().survey().await;
        for skipped in &survey.skipped {
            tracing::debug!(name = skipped.name, why = skipped.why, "a folder under `repos` is left out");
        }
        let folders: Vec<&RepoSource> = survey.found.iter().map(|found| &found.source).collect();
        let mirrors = self.known_mirrors(|mirror| folders.iter().any(|folder| folder.slug == mirror.slug));
        let mirrors = mirrors.into_iter().map(|source| {
            let merges_into = format!("the default branch of {}", source.url);
            (source, merges_into)
        });
        let all = survey.found.iter().map(|found| (found.source.clone(), found.merges_into.clone()));
        let mut found: Vec<LocalRepo> = all
            .chain(mirrors)
            .map(|(source, merges_into)| LocalRepo {
                last_used_at: self.last_used_at(&source),
                name: source.name,
                url: source.url,
                merges_into,
            })
            .collect();
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
            return self.resolve_name(repo).await;
        }
        let url = GitUrl::parse(repo)?;
        // A known repository may be named by its URL, too.
        let survey = self.folders().survey().await;
        if let Some(found) = survey.found.into_iter().find(|found| found.source.url == url) {
            return Ok(found.source);
        }
        self.inner.policy.permits(&url)?;
        Ok(RepoSource::new(url.short_name(), url.clone()))
    }

    async fn resolve_name(&self, repo: &str) -> Result<RepoSource, WorkspaceError> {
        let folders = self.folders();
        let (places, _) = folders.walk().await;
        let mirrors = self.known_mirrors(|_| false);
        let names = places.iter().map(|place| place.name.as_str());
        let known = names.chain(mirrors.iter().map(|mirror| mirror.name.as_str()));
        let name = match *meant_by(repo, known) {
            [name] => name,
            [] => {
                // Its mirror may be here, but not the permission to use it.
                let mirror = self.mirrored().find(|source| source.name == repo);
                let denied = mirror.and_then(|mirror| self.inner.policy.permits(&mirror.url).err());
                return Err(denied.unwrap_or_else(|| unknown(repo)));
            }
            ref several => {
                let rule = format!("it could be {}; name one of them in full", several.join(" or "));
                return Err(WorkspaceError::refused("repository", repo, rule));
            }
        };
        if let Some(place) = places.iter().find(|place| place.name == name) {
            return folders.look(place).await.map(|found| found.source);
        }
        let mirror = mirrors.iter().find(|mirror| mirror.name == name);
        mirror.cloned().ok_or_else(|| unknown(repo))
    }

    fn folders(&self) -> Folders<'_> {
        Folders { git: self.git(), policy: &self.inner.policy, seen: &self.inner.seen }
    }

    /// Mirrors that the allow-list permits today.
    fn known_mirrors(&self, is_known: impl Fn(&RepoSource) -> bool) -> Vec<RepoSource> {
        let permitted = |source: &RepoSource| self.inner.policy.permits(&source.url).is_ok();
        let named = self.mirror_notes().filter(|(_, note)| !note.only_submodule);
        named.map(|(source, _)| source).filter(|source| permitted(source) && !is_known(source)).collect()
    }

    pub(crate) fn mirrored(&self) -> impl Iterator<Item = RepoSource> + use<> {
        self.mirror_notes().map(|(source, _)| source)
    }

    fn mirror_notes(&self) -> impl Iterator<Item = (RepoSource, MirrorNote)> + use<> {
        let entries = std::fs::read_dir(self.inner.base.join("mirrors")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "json")).filter_map(|entry| {
            let note: MirrorNote = serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok()?;
            let source = RepoSource::new(&note.name, GitUrl::parse(&note.url).ok()?);
            (entry.path().file_stem()?.to_str()? == source.slug).then_some((source, note))
        })
    }

    pub(crate) fn last_used_at(&self, source: &RepoSource) -> Option<Timestamp> {
        let note = self.inner.base.join("mirrors").join(format!("{}.json", source.slug));
        let modified = std::fs::metadata(note).ok()?.modified().ok()?;
        let millis = modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
        i64::try_from(millis).ok().map(Timestamp::from_millis)
    }
}

fn unknown(repo: &str) -> WorkspaceError {
    WorkspaceError::UnknownRepo(repo.to_owned())
}
