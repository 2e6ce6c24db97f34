//! A bare repository that plays the remote, and what the demo shows of it.
//!
//! Git runs without the user's settings: no hooks, signing or aliases of theirs get into the demo.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::exit::CliError;

/// A greeting with a typo, and a test that says so. Any machine with a shell can run it.
pub(super) const BROKEN_GREETING: &[(&str, &str)] = &[
    ("greet.sh", "echo \"Helo, ${1:-world}!\"\n"),
    (
        "test.sh",
        "said=$(sh greet.sh Ana)\n\
         if [ \"$said\" = \"Hello, Ana!\" ]; then echo \"ok: it says $said\"\n\
         else echo \"FAILED: it says $said but should say Hello, Ana!\"; exit 1; fi\n",
    ),
];

pub(super) struct Origin {
    path: PathBuf,
}

impl Origin {
    /// With one commit on `main`.
    pub(super) async fn make(repos: &Path, name: &str, files: &[(&str, &str)]) -> Result<Self, CliError> {
        let path = repos.join(format!("{name}.git"));
        std::fs::create_dir(&path)?;
        git(&path, &["init", "--quiet", "--bare", "--initial-branch=main"]).await?;
        let seed = tempfile::tempdir_in(repos.join(".."))?;
        for (name, text) in files {
            std::fs::write(seed.path().join(name), text)?;
        }
        git(seed.path(), &["init", "--quiet", "--initial-branch=main"]).await?;
        git(seed.path(), &["add", "."]).await?;
        git(seed.path(), &["commit", "--quiet", "--message", "First version"]).await?;
        let origin = path.display().to_string();
        git(seed.path(), &["push", "--quiet", &origin, "main"]).await?;
        Ok(Self { path })
    }

    /// What the test says of `main` as it is now, and whether it passed.
    pub(super) async fn test(&self) -> Result<(bool, String), CliError> {
        let checkout = tempfile::tempdir_in(self.path.join("../.."))?;
        let origin = self.path.display().to_string();
        git(checkout.path(), &["clone", "--quiet", &origin, "."]).await?;
        let output = Command::new("sh").arg("test.sh").current_dir(checkout.path()).output().await?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    pub(super) async fn diff(&self, commit: &str) -> Result<String, CliError> {
        git(&self.path, &["diff", &format!("main...{commit}"), "--"]).await
    }

    /// The first lines of the commits on a branch.
    pub(super) async fn subjects(&self, branch: &str) -> Result<String, CliError> {
        git(&self.path, &["log", "--format=%s", branch, "--"]).await
    }

    pub(super) async fn history(&self) -> Result<String, CliError> {
        git(&self.path, &["log", "--graph", "--format=%h %s", "main", "--"]).await
    }
}

async fn git(dir: &Path, args: &[&str]) -> Result<String, CliError> {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=You", "-c", "user.email=you@example.invalid"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.output().await.map_err(|error| {
        CliError::failed_but(
            format!("git could not be started: {error}"),
            "the demo needs git; install it first",
        )
    })?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(CliError::failed(format!("git {}: {}", args.join(" "), errors.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
