//! Where work on a repository starts, and which branch its results go to.
//!
//! An origin answers both with a branch. A folder in which somebody works is no origin: a branch that is checked out in
//! it is never moved, unless the operator allowed that and git finds no change in its files. Otherwise results go to
//! `giga/<branch>`, and what comes after them starts there until the owner has taken them.

use std::path::{Path, PathBuf};

use super::Workspace;
use super::error::WorkspaceError;
use super::git::Git;
use super::mirror::{LockedMirror, OriginHead};
use super::policy::{GitPolicy, RepoSource};
use super::refs::{CommitId, check_target_branch};

/// What the owner of a folder most likely means by its branch, whatever is checked out at the moment.
const USUAL: [&str; 3] = ["main", "master", "trunk"];
/// `giga/` followed by one of these is something else of ours.
const TAKEN: [&str; 7] = ["wip", "job", "quarantine", "merge", "request", "remote", "to"];

/// Tells git's own receiver what to do with a branch that is checked out, whatever its configuration says.
pub(crate) const REFUSE: &str = "--receive-pack=git -c receive.denyCurrentBranch=refuse receive-pack";
pub(crate) const UPDATE: &str = "--receive-pack=git -c receive.denyCurrentBranch=updateInstead receive-pack";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// What results are merged onto; nothing in an empty repository.
    pub(crate) start: Option<CommitId>,
    /// The branch that has it.
    pub(crate) from: String,
    /// The branch that is pushed, and what it is at.
    pub(crate) into: String,
    pub(crate) tip: Option<CommitId>,
}

/// A repository on this machine as it is now.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    is_bare: bool,
    /// The branch that work is for where nobody says another.
    branch: Option<String>,
    checked_out: Vec<(String, PathBuf)>,
}

impl Folder {
    pub(crate) async fn look(git: &Git, path: &Path) -> Result<Self, WorkspaceError> {
        let git_dir = if path.join(".git").exists() { path.join(".git") } else { path.to_owned() };
        let call = |action: &str| git.at(&git_dir, format!("{action} {}", path.display()));
        let listed = call("listing the worktrees of").args(["worktree", "list", "--porcelain", "-z"]);
        let worktrees = listed.run().await?;
        let worktrees = read_worktrees(&worktrees.text());
        let is_bare = worktrees.iter().any(|worktree| worktree.is_bare);
        let head = call("reading HEAD of").args(["symbolic-ref", "--quiet", "HEAD"]).run_any().await?.text();
        let head = head.strip_prefix("refs/heads/").map(str::to_owned);
        let branch = match head {
            // Nobody works there: its HEAD says what it is about, as an origin's does.
            Some(head) if is_bare || USUAL.contains(&head.as_str()) => Some(head),
            head => usual_branch(call("listing branches of")).await?.or(head),
        };
        let checked_out =
            worktrees.into_iter().filter_map(|worktree| Some((worktree.branch?, worktree.path)));
        Ok(Self {
            path: path.to_owned(),
            is_bare,
            branch: branch.filter(|name| check_target_branch(name).is_ok()),
            checked_out: checked_out.collect(),
        })
    }

    fn where_checked_out(&self, branch: &str) -> Vec<&Path> {
        let matching = self.checked_out.iter().filter(|(name, _)| name == branch);
        matching.map(|(_, path)| path.as_path()).collect()
    }

    /// Git brings one folder up to date with its branch, so that a second one would be left behind.
    fn may_update(&self, policy: &GitPolicy, branch: &str) -> Option<&Path> {
        match *self.where_checked_out(branch) {
            [only] if policy.update_checkouts => Some(only),
            _ => None,
        }
    }

    /// Where results will go, before there are any.
    pub(crate) fn destination(&self, policy: &GitPolicy) -> String {
        let folder = self.path.display();
        let Some(branch) = &self.branch else {
            return format!("no branch: HEAD of {folder} is on none; check one out there");
        };
        let aside = aside(branch);
        let places = self.where_checked_out(branch);
        if places.is_empty() {
            format!("{branch} in {folder}")
        } else if self.may_update(policy, branch).is_some() {
            format!("{branch} in {folder} while its files are unchanged, otherwise {aside}")
        } else {
            let place = listed(&places, &self.path);
            let how = if places.len() == 1 && !policy.update_checkouts {
                "; --update-checkouts moves it"
            } else {
                ""
            };
            format!("{aside} in {folder}: {branch} is checked out {place}{how}")
        }
    }
}

/// As `git worktree list --porcelain -z` prints one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listed {
    path: PathBuf,
    branch: Option<String>,
    is_bare: bool,
}

fn read_worktrees(text: &str) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for field in text.split('\0') {
        if let Some(path) = field.strip_prefix("worktree ") {
            all.push(Listed { path: path.into(), ..Listed::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        if let Some(branch) = field.strip_prefix("branch refs/heads/") {
            last.branch = Some(branch.to_owned());
        }
        last.is_bare |= field == "bare";
    }
    all
}

async fn usual_branch(call: super::git::Call<'_>) -> Result<Option<String>, WorkspaceError> {
    let names = USUAL.map(|name| format!("refs/heads/{name}"));
    let output = call.args(["for-each-ref", "--format=%(refname:lstrip=2)"]).args(&names).run().await?.text();
    Ok(USUAL.into_iter().find(|name| output.lines().any(|line| line == *name)).map(str::to_owned))
}

fn listed(places: &[&Path], here: &Path) -> String {
    match places {
        [only] if *only == here => "there".to_owned(),
        places => {
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            format!("in {}", places.join(" and "))
        }
    }
}

/// The branch of ours that stands in for one that cannot be moved.
pub(crate) fn aside(branch: &str) -> String {
    let is_taken = branch.split('/').next().is_some_and(|first| TAKEN.contains(&first));
    if is_taken { format!("giga/to/{branch}") } else { format!("giga/{branch}") }
}

/// The branch that it stands in for.
fn stands_for(into: &str) -> Option<&str> {
    let rest = into.strip_prefix("giga/")?;
    let branch = rest.strip_prefix("to/").unwrap_or(rest);
    (aside(branch) == into).then_some(branch)
}

/// A branch that results may be pushed to: the owner's, or in a folder of theirs the one that stands in for it.
pub(crate) fn check_into(repo: &RepoSource, into: &str) -> Result<(), WorkspaceError> {
    match stands_for(into).filter(|_| repo.url.folder().is_some()) {
        Some(branch) => check_target_branch(branch),
        None => check_target_branch(into),
    }
}

/// Whether git refused only because somebody works in the folder: then the result goes to the branch beside. Beside that
/// there is none.
pub(crate) fn is_in_use(into: &str, refusal: &str) -> bool {
    const IN_USE: [&str; 6] = [
        "branch is currently checked out",
        "Working directory has unstaged changes",
        "Working directory has staged changes",
        "Could not update working tree to new HEAD",
        "Up-to-date check failed",
        "push-to-checkout hook declined",
    ];
    stands_for(into).is_none() && IN_USE.iter().any(|words| refusal.contains(words))
}

impl LockedMirror<'_> {
    /// As the origin is now, where it is a folder of this machine that somebody may work in.
    async fn folder(&self) -> Result<Option<Folder>, WorkspaceError> {
        let Some(path) = self.source().url.folder() else { return Ok(None) };
        let folder = Folder::look(self.workspace().git(), &path).await?;
        Ok((!folder.is_bare || !folder.checked_out.is_empty()).then_some(folder))
    }

    /// The branch of such a folder, whether it has a commit or not.
    pub(crate) async fn branch_of_folder(&self) -> Result<Option<String>, WorkspaceError> {
        Ok(self.folder().await?.and_then(|folder| folder.branch))
    }

    /// Where work starts that nobody has said more about; `head` is the origin's own, just fetched.
    pub(crate) async fn start(&self, head: OriginHead) -> Result<OriginHead, WorkspaceError> {
        let Some(branch) = self.branch_of_folder().await? else { return Ok(head) };
        Ok(match self.newest(&branch).await? {
            (Some(commit), name) => OriginHead::Branch { name, commit },
            (None, name) => OriginHead::Unborn { name },
        })
    }

    /// The same for a branch that is named: what it is at, and the branch that has that.
    pub(crate) async fn start_of(&self, branch: &str) -> Result<(Option<CommitId>, String), WorkspaceError> {
        match self.folder().await? {
            Some(_) => self.newest(branch).await,
            None => Ok((self.fetched(branch).await?, branch.to_owned())),
        }
    }

    /// Where a result goes: into the branch that is named, else into the one that the origin's HEAD is on.
    pub(crate) async fn target(
        &self,
        named: Option<&str>,
        head: &OriginHead,
    ) -> Result<Target, WorkspaceError> {
        let folder = self.folder().await?;
        let branch = match &folder {
            Some(folder) => named.or(folder.branch.as_deref()),
            None => named.or_else(|| head.branch()),
        };
        let branch = branch.ok_or_else(|| {
            let rule = "its HEAD is on no branch, so the order has to say where to merge";
            WorkspaceError::refused("repository", self.url().as_str(), rule)
        })?;
        let tip = self.fetched(branch).await?;
        let Some(folder) = &folder else {
            let (from, into) = (branch.to_owned(), branch.to_owned());
            return Ok(Target { start: tip.clone(), from, into, tip });
        };
        let (start, from) = self.newest(branch).await?;
        if self.can_move(folder, branch, tip.as_ref(), start.as_ref()).await? {
            return Ok(Target { start, from, into: branch.to_owned(), tip });
        }
        let into = aside(branch);
        let tip = self.fetched(&into).await?;
        Ok(Target { start, from, into, tip })
    }

    async fn fetched(&self, branch: &str) -> Result<Option<CommitId>, WorkspaceError> {
        self.commit_at(&format!("refs/remotes/origin/{branch}")).await
    }

    /// The branch, or the one beside it while that has something which the branch has not.
    async fn newest(&self, branch: &str) -> Result<(Option<CommitId>, String), WorkspaceError> {
        let owners = self.fetched(branch).await?;
        let aside = aside(branch);
        let Some(ours) = self.fetched(&aside).await? else { return Ok((owners, branch.to_owned())) };
        let is_taken = match &owners {
            Some(owners) => self.is_ancestor(&ours, owners).await?,
            None => false,
        };
        Ok(if is_taken { (owners, branch.to_owned()) } else { (Some(ours), aside) })
    }

    async fn can_move(
        &self,
        folder: &Folder,
        branch: &str,
        tip: Option<&CommitId>,
        start: Option<&CommitId>,
    ) -> Result<bool, WorkspaceError> {
        let workspace = self.workspace();
        if let (Some(tip), Some(start)) = (tip, start)
            && !self.is_ancestor(tip, start).await?
        {
            // The owner went on without what is beside: only they can bring the two together.
            return Ok(false);
        }
        if workspace.inner.in_use.take(&folder.path, branch) {
            return Ok(false);
        }
        if folder.where_checked_out(branch).is_empty() {
            return Ok(true);
        }
        match folder.may_update(&workspace.inner.policy, branch) {
            Some(place) => Ok(is_clean(workspace.git(), place).await),
            None => Ok(false),
        }
    }

    /// How git is to receive a push to the owner's branch; nothing to say where nobody works in the repository.
    pub(crate) async fn receive_option(&self, branch: &str) -> Result<Option<&'static str>, WorkspaceError> {
        let Some(folder) = self.folder().await? else { return Ok(None) };
        let may = folder.may_update(&self.workspace().inner.policy, branch).is_some();
        Ok(Some(if may { UPDATE } else { REFUSE }))
    }

    /// The next try goes to the branch beside.
    pub(crate) fn note_in_use(&self, branch: &str) {
        if let Some(folder) = self.source().url.folder() {
            self.workspace().inner.in_use.note(folder, branch);
        }
    }
}

/// What git itself looks at before it updates files. Writes nothing, not even the index.
async fn is_clean(git: &Git, place: &Path) -> bool {
    let call = git.anywhere(format!("looking for changes in {}", place.display())).arg("-C").arg(place);
    let call = call.args(["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]);
    let output = call.arg("--ignore-submodules=all").at_most(1_000).run_any().await;
    output.is_ok_and(|output| output.status.success() && output.stdout.is_empty())
}

/// Branches that git would not move because somebody was at work in their folder, each until it is asked about.
#[derive(Debug, Default)]
pub(crate) struct InUse(parking_lot::Mutex<Vec<(PathBuf, String)>>);

impl InUse {
    fn note(&self, folder: PathBuf, branch: &str) {
        self.0.lock().push((folder, branch.to_owned()));
    }

    fn take(&self, folder: &Path, branch: &str) -> bool {
        let mut all = self.0.lock();
        let before = all.len();
        all.retain(|(at, name)| at != folder || name != branch);
        all.len() < before
    }
}

impl Workspace {
    /// What the owner should know of a merge: in which folder of theirs it is, or is not yet.
    pub async fn merge_note(&self, repo: &RepoSource, commit: &CommitId, into: &str) -> Option<String> {
        let short = &commit.as_str()[..10];
        let merged = format!("merged into {into} as {short}");
        let note = match repo.url.folder() {
            Some(path) => match Folder::look(self.git(), &path).await {
                Ok(folder) if folder.is_bare && folder.checked_out.is_empty() => None,
                Ok(folder) => Some(note_in(&folder, &merged, into)),
                Err(_) => None,
            },
            None => None,
        };
        note.or_else(|| {
            let checkout = repo.checkout.as_ref()?.display();
            Some(format!("merged into origin/{into} as {short}; `git pull` in {checkout}"))
        })
    }
}

fn note_in(folder: &Folder, merged: &str, into: &str) -> String {
    let path = folder.path.display();
    let Some(branch) = stands_for(into) else { return format!("{merged} in {path}") };
    match *folder.where_checked_out(branch) {
        [] => format!(
            "{merged} in {path}, because {branch} cannot be moved now; `git merge {into}` on {branch}"
        ),
        [place, ..] => {
            let place = place.display();
            format!("{merged}, because {branch} is checked out in {place}; `git merge {into}` there")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_branch_has_another_beside_it() {
        for (branch, beside) in [
            ("main", "giga/main"),
            ("release/2", "giga/release/2"),
            ("job", "giga/to/job"),
            ("wip/x", "giga/to/wip/x"),
            ("to", "giga/to/to"),
            ("jobs", "giga/jobs"),
        ] {
            assert_eq!(aside(branch), beside);
            assert_eq!(stands_for(beside), Some(branch));
        }
        for other in ["main", "giga", "giga/wip/x", "giga/to/main", "giga/job"] {
            assert_eq!(stands_for(other), None, "{other}");
        }
    }

    #[test]
    fn worktrees_are_read_as_git_lists_them() {
        let text = "worktree /a b\0HEAD 1\0branch refs/heads/main\0\0worktree /c\0HEAD 1\0detached\0\0\
                    worktree /d\0bare\0\0worktree /e\0HEAD 1\0branch refs/heads/x/y\0locked why\0\0";
        let read: Vec<_> = read_worktrees(text)
            .into_iter()
            .map(|w| (w.path, w.branch.unwrap_or_default(), w.is_bare))
            .collect();
        let expected = [("/a b", "main", false), ("/c", "", false), ("/d", "", true), ("/e", "x/y", false)];
        assert_eq!(read, expected.map(|(path, branch, bare)| (path.into(), branch.to_owned(), bare)));
    }
}
