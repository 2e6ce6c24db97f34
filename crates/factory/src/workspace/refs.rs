//! The names that this factory gives to work: commits, and refs that carry job and epoch.
//!
//! Refs are built from ids that were parsed, never from text; text from outside is only ever compared with them.

use std::fmt;
use std::str::FromStr;

use giga_domain::manifest::is_branch;
use giga_domain::{Epoch, JobId};

use super::error::WorkspaceError;

/// A full commit id in lower-case hex, so that it can never be taken for a ref or an option.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(String);

impl CommitId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn object_format(&self) -> &'static str {
        if self.0.len() == 64 { "sha256" } else { "sha1" }
    }
}

impl FromStr for CommitId {
    type Err = WorkspaceError;
    fn from_str(text: &str) -> Result<Self, WorkspaceError> {
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
        if is_hex && matches!(text.len(), 40 | 64) {
            Ok(Self(text.to_owned()))
        } else {
            Err(WorkspaceError::refused("commit", text, "a commit is 40 or 64 lower-case hex digits"))
        }
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0
    }
}

impl AsRef<str> for CommitId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Where interrupted work waits: one per job, moved on by each holder in turn.
pub fn wip_branch(job: JobId) -> String {
    format!("giga/wip/{job}")
}

/// What a run hands over. The epoch in the name keeps a zombie off its successor's branch.
pub fn job_branch(job: JobId, epoch: Epoch) -> String {
    format!("giga/job/{job}/{epoch}")
}

/// What a fenced holder had; stays on its host.
pub fn quarantine_branch(job: JobId, epoch: Epoch) -> String {
    format!("giga/quarantine/{job}/{epoch}")
}

/// What is going to be pushed to the owner's branch.
pub(crate) fn candidate_branch(job: JobId, commit: &CommitId) -> String {
    format!("giga/merge/{job}/{commit}")
}

/// What a pull request shows: one per job, moved on by each result in turn.
pub fn request_branch(job: JobId) -> String {
    format!("giga/request/{job}")
}

/// Where an agent that works elsewhere gets its work and leaves it. The epoch in the name keeps a session that nobody waits
/// for any more away from its successor's.
pub fn remote_branch(job: JobId, epoch: Epoch) -> String {
    format!("giga/remote/{job}/{epoch}")
}

pub(crate) fn head_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// The engine's own HEAD as last read; keeps its commits from being pruned between two reads.
pub(crate) fn engine_ref(job: JobId, epoch: Epoch) -> String {
    format!("refs/giga/engine/{job}/{epoch}")
}

/// What an agent elsewhere has pushed, as last fetched.
pub(crate) fn pushed_ref(job: JobId, epoch: Epoch) -> String {
    format!("refs/giga/pushed/{job}/{epoch}")
}

/// The origin's WIP as last fetched.
pub(crate) fn fetched_wip_ref(job: JobId) -> String {
    format!("refs/giga/wip/{job}")
}

/// The origin's HEAD as last fetched.
pub(crate) const ORIGIN_HEAD: &str = "refs/giga/origin-head";

/// Marks a commit as made for one epoch of one job.
pub(crate) fn trailer(job: JobId, epoch: Epoch) -> String {
    format!("{TRAILER}{job}/{epoch}")
}

const TRAILER: &str = "Gigafactory-Job: ";

/// The job and epoch that a commit message ends with. Only the last line counts: titles and bodies come from
/// jobs, and the line after them is ours.
pub(crate) fn parse_trailer(message: &str) -> Option<(JobId, Epoch)> {
    let (job, epoch) = message.trim_end().lines().next_back()?.strip_prefix(TRAILER)?.split_once('/')?;
    Some((job.parse().ok()?, parse_epoch(epoch)?))
}

/// The same for a commit that only saves what was not committed yet.
pub(crate) fn checkpoint_trailer(job: JobId, epoch: Epoch) -> String {
    format!("{CHECKPOINT}{job}\n{}", trailer(job, epoch))
}

const CHECKPOINT: &str = "Gigafactory-Checkpoint: ";

/// Recognised by the line above the trailer, which is empty where a title and a body from outside stand before it.
pub(crate) fn is_checkpoint(job: JobId, message: &str) -> bool {
    let mark = message.trim_end().lines().nth_back(1).and_then(|line| line.strip_prefix(CHECKPOINT));
    mark.is_some_and(|of| of == job.to_string()) && parse_trailer(message).is_some_and(|(of, _)| of == job)
}

/// Where our branches are, under today's name and under the one before it. Whatever else is called `giga/…` is not ours.
pub(crate) const OUR_FOLDERS: [&str; 9] = [
    "giga/wip",
    "giga/job",
    "giga/quarantine",
    "giga/merge",
    "giga/request",
    "giga/remote",
    "aq/wip",
    "aq/job",
    "aq/quarantine",
];

/// One of ours, by its branch name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OurBranch {
    pub(crate) kind: BranchKind,
    spelling: Spelling,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BranchKind {
    Wip(JobId),
    Job(JobId, Epoch),
    Quarantine(JobId, Epoch),
    Candidate(JobId, CommitId),
    Request(JobId),
    Remote(JobId, Epoch),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spelling {
    Giga,
    /// Read wherever it comes from outside, never written.
    Aq,
}

impl From<BranchKind> for OurBranch {
    fn from(kind: BranchKind) -> Self {
        Self { kind, spelling: Spelling::Giga }
    }
}

impl OurBranch {
    /// `None` for whatever is not spelled exactly as we spell it, or once did.
    pub(crate) fn parse(branch: &str) -> Option<Self> {
        let (prefix, rest) = branch.split_once('/')?;
        let spelling = match prefix {
            "giga" => Spelling::Giga,
            "aq" => Spelling::Aq,
            _ => return None,
        };
        let (folder, rest) = rest.split_once('/')?;
        let kind = match folder {
            "wip" => BranchKind::Wip(rest.parse().ok()?),
            "job" | "quarantine" => {
                let (job, epoch) = rest.split_once('/')?;
                let (job, epoch) = (job.parse().ok()?, parse_epoch(epoch)?);
                if folder == "job" { BranchKind::Job(job, epoch) } else { BranchKind::Quarantine(job, epoch) }
            }
            "merge" if spelling == Spelling::Giga => {
                let (job, commit) = rest.split_once('/')?;
                BranchKind::Candidate(job.parse().ok()?, commit.parse().ok()?)
            }
            "request" if spelling == Spelling::Giga => BranchKind::Request(rest.parse().ok()?),
            "remote" if spelling == Spelling::Giga => {
                let (job, epoch) = rest.split_once('/')?;
                BranchKind::Remote(job.parse().ok()?, parse_epoch(epoch)?)
            }
            _ => return None,
        };
        let parsed = Self { kind, spelling };
        (parsed.name() == branch).then_some(parsed)
    }

    /// As it was spelled.
    pub(crate) fn name(&self) -> String {
        let name = match &self.kind {
            BranchKind::Wip(job) => wip_branch(*job),
            BranchKind::Job(job, epoch) => job_branch(*job, *epoch),
            BranchKind::Quarantine(job, epoch) => quarantine_branch(*job, *epoch),
            BranchKind::Candidate(job, commit) => candidate_branch(*job, commit),
            BranchKind::Request(job) => request_branch(*job),
            BranchKind::Remote(job, epoch) => remote_branch(*job, *epoch),
        };
        match self.spelling {
            Spelling::Giga => name,
            Spelling::Aq => name.replacen("giga/", "aq/", 1),
        }
    }

    pub(crate) const fn job(&self) -> JobId {
        match &self.kind {
            BranchKind::Wip(job)
            | BranchKind::Request(job)
            | BranchKind::Job(job, _)
            | BranchKind::Quarantine(job, _)
            | BranchKind::Remote(job, _)
            | BranchKind::Candidate(job, _) => *job,
        }
    }

    /// Where this host keeps it as last fetched.
    pub(crate) fn fetched_ref(&self) -> String {
        format!("refs/giga/fetched/{}", self.name())
    }
}

pub(crate) fn parse_epoch(text: &str) -> Option<Epoch> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain).map(Epoch)
}

/// A branch that work may be merged into. Stricter than git: what it lets through is safe as an argument, a
/// path and a refspec, and it is never one of ours.
pub(crate) fn check_target_branch(branch: &str) -> Result<(), WorkspaceError> {
    if is_branch(branch) {
        return Ok(());
    }
    let rule = "work is merged into a branch of the owner's, of letters, digits, `.`, `_`, `-`, `+`, `#` and `/`, such as \
                main or release/2.1";
    Err(WorkspaceError::refused("branch", branch, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC";

    #[test]
    fn our_branches_have_one_spelling_and_an_old_one() {
        let commit = "a".repeat(40);
        for good in [
            format!("giga/wip/{JOB}"),
            format!("giga/job/{JOB}/3"),
            format!("giga/quarantine/{JOB}/0"),
            format!("giga/merge/{JOB}/{commit}"),
            format!("giga/request/{JOB}"),
            format!("giga/remote/{JOB}/2"),
            format!("aq/wip/{JOB}"),
            format!("aq/job/{JOB}/3"),
            format!("aq/quarantine/{JOB}/0"),
        ] {
            assert!(OUR_FOLDERS.iter().any(|ours| good.starts_with(&format!("{ours}/"))), "{good}");
            assert_eq!(OurBranch::parse(&good).map(|branch| branch.name()), Some(good));
        }
        for prefix in ["giga", "aq"] {
            for bad in [
                "main".to_owned(),
                format!("wip/{}", JOB.to_lowercase()),
                format!("wip/{JOB}/1"),
                "wip/".to_owned(),
                format!("job/{JOB}"),
                format!("job/{JOB}/03"),
                format!("job/{JOB}/+3"),
                format!("job/{JOB}/-1"),
                format!("job/../{JOB}/1"),
                format!("other/{JOB}"),
                format!("merge/{JOB}/3"),
                format!("request/{JOB}/3"),
                format!("remote/{JOB}"),
                format!("remote/{JOB}/02"),
            ] {
                let bad = format!("{prefix}/{bad}");
                assert_eq!(OurBranch::parse(&bad), None, "{bad}");
            }
        }
        for bad in [
            "main".to_owned(),
            format!("refs/heads/giga/wip/{JOB}"),
            format!("aq/merge/{JOB}/{commit}"),
            format!("aq/request/{JOB}"),
            format!("aq/remote/{JOB}/2"),
        ] {
            assert_eq!(OurBranch::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn the_old_spelling_is_read_and_never_written() {
        let job: JobId = JOB.parse().unwrap();
        let old = OurBranch::parse(&format!("aq/job/{JOB}/3")).unwrap();
        let new = OurBranch::from(BranchKind::Job(job, Epoch(3)));
        assert_eq!(old.kind, new.kind);
        assert_ne!(old, new, "they are two branches");
        assert_eq!(new.name(), format!("giga/job/{JOB}/3"));
    }

    #[test]
    fn only_the_last_line_is_ours() {
        let job: JobId = JOB.parse().unwrap();
        let message = format!("wip\n\nGigafactory-Job: {JOB}/9\n\n{}\n", trailer(job, Epoch(2)));
        assert_eq!(parse_trailer(&message), Some((job, Epoch(2))));
        assert_eq!(parse_trailer(&format!("{}\nmore", trailer(job, Epoch(2)))), None);
    }

    #[test]
    fn a_checkpoint_is_told_by_its_message() {
        let job: JobId = JOB.parse().unwrap();
        let other = "01J9ZK3V5N8Q4W2E6R7T1Y0ABD".parse().unwrap();
        let ours = format!("wip: while running\n\n{}\n", checkpoint_trailer(job, Epoch(2)));
        assert!(is_checkpoint(job, &ours) && !is_checkpoint(other, &ours));
        assert_eq!(parse_trailer(&ours), Some((job, Epoch(2))));
        assert!(!is_checkpoint(job, "wip: an engine's own"));
        for of_a_job in ["fix", "wip: fix", &format!("fix\n\n{CHECKPOINT}{job}")] {
            let result = format!("{of_a_job}\n\n{}\n", trailer(job, Epoch(2)));
            assert!(!is_checkpoint(job, &result), "a result: {result}");
        }
    }

    #[test]
    fn target_branches() {
        for good in ["main", "release/2.1", "dependabot/npm/x-1", "_x"] {
            assert!(check_target_branch(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-f",
            "--force",
            "a/../b",
            "a b",
            "a\nb",
            "a\0b",
            "a:b",
            "+main",
            "a~1",
            "a^",
            "x.lock",
            "a/",
            "/a",
            "HEAD",
            "refs/heads/x",
            "aq/job/x",
            "giga/job/x",
            "giga/main",
            "a@{1}",
            "a*",
            "é",
        ] {
            assert!(check_target_branch(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn commits() {
        assert!("a".repeat(40).parse::<CommitId>().is_ok());
        for bad in ["", "HEAD", "--all", "A234567890123456789012345678901234567890"] {
            assert!(bad.parse::<CommitId>().is_err(), "{bad}");
        }
    }
}
