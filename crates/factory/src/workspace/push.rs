//! The only way by which anything leaves this host: six kinds of targets, and quarantine is none of them.
//!
//! Never forces. A branch that a job has for all of its runs is replaced only when it still is what was last seen there,
//! and the owner's is moved only from the commit that the candidate was made on.

use giga_domain::{Epoch, JobId};

use super::error::{WorkspaceError, tidy};
use super::git::Output;
use super::mirror::Mirror;
use super::refs::{
    CommitId, OurBranch, candidate_branch, fetched_wip_ref, job_branch, parse_trailer, remote_branch,
    request_branch, wip_branch,
};

#[derive(Debug, Clone, Copy)]
pub(crate) enum PushTarget<'a> {
    /// `seen` is what the origin had when we last looked; `None` when it had nothing.
    Wip {
        job: JobId,
        seen: Option<&'a CommitId>,
    },
    Result {
        job: JobId,
        epoch: Epoch,
    },
    /// What is going to be pushed to the owner's branch. Named by its commit, so that nobody replaces another's.
    Candidate {
        job: JobId,
    },
    /// What its pull request shows; `seen` as above.
    Request {
        job: JobId,
        seen: Option<&'a CommitId>,
    },
    /// What an agent that works elsewhere starts from: a branch that must not be there yet.
    Remote {
        job: JobId,
        epoch: Epoch,
    },
    /// A branch of the owner's, or beside it, checked by `check_into`: from where it was seen and nowhere else. `receive`
    /// says how git is to receive it.
    Owners {
        branch: &'a str,
        tip: Option<&'a CommitId>,
        receive: Option<&'static str>,
    },
}

impl PushTarget<'_> {
    fn branch(self, commit: &CommitId) -> String {
        match self {
            Self::Wip { job, .. } => wip_branch(job),
            Self::Result { job, epoch } => job_branch(job, epoch),
            Self::Candidate { job } => candidate_branch(job, commit),
            Self::Request { job, .. } => request_branch(job),
            Self::Remote { job, epoch } => remote_branch(job, epoch),
            Self::Owners { branch, .. } => branch.to_owned(),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushReply {
    Done,
    /// Somebody else wrote first; look again.
    Raced,
}

impl Mirror {
    pub(crate) async fn push(
        &self,
        commit: &CommitId,
        to: PushTarget<'_>,
    ) -> Result<PushReply, WorkspaceError> {
        let branch = to.branch(commit);
        let mut options = vec![];
        match to {
            PushTarget::Wip { seen, .. } | PushTarget::Request { seen, .. } => {
                let seen = seen.map_or("", CommitId::as_str);
                options.push(format!("--force-with-lease=refs/heads/{branch}:{seen}"));
            }
            PushTarget::Remote { .. } => options.push(format!("--force-with-lease=refs/heads/{branch}:")),
            PushTarget::Owners { receive, tip: seen, .. } => {
                let seen = seen.map_or("", CommitId::as_str);
                options.push(format!("--force-with-lease=refs/heads/{branch}:{seen}"));
                options.extend(receive.map(str::to_owned));
            }
            PushTarget::Result { .. } | PushTarget::Candidate { .. } => {}
        }
        self.send(&branch, &options, format!("{commit}:refs/heads/{branch}")).await
    }

    /// Deletes one of our branches on the origin if it still is where it was when that was decided.
    pub(crate) async fn push_deletion(
        &self,
        branch: &OurBranch,
        at: &CommitId,
    ) -> Result<PushReply, WorkspaceError> {
        let name = branch.name();
        let lease = format!("--force-with-lease=refs/heads/{name}:{at}");
        self.send(&name, &[lease], format!(":refs/heads/{name}")).await
    }

    /// The same for several at once; those that moved meanwhile stay.
    pub(crate) async fn push_deletions(
        &self,
        branches: &[(OurBranch, CommitId)],
    ) -> Result<(), WorkspaceError> {
        let lease = |(branch, at): &(OurBranch, CommitId)| {
            format!("--force-with-lease=refs/heads/{}:{at}", branch.name())
        };
        let leases: Vec<String> = branches.iter().map(lease).collect();
        let refspecs = branches.iter().map(|(branch, _)| format!(":refs/heads/{}", branch.name()));
        let output = self.call_push(&leases, &refspecs.collect::<Vec<_>>()).await?;
        if output.status.success() { Ok(()) } else { Err(output.error()) }
    }

    async fn call_push(&self, options: &[String], refspecs: &[String]) -> Result<Output, WorkspaceError> {
        self.call("pushing")
            .args(["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"])
            .args(["--recurse-submodules=no"])
            .args(options)
            .args(["--end-of-options", self.url().as_str()])
            .args(refspecs)
            .over(self.url().protocol())
            .run_any()
            .await
    }

    async fn send(
        &self,
        branch: &str,
        options: &[String],
        refspec: String,
    ) -> Result<PushReply, WorkspaceError> {
        let output = self.call_push(options, &[refspec]).await?;
        if output.status.success() {
            return Ok(PushReply::Done);
        }
        let text = output.text();
        let Some(line) = text.lines().find(|line| line.starts_with("!\t")) else {
            return Err(self.unreachable(output.error()));
        };
        if is_race(line) {
            return Ok(PushReply::Raced);
        }
        let detail = tidy(&format!("{}\n{}", line.trim_start_matches("!\t"), output.stderr));
        Err(WorkspaceError::PushRefused { branch: branch.to_owned(), detail })
    }

    /// Moves the origin's WIP branch to `commit`, past what older epochs left there, never past a newer one.
    /// Answers what the origin has now.
    pub(crate) async fn push_wip(
        &self,
        (job, epoch): (JobId, Epoch),
        commit: &CommitId,
        seen: Option<CommitId>,
    ) -> Result<(), WorkspaceError> {
        let mut seen = seen;
        for _ in 0..3 {
            let target = PushTarget::Wip { job, seen: seen.as_ref() };
            if self.push(commit, target).await? == PushReply::Done {
                return Ok(());
            }
            let locked = self.lock().await?;
            seen = locked.fetch_branch(&wip_branch(job), &fetched_wip_ref(job)).await?;
            if let Some(theirs) = &seen {
                self.check_epoch(&wip_branch(job), (job, epoch), theirs).await?;
            }
        }
        let detail = "the branch kept changing under this push".to_owned();
        Err(WorkspaceError::PushRefused { branch: wip_branch(job), detail })
    }

    /// The fence as git sees it: work of a newer epoch is never replaced. What nobody signed is not ours to
    /// replace either.
    pub(crate) async fn check_epoch(
        &self,
        branch: &str,
        (job, ours): (JobId, Epoch),
        found: &CommitId,
    ) -> Result<(), WorkspaceError> {
        match parse_trailer(&self.message_of(found).await?) {
            Some((owner, theirs)) if owner == job && theirs <= ours => Ok(()),
            Some((owner, theirs)) if owner == job => Err(WorkspaceError::Superseded { job, ours, theirs }),
            _ => {
                let detail = format!("{found} on it was not made for this job");
                Err(WorkspaceError::PushRefused { branch: branch.to_owned(), detail })
            }
        }
    }
}

/// As git words the refusals that mean "you have not seen the latest".
fn is_race(line: &str) -> bool {
    const RACES: [&str; 8] = [
        "fetch first",
        "non-fast-forward",
        "stale info",
        "needs force",
        "cannot lock ref",
        "failed to update ref",
        "incorrect old value provided",
        "reference already exists",
    ];
    line.rsplit_once('(').is_some_and(|(_, reason)| RACES.iter().any(|race| reason.contains(race)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn races_are_told_from_refusals() {
        for race in [
            "!\tabc:refs/heads/main\t[rejected] (fetch first)",
            "!\tabc:refs/heads/main\t[rejected] (non-fast-forward)",
            "!\tabc:refs/heads/main\t[rejected] (stale info)",
            "!\tabc:refs/heads/main\t[remote rejected] (cannot lock ref 'refs/heads/main': is at 1 but expected 2)",
            "!\tabc:refs/heads/main\t[remote rejected] (failed to update ref)",
        ] {
            assert!(is_race(race), "{race}");
        }
        for refusal in [
            "!\tabc:refs/heads/main\t[remote rejected] (pre-receive hook declined)",
            "!\tabc:refs/heads/main\t[remote rejected] (branch is currently checked out)",
            "!\tabc:refs/heads/main\t[remote rejected] (protected branch hook declined)",
        ] {
            assert!(!is_race(refusal), "{refusal}");
        }
    }
}
