//! What must not leave this machine with a push: secrets of the job, wherever they are in what would be sent.
//!
//! Every object that the origin does not have yet is looked into: files, names of files, messages, also of commits that a
//! later one takes back. Large files that git keeps elsewhere (LFS) are not, nor is what a file has compressed.

use giga_domain::secret::Leaks;
use parking_lot::Mutex;

use super::error::WorkspaceError;
use super::mirror::Mirror;
use super::refs::CommitId;
use super::work_folder::{RunResult, WorkFolder};
use super::worktree::Worktree;

/// Objects that are looked into together.
const TOGETHER: u64 = 16 << 20;
/// The largest that is held in memory to be looked into.
const LARGEST: u64 = 256 << 20;

/// What a work tree is checked for.
#[derive(Debug, Default)]
pub(crate) struct KeptBack(Mutex<Wanted>);

#[derive(Debug, Clone, Default)]
enum Wanted {
    #[default]
    Nothing,
    Secrets(Leaks),
    /// The run had some, and the agent that knew them is gone.
    Forgotten,
}

impl KeptBack {
    pub(crate) fn set(&self, leaks: &Leaks) {
        *self.0.lock() = Wanted::Secrets(leaks.clone());
    }

    pub(crate) fn forget(&self) {
        *self.0.lock() = Wanted::Forgotten;
    }

    /// Why the commit must not be pushed.
    pub(crate) async fn objection(
        &self,
        mirror: &Mirror,
        base: Option<&CommitId>,
        commit: &CommitId,
    ) -> Result<Option<String>, WorkspaceError> {
        let wanted = self.0.lock().clone();
        match wanted {
            Wanted::Nothing => Ok(None),
            Wanted::Forgotten => {
                Ok(Some("the run had secrets, and after a restart nobody can look for them".to_owned()))
            }
            Wanted::Secrets(leaks) => look(mirror, base, commit, &leaks).await,
        }
    }
}

impl Worktree {
    pub(crate) async fn objection(&self, commit: &CommitId) -> Result<Option<String>, WorkspaceError> {
        self.kept_back.objection(&self.mirror, self.base(), commit).await
    }
}

impl WorkFolder {
    /// From now on nothing is pushed that has one of these in it. Noted on disk, so that a restart does not push it either.
    pub fn keep_back(&self, leaks: &Leaks) -> Result<(), WorkspaceError> {
        self.note_secrets()?;
        for tree in self.trees() {
            tree.kept_back.set(leaks);
        }
        Ok(())
    }

    /// Before anything of the result leaves.
    pub async fn check_result(&self, result: &RunResult) -> Result<(), WorkspaceError> {
        for (tree, commit) in self.commits_of(result) {
            if let Some(objection) = tree.objection(commit).await? {
                return Err(WorkspaceError::KeptBack(objection));
            }
        }
        Ok(())
    }
}

async fn look(
    mirror: &Mirror,
    base: Option<&CommitId>,
    commit: &CommitId,
    leaks: &Leaks,
) -> Result<Option<String>, WorkspaceError> {
    let mut listing =
        mirror.call("listing what would be pushed").args(["rev-list", "--objects", "--no-object-names"]);
    listing = listing.args([commit.as_str(), "--not", "--glob=refs/remotes/origin/*"]);
    if let Some(base) = base {
        listing = listing.arg(base.as_str());
    }
    let ids = listing.run().await?.text();
    if ids.is_empty() {
        return Ok(None);
    }
    let sizes = mirror
        .call("measuring what would be pushed")
        .args(["cat-file", "--batch-check=%(objectname) %(objectsize)"]);
    let sizes = sizes.stdin(ids + "\n").run().await?.text();
    let mut together = (String::new(), 0);
    for line in sizes.lines() {
        let Some((id, size)) =
            line.split_once(' ').and_then(|(id, size)| Some((id, size.parse::<u64>().ok()?)))
        else {
            let detail = format!("`{line}` is no object");
            return Err(WorkspaceError::Git { action: "measuring what would be pushed".to_owned(), detail });
        };
        if size > LARGEST {
            let mib = size >> 20;
            return Ok(Some(format!("a file of {mib} MiB is too large to be looked into for secrets")));
        }
        if together.1 + size > TOGETHER
            && let Some(objection) = look_into(mirror, std::mem::take(&mut together), leaks).await?
        {
            return Ok(Some(objection));
        }
        together.0.push_str(id);
        together.0.push('\n');
        together.1 += size;
    }
    look_into(mirror, together, leaks).await
}

async fn look_into(
    mirror: &Mirror,
    (ids, size): (String, u64),
    leaks: &Leaks,
) -> Result<Option<String>, WorkspaceError> {
    if ids.is_empty() {
        return Ok(None);
    }
    // A line before each object, and an end of line behind it.
    let with_headers = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(ids.len() * 4 + 4096);
    let call = mirror.call("looking for secrets").args(["cat-file", "--batch"]).stdin(ids);
    let output = call.at_most(with_headers).run().await?;
    Ok(leaks.find(&output.stdout).map(|name| format!("it contains the secret {name}")))
}
