//! Branches of jobs that have ended, on this host and on the origin.
//!
//! A result goes when a branch of the owner's, as just fetched, contains it; unmerged work goes when its time is over.
//! Every deletion names the commit that the decision was about, so a branch that moved meanwhile stays, and one whose
//! last commit is somebody else's is theirs.

use std::collections::BTreeSet;
use std::time::Duration;

use giga_domain::{Stage, Timestamp};

use super::super::Workspace;
use super::super::error::WorkspaceError;
use super::super::merge::MergeOrder;
use super::super::mirror::LockedMirror;
use super::super::policy::RepoSource;
use super::super::push::PushReply;
use super::super::refs::{
    BranchKind, CommitId, OUR_FOLDERS, OurBranch, engine_ref, fetched_wip_ref, head_ref, parse_trailer,
};
use super::space::pack;
use super::{GcItem, GcKind, GcOptions, GcReport, JobStates, Known, ask, keeps};

const CANDIDATE_KEPT: Duration = Duration::from_hours(1);

pub(in super::super) type Branches = Vec<(OurBranch, CommitId)>;

/// The reason why a branch may go, or why it stays.
type Verdict = Result<String, String>;

impl Workspace {
    pub(super) async fn gc_branches(
        &self,
        source: &RepoSource,
        states: &dyn JobStates,
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
                let item = GcItem::new(GcKind::OriginBranch, source.name.clone(), error.to_string());
                report.kept.push(item);
                None
            }
        };
        let everywhere = local.iter().chain(origin.iter().flatten());
        let jobs: BTreeSet<_> = everywhere.map(|(branch, _)| branch.job()).collect();
        let known = ask(states, jobs.into_iter().collect()).await?;
        let sweep = Sweep { locked: &locked, known, fetched: origin.is_some(), options };
        for (branch, commit) in origin.unwrap_or_default() {
            let mut verdict = sweep.judge(&branch, &commit).await?;
            if verdict.is_ok() && !options.dry_run {
                match locked.push_deletion(&branch, &commit).await {
                    Ok(PushReply::Done) => {}
                    Ok(PushReply::Raced) => verdict = Err("it just moved".to_owned()),
                    Err(error) => verdict = Err(error.to_string()),
                }
            }
            sweep.note(report, GcKind::OriginBranch, &branch, verdict);
        }
        for (branch, commit) in local {
            let verdict = sweep.judge(&branch, &commit).await?;
            if verdict.is_ok() && !options.dry_run {
                delete_local(&locked, &branch, &commit).await?;
            }
            sweep.note(report, GcKind::LocalBranch, &branch, verdict);
        }
        if options.dry_run { Ok(()) } else { pack(&locked).await }
    }

    /// What jobs leave on the origin and here goes as soon as they are merged; what is missed, the next sweep finds. They
    /// are all of one repository.
    pub async fn forget_merged(&self, orders: &[MergeOrder]) -> Result<(), WorkspaceError> {
        let Some(first) = orders.first() else { return Ok(()) };
        let mirror = self.mirror(&first.repo);
        let locked = mirror.lock().await?;
        let mut patterns = Vec::new();
        for order in orders {
            for ours in ["giga", "aq"] {
                patterns.extend([format!("{ours}/wip/{}", order.job), format!("{ours}/job/{}/*", order.job)]);
            }
            patterns.extend(["merge", "remote"].map(|kind| format!("giga/{kind}/{}/*", order.job)));
        }
        let mut gone = Branches::new();
        for (branch, commit) in list_origin(&locked, &patterns).await? {
            let is_result = orders.iter().any(|order| order.commit == commit);
            // One that was announced is in, and no other can be any more; nor is anything taken from elsewhere.
            let is_over = matches!(branch.kind, BranchKind::Candidate(..) | BranchKind::Remote(..));
            if is_result || is_over || is_ours(&locked, &branch, &commit).await? {
                gone.push((branch, commit));
            }
        }
        if !gone.is_empty() {
            locked.push_deletions(&gone).await.map_err(|error| locked.unreachable(error))?;
        }
        for (branch, commit) in local_branches(&locked).await? {
            let is_work = matches!(branch.kind, BranchKind::Wip(_) | BranchKind::Job(..));
            if is_work && orders.iter().any(|order| order.job == branch.job()) {
                delete_local(&locked, &branch, &commit).await?;
            }
        }
        Ok(())
    }
}

impl Workspace {
    /// What is on this machine and nowhere else: folders of work, and branches that neither the origin has as they are here nor
    /// a branch of its owner's contains. Where that cannot be found out it counts as such.
    pub async fn only_here(&self) -> Vec<String> {
        let folders = std::fs::read_dir(self.inner.base.join("work")).into_iter().flatten().flatten();
        let folders = folders.filter(|entry| entry.path().is_dir());
        let mut found: Vec<String> =
            folders.map(|entry| format!("work/{}", entry.file_name().to_string_lossy())).collect();
        for source in self.mirrored().collect::<Vec<_>>() {
            match self.branches_only_here(&source).await {
                Ok(branches) => {
                    found.extend(branches.into_iter().map(|name| format!("{name} of {}", source.name)));
                }
                Err(error) => found.push(format!("{}: {error}", source.name)),
            }
        }
        found.sort();
        found
    }

    async fn branches_only_here(&self, source: &RepoSource) -> Result<Vec<String>, WorkspaceError> {
        let mirror = self.mirror(source);
        let locked = mirror.lock().await?;
        if !mirror.dir().is_dir() {
            return Ok(Vec::new());
        }
        let local = local_branches(&locked).await?;
        if local.is_empty() {
            return Ok(Vec::new());
        }
        let origin: BTreeSet<CommitId> =
            origin_branches(&locked).await?.into_iter().map(|(_, commit)| commit).collect();
        let options = GcOptions::at(Timestamp::ZERO);
        let sweep = Sweep { locked: &locked, known: Known::default(), fetched: true, options: &options };
        let mut only_here = Vec::new();
        for (branch, commit) in local {
            // What a merge was tried with is made again from the results.
            let is_work = !matches!(branch.kind, BranchKind::Candidate(..));
            if is_work && !origin.contains(&commit) && !sweep.is_merged(&branch, &commit).await? {
                only_here.push(branch.name());
            }
        }
        Ok(only_here)
    }
}

struct Sweep<'a> {
    locked: &'a LockedMirror<'a>,
    known: Known,
    fetched: bool,
    options: &'a GcOptions,
}

impl Sweep<'_> {
    async fn judge(&self, branch: &OurBranch, commit: &CommitId) -> Result<Verdict, WorkspaceError> {
        let job = self.known.jobs.get(&branch.job());
        if let Some(why) = keeps(job) {
            return Ok(Err(why));
        }
        let age = self.known.age(branch.job(), self.options.now);
        let has_shipped = job.is_some_and(|job| job.stage == Stage::Shipped);
        match branch.kind {
            // Named by the first job of its batch: whoever takes the others over may need it for a moment.
            BranchKind::Candidate(..) if age < Some(CANDIDATE_KEPT) => {
                Ok(Err("the job has just ended".to_owned()))
            }
            // The result itself is on the job's own branch.
            BranchKind::Candidate(..) | BranchKind::Request(_) | BranchKind::Remote(..) => {
                Ok(Ok("the job has ended".to_owned()))
            }
            BranchKind::Wip(_) if has_shipped => Ok(Ok("the job has shipped".to_owned())),
            _ if !self.fetched => Ok(Err("the origin cannot be asked whether it is merged".to_owned())),
            BranchKind::Job(..) if self.is_merged(branch, commit).await? => Ok(Ok("merged".to_owned())),
            BranchKind::Wip(_) | BranchKind::Job(..) => self.judge_unmerged(branch, commit).await,
            BranchKind::Quarantine(..) => self.judge_quarantined(branch, commit).await,
        }
    }

    /// Work that is nowhere else, of a job that nobody can go on with.
    async fn judge_unmerged(&self, branch: &OurBranch, commit: &CommitId) -> Result<Verdict, WorkspaceError> {
        let job = branch.job();
        let stage = self.known.jobs.get(&job).map_or("over", |job| job.stage.label());
        let Some(age) = self.known.age(job, self.options.now) else {
            return Ok(Err("not merged, and nobody knows when the job ended".to_owned()));
        };
        let left = self.known.unmerged_kept.saturating_sub(age);
        if !left.is_zero() {
            return Ok(Err(format!("not merged; goes in {} (the job is {stage})", in_words(left))));
        }
        if !is_ours(self.locked, branch, commit).await? {
            return Ok(Err("not merged, and its last commit is somebody else's".to_owned()));
        }
        Ok(Ok(format!("not merged; the job is {stage} and ended {} ago", in_words(age))))
    }

    async fn judge_quarantined(
        &self,
        branch: &OurBranch,
        commit: &CommitId,
    ) -> Result<Verdict, WorkspaceError> {
        if !self.is_merged(branch, commit).await? {
            return Ok(Err("not merged".to_owned()));
        }
        let age = self.options.now.since(self.committed_at(commit).await?);
        if age < self.options.quarantine_kept {
            return Ok(Err("quarantined not long ago".to_owned()));
        }
        Ok(Ok("merged".to_owned()))
    }

    async fn is_merged(&self, branch: &OurBranch, commit: &CommitId) -> Result<bool, WorkspaceError> {
        // What is not here is in no branch of the owner's: those were just fetched.
        if self.locked.commit_at(commit.as_str()).await?.is_none() {
            return Ok(false);
        }
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

    fn note(&self, report: &mut GcReport, kind: GcKind, branch: &OurBranch, verdict: Verdict) {
        let age = self.known.age(branch.job(), self.options.now);
        let item = |why| GcItem::new(kind, branch.name(), why).of(branch.job(), age);
        match verdict {
            Ok(why) => report.removed.push(item(why)),
            Err(why) => report.kept.push(item(why)),
        }
    }
}

/// Whether the last commit is one that a factory made for this job: people may go on where one ended.
async fn is_ours(
    locked: &LockedMirror<'_>,
    branch: &OurBranch,
    commit: &CommitId,
) -> Result<bool, WorkspaceError> {
    if locked.commit_at(commit.as_str()).await?.is_none() {
        locked.fetch_branch(&branch.name(), &branch.fetched_ref()).await?;
    }
    if locked.commit_at(commit.as_str()).await?.is_none() {
        return Ok(false);
    }
    let signed = parse_trailer(&locked.message_of(commit).await?);
    Ok(signed.is_some_and(|(job, _)| job == branch.job()))
}

/// With what this host noted beside the branch.
async fn delete_local(
    locked: &LockedMirror<'_>,
    branch: &OurBranch,
    commit: &CommitId,
) -> Result<(), WorkspaceError> {
    locked.delete_ref(&head_ref(&branch.name()), commit).await?;
    match &branch.kind {
        BranchKind::Wip(job) => locked.drop_ref(&fetched_wip_ref(*job)).await?,
        BranchKind::Job(job, epoch) => locked.drop_ref(&engine_ref(*job, *epoch)).await?,
        BranchKind::Quarantine(..)
        | BranchKind::Candidate(..)
        | BranchKind::Request(_)
        | BranchKind::Remote(..) => {}
    }
    locked.drop_ref(&branch.fetched_ref()).await
}

async fn local_branches(locked: &LockedMirror<'_>) -> Result<Branches, WorkspaceError> {
    let call = locked.call("listing branches");
    let output = call.args(["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"]).run().await?;
    Ok(output.text().lines().filter_map(|line| parse_line(line, ' ')).collect())
}

async fn origin_branches(locked: &LockedMirror<'_>) -> Result<Branches, WorkspaceError> {
    locked.refresh().await?;
    list_origin(locked, &OUR_FOLDERS.map(|ours| format!("{ours}/*"))).await
}

pub(in super::super) async fn list_origin(
    locked: &LockedMirror<'_>,
    patterns: &[String],
) -> Result<Branches, WorkspaceError> {
    let call = locked.call("listing the origin's branches");
    let output = call
        .args(["ls-remote", "--quiet", "--end-of-options", locked.url().as_str()])
        .args(patterns.iter().map(|pattern| format!("refs/heads/{pattern}")))
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

fn in_words(time: Duration) -> String {
    const DAY: u64 = 24 * 3600;
    match time.as_secs() {
        seconds if seconds >= 2 * DAY => format!("{} days", seconds / DAY),
        seconds if seconds >= 2 * 3600 => format!("{} hours", seconds / 3600),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}
