//! A job's place on disk: its folder, its lock, and the note of what it is that survives a crash.
//!
//! The note lies beside the work tree, not in it, and is written last: a folder without one is half made and
//! holds no work. Removal never follows a link.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use giga_domain::repo::folder_name;
use giga_domain::{Epoch, JobId, Timestamp, Usd};
use serde::{Deserialize, Serialize};

use super::error::WorkspaceError;
use super::lock::FileLock;
use super::policy::{GitUrl, RepoSource};
use super::refs::{CommitId, parse_epoch};
use super::remote::RemoteNote;

/// How a checkout began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Start {
    Fresh,
    Resumed,
    /// The checkpoint is on no host that can be reached; the work begins again.
    CheckpointMissing,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) job: JobId,
    pub(crate) epoch: Epoch,
    pub(crate) repo: String,
    pub(crate) url: String,
    pub(crate) base: Option<String>,
    pub(crate) started_from: Option<String>,
    pub(crate) start: Start,
    /// Other repositories whose objects the folder borrows: those of its submodules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) borrows: Vec<String>,
    /// A fenced holder's: from then on nothing of it leaves this host.
    #[serde(default)]
    pub(crate) quarantined: bool,
}

/// What the run in the folder has used up, and the session that it is in, as far as its agent knew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpendNote {
    #[serde(rename = "usdMicros", with = "giga_domain::usd::as_micros")]
    pub usd: Usd,
    pub tokens: u64,
    /// The engine had ended: nothing came after it.
    pub whole: bool,
    /// Written at each answer of the model, by an agent whose engine ended with it.
    #[serde(default)]
    pub current: bool,
    /// When the engine was started. Notes of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionNote>,
}

/// What a later run can resume, and what it has used up since it began, this run included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNote {
    pub id: String,
    /// Whose session it is. Notes of before do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    #[serde(rename = "usdMicros", with = "giga_domain::usd::as_micros")]
    pub usd: Usd,
    pub tokens: u64,
}

impl Record {
    pub(crate) fn source(&self) -> Result<RepoSource, WorkspaceError> {
        Ok(RepoSource::new(&self.repo, GitUrl::parse(&self.url)?))
    }

    /// Every repository whose mirror the folder cannot do without.
    pub(crate) fn borrowed(self) -> impl Iterator<Item = String> {
        self.borrows.into_iter().chain([self.url])
    }

    pub(crate) fn commit(text: Option<&String>) -> Result<Option<CommitId>, WorkspaceError> {
        text.map(|text| text.parse()).transpose()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) job: JobId,
    pub(crate) epoch: Epoch,
    pub(crate) folder: PathBuf,
    lock: PathBuf,
    /// Of a run with several repositories: the folder of one of them.
    part: Option<String>,
}

impl Slot {
    /// Where the runs of a job work: the same path for every epoch, because engines know their sessions by it.
    pub(crate) fn of_job(base: &Path, job: JobId, epoch: Epoch) -> Self {
        Self::named(base, &job.to_string(), job, epoch)
    }

    /// A folder of this epoch's own: what it left behind when a later one took its place, or where it works while somebody
    /// is still in the other.
    pub(crate) fn of_epoch(base: &Path, job: JobId, epoch: Epoch) -> Self {
        Self::named(base, &format!("{job}.{epoch}"), job, epoch)
    }

    fn named(base: &Path, name: &str, job: JobId, epoch: Epoch) -> Self {
        let lock = base.join("locks").join(format!("{name}.work"));
        Self { job, epoch, folder: base.join("work").join(name), lock, part: None }
    }

    /// `None` for what is not named as we would name it.
    pub(crate) fn parse(base: &Path, name: &str) -> Option<Self> {
        if let Some((job, epoch)) = name.split_once('.') {
            Some(Self::of_epoch(base, job.parse().ok()?, parse_epoch(epoch)?))
        } else {
            let mut slot = Self::of_job(base, name.parse().ok()?, Epoch(0));
            // Epoch 0 is nobody's: there is no work in it.
            slot.epoch = slot.worked_in_by().unwrap_or_default();
            Some(slot)
        }
    }

    /// The epoch whose work is in the folder, whoever asks. `None` for one that is half made.
    pub(crate) fn worked_in_by(&self) -> Option<Epoch> {
        let file = match self.repos() {
            None => self.file("job", "json"),
            Some(repos) => self.of(repos.first()?).file("job", "json"),
        };
        let record: Record = serde_json::from_slice(&std::fs::read(self.folder.join(file)).ok()?).ok()?;
        (record.job == self.job).then_some(record.epoch)
    }

    /// Moves the work of an earlier epoch to a folder of its own, where it is found like any leftover.
    pub(crate) fn move_aside(&self, base: &Path, earlier: Epoch) -> Result<(), WorkspaceError> {
        let to = Self::of_epoch(base, self.job, earlier).folder;
        // Never over something: a folder that is there holds work, too.
        let attempt = || match std::fs::symlink_metadata(&to) {
            Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            Err(_) => std::fs::rename(&self.folder, &to),
        };
        attempt().map_err(WorkspaceError::io(&to))
    }

    /// The place of one of several repositories, beside the others.
    pub(crate) fn of(&self, repo: &str) -> Self {
        Self { part: Some(folder_name(repo).to_owned()), ..self.clone() }
    }

    pub(crate) fn tree(&self) -> PathBuf {
        let tree = self.folder.join("tree");
        self.part.as_ref().map_or_else(|| tree.clone(), |part| tree.join(part))
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.folder.join(self.file("snapshot", "index"))
    }

    fn file(&self, name: &str, extension: &str) -> String {
        match &self.part {
            None => format!("{name}.{extension}"),
            Some(part) => format!("{name}.{part}.{extension}"),
        }
    }

    pub(crate) fn try_lock(&self) -> Result<Option<FileLock>, WorkspaceError> {
        FileLock::try_acquire(&self.lock)
    }

    pub(crate) fn read(&self) -> Option<Record> {
        let text = std::fs::read(self.folder.join(self.file("job", "json"))).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        (record.job == self.job && record.epoch == self.epoch).then_some(record)
    }

    pub(crate) fn write(&self, record: &Record) -> Result<(), WorkspaceError> {
        self.put(&self.file("job", "json"), record)
    }

    /// Written last of all, when each of them is there.
    pub(crate) fn write_repos(&self, repos: &[String]) -> Result<(), WorkspaceError> {
        self.put("repos.json", &repos)
    }

    pub(crate) fn forget_repos(&self) {
        let _ = std::fs::remove_file(self.folder.join("repos.json"));
    }

    /// Those of a run with several repositories, as its manifest names them.
    pub(crate) fn repos(&self) -> Option<Vec<String>> {
        serde_json::from_slice(&std::fs::read(self.folder.join("repos.json")).ok()?).ok()
    }

    /// What is there of each of its repositories; nothing of a folder that is half made.
    pub(crate) fn records(&self) -> Vec<Record> {
        match self.repos() {
            None => self.read().into_iter().collect(),
            Some(repos) => repos.iter().filter_map(|repo| self.of(repo).read()).collect(),
        }
    }

    /// `None` also for one that cannot be read.
    pub(crate) fn read_spend(&self) -> Option<SpendNote> {
        serde_json::from_slice(&std::fs::read(self.folder.join("spend.json")).ok()?).ok()
    }

    pub(crate) fn write_spend(&self, note: &SpendNote) -> Result<(), WorkspaceError> {
        self.put("spend.json", note)
    }

    pub(crate) fn read_remote(&self) -> Option<RemoteNote> {
        let text = std::fs::read(self.folder.join(self.file("remote", "json"))).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(crate) fn write_remote(&self, note: &RemoteNote) -> Result<(), WorkspaceError> {
        self.put(&self.file("remote", "json"), note)
    }

    pub(crate) fn forget_remote(&self) {
        let _ = std::fs::remove_file(self.folder.join(self.file("remote", "json")));
    }

    /// Where the next state of the work tree is made.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.folder.join(self.file("incoming", "tree"))
    }

    /// The run in the folder was given secrets.
    pub(crate) fn write_secrets(&self) -> Result<(), WorkspaceError> {
        self.put("secrets.json", &true)
    }

    pub(crate) fn had_secrets(&self) -> bool {
        self.folder.join("secrets.json").exists()
    }

    /// Whole or not at all.
    fn put(&self, name: &str, content: &impl Serialize) -> Result<(), WorkspaceError> {
        let path = self.folder.join(name);
        let attempt = || {
            let text = serde_json::to_vec_pretty(content)?;
            let fresh = self.folder.join(format!("{name}.new"));
            std::fs::write(&fresh, text)?;
            std::fs::rename(&fresh, &path)
        };
        attempt().map_err(WorkspaceError::io(&path))
    }

    /// Everything, or what is there of one of several repositories.
    pub(crate) async fn clear(&self) -> Result<(), WorkspaceError> {
        if self.part.is_none() {
            return remove_folder(self.folder.clone()).await;
        }
        let _ = std::fs::remove_file(self.folder.join(self.file("job", "json")));
        let _ = std::fs::remove_file(self.index());
        remove_folder(self.tree()).await
    }
}

/// Removes a folder and all in it, links as links. Folders that an engine made unwritable are opened up first.
pub(crate) async fn remove_folder(path: PathBuf) -> Result<(), WorkspaceError> {
    let removal = tokio::task::spawn_blocking({
        let path = path.clone();
        move || match remove_all(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_up(&path)?;
                remove_all(&path)
            }
            other => other,
        }
    });
    removal.await.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(WorkspaceError::io(path))
}

fn remove_all(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(folder)?.is_dir() {
        return Ok(());
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
