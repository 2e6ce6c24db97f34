//! A repository as a job finds one: an origin of its own, some history, a check that takes as long as it is told to.

use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::process::Command;

/// As jobs name it.
pub(crate) const NAME: &str = "app";
pub(crate) const CHECK: &str = "sh check.sh";
const MODULES: usize = 20;
const FILES: usize = 10;

/// A change that was made by a job and is to be merged.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) job: String,
    pub(crate) branch: String,
    pub(crate) commit: String,
    pub(crate) file: String,
}

pub(crate) struct Repository {
    folder: TempDir,
}

impl Repository {
    pub(crate) async fn make() -> Result<Self> {
        let repository = Self { folder: tempfile::Builder::new().prefix("giga-bench-").tempdir()? };
        let seed = repository.path("seed");
        git(repository.folder.path(), &["init", "--quiet", "--initial-branch=main", "seed"]).await?;
        for module in 0..MODULES {
            let folder = seed.join(format!("src/module-{module}"));
            std::fs::create_dir_all(&folder)?;
            for file in 0..FILES {
                let lines = (0..60).map(|line| format!("line {line} of file {file} of module {module}\n"));
                std::fs::write(folder.join(format!("file-{file}.txt")), lines.collect::<String>())?;
            }
            git(&seed, &["add", "."]).await?;
            git(&seed, &["commit", "--quiet", "-m", &format!("Module {module}")]).await?;
        }
        repository.take(0.0)?;
        repository.count_anew()?;
        std::fs::write(seed.join("check.sh"), repository.check())?;
        git(&seed, &["add", "."]).await?;
        git(&seed, &["commit", "--quiet", "-m", "A check"]).await?;
        std::fs::create_dir(repository.repos())?;
        repository.clone_bare(&seed, &repository.origin()).await?;
        Ok(repository)
    }

    /// Where a factory finds it by its name.
    pub(crate) fn repos(&self) -> PathBuf {
        self.path("repos")
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.repos().join(format!("{NAME}.git"))
    }

    /// A folder for whoever works on it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it says is how long a check takes, so that the jobs themselves need not wait for what is measured later.
    fn check(&self) -> String {
        let (seconds, checks) = (self.path("seconds"), self.path("checks"));
        let (seconds, checks) = (seconds.display(), checks.display());
        format!(
            "set -e\nfind src -type f | sort | xargs cat | wc -l\nsleep \"$(cat '{seconds}')\"\necho one >>'{checks}'\n"
        )
    }

    /// From now on, a check takes so long.
    pub(crate) fn take(&self, seconds: f64) -> Result<()> {
        Ok(std::fs::write(self.path("seconds"), format!("{seconds}\n"))?)
    }

    pub(crate) fn count_anew(&self) -> Result<()> {
        Ok(std::fs::write(self.path("checks"), "")?)
    }

    /// How many checks have passed since the count began.
    pub(crate) fn checks(&self) -> Result<usize> {
        Ok(std::fs::read_to_string(self.path("checks"))?.lines().count())
    }

    /// The origin as it is now, for another way of merging the same.
    pub(crate) async fn copy(&self) -> Result<PathBuf> {
        let copy = self.path("copy.git");
        self.clone_bare(&self.origin(), &copy).await?;
        Ok(copy)
    }

    async fn clone_bare(&self, from: &Path, to: &Path) -> Result<()> {
        git(self.folder.path(), &["clone", "--quiet", "--bare", text(from)?, text(to)?]).await?;
        // An origin, and not a clone of one: results are to end here.
        git(to, &["remote", "remove", "origin"]).await.map(drop)
    }

    /// What a person would type, change by change, in a clone that is there already and that nobody else pushes past.
    pub(crate) async fn merge_by_hand(
        &self,
        origin: &Path,
        changes: &[Change],
    ) -> Result<std::time::Duration> {
        let clone = self.path("by-hand");
        git(self.folder.path(), &["clone", "--quiet", text(origin)?, text(&clone)?]).await?;
        let script = format!(
            "for branch; do git merge --quiet --no-ff -m \"Merge $branch\" \"origin/$branch\" && {CHECK} >/dev/null && \
             git push --quiet origin main || exit 1; done"
        );
        let mut command = Command::new("sh");
        quiet_git(&mut command, &clone);
        command.args(["-c", &script, "merge"]).args(changes.iter().map(|change| &change.branch));
        let start = std::time::Instant::now();
        read(command.output().await?, "merging by hand")?;
        Ok(start.elapsed())
    }

    /// An error unless every change, and nothing else, was merged into the origin's branch, each of them once.
    pub(crate) async fn expect_each_once(&self, origin: &Path, changes: &[Change]) -> Result<()> {
        let base = git(&self.path("seed"), &["rev-parse", "HEAD"]).await?;
        let range = format!("{}..main", base.trim());
        let merges = git(origin, &["rev-list", "--merges", "--parents", &range]).await?;
        each_once(&merges, changes)?;
        let files = git(origin, &["ls-tree", "-r", "--name-only", "main"]).await?;
        for Change { file, .. } in changes {
            if !files.lines().any(|line| line == file) {
                bail!("{file} is not in the branch");
            }
        }
        Ok(())
    }
}

/// `merges` is a merge per line: its commit, what it was merged into, what was merged.
fn each_once(merges: &str, changes: &[Change]) -> Result<()> {
    let merged: Vec<&str> = merges.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    for Change { commit, branch, .. } in changes {
        let times = merged.iter().filter(|one| *one == commit).count();
        if times != 1 {
            bail!("{branch} was merged {times} times");
        }
    }
    if merged.len() != changes.len() {
        bail!("there are {} merges of {} changes", merged.len(), changes.len());
    }
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

async fn git(folder: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    let output = quiet_git(&mut command, folder).args(words).output().await?;
    read(output, &words.join(" "))
}

/// Nothing of the caller's git may slip in.
fn quiet_git<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Bench")
            .env(format!("GIT_{who}_EMAIL"), "bench@example.invalid");
    }
    command
}

fn read(output: Output, what: &str) -> Result<String> {
    if !output.status.success() {
        bail!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(commit: &str) -> Change {
        Change {
            job: String::new(),
            branch: format!("of-{commit}"),
            commit: commit.to_owned(),
            file: String::new(),
        }
    }

    #[test]
    fn what_is_missing_twice_in_or_not_asked_for_is_seen() {
        let changes = [change("a"), change("b")];
        let says = |merges: &str| each_once(merges, &changes).map_err(|error| error.to_string());
        assert_eq!(says("m2 m1 b\nm1 base a\n"), Ok(()));
        assert_eq!(says("m1 base a\n"), Err("of-b was merged 0 times".to_owned()));
        assert_eq!(says("m3 m2 a\nm2 m1 b\nm1 base a\n"), Err("of-a was merged 2 times".to_owned()));
        assert_eq!(says("m3 m2 c\nm2 m1 b\nm1 base a\n"), Err("there are 3 merges of 2 changes".to_owned()));
    }
}
