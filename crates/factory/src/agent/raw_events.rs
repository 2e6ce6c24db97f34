//! What a coding engine printed, event by event as it came: the log shows it as people read it, and this is what it was.
//!
//! Kept beside the log while the run goes on, and handed over as an artifact at its end.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::lease::Held;

/// The artifact that holds them.
pub(super) const NAME: &str = "events.jsonl";
pub(super) const MEDIA_TYPE: &str = "application/jsonl";

/// More of one run are not kept.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct RawEvents {
    path: PathBuf,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    file: Option<std::fs::File>,
    bytes: u64,
    is_cut: bool,
}

impl RawEvents {
    pub(super) fn new(folder: &Path, held: &Held) -> Self {
        let path = folder.join(format!("{}.{}.events.jsonl", held.job, held.epoch));
        Self { path, written: Mutex::default() }
    }

    /// A full disk must not fail the job: the line is lost, the work goes on.
    pub(super) fn line(&self, line: &str) {
        let mut written = self.written.lock();
        if written.bytes + line.len() as u64 >= MOST_BYTES {
            written.is_cut = true;
            return;
        }
        if written.file.is_none() {
            let mut options = OpenOptions::new();
            written.file = options.write(true).create(true).truncate(true).mode(0o600).open(&self.path).ok();
        }
        if let Some(file) = &mut written.file
            && file.write_all(format!("{line}\n").as_bytes()).is_ok()
        {
            written.bytes += line.len() as u64 + 1;
        }
    }

    /// All of them, once; `None` where there are none.
    pub(super) fn take(&self) -> Option<Vec<u8>> {
        let mut written = self.written.lock();
        written.file.take()?;
        let mut bytes = std::fs::read(&self.path).ok()?;
        if written.is_cut {
            bytes
                .extend_from_slice(b"{\"type\":\"giga.cut\",\"reason\":\"the rest was too much to keep\"}\n");
        }
        let _ = std::fs::remove_file(&self.path);
        (!bytes.is_empty()).then_some(bytes)
    }
}

/// One that nobody took goes with the run.
impl Drop for RawEvents {
    fn drop(&mut self) {
        if self.written.lock().file.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn events_are_taken_once_and_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let held = Held {
            job: "j".to_owned(),
            epoch: 1,
            lease: Duration::from_secs(1),
            renew_now: Arc::new(Notify::new()),
            input: Arc::new(Notify::new()),
        };
        let events = RawEvents::new(folder.path(), &held);
        assert_eq!(events.take(), None);
        events.line("{}");
        events.line(&"x".repeat(MOST_BYTES as usize));
        events.line("[]");
        let bytes = String::from_utf8(events.take().unwrap()).unwrap();
        assert!(bytes.starts_with("{}\n[]\n{\"type\":\"giga.cut\""), "{bytes}");
        assert_eq!(events.take(), None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
