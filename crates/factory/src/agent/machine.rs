//! What this machine has, engines and repositories aside, and how busy it is, whatever keeps it busy. Seats in use are counted
//! apart from it.

use std::num::NonZero;

use giga_domain::CapabilitySet;
use parking_lot::Mutex;

use super::detect;
use crate::sandbox::Sandbox;

/// Tools come and go while an agent runs, so what is detected is looked at again now and then. What its operator declared
/// stays as it is.
pub(super) struct Machine {
    sandbox: Sandbox,
    declared: CapabilitySet,
    detected: Mutex<CapabilitySet>,
}

impl Machine {
    pub(super) async fn detect(sandbox: Sandbox, declared: CapabilitySet) -> Self {
        let detected = Mutex::new(found_in(&sandbox).await);
        Self { sandbox, declared, detected }
    }

    pub(super) fn capabilities(&self) -> CapabilitySet {
        self.detected.lock().clone().union(&self.declared)
    }

    pub(super) fn is_sandboxed(&self) -> bool {
        self.sandbox.missing().is_none()
    }

    /// Answers whether something changed, and says in the log what.
    pub(super) async fn look_again(&self) -> bool {
        let found = found_in(&self.sandbox).await;
        let before = std::mem::replace(&mut *self.detected.lock(), found.clone());
        let names = |of: &CapabilitySet, than: &CapabilitySet| {
            of.missing_from(than).map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (new, gone) = (names(&found, &before), names(&before, &found));
        if found != before {
            tracing::info!(new, gone, "the machine's tools have changed");
        }
        found != before
    }
}

async fn found_in(sandbox: &Sandbox) -> CapabilitySet {
    let mut found = detect::machine(sandbox).await;
    found.insert(sandbox.capability());
    found.extend(sandbox.network_capabilities());
    found
}

/// 0 for idle, 1 where every core has something to do or all memory is in use; nothing where the system does not say.
pub(super) fn load() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let cpu = std::fs::read_to_string("/proc/loadavg").ok().and_then(|text| processes_per_core(&text, cores));
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_in_use(&text));
    cpu.unwrap_or(0.0).max(memory.unwrap_or(0.0))
}

/// Of the last minute.
fn processes_per_core(loadavg: &str, cores: usize) -> Option<f64> {
    let running: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
    Some(running / cores as f64).filter(|load| load.is_finite() && *load >= 0.0)
}

/// What cannot be had without swapping.
fn memory_in_use(meminfo: &str) -> Option<f64> {
    let kib = |name: &str| {
        let line = meminfo.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    let (all, free) = (kib("MemTotal:")?, kib("MemAvailable:")?);
    (all > 0.0).then(|| (1.0 - free / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_memory() {
        assert_eq!(processes_per_core("6.00 2.10 1.00 3/800 4711\n", 4), Some(1.5));
        assert_eq!(processes_per_core("", 4), None);
        let meminfo = "MemTotal:       8000 kB\nMemFree:         500 kB\nMemAvailable:    2000 kB\n";
        assert_eq!(memory_in_use(meminfo), Some(0.75));
        assert_eq!(memory_in_use("MemTotal: 8000 kB\n"), None);
        assert!(load().is_finite());
    }
}
