//! Branches of jobs that have ended, on this host and on the origin.
//!
//! A result goes only when a branch of the owner's, as just fetched, contains it. Every deletion names the commit
//! that the decision was about, so a branch that moved meanwhile stays.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{Stage, Timestamp};

use super::super::Workspace;
use super::super::error::WorkspaceError;
use super::super::mirror::LockedMirror;
use super::super::policy::RepoSource;
use super::super::push::PushReply;
use super::super::refs::{
    BranchKind, CommitId, OUR_FOLDERS, OurBranch, engine_ref, fetched_wip_ref, head_ref,
};
use super::space::pack;
use super::{GcKind, GcOptions, GcReport, JobStates, ask, keeps};

type Branches = Vec<(OurBranch, CommitId)>;

impl Workspace {
    pub(super) async fn gc_branches(
        &self,
        source: &RepoSource,
        known: &dyn JobStates,
        options: &GcOptions,
        report: &mut GcReport,
    ) -> Result<(), WorkspaceError> {
        let mirror = self.mirror(source);
        let locked = mirror.lock().await?;
        if !mirror.dir().is_dir() {
            return Ok(());
        }
        let local = local_branches(&locked).await?;
        // What is merged is only known from the origin as it is now; without it, results stay.
        let origin = match origin_branches(&locked).await {
            Ok(branches) => Some(branches),
            Err(error) => {
                report.kept(GcKind::OriginBranch, source.name.clone(), error.to_string());
                None
            }
        };
        let everywhere = local.iter().chain(origin.iter().flatten());
        let jobs: BTreeSet<_> = everywhere.map(|(branch, _)| branch.job()).collect();
        let sweep = Sweep {
            locked: &locked,
            stages: ask(known, jobs.into_iter().collect()).await?,
            fetched: origin.is_some(),
            options,
        };
        for (branch, commit) in origin.unwrap_or_default() {
            match sweep.judge(&branch, &commit).await? {
                Err(why) => report.kept(GcKind::OriginBranch, branch.name(), why),
                Ok(why) if options.dry_run => report.removed(GcKind::OriginBranch, branch.name(), why),
                Ok(why) => match locked.push_deletion(&branch, &commit).await {
                    Ok(PushReply::Done) => report.removed(GcKind::OriginBranch, branch.name(), why),
                    Ok(PushReply::Raced) => report.kept(GcKind::OriginBranch, branch.name(), "it just moved"),
                    Err(error) => report.kept(GcKind::OriginBranch, branch.name(), error.to_string()),
                },
            }
        }
        for (branch, commit) in local {
            match sweep.judge(&branch, &commit).await? {
                Err(why) => report.kept(GcKind::LocalBranch, branch.name(), why),
                Ok(why) => {
                    if !options.dry_run {
                        locked.delete_ref(&head_ref(&branch.name()), &commit).await?;
                        sweep.forget(&branch).await?;
                    }
                    report.removed(GcKind::LocalBranch, branch.name(), why);
                }
            }
        }
        if options.dry_run { Ok(()) } else { pack(&locked).await }
    }
}

struct Sweep<'a> {
    locked: &'a LockedMirror<'a>,
    stages: BTreeMap<giga_domain::JobId, Stage>,
    fetched: bool,
    options: &'a GcOptions,
}

impl Sweep<'_> {
    /// `Ok` with the reason why the branch may go, `Err` with the reason why it stays.
    async fn judge(
        &self,
        branch: &OurBranch,
        commit: &CommitId,
    ) -> Result<Result<String, String>, WorkspaceError> {
        if let Some(why) = keeps(self.stages.get(&branch.job())) {
            return Ok(Err(why));
        }
        // The result itself is on the job's own branch.
        if let BranchKind::Wip(_) | BranchKind::Candidate(..) | BranchKind::Request(_) = branch.kind {
            return Ok(Ok("the job has ended".to_owned()));
        }
        if !self.fetched {
            return Ok(Err("the origin cannot be asked whether it is merged".to_owned()));
        }
        if self.locked.commit_at(commit.as_str()).await?.is_none() {
            return Ok(Err("not fetched here, so not known to be merged".to_owned()));
        }
        if !self.is_merged(branch, commit).await? {
            return Ok(Err("not merged".to_owned()));
        }
        if let BranchKind::Quarantine(..) = branch.kind {
            let age = self.options.now.since(self.committed_at(commit).await?);
            if age < self.options.quarantine_kept {
                return Ok(Err("quarantined not long ago".to_owned()));
            }
        }
        Ok(Ok("merged".to_owned()))
    }

    async fn is_merged(&self, branch: &OurBranch, commit: &CommitId) -> Result<bool, WorkspaceError> {
        if self.is_in_owners_branch(commit).await? {
            return Ok(true);
        }
        // A quarantine commit is never merged itself; it holds nothing when it changes nothing.
        let BranchKind::Quarantine(..) = branch.kind else { return Ok(false) };
        let Some(parent) = self.locked.commit_at(&format!("{commit}^")).await? else { return Ok(false) };
        let is_empty = self.locked.tree_of(Some(commit)).await? == self.locked.tree_of(Some(&parent)).await?;
        Ok(is_empty && self.is_in_owners_branch(&parent).await?)
    }

    async fn is_in_owners_branch(&self, commit: &CommitId) -> Result<bool, WorkspaceError> {
        let call = self.locked.call("looking for a merge").args(["for-each-ref", "--count=1", "--contains"]);
        let output = call.args([commit.as_str(), "refs/remotes/origin"]).run().await?;
        Ok(!output.stdout.is_empty())
    }

    async fn committed_at(&self, commit: &CommitId) -> Result<Timestamp, WorkspaceError> {
        let call = self.locked.call("reading a date").args(["log", "-1", "--format=%ct", "--end-of-options"]);
        let seconds = call.arg(commit.as_str()).run().await?.text();
        Ok(Timestamp::from_millis(seconds.parse::<i64>().unwrap_or(i64::MAX / 1_000).saturating_mul(1_000)))
    }

    /// What this host noted beside the branch.
    async fn forget(&self, branch: &OurBranch) -> Result<(), WorkspaceError> {
        match &branch.kind {
            BranchKind::Wip(job) => self.locked.drop_ref(&fetched_wip_ref(*job)).await?,
            BranchKind::Job(job, epoch) => self.locked.drop_ref(&engine_ref(*job, *epoch)).await?,
            BranchKind::Quarantine(..) | BranchKind::Candidate(..) | BranchKind::Request(_) => {}
        }
        self.locked.drop_ref(&branch.fetched_ref()).await
    }
}

async fn local_branches(locked: &LockedMirror<'_>) -> Result<Branches, WorkspaceError> {
    let call = locked.call("listing branches");
    let output = call.args(["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"]).run().await?;
    Ok(output.text().lines().filter_map(|line| parse_line(line, ' ')).collect())
}

async fn origin_branches(locked: &LockedMirror<'_>) -> Result<Branches, WorkspaceError> {
    locked.refresh().await?;
    let call = locked.call("listing the origin's branches");
    let output = call
        .args(["ls-remote", "--quiet", "--end-of-options", locked.url().as_str()])
        .args(OUR_FOLDERS.map(|ours| format!("refs/heads/{ours}/*")))
        .over(locked.url().protocol())
        .run()
        .await
        .map_err(|error| locked.unreachable(error))?;
    let branches = output.text().lines().filter_map(|line| parse_line(line, '\t')).collect::<Branches>();
    // Quarantine is never pushed; what is called so on an origin is somebody else's.
    Ok(branches
        .into_iter()
        .filter(|(branch, _)| !matches!(branch.kind, BranchKind::Quarantine(..)))
        .collect())
}

fn parse_line(line: &str, separator: char) -> Option<(OurBranch, CommitId)> {
    let (commit, name) = line.split_once(separator)?;
    Some((OurBranch::parse(name.strip_prefix("refs/heads/")?)?, commit.parse().ok()?))
}
