//! The accounts that are closed, kept in the factory's folder, so that a restart sends nobody to them.
//!
//! Only a hint: a file that is damaged, of another version or not there closes nothing, and the worst that comes of it is one
//! run that is put back. Never the other way round: whatever the file or the clock says, no account stays closed for longer
//! than [`LONGEST_WINDOW`].

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use giga_domain::{AccountId, Timestamp};
use serde::{Deserialize, Serialize};

/// No provider that we know of counts in longer windows.
pub(super) const LONGEST_WINDOW: Duration = Duration::from_hours(24 * 31);

const VERSION: u32 = 1;

/// When an account was closed, and until when, by this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed {
    at: Timestamp,
    until: Timestamp,
}

impl Closed {
    pub(super) fn for_length(wait: Duration, now: Timestamp) -> Self {
        Self { at: now, until: now.plus(wait.min(LONGEST_WINDOW)) }
    }

    /// Until when it is closed, as seen at `now`. A clock that was put back to before the beginning makes the wait begin anew.
    pub(super) fn until(&mut self, now: Timestamp) -> Option<Timestamp> {
        if now < self.at {
            *self = Self::for_length(self.until.since(self.at), now);
        }
        (self.until > now).then_some(self.until)
    }
}

/// One closed account, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClosedAccount {
    pub(super) engine: String,
    pub(super) account: AccountId,
    pub(super) closed: Closed,
    pub(super) strikes: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    closed: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    engine: String,
    account: String,
    closed_at_ms: i64,
    until_ms: i64,
    strikes: u32,
}

/// The file, and what it holds or was to hold: it is written when that changes.
#[derive(Debug)]
pub(super) struct ClosedFile {
    path: PathBuf,
    holds: Vec<ClosedAccount>,
}

impl ClosedFile {
    /// What is closed at `now`, of what was when the file was written.
    pub(super) fn open(base: &Path, now: Timestamp) -> (Self, Vec<ClosedAccount>) {
        let path = base.join("closed-accounts.json");
        let kept = read(&path).unwrap_or_else(|why| {
            tracing::warn!(file = %path.display(), why, "which accounts are closed could not be read; all are taken for open");
            Vec::new()
        });
        let still = |account: ClosedAccount| {
            let mut closed =
                Closed::for_length(account.closed.until.since(account.closed.at), account.closed.at);
            closed.until(now).map(|_| ClosedAccount { closed, ..account })
        };
        let closed: Vec<_> = kept.iter().cloned().filter_map(still).collect();
        (Self { path, holds: kept }, closed)
    }

    /// Nothing that a run depends on: what cannot be written is said once, and forgotten by a restart.
    pub(super) fn keep(&mut self, closed: Vec<ClosedAccount>) {
        if self.holds == closed {
            return;
        }
        if let Err(error) = write(&self.path, &closed) {
            tracing::warn!(file = %self.path.display(), %error, "which accounts are closed could not be written");
        }
        self.holds = closed;
    }
}

fn read(path: &Path) -> Result<Vec<ClosedAccount>, String> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let content: Content = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if content.version != VERSION {
        return Err(format!("it is of version {}, and this program knows {VERSION}", content.version));
    }
    let account = |entry: Entry| {
        let account = entry.account.parse::<AccountId>().map_err(|error| error.to_string())?;
        let closed = Closed {
            at: Timestamp::from_millis(entry.closed_at_ms),
            until: Timestamp::from_millis(entry.until_ms),
        };
        Ok(ClosedAccount { engine: entry.engine, account, closed, strikes: entry.strikes })
    };
    content.closed.into_iter().map(account).collect()
}

/// Whole or not at all, and never readable by others, not even for a moment.
fn write(path: &Path, closed: &[ClosedAccount]) -> std::io::Result<()> {
    let entry = |account: &ClosedAccount| Entry {
        engine: account.engine.clone(),
        account: account.account.to_string(),
        closed_at_ms: account.closed.at.as_millis(),
        until_ms: account.closed.until.as_millis(),
        strikes: account.strikes,
    };
    let content = Content { version: VERSION, closed: closed.iter().map(entry).collect() };
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(&serde_json::to_vec_pretty(&content)?)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
    const HOUR: Duration = Duration::from_hours(1);

    fn one(wait: Duration, now: Timestamp) -> ClosedAccount {
        ClosedAccount {
            engine: "claude".to_owned(),
            account: AccountId::fingerprint("anthropic", b"key"),
            closed: Closed::for_length(wait, now),
            strikes: 2,
        }
    }

    /// What is found after a restart at `then`.
    fn found(closed: ClosedAccount, then: Timestamp) -> Vec<ClosedAccount> {
        let base = tempfile::tempdir().unwrap();
        ClosedFile::open(base.path(), NOW).0.keep(vec![closed]);
        ClosedFile::open(base.path(), then).1
    }

    #[test]
    fn what_is_still_closed_is_found_again_and_what_is_over_is_not() {
        let closed = one(HOUR, NOW);
        assert_eq!(found(closed.clone(), NOW.plus(HOUR / 2)), vec![closed.clone()]);
        assert_eq!(found(closed, NOW.plus(HOUR)), []);
    }

    #[test]
    fn the_file_is_its_owners_alone_and_written_when_something_changes() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("closed-accounts.json");
        let mut file = ClosedFile::open(base.path(), NOW).0;
        file.keep(Vec::new());
        assert!(!path.exists(), "nothing was ever closed");
        file.keep(vec![one(HOUR, NOW)]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        file.keep(vec![one(HOUR, NOW)]);
        assert!(!path.exists(), "nothing changed");
        file.keep(Vec::new());
        assert!(path.exists());
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_clock_that_jumps_closes_nothing_for_longer_than_its_wait() {
        let year = HOUR * 24 * 365;
        for back in [Duration::from_secs(1), HOUR, year] {
            let then = NOW.minus(back);
            let mut again = found(one(HOUR, NOW), then).remove(0).closed;
            assert_eq!(again.until(then), Some(then.plus(HOUR)), "{back:?}");
            assert_eq!(again.until(then.plus(HOUR)), None);
        }
        let mut long = Closed::for_length(year, NOW);
        assert_eq!(long.until(NOW), Some(NOW.plus(LONGEST_WINDOW)));
        assert_eq!(long.until(NOW.minus(year)), Some(NOW.minus(year).plus(LONGEST_WINDOW)));
        // Written by something that knows no bound.
        let by_hand = Closed { at: NOW, until: NOW.plus(year) };
        let again = found(ClosedAccount { closed: by_hand, ..one(HOUR, NOW) }, NOW);
        assert_eq!(again[0].closed, Closed::for_length(LONGEST_WINDOW, NOW));
    }

    #[test]
    fn a_file_that_cannot_be_read_closes_nothing_and_is_replaced() {
        for text in [
            "",
            "{\"version\":1,\"clo",
            "{\"version\":0,\"closed\":[]}",
            "{\"version\":1,\"closed\":[{\"engine\":\"claude\",\"account\":\"../x\",\"closed_at_ms\":1,\"until_ms\":2,\"strikes\":0}]}",
        ] {
            let base = tempfile::tempdir().unwrap();
            let path = base.path().join("closed-accounts.json");
            std::fs::write(&path, text).unwrap();
            assert!(read(&path).is_err(), "{text}");
            let (mut file, closed) = ClosedFile::open(base.path(), NOW);
            assert_eq!(closed, [], "{text}");
            file.keep(vec![one(HOUR, NOW)]);
            assert_eq!(read(&path).unwrap(), [one(HOUR, NOW)]);
        }
    }
}
