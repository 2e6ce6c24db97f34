//! What a holder saves and hands over: checkpoints, the result, and quarantine for what was fenced.
//!
//! A result goes to the branch of its own epoch and no other, a checkpoint never replaces a newer epoch's, and
//! quarantined work never leaves the host.

use giga_domain::Checkpoint;

use super::error::WorkspaceError;
use super::mirror::Mirror;
use super::push::{PushReply, PushTarget};
use super::refs::{
    CommitId, checkpoint_trailer, head_ref, job_branch, quarantine_branch, trailer, wip_branch,
};
use super::snapshot::{Missing, Snapshot};
use super::worktree::Worktree;

/// A checkpoint that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub checkpoint: Checkpoint,
    /// Why the origin does not have it; then only this host can resume from it.
    pub not_pushed: Option<String>,
    /// What could not be saved, and why.
    pub left_out: Vec<String>,
}

/// What a run hands over: a commit on `giga/job/<job>/<epoch>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultCommit {
    pub branch: String,
    pub commit: CommitId,
    pub files_changed: u64,
    pub lines_added: u64,
    pub lines_removed: u64,
    /// Where the job's own commits begin; none in an empty repository.
    pub base: Option<CommitId>,
    /// Files whose changes no diff shows.
    pub binary: Vec<String>,
    /// The engine's commits were not its own alone, so that they are one commit now.
    pub squashed: bool,
    /// Repositories inside the work folder and the like, which no commit can hold.
    pub left_out: Vec<String>,
}

impl ResultCommit {
    /// Where a later run continues when changes are asked for.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            wip_ref: Some(self.branch.clone()),
            commit: Some(self.commit.to_string()),
            ..Checkpoint::default()
        }
    }
}

impl Worktree {
    /// Commits everything to `giga/wip/<job>` behind the engine's back. `None` when there is nothing new to save.
    /// The answer says when the origin could not be reached: the work is safe on this host all the same.
    pub async fn checkpoint(&self, note: &str, push: bool) -> Result<Option<Saved>, WorkspaceError> {
        let mut saved = self.saved.lock().await;
        let snapshot = self.snapshot(Missing::Note).await?;
        let is_untouched = snapshot.head == self.started_from
            && snapshot.tree == self.mirror.tree_of(self.started_from.as_ref()).await?;
        if is_untouched && saved.commit.is_none() {
            return Ok(None);
        }
        let is_saved = saved.head == snapshot.head && saved.tree.as_ref() == Some(&snapshot.tree);
        let commit = match saved.commit.clone().filter(|_| is_saved) {
            Some(commit) if !push || saved.on_origin.as_ref() == Some(&commit) => {
                tracing::trace!(%commit, "nothing new to save");
                return Ok(None);
            }
            Some(commit) => commit,
            None => self.save_wip(&snapshot, note).await?,
        };
        saved.head = snapshot.head;
        saved.tree = Some(snapshot.tree);
        saved.commit = Some(commit.clone());
        let not_pushed = if !push {
            Some("it was not asked for".to_owned())
        } else if self.is_quarantined() {
            Some("the work is in quarantine".to_owned())
        } else if let Some(objection) = self.objection(&commit).await? {
            Some(objection)
        } else {
            let holder = (self.job(), self.epoch());
            let pushed = match self.mirror.push_large_files(&commit, self.path()).await {
                Ok(()) => self.mirror.push_wip(holder, &commit, saved.on_origin.clone()).await,
                Err(error) => Err(error),
            };
            match pushed {
                Ok(()) => {
                    saved.on_origin = Some(commit.clone());
                    None
                }
                Err(error @ WorkspaceError::Superseded { .. }) => return Err(error),
                Err(error) => Some(error.to_string()),
            }
        };
        let checkpoint = Checkpoint {
            wip_ref: Some(wip_branch(self.job())),
            commit: Some(commit.to_string()),
            note: Some(one_line(note)),
            ..Checkpoint::default()
        };
        Ok(Some(Saved { checkpoint, not_pushed, left_out: snapshot.left_out }))
    }

    /// The last checkpoint that was taken, whoever has heard of it.
    pub async fn last_checkpoint(&self) -> Option<Saved> {
        let saved = self.saved.lock().await;
        let commit = saved.commit.clone()?;
        let not_pushed = (saved.on_origin.as_ref() != Some(&commit)).then(|| "it was not pushed".to_owned());
        let checkpoint = Checkpoint {
            wip_ref: Some(wip_branch(self.job())),
            commit: Some(commit.to_string()),
            ..Checkpoint::default()
        };
        Some(Saved { checkpoint, not_pushed, left_out: Vec::new() })
    }

    async fn save_wip(&self, snapshot: &Snapshot, note: &str) -> Result<CommitId, WorkspaceError> {
        let name = head_ref(&wip_branch(self.job()));
        let trailer = checkpoint_trailer(self.job(), self.epoch());
        let commit = self.commit_with(snapshot, &format!("wip: {}", one_line(note)), &trailer).await?;
        let locked = self.mirror.lock().await?;
        if let Some(found) = locked.commit_at(&name).await? {
            locked.check_epoch(&wip_branch(self.job()), (self.job(), self.epoch()), &found).await?;
        }
        locked.set_ref(&name, &commit).await?;
        Ok(commit)
    }

    /// Commits what the engine left uncommitted on top of its own commits. `None` when the job changed nothing.
    ///
    /// What is merged later is what people are shown now, so its history is the job's own and nothing else: a chain of
    /// commits on the base. An engine's history that is anything else becomes one commit on the base.
    pub async fn commit_result(
        &self,
        title: &str,
        body: &str,
    ) -> Result<Option<ResultCommit>, WorkspaceError> {
        let _turn = self.saved.lock().await;
        let snapshot = self.snapshot(Missing::Fail).await?;
        let base = self.mirror.tree_of(self.base()).await?;
        if snapshot.tree == base {
            return Ok(None);
        }
        let branch = job_branch(self.job(), self.epoch());
        let squashed = !self.is_own_chain(snapshot.head.as_ref()).await?;
        let snapshot = if squashed { Snapshot { head: self.base().cloned(), ..snapshot } } else { snapshot };
        let commit = match self.same_result(&branch, &snapshot).await? {
            Some(commit) => commit,
            None => self.commit(&snapshot, &format!("{}\n\n{}", one_line(title), body.trim())).await?,
        };
        self.mirror.lock().await?.set_ref(&head_ref(&branch), &commit).await?;
        let Counted { files_changed, lines_added, lines_removed, binary } =
            self.count_changes(&base, &snapshot.tree).await?;
        let (base, left_out) = (self.base().cloned(), snapshot.left_out);
        Ok(Some(ResultCommit {
            branch,
            commit,
            files_changed,
            lines_added,
            lines_removed,
            base,
            binary,
            squashed,
            left_out,
        }))
    }

    /// Whether the commits from the base to here are a chain that the job has made itself: a commit of the origin's in
    /// between would be merged as it is, whatever the diff from the base shows.
    async fn is_own_chain(&self, head: Option<&CommitId>) -> Result<bool, WorkspaceError> {
        let (Some(base), Some(head)) = (self.base(), head) else { return Ok(self.base().is_none()) };
        if base == head {
            return Ok(true);
        }
        // The engine may have fetched since, and this host not.
        self.mirror.lock().await?.refresh().await?;
        let not = [base.as_str(), "--glob=refs/remotes/origin/*"];
        is_chain(&self.mirror, base, head, &not).await
    }

    /// The engine's own commit when it left nothing over, or what an earlier call of this made of the same
    /// state: a repeated call must not make a second result.
    async fn same_result(
        &self,
        branch: &str,
        snapshot: &Snapshot,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        let Some(head) = &snapshot.head else { return Ok(None) };
        if self.mirror.tree_of(Some(head)).await? == snapshot.tree {
            return Ok(Some(head.clone()));
        }
        let Some(earlier) = self.mirror.commit_at(&head_ref(branch)).await? else { return Ok(None) };
        let is_same = self.mirror.tree_of(Some(&earlier)).await? == snapshot.tree
            && self.mirror.is_ancestor(head, &earlier).await?;
        Ok(is_same.then_some(earlier))
    }

    /// Hands the result to the origin: to the branch of this epoch, without force. Repeating it changes nothing.
    pub async fn push_result(&self, result: &ResultCommit) -> Result<(), WorkspaceError> {
        let branch = job_branch(self.job(), self.epoch());
        if result.branch != branch {
            let rule = format!("this epoch's branch is {branch}");
            return Err(WorkspaceError::refused("branch", &result.branch, rule));
        }
        if self.is_quarantined() {
            let rule = "the work is in quarantine and stays on this host";
            return Err(WorkspaceError::refused("branch", &result.branch, rule));
        }
        if let Some(objection) = self.objection(&result.commit).await? {
            return Err(WorkspaceError::KeptBack(objection));
        }
        self.mirror.push_large_files(&result.commit, self.path()).await?;
        let target = PushTarget::Result { job: self.job(), epoch: self.epoch() };
        match self.mirror.push(&result.commit, target).await? {
            PushReply::Done => Ok(()),
            PushReply::Raced => {
                let detail = "it already holds another result of this epoch".to_owned();
                Err(WorkspaceError::PushRefused { branch, detail })
            }
        }
    }

    /// Keeps a fenced holder's work on a ref of this host and bars it from every push. Answers the branch.
    pub async fn quarantine(&self, why: &str) -> Result<String, WorkspaceError> {
        // First of all, so that whatever fails below, nothing is pushed any more.
        self.mark_quarantined()?;
        let _turn = self.saved.lock().await;
        let snapshot = self.snapshot(Missing::Note).await?;
        let commit = self.commit(&snapshot, &format!("quarantine: {}", one_line(why))).await?;
        let branch = quarantine_branch(self.job(), self.epoch());
        self.mirror.lock().await?.set_ref(&head_ref(&branch), &commit).await?;
        Ok(branch)
    }

    pub(crate) async fn commit(
        &self,
        snapshot: &Snapshot,
        message: &str,
    ) -> Result<CommitId, WorkspaceError> {
        self.commit_with(snapshot, message, &trailer(self.job(), self.epoch())).await
    }

    pub(super) async fn commit_with(
        &self,
        snapshot: &Snapshot,
        message: &str,
        trailer: &str,
    ) -> Result<CommitId, WorkspaceError> {
        let message = format!("{}\n\n{trailer}\n", message.trim_end());
        let parents: Vec<&CommitId> = snapshot.head.iter().collect();
        self.mirror.commit_tree(&snapshot.tree, &parents, &message).await
    }

    async fn count_changes(&self, from: &str, to: &str) -> Result<Counted, WorkspaceError> {
        let call = self.mirror.call("counting changes").args(["diff-tree", "-r", "-M", "--numstat"]);
        let call = call.args(["--no-ext-diff", "--no-textconv", "--end-of-options", from, to]);
        Ok(count(&call.run().await?.text()))
    }
}

/// Whether the way from `head` down to `base` is single commits, one on the other, without any that `not` excludes.
pub(super) async fn is_chain(
    mirror: &Mirror,
    base: &CommitId,
    head: &CommitId,
    not: &[&str],
) -> Result<bool, WorkspaceError> {
    if head == base {
        return Ok(true);
    }
    let call =
        mirror.call("looking at the commits of a result").args(["rev-list", "--parents", "--topo-order"]);
    let listed = call.args([head.as_str(), "--not"]).args(not.iter().copied()).run().await?.text();
    let mut next = head.as_str();
    for line in listed.lines() {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            [commit, parent] if *commit == next => next = *parent,
            _ => return Ok(false),
        }
    }
    Ok(next == base.as_str())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    files_changed: u64,
    lines_added: u64,
    lines_removed: u64,
    binary: Vec<String>,
}

/// `10\t2\tpath` for each file, and `-\t-\tpath` for a binary one.
fn count(numstat: &str) -> Counted {
    let mut counted = Counted::default();
    for line in numstat.lines() {
        let mut fields = line.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        counted.files_changed += 1;
        match (added.parse::<u64>(), removed.parse::<u64>()) {
            (Ok(added), Ok(removed)) => {
                counted.lines_added += added;
                counted.lines_removed += removed;
            }
            _ => counted.binary.push(path.to_owned()),
        }
    }
    counted
}

/// The first line, without what could end it early or make it endless.
fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    if line.trim().is_empty() { "work of a factory".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        let counted = count("10\t2\ta.txt\n0\t0\told => new\n-\t-\tlogo.png\n");
        let binary = vec!["logo.png".to_owned()];
        assert_eq!(counted, Counted { files_changed: 3, lines_added: 10, lines_removed: 2, binary });
        assert_eq!(count(""), Counted::default());
    }

    #[test]
    fn titles_are_one_line() {
        assert_eq!(one_line("fix\n\nGigafactory-Job: forged"), "fix");
        assert_eq!(one_line("a\u{1b}[31m\0b"), "a[31mb");
        assert_eq!(one_line(" \n "), "work of a factory");
        assert_eq!(one_line(&"x".repeat(900)).len(), 200);
    }
}
