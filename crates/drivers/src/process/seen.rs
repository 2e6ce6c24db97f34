//! A process as the kernel knows it. A number alone is worth nothing: it is given to another process as soon as it is free.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One process, by its number and the moment at which it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) id: i32,
    /// In ticks since the machine started.
    pub(super) began: u64,
}

impl Seen {
    /// The one that has this number now, unless it has ended and only waits to be noticed.
    pub(super) fn now(id: i32) -> Option<Self> {
        let stat = Stat::of(id)?;
        (!stat.has_ended).then_some(Self { id, began: stat.began })
    }

    pub(super) fn is_running(self) -> bool {
        Self::now(self.id) == Some(self)
    }

    /// Whether it works in this folder: the factory of another member never does. What it runs is in its group, and has its
    /// words for a moment before it becomes another program.
    pub(super) fn works_in(self, base: &Path) -> bool {
        if Stat::of(self.id).is_none_or(|stat| stat.group != self.id) {
            return false;
        }
        let Ok(line) = std::fs::read(format!("/proc/{}/cmdline", self.id)) else { return false };
        let mut words = line.split(|byte| *byte == 0);
        words.any(|word| word == b"--base")
            && words.next().is_some_and(|word| word == base.as_os_str().as_encoded_bytes())
            && self.is_running()
    }

    /// The descriptor stays with the process, whoever gets its number.
    pub(super) fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.id) else { return };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if self.is_running() {
            // Gone already is as good as signalled.
            let _ = pidfd_send_signal(descriptor, signal);
        }
    }

    /// It and everything that it started, as far as that still hangs on it.
    pub(super) fn with_all_below(self) -> Vec<Self> {
        let mut children: BTreeMap<i32, Vec<Self>> = BTreeMap::new();
        for id in all() {
            if let Some(stat) = Stat::of(id) {
                children.entry(stat.parent).or_default().push(Self { id, began: stat.began });
            }
        }
        let (mut found, mut open, mut known) = (vec![self], vec![self.id], BTreeSet::new());
        while let Some(parent) = open.pop() {
            // A number that was given away while we looked must not lead in a circle.
            if known.insert(parent) {
                let of_it = children.remove(&parent).unwrap_or_default();
                open.extend(of_it.iter().map(|child| child.id));
                found.extend(of_it);
            }
        }
        found
    }
}

/// Who works in this folder, for whoever was ended before it could note that.
pub(super) fn working_in(base: &Path) -> Option<Seen> {
    all().filter_map(Seen::now).find(|seen| seen.works_in(base))
}

fn all() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

struct Stat {
    parent: i32,
    group: i32,
    began: u64,
    has_ended: bool,
}

impl Stat {
    fn of(id: i32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// `ID (NAME) STATE PARENT …`; the name may contain anything, parentheses too.
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            parent: words.get(1)?.parse().ok()?,
            group: words.get(2)?.parse().ok()?,
            began: words.get(19)?.parse().ok()?,
            has_ended: matches!(*words.first()?, "Z" | "X"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_anything() {
        let line = "7 (a) b (c) Z 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.parent, stat.group, stat.began, stat.has_ended), (3, 7, 4242, true));
        assert!(Stat::parse("7 (a").is_none());
    }

    #[test]
    fn a_number_alone_is_another_process() {
        let own = Seen::now(std::process::id().cast_signed()).unwrap();
        assert!(own.is_running());
        assert!(!Seen { began: own.began + 1, ..own }.is_running());
        assert!(own.with_all_below().contains(&own));
    }
}
