//! The bare mirror of a repository: fetched from its origin, and the only place where this host's refs are kept.
//!
//! Engines never work in it. Its configuration is ours and is put back before each use, and its objects are never
//! pruned, because work folders borrow them. Whatever changes refs goes through [`Mirror::lock`].

use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::error::{WorkspaceError, tidy};
use super::git::{Call, Output, take_cut_off};
use super::lock::FileLock;
use super::notes::Progress;
use super::policy::{Author, GitUrl, RepoSource};
use super::record::remove_folder;
use super::refs::{CommitId, ORIGIN_HEAD, OUR_FOLDERS, check_target_branch};

/// Where the origin's HEAD points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OriginHead {
    Branch {
        name: String,
        commit: CommitId,
    },
    /// At a commit, or at a branch whose name this grammar does not let through.
    Detached {
        commit: CommitId,
    },
    /// The origin has no commit yet.
    Unborn {
        name: String,
    },
}

impl OriginHead {
    pub(crate) const fn commit(&self) -> Option<&CommitId> {
        match self {
            Self::Branch { commit, .. } | Self::Detached { commit } => Some(commit),
            Self::Unborn { .. } => None,
        }
    }

    pub(crate) fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}

/// What a mirror is of, kept beside it; its age is when the mirror was last used.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MirrorNote {
    pub(crate) name: String,
    pub(crate) url: String,
    /// No job has named it: it is known as a part of another repository, not by its name.
    #[serde(default)]
    pub(crate) only_submodule: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Mirror {
    workspace: Workspace,
    source: RepoSource,
    dir: PathBuf,
}

impl Mirror {
    pub(crate) fn new(workspace: Workspace, source: RepoSource) -> Self {
        let dir = workspace.inner.base.join("mirrors").join(format!("{}.git", source.slug));
        Self { workspace, source, dir }
    }

    pub(crate) fn has_lfs(&self) -> bool {
        self.workspace.git().has_lfs()
    }

    /// The mirror of another repository on this host.
    pub(crate) fn of(&self, url: GitUrl) -> Self {
        Self::new(self.workspace.clone(), RepoSource::new(url.short_name(), url.clone()))
    }

    /// Where the objects are that a folder borrows from here, and from these other repositories on this host.
    pub(crate) fn objects(&self, others: &[String]) -> Vec<PathBuf> {
        let others = others.iter().filter_map(|url| GitUrl::parse(url).ok()).map(|url| self.of(url));
        let dirs = others.map(|mirror| mirror.dir).chain([self.dir.clone()]);
        dirs.map(|dir| dir.join("objects")).filter(|objects| objects.is_dir()).collect()
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) const fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) const fn source(&self) -> &RepoSource {
        &self.source
    }

    pub(crate) const fn url(&self) -> &GitUrl {
        &self.source.url
    }

    /// Every command on the mirror starts here, and finds the configuration as we wrote it.
    pub(crate) fn call(&self, action: &str) -> Call<'_> {
        if let Err(error) = self.restore_config() {
            tracing::error!(repo = %self.source.name, %error, "the mirror's configuration cannot be put back");
        }
        self.workspace.git().at(&self.dir, format!("{action} ({})", self.source.name)).noted_in(&self.dir)
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.dir.with_extension(extension)
    }

    /// Waits for this host's turn at the repository's metadata.
    pub(crate) async fn lock(&self) -> Result<LockedMirror<'_>, WorkspaceError> {
        let path = self.workspace.inner.base.join("locks").join(format!("{}.repo", self.source.slug));
        let lock = FileLock::acquire(path).await?;
        if lock.was_abandoned | take_cut_off(&self.dir) {
            // Nobody else writes here while we hold the lock, so what lies about was left by the dead.
            remove_git_locks(&self.dir);
        }
        Ok(LockedMirror { mirror: self, _lock: lock })
    }

    fn restore_config(&self) -> Result<(), WorkspaceError> {
        let (ours, live) = (self.beside("config"), self.dir.join("config"));
        let Ok(text) = std::fs::read(&ours) else { return Ok(()) };
        if self.dir.is_dir() && std::fs::read(&live).ok().as_ref() != Some(&text) {
            tracing::warn!(repo = %self.source.name, "the mirror's configuration had been changed; it was put back");
            std::fs::write(&live, text).map_err(WorkspaceError::io(live))?;
        }
        Ok(())
    }

    pub(crate) async fn commit_at(&self, name: &str) -> Result<Option<CommitId>, WorkspaceError> {
        let spec = format!("{name}^{{commit}}");
        let output = self
            .call("looking up a commit")
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(spec)
            .run_any()
            .await?;
        if output.status.success() { output.text().parse().map(Some) } else { Ok(None) }
    }

    /// The tree of a commit; of none, the empty tree.
    pub(crate) async fn tree_of(&self, commit: Option<&CommitId>) -> Result<String, WorkspaceError> {
        let call = self.call("looking up a tree");
        let output = match commit {
            Some(commit) => call
                .args(["rev-parse", "--verify", "--end-of-options"])
                .arg(format!("{commit}^{{tree}}"))
                .run(),
            None => call.args(["hash-object", "-w", "-t", "tree", "--stdin"]).stdin([]).run(),
        };
        Ok(output.await?.text())
    }

    pub(crate) async fn message_of(&self, commit: &CommitId) -> Result<String, WorkspaceError> {
        let call = self.call("reading a commit").args(["cat-file", "commit"]).arg(commit.as_str());
        let text = call.run().await?.text();
        Ok(text.split_once("\n\n").map(|(_, message)| message.to_owned()).unwrap_or_default())
    }

    pub(crate) async fn is_ancestor(&self, old: &CommitId, new: &CommitId) -> Result<bool, WorkspaceError> {
        let call = self.call("comparing commits").args(["merge-base", "--is-ancestor"]);
        let output = call.args([old.as_str(), new.as_str()]).run_any().await?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(output.error()),
        }
    }

    pub(crate) async fn merge_base(
        &self,
        a: &CommitId,
        b: &CommitId,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        let output =
            self.call("comparing commits").arg("merge-base").args([a.as_str(), b.as_str()]).run_any().await?;
        match output.status.code() {
            Some(0) => output.text().parse().map(Some),
            Some(1) => Ok(None),
            _ => Err(output.error()),
        }
    }

    pub(crate) async fn commit_tree(
        &self,
        tree: &str,
        parents: &[&CommitId],
        message: &str,
    ) -> Result<CommitId, WorkspaceError> {
        let call = self.call("committing").arg("commit-tree");
        write_commit(call, tree, parents, message).await
    }

    /// For the owner's branch: by whoever it is by, and signed where the owner's commits are.
    pub(crate) async fn commit_for_owner(
        &self,
        tree: &str,
        parents: &[&CommitId],
        message: &str,
        author: Option<&Author>,
    ) -> Result<CommitId, WorkspaceError> {
        let mut call = self.call("committing").arg("commit-tree");
        if let Some(author) = author {
            call = call.by(author);
        }
        if self.workspace.git().signs {
            call = call.arg("-S");
        }
        write_commit(call, tree, parents, message).await
    }

    /// Asks the origin what its HEAD is.
    async fn ask_head(&self) -> Result<(Option<String>, Option<CommitId>), WorkspaceError> {
        let call = self.workspace.git().anywhere(format!("asking the origin ({})", self.source.name));
        let output = call
            .args(["ls-remote", "--symref", "--quiet", "--end-of-options", self.url().as_str(), "HEAD"])
            .over(self.url().protocol())
            .run()
            .await
            .map_err(|error| self.unreachable(error))?;
        let mut answer = (None, None);
        for line in output.text().lines().filter_map(|line| line.strip_suffix("\tHEAD")) {
            match line.strip_prefix("ref: ") {
                Some(target) => answer.0 = target.strip_prefix("refs/heads/").map(str::to_owned),
                None => answer.1 = Some(line.parse()?),
            }
        }
        Ok(answer)
    }

    /// What the origin's branch is at this moment; the mirror does not have to exist, and is left as it is.
    pub(crate) async fn ask_branch(&self, name: &str) -> Result<Option<CommitId>, WorkspaceError> {
        let call = self.workspace.git().anywhere(format!("asking the origin ({})", self.source.name));
        let wanted = format!("refs/heads/{name}");
        let output = call
            .args(["ls-remote", "--quiet", "--end-of-options", self.url().as_str(), &wanted])
            .over(self.url().protocol())
            .run()
            .await
            .map_err(|error| self.unreachable(error))?;
        // The end of a longer name would do for git.
        let is_it = |line: &&str| line.split_once('\t').is_some_and(|(_, found)| found == wanted);
        let line = output.text().lines().find(is_it).map(str::to_owned);
        line.and_then(|line| line.split('\t').next().map(str::parse)).transpose()
    }

    /// An origin without commits tells its branch only to a clone, which is cheap because there is nothing to copy.
    async fn ask_unborn_branch(&self) -> Result<String, WorkspaceError> {
        let scratch = self.beside("unborn");
        remove_folder(scratch.clone()).await?;
        let git = self.workspace.git();
        git.anywhere(format!("looking at the empty origin ({})", self.source.name))
            .args(["clone", "--quiet", "--bare", "--template=", "--end-of-options", self.url().as_str()])
            .arg(&scratch)
            .over(self.url().protocol())
            .run()
            .await
            .map_err(|error| self.unreachable(error))?;
        let head = git.at(&scratch, "reading HEAD").args(["symbolic-ref", "HEAD"]).run_any().await?.text();
        remove_folder(scratch).await?;
        let name = head.strip_prefix("refs/heads/").unwrap_or("main");
        Ok(if check_target_branch(name).is_ok() { name.to_owned() } else { "main".to_owned() })
    }

    /// Failing to talk to the origin is the origin's trouble, not the job's.
    pub(crate) fn unreachable(&self, error: WorkspaceError) -> WorkspaceError {
        let detail = match error {
            WorkspaceError::Git { detail, .. } => detail,
            WorkspaceError::TimedOut { seconds, .. } => format!("no answer within {seconds} s"),
            other => return other,
        };
        WorkspaceError::Unreachable { url: tidy(self.url().as_str()), detail }
    }
}

/// A mirror while this process alone may change its refs.
#[derive(Debug)]
pub(crate) struct LockedMirror<'m> {
    mirror: &'m Mirror,
    _lock: FileLock,
}

impl Deref for LockedMirror<'_> {
    type Target = Mirror;
    fn deref(&self) -> &Mirror {
        self.mirror
    }
}

impl LockedMirror<'_> {
    /// Makes the mirror when there is none, and brings it up to date.
    pub(crate) async fn refresh(&self) -> Result<OriginHead, WorkspaceError> {
        let (branch, commit) = self.ask_head().await?;
        self.create(commit.as_ref().map_or("sha1", CommitId::object_format)).await?;
        // The fetch asks once more, and a push may come in between: what was fetched is what counts.
        let fetched = self.fetch(commit.is_some()).await;
        fetched.map_err(|error| self.unreachable(error))?;
        if commit.is_none() {
            // Somebody has just begun there; what we have brought may be on another branch than theirs.
            if let Some(name) = self.branch_of_folder().await? {
                return Ok(OriginHead::Unborn { name });
            }
            let any =
                self.call("listing refs").args(["for-each-ref", "--count=1", "refs/remotes/origin"]).run();
            if !any.await?.stdout.is_empty() {
                let rule = "its HEAD points to a branch that does not exist";
                return Err(WorkspaceError::refused("repository", self.url().as_str(), rule));
            }
            return Ok(OriginHead::Unborn { name: self.ask_unborn_branch().await? });
        }
        let commit = self.commit_at(ORIGIN_HEAD).await?.ok_or_else(|| WorkspaceError::Git {
            action: format!("fetching {}", self.source.name),
            detail: "the origin's HEAD is not a commit".to_owned(),
        })?;
        Ok(match branch.filter(|name| check_target_branch(name).is_ok()) {
            Some(name) => OriginHead::Branch { name, commit },
            None => OriginHead::Detached { commit },
        })
    }

    async fn create(&self, object_format: &str) -> Result<(), WorkspaceError> {
        if self.dir.join("HEAD").is_file() {
            return Ok(());
        }
        let fresh = self.beside("new");
        remove_folder(fresh.clone()).await?;
        self.workspace
            .git()
            .anywhere(format!("making a mirror ({})", self.source.name))
            .args(["init", "--quiet", "--bare", "--template="])
            .args([format!("--object-format={object_format}"), "--end-of-options".to_owned()])
            .arg(&fresh)
            .run()
            .await?;
        std::fs::copy(fresh.join("config"), self.beside("config")).map_err(WorkspaceError::io(&fresh))?;
        // Half a mirror never stands under the real name.
        remove_folder(self.dir.clone()).await?;
        std::fs::rename(&fresh, &self.dir).map_err(WorkspaceError::io(&self.dir))
    }

    /// Whether the origin's branch had the commit when it was last fetched.
    pub(crate) async fn has_on_origin(
        &self,
        commit: &CommitId,
        branch: &str,
    ) -> Result<bool, WorkspaceError> {
        let at = self.commit_at(&format!("refs/remotes/origin/{branch}")).await?;
        match at {
            Some(at) if self.commit_at(commit.as_str()).await?.is_some() => {
                self.is_ancestor(commit, &at).await
            }
            _ => Ok(false),
        }
    }

    /// A job used this mirror; the garbage collector's looks do not count.
    pub(crate) fn note_use(&self) -> Result<(), WorkspaceError> {
        self.note_use_as(false)
    }

    /// A job used another repository that has this one as a submodule.
    pub(crate) fn note_use_as_submodule(&self) -> Result<(), WorkspaceError> {
        let known = std::fs::read(self.beside("json")).ok();
        let known: Option<MirrorNote> = known.and_then(|text| serde_json::from_slice(&text).ok());
        self.note_use_as(known.is_none_or(|note| note.only_submodule))
    }

    fn note_use_as(&self, only_submodule: bool) -> Result<(), WorkspaceError> {
        let (name, url) = (self.source.name.clone(), self.url().as_str().to_owned());
        let note = MirrorNote { name, url, only_submodule };
        let path = self.beside("json");
        let text = serde_json::to_vec(&note).map_err(|error| WorkspaceError::io(&path)(error.into()))?;
        std::fs::write(&path, text).map_err(WorkspaceError::io(path))
    }

    async fn fetch(&self, has_head: bool) -> Result<(), WorkspaceError> {
        // Job branches of other hosts are left out: there are many, and each is fetched when it is needed.
        let mut refspecs = OUR_FOLDERS.map(|ours| format!("^refs/heads/{ours}/*")).to_vec();
        refspecs
            .extend(["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"].map(str::to_owned));
        if has_head {
            refspecs.push(format!("+HEAD:{ORIGIN_HEAD}"));
        }
        let progress = self.is_new().then(|| Progress::new(self.workspace.notes.clone(), &self.source.name));
        self.fetch_with(&refspecs, progress).await?.map_err(|output| output.error())
    }

    /// Nothing was fetched yet: it may take minutes.
    fn is_new(&self) -> bool {
        !self.dir.join(ORIGIN_HEAD).exists()
    }

    /// Fetches exactly these; the inner error is the origin's answer that it could not.
    pub(crate) async fn fetch_refs(&self, refspecs: &[String]) -> Result<Result<(), Output>, WorkspaceError> {
        self.fetch_with(refspecs, None).await
    }

    async fn fetch_with(
        &self,
        refspecs: &[String],
        progress: Option<Progress>,
    ) -> Result<Result<(), Output>, WorkspaceError> {
        let call = self.call("fetching").arg("fetch");
        let call = match progress {
            // What is quiet has no progress either.
            Some(progress) => call.with_progress(progress),
            None => call.arg("--quiet"),
        };
        let output = call
            .args(["--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"])
            // An origin may be shallow itself: its history begins where it says.
            .args(["--no-auto-maintenance", "--update-shallow"])
            .args(["--end-of-options", self.url().as_str()])
            .args(refspecs)
            .over(self.url().protocol())
            .run_any()
            .await?;
        Ok(if output.status.success() { Ok(()) } else { Err(output) })
    }

    /// A branch of the origin, fetched to a ref of ours. `None` when the origin has no such branch.
    pub(crate) async fn fetch_branch(
        &self,
        branch: &str,
        to: &str,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        match self.fetch_refs(&[format!("+refs/heads/{branch}:{to}")]).await? {
            Ok(()) => self.commit_at(to).await,
            Err(output) if output.stderr.contains("couldn't find remote ref") => Ok(None),
            Err(output) => Err(self.unreachable(output.error())),
        }
    }

    pub(crate) async fn set_ref(&self, name: &str, commit: &CommitId) -> Result<(), WorkspaceError> {
        let call = self.call("moving a ref").args(["update-ref", "--end-of-options", name, commit.as_str()]);
        call.run().await.map(drop)
    }

    /// Only while it still is where it was when the decision to delete it was made.
    pub(crate) async fn delete_ref(&self, name: &str, at: &CommitId) -> Result<(), WorkspaceError> {
        let call =
            self.call("deleting a ref").args(["update-ref", "-d", "--end-of-options", name, at.as_str()]);
        call.run().await.map(drop)
    }

    pub(crate) async fn drop_ref(&self, name: &str) -> Result<(), WorkspaceError> {
        let call = self.call("deleting a ref").args(["update-ref", "-d", "--end-of-options", name]);
        call.run().await.map(drop)
    }

    /// The mirror and what lies beside it.
    pub(crate) async fn remove(&self) -> Result<(), WorkspaceError> {
        remove_folder(self.dir.clone()).await?;
        for extension in ["json", "config"] {
            let _ = std::fs::remove_file(self.beside(extension));
        }
        Ok(())
    }
}

async fn write_commit(
    mut call: Call<'_>,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Result<CommitId, WorkspaceError> {
    for parent in parents {
        call = call.args(["-p", parent.as_str()]);
    }
    // The message comes over a pipe: it is a job's text and must not look like an option.
    call.args(["-F", "-", tree]).stdin(message.replace('\0', "")).run().await?.text().parse()
}

/// Git's own lock files, as a killed git leaves them behind. Objects and packs need none.
fn remove_git_locks(dir: &Path) {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && entry.file_name() != "objects" {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "lock") {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
