//! Control groups (version 2): a group for each run, with the bounds that hold for all of its processes together, and one word
//! that ends them all.
//!
//! Only where the service manager has handed a group to this process (`Delegate=yes` of systemd): never in one that others are
//! in as well. Elsewhere the watch and the resource limits have to do.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::limits::{Limits, human};

const MOUNT: &str = "/sys/fs/cgroup";
/// Where the agent itself goes: a group with groups below it may hold no process.
const AGENT: &str = "giga-agent";
const RUN: &str = "giga-run-";
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// Joins the group that `$1` names, then becomes the rest. A process that joins by itself leaves no gap in which it could
/// start another outside.
const JOIN: &str = "echo 0 > \"$1\" || exit 126; shift; exec \"$@\"";

/// A group that is the agent's to divide.
#[derive(Debug)]
pub(super) struct Cgroups {
    root: PathBuf,
    next: AtomicU64,
}

impl Cgroups {
    /// `None` where nothing was delegated, or it cannot be used; the log says which.
    pub(super) fn of_this_process() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let root = Path::new(MOUNT).join(path_in(&own)?);
        if !is_delegated(&root) {
            return None;
        }
        match Self::take(root) {
            Ok(groups) => Some(groups),
            Err(error) => {
                tracing::warn!(%error, "the delegated control group cannot be used; jobs are bounded without it");
                None
            }
        }
    }

    /// Moves whoever is in the group, which is this process and what started it, one level down, and makes room for runs.
    fn take(root: PathBuf) -> io::Result<Self> {
        let offered = fs::read_to_string(root.join("cgroup.controllers"))?;
        if let Some(missing) =
            CONTROLLERS.iter().find(|name| !offered.split_whitespace().any(|word| word == **name))
        {
            return Err(io::Error::other(format!("it has no controller `{missing}`")));
        }
        let agent = root.join(AGENT);
        make(&agent)?;
        for process in fs::read_to_string(root.join("cgroup.procs"))?.lines() {
            // Somebody who has ended meanwhile needs no place.
            if let Err(error) = fs::write(agent.join("cgroup.procs"), process)
                && error.raw_os_error() != Some(rustix::io::Errno::SRCH.raw_os_error())
            {
                return Err(error);
            }
        }
        let wanted = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
        fs::write(root.join("cgroup.subtree_control"), wanted)?;
        let groups = Self { root, next: AtomicU64::new(0) };
        groups.sweep();
        Ok(groups)
    }

    /// A group for one run. `besides` is memory that does not count as the run's own: its file systems in memory.
    pub(super) fn run(&self, limits: &Limits, besides: u64) -> io::Result<RunGroup> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let group = RunGroup {
            path: self.root.join(format!("{RUN}{}-{number}", std::process::id())),
            limits: *limits,
        };
        make(&group.path)?;
        if let Some(bytes) = limits.memory_bytes {
            group.write("memory.max", &bytes.saturating_add(besides).to_string())?;
            // All of them, and not the one that happened to ask for the last page. Older kernels lack these.
            let _ = group.write("memory.oom.group", "1");
            let _ = group.write("memory.swap.max", "0");
        }
        if let Some(count) = limits.processes {
            group.write("pids.max", &count.to_string())?;
        }
        Ok(group)
    }

    /// Ends and removes what an agent before this one left.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(RUN) {
                drop(RunGroup { path: entry.path(), limits: Limits::NONE });
            }
        }
    }
}

/// The group of one run. Dropping it ends whatever is in it.
#[derive(Debug)]
pub(crate) struct RunGroup {
    path: PathBuf,
    limits: Limits,
}

impl RunGroup {
    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.path.join(file), text)
    }

    /// The words that start a program in this group: a program, and what comes before the other's own words.
    pub(super) fn joined(&self, program: &Path) -> (PathBuf, Vec<OsString>) {
        let procs = self.path.join("cgroup.procs");
        let words = ["-c".into(), JOIN.into(), "giga-join".into(), procs.into(), program.into()];
        ("/bin/sh".into(), words.into())
    }

    /// In words, where the kernel ended the run for its memory.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        let events = fs::read_to_string(self.path.join("memory.events")).ok()?;
        let killed = events
            .lines()
            .filter_map(|line| line.split_once(' '))
            .any(|(name, count)| matches!(name, "oom_kill" | "oom_group_kill") && count.trim() != "0");
        let limit = self.limits.memory_bytes.filter(|_| killed)?;
        Some(format!("the run used more than {} of memory", human(limit)))
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        // Nobody in it, or a kernel before 5.14, where the pid namespace has ended everybody.
        let _ = self.write("cgroup.kill", "1");
        // One whose processes are not gone yet is removed when an agent starts.
        let _ = fs::remove_dir(&self.path);
    }
}

fn make(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Of `/proc/self/cgroup`: the group of version 2, without its first slash.
fn path_in(own: &str) -> Option<&str> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The root is everybody's.
    (!path.is_empty()).then_some(path)
}

/// As systemd marks what it has handed over.
#[cfg(target_os = "linux")]
fn is_delegated(group: &Path) -> bool {
    let mut mark = [0_u8; 8];
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        rustix::fs::getxattr(group, *name, &mut mark).is_ok_and(|length| mark.get(..length) == Some(b"1"))
    })
}

#[cfg(not(target_os = "linux"))]
fn is_delegated(_group: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a delegated group with this process in it.
    fn looks_like_a_group(controllers: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(folder.path().join("cgroup.procs"), "41\n42\n").unwrap();
        fs::write(folder.path().join("cgroup.subtree_control"), "").unwrap();
        folder
    }

    fn read(path: PathBuf) -> String {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn the_agent_makes_room_and_each_run_has_a_group_with_its_bounds() {
        let folder = looks_like_a_group("cpu memory pids\n");
        let groups = Cgroups::take(folder.path().to_owned()).unwrap();
        assert_eq!(read(folder.path().join("cgroup.subtree_control")), "+memory +pids");
        // A plain file keeps the last word; the kernel takes each as a move.
        assert_eq!(read(folder.path().join("giga-agent/cgroup.procs")), "42");

        let limits = Limits { memory_bytes: Some(1000), processes: Some(7), ..Limits::NONE };
        let (one, two) = (groups.run(&limits, 24).unwrap(), groups.run(&Limits::NONE, 24).unwrap());
        assert_ne!(one.path, two.path);
        assert_eq!(read(one.path.join("memory.max")), "1024");
        assert_eq!(read(one.path.join("memory.oom.group")), "1");
        assert_eq!(read(one.path.join("pids.max")), "7");
        assert!(!two.path.join("memory.max").exists() && !two.path.join("pids.max").exists());

        assert_eq!(one.out_of_memory(), None);
        fs::write(one.path.join("memory.events"), "low 0\noom 1\noom_kill 0\n").unwrap();
        assert_eq!(one.out_of_memory(), None);
        fs::write(one.path.join("memory.events"), "oom 1\noom_kill 2\n").unwrap();
        assert_eq!(one.out_of_memory().as_deref(), Some("the run used more than 1000 B of memory"));

        let path = one.path.clone();
        drop(one);
        assert_eq!(read(path.join("cgroup.kill")), "1");
    }

    #[test]
    fn what_an_agent_left_is_ended_when_the_next_one_starts() {
        let folder = looks_like_a_group("memory pids");
        let left = folder.path().join("giga-run-1-0");
        fs::create_dir(&left).unwrap();
        fs::create_dir(folder.path().join("of-somebody-else")).unwrap();
        Cgroups::take(folder.path().to_owned()).unwrap();
        assert_eq!(read(left.join("cgroup.kill")), "1");
        assert!(!folder.path().join("of-somebody-else/cgroup.kill").exists());
    }

    #[test]
    fn a_group_without_what_is_needed_is_refused() {
        let error = Cgroups::take(looks_like_a_group("cpu pids").path().to_owned()).unwrap_err();
        assert!(error.to_string().contains("`memory`"), "{error}");
    }

    /// The process is in the group before it is the program.
    #[test]
    fn a_program_joins_by_itself() {
        let folder = looks_like_a_group("memory pids");
        let groups = Cgroups::take(folder.path().to_owned()).unwrap();
        let group = groups.run(&Limits::NONE, 0).unwrap();
        let (program, words) = group.joined(Path::new("/bin/echo"));
        let output = std::process::Command::new(&program).args(words).args(["a b", "$c"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a b $c\n");
        assert_eq!(read(group.path.join("cgroup.procs")), "0\n");
        fs::remove_file(group.path.join("cgroup.procs")).unwrap();
        fs::create_dir(group.path.join("cgroup.procs")).unwrap();
        let (program, words) = group.joined(Path::new("/bin/echo"));
        let refused = std::process::Command::new(program).args(words).output().unwrap();
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(126), 0), "it does not run outside");
    }

    #[test]
    fn the_group_of_version_2_is_found() {
        assert_eq!(path_in("0::/system.slice/giga.service\n"), Some("system.slice/giga.service"));
        assert_eq!(path_in("12:memory:/a\n0::/b/c\n"), Some("b/c"));
        assert_eq!(path_in("0::/\n"), None);
        assert_eq!(path_in("4:memory:/a\n"), None);
    }

    /// On a machine that has one, the real thing: bounds hold and the word ends everything. It says where it was not tried.
    #[test]
    fn on_a_machine_with_a_delegated_group_it_works() {
        let Some(groups) = Cgroups::of_this_process() else {
            eprintln!(
                "NOT TRIED: no control group of version 2 is delegated to this process; jobs fall back to the watch"
            );
            return;
        };
        let group = groups.run(&Limits { processes: Some(4), ..Limits::NONE }, 0).unwrap();
        let (program, words) = group.joined(Path::new("/bin/sleep"));
        let mut child = std::process::Command::new(program).args(words).arg("1000").spawn().unwrap();
        while read(group.path.join("cgroup.procs")).trim().is_empty() {
            std::thread::yield_now();
        }
        drop(group);
        assert!(!child.wait().unwrap().success(), "ended by the kernel");
    }
}
