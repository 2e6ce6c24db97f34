//! The units, by systemd's own word. They name a program that this machine does not have; another stands for it.

use std::path::Path;
use std::process::Command;

use crate::{fed, root};

const PROGRAM: &str = "/usr/local/bin/giga";

/// As they would be installed: the template with an instance's name.
fn put(folder: &Path, change: impl Fn(String) -> String) {
    for (unit, name) in [
        ("giga-coordinator.service", "giga-coordinator.service"),
        ("giga-factory@.service", "giga-factory@linux-1.service"),
    ] {
        let text = std::fs::read_to_string(root().join("deploy/systemd").join(unit)).unwrap();
        assert!(text.contains(PROGRAM));
        std::fs::write(folder.join(name), change(text.replace(PROGRAM, "/bin/true"))).unwrap();
    }
}

fn verify(folder: &Path, unit: &str) -> String {
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(folder.join(unit)).output();
    let output = output.expect("`cargo xtask setup` installs systemd's tools");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // It reads what this machine has installed as well, and may complain about that.
    let ours = said.lines().filter(|line| line.contains("giga") || line.contains("deploy"));
    let ours: Vec<&str> = ours.collect();
    assert!(output.status.success() || !ours.is_empty(), "{said}");
    ours.join("\n")
}

#[test]
#[cfg(target_os = "linux")]
fn systemd_finds_nothing_wrong_with_the_units() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), |text| text);
    assert_eq!(verify(folder.path(), "giga-coordinator.service"), "");
    assert_eq!(verify(folder.path(), "giga-factory@linux-1.service"), "");
}

#[test]
#[cfg(target_os = "linux")]
fn systemd_would_say_so() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), |text| text.replace("ProtectHome=", "ProtectHouse="));
    assert!(verify(folder.path(), "giga-coordinator.service").contains("ProtectHouse"));
}

/// systemd's own score, from 0 (closed) to 10, times ten.
#[test]
#[cfg(target_os = "linux")]
fn the_coordinator_has_few_rights() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), |text| text);
    let judge = |unit: &str, threshold: &str| {
        let mut judge = Command::new("systemd-analyze");
        judge.args(["security", "--offline=true", "--no-pager", "--threshold", threshold]);
        judge.arg(folder.path().join(unit)).output().unwrap().status.success()
    };
    assert!(judge("giga-coordinator.service", "25"));
    assert!(judge("giga-factory@linux-1.service", "60"), "a factory needs namespaces for its sandbox");
    assert!(!judge("giga-factory@linux-1.service", "10"), "the judge has a limit");
}

/// What the sandbox of jobs needs, and what a stop must not do.
#[test]
fn a_factory_can_make_its_sandbox_and_is_given_time_to_save_its_work() {
    let text = std::fs::read_to_string(root().join("deploy/systemd/giga-factory@.service")).unwrap();
    let has = |line: &str| text.lines().any(|it| it == line);
    assert!(has("Delegate=yes") && has("KillMode=mixed") && has("TimeoutStopSec=10min"));
    for breaks in [
        "RestrictNamespaces",
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectProc",
        "ProcSubset",
        "ProtectControlGroups",
    ] {
        assert!(
            !text.lines().any(|line| line.starts_with(breaks)),
            "{breaks} takes bubblewrap its /proc or its namespaces"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_users_are_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("etc")).unwrap();
    let users = std::fs::read_to_string(root().join("deploy/systemd/giga.sysusers.conf")).unwrap();
    let mut sysusers = Command::new("systemd-sysusers");
    let output = fed(sysusers.arg("--root").arg(folder.path()).arg("-"), &users);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let passwd = std::fs::read_to_string(folder.path().join("etc/passwd")).unwrap();
    for user in ["giga:", "giga-factory:"] {
        assert!(passwd.lines().any(|line| line.starts_with(user) && line.ends_with("nologin")), "{passwd}");
    }
}
