//! The agent under attack: this test binary, run again, with an operator's home beside it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use giga_factory::agent;
use giga_factory::sandbox::{
    InitProgram, Limits, NetworkConfig, SandboxConfig, SandboxMode, harden_this_process,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::world::{World, sandbox};

const SETTINGS: &str = "ESCAPE_TEST_SETTINGS";
pub(super) const FACTORY: &str = "a";
pub(super) const SECRET: &str = "the-secret-of-the-operator";

/// Does nothing when it runs as a test among others.
#[tokio::test(flavor = "multi_thread")]
async fn runs_as_a_child() {
    let Ok(settings) = std::env::var(SETTINGS) else { return };
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let text = |name: &str| settings[name].as_str().unwrap();
    let mode: SandboxMode = text("mode").parse().unwrap();
    if mode != SandboxMode::Off || settings["more"]["harden"] == true {
        harden_this_process().unwrap();
    }
    let world = PathBuf::from(text("world"));
    let token = std::env::var("GIGA_TOKEN").unwrap();
    let mut config = World::config_in(&world, text("url"), &token, FACTORY);
    let more = &settings["more"];
    let limit = |name: &str| more[name].as_u64();
    let hosts = more["hosts"].as_array().into_iter().flatten();
    config.sandbox = SandboxConfig {
        mode,
        init: InitProgram { program: text("init").into(), args: Vec::new() },
        limits: Limits {
            memory_bytes: limit("memory"),
            processes: limit("processes"),
            open_files: limit("files"),
            file_bytes: limit("file"),
            disk_bytes: limit("disk"),
        },
        network: NetworkConfig {
            mode: more["network"].as_str().unwrap_or("open").parse().unwrap(),
            hosts: hosts.map(|host| host.as_str().unwrap().parse().unwrap()).collect(),
            coordinator: None,
        },
        ..sandbox()
    };
    agent::run(config, CancellationToken::new()).await.unwrap();
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    This,
    /// One that may do nothing but what everybody may.
    Nobody,
}

impl User {
    /// Root is nobody else's to become.
    pub(super) fn all() -> &'static [Self] {
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0";
        let can_change = Command::new("runuser").args(["-u", "nobody", "--", "true"]).status();
        if is_root && can_change.is_ok_and(|status| status.success()) {
            &[Self::This, Self::Nobody]
        } else {
            &[Self::This]
        }
    }
}

/// A running agent, ended when dropped.
pub(super) struct Victim {
    process: Child,
    user: User,
}

impl Victim {
    pub(super) fn start(world: &World, user: User, mode: SandboxMode, more: Value) -> Self {
        lay_out(world.path());
        let programs = world.path().join("programs");
        let settings = json!({
            "world": world.path(), "url": world.url, "mode": mode.to_string(), "more": more,
            "init": programs.join("init"),
        });
        let test = programs.join("test");
        let mut command = match user {
            User::This => Command::new(&test),
            User::Nobody => {
                let owned = Command::new("chown").args(["nobody"]).arg(world.base(FACTORY)).status().unwrap();
                assert!(owned.success());
                let mut command = Command::new("runuser");
                command.args(["-u", "nobody", "--"]).arg(&test);
                command
            }
        };
        let log = std::fs::File::create(world.path().join("agent.out")).unwrap();
        let process = command
            .args(["--exact", "escape::agent::runs_as_a_child", "--nocapture"])
            .env(SETTINGS, settings.to_string())
            .env("GIGA_TOKEN", &world.admin)
            .env("HOME", world.path().join("home"))
            .current_dir(world.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { process, user }
    }

    pub(super) fn kill9(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// The agent itself, which is a child of whatever changed the user.
    pub(super) fn pid(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.process.id());
        match self.user {
            User::This => self.process.id(),
            User::Nobody => {
                let list = std::fs::read_to_string(children).unwrap();
                list.split_whitespace().next().unwrap().parse().unwrap()
            }
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        // One that changed the user hands the signal on.
        let id = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.process.wait();
    }
}

/// What an operator has, readable for whoever runs the agent, as it would be on a machine of theirs.
fn lay_out(world: &Path) {
    let open = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    };
    for folder in ["home/.ssh", "programs", "other-job/tree", FACTORY] {
        std::fs::create_dir_all(world.join(folder)).unwrap();
    }
    for file in ["home/.ssh/id_ed25519", "admin.token", "other-job/tree/file"] {
        std::fs::write(world.join(file), SECRET).unwrap();
        open(&world.join(file));
    }
    for folder in ["", "home", "home/.ssh", "programs", "other-job", "other-job/tree"] {
        open(&world.join(folder));
    }
    let test = std::env::current_exe().unwrap();
    for (program, name) in [(test, "test"), (env!("CARGO_BIN_EXE_giga-sandbox-init").into(), "init")] {
        let to = world.join("programs").join(name);
        // Where the sources are may not be open to everybody.
        if std::fs::hard_link(&program, &to).is_err() {
            std::fs::copy(&program, &to).unwrap();
        }
    }
}
