//! What whoever waits for a checkout is told meanwhile: how far a first fetch is, and what is left out.
//!
//! Never an error: what ends the work is returned to whoever asked for it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::tidy;

/// A line of progress says nothing that the next one does not, so few of them are enough.
const EVERY: Duration = Duration::from_secs(2);

type Sink = dyn Fn(&str) + Send + Sync;

/// To nobody by default.
#[derive(Clone, Default)]
pub(crate) struct Notes(Option<Arc<Sink>>);

impl Notes {
    pub(crate) fn to(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Text from git and from repositories is made printable first.
    pub(crate) fn note(&self, text: &str) {
        let text = tidy(text).replace('\n', " ");
        if let Some(sink) = &self.0 {
            sink(&text);
        } else {
            tracing::info!(text);
        }
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notes(..)" } else { "Notes" })
    }
}

/// Reads git's progress as it is written: every phase's end, and in between a line now and then.
#[derive(Debug)]
pub(crate) struct Progress {
    notes: Notes,
    /// Whose progress it is.
    of: String,
    line: Vec<u8>,
    last: Instant,
}

impl Progress {
    pub(crate) fn new(notes: Notes, of: &str) -> Self {
        Self { notes, of: of.to_owned(), line: Vec::new(), last: Instant::now() }
    }

    pub(crate) fn read(&mut self, bytes: &[u8], now: Instant) {
        for byte in bytes {
            match byte {
                b'\r' | b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    self.read_line(&String::from_utf8_lossy(&line), now);
                }
                // Longer than any line of progress; what is no progress is not told.
                _ if self.line.len() < 1_000 => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn read_line(&mut self, line: &str, now: Instant) {
        let line = line.trim();
        let is_due = line.ends_with("done.") || now.duration_since(self.last) >= EVERY;
        if is_progress(line) && is_due {
            self.last = now;
            self.notes.note(&format!("{}: {line}", self.of));
        }
    }
}

/// `Receiving objects:  12% (3/25), 1.00 MiB | 2.00 MiB/s`, also with `remote: ` before it.
fn is_progress(line: &str) -> bool {
    let line = line.strip_prefix("remote: ").unwrap_or(line);
    line.split_once(": ").is_some_and(|(phase, count)| {
        phase.chars().all(|c| c.is_ascii_alphabetic() || c == ' ')
            && count.trim_start().starts_with(|c: char| c.is_ascii_digit())
    })
}

/// What git said besides.
pub(crate) fn without_progress(stderr: &str) -> String {
    let lines = stderr.split(['\r', '\n']).filter(|line| !is_progress(line.trim()));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn every_phase_ends_with_a_line_and_has_few_before() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = told.clone();
        let mut progress = Progress::new(Notes::to(move |text| sink.lock().push(text.to_owned())), "app");
        let start = Instant::now();
        let mut at = |millis: u64, text: &str| {
            progress.read(text.as_bytes(), start + Duration::from_millis(millis));
        };
        at(0, "remote: Counting obj");
        at(1, "ects: 100% (5/5)\rremote: Counting objects: 100% (5/5), done.        \n");
        at(500, "Receiving objects:   1% (1/99)\r");
        at(2_600, "Receiving objects:  30% (30/99), 1.00 MiB | 2.00 MiB/s\r");
        at(2_700, "Receiving objects:  31% (31/99), 1.00 MiB | 2.00 MiB/s\r");
        at(4_700, "Receiving objects:  60% (60/99)\rReceiving objects:  61% (61/99)\r");
        at(
            5_000,
            "Receiving objects: 100% (99/99), done.\nFrom file:///x\n * [new branch] main -> origin/main\n",
        );
        let expected = [
            "app: remote: Counting objects: 100% (5/5), done.",
            "app: Receiving objects:  30% (30/99), 1.00 MiB | 2.00 MiB/s",
            "app: Receiving objects:  60% (60/99)",
            "app: Receiving objects: 100% (99/99), done.",
        ];
        assert_eq!(*told.lock(), expected);
    }

    #[test]
    fn an_error_is_told_without_the_progress_before_it() {
        let stderr = "remote: Counting objects:  50% (1/2)\rremote: Counting objects: 100% (2/2), done.\n\
                      Receiving objects:  10% (1/10)\rfatal: early EOF: 3 bytes missing\n";
        assert_eq!(without_progress(stderr).trim(), "fatal: early EOF: 3 bytes missing");
    }
}
