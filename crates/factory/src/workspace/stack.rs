//! A result on top of a commit, by its strategy: in objects alone, without a work tree, hooks or an index.
//!
//! Never puts a result in that is in already.

use giga_domain::job::MergeStrategy;

use super::error::{WorkspaceError, tidy};
use super::merge::MergeOrder;
use super::mirror::LockedMirror;
use super::policy::Author;
use super::refs::{BranchKind, CommitId, OurBranch, head_ref, job_branch, trailer};
use super::result::is_chain;

/// What became of one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stacked {
    /// The commit that brings it in.
    On(CommitId),
    /// By an earlier order, or by somebody else.
    AlreadyIn(CommitId),
    Conflict {
        files: Vec<String>,
        detail: String,
    },
}

impl Stacked {
    fn conflict(detail: &str) -> Self {
        Self::Conflict { files: Vec::new(), detail: detail.to_owned() }
    }
}

pub(super) async fn stack(
    locked: &LockedMirror<'_>,
    onto: Option<&CommitId>,
    order: &MergeOrder,
) -> Result<Stacked, WorkspaceError> {
    check_result_is_here(locked, order, &result_branch(order)?).await?;
    // The first commit of an empty repository has nothing to be merged with.
    let Some(onto) = onto else { return Ok(Stacked::On(order.commit.clone())) };
    if locked.is_ancestor(&order.commit, onto).await? {
        return find_merge(locked, order, onto).await.map(Stacked::AlreadyIn);
    }
    if let Some(base) = &order.base
        && !is_chain(locked, base, &order.commit, &[base.as_str(), onto.as_str()]).await?
    {
        return Ok(Stacked::conflict(
            "the result is not made of its own commits alone: it holds others that are in the branch, or part of it is in \
             already",
        ));
    }
    match order.strategy {
        MergeStrategy::Merge => in_one_commit(locked, onto, order, false).await,
        MergeStrategy::Squash => in_one_commit(locked, onto, order, true).await,
        MergeStrategy::Rebase => rebase(locked, onto, order).await,
        MergeStrategy::FastForward if locked.is_ancestor(onto, &order.commit).await? => {
            Ok(Stacked::On(order.commit.clone()))
        }
        MergeStrategy::FastForward => {
            Ok(Stacked::conflict("the branch has moved since, and may only be fast-forwarded"))
        }
    }
}

/// Everything that the result changes in one commit, whose second parent it is unless it is squashed.
async fn in_one_commit(
    locked: &LockedMirror<'_>,
    onto: &CommitId,
    order: &MergeOrder,
    squash: bool,
) -> Result<Stacked, WorkspaceError> {
    let tree = match merge_trees(locked, order.base.as_ref(), onto, &order.commit).await? {
        Ok(tree) => tree,
        Err((files, detail)) => return Ok(Stacked::Conflict { files, detail }),
    };
    // Made on a branch that this one does not have: what it changes comes in, and not what that branch has besides.
    let squash = squash
        || match &order.base {
            Some(base) => !locked.is_ancestor(base, onto).await?,
            None => false,
        };
    // What was squashed before is in no history, so what tells is that it changes nothing any more.
    if squash && tree == locked.tree_of(Some(onto)).await? {
        return Ok(Stacked::AlreadyIn(onto.clone()));
    }
    let author = match &order.author {
        None if squash => Some(read_commit(locked, &order.commit).await?.author),
        named => named.clone(),
    };
    let parents = [onto, &order.commit];
    let parents = if squash { &parents[..1] } else { &parents };
    let message = signed_off(&order.message, order);
    locked.commit_for_owner(&tree, parents, &message, author.as_ref()).await.map(Stacked::On)
}

async fn rebase(
    locked: &LockedMirror<'_>,
    onto: &CommitId,
    order: &MergeOrder,
) -> Result<Stacked, WorkspaceError> {
    let range = format!("{}..{}", order.base.as_ref().unwrap_or(onto), order.commit);
    let call = locked.call("listing commits").args(["rev-list", "--reverse", "--topo-order", "--no-merges"]);
    let listed = call.args(["--end-of-options", &range]).run().await?.text();
    let mut tip = onto.clone();
    for commit in listed.lines() {
        let commit: CommitId = commit.parse()?;
        let Some(parent) = locked.commit_at(&format!("{commit}^1")).await? else {
            return Ok(Stacked::conflict("the result shares no history with the branch"));
        };
        let tree = match merge_trees(locked, Some(&parent), &tip, &commit).await? {
            Ok(tree) => tree,
            Err((files, detail)) => return Ok(Stacked::Conflict { files, detail }),
        };
        if tree == locked.tree_of(Some(&tip)).await? {
            continue;
        }
        let Read { author, message } = read_commit(locked, &commit).await?;
        let author = order.author.as_ref().unwrap_or(&author);
        tip = locked.commit_for_owner(&tree, &[&tip], &signed_off(&message, order), Some(author)).await?;
    }
    Ok(if tip == *onto { Stacked::AlreadyIn(tip) } else { Stacked::On(tip) })
}

/// The message with who approved it and whose it is at its end. A line of the same form in a job's own text would say
/// something that nobody has checked.
fn signed_off(message: &str, order: &MergeOrder) -> String {
    let ours = |line: &&str| !line.starts_with("Gigafactory-") && !line.starts_with("Reviewed-by:");
    let message: Vec<&str> = message.lines().filter(ours).collect();
    let message = message.join("\n");
    let message = match message.trim() {
        "" => order.branch.as_str(),
        message => message,
    };
    let reviewers = order.reviewers.iter().map(|name| format!("Reviewed-by: {name}\n"));
    format!("{message}\n\n{}{}\n", reviewers.collect::<String>(), trailer(order.job, order.epoch))
}

struct Read {
    author: Author,
    message: String,
}

async fn read_commit(locked: &LockedMirror<'_>, commit: &CommitId) -> Result<Read, WorkspaceError> {
    let call = locked.call("reading a commit").args(["log", "-1", "--format=%an%x00%ae%x00%ad%x00%B"]);
    let output = call.args(["--date=raw", "--end-of-options", commit.as_str()]).run().await?;
    let text = output.text();
    let mut fields = text.splitn(4, '\0');
    let mut field = || fields.next().unwrap_or_default().to_owned();
    let (name, email, date, message) = (field(), field(), field(), field());
    Ok(Read { author: Author { name, email, date: Some(date) }, message })
}

/// The branch of exactly this job and epoch; one that was reported by an older version has its old name.
pub(super) fn result_branch(order: &MergeOrder) -> Result<OurBranch, WorkspaceError> {
    let wanted = BranchKind::Job(order.job, order.epoch);
    OurBranch::parse(&order.branch).filter(|branch| branch.kind == wanted).ok_or_else(|| {
        let rule = format!("the order is for {}", job_branch(order.job, order.epoch));
        WorkspaceError::refused("branch", &order.branch, rule)
    })
}

/// The commit of the order, from this host or from its branch on the origin, where it must still be the tip.
pub(super) async fn check_result_is_here(
    locked: &LockedMirror<'_>,
    order: &MergeOrder,
    branch: &OurBranch,
) -> Result<(), WorkspaceError> {
    let local = locked.commit_at(&head_ref(&order.branch)).await?;
    if local.as_ref() == Some(&order.commit) {
        return Ok(());
    }
    let fetched = locked.fetch_branch(&order.branch, &branch.fetched_ref()).await?;
    if fetched.as_ref() == Some(&order.commit) {
        return Ok(());
    }
    // A merged branch may have been cleaned up since; then the commit is in the history already.
    if fetched.is_none() && locked.commit_at(order.commit.as_str()).await?.is_some() {
        return Ok(());
    }
    let found = fetched.map_or_else(|| "nothing".to_owned(), |commit| commit.to_string());
    let rule = format!("{} holds {found}, not that commit", order.branch);
    Err(WorkspaceError::refused("commit", order.commit.as_str(), rule))
}

/// The merge that brought the result in; the result itself when it came in another way.
pub(super) async fn find_merge(
    locked: &LockedMirror<'_>,
    order: &MergeOrder,
    tip: &CommitId,
) -> Result<CommitId, WorkspaceError> {
    let range = format!("{}..{tip}", order.commit);
    let call = locked.call("finding the merge").args(["rev-list", "--first-parent", "--merges", "--parents"]);
    let output = call.args(["--reverse", "--max-count=10000", "--end-of-options", &range]).run().await?;
    let text = output.text();
    let merge = text.lines().find_map(|line| {
        let mut ids = line.split(' ');
        let merge = ids.next()?;
        ids.any(|parent| parent == order.commit.as_str()).then(|| merge.parse().ok())?
    });
    Ok(merge.unwrap_or_else(|| order.commit.clone()))
}

type Conflict = (Vec<String>, String);

/// From where they have parted, unless another base is named.
async fn merge_trees(
    locked: &LockedMirror<'_>,
    base: Option<&CommitId>,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Result<String, Conflict>, WorkspaceError> {
    let call = locked.call("merging").args(["merge-tree", "--write-tree", "-z", "--name-only", "--messages"]);
    let call = call.args(base.map(|base| format!("--merge-base={base}")));
    let output = call.args(["--end-of-options", ours.as_str(), theirs.as_str()]).run_any().await?;
    match output.status.code() {
        Some(0) => {
            let tree = output.fields().next().map(|field| String::from_utf8_lossy(field).into_owned());
            tree.ok_or_else(|| output.error()).map(Ok)
        }
        Some(1) => Ok(Err(read_conflict(&output.stdout))),
        _ if output.stderr.contains("unrelated histories") => {
            Ok(Err((Vec::new(), "the result shares no history with the branch".to_owned())))
        }
        _ => Err(output.error()),
    }
}

/// `tree NUL file NUL … NUL NUL messages`, where a message is `count NUL paths… NUL kind NUL text NUL`.
fn read_conflict(stdout: &[u8]) -> Conflict {
    let mut fields = stdout.split(|b| *b == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut files: Vec<String> = fields.by_ref().skip(1).take_while(|field| !field.is_empty()).collect();
    files.sort();
    files.dedup();
    let mut texts = Vec::new();
    while let Some(count) = fields.next().and_then(|count| count.parse::<usize>().ok()) {
        let mut message = fields.by_ref().skip(count);
        let (kind, text) = (message.next(), message.next());
        if kind.is_some_and(|kind| kind.starts_with("CONFLICT")) {
            texts.extend(text.map(|text| text.trim().to_owned()));
        }
    }
    (files, tidy(&texts.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_name_their_files() {
        let stdout = b"4b825dc642cb6eb9a060e54bf8d69288fbee4904\0b.txt\0a.txt\0b.txt\0\0\
            1\0a.txt\0Auto-merging\0Auto-merging a.txt\n\0\
            1\0a.txt\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in a.txt\n\0";
        let (files, detail) = read_conflict(stdout);
        assert_eq!(files, ["a.txt", "b.txt"]);
        assert_eq!(detail, "CONFLICT (content): Merge conflict in a.txt");
    }
}
