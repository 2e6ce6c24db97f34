//! What is in `deploy/`, and the images: rendered, unpacked and judged by programs that are not ours. Nothing is started.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod image;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
