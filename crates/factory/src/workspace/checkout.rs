//! Makes a job's work folder, and finds again what a crash left behind.
//!
//! The folder holds a repository of its own that borrows the mirror's objects: what an engine does to its refs,
//! settings and hooks stays there. It can fetch from the origin but not push to it; results leave through
//! `result` alone.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use giga_domain::{Checkpoint, Epoch, JobId};

use super::Workspace;
use super::error::WorkspaceError;
use super::lock::FileLock;
use super::mirror::{LockedMirror, Mirror, OriginHead};
use super::policy::RepoSource;
use super::record::{Record, Slot, Start};
use super::refs::{
    BranchKind, CommitId, OurBranch, check_target_branch, fetched_wip_ref, head_ref, is_checkpoint,
    job_branch, wip_branch,
};
use super::worktree::{LastSaved, Worktree};

/// Where a push of an engine's ends. Its result is pushed by the factory, to the branch of its epoch.
const NO_PUSH: &str = "file:///dev/null/the-factory-pushes-the-result";

/// Checkpoints lie on top of each other where runs were cut off before their engines committed anything.
const LAYERS: usize = 100;

/// A work folder that nobody holds: its agent ended without cleaning up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub job: JobId,
    pub epoch: Epoch,
    /// Where the engine worked.
    pub path: PathBuf,
}

impl Workspace {
    /// A work folder for this epoch of the job, from the named branch, the origin's HEAD, or the checkpoint. Repeated
    /// after a crash, it gives the folder back as it was.
    pub async fn checkout(
        &self,
        job: JobId,
        epoch: Epoch,
        repo: &RepoSource,
        base: Option<&str>,
        resume: Option<&Checkpoint>,
    ) -> Result<Worktree, WorkspaceError> {
        let (slot, lock) = self.place(job, epoch)?;
        self.checkout_at(slot, Some(lock), repo, base, resume).await
    }

    /// `lock` of the whole folder, where it is this work tree's alone.
    pub(crate) async fn checkout_at(
        &self,
        slot: Slot,
        lock: Option<FileLock>,
        repo: &RepoSource,
        base: Option<&str>,
        resume: Option<&Checkpoint>,
    ) -> Result<Worktree, WorkspaceError> {
        let (job, epoch) = (slot.job, slot.epoch);
        let mirror = self.mirror(repo);
        if let Some(record) = slot.read() {
            if record.url != repo.url.as_str() {
                let rule = format!("this epoch already works on {}", record.url);
                return Err(WorkspaceError::refused("repository", repo.url.as_str(), rule));
            }
            return Worktree::new(slot, mirror, &record, LastSaved::default(), lock);
        }
        // Half made, so without work in it.
        slot.clear().await?;
        let origin = Origin::fetch(&mirror, job, base, resume).await?;
        let mut record = Record {
            job,
            epoch,
            repo: repo.name.clone(),
            url: repo.url.as_str().to_owned(),
            base: origin.base.clone().map(String::from),
            started_from: origin.from.clone().map(String::from),
            start: origin.start,
            borrows: Vec::new(),
            quarantined: false,
        };
        match self.build(&slot, &mirror, &origin).await {
            Ok(borrows) => record.borrows = borrows,
            Err(error) => {
                // Best effort: the next checkout clears what is left.
                let _ = slot.clear().await;
                return Err(error);
            }
        }
        slot.write(&record)?;
        let saved = match origin.unfinished {
            Some(commit) => LastSaved {
                head: origin.from,
                tree: Some(mirror.tree_of(Some(&commit)).await?),
                commit: Some(commit),
                on_origin: origin.wip,
            },
            None => LastSaved { on_origin: origin.wip, ..LastSaved::default() },
        };
        Worktree::new(slot, mirror, &record, saved, lock)
    }

    /// Folders of jobs that were under way when their agent died; those in use are not among them.
    pub async fn find_leftovers(&self) -> Vec<Leftover> {
        let mut found = Vec::new();
        for slot in self.slots() {
            match slot.try_lock() {
                Ok(Some(_free)) if !slot.records().is_empty() => {
                    found.push(Leftover { job: slot.job, epoch: slot.epoch, path: slot.tree() });
                }
                Ok(Some(lock)) => {
                    // Died while it was being made: no engine has been in it.
                    if slot.clear().await.is_ok() {
                        lock.remove();
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(job = %slot.job, %error, "a leftover cannot be looked at"),
            }
        }
        found
    }

    pub(crate) fn adopt_at(&self, slot: Slot, lock: Option<FileLock>) -> Result<Worktree, WorkspaceError> {
        let record = slot.read().ok_or_else(|| {
            WorkspaceError::refused(
                "work folder",
                &slot.folder.to_string_lossy(),
                "it is gone, or was never finished",
            )
        })?;
        let mirror = self.mirror(&record.source()?);
        Worktree::new(slot, mirror, &record, LastSaved::default(), lock)
    }

    pub(crate) fn slots(&self) -> Vec<Slot> {
        let entries = std::fs::read_dir(self.inner.base.join("work")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut slots: Vec<_> = names.filter_map(|name| Slot::parse(&self.inner.base, &name)).collect();
        slots.sort_unstable_by_key(|slot| (slot.job, slot.epoch));
        slots
    }

    /// Answers whose objects are borrowed beside the mirror's.
    async fn build(
        &self,
        slot: &Slot,
        mirror: &Mirror,
        origin: &Origin,
    ) -> Result<Vec<String>, WorkspaceError> {
        let tree = slot.tree();
        let format = origin.from.as_ref().map_or("sha1", CommitId::object_format);
        let branch = job_branch(slot.job, slot.epoch);
        let git_dir = self.init(&tree, &branch, format, mirror).await?;
        // With the objects borrowed, this copies names only.
        self.git()
            .at(&git_dir, "copying refs")
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"])
            .arg("--end-of-options")
            .arg(mirror.dir())
            .args(["+refs/remotes/origin/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"])
            .local_source()
            .run()
            .await?;
        if let OriginHead::Branch { name, .. } = &origin.head {
            let target = format!("refs/remotes/origin/{name}");
            let call = self.git().at(&git_dir, "noting the origin's branch");
            call.args(["symbolic-ref", "refs/remotes/origin/HEAD", &target]).run().await?;
        }
        if let Some(from) = &origin.from {
            let files = origin.unfinished.as_ref().unwrap_or(from);
            let large = self.ready_for_large_files(&git_dir, mirror, files).await?;
            self.git()
                .at(&git_dir, "checking out")
                .arg("--work-tree")
                .arg(&tree)
                .args(["checkout", "--quiet", "--no-guess", "-B", &branch, files.as_str(), "--"])
                // Large files may come from the origin while they are checked out.
                .over(mirror.url().protocol())
                .giving_large_files(mirror, &large)
                .run()
                .await?;
            mirror.keep_large_files(&git_dir).await?;
            if origin.unfinished.is_some() {
                self.git()
                    .at(&git_dir, "opening the checkpoint")
                    .arg("--work-tree")
                    .arg(&tree)
                    .args(["reset", "--quiet", "--mixed", from.as_str(), "--"])
                    .run()
                    .await?;
            }
            return self.fill_submodules(&tree, mirror, files).await;
        }
        Ok(Vec::new())
    }

    /// The files of a commit in a folder of their own, with the mirror's objects borrowed.
    pub(crate) async fn open_at(
        &self,
        tree: &Path,
        mirror: &Mirror,
        commit: &CommitId,
    ) -> Result<(), WorkspaceError> {
        let git_dir = self.init(tree, "giga-candidate", commit.object_format(), mirror).await?;
        let large = self.ready_for_large_files(&git_dir, mirror, commit).await?;
        self.git()
            .at(&git_dir, "checking out")
            .arg("--work-tree")
            .arg(tree)
            .args(["checkout", "--quiet", "--detach", commit.as_str(), "--"])
            .over(mirror.url().protocol())
            .giving_large_files(mirror, &large)
            .run()
            .await?;
        mirror.keep_large_files(&git_dir).await
    }

    async fn init(
        &self,
        tree: &Path,
        branch: &str,
        format: &str,
        mirror: &Mirror,
    ) -> Result<PathBuf, WorkspaceError> {
        std::fs::create_dir_all(tree).map_err(WorkspaceError::io(tree))?;
        let git_dir = tree.join(".git");
        self.git()
            .anywhere("making the work folder")
            .args(["init", "--quiet", "--template="])
            .args([format!("--object-format={format}"), format!("--initial-branch={branch}")])
            .arg("--end-of-options")
            .arg(tree)
            .run()
            .await?;
        borrow_objects(&git_dir, mirror)?;
        self.configure(&git_dir, mirror).await?;
        Ok(git_dir)
    }

    /// Written by us and not by `git config`: a process for each of these would take longer than the checkout itself.
    async fn configure(&self, git_dir: &Path, mirror: &Mirror) -> Result<(), WorkspaceError> {
        // The operator's own, where there is one, and written here: in a sandbox the engine does not see where it is from.
        let asked = self.git().at(git_dir, "looking for an identity");
        let answer = asked.args(["config", "--get-regexp", r"^user\.(name|email)$"]).run_any().await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let own = |key: &str| {
            let mut values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            values.next_back().filter(|value| !value.is_empty())
        };
        let identity = &self.inner.policy.identity;
        let (name, email) = match own("user.email") {
            Some(email) => (own("user.name").unwrap_or(&identity.name), email),
            None => (identity.name.as_str(), identity.email.as_str()),
        };
        let settings = [
            ("remote \"origin\"", "url", mirror.url().as_str()),
            ("remote \"origin\"", "pushurl", NO_PUSH),
            ("remote \"origin\"", "fetch", "+refs/heads/*:refs/remotes/origin/*"),
            // A background job of git's would outlive the engine.
            ("gc", "auto", "0"),
            ("maintenance", "auto", "false"),
            ("user", "name", name),
            ("user", "email", email),
        ];
        let path = git_dir.join("config");
        let attempt = || {
            let mut file = OpenOptions::new().append(true).open(&path)?;
            file.write_all(settings.into_iter().map(setting).collect::<String>().as_bytes())
        };
        attempt().map_err(WorkspaceError::io(&path))
    }
}

/// As git reads it, whatever the value holds.
fn setting((section, key, value): (&str, &str, &str)) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("[{section}]\n\t{key} = \"{value}\"\n")
}

fn borrow_objects(git_dir: &Path, mirror: &Mirror) -> Result<(), WorkspaceError> {
    let info = git_dir.join("objects").join("info");
    let attempt = || {
        std::fs::create_dir_all(&info)?;
        let mut line = mirror.dir().join("objects").into_os_string();
        line.push("\n");
        std::fs::write(info.join("alternates"), line.as_encoded_bytes())?;
        // Where the history begins, if the origin does not have all of it.
        let shallow = mirror.dir().join("shallow");
        if shallow.is_file() {
            std::fs::copy(shallow, git_dir.join("shallow"))?;
        }
        Ok(())
    };
    attempt().map_err(WorkspaceError::io(&info))
}

/// What the origin has for this job, and where the work begins.
struct Origin {
    head: OriginHead,
    wip: Option<CommitId>,
    /// The commit that the engine's own go on top of.
    from: Option<CommitId>,
    /// A checkpoint on top of `from` that only we have made: its files come back as they were, not committed, so that no
    /// commit of ours stays in the history.
    unfinished: Option<CommitId>,
    base: Option<CommitId>,
    start: Start,
}

impl Origin {
    async fn fetch(
        mirror: &Mirror,
        job: JobId,
        base: Option<&str>,
        resume: Option<&Checkpoint>,
    ) -> Result<Self, WorkspaceError> {
        let locked = mirror.lock().await?;
        let head = locked.refresh().await?;
        locked.note_use()?;
        let head = match base {
            Some(base) => named_branch(&locked, base).await?,
            None => locked.start(head).await?,
        };
        let wip = locked.fetch_branch(&wip_branch(job), &fetched_wip_ref(job)).await?;
        let checkpoint = match resume {
            Some(checkpoint) => find_checkpoint(&locked, job, checkpoint, wip.as_ref()).await?,
            None => None,
        };
        let start = match (resume, &checkpoint) {
            (Some(_), Some(_)) => Start::Resumed,
            (Some(asked), None) if asked.wip_ref.is_some() || asked.commit.is_some() => {
                Start::CheckpointMissing
            }
            _ => Start::Fresh,
        };
        let below = match &checkpoint {
            Some(commit) => below_checkpoints(&locked, job, commit).await?,
            None => None,
        };
        let (resumed, unfinished) = if below.is_some() { (below, checkpoint) } else { (checkpoint, None) };
        let base = match (&resumed, head.commit()) {
            (Some(from), Some(head)) => locked.merge_base(from, head).await?,
            (_, head) => head.cloned(),
        };
        let from = resumed.or_else(|| head.commit().cloned());
        Ok(Self { head, wip, from, unfinished, base, start })
    }
}

/// A branch that the manifest names, in the place of the origin's own.
async fn named_branch(locked: &LockedMirror<'_>, name: &str) -> Result<OriginHead, WorkspaceError> {
    check_target_branch(name)?;
    let (commit, from) = locked.start_of(name).await?;
    let missing = || WorkspaceError::refused("branch", name, "the origin has no such branch");
    Ok(OriginHead::Branch { name: from, commit: commit.ok_or_else(missing)? })
}

/// The newest commit that is not a checkpoint of ours; `None` when that is the commit itself, or there is none.
async fn below_checkpoints(
    locked: &LockedMirror<'_>,
    job: JobId,
    commit: &CommitId,
) -> Result<Option<CommitId>, WorkspaceError> {
    let mut below = None;
    for _ in 0..LAYERS {
        let newest = below.as_ref().unwrap_or(commit);
        if !is_checkpoint(job, &locked.message_of(newest).await?) {
            break;
        }
        match locked.commit_at(&format!("{newest}^1")).await? {
            Some(parent) => below = Some(parent),
            None => break,
        }
    }
    Ok(below)
}

/// The commit that the coordinator recorded, wherever it is; without one, the newest on the branch.
async fn find_checkpoint(
    locked: &LockedMirror<'_>,
    job: JobId,
    checkpoint: &Checkpoint,
    fetched_wip: Option<&CommitId>,
) -> Result<Option<CommitId>, WorkspaceError> {
    let branch = checkpoint.wip_ref.as_deref().map(|name| checked_branch(job, name)).transpose()?;
    let recorded: Option<CommitId> = checkpoint.commit.as_deref().map(str::parse).transpose()?;
    let mut fetched = fetched_wip.cloned();
    // A result, or what an older version of ours saved.
    if let Some(branch) = branch.as_ref().filter(|branch| branch.name() != wip_branch(job)) {
        fetched = locked.fetch_branch(&branch.name(), &branch.fetched_ref()).await?;
    }
    match (recorded, branch) {
        (Some(recorded), _) => locked.commit_at(recorded.as_str()).await,
        (None, Some(branch)) => Ok(match fetched {
            Some(commit) => Some(commit),
            None => locked.commit_at(&head_ref(&branch.name())).await?,
        }),
        (None, None) => Ok(None),
    }
}

/// A checkpoint may only name branches of its own job.
fn checked_branch(job: JobId, name: &str) -> Result<OurBranch, WorkspaceError> {
    let short = name.strip_prefix("refs/heads/").unwrap_or(name);
    match OurBranch::parse(short) {
        Some(branch)
            if branch.job() == job && matches!(branch.kind, BranchKind::Wip(_) | BranchKind::Job(..)) =>
        {
            Ok(branch)
        }
        _ => Err(WorkspaceError::refused(
            "checkpoint",
            name,
            format!("job {job} resumes from {}", wip_branch(job)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let odd = "a \"quoted\" \\ back; # no comment\nsecond";
        std::fs::write(&file, setting(("remote \"origin\"", "url", odd))).unwrap();
        let output = std::process::Command::new("git")
            .args(["config", "--null", "--file"])
            .arg(&file)
            .args(["--get", "remote.origin.url"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{odd}\0"));
    }
}
