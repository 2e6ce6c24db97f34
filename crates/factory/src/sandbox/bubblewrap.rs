//! Bubblewrap's command line for one process.
//!
//! The order of the mounts matters: what comes later covers what came before. The agent's own folders are covered after
//! everything that an operator may grant, and the job's own places come last.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::cgroup::Cgroups;
use super::config::SandboxConfig;
use super::network::{NetworkMode, Proxy, Rules};
use super::view::{Enclosed, Guard, View};
use super::watch::Watch;
use super::{home, init, system};
use crate::engines::HostEnvironment;

/// Private file systems in memory, and how large each may grow.
const IN_MEMORY: [(&str, &str, u64); 3] =
    [("/tmp", "1777", 2 << 30), ("/run", "0755", 16 << 20), ("/dev/shm", "1777", 256 << 20)];

/// Where the program that becomes process 1 is, inside.
const INIT: &str = "/run/giga/init";
/// Where the proxy's socket is, inside.
const PROXY: &str = "/run/giga/proxy";

/// Variables with a path that is only there where somebody granted it.
const PATHS_OF_TOOLS: [&str; 4] = ["CARGO_HOME", "RUSTUP_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// One that was seen working.
#[derive(Debug)]
pub(super) struct Bubblewrap {
    pub(super) program: PathBuf,
    pub(super) version: String,
    pub(super) config: SandboxConfig,
    pub(super) host: HostEnvironment,
    /// Where one is delegated to this process.
    pub(super) groups: Option<Cgroups>,
}

impl Bubblewrap {
    pub(super) fn describe(&self) -> String {
        let network = self.config.network.mode;
        let groups = if self.groups.is_some() { "; a control group per run" } else { "" };
        format!("bubblewrap {}; network {network}; {}{groups}", self.version, self.config.limits)
    }

    pub(super) fn shows(&self, program: &Path) -> bool {
        system::shows(program) || self.grants(program)
    }

    fn grants(&self, path: &Path) -> bool {
        let is_hidden = self.config.hide.iter().any(|hidden| path.starts_with(hidden));
        !is_hidden
            && self.config.read.iter().chain(&self.config.write).any(|granted| path.starts_with(granted))
    }

    pub(super) fn command(&self, inside: Enclosed) -> io::Result<(Command, Guard)> {
        let Enclosed { program, args, env, dir, view } = inside;
        let home = home::create(&view.home)?;
        let kept = home::fill(&home, view.home_files, &view.home_folders, view.kept.as_deref(), &self.host)?;
        home::add_settings(&home, view.settings.as_ref())?;
        home::put_secrets(&home, &view.secrets)?;
        let wiped = (!view.secrets.is_empty()).then(|| home.clone());
        let proxy = self.proxy(&view)?;
        let program = Program::find(&program, |path| self.shows(path), &self.config.hide)?;

        let mut mounts = Mounts::default();
        mounts.words(namespaces());
        if proxy.is_some() {
            mounts.words(["--unshare-net"]);
        }
        mounts.args.extend(system::mounts());
        mounts.words(["--proc", "/proc", "--dev", "/dev", "--symlink", "/tmp", "/var/tmp"]);
        for (path, mode, bytes) in IN_MEMORY {
            mounts.words(["--perms", mode, "--size", &bytes.to_string(), "--tmpfs", path]);
        }
        self.grant(&mut mounts);
        for path in &program.shown {
            mounts.bind("--ro-bind", path, path);
        }
        for path in &view.read {
            mounts.bind("--ro-bind", path, path);
        }
        mounts.bind("--bind", &dir, &dir);
        for path in &view.covered {
            mounts.bind_nothing(path);
        }
        mounts.bind("--bind", &home, &home);
        for (store, seen) in &kept {
            mounts.bind("--bind", store, seen);
        }
        self.grant_in_home(&mut mounts, &home);
        mounts.bind("--ro-bind", &self.config.init.program, Path::new(INIT));
        if let Some(proxy) = &proxy {
            mounts.bind("--bind", proxy.socket(), Path::new(PROXY));
        }
        mounts.words(["--remount-ro", "/dev", "--remount-ro", "/", "--chdir"]);
        mounts.args.push(dir.clone().into());
        mounts.words(["--", INIT]);
        mounts.args.extend(self.config.init.args.iter().cloned());
        mounts.args.extend(init::arguments(&self.config.limits, proxy.as_ref().map(|_| PROXY)));
        mounts.args.push(program.path.into());
        mounts.args.extend(args);

        let besides = IN_MEMORY.iter().map(|(_, _, bytes)| bytes).sum();
        let group =
            self.groups.as_ref().map(|groups| groups.run(&self.config.limits, besides)).transpose()?;
        let (program, before) = match &group {
            Some(group) => group.joined(&self.program),
            None => (self.program.clone(), Vec::new()),
        };
        let mut command = Command::new(program);
        command
            .args(before)
            .args(mounts.args)
            .env_clear()
            .envs(self.environment(env, &home))
            .current_dir("/");
        let watch = Watch::new(self.config.limits, vec![dir, home]);
        Ok((command, Guard { watch, proxy, wiped, group }))
    }

    /// None where the network is open.
    fn proxy(&self, view: &View) -> io::Result<Option<Proxy>> {
        let network = &self.config.network;
        let mut hosts = view.hosts.clone();
        match network.mode {
            NetworkMode::Open => return Ok(None),
            NetworkMode::None => {}
            NetworkMode::List => hosts.extend(network.hosts.iter().cloned()),
        }
        Proxy::start(Rules::new(hosts, network.coordinator.as_deref())).map(Some)
    }

    /// What the operator grants, then what nobody may see of it.
    fn grant(&self, mounts: &mut Mounts) {
        for path in &self.config.read {
            mounts.bind("--ro-bind-try", path, path);
        }
        for path in &self.config.write {
            mounts.bind("--bind-try", path, path);
        }
        for hidden in &self.config.hide {
            let mut granted = self.config.read.iter().chain(&self.config.write);
            if hidden.is_dir() && granted.any(|path| hidden.starts_with(path)) {
                mounts.bind_nothing(hidden);
            }
        }
    }

    /// At its place below the private home, where programs look for it.
    fn grant_in_home(&self, mounts: &mut Mounts, home: &Path) {
        let Some(owner) = self.host.get("HOME").map(Path::new) else { return };
        for (option, paths) in [("--ro-bind-try", &self.config.read), ("--bind-try", &self.config.write)] {
            for path in paths {
                if let Ok(below) = path.strip_prefix(owner)
                    && below.components().next().is_some()
                    && !home.starts_with(path)
                {
                    mounts.bind(option, path, &home.join(below));
                }
            }
        }
    }

    fn environment(
        &self,
        mut env: BTreeMap<OsString, OsString>,
        home: &Path,
    ) -> BTreeMap<OsString, OsString> {
        env.retain(|name, value| {
            let is_lost = PATHS_OF_TOOLS.iter().any(|tool| name == tool)
                && !(system::shows(Path::new(value)) || self.grants(Path::new(value)));
            !home::is_place(name) && !is_lost
        });
        env.insert("HOME".into(), home.into());
        env.insert("TMPDIR".into(), "/tmp".into());
        env
    }
}

/// "Parent" is the thread that starts it, which must live as long as the run: a worker of the runtime, not one that is lent.
///
/// No process, user, queue, name or group of the machine is seen, nothing is inherited, nothing can be gained, and nothing
/// outlives the agent.
fn namespaces() -> [&'static str; 10] {
    [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        // `init` is, so that bubblewrap ends only when everything inside has.
        "--as-pid-1",
        "--cap-drop",
        "ALL",
    ]
}

#[derive(Default)]
struct Mounts {
    args: Vec<OsString>,
}

impl Mounts {
    fn words<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        self.args.extend(words.into_iter().map(OsString::from));
    }

    fn bind(&mut self, option: &str, from: &Path, to: &Path) {
        self.args.extend([option.into(), from.into(), to.into()]);
    }

    /// An empty folder in its place.
    fn bind_nothing(&mut self, over: &Path) {
        self.args.extend(["--tmpfs".into(), over.into()]);
    }
}

/// A program, and what has to be shown for it to run.
struct Program {
    path: PathBuf,
    shown: Vec<PathBuf>,
}

impl Program {
    /// One that is not in the system is called by its real name, and its folder is shown; for a package of npm's all packages
    /// that lie with it, and the node beside them.
    fn find(program: &Path, shows: impl Fn(&Path) -> bool, hidden: &[PathBuf]) -> io::Result<Self> {
        let program = std::path::absolute(program)?;
        if shows(&program) {
            return Ok(Self { path: program, shown: Vec::new() });
        }
        let real = program.canonicalize()?;
        if shows(&real) {
            return Ok(Self { path: real, shown: Vec::new() });
        }
        let near = |folder: &Path| {
            hidden.iter().any(|hidden| hidden.starts_with(folder) || folder.starts_with(hidden))
        };
        let modules = real.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
        let mut shown = match (modules, real.parent()) {
            (Some(modules), _) => vec![modules.to_owned()],
            // One right in a home, at the root, or beside what is hidden, is shown alone.
            (None, Some(folder)) if folder.components().count() > 3 && !near(folder) => {
                vec![folder.to_owned()]
            }
            _ => vec![real.clone()],
        };
        let prefix = modules.and_then(Path::parent).and_then(Path::parent);
        shown.extend(
            prefix.map(|prefix| prefix.join("bin/node")).filter(|node| node.is_file() && !shows(node)),
        );
        Ok(Self { path: real, shown })
    }
}

impl View {
    /// For a process of the agent's own, in a folder of its own.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { home: folder.join("home"), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &Path, path: &str) -> PathBuf {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        path
    }

    fn found(path: &Path, hidden: &[PathBuf]) -> (PathBuf, Vec<PathBuf>) {
        let Program { path, shown } = Program::find(path, system::shows, hidden).unwrap();
        (path, shown)
    }

    #[test]
    fn a_program_of_the_system_needs_nothing() {
        let (path, shown) = found(Path::new("/usr/bin/env"), &[]);
        assert_eq!((path.as_path(), shown), (Path::new("/usr/bin/env"), Vec::new()));
    }

    #[test]
    fn a_package_comes_with_those_beside_it_and_its_node() {
        let prefix = tempfile::tempdir().unwrap();
        let prefix = prefix.path().canonicalize().unwrap();
        let real = program(&prefix, "lib/node_modules/@vendor/tool/cli.js");
        let node = program(&prefix, "bin/node");
        program(&prefix, "share/keys/secret");
        let link = prefix.join("bin/tool");
        std::os::unix::fs::symlink("../lib/node_modules/@vendor/tool/cli.js", &link).unwrap();
        assert_eq!(found(&link, &[]), (real, vec![prefix.join("lib/node_modules"), node]));
    }

    #[test]
    fn a_program_beside_the_agents_own_files_is_shown_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let engine = program(&folder, "data/engines/run");
        let hidden = [folder.join("data")];
        assert_eq!(found(&engine, &hidden), (engine.clone(), vec![engine.clone()]));
        assert_eq!(found(&engine, &[]), (engine, vec![folder.join("data/engines")]));
    }
}
