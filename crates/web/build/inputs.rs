//! What goes into the page: the files of `web/` that cargo is to watch, and a fingerprint of what is in them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::node;

const INPUTS: [&str; 9] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "postcss.config.cjs",
    "public",
    "scripts",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

/// Only what is there: cargo takes a file that is not there for one that changes all the time. To be asked when the
/// packages are installed: their mark is there then, so that packages that are removed come back, and is not where they
/// could not be installed, so that not every command of cargo tries that again.
pub(crate) fn watched(web: &Path) -> Vec<PathBuf> {
    let inputs = INPUTS.iter().map(|name| web.join(name));
    inputs.chain([node::mark(web)]).filter(|path| path.exists()).collect()
}

pub(crate) fn fingerprint(web: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    for name in INPUTS {
        let path = web.join(name);
        if path.is_dir() {
            collect(&path, &mut files)?;
        } else if path.exists() {
            files.push(path);
        }
    }
    files.retain(|file| !is_test(file));
    files.sort();
    // What is really installed, which may be something else than what was when the page was built last.
    files.extend([node::installed(web)].into_iter().filter(|path| path.exists()));
    let mut hasher = DefaultHasher::new();
    for file in &files {
        file.strip_prefix(web).unwrap_or(file).hash(&mut hasher);
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        bytes.hash(&mut hasher);
    }
    Ok(format!("{:016x} of {} files\n", hasher.finish(), files.len()))
}

/// Goes into no page.
fn is_test(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains(".test."))
}

pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
