//! The files of one layer. What a file was called, owned and dated where it came from is not kept: only its place, its bytes
//! and whether it is a program.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tar::{Builder, EntryType, Header};

/// Since the merge of /usr these are links, whatever a package calls its files.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

#[derive(Debug, Clone)]
enum Node {
    Folder {
        mode: u32,
        owner: u32,
    },
    File {
        bytes: Vec<u8>,
        program: bool,
    },
    Link(PathBuf),
    /// The same file under another name; a path of this tree.
    Same(PathBuf),
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
}

impl Tree {
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: u32) {
        self.put(Path::new(path), Node::Folder { mode, owner });
    }

    pub(super) fn file(&mut self, path: &str, text: impl Into<Vec<u8>>) {
        self.put(Path::new(path), Node::File { bytes: text.into(), program: false });
    }

    pub(super) fn program(&mut self, path: &str, bytes: Vec<u8>) {
        self.put(Path::new(path), Node::File { bytes, program: true });
    }

    pub(super) fn link(&mut self, path: &str, to: &str) {
        self.put(Path::new(path), Node::Link(to.into()));
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.nodes.contains_key(&merged(path))
    }

    pub(super) fn has_merged_links(&mut self) {
        for name in MERGED {
            self.nodes.insert(name.into(), Node::Link(format!("usr/{name}").into()));
            self.folder(&format!("usr/{name}"), 0o755, 0);
        }
    }

    /// Contents of the files whose path has this beginning and this end, in the order of their paths.
    pub(super) fn contents<'a>(&'a self, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.nodes.iter().filter_map(move |(path, node)| match node {
            Node::File { bytes, .. } if path.starts_with(begin) && path.extension()? == end => {
                Some(bytes.as_slice())
            }
            _ => None,
        })
    }

    /// What a package unpacks to. Modes count as far as they make a program, devices are left out.
    pub(super) fn unpack(&mut self, from: impl Read, keep: impl Fn(&Path) -> bool) -> Result<()> {
        let mut archive = tar::Archive::new(from);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = merged(&clean(&entry.path()?)?);
            if path.as_os_str().is_empty() || !keep(&path) {
                continue;
            }
            let linked = || -> Result<PathBuf> {
                let name =
                    entry.link_name()?.with_context(|| format!("{} links to nothing", path.display()))?;
                Ok(name.into_owned())
            };
            let node = match entry.header().entry_type() {
                EntryType::Directory => Node::Folder { mode: 0o755, owner: 0 },
                EntryType::Symlink => Node::Link(linked()?),
                EntryType::Link => Node::Same(merged(&clean(&linked()?)?)),
                EntryType::Regular | EntryType::Continuous => {
                    let program = entry.header().mode()? & 0o100 != 0;
                    let mut bytes = Vec::new();
                    entry.read_to_end(&mut bytes)?;
                    Node::File { bytes, program }
                }
                _ => continue,
            };
            self.put(&path, node);
        }
        Ok(())
    }

    /// A link stays where one stands for a folder: what is unpacked later goes through it.
    fn put(&mut self, path: &Path, node: Node) {
        let path = merged(path);
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            self.nodes.entry(above.into()).or_insert(Node::Folder { mode: 0o755, owner: 0 });
        }
        let is_there = self.nodes.contains_key(&path);
        if !is_there || !matches!(node, Node::Folder { mode: 0o755, .. }) {
            self.nodes.insert(path, node);
        }
    }

    /// In the order of paths, all of one time.
    pub(super) fn write(&self, to: impl Write) -> Result<()> {
        let mut builder = Builder::new(to);
        // A second name comes after the first one in the archive, whatever their order.
        let (same, first): (Vec<_>, Vec<_>) =
            self.nodes.iter().partition(|(_, node)| matches!(node, Node::Same(_)));
        for (path, node) in first.into_iter().chain(same) {
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(0);
            match node {
                Node::Folder { mode, owner } => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_uid(u64::from(*owner));
                    header.set_gid(u64::from(*owner));
                    builder.append_data(&mut header, path.join(""), std::io::empty())?;
                }
                Node::File { bytes, program } => {
                    header.set_entry_type(EntryType::Regular);
                    header.set_mode(if *program { 0o755 } else { 0o644 });
                    header.set_size(bytes.len() as u64);
                    builder.append_data(&mut header, path, bytes.as_slice())?;
                }
                Node::Link(to) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    builder.append_link(&mut header, path, to)?;
                }
                Node::Same(as_that) => {
                    if !self.nodes.contains_key(as_that) {
                        bail!(
                            "{} is another name of {}, which is not there",
                            path.display(),
                            as_that.display()
                        );
                    }
                    header.set_entry_type(EntryType::Link);
                    header.set_mode(0o755);
                    builder.append_link(&mut header, path, as_that)?;
                }
            }
        }
        builder.finish()?;
        Ok(())
    }
}

fn merged(path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    let is_old = MERGED.iter().any(|name| path.starts_with(name)) && path.components().count() > 1;
    if is_old { Path::new("usr").join(path) } else { path.to_path_buf() }
}

fn clean(path: &Path) -> Result<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir | Component::RootDir => {}
            _ => bail!("{} leads out of the package", path.display()),
        }
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(tree: &Tree) -> Vec<(String, u32, u64, EntryType)> {
        let mut written = Vec::new();
        tree.write(&mut written).unwrap();
        let mut archive = tar::Archive::new(written.as_slice());
        let seen = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0);
            let path = entry.path().unwrap().display().to_string();
            (path, header.mode().unwrap(), header.uid().unwrap(), header.entry_type())
        });
        seen.collect()
    }

    /// As a package could have it, with what must not arrive in an image.
    fn package() -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        let mut add = |path: &str, kind: EntryType, mode: u32, link: Option<&str>| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_uid(1000);
            header.set_mtime(1_700_000_000);
            header.set_size(0);
            match link {
                Some(link) => builder.append_link(&mut header, path, link).unwrap(),
                None => builder.append_data(&mut header, path, std::io::empty()).unwrap(),
            }
        };
        add("./bin/su", EntryType::Regular, 0o4755, None);
        add("./etc/notes", EntryType::Regular, 0o600, None);
        add("./dev/null", EntryType::Char, 0o666, None);
        add("./usr/bin/sg", EntryType::Link, 0o4755, Some("./bin/su"));
        add("./usr/share/man/su.1", EntryType::Regular, 0o644, None);
        builder.into_inner().unwrap()
    }

    #[test]
    fn a_package_loses_its_rights_its_dates_and_its_devices() {
        let mut tree = Tree::default();
        tree.has_merged_links();
        tree.unpack(package().as_slice(), |path| !path.starts_with("usr/share/man")).unwrap();
        let seen = entries(&tree);
        let of = |path: &str| {
            seen.iter().find(|(name, ..)| name == path).map(|(_, mode, uid, kind)| (*mode, *uid, *kind))
        };
        assert_eq!(of("usr/bin/su"), Some((0o755, 0, EntryType::Regular)));
        assert_eq!(of("etc/notes"), Some((0o644, 0, EntryType::Regular)));
        assert_eq!(of("usr/bin/sg"), Some((0o755, 0, EntryType::Link)));
        assert_eq!(
            of("bin"),
            Some((0o777, 0, EntryType::Symlink)),
            "a package's folder does not replace the link"
        );
        assert_eq!(of("dev/null"), None);
        assert_eq!(of("usr/share/man/su.1"), None);
        assert!(tree.has(Path::new("/bin/su")) && tree.has(Path::new("/usr/bin/su")));
    }

    #[test]
    fn what_leads_out_of_a_package_is_refused() {
        assert!(clean(Path::new("../etc/passwd")).unwrap_err().to_string().contains("leads out"));
        assert_eq!(clean(Path::new("./usr//bin/x")).unwrap(), Path::new("usr/bin/x"));
    }
}
