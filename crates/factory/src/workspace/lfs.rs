//! Large files of git-lfs: checked out where the program is installed, and pushed with the work that names them.
//!
//! The filter is the factory's own. A repository asks for it by name in its attributes; it never says what is run, and it
//! names a server only where the factory may use that URL anyway. Objects are kept beside the mirror, by their hash.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Workspace;
use super::error::WorkspaceError;
use super::git::Call;
use super::mirror::Mirror;
use super::refs::CommitId;

/// What git runs for the filter `lfs`.
const FILTER: [(&str, &str); 4] = [
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("filter.lfs.required", "true"),
];

const VERSION: &str = "version https://git-lfs.github.com/spec/v1";
/// A pointer is smaller, whatever else is written into it.
const POINTER_BYTES: u64 = 1_024;
/// Objects that are named in one call.
const AT_ONCE: usize = 100;

/// What a checkout does about large files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LargeFiles {
    /// None are tracked.
    None,
    /// They stay as they are in the repository, and why.
    Pointers(String),
    /// From the server that the repository names, or its origin's own.
    Contents { server: Option<String> },
}

impl Workspace {
    async fn large_files(&self, mirror: &Mirror, commit: &CommitId) -> Result<LargeFiles, WorkspaceError> {
        let call = mirror.call("looking for large files").args(["grep", "--quiet", "-I", "-e", "filter=lfs"]);
        let tracked = call.args([commit.as_str(), "--", ":(glob)**/.gitattributes"]).run_any().await?;
        if !tracked.status.success() {
            return Ok(LargeFiles::None);
        }
        if !self.git().has_lfs() {
            return Ok(LargeFiles::Pointers("git-lfs is not installed here".to_owned()));
        }
        Ok(match self.lfs_server(mirror, commit).await {
            Ok(server) => LargeFiles::Contents { server },
            Err(error) => LargeFiles::Pointers(error.to_string()),
        })
    }

    /// Readies the new repository in `git_dir` for the large files of a commit, or says that they stay pointers.
    pub(crate) async fn ready_for_large_files(
        &self,
        git_dir: &Path,
        mirror: &Mirror,
        commit: &CommitId,
    ) -> Result<LargeFiles, WorkspaceError> {
        let large = self.large_files(mirror, commit).await?;
        match &large {
            LargeFiles::None => {}
            LargeFiles::Pointers(why) => {
                self.notes.note(&format!("{}: large files stay pointers: {why}", mirror.source().name));
            }
            LargeFiles::Contents { .. } => {
                // For the engine's own git, which has no settings of ours.
                for (key, value) in FILTER {
                    let call = self.git().at(git_dir, "configuring the work folder");
                    call.args(["config", "--replace-all", key, value]).run().await?;
                }
            }
        }
        Ok(large)
    }

    /// As `.lfsconfig` names it.
    async fn lfs_server(&self, mirror: &Mirror, commit: &CommitId) -> Result<Option<String>, WorkspaceError> {
        let blob = format!("{commit}:.lfsconfig");
        let call = mirror.call("reading .lfsconfig").args(["config", "--no-includes", "--blob", &blob]);
        let output = call.args(["-z", "--get-regexp", "url$"]).at_most(1 << 16).run_any().await?;
        let mut server = None;
        for field in output.fields() {
            let field = String::from_utf8_lossy(field);
            let (key, url) = field.split_once('\n').unwrap_or((&field, ""));
            if key != "lfs.url" {
                let rule = "of .lfsconfig only lfs.url is understood";
                return Err(WorkspaceError::refused("setting", key, rule));
            }
            server = Some(self.resolve(url).await?.url.as_str().to_owned());
        }
        Ok(server)
    }
}

impl Call<'_> {
    /// Contents become pointers on their way in, and are kept beside the mirror.
    pub(crate) fn taking_large_files(self, mirror: &Mirror) -> Self {
        if !mirror.has_lfs() {
            return self;
        }
        FILTER.iter().fold(self, |call, (key, value)| call.config(key, *value))
    }

    /// Pointers become contents on their way out.
    pub(crate) fn giving_large_files(self, mirror: &Mirror, files: &LargeFiles) -> Self {
        match files {
            LargeFiles::None | LargeFiles::Pointers(_) => self,
            LargeFiles::Contents { server } => {
                let call = self.taking_large_files(mirror);
                server.iter().fold(call, |call, server| call.config("lfs.url", server))
            }
        }
    }
}

impl Mirror {
    /// Where git-lfs keeps them by itself.
    fn lfs_storage(&self) -> PathBuf {
        self.dir().join("lfs")
    }

    /// What a checkout has just fetched, so that the next one, which borrows from here, need not.
    pub(crate) async fn keep_large_files(&self, git_dir: &Path) -> Result<(), WorkspaceError> {
        let fetched = git_dir.join("lfs");
        for oid in oids_in(&fetched) {
            if !self.lfs_object(&oid).exists() {
                self.import(&fetched, &oid).await?;
            }
        }
        Ok(())
    }

    /// In a thread of its own, because it reads all of it.
    async fn import(&self, store: &Path, oid: &str) -> Result<bool, WorkspaceError> {
        let (store, oid, to) = (store.to_owned(), oid.to_owned(), self.lfs_object(oid));
        let path = to.clone();
        let copied = tokio::task::spawn_blocking(move || import(&store, &oid, &to)).await;
        copied.unwrap_or_else(|panic| Err(WorkspaceError::io(path)(std::io::Error::other(panic))))
    }

    fn lfs_object(&self, oid: &str) -> PathBuf {
        object_in(&self.lfs_storage(), oid)
    }

    /// The objects that the commit names and the origin's branches do not. Those that are not on this host were not made
    /// here, so the server has them, or nobody.
    pub(crate) async fn push_large_files(
        &self,
        commit: &CommitId,
        engine: &Path,
    ) -> Result<(), WorkspaceError> {
        let engine_storage = engine.join(".git/lfs");
        if !self.has_lfs() || !(self.lfs_storage().is_dir() || engine_storage.is_dir()) {
            return Ok(());
        }
        let LargeFiles::Contents { server } = self.workspace().large_files(self, commit).await? else {
            return Ok(());
        };
        let mut ours = Vec::new();
        for oid in self.named_objects(commit).await? {
            if self.lfs_object(&oid).is_file() || self.import(&engine_storage, &oid).await? {
                ours.push(oid);
            }
        }
        for some in ours.chunks(AT_ONCE) {
            let call = self.call("pushing large files").args(["lfs", "push", "--object-id"]);
            let call = server.iter().fold(call, |call, server| call.config("lfs.url", server));
            let call = call.arg(self.url().as_str()).args(some);
            call.over(self.url().protocol()).run().await.map_err(|error| self.unreachable(error))?;
        }
        Ok(())
    }

    async fn named_objects(&self, commit: &CommitId) -> Result<Vec<String>, WorkspaceError> {
        let call = self.call("looking for large files").args(["rev-list", "--objects", "--no-object-names"]);
        let new = call.args([commit.as_str(), "--not", "--glob=refs/remotes/origin"]).run().await?;
        let format = "--batch-check=%(objecttype) %(objectsize) %(objectname)";
        let sizes = self.call("looking for large files").args(["cat-file", format]).stdin(new.stdout).run();
        let small: Vec<String> = sizes.await?.text().lines().filter_map(small_blob).collect();
        let call = self.call("reading pointers").args(["cat-file", "--batch=%(objectsize)"]);
        let blobs = call.stdin(small.join("\n")).run().await?;
        // A blob that only looks like one names an object that nobody has.
        let text = String::from_utf8_lossy(&blobs.stdout);
        let mut oids: Vec<String> = text.split(VERSION).skip(1).filter_map(oid_of).collect();
        oids.sort_unstable();
        oids.dedup();
        Ok(oids)
    }
}

fn small_blob(line: &str) -> Option<String> {
    let (size, name) = line.strip_prefix("blob ")?.split_once(' ')?;
    (size.parse::<u64>().ok()? <= POINTER_BYTES).then(|| name.to_owned())
}

/// From what comes after the first line of a pointer.
fn oid_of(rest: &str) -> Option<String> {
    let oid = rest.lines().find_map(|line| line.strip_prefix("oid sha256:"))?;
    is_oid(oid).then(|| oid.to_owned())
}

fn oids_in(store: &Path) -> Vec<String> {
    let list = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = list(store.join("objects")).flat_map(|entry| list(entry.path()));
    let files = folders.flat_map(|entry| list(entry.path()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_oid(name)).collect()
}

fn is_oid(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
}

fn object_in(storage: &Path, oid: &str) -> PathBuf {
    storage.join("objects").join(&oid[..2]).join(&oid[2..4]).join(oid)
}

/// From a work folder's own store, believed only by its hash. `false` where it is not there, or something else.
fn import(engine: &Path, oid: &str, to: &Path) -> Result<bool, WorkspaceError> {
    let from = object_in(engine, oid);
    let is_plain =
        |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() || meta.is_dir());
    // The work folder itself is ours; below it a link could lead anywhere.
    if !from.ancestors().take(6).all(is_plain) {
        return Ok(false);
    }
    let folder = to.parent().unwrap_or(to);
    let fresh = to.with_extension("new");
    let copy = || {
        let mut source = std::fs::File::open(&from)?;
        std::fs::create_dir_all(folder)?;
        let mut target = std::fs::File::create(&fresh)?;
        let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            let n = source.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
            target.write_all(&buffer[..n])?;
        }
        let is_it = const_hex::encode(hash.finalize()) == oid;
        if is_it {
            std::fs::rename(&fresh, to)?;
        } else {
            std::fs::remove_file(&fresh)?;
        }
        Ok(is_it)
    };
    copy().map_err(WorkspaceError::io(from.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_name_hashes_and_nothing_else() {
        let oid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
        let pointer = format!("\noid sha256:{oid}\nsize 12345\n");
        assert_eq!(oid_of(&pointer), Some(oid.to_owned()));
        for bad in ["", "\nsize 3\n", "\noid sha256:../../x\n", "\noid md5:abc\n"] {
            assert_eq!(oid_of(bad), None, "{bad}");
        }
        assert_eq!(small_blob("blob 130 abc"), Some("abc".to_owned()));
        assert_eq!((small_blob("blob 5000 abc"), small_blob("tree 30 abc")), (None, None));
    }

    #[test]
    fn an_engines_object_is_believed_by_its_hash_alone() {
        let folder = tempfile::tempdir().unwrap();
        let engine = folder.path().join("tree/.git/lfs");
        let oid = const_hex::encode(Sha256::digest(b"large"));
        let (from, to) = (object_in(&engine, &oid), object_in(&folder.path().join("store"), &oid));
        assert!(!import(&engine, &oid, &to).unwrap(), "it is not there");
        std::fs::create_dir_all(from.parent().unwrap()).unwrap();
        std::fs::write(&from, "forged").unwrap();
        assert!(!import(&engine, &oid, &to).unwrap() && !to.exists());
        std::fs::remove_file(&from).unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "large").unwrap();
        std::os::unix::fs::symlink(&secret, &from).unwrap();
        assert!(!import(&engine, &oid, &to).unwrap(), "a link is not followed");
        std::fs::remove_file(&from).unwrap();
        std::fs::write(&from, "large").unwrap();
        assert!(import(&engine, &oid, &to).unwrap());
        assert_eq!(std::fs::read(&to).unwrap(), b"large");
    }
}
