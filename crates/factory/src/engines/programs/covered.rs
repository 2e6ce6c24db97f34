//! Folders of a work tree that an engine would obey although it was told not to: it sees them empty in a sandbox.

use std::path::{Path, PathBuf};

/// Those that are there, by their real names: a link may lead to another folder of the tree, and outside of it nothing is shown.
pub(super) fn folders(tree: &Path, names: &[&str]) -> Vec<PathBuf> {
    let Ok(root) = tree.canonicalize() else { return Vec::new() };
    let real = names.iter().filter_map(|name| root.join(name).canonicalize().ok());
    let inside = real.filter_map(|path| Some(tree.join(path.strip_prefix(&root).ok()?)));
    inside.filter(|path| path != tree && path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_repository_are_covered_by_their_real_names() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        let covered = || folders(&tree, &[".tool"]);
        std::fs::create_dir_all(tree.join("other/plugins")).unwrap();
        assert_eq!(covered(), Vec::<PathBuf>::new());
        std::os::unix::fs::symlink("other", tree.join(".tool")).unwrap();
        assert_eq!(covered(), [tree.join("other")]);
        std::fs::remove_file(tree.join(".tool")).unwrap();
        for nowhere in ["..", ".", "other/missing"] {
            std::os::unix::fs::symlink(nowhere, tree.join(".tool")).unwrap();
            assert_eq!(covered(), Vec::<PathBuf>::new(), "{nowhere}");
            std::fs::remove_file(tree.join(".tool")).unwrap();
        }
        std::fs::create_dir(tree.join(".tool")).unwrap();
        assert_eq!(covered(), [tree.join(".tool")]);
    }
}
