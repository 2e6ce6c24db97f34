//! A bare origin, hosts with a base folder each, and an engine's hands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::job::MergeStrategy;
use giga_domain::{Epoch, JobId, Stage, Timestamp};
use giga_factory::workspace::{
    Candidate, CommitId, GcOptions, GitPolicy, JobState, JobStates, Known, MergeOrder, Protocol, Pushed,
    RepoSource, ResultCommit, Stacked, Workspace, WorkspaceError, Worktree,
};

pub(crate) struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    /// An origin with one commit on `main`.
    pub(crate) fn new() -> Self {
        let fixture = Self::empty();
        let seed = fixture.path().join("seed");
        git(fixture.path(), &["clone", "--quiet", fixture.url().as_str(), "seed"]);
        git(&seed, &["checkout", "--quiet", "-B", "main"]);
        write(&seed, "README.md", "hello\n");
        write(&seed, "src/lib.txt", "one\ntwo\nthree\n");
        write(&seed, ".gitignore", "*.log\ntarget/\n");
        git(&seed, &["add", "."]);
        git(&seed, &["commit", "--quiet", "-m", "first"]);
        git(&seed, &["push", "--quiet", "origin", "main"]);
        fixture
    }

    /// An origin without commits.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.path().join("origin.git")
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.origin().display())
    }

    pub(crate) fn policy(&self) -> GitPolicy {
        GitPolicy {
            protocols: vec![Protocol::File],
            allowed: vec![format!("file://{}", self.path().display())],
            ..GitPolicy::default()
        }
    }

    pub(crate) fn host(&self, name: &str) -> Workspace {
        Workspace::open(self.path().join(name), self.policy()).unwrap()
    }

    pub(crate) async fn repo(&self, host: &Workspace) -> RepoSource {
        host.resolve(&self.url()).await.unwrap()
    }

    pub(crate) async fn checkout(&self, host: &Workspace, job: JobId, epoch: u64) -> Worktree {
        let repo = self.repo(host).await;
        host.checkout(job, Epoch(epoch), &repo, None, None).await.unwrap()
    }

    /// Somebody else's push to the origin's main.
    pub(crate) fn push_from_outside(&self, file: &str, text: &str) {
        let seed = self.path().join("seed");
        git(&seed, &["pull", "--quiet", "--ff-only", "origin", "main"]);
        write(&seed, file, text);
        git(&seed, &["add", "."]);
        git(&seed, &["commit", "--quiet", "-m", "from outside"]);
        git(&seed, &["push", "--quiet", "origin", "main"]);
    }

    pub(crate) fn origin_branches(&self) -> Vec<String> {
        let text = git(&self.origin(), &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        text.lines().map(str::to_owned).collect()
    }

    /// Branches in the one mirror of a host.
    pub(crate) fn mirror_branches(&self, host: &str) -> Vec<String> {
        let text = git(&self.mirror(host), &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn mirror(&self, host: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.path().join(host).join("mirrors")).unwrap().flatten();
        let mut mirrors = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "git"));
        mirrors.next().expect("the host has a mirror")
    }

    pub(crate) fn show(&self, spec: &str) -> String {
        git(&self.origin(), &["show", spec])
    }
}

pub(crate) fn job(number: u64) -> JobId {
    JobId::from_parts(Timestamp::from_millis(1_700_000_000_000), u128::from(number))
}

/// As an older version of the factory would have called this branch of ours. Answers that name.
pub(crate) fn rename_to_old(repository: &Path, branch: &str) -> String {
    let old = branch.replacen("giga/", "aq/", 1);
    git(repository, &["branch", "-m", branch, &old]);
    old
}

/// Runs git as a user would; panics when it fails.
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let output = plain_git(folder, args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?} in {}: {stderr}", folder.display());
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(crate) fn git_fails(folder: &Path, args: &[&str]) -> String {
    let output = plain_git(folder, args).output().unwrap();
    assert!(!output.status.success(), "git {args:?} was expected to fail");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn plain_git(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).args(args);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ana").env(format!("GIT_{who}_EMAIL"), "ana@example.org");
    }
    command
}

pub(crate) fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What the agent makes of an order, without the checks and the announcement between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    Now { commit: CommitId, into: String },
    Before { commit: CommitId, into: String },
    Conflict { files: Vec<String>, detail: String },
}

pub(crate) async fn merge(host: &Workspace, order: &MergeOrder) -> Result<Merged, WorkspaceError> {
    for _ in 0..10 {
        let prepared = host.prepare_merges(std::slice::from_ref(order)).await?;
        let Some(candidate) = prepared.candidate() else {
            let into = prepared.from;
            return Ok(match prepared.stacked.into_iter().next().expect("one for one") {
                Stacked::On(_) => unreachable!("there would be a candidate"),
                Stacked::AlreadyIn(commit) => Merged::Before { commit, into },
                Stacked::Conflict { files, detail } => Merged::Conflict { files, detail },
            });
        };
        let pushed = host.push_candidate(order, &candidate).await?;
        host.forget_candidate(order, &candidate).await?;
        if let Pushed::Merged { into } = pushed {
            return Ok(Merged::Now { commit: candidate.commit, into });
        }
    }
    panic!("outrun ten times in a row");
}

/// What there is to push for a single order.
pub(crate) async fn candidate(host: &Workspace, order: &MergeOrder) -> Candidate {
    let prepared = host.prepare_merges(std::slice::from_ref(order)).await.unwrap();
    prepared.candidate().expect("a candidate")
}

pub(crate) fn order(worktree: &Worktree, result: &ResultCommit) -> MergeOrder {
    MergeOrder {
        job: worktree.job(),
        epoch: worktree.epoch(),
        repo: worktree.repo().clone(),
        branch: result.branch.clone(),
        commit: result.commit.clone(),
        base: result.base.clone(),
        into: None,
        strategy: MergeStrategy::Merge,
        message: "Merge the result".to_owned(),
        author: None,
        reviewers: Vec::new(),
    }
}

/// Writes a file, commits and pushes the result.
pub(crate) async fn finish(worktree: &Worktree, file: &str, text: &str) -> ResultCommit {
    write(worktree.path(), file, text);
    let result = worktree.commit_result("work", "done").await.unwrap().expect("something changed");
    worktree.push_result(&result).await.unwrap();
    result
}

/// When the jobs of a test ended, those that have.
pub(crate) const ENDED: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The coordinator's word, as a table. Unmerged work is kept for two weeks.
#[derive(Default)]
pub(crate) struct Stages(pub(crate) BTreeMap<JobId, Stage>);

impl Stages {
    pub(crate) fn all(stages: &[(JobId, Stage)]) -> Self {
        Self(stages.iter().copied().collect())
    }
}

#[async_trait]
impl JobStates for Stages {
    async fn known(&self, jobs: &[JobId]) -> Result<Known, String> {
        let asked = self.0.iter().filter(|(job, _)| jobs.contains(job));
        let state = |stage: Stage| JobState { stage, ended_at: stage.is_terminal().then_some(ENDED) };
        Ok(Known { jobs: asked.map(|(job, stage)| (*job, state(*stage))).collect(), unmerged_kept: KEPT })
    }
}

pub(crate) const KEPT: Duration = Duration::from_hours(24 * 14);

/// Not long after the jobs ended.
pub(crate) fn soon() -> GcOptions {
    GcOptions::at(ENDED.plus(KEPT / 2))
}

/// Long after everything that a test does.
pub(crate) fn far_future() -> GcOptions {
    GcOptions::at("2100-01-01T00:00:00Z".parse().unwrap())
}
