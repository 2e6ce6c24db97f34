//! Runs git: one place where every command gets the same clean environment, limits and end.
//!
//! Never through a shell, never with a prompt, never with hooks, and never in a work folder of an engine: whatever
//! an engine may have written into its repository's configuration is not read here.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::error::{WorkspaceError, tidy};
use super::notes::{Progress, without_progress};
use super::policy::{Author, GitPolicy, Identity, Protocol};
use crate::process::{self, Finished, Watch};

/// Settings that win over every file. A repository must not choose what this process runs.
const OVERRIDES: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.protectNTFS", "true"),
    ("core.protectHFS", "true"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    ("protocol.ext.allow", "never"),
    ("credential.interactive", "false"),
    ("color.ui", "never"),
    ("commit.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("submodule.recurse", "false"),
    ("transfer.bundleURI", "false"),
    // Large files stay pointers, unless a call says otherwise; see `lfs`.
    ("filter.lfs.process", ""),
    ("filter.lfs.clean", ""),
    ("filter.lfs.smudge", ""),
    ("filter.lfs.required", "false"),
    // Background work would outlive the command, and pruning would take objects that work folders borrow.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// What the user may have set to reach their origins; every other `GIT_*` variable is dropped.
const KEPT: &[&str] = &[
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
];

const STDOUT_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Git {
    protocols: String,
    identity: Identity,
    network_timeout: Duration,
    local_timeout: Duration,
    /// The owner's own commits are signed here, so what is merged in their name is signed, too.
    pub(crate) signs: bool,
    /// Installed, and wanted.
    has_lfs: bool,
    /// Set where the user configured no ssh command: without it ssh would ask on a terminal.
    ssh_command: Option<&'static str>,
}

impl Git {
    /// Looks once at the installed git and at the user's settings.
    pub(crate) fn probe(policy: &GitPolicy) -> Result<Self, WorkspaceError> {
        let output = std::process::Command::new("git")
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| WorkspaceError::NoGit(format!("`git` cannot be started: {error}")))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !is_new_enough(&version) {
            return Err(WorkspaceError::NoGit(format!("found `{}`", tidy(&version))));
        }
        let has_ssh_command =
            ["GIT_SSH", "GIT_SSH_COMMAND"].iter().any(|key| std::env::var_os(key).is_some())
                || users_setting(&["--get", "core.sshCommand"]).is_some();
        let signs = users_setting(&["--type=bool", "--get", "commit.gpgSign"]).as_deref() == Some("true");
        let protocols: Vec<_> = policy.protocols.iter().map(|p| p.as_str()).collect();
        Ok(Self {
            protocols: protocols.join(":"),
            identity: policy.identity.clone(),
            network_timeout: policy.network_timeout,
            local_timeout: policy.local_timeout,
            signs,
            has_lfs: policy.large_files && is_lfs_installed(),
            ssh_command: (!has_ssh_command).then_some("ssh -oBatchMode=yes"),
        })
    }

    pub(crate) const fn has_lfs(&self) -> bool {
        self.has_lfs
    }

    /// A command on the repository in `git_dir`, which is one of ours.
    pub(crate) fn at(&self, git_dir: &Path, action: impl Into<String>) -> Call<'_> {
        let mut call = self.anywhere(action);
        call.args.push("--git-dir".into());
        call.args.push(git_dir.into());
        call
    }

    /// A command on no repository.
    pub(crate) fn anywhere(&self, action: impl Into<String>) -> Call<'_> {
        Call {
            git: self,
            action: action.into(),
            notes: None,
            args: vec!["--no-pager".into()],
            env: Vec::new(),
            config: Vec::new(),
            protocol: None,
            stdin: None,
            progress: None,
            stdout_limit: STDOUT_BYTES,
            limit: self.local_timeout,
        }
    }
}

/// What the user of this host has set for all of their repositories.
fn users_setting(get: &[&str]) -> Option<String> {
    let mut command = std::process::Command::new("git");
    let output = command.args(["config", "--global"]).args(get).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn is_lfs_installed() -> bool {
    let asked = std::process::Command::new("git").args(["lfs", "version"]).stdin(Stdio::null()).output();
    asked.is_ok_and(|output| output.status.success())
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("git version ").split('.').map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (2, 38))
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    /// More came than was asked for; the rest was dropped.
    pub(crate) truncated: bool,
    pub(crate) stderr: String,
    action: String,
}

impl Output {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// NUL-separated fields, as `-z` prints them.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.stdout.split(|b| *b == 0).filter(|field| !field.is_empty())
    }

    pub(crate) fn error(&self) -> WorkspaceError {
        let text = if self.stderr.trim().is_empty() { self.text() } else { self.stderr.clone() };
        WorkspaceError::Git { action: self.action.clone(), detail: tidy(&text) }
    }
}

/// Leaves a note in a repository whose git was killed in the middle, by a time limit or because nobody waits for it any
/// more: its lock files are still there.
struct CutOff(Option<PathBuf>);

const CUT_OFF: &str = "giga-cut-off";

impl CutOff {
    fn ended_by_itself(mut self) {
        self.0 = None;
    }
}

impl Drop for CutOff {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // New or not at all, so that no link is followed. Without a note the next git complains about a lock.
            let _ = std::fs::File::create_new(folder.join(CUT_OFF));
        }
    }
}

/// Whether a git was cut off here since the last time that somebody asked.
pub(crate) fn take_cut_off(folder: &Path) -> bool {
    std::fs::remove_file(folder.join(CUT_OFF)).is_ok()
}

#[derive(Debug)]
#[must_use]
pub(crate) struct Call<'g> {
    git: &'g Git,
    action: String,
    /// Where it is noted that the command was cut off.
    notes: Option<PathBuf>,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    /// Stands above every file, as the overrides do.
    config: Vec<(&'static str, OsString)>,
    protocol: Option<Protocol>,
    stdin: Option<Vec<u8>>,
    progress: Option<Progress>,
    stdout_limit: usize,
    limit: Duration,
}

impl Call<'_> {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Who a commit is by, in place of the factory.
    pub(crate) fn by(mut self, author: &Author) -> Self {
        self.env.push(("GIT_AUTHOR_NAME", author.name.clone().into()));
        self.env.push(("GIT_AUTHOR_EMAIL", author.email.clone().into()));
        if let Some(date) = &author.date {
            self.env.push(("GIT_AUTHOR_DATE", date.into()));
        }
        self
    }

    /// Reads the work tree of a job through an index of ours; the engine's own index and HEAD stay as they are.
    pub(crate) fn on_tree(mut self, tree: &Path, index: &Path) -> Self {
        self.env.push(("GIT_WORK_TREE", tree.into()));
        self.env.push(("GIT_INDEX_FILE", index.into()));
        self
    }

    /// May talk to an origin over this protocol, for as long as the network gets.
    pub(crate) fn over(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self.limit = self.git.network_timeout;
        self
    }

    /// May read a repository on this host.
    pub(crate) fn local_source(mut self) -> Self {
        self.protocol = Some(Protocol::File);
        self
    }

    pub(crate) fn config(mut self, key: &'static str, value: impl Into<OsString>) -> Self {
        self.config.push((key, value.into()));
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// A mirror outlives the command, and so would the locks of one that was cut off.
    pub(crate) fn noted_in(mut self, folder: &Path) -> Self {
        self.notes = Some(folder.to_owned());
        self
    }

    /// Says how far it is, and has time as long as it gets on.
    pub(crate) fn with_progress(mut self, progress: Progress) -> Self {
        self.progress = Some(progress);
        self.arg("--progress")
    }

    pub(crate) fn at_most(mut self, bytes: usize) -> Self {
        self.stdout_limit = bytes;
        self
    }

    /// Fails unless git ended with 0 and all of its output was read.
    pub(crate) async fn run(self) -> Result<Output, WorkspaceError> {
        let output = self.run_any().await?;
        if output.status.success() && !output.truncated { Ok(output) } else { Err(output.error()) }
    }

    /// Whatever the exit code: some commands answer with it.
    pub(crate) async fn run_any(mut self) -> Result<Output, WorkspaceError> {
        let limit = self.limit;
        let cut_off = CutOff(self.notes.clone());
        let has_progress = self.progress.is_some();
        let watch = self
            .progress
            .take()
            .map(|mut progress| -> Watch { Box::new(move |bytes| progress.read(bytes, Instant::now())) });
        let (command, stdin) = (self.command(), self.stdin.take());
        let finished = process::run_watched(command, stdin, self.stdout_limit, limit, watch).await;
        if finished.is_ok() {
            cut_off.ended_by_itself();
        }
        let finished = finished.map_err(|error| match error.kind() {
            std::io::ErrorKind::TimedOut => {
                WorkspaceError::TimedOut { action: self.action.clone(), seconds: limit.as_secs() }
            }
            _ => WorkspaceError::NoGit(format!("`git` cannot be run: {error}")),
        })?;
        let Finished { status, stdout, truncated, stderr } = finished;
        let stderr = if has_progress { without_progress(&stderr) } else { stderr };
        Ok(Output { status, stdout, truncated, stderr, action: self.action })
    }

    fn command(&self) -> Command {
        let git = self.git;
        let mut command = Command::new("git");
        for (key, _) in std::env::vars_os() {
            let name = key.to_string_lossy();
            if (name.starts_with("GIT_") && !KEPT.contains(&&*name)) || name.starts_with("GIGA_") {
                command.env_remove(&key);
            }
        }
        let protocols = match self.protocol {
            // A known repository may come over a protocol that manifests may not name.
            Some(own) if !git.protocols.split(':').any(|p| p == own.as_str()) => {
                format!("{}:{}", git.protocols, own.as_str())
            }
            _ => git.protocols.clone(),
        };
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("GIT_ALLOW_PROTOCOL", protocols.trim_matches(':'))
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_AUTHOR_NAME", &git.identity.name)
            .env("GIT_AUTHOR_EMAIL", &git.identity.email)
            .env("GIT_COMMITTER_NAME", &git.identity.name)
            .env("GIT_COMMITTER_EMAIL", &git.identity.email)
            .env("GIT_CONFIG_COUNT", (OVERRIDES.len() + self.config.len()).to_string());
        let overrides = OVERRIDES.iter().map(|(key, value)| (*key, OsStr::new(*value)));
        let config = self.config.iter().map(|(key, value)| (*key, value.as_os_str()));
        for (i, (key, value)) in overrides.chain(config).enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{i}"), key).env(format!("GIT_CONFIG_VALUE_{i}"), value);
        }
        if let Some(ssh) = git.ssh_command {
            command.env("GIT_SSH_COMMAND", ssh);
        }
        command
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .args(&self.args)
            // Whatever folder the agent was started in, git must not find a repository by looking around.
            .current_dir(
                self.env.iter().find(|(k, _)| *k == "GIT_WORK_TREE").map_or_else(root, |(_, v)| v.into()),
            );
        command
    }
}

fn root() -> PathBuf {
    PathBuf::from("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for good in [
            "git version 2.38.0",
            "git version 2.47.3",
            "git version 3.0.1",
            "git version 2.39.5 (Apple Git-154)",
        ] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["git version 2.37.9", "git version 1.99", "", "hub version 2.99"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_stopped() {
        let policy = GitPolicy { local_timeout: Duration::from_millis(50), ..GitPolicy::default() };
        let git = Git::probe(&policy).unwrap();
        // Reads standard input for ever when the writer never closes it: a fifo without a writer.
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let error = git.anywhere("hashing").arg("hash-object").arg(&fifo).run().await.unwrap_err();
        assert!(matches!(error, WorkspaceError::TimedOut { .. }), "{error}");
    }

    #[tokio::test]
    async fn output_is_bounded() {
        let git = Git::probe(&GitPolicy::default()).unwrap();
        let call = || git.anywhere("helping").args(["help", "-a"]).at_most(100);
        let output = call().run_any().await.unwrap();
        assert!(output.truncated && output.stdout.len() == 100);
        assert!(call().run().await.is_err(), "a cut answer is no answer");
    }

    #[tokio::test]
    async fn a_git_that_was_cut_off_is_noted_once() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::probe(&GitPolicy::default()).unwrap();
        git.anywhere("making it").args(["init", "--quiet", "--bare"]).arg(folder.path()).run().await.unwrap();
        let call = |args: &[&str]| git.at(folder.path(), "testing").args(args).noted_in(folder.path());
        call(&["rev-parse", "--git-dir"]).run().await.unwrap();
        assert!(!take_cut_off(folder.path()));
        let endless = call(&["-c", "alias.endless=!sleep 600", "endless"]).run_any();
        assert!(tokio::time::timeout(Duration::from_millis(200), endless).await.is_err());
        assert!(take_cut_off(folder.path()));
        assert!(!take_cut_off(folder.path()));
    }
}
