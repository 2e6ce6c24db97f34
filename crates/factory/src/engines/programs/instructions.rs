//! A repository's own instructions to engines, handed over as text where its settings are not obeyed.
//!
//! The factory reads them with its own rights, so nothing is followed out of the work tree: a link is no file here.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use rustix::fs::OFlags;

/// Of one file. What is longer is cut: the engine can read the rest by itself.
const LONGEST: u64 = 64 * 1024;

/// `None` where there are none.
pub(super) fn of(tree: &Path, names: &[&str]) -> Option<String> {
    let parts: Vec<String> = names
        .iter()
        .filter_map(|name| Some((name, read(tree, Path::new(name))?)))
        .map(|(name, text)| format!("The repository's own instructions, from {name}:\n\n{}", text.trim_end()))
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn read(tree: &Path, name: &Path) -> Option<String> {
    let mut path = tree.to_owned();
    for part in name.components() {
        let Component::Normal(part) = part else { return None };
        path.push(part);
        if path.symlink_metadata().ok()?.is_symlink() {
            return None;
        }
    }
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).ok()?;
    let file: File = File::options().read(true).custom_flags(flags).open(&path).ok()?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).replace('\0', "");
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_tree_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, secret) = (folder.path().join("tree"), folder.path().join("secret"));
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir_all(folder.path().join("elsewhere")).unwrap();
        std::fs::write(&secret, "hunter2").unwrap();
        std::fs::write(folder.path().join("elsewhere/CLAUDE.md"), "hunter2").unwrap();
        std::os::unix::fs::symlink(&secret, tree.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), tree.join(".claude")).unwrap();
        for name in ["AGENTS.md", ".claude/CLAUDE.md", "../secret", "GEMINI.md", "."] {
            assert_eq!(of(&tree, &[name]), None, "{name}");
        }
        std::fs::write(tree.join("CLAUDE.md"), "Use tabs.\n").unwrap();
        let text = of(&tree, &["CLAUDE.md", ".claude/CLAUDE.md"]).unwrap();
        assert_eq!(text, "The repository's own instructions, from CLAUDE.md:\n\nUse tabs.");
        std::fs::write(tree.join("long.md"), "x".repeat(100_000)).unwrap();
        assert!(of(&tree, &["long.md"]).unwrap().len() < 66_000);
    }
}
