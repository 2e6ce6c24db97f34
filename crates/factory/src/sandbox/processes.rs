//! The processes below one of ours, by what the kernel says of each.
//!
//! Inside a pid namespace nobody gets away from below its first process: whoever loses its parent becomes that one's child.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: i32,
    parent: i32,
    pub(crate) threads: u64,
}

/// Everything that descends from `leader`, itself not included.
pub(crate) fn below(leader: u32) -> Vec<Seen> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut children: BTreeMap<i32, Vec<Seen>> = BTreeMap::new();
    for seen in ids.filter_map(look) {
        children.entry(seen.parent).or_default().push(seen);
    }
    let (mut found, mut open, mut known) = (Vec::new(), vec![leader.cast_signed()], BTreeSet::new());
    while let Some(parent) = open.pop() {
        // A number that was given away while we looked must not lead in a circle.
        if known.insert(parent) {
            let of_it = children.get(&parent).map(Vec::as_slice).unwrap_or_default();
            open.extend(of_it.iter().map(|child| child.id));
            found.extend(of_it);
        }
    }
    found
}

/// Memory that is its own, in bytes: what it shares with others is the system's, or bounded elsewhere.
pub(crate) fn own_memory(id: i32) -> u64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{id}/statm")) else { return 0 };
    let mut pages = text.split_whitespace().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next().unwrap_or_default(), pages.next().unwrap_or_default());
    resident.saturating_sub(shared).saturating_mul(rustix::param::page_size() as u64)
}

/// Asks everything inside to end; the first process, which has nothing to save, and its keeper outside are left out.
pub(crate) fn terminate_inside(leader: u32) {
    let all = below(leader);
    for seen in all.iter().filter(|seen| seen.parent != leader.cast_signed()) {
        signal(*seen, Signal::TERM);
    }
}

/// Kills the first process inside, and with it everything: the kernel sees to that.
pub(crate) fn kill_inside(leader: u32) {
    for seen in below(leader).into_iter().filter(|seen| seen.parent == leader.cast_signed()) {
        signal(seen, Signal::KILL);
    }
}

/// Whether it has not ended yet, waited for or not.
pub(crate) fn is_running(id: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

fn look(id: i32) -> Option<Seen> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets and may hold anything, brackets too.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    let threads = words.nth(15)?.parse().ok()?;
    Some(Seen { id, parent, threads })
}

#[cfg(target_os = "linux")]
fn signal(seen: Seen, signal: Signal) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(seen.id) else { return };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The number may have been given to another process by now; the descriptor cannot be, so look again.
    if look(seen.id).is_some_and(|now| now.parent == seen.parent) {
        // Gone already is what we want.
        let _gone = pidfd_send_signal(descriptor, signal);
    }
}

/// There is no sandbox elsewhere.
#[cfg(not(target_os = "linux"))]
fn signal(_seen: Seen, _signal: Signal) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_below() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "exec 3<&0; sh -c 'echo up; read _; exit' <&3 & wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        let ours = below(std::process::id());
        let direct = ours.iter().find(|seen| seen.id == child.id().cast_signed()).unwrap();
        assert_eq!((direct.parent, direct.threads), (std::process::id().cast_signed(), 1));
        assert!(ours.iter().any(|seen| seen.parent == direct.id), "{ours:?}");
        assert!(own_memory(direct.id) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
