//! Checks out the submodules of a commit, each from a mirror of its own.
//!
//! Git's own `submodule` command is never run: what a repository says about its submodules is text from a stranger. Only
//! URLs are read from it, and used only where this factory may fetch from them. Whatever cannot be had leaves its folder
//! empty and a note; it is never an error.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::Workspace;
use super::error::WorkspaceError;
use super::mirror::Mirror;
use super::policy::GitUrl;
use super::record::remove_folder;
use super::refs::CommitId;

/// Submodules of submodules of submodules; and of one work folder in all.
const DEEPEST: usize = 5;
const MOST: usize = 100;

/// Where the submodules of this commit go, and are described.
struct Super {
    tree: PathBuf,
    mirror: Mirror,
    commit: CommitId,
    /// Of the outermost, for notes.
    prefix: String,
    depth: usize,
}

struct Submodule {
    path: PathBuf,
    commit: CommitId,
}

impl Workspace {
    /// Answers whose objects the folder borrows now, by their URLs.
    pub(crate) async fn fill_submodules(
        &self,
        tree: &Path,
        mirror: &Mirror,
        commit: &CommitId,
    ) -> Result<Vec<String>, WorkspaceError> {
        let outermost = Super {
            tree: tree.to_owned(),
            mirror: mirror.clone(),
            commit: commit.clone(),
            prefix: String::new(),
            depth: 1,
        };
        let (mut open, mut borrowed, mut count) = (vec![outermost], Vec::new(), 0);
        while let Some(parent) = open.pop() {
            let described = describe(&parent).await?;
            for submodule in list(&parent).await? {
                let name = format!("{}{}", parent.prefix, submodule.path.display());
                count += 1;
                let filled = if count > MOST || parent.depth > DEEPEST {
                    let rule = format!("at most {MOST} submodules are checked out, {DEEPEST} levels deep");
                    Err(WorkspaceError::refused("submodule", &name, rule))
                } else {
                    self.fill(&parent, &submodule, &described).await
                };
                match filled {
                    Ok(mirror) => {
                        borrowed.push(mirror.url().as_str().to_owned());
                        open.push(Super {
                            tree: parent.tree.join(&submodule.path),
                            mirror,
                            commit: submodule.commit,
                            prefix: format!("{name}/"),
                            depth: parent.depth + 1,
                        });
                    }
                    Err(error) => self.notes.note(&format!("submodule {name} is left empty: {error}")),
                }
            }
        }
        borrowed.sort_unstable();
        borrowed.dedup();
        Ok(borrowed)
    }

    async fn fill(
        &self,
        parent: &Super,
        submodule: &Submodule,
        described: &BTreeMap<Vec<u8>, Described>,
    ) -> Result<Mirror, WorkspaceError> {
        let path = submodule.path.as_os_str().as_bytes();
        let described = described.get(path).ok_or_else(|| {
            let rule = "no entry in .gitmodules has this path and a URL";
            WorkspaceError::refused("submodule", &submodule.path.to_string_lossy(), rule)
        })?;
        described.check()?;
        let folder = empty_folder(&parent.tree, &submodule.path)?;
        let url = resolve(parent.mirror.url(), &described.url)?;
        let mirror = self.mirror(&self.resolve(url.as_str()).await?);
        fetch(&mirror, &submodule.commit).await?;
        if let Err(error) = self.open_at(&folder, &mirror, &submodule.commit).await {
            remove_folder(folder.clone()).await?;
            std::fs::create_dir(&folder).map_err(WorkspaceError::io(&folder))?;
            return Err(error);
        }
        Ok(mirror)
    }
}

/// Only where it is not here yet: a commit never changes.
async fn fetch(mirror: &Mirror, commit: &CommitId) -> Result<(), WorkspaceError> {
    let locked = mirror.lock().await?;
    if mirror.dir().is_dir() && locked.commit_at(commit.as_str()).await?.is_some() {
        return locked.note_use_as_submodule();
    }
    locked.refresh().await?;
    locked.note_use_as_submodule()?;
    if locked.commit_at(commit.as_str()).await?.is_none() {
        // On no branch any more; an origin may still have it.
        let wanted = format!("+{commit}:refs/giga/fetched/commit/{commit}");
        locked.fetch_refs(&[wanted]).await?.map_err(|output| locked.unreachable(output.error()))?;
    }
    Ok(())
}

/// What is committed as a submodule, whatever `.gitmodules` says.
async fn list(parent: &Super) -> Result<Vec<Submodule>, WorkspaceError> {
    let call = parent.mirror.call("looking for submodules").args(["ls-tree", "-r", "-z", "--full-tree"]);
    let listing = call.arg(parent.commit.as_str()).run().await?;
    let submodule = |line: &[u8]| {
        let rest = line.strip_prefix(b"160000 commit ")?;
        let tab = rest.iter().position(|b| *b == b'\t')?;
        let commit = std::str::from_utf8(&rest[..tab]).ok()?.parse().ok()?;
        Some(Submodule { path: PathBuf::from(OsStr::from_bytes(&rest[tab + 1..])), commit })
    };
    Ok(listing.fields().filter_map(submodule).collect())
}

/// One entry of `.gitmodules`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Described {
    name: String,
    url: String,
    update: String,
}

impl Described {
    fn check(&self) -> Result<(), WorkspaceError> {
        let refused = |what, given: &str, rule: &str| Err(WorkspaceError::refused(what, given, rule));
        if self.update.trim_start().starts_with('!') {
            return refused("submodule.update", &self.update, "no command of a repository is run");
        }
        let climbs = self.name.split(['/', '\\']).any(|part| part == "..");
        if self.name.is_empty() || climbs || self.name.starts_with(['/', '-']) {
            return refused("submodule name", &self.name, "a name that stays within its folder");
        }
        Ok(())
    }
}

/// By path. What cannot be read describes nothing.
async fn describe(parent: &Super) -> Result<BTreeMap<Vec<u8>, Described>, WorkspaceError> {
    let blob = format!("{}:.gitmodules", parent.commit);
    let call = parent.mirror.call("reading .gitmodules").args(["config", "--no-includes", "--blob", &blob]);
    let output = call.args(["-z", "--list"]).at_most(1 << 20).run_any().await?;
    Ok(if output.status.success() && !output.truncated { by_path(output.fields()) } else { BTreeMap::new() })
}

/// From `key LF value` fields; of a key that is there twice, the last counts.
fn by_path<'a>(fields: impl Iterator<Item = &'a [u8]>) -> BTreeMap<Vec<u8>, Described> {
    let mut entries: BTreeMap<String, (Vec<u8>, Described)> = BTreeMap::new();
    for field in fields {
        let mut parts = field.splitn(2, |b| *b == b'\n');
        let (Some(key), Some(value)) = (parts.next(), parts.next()) else { continue };
        let key = String::from_utf8_lossy(key);
        let Some((name, key)) = key.strip_prefix("submodule.").and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        let entry = entries.entry(name.to_owned()).or_default();
        let text = String::from_utf8_lossy(value).into_owned();
        name.clone_into(&mut entry.1.name);
        match key {
            "path" => entry.0 = value.to_vec(),
            "url" => entry.1.url = text,
            "update" => entry.1.update = text,
            _ => {}
        }
    }
    entries.into_values().filter(|(_, described)| !described.url.is_empty()).collect()
}

/// The folder that the checkout made for the submodule: nothing but folders on the way to it, and nothing in it.
fn empty_folder(tree: &Path, path: &Path) -> Result<PathBuf, WorkspaceError> {
    let mut folder = tree.to_owned();
    for part in path.components() {
        let Component::Normal(part) = part else {
            let rule = "a path that stays within the repository";
            return Err(WorkspaceError::refused("submodule", &path.to_string_lossy(), rule));
        };
        folder.push(part);
        let meta = std::fs::symlink_metadata(&folder).map_err(WorkspaceError::io(&folder))?;
        if !meta.is_dir() {
            let rule = "its place is taken by something that is not a folder";
            return Err(WorkspaceError::refused("submodule", &path.to_string_lossy(), rule));
        }
    }
    let is_empty = std::fs::read_dir(&folder).map_err(WorkspaceError::io(&folder))?.next().is_none();
    if is_empty {
        return Ok(folder);
    }
    Err(WorkspaceError::refused("submodule", &path.to_string_lossy(), "its folder is not empty"))
}

/// As git resolves it: `./` and `../` against the URL of the repository that names it.
fn resolve(origin: &GitUrl, url: &str) -> Result<GitUrl, WorkspaceError> {
    if !url.starts_with("./") && !url.starts_with("../") {
        return GitUrl::parse(url);
    }
    let out_of_host = || WorkspaceError::refused("submodule URL", url, "it climbs out of the origin's host");
    let text = origin.as_str().trim_end_matches('/');
    // What may be taken off ends where the path begins.
    let start = match text.find("://") {
        Some(scheme) => text[scheme + 3..].find('/').map(|slash| scheme + 3 + slash),
        None => text.find(':'),
    };
    let (host, path) = text.split_at(start.ok_or_else(out_of_host)? + 1);
    let mut parts: Vec<&str> = path.split('/').collect();
    for part in url.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop().ok_or_else(out_of_host)?),
            part => parts.push(part),
        }
    }
    GitUrl::parse(&format!("{host}{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_urls_are_beside_the_origin() {
        for (origin, url, expected) in [
            ("https://host/org/app.git", "../lib.git", "https://host/org/lib.git"),
            ("https://host/org/app.git/", "../../other/lib", "https://host/other/lib"),
            ("ssh://git@host:22/org/app", "../lib", "ssh://git@host:22/org/lib"),
            ("git@host:org/app.git", "../lib.git", "git@host:org/lib.git"),
            ("file:///srv/git/app.git", "../lib.git", "file:///srv/git/lib.git"),
            ("https://host/org/app", "./lib", "https://host/org/app/lib"),
            ("https://host/org/app", "https://elsewhere/lib", "https://elsewhere/lib"),
        ] {
            let origin = GitUrl::parse(origin).unwrap();
            assert_eq!(resolve(&origin, url).unwrap().as_str(), expected, "{origin} {url}");
        }
        let origin = GitUrl::parse("https://host/org/app").unwrap();
        for bad in
            ["../../../x", "../..", "..", "../-x", "ext::sh -c id", "/srv/x", "../a b", "--upload-pack=x"]
        {
            assert!(resolve(&origin, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn entries_are_read_by_path_and_checked() {
        let text: &[u8] = b"submodule.a.b.path\nlib/a\0submodule.a.b.url\n../a\0submodule.a.b.update\n!touch x\0\
                            submodule.x.path\nx\0submodule.../y.path\ny\0submodule.../y.url\n../y\0core.pager\nid\0novalue";
        let entries = by_path(text.split(|b| *b == 0));
        assert_eq!(entries.len(), 2, "one has no URL: {entries:?}");
        let entry = &entries[b"lib/a".as_slice()];
        assert_eq!((entry.name.as_str(), entry.url.as_str()), ("a.b", "../a"));
        assert!(entry.check().unwrap_err().to_string().contains("no command"));
        assert!(entries[b"y".as_slice()].check().unwrap_err().to_string().contains("stays within"));
    }
}
