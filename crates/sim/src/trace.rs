//! What happened, line by line, for whoever replays a seed. Costs nothing unless somebody asked for it.

use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;

use crate::clock::SimClock;

#[derive(Debug)]
pub(crate) struct Trace {
    clock: SimClock,
    lines: Option<Mutex<Vec<String>>>,
}

impl Trace {
    pub(crate) fn new(clock: SimClock, keep: bool) -> Self {
        Self { clock, lines: keep.then(Mutex::default) }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let at = self.clock.elapsed();
            let line = format!("{:>4}.{:03} {}", at.as_secs(), at.subsec_millis(), line());
            lines.lock().push(line);
        }
    }

    pub(crate) fn take(&self) -> Vec<String> {
        let lines = self.lines.as_ref().map(|lines| lines.lock());
        lines.map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
    }
}

/// Equal for equal traces, within one build.
pub fn fingerprint(lines: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}
