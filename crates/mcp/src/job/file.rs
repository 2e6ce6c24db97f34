//! Files of the work tree, read with the rights of the job: this runs where the job does.

use std::path::Path;

use tokio::io::AsyncReadExt;

use crate::reply::Refusal;

/// What is read into memory; the coordinator may take less.
const MOST: u64 = 256 * 1024 * 1024;

pub(super) async fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    let refused = |why: String| Refusal::field("path", format!("{}: {why}", path.display()));
    let about = tokio::fs::metadata(path).await.map_err(|error| refused(error.to_string()))?;
    // A pipe or a device would be read for ever.
    if !about.is_file() {
        return Err(refused("it is not a regular file; pack a folder first, with tar".to_owned()));
    }
    if about.len() > MOST {
        return Err(refused(format!("it has {} bytes; at most {MOST} can be saved", about.len())));
    }
    let file = tokio::fs::File::open(path).await.map_err(|error| refused(error.to_string()))?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(MOST).read_to_end(&mut bytes).await.map_err(|error| refused(error.to_string()))?;
    Ok(bytes)
}
