//! Everything that an engine started, so that it can be ended together.
//!
//! In a sandbox nobody gets away: when its first process dies, the kernel kills the others. Without one there are two
//! nets: the process group, and a marker variable that children inherit, for those that left the group. Only a process
//! that both leaves the group and wipes its environment slips through. Never signals a process that it cannot tell to be
//! of the run.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::sandbox::processes;

/// The variable that names a run in the environment of everything that it starts.
pub const RUN_MARKER: &str = "GIGA_RUN_ID";

/// How long, and how often, a run's processes are looked for after they were killed.
const LAST_LOOK: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Kills on drop: a run whose task was aborted leaves nothing behind either.
#[derive(Debug)]
pub(super) struct ProcessTree {
    /// Gone once the leader was waited for and the group killed: the number may then mean something else.
    group: Option<Pid>,
    marker: String,
    /// The leader keeps a sandbox, and is no part of what is in it.
    sandboxed: bool,
}

impl ProcessTree {
    pub(super) fn new(leader: Option<u32>, marker: String, sandboxed: bool) -> Self {
        let group = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { group, marker, sandboxed }
    }

    pub(super) fn leader(&self) -> Option<u32> {
        self.group.map(|group| group.as_raw_nonzero().get().cast_unsigned())
    }

    /// Of a sandbox: everything in it has ended before its keeper did, and the number may mean something else now.
    pub(super) const fn leader_ended(&mut self) {
        if self.sandboxed {
            self.group = None;
        }
    }

    /// Asks everyone to end.
    pub(super) fn terminate(&self) {
        match self.leader() {
            Some(leader) if self.sandboxed => processes::terminate_inside(leader),
            _ => self.signal(Signal::TERM),
        }
    }

    /// Ends everyone, and looks again until nobody is left: whoever was forking while it was killed has a child.
    pub(super) async fn kill(&mut self) {
        if self.sandboxed && (self.group.is_none() || self.end_inside().await) {
            self.group = None;
            return;
        }
        self.signal(Signal::KILL);
        self.group = None;
        let until = tokio::time::Instant::now() + LAST_LOOK;
        while signal_marked(&self.marker, None, Signal::KILL) > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether all is over: the keeper of a sandbox ends after everything in it.
    async fn end_inside(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let until = tokio::time::Instant::now() + LAST_LOOK;
        loop {
            processes::kill_inside(leader);
            if !processes::is_running(leader) {
                return true;
            }
            if tokio::time::Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An empty group is what we want.
            let _gone = kill_process_group(group, signal);
        }
        signal_marked(&self.marker, self.group, signal);
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.signal(Signal::KILL);
        }
    }
}

/// Kills what a run left behind, by the marker that it was given, and says how many processes there were. For a
/// factory that comes back after a crash, before it touches the run's work tree. Call again until it says 0.
pub fn kill_run(marker: &str) -> usize {
    signal_marked(marker, None, Signal::KILL)
}

/// Members of `but_not` have the signal already: some programs take a second one for impatience.
#[cfg(target_os = "linux")]
fn signal_marked(marker: &str, but_not: Option<Pid>, signal: Signal) -> usize {
    use rustix::process::{PidfdFlags, getpgid, pidfd_open, pidfd_send_signal};

    let entry = format!("{RUN_MARKER}={marker}");
    let carries_marker = |id: i32| {
        std::fs::read(format!("/proc/{id}/environ")).is_ok_and(|environment| {
            environment.split(|byte| *byte == 0).any(|pair| pair == entry.as_bytes())
        })
    };
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let ourselves = std::process::id().cast_signed();
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| *id != ourselves && carries_marker(*id))
        .filter(|id| {
            // The number may have been given to another process by now; the descriptor cannot be, so look again.
            let Some(pid) = Pid::from_raw(*id) else { return false };
            if but_not.is_some() && getpgid(Some(pid)).ok() == but_not {
                return false;
            }
            let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
            carries_marker(*id) && pidfd_send_signal(descriptor, signal).is_ok()
        })
        .count()
}

/// Elsewhere only the process group holds a run together.
#[cfg(not(target_os = "linux"))]
fn signal_marked(_marker: &str, _but_not: Option<Pid>, _signal: Signal) -> usize {
    0
}
