//! The folder of one run: the work tree of its repository, or those of several side by side.
//!
//! Each repository keeps its own: its checkpoint, its result on a branch of the same name, its quarantine. Here they are
//! made, saved and handed over together.

use std::path::PathBuf;

use giga_domain::repo::{folder_name, is_repo_name};
use giga_domain::{Checkpoint, Epoch, JobId, RepoCommit};

use super::Workspace;
use super::checkout::Leftover;
use super::error::WorkspaceError;
use super::lock::FileLock;
use super::policy::RepoSource;
use super::record::{Slot, SpendNote, Start};
use super::refs::CommitId;
use super::result::{ResultCommit, Saved};
use super::worktree::{Diff, Worktree};

#[derive(Debug)]
pub struct WorkFolder {
    slot: Slot,
    /// As the manifest names them, where there are several.
    names: Vec<String>,
    trees: Vec<Worktree>,
    /// A work tree that is alone has it itself.
    lock: Option<FileLock>,
}

/// What a run hands over: a commit on the branch of its epoch, in each repository that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    pub branch: String,
    /// The first of them.
    pub commit: CommitId,
    pub base: Option<CommitId>,
    /// All of them, where the run has several repositories.
    pub repos: Vec<RepoCommit>,
    pub files_changed: u64,
    pub lines_added: u64,
    pub lines_removed: u64,
    /// Files whose changes no diff shows.
    pub binary: Vec<String>,
    /// The engine's commits were not its own alone, so that they are one commit now.
    pub squashed: bool,
    /// By the places of their work trees.
    commits: Vec<(usize, ResultCommit)>,
}

impl Workspace {
    /// A work folder for this epoch of the job, with all of these repositories: as they are named, and what that stands
    /// for. Repeated after a crash, it gives the folder back as it was.
    pub async fn open_folder(
        &self,
        job: JobId,
        epoch: Epoch,
        repos: &[(String, RepoSource)],
        base: Option<&str>,
        resume: Option<&Checkpoint>,
    ) -> Result<WorkFolder, WorkspaceError> {
        if let [(_, only)] = repos {
            let (slot, lock) = self.place(job, epoch)?;
            let tree = self.checkout_at(slot.clone(), Some(lock), only, base, resume).await?;
            return Ok(WorkFolder::single(slot, tree));
        }
        check_apart(repos)?;
        let (slot, lock) = self.place(job, epoch)?;
        let names: Vec<String> = repos.iter().map(|(name, _)| name.clone()).collect();
        if slot.repos().as_ref() != Some(&names) {
            // Half made, so without work in it.
            slot.clear().await?;
        }
        let mut trees = Vec::with_capacity(repos.len());
        for (name, source) in repos {
            let resume = resume.and_then(|checkpoint| in_repo(checkpoint, name));
            trees.push(self.checkout_at(slot.of(name), None, source, base, resume.as_ref()).await?);
        }
        slot.write_repos(&names)?;
        Ok(WorkFolder { slot, names, trees, lock: Some(lock) })
    }

    /// Takes a leftover in hand again, to go on with it, save it or quarantine it.
    pub fn adopt(&self, leftover: &Leftover) -> Result<WorkFolder, WorkspaceError> {
        let (job, epoch) = (leftover.job, leftover.epoch);
        let slot = self.slot(job, epoch);
        let lock = slot.try_lock()?.ok_or(WorkspaceError::InUse { job, epoch })?;
        self.adopt_locked(slot, lock)
    }

    pub(crate) fn adopt_locked(&self, slot: Slot, lock: FileLock) -> Result<WorkFolder, WorkspaceError> {
        let Some(names) = slot.repos() else {
            let tree = self.adopt_at(slot.clone(), Some(lock))?;
            return Ok(WorkFolder::single(slot, tree).found_again());
        };
        let trees = names.iter().map(|name| self.adopt_at(slot.of(name), None)).collect::<Result<_, _>>()?;
        Ok(WorkFolder { slot, names, trees, lock: Some(lock) }.found_again())
    }
}

/// Each has a folder and a mirror of its own.
fn check_apart(repos: &[(String, RepoSource)]) -> Result<(), WorkspaceError> {
    for (at, (name, source)) in repos.iter().enumerate() {
        if !is_repo_name(folder_name(name)) {
            return Err(WorkspaceError::refused("repository", name, "its name is no name for a folder"));
        }
        let before = &repos[..at];
        if let Some((other, _)) = before.iter().find(|(other, known)| {
            known.slug == source.slug || folder_name(other).eq_ignore_ascii_case(folder_name(name))
        }) {
            let rule = format!("it is the same repository as {other}, or has the same folder");
            return Err(WorkspaceError::refused("repository", name, rule));
        }
    }
    Ok(())
}

/// What was saved in this one.
fn in_repo(checkpoint: &Checkpoint, name: &str) -> Option<Checkpoint> {
    let saved = checkpoint.repos.iter().find(|saved| saved.repo == name)?;
    Some(Checkpoint {
        wip_ref: checkpoint.wip_ref.clone(),
        commit: Some(saved.commit.clone()),
        ..Checkpoint::default()
    })
}

impl WorkFolder {
    fn single(slot: Slot, tree: Worktree) -> Self {
        Self { slot, names: Vec::new(), trees: vec![tree], lock: None }
    }

    /// Whoever finds the folder does not know the secrets that its run was given.
    fn found_again(self) -> Self {
        if self.slot.had_secrets() {
            self.trees.iter().for_each(|tree| tree.kept_back.forget());
        }
        self
    }

    pub(super) fn note_secrets(&self) -> Result<(), WorkspaceError> {
        self.slot.write_secrets()
    }

    pub(super) fn commits_of<'a>(
        &'a self,
        result: &'a RunResult,
    ) -> impl Iterator<Item = (&'a Worktree, &'a CommitId)> {
        result.commits.iter().map(|(at, result)| (&self.trees[*at], &result.commit))
    }

    /// Where the engine works: in the repository, or above all of them.
    pub fn path(&self) -> PathBuf {
        self.slot.tree()
    }

    pub fn trees(&self) -> &[Worktree] {
        &self.trees
    }

    /// Resumed as soon as one of them is.
    pub fn start(&self) -> Start {
        let any = |start| self.trees.iter().any(|tree| tree.start() == start);
        [Start::CheckpointMissing, Start::Resumed]
            .into_iter()
            .find(|start| any(*start))
            .unwrap_or(Start::Fresh)
    }

    /// Saves each of them; `None` when there is nothing new to save in any.
    pub async fn checkpoint(&self, note: &str, push: bool) -> Result<Option<Saved>, WorkspaceError> {
        if let [only] = self.trees.as_slice() {
            return only.checkpoint(note, push).await;
        }
        let (mut new, mut left_out) = (None, Vec::new());
        for (tree, name) in self.trees.iter().zip(&self.names) {
            if let Some(saved) = tree.checkpoint(note, push).await? {
                left_out
                    .extend(saved.left_out.into_iter().map(|what| format!("{}/{what}", folder_name(name))));
                new = saved.checkpoint.note;
            }
        }
        if new.is_none() {
            return Ok(None);
        }
        let Some(mut saved) = self.last_checkpoint().await else { return Ok(None) };
        saved.checkpoint.note = new;
        saved.left_out = left_out;
        Ok(Some(saved))
    }

    /// The last checkpoint that was taken, whoever has heard of it.
    pub async fn last_checkpoint(&self) -> Option<Saved> {
        if let [only] = self.trees.as_slice() {
            return only.last_checkpoint().await;
        }
        let mut all: Option<Saved> = None;
        for (tree, name) in self.trees.iter().zip(&self.names) {
            let Some(saved) = tree.last_checkpoint().await else { continue };
            let commit = saved.checkpoint.commit.clone().unwrap_or_default();
            let all = all.get_or_insert(saved.clone());
            all.checkpoint.repos.push(RepoCommit { repo: name.clone(), commit, base: None });
            all.not_pushed = all.not_pushed.take().or(saved.not_pushed);
        }
        all
    }

    /// From now on the work is what is there now; see [`Worktree::engine_is_done`].
    pub async fn engine_is_done(&self) -> Result<(), WorkspaceError> {
        for tree in &self.trees {
            tree.engine_is_done().await?;
        }
        Ok(())
    }

    /// Commits what the engine left uncommitted, in each repository. `None` when the job changed nothing.
    pub async fn commit_result(&self, title: &str, body: &str) -> Result<Option<RunResult>, WorkspaceError> {
        let mut commits = Vec::new();
        for (at, tree) in self.trees.iter().enumerate() {
            if let Some(result) = tree.commit_result(title, body).await? {
                commits.push((at, result));
            }
        }
        let Some((_, first)) = commits.first() else { return Ok(None) };
        let sum = |count: fn(&ResultCommit) -> u64| commits.iter().map(|(_, result)| count(result)).sum();
        let named = commits.iter().filter_map(|(at, result)| {
            let (repo, commit) = (self.names.get(*at)?.clone(), result.commit.to_string());
            Some(RepoCommit { repo, commit, base: result.base.as_ref().map(ToString::to_string) })
        });
        Ok(Some(RunResult {
            branch: first.branch.clone(),
            commit: first.commit.clone(),
            base: first.base.clone(),
            binary: commits.iter().flat_map(|(_, result)| result.binary.clone()).collect(),
            squashed: commits.iter().any(|(_, result)| result.squashed),
            repos: named.collect(),
            files_changed: sum(|result| result.files_changed),
            lines_added: sum(|result| result.lines_added),
            lines_removed: sum(|result| result.lines_removed),
            commits,
        }))
    }

    /// Hands the result to the origins. Repeating it changes nothing.
    pub async fn push_result(&self, result: &RunResult) -> Result<(), WorkspaceError> {
        for (at, commit) in &result.commits {
            self.trees[*at].push_result(commit).await?;
        }
        Ok(())
    }

    /// What the result changes; in several repositories one after the other, each under its folder.
    pub async fn diff(&self, result: &RunResult, limit_bytes: usize) -> Result<Diff, WorkspaceError> {
        let mut all = Diff { text: String::new(), truncated: false };
        for (at, ResultCommit { commit, .. }) in &result.commits {
            let folder =
                self.names.get(*at).map(|name| format!("{}/", folder_name(name))).unwrap_or_default();
            let left = limit_bytes.saturating_sub(all.text.len());
            let diff = self.trees[*at].diff(commit, &folder, left).await?;
            all.text.push_str(&diff.text);
            all.truncated |= diff.truncated;
        }
        Ok(all)
    }

    /// Keeps a fenced holder's work on refs of this host and bars it from every push. Answers the branch.
    pub async fn quarantine(&self, why: &str) -> Result<String, WorkspaceError> {
        let mut branch = String::new();
        for tree in &self.trees {
            branch = tree.quarantine(why).await?;
        }
        Ok(branch)
    }

    /// Removes the folder for good. Whoever calls this has saved what is worth keeping.
    pub async fn remove(self) -> Result<(), WorkspaceError> {
        // Cut short from here on, it counts as half made.
        self.slot.forget_repos();
        for tree in self.trees {
            tree.remove().await?;
        }
        if let Some(lock) = self.lock {
            self.slot.clear().await?;
            lock.remove();
        }
        Ok(())
    }

    /// On disk beside the work, for a restart.
    pub fn note_spend(&self, note: &SpendNote) -> Result<(), WorkspaceError> {
        self.slot.write_spend(note)
    }

    /// `None` where no run has begun here.
    pub fn noted_spend(&self) -> Option<SpendNote> {
        self.slot.read_spend()
    }
}
