//! Reads what an engine has done, without trusting the repository that it did it in.
//!
//! The engine's commits are fetched into the mirror as from a stranger, checked object by object. Its files are
//! read through an index of ours, so that its own index and HEAD stay untouched and none of its settings, hooks,
//! filters or links is followed. Repositories inside the work tree are never entered.

use std::path::Path;

use super::error::{WorkspaceError, tidy};
use super::mirror::Mirror;
use super::policy::GitUrl;
use super::record::Slot;
use super::refs::{CommitId, engine_ref};

/// What to do about a file that git cannot read or refuses to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Save the rest: for checkpoints, where something is better than nothing.
    Note,
    /// Fail: a result without one of its files is another result.
    Fail,
}

#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The engine's HEAD, or the last one that could be read.
    pub(crate) head: Option<CommitId>,
    pub(crate) tree: String,
    /// What is not in the tree, and why.
    pub(crate) left_out: Vec<String>,
}

pub(crate) struct Snapshotter<'a> {
    pub(crate) mirror: &'a Mirror,
    pub(crate) slot: &'a Slot,
    pub(crate) started_from: Option<&'a CommitId>,
}

impl Snapshotter<'_> {
    pub(crate) async fn take(&self, missing: Missing) -> Result<Snapshot, WorkspaceError> {
        let tree = self.slot.tree();
        if !std::fs::symlink_metadata(&tree).is_ok_and(|meta| meta.is_dir()) {
            let rule = "the work folder is gone or was replaced by something that is not a folder";
            return Err(WorkspaceError::refused("work folder", &self.slot.folder.to_string_lossy(), rule));
        }
        let mut left_out = Vec::new();
        let head = self.import_head(&tree, &mut left_out).await?;
        self.reset_index(head.as_ref()).await?;
        let submodules = self.take_out_submodules().await?;
        let excluded = self.find_excluded(&submodules, &mut left_out).await?;
        self.add_all(&excluded, missing, &mut left_out).await?;
        self.put_back_submodules(&tree, submodules, &mut left_out).await?;
        let tree = self.call("writing a tree").arg("write-tree").run().await?.text();
        Ok(Snapshot { head, tree, left_out })
    }

    fn call(&self, action: &str) -> super::git::Call<'_> {
        self.mirror.call(action).on_tree(&self.slot.tree(), &self.slot.index())
    }

    /// The engine's HEAD with its history. When its repository is broken, the files are saved all the same, on
    /// top of the last commit that is known.
    async fn import_head(
        &self,
        tree: &Path,
        left_out: &mut Vec<String>,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        let to = engine_ref(self.slot.job, self.slot.epoch);
        // A link or a file here would lead the fetch to a repository of somebody else's.
        let is_repository = std::fs::symlink_metadata(tree.join(".git")).is_ok_and(|meta| meta.is_dir());
        let trouble = if is_repository {
            // Without the repository's lock: the ref is this job's alone, and an engine that makes the fetch hang
            // must not hold up others.
            let output = self
                .mirror
                .call("reading the engine's commits")
                .args([
                    "-c",
                    "fetch.fsckObjects=true",
                    "fetch",
                    "--quiet",
                    "--no-tags",
                    "--no-write-fetch-head",
                ])
                .args(["--no-recurse-submodules", "--no-auto-maintenance", "--end-of-options"])
                .arg(tree)
                .arg(format!("+HEAD:{to}"))
                .local_source()
                .run_any()
                .await;
            match output {
                Ok(output) if output.status.success() => return self.mirror.commit_at(&to).await,
                Ok(output) => output.stderr,
                Err(error @ WorkspaceError::TimedOut { .. }) => error.to_string(),
                Err(error) => return Err(error),
            }
        } else {
            "there is no repository in the work folder any more".to_owned()
        };
        // An empty origin has no HEAD to read until the engine commits.
        let is_unborn = self.started_from.is_none() && trouble.contains("couldn't find remote ref");
        if !is_unborn {
            left_out.push(format!("commits of the engine: {}", tidy(&trouble)));
        }
        Ok(self.mirror.commit_at(&to).await?.or_else(|| self.started_from.cloned()))
    }

    /// Starts from the engine's commit, so that files which it tracks against `.gitignore` stay tracked. What
    /// is known of unchanged files is kept: the next snapshot then reads only what changed.
    async fn reset_index(&self, head: Option<&CommitId>) -> Result<(), WorkspaceError> {
        let index = self.slot.index();
        let _ = std::fs::remove_file(index.with_extension("index.lock"));
        let read = |options: &'static [&'static str]| {
            let call = self.call("reading a tree").arg("read-tree").args(options);
            match head {
                Some(head) => call.arg(head.as_str()),
                None => call.arg("--empty"),
            }
        };
        if index.exists() && head.is_some() && read(&["-m"]).run_any().await?.status.success() {
            return Ok(());
        }
        let _ = std::fs::remove_file(&index);
        read(&[]).run().await.map(drop)
    }

    /// Submodules stand aside while files are added: for a known one, git would run in it, under its settings.
    async fn take_out_submodules(&self) -> Result<Vec<Submodule>, WorkspaceError> {
        let listing = self.call("listing files").args(["ls-files", "--stage", "-z"]).run().await?;
        let submodules: Vec<Submodule> = listing.fields().filter_map(Submodule::parse).collect();
        let lines = submodules.iter().map(|s| s.index_line("0"));
        self.edit_index(lines.collect::<Vec<_>>().concat()).await?;
        Ok(submodules)
    }

    async fn put_back_submodules(
        &self,
        tree: &Path,
        all: Vec<Submodule>,
        left_out: &mut Vec<String>,
    ) -> Result<(), WorkspaceError> {
        use std::os::unix::ffi::OsStrExt;
        let mut lines = Vec::new();
        for mut submodule in all {
            let path = tree.join(std::ffi::OsStr::from_bytes(&submodule.path));
            // One that the engine replaced by a file is gone; a folder, even an empty one, still stands for it.
            if std::fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir()) {
                continue;
            }
            let moved = head_of(&path).filter(|head| head.as_str().as_bytes() != submodule.commit);
            match moved {
                Some(head) if self.is_on_an_origin(&head).await? => {
                    submodule.commit = head.as_str().as_bytes().to_vec();
                }
                // Nobody else could check it out.
                Some(head) => left_out.push(format!(
                    "{}: its commit {head} is not on the submodule's origin",
                    printable(&submodule.path)
                )),
                None => {}
            }
            lines.extend(submodule.index_line("160000"));
        }
        self.edit_index(lines).await
    }

    /// Of any submodule: a commit is the same wherever it is.
    async fn is_on_an_origin(&self, commit: &CommitId) -> Result<bool, WorkspaceError> {
        let Some(record) = self.slot.read() else { return Ok(false) };
        for url in &record.borrows {
            let mirror = self.mirror.of(GitUrl::parse(url)?);
            if mirror.dir().is_dir() && mirror.commit_at(commit.as_str()).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn edit_index(&self, lines: Vec<u8>) -> Result<(), WorkspaceError> {
        if lines.is_empty() {
            return Ok(());
        }
        let call = self.call("editing the index").args(["update-index", "-z", "--index-info"]);
        call.stdin(lines).run().await.map(drop)
    }

    /// Paths that must not be added: submodules, repositories inside the tree, and names that another file
    /// system would take for `.git`.
    async fn find_excluded(
        &self,
        submodules: &[Submodule],
        left_out: &mut Vec<String>,
    ) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let call = self.call("listing files").args(["ls-files", "--others", "--exclude-standard", "-z"]);
        let listing = call.run().await?;
        let mut excluded: Vec<Vec<u8>> = submodules.iter().map(|s| s.path.clone()).collect();
        for path in listing.fields() {
            let (found, why) = if let Some(nested) = path.strip_suffix(b"/") {
                (nested.to_vec(), "a repository of its own")
            } else if let Some(found) = reserved_prefix(path) {
                (found, "a name that git keeps for itself")
            } else {
                continue;
            };
            if !excluded.contains(&found) {
                left_out.push(format!("{}: {why}", printable(&found)));
                excluded.push(found);
            }
        }
        Ok(excluded)
    }

    async fn add_all(
        &self,
        excluded: &[Vec<u8>],
        missing: Missing,
        left_out: &mut Vec<String>,
    ) -> Result<(), WorkspaceError> {
        let mut call = self.call("reading the work folder").args(["add", "--all", "--no-warn-embedded-repo"]);
        if missing == Missing::Note {
            call = call.arg("--ignore-errors");
        }
        if !excluded.is_empty() {
            let mut paths = b".\0".to_vec();
            for path in excluded {
                paths.extend_from_slice(b":(top,exclude,literal)");
                paths.extend_from_slice(path);
                paths.push(0);
            }
            call = call.args(["--pathspec-from-file=-", "--pathspec-file-nul"]).stdin(paths);
        }
        let output = call.taking_large_files(self.mirror).run_any().await?;
        match missing {
            _ if output.status.success() => {}
            Missing::Note => left_out.push(tidy(&output.stderr)),
            Missing::Fail => return Err(output.error()),
        }
        Ok(())
    }
}

struct Submodule {
    path: Vec<u8>,
    commit: Vec<u8>,
}

impl Submodule {
    /// A line of `ls-files --stage`: `mode object stage<TAB>path`.
    fn parse(line: &[u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"160000 ")?;
        let tab = rest.iter().position(|b| *b == b'\t')?;
        let commit = rest[..tab].split(|b| *b == b' ').next()?.to_vec();
        Some(Self { path: rest[tab + 1..].to_vec(), commit })
    }

    fn index_line(&self, mode: &str) -> Vec<u8> {
        [mode.as_bytes(), b" ", &self.commit, b"\t", &self.path, b"\0"].concat()
    }
}

/// Where the repository of a submodule is, read without git: its settings are the engine's.
fn head_of(submodule: &Path) -> Option<CommitId> {
    let git = submodule.join(".git");
    let read = |name: &str| {
        let mut path = git.clone();
        for part in name.split('/') {
            if !std::fs::symlink_metadata(&path).ok()?.is_dir() || matches!(part, "" | "." | "..") {
                return None;
            }
            path.push(part);
        }
        let meta = std::fs::symlink_metadata(&path).ok()?;
        (meta.is_file() && meta.len() < 1_000).then(|| std::fs::read_to_string(&path).ok())?
    };
    let head = read("HEAD")?;
    match head.trim_end().strip_prefix("ref: ") {
        Some(branch) if branch.starts_with("refs/heads/") => read(branch)?.trim_end().parse().ok(),
        Some(_) => None,
        None => head.trim_end().parse().ok(),
    }
}

/// The path up to a part that is `.git` on some file system: in other letters, with what Windows drops at the
/// end, or by its short name.
fn reserved_prefix(path: &[u8]) -> Option<Vec<u8>> {
    let mut end = 0;
    for part in path.split(|b| *b == b'/') {
        end += part.len();
        let mut plain = part.to_ascii_lowercase();
        while plain.last().is_some_and(|b| matches!(b, b'.' | b' ')) {
            plain.pop();
        }
        let plain = plain.split(|b| *b == b':').next().unwrap_or_default();
        if plain == b".git" || plain == b"git~1" || part.contains(&b'\\') {
            return Some(path[..end].to_vec());
        }
        end += 1;
    }
    None
}

fn printable(path: &[u8]) -> String {
    String::from_utf8_lossy(path).chars().take(200).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_dot_git_elsewhere() {
        for (path, found) in [
            ("a/.GIT/config", Some("a/.GIT")),
            (".Git", Some(".Git")),
            ("x/.git./hooks/y", Some("x/.git.")),
            ("GIT~1/config", Some("GIT~1")),
            (".git::$INDEX_ALLOCATION/config", Some(".git::$INDEX_ALLOCATION")),
            ("a\\b", Some("a\\b")),
            (".gitignore", None),
            ("a/.github/x", None),
            ("git/x", None),
        ] {
            let given = reserved_prefix(path.as_bytes());
            assert_eq!(given.as_deref(), found.map(str::as_bytes), "{path}");
        }
    }
}
