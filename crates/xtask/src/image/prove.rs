//! Runs both images with podman as a cluster would: as their own user, with a read-only root, without capabilities or new
//! privileges, and with one volume each. The factory does a job to its end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use super::{USER, Wanted, home, make};
use crate::setup;

const JOB: &str = "---\nname: try\nengine: shell\n\
                   script: echo user $(id -u), $(git --version), $(bwrap --version), $(which awk)\n\
                   capabilities: [has:git]\nship: auto\n---\nA job in the image.\n";

/// With storage of its own below target/, which a run leaves empty.
struct Podman {
    storage: PathBuf,
    /// podman wants it short.
    running: PathBuf,
}

/// A container in the foreground; it is stopped, if it still runs, when this goes.
struct Container<'a> {
    podman: &'a Podman,
    name: &'static str,
    child: Child,
}

pub(super) fn run(binary: &Path, packages: &[String]) -> Result<()> {
    setup::podman()?;
    let podman = Podman {
        storage: std::path::absolute(home().join("podman"))?,
        running: std::env::temp_dir().join("giga-try"),
    };
    let result = try_both(&podman, binary, packages);
    podman.clear()?;
    result
}

fn try_both(podman: &Podman, binary: &Path, packages: &[String]) -> Result<()> {
    let mut images = Vec::new();
    for factory in [false, true] {
        let name = if factory { "factory" } else { "coordinator" };
        let out = home().join(format!("gigafactory-{name}.tar"));
        let packages = if factory { packages.to_vec() } else { Vec::new() };
        let size = make(&Wanted { factory, packages, ..Wanted::default() }, binary, &out)?;
        eprintln!("{}: {} MiB", out.canonicalize()?.display(), size.div_ceil(1 << 20));
        images.push(podman.load(&out)?);
    }
    let (coordinator, ready) =
        podman.start("giga-try-coordinator", &images[0], &["GIGA_LISTEN=127.0.0.1:0"])?;
    let url = ready.strip_prefix("ready ").context("it says where it is")?;
    let answer = get(url, "/readyz")?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "/readyz says {answer}");
    eprintln!("the coordinator is ready at {url}, with a read-only root, as user {USER}");

    let token = coordinator.giga(&["factory", "enroll", "try-1"], "")?;
    let token = token.lines().find(|line| line.starts_with("giga_")).context("a token is printed")?;
    let environment = [
        format!("GIGA_URL={url}"),
        format!("GIGA_TOKEN={token}"),
        "GIGA_FACTORY=try-1".to_owned(),
        "GIGA_SANDBOX=require".to_owned(),
    ];
    let environment: Vec<&str> = environment.iter().map(String::as_str).collect();
    let (factory, ready) = podman.start("giga-try-factory", &images[1], &environment)?;
    eprintln!("{ready}");
    coordinator.giga(&["job", "submit", "-"], JOB)?;
    coordinator.giga(&["job", "wait", "try", "--timeout", "2m"], "")?;
    let log = coordinator.giga(&["job", "logs", "try"], "")?;
    let said = log.lines().find(|line| line.contains(&format!("user {USER}")));
    eprintln!("the job ran to its end: {}", said.with_context(|| format!("the log is {log}"))?.trim());
    factory.stop()?;
    coordinator.stop()?;
    eprintln!("both ended with 0 on SIGTERM");
    Ok(())
}

impl Podman {
    fn command(&self) -> Command {
        let mut podman = if is_hybrid() {
            let mut alone = Command::new("unshare");
            alone.args([
                "--mount",
                "sh",
                "-c",
                "umount /sys/fs/cgroup/unified && exec podman \"$@\"",
                "podman",
            ]);
            alone
        } else {
            Command::new("podman")
        };
        podman.arg("--root").arg(&self.storage).arg("--runroot").arg(&self.running);
        // Needs no file system that can be stacked.
        podman.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]);
        podman
    }

    fn output(command: &mut Command) -> Result<String> {
        let output = command.output().context("podman could not be started")?;
        if !output.status.success() {
            bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn load(&self, file: &Path) -> Result<String> {
        let said = Self::output(self.command().arg("load").arg("-i").arg(file))?;
        let name =
            said.lines().find_map(|line| line.split_once(": ")).context("podman says what it loaded")?.1;
        Ok(name.trim().to_owned())
    }

    fn start(
        &self,
        name: &'static str,
        image: &str,
        environment: &[&str],
    ) -> Result<(Container<'_>, String)> {
        let mut run = self.command();
        // With a pipe for its input: else crun, run by root, gives /dev/null of this machine to the container's user.
        run.args(["run", "--rm", "-i", "--name", name, "--read-only", "--cap-drop=all", "--network=host"]);
        run.args(["--security-opt=no-new-privileges", "--cgroups=disabled"]);
        // Else it asks for more than a machine may give it.
        run.args(["--ulimit=nofile=16384:16384", "--ulimit=nproc=8192:8192"]);
        // A sandbox in a container needs a /proc of its own, and the kernel gives none where parts of it are hidden.
        run.args(["--security-opt=unmask=ALL", "-v"]);
        run.arg(format!("{name}:/var/lib/giga"));
        for line in environment {
            run.args(["-e", line]);
        }
        let child = run.arg(image).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut container =
            Container { podman: self, name, child: child.context("podman could not be started")? };
        let stdout = container.child.stdout.take().context("its output is a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        match lines.find(|line| line.as_ref().map_or(true, |line| line.starts_with("ready "))) {
            Some(line) => Ok((container, line?)),
            None => bail!("{name} ended before it was ready"),
        }
    }

    fn clear(&self) -> Result<()> {
        Self::output(self.command().args(["system", "reset", "--force"]))?;
        if self.running.exists() {
            std::fs::remove_dir_all(&self.running)?;
        }
        Ok(())
    }
}

impl Container<'_> {
    fn giga(&self, words: &[&str], input: &str) -> Result<String> {
        let mut exec = self.podman.command();
        exec.args(["exec", "-i", self.name, "/usr/bin/giga"]).args(words);
        let mut child = exec.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        child.stdin.take().context("its input is a pipe")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("giga {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn stop(mut self) -> Result<()> {
        Podman::output(self.podman.command().args(["kill", "--signal", "TERM", self.name]))?;
        let status = self.child.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(Podman::output(self.podman.command().args(["rm", "--force", self.name])));
            drop(self.child.wait());
        }
    }
}

/// Both versions of control groups at once, with which crun does not start, not even where it is to make none.
fn is_hybrid() -> bool {
    setup::is_root() && Path::new("/sys/fs/cgroup/unified/cgroup.procs").exists()
}

fn get(url: &str, path: &str) -> Result<String> {
    let host = url.strip_prefix("http://").context("it speaks plain HTTP")?.trim_end_matches('/');
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
