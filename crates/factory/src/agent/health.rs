//! How well this machine is: what is left of its disk and memory, and whether jobs keep failing because of it.
//!
//! A machine that is down is given nothing new, and a job that fails on it is released instead: it says nothing about the job.
//! Whether it is the machine is tried out: a folder that cannot be written to is, and it is well again as soon as it can. After
//! failures of several jobs without a cause that shows, it waits and tries again by itself, later each time.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use giga_api::wire::Health;
use giga_domain::FailReason;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::ending::RunFailure;
use super::sweep::DISK_FLOOR_BYTES;
use crate::sandbox::human_bytes;

/// With less than this a checkout, a log and a checkpoint may not fit any more.
const DISK_DOWN_BYTES: u64 = 256 * 1024 * 1024;
const MEMORY_LOW_BYTES: u64 = 256 * 1024 * 1024;
const MEMORY_DOWN_BYTES: u64 = 64 * 1024 * 1024;

/// So many in a row are no accident.
const FAILURES_IN_A_ROW: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_mins(15);

/// What the system says when it cannot go on, whatever asked it.
const OF_THE_SYSTEM: [&str; 9] = [
    "no space left on device",
    "disk quota exceeded",
    "read-only file system",
    "input/output error",
    "too many open files",
    "cannot allocate memory",
    "out of memory",
    "resource temporarily unavailable",
    "structure needs cleaning",
];

/// What is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    disk: Option<u64>,
    memory: Option<u64>,
}

#[derive(Debug)]
pub(super) struct MachineHealth {
    base: PathBuf,
    failures: Mutex<Failures>,
    /// It could not write to its own folders when a job failed. Looked at again until it can.
    cannot_write: Mutex<bool>,
}

#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    jobs: BTreeSet<String>,
    last: String,
    /// Down until then.
    pause: Option<(Instant, Duration)>,
}

impl MachineHealth {
    pub(super) fn new(base: PathBuf) -> Self {
        Self { base, failures: Mutex::default(), cannot_write: Mutex::default() }
    }

    /// With the reason for anything but `ok`.
    pub(super) fn now(&self) -> (Health, Option<String>) {
        if let Some(error) = self.still_cannot_write() {
            return (Health::Down, Some(format!("it cannot write to its own folder: {error}")));
        }
        let (health, reason) = judge(self.left(), &self.failures.lock(), Instant::now());
        (health, Some(reason).filter(|reason| !reason.is_empty()))
    }

    pub(super) fn is_down(&self) -> bool {
        self.now().0 == Health::Down
    }

    /// A job failed here. Answers whether it failed because of the machine, which is down by now: then the job is somebody
    /// else's.
    pub(super) fn failed(&self, job: &str, failure: &RunFailure) -> bool {
        if !is_of_this_machine(failure) {
            return false;
        }
        self.failures.lock().one_more(job, &failure.detail, Instant::now());
        *self.cannot_write.lock() = write_something(&self.base).is_err();
        self.is_down()
    }

    /// Whether it could not when a job failed, and cannot now.
    fn still_cannot_write(&self) -> Option<io::Error> {
        let mut cannot_write = self.cannot_write.lock();
        if !*cannot_write {
            return None;
        }
        let error = write_something(&self.base).err();
        if error.is_none() {
            *cannot_write = false;
            *self.failures.lock() = Failures::default();
        }
        error
    }

    /// A run got as far as the machine could bring it.
    pub(super) fn worked(&self) {
        *self.failures.lock() = Failures::default();
    }

    fn left(&self) -> Left {
        Left { disk: free_disk(&self.base), memory: free_memory() }
    }
}

impl Failures {
    /// One job that fails again and again may be the reason itself.
    fn one_more(&mut self, job: &str, detail: &str, now: Instant) {
        self.in_a_row += 1;
        self.jobs.insert(job.to_owned());
        detail.lines().next().unwrap_or_default().clone_into(&mut self.last);
        if self.in_a_row >= FAILURES_IN_A_ROW && self.jobs.len() > 1 {
            let pause = self.pause.map_or(FIRST_PAUSE, |(_, last)| (last * 2).min(LONGEST_PAUSE));
            self.pause = Some((now + pause, pause));
        }
    }
}

fn judge(left: Left, failures: &Failures, now: Instant) -> (Health, String) {
    let below = |left: Option<u64>, floor: u64| left.filter(|left| *left < floor);
    let free = |left: u64, of: &str| format!("only {} of {of} are free", human_bytes(left));
    if let Some(disk) = below(left.disk, DISK_DOWN_BYTES) {
        return (Health::Down, free(disk, "disk"));
    }
    if let Some(memory) = below(left.memory, MEMORY_DOWN_BYTES) {
        return (Health::Down, free(memory, "memory"));
    }
    if let Some((until, _)) = failures.pause.filter(|(until, _)| *until > now) {
        let seconds = (until - now).as_secs().max(1);
        let count = failures.in_a_row;
        let last = &failures.last;
        return (
            Health::Down,
            format!("{count} runs in a row failed because of it ({last}); it tries again in {seconds} s"),
        );
    }
    if let Some(disk) = below(left.disk, DISK_FLOOR_BYTES) {
        return (Health::Degraded, free(disk, "disk"));
    }
    if let Some(memory) = below(left.memory, MEMORY_LOW_BYTES) {
        return (Health::Degraded, free(memory, "memory"));
    }
    if failures.in_a_row > 0 {
        return (Health::Degraded, format!("the last job failed because of it: {}", failures.last));
    }
    (Health::Ok, String::new())
}

/// The engine's provider, a repository's server and the job itself fail too, and this machine is no worse for it.
fn is_of_this_machine(failure: &RunFailure) -> bool {
    let detail = failure.detail.to_lowercase();
    failure.reason == FailReason::Infrastructure && OF_THE_SYSTEM.iter().any(|words| detail.contains(words))
        || failure.is_of_this_machine
}

/// Where every job needs it.
fn write_something(base: &Path) -> io::Result<()> {
    for folder in [base.to_owned(), base.join("logs")] {
        std::fs::create_dir_all(&folder)?;
        let mut file = tempfile::Builder::new().prefix(".health-").tempfile_in(&folder)?;
        file.write_all(&[0; 4 * 1024])?;
        file.as_file().sync_data()?;
    }
    Ok(())
}

/// For whoever is not the superuser.
fn free_disk(base: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(base).ok()?;
    // No room for another file is as bad as no room in one. Some file systems do not count them.
    if stat.f_files > 0 && stat.f_favail == 0 {
        return Some(0);
    }
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Without having to swap, as Linux sees it.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: Left = Left { disk: Some(1 << 40), memory: Some(1 << 34) };

    fn full_disk() -> RunFailure {
        RunFailure::new(FailReason::Infrastructure, "logs/x: No space left on device (os error 28)")
    }

    fn of(left: Left, failures: &Failures) -> Health {
        judge(left, failures, Instant::now()).0
    }

    #[test]
    fn what_is_left_decides() {
        let none = Failures::default();
        assert_eq!(of(PLENTY, &none), Health::Ok);
        assert_eq!(of(Left { disk: Some(1 << 30), ..PLENTY }, &none), Health::Degraded);
        assert_eq!(of(Left { memory: Some(100 << 20), ..PLENTY }, &none), Health::Degraded);
        assert_eq!(of(Left { memory: Some(1 << 20), ..PLENTY }, &none), Health::Down);
        assert_eq!(of(Left { disk: None, memory: None }, &none), Health::Ok, "nobody knows");
        let (health, reason) = judge(Left { disk: Some(0), ..PLENTY }, &none, Instant::now());
        assert_eq!(health, Health::Down);
        assert!(reason.contains("of disk are free"), "{reason}");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_in_a_row_take_it_down_for_longer_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let health = MachineHealth::new(folder.path().to_owned());
        for _ in 0..5 {
            assert!(!health.failed("one", &full_disk()), "it may be the job");
        }
        assert!(health.failed("another", &full_disk()));
        let (state, reason) = health.now();
        assert_eq!(state, Health::Down);
        assert!(reason.unwrap().contains("6 runs in a row failed"));
        tokio::time::advance(FIRST_PAUSE).await;
        assert!(!health.is_down(), "it tries again by itself");
        assert!(health.failed("one", &full_disk()), "one is enough now");
        tokio::time::advance(FIRST_PAUSE).await;
        assert!(health.is_down(), "and it waits for longer");
        tokio::time::advance(FIRST_PAUSE).await;
        assert!(!health.is_down());
        health.worked();
        assert!(!health.failed("one", &full_disk()), "all is forgotten");
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_takes_it_down_for_as_long() {
        let folder = tempfile::tempdir().unwrap();
        let health = MachineHealth::new(folder.path().to_owned());
        std::fs::write(folder.path().join("logs"), "").unwrap();
        assert!(!health.is_down(), "nothing has failed yet");
        assert!(health.failed("one", &RunFailure::of_this_machine("no log")), "at once");
        assert!(health.now().1.unwrap().contains("cannot write to its own folder"));
        std::fs::remove_file(folder.path().join("logs")).unwrap();
        assert_eq!(health.now(), (Health::Ok, None));
    }

    #[test]
    fn what_is_not_the_machines_fault_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let health = MachineHealth::new(folder.path().to_owned());
        for _ in 0..10 {
            for (reason, detail) in [
                (FailReason::Infrastructure, "API Error: 529 overloaded_error"),
                (FailReason::Infrastructure, "the origin cannot be reached"),
                (FailReason::VerifyFailed, "`make`: No space left on device"),
            ] {
                assert!(!health.failed("one", &RunFailure::new(reason, detail)), "{detail}");
            }
        }
    }
}
