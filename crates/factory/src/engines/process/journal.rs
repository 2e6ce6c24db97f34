//! Follows the files in which a program keeps its session while it runs, for programs that say on their output only at the
//! end what they used.
//!
//! The files are in reach of the job, so nothing about them is believed: a link is not followed, nothing but a plain file is
//! opened, and what is read in one look is bounded. Only what is appended during the run is read, and nothing twice.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, Dir, Mode, OFlags, RenameFlags, openat, renameat_with};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lines::Line;
use super::output::Source;

/// How often is looked while nothing is printed.
const INTERVAL: Duration = Duration::from_millis(200);
/// How often at most: a program that prints has often just written its session down, and one that streams prints all the time.
const SHORTEST: Duration = Duration::from_millis(20);
/// Entries of folders that one look goes through, and files that it follows.
const MOST_ENTRIES: usize = 4_096;
const MOST_FILES: usize = 64;
/// Of one file in one look.
const PIECE: u64 = 4 * 1024 * 1024;
/// At what is left of a run that is over.
const MOST_LOOKS: usize = 256;
/// A longer line is left out.
const LINE_BYTES: usize = 4 * 1024 * 1024;

/// Which files of its home a program keeps its sessions in.
#[derive(Debug, Clone, Copy)]
pub(in crate::engines) struct JournalFiles {
    /// Below the home, such as `.codex`.
    pub(in crate::engines) folder: &'static str,
    /// A variable that says where that folder is instead.
    pub(in crate::engines) variable: Option<&'static str>,
    /// The folder in it that a sandbox keeps for the job.
    pub(in crate::engines) kept: &'static str,
    /// How many folders down from there.
    pub(in crate::engines) depth: usize,
    /// How the name of a file begins.
    pub(in crate::engines) prefix: &'static str,
    /// How many characters of the session's name are in that of its file.
    pub(in crate::engines) named_by: usize,
}

/// The files of one run.
#[derive(Debug)]
pub(super) struct Journal {
    files: JournalFiles,
    root: PathBuf,
    /// Others keep their sessions here too: only files that name the run's own are read.
    is_shared: bool,
    followed: BTreeMap<PathBuf, Followed>,
}

#[derive(Debug, Default)]
struct Followed {
    /// Up to here it was read.
    offset: u64,
    /// A line without its end.
    begun: Vec<u8>,
    /// The line is too long; what is left of it is skipped.
    skips: bool,
}

impl Journal {
    /// Before the program starts: what is there already is of earlier runs.
    pub(super) fn before_run(
        files: JournalFiles,
        root: PathBuf,
        is_shared: bool,
        resumed: Option<&str>,
    ) -> Self {
        let mut journal = Self { files, root, is_shared, followed: BTreeMap::new() };
        for (path, file) in journal.scan(resumed) {
            let offset = file.metadata().map_or(0, |metadata| metadata.len());
            journal.followed.insert(path, Followed { offset, ..Followed::default() });
        }
        journal
    }

    /// Until `over`, and then once more.
    pub(super) async fn follow(
        mut self,
        lines: mpsc::Sender<(Source, Line)>,
        session: watch::Receiver<Option<String>>,
        mut printed: watch::Receiver<Instant>,
        over: CancellationToken,
    ) {
        loop {
            let is_last = over.is_cancelled();
            let id = session.borrow().clone();
            let look = tokio::task::spawn_blocking(move || {
                let new = self.look(id.as_deref());
                (self, new)
            });
            let Ok((journal, new)) = look.await else { return };
            self = journal;
            for text in new {
                if lines.send((Source::Journal, Line { text, lost: 0 })).await.is_err() {
                    return;
                }
            }
            if is_last {
                return;
            }
            let next = async {
                tokio::time::sleep(SHORTEST).await;
                // Whoever printed may be gone; then there is only the interval.
                if printed.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = over.cancelled() => {}
                () = next => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Of a run that is over: all that the files hold, line by line. Whether one of them is that of the session.
    pub(super) fn read_whole(
        files: JournalFiles,
        (root, is_shared): (PathBuf, bool),
        session: &str,
        mut each: impl FnMut(&str),
    ) -> bool {
        let mut journal = Self { files, root, is_shared, followed: BTreeMap::new() };
        let mut read = None;
        // One look reads a bounded piece of each.
        for _ in 0..MOST_LOOKS {
            journal.look(Some(session)).iter().for_each(|line| each(line));
            let now = journal.followed.values().map(|file| file.offset).sum::<u64>();
            if read.replace(now) == Some(now) {
                break;
            }
        }
        let name = &session[..session.floor_char_boundary(files.named_by)];
        journal.followed.keys().any(|path| path.to_str().is_some_and(|path| path.contains(name)))
    }

    /// The lines that were appended since.
    fn look(&mut self, session: Option<&str>) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, mut file) in self.scan(session) {
            if self.followed.len() >= MOST_FILES && !self.followed.contains_key(&path) {
                continue;
            }
            // A file that cannot be read any more has nothing more to say.
            let _ = self.followed.entry(path).or_default().read(&mut file, &mut lines);
        }
        lines
    }

    fn scan(&self, session: Option<&str>) -> Vec<(PathBuf, File)> {
        let named = match (self.is_shared, session) {
            (false, _) => None,
            (true, Some(id)) => Some(&id[..id.floor_char_boundary(self.files.named_by)]),
            (true, None) => return Vec::new(),
        };
        let mut found = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(root) = openat(CWD, &self.root, flags, Mode::empty()) {
            let mut left = MOST_ENTRIES;
            self.walk(&root, Path::new(""), self.files.depth, named, &mut left, &mut |folder, path, name| {
                found.extend(plain_file(folder, name).map(|file| (path, file)));
            });
        }
        found
    }

    fn walk(
        &self,
        folder: &OwnedFd,
        path: &Path,
        depth: usize,
        named: Option<&str>,
        left: &mut usize,
        each: &mut dyn FnMut(&OwnedFd, PathBuf, &OsStr),
    ) {
        let Ok(entries) = Dir::read_from(folder.as_fd()) else { return };
        let mut names: Vec<_> = entries
            .flatten()
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
            .filter(|name| name != "." && name != "..")
            .take(*left)
            .collect();
        *left -= names.len();
        // Folders with a date in their name: the latest first.
        names.sort_unstable_by(|one, other| other.cmp(one));
        for name in names {
            let path = path.join(&name);
            if depth > 0 {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                if let Ok(inner) = openat(folder, &name, flags, Mode::empty()) {
                    self.walk(&inner, &path, depth - 1, named, left, each);
                }
            } else if self.is_journal(&name, named) {
                each(folder, path, &name);
            }
        }
    }

    fn is_journal(&self, name: &OsStr, named: Option<&str>) -> bool {
        let Some(name) = name.to_str() else { return false };
        name.starts_with(self.files.prefix)
            && Path::new(name).extension().is_some_and(|extension| extension == "jsonl")
            && named.is_none_or(|id| name.contains(id))
    }
}

/// The files of a session, under names that the program gives to none, but finds.
pub(super) fn set_aside(files: JournalFiles, root: PathBuf, session: &str) {
    const MARK: &str = "kept-";
    let journal = Journal { files, root, is_shared: true, followed: BTreeMap::new() };
    let named = &session[..session.floor_char_boundary(files.named_by)];
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(root) = openat(CWD, &journal.root, flags, Mode::empty()) else { return };
    let mut left = MOST_ENTRIES;
    journal.walk(&root, Path::new(""), files.depth, Some(named), &mut left, &mut |folder, _, name| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(files.prefix));
        let Some(rest) = rest.filter(|rest| !rest.starts_with(MARK)) else { return };
        let aside = format!("{}{MARK}{rest}", files.prefix);
        // One that cannot be moved is loaded all the same, from where it is.
        let _ = renameat_with(folder, name, folder, &aside, RenameFlags::NOREPLACE);
    });
}

/// A FIFO would be opened for ever, a device could do anything.
fn plain_file(folder: &OwnedFd, name: &OsStr) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}

impl Followed {
    fn read(&mut self, file: &mut File, lines: &mut Vec<String>) -> std::io::Result<()> {
        let length = file.metadata()?.len();
        if length < self.offset {
            // It was written anew. What it holds now may be what was read before.
            *self = Self { offset: length, ..Self::default() };
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut piece = Vec::new();
        self.offset += file.take(PIECE).read_to_end(&mut piece)? as u64;
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            if !self.skips {
                self.begun.extend_from_slice(text);
                self.skips = self.begun.len() > LINE_BYTES;
            }
            if ends {
                if !self.skips && !self.begun.is_empty() {
                    lines.push(String::from_utf8_lossy(&self.begun).into_owned());
                }
                self.begun.clear();
                self.skips = false;
            }
        }
        if self.skips {
            self.begun = Vec::new();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const FILES: JournalFiles = JournalFiles {
        folder: ".tool",
        variable: None,
        kept: "sessions",
        depth: 1,
        prefix: "rollout-",
        named_by: 8,
    };

    fn append(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn journal(root: &Path, is_shared: bool, resumed: Option<&str>) -> Journal {
        Journal::before_run(FILES, root.to_owned(), is_shared, resumed)
    }

    #[test]
    fn only_what_a_run_appends_is_read_and_only_once() {
        let root = tempfile::tempdir().unwrap();
        let old = root.path().join("18/rollout-a.jsonl");
        append(&old, "before\n");
        let mut journal = journal(root.path(), false, None);
        assert_eq!(journal.look(None), Vec::<String>::new());
        append(&old, "one\nha");
        append(&root.path().join("18/rollout-b.jsonl"), "two\n");
        append(&root.path().join("18/notes.jsonl"), "no journal\n");
        append(&root.path().join("rollout-c.jsonl"), "not in a folder\n");
        let mut new = journal.look(None);
        new.sort();
        assert_eq!(new, ["one", "two"]);
        append(&old, "lf\n");
        assert_eq!(journal.look(None), ["half"]);
        assert_eq!(journal.look(None), Vec::<String>::new());
    }

    #[test]
    fn of_others_sessions_nothing_is_read() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("18/rollout-12345678-own.jsonl");
        append(&own, "of the run before\n");
        let mut journal = journal(root.path(), true, Some("12345678-9"));
        append(&own, "own\n");
        append(&root.path().join("18/rollout-87654321.jsonl"), "another's\n");
        assert_eq!(journal.look(None), Vec::<String>::new(), "not before its session is known");
        assert_eq!(journal.look(Some("12345678-9")), ["own"]);
    }

    #[test]
    fn a_session_is_set_aside_once_and_nothing_else_is() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        append(&root.path().join("p/rollout-18-12345678.jsonl"), "old\n");
        append(&root.path().join("p/rollout-18-87654321.jsonl"), "another\n");
        append(&elsewhere.path().join("rollout-18-12345678.jsonl"), "not a session's\n");
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("q")).unwrap();
        for _ in 0..2 {
            set_aside(FILES, root.path().to_owned(), "12345678-9");
        }
        let names = |folder: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(
            names(&root.path().join("p")),
            ["rollout-18-87654321.jsonl", "rollout-kept-18-12345678.jsonl"]
        );
        assert_eq!(names(elsewhere.path()), ["rollout-18-12345678.jsonl"], "behind a link");
        let mut journal = Journal {
            files: FILES,
            root: root.path().to_owned(),
            is_shared: true,
            followed: BTreeMap::new(),
        };
        assert_eq!(journal.look(Some("12345678-9")), ["old"], "it is still found by its name");
    }

    #[test]
    fn what_is_left_of_a_run_is_read_to_its_end() {
        let root = tempfile::tempdir().unwrap();
        let whole = |is_shared, session: &str| {
            let mut lines = Vec::new();
            let root = (root.path().to_owned(), is_shared);
            let found = Journal::read_whole(FILES, root, session, |line| lines.push(line.len()));
            lines.sort_unstable();
            (found, lines)
        };
        assert_eq!(whole(false, "12345678-9"), (false, vec![]));
        // More than one look reads.
        let line = "x".repeat(LINE_BYTES / 2) + "\n";
        append(&root.path().join("18/rollout-12345678-own.jsonl"), &line.repeat(5));
        append(&root.path().join("18/rollout-87654321.jsonl"), "helper\nhalf");
        let long = LINE_BYTES / 2;
        assert_eq!(whole(false, "12345678-9"), (true, vec![6, long, long, long, long, long]));
        assert_eq!(whole(true, "12345678-9"), (true, vec![long; 5]));
        assert!(!whole(false, "11111111-1").0, "that session has no file");
    }

    #[test]
    fn a_file_that_shrinks_is_gone_on_with_at_its_end() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("18/rollout-a.jsonl");
        let mut journal = journal(root.path(), false, None);
        append(&file, "one\ntwo\n");
        assert_eq!(journal.look(None), ["one", "two"]);
        std::fs::write(&file, "one\n").unwrap();
        assert_eq!(journal.look(None), Vec::<String>::new());
        append(&file, "three\n");
        assert_eq!(journal.look(None), ["three"]);
    }

    /// A FIFO that nobody writes to would hold whoever opens it for reading; this test would not end.
    #[test]
    fn what_a_job_plants_leads_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        append(&outside.path().join("secret"), "secret\n");
        append(&outside.path().join("rollout-x.jsonl"), "secret\n");
        let folder = root.path().join("18");
        std::fs::create_dir(&folder).unwrap();
        let mut journal = journal(root.path(), false, None);
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("rollout-link.jsonl")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("19")).unwrap();
        std::fs::create_dir(folder.join("rollout-folder.jsonl")).unwrap();
        let fifo = folder.join("rollout-fifo.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        append(&folder.join("rollout-z.jsonl"), "seen\n");
        assert_eq!(journal.look(None), ["seen"]);
    }

    #[test]
    fn a_line_without_end_is_left_out_and_the_next_is_read() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("18/rollout-a.jsonl");
        let mut journal = journal(root.path(), false, None);
        append(&file, &"x".repeat(LINE_BYTES + 2));
        assert_eq!(journal.look(None), Vec::<String>::new());
        append(&file, "\nnext\n");
        assert_eq!([journal.look(None), journal.look(None)].concat(), ["next"]);
    }
}
