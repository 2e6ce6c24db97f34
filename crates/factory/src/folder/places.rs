//! The folders on disk. Everything goes through handles of the folders themselves, and no link is ever followed, so
//! whatever is put there, nothing outside of the root is read, moved or written. Nothing is ever overwritten.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use serde::{Deserialize, Serialize};

/// How many names are tried for a file whose own name is taken.
const NAMES: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Inbox,
    Building,
    Review,
    Testing,
    Shipped,
    Failed,
}

impl Place {
    /// In the order of their values.
    pub const ALL: [Self; 6] =
        [Self::Inbox, Self::Building, Self::Review, Self::Testing, Self::Shipped, Self::Failed];

    /// What the folder is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Building => "building",
            Self::Review => "review",
            Self::Testing => "testing",
            Self::Shipped => "shipped",
            Self::Failed => "failed",
        }
    }
}

/// How a file looks from outside: when this is the same twice, nobody is writing to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sighting {
    size: i64,
    modified: (i64, i64),
    inode: u64,
}

#[derive(Debug)]
pub(super) struct Places {
    folders: [OwnedFd; 6],
    /// What folder mode itself has to remember.
    notes: OwnedFd,
}

fn open_folder(root: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match fs::mkdirat(root, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(root, name, flags, Mode::empty())?)
}

impl Places {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(root, flags, Mode::empty())?;
        let [inbox, building, review, testing, shipped, failed] =
            Place::ALL.map(|place| open_folder(&root, place.name()));
        let folders = [inbox?, building?, review?, testing?, shipped?, failed?];
        Ok(Self { folders, notes: open_folder(&root, ".giga")? })
    }

    fn folder(&self, place: Place) -> &OwnedFd {
        &self.folders[place as usize]
    }

    pub(super) fn notes(&self) -> &OwnedFd {
        &self.notes
    }

    /// What lies in the inbox and looks like a manifest, by name.
    pub(super) fn manifests(&self) -> io::Result<Vec<(String, Sighting)>> {
        let inbox = self.folder(Place::Inbox);
        let mut found = Vec::new();
        for name in names(inbox)? {
            let Ok(stat) = fs::statat(inbox, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if is_file && is_manifest(&name) {
                let modified = (stat.st_mtime, stat.st_mtime_nsec.cast_signed());
                found.push((name, Sighting { size: stat.st_size, modified, inode: stat.st_ino }));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    pub(super) fn read(&self, place: Place, name: &str, most: usize) -> io::Result<Vec<u8>> {
        read(self.folder(place), name, most)
    }

    pub(super) fn holds(&self, place: Place, name: &str) -> bool {
        fs::statat(self.folder(place), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Moves it and says what it is called there: its own name, or one with a number when that is taken.
    pub(super) fn move_file(&self, from: Place, name: &str, to: Place) -> io::Result<String> {
        for number in 1..NAMES {
            let new_name = numbered(name, number);
            match self.rename(from, name, to, &new_name) {
                Ok(()) => return Ok(new_name),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Moves a file from the inbox to the failed ones, with a text beside it that says why. The text comes first: a
    /// file that is moved is never without it.
    pub(super) fn refuse(&self, name: &str, text: &str) -> io::Result<String> {
        let failed = self.folder(Place::Failed);
        for number in 1..NAMES {
            let new_name = numbered(name, number);
            let text_name = format!("{new_name}.error.txt");
            match create(failed, &text_name, text.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            }
            match self.rename(Place::Inbox, name, Place::Failed, &new_name) {
                Ok(()) => return Ok(new_name),
                Err(error) => {
                    fs::unlinkat(failed, &text_name, AtFlags::empty())?;
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(error);
                    }
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn rename(&self, from: Place, name: &str, to: Place, new_name: &str) -> io::Result<()> {
        let (from, to) = (self.folder(from), self.folder(to));
        Ok(fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE)?)
    }
}

/// `fix.md`, `fix-2.md`, `fix-3.md`, …
fn numbered(name: &str, number: u32) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, ending))) => format!("{stem}-{number}.{ending}"),
        (_, None) => format!("{name}-{number}"),
    }
}

/// Hidden files are somebody's drafts and swap files.
fn is_manifest(name: &str) -> bool {
    let ending = Path::new(name).extension();
    !name.starts_with('.') && ending.is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
}

/// Names that are text; nobody could be events about others.
pub(super) fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        if let Ok(name) = entry?.file_name().to_str() {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Up to `most` bytes of a regular file. Whatever was put in its place meanwhile is refused, and never waited for.
pub(super) fn read(folder: &OwnedFd, name: &str, most: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::openat(folder, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(most as u64).read_to_end(&mut content)?;
    Ok(content)
}

/// Makes a file that was not there.
pub(super) fn create(folder: &OwnedFd, name: &str, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(fs::openat(folder, name, flags, Mode::from_raw_mode(0o644))?);
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::open(root.path()).unwrap();
        for (text, expected) in [("one", "fix.md"), ("two", "fix-2.md"), ("three", "fix-3.md")] {
            std::fs::write(root.path().join("inbox/fix.md"), text).unwrap();
            assert_eq!(places.move_file(Place::Inbox, "fix.md", Place::Shipped).unwrap(), expected);
            assert_eq!(places.read(Place::Shipped, expected, 99).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_refused_file_has_its_reason_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::open(root.path()).unwrap();
        for expected in ["fix.md", "fix-2.md"] {
            std::fs::write(root.path().join("inbox/fix.md"), "x").unwrap();
            assert_eq!(places.refuse("fix.md", "because").unwrap(), expected);
            let text = std::fs::read_to_string(root.path().join(format!("failed/{expected}.error.txt")));
            assert_eq!(text.unwrap(), "because");
        }
        assert!(places.refuse("gone.md", "because").is_err());
        assert!(!root.path().join("failed/gone.md.error.txt").exists());
    }

    #[test]
    fn links_are_not_followed() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let places = Places::open(root.path()).unwrap();
        let secret = outside.path().join("secret.md");
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, root.path().join("inbox/link.md")).unwrap();
        std::fs::create_dir(root.path().join("inbox/folder.md")).unwrap();
        std::fs::write(root.path().join("inbox/.draft.md"), "x").unwrap();
        std::fs::write(root.path().join("inbox/notes.txt"), "x").unwrap();
        assert_eq!(places.manifests().unwrap(), []);
        assert!(places.read(Place::Inbox, "link.md", 99).is_err());
        assert!(places.read(Place::Inbox, "folder.md", 99).is_err());
        // A folder that is a link is no place to put things.
        let trap = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), trap.path().join("shipped")).unwrap();
        assert!(Places::open(trap.path()).is_err());
    }
}
