//! `giga top` on a real terminal: under tmux, with keys as a person would type them, against a real coordinator.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{Holder, Home, Server, giga, manifest};

/// A screen that does not come within this time will not come any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// A shell in a terminal of its own, 80×24, on a server that nobody else knows.
struct Terminal {
    socket: PathBuf,
    /// Tells of every output; that is what is waited for.
    watcher: Child,
    news: Receiver<()>,
    /// How often it was asked whether the terminal is as it was.
    checks: Cell<u32>,
}

impl Terminal {
    fn open(home: &Home) -> Self {
        Self::with(home, &["env PS1='$ ' sh"])
    }

    /// More than one word is run as it is, without a shell.
    fn with(home: &Home, command: &[&str]) -> Self {
        let socket = home.path().join("tmux.socket");
        let mut start = tmux(&socket, home);
        start.args(["new-session", "-d", "-x", "80", "-y", "24"]).args(command);
        let started = start.output().expect("tmux is installed: cargo xtask setup");
        assert!(started.status.success(), "{started:?}");
        let mut watcher = tmux(&socket, home)
            .args(["-C", "attach-session"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(watcher.stdout.take().unwrap());
        let (tell, news) = channel();
        std::thread::spawn(move || {
            for line in lines.split(b'\n') {
                if line.is_err() || tell.send(()).is_err() {
                    break;
                }
            }
        });
        Self { socket, watcher, news, checks: Cell::new(0) }
    }

    fn ask(&self, args: &[&str]) -> String {
        let answer = Command::new("tmux").arg("-S").arg(&self.socket).args(args).output().unwrap();
        assert!(answer.status.success(), "tmux {args:?}: {answer:?}");
        String::from_utf8_lossy(&answer.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    /// Letters, as they are.
    fn write(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
    }

    /// A key by its name, such as `Enter`.
    fn press(&self, key: &str) {
        self.ask(&["send-keys", key]);
    }

    /// Looks again whenever something was put out, until it is as wanted.
    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while self.news.try_recv().is_ok() {}
            let screen = self.screen();
            if holds(&screen) {
                return screen;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let heard = self.news.recv_timeout(left);
            assert!(heard.is_ok(), "waited for {what}; the last screen:\n{}", self.screen());
        }
    }

    #[track_caller]
    fn sees(&self, text: &str) -> String {
        self.until(&format!("`{text}`"), |screen| screen.contains(text))
    }

    fn run_top(&self, home: &Home, before: &str) {
        let program = env!("CARGO_BIN_EXE_giga");
        let pid = home.path().join("top.pid");
        self.write(&format!("{before} sh -c 'echo $$ > {}; exec {program} top'", pid.display()));
        self.press("Enter");
    }

    /// The screen from before, a cursor, and a line that shows what is typed.
    #[track_caller]
    fn is_given_back(&self) {
        self.until("the screen from before", |screen| {
            let state = self.ask(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
            state.trim() == "0 1" && screen.trim_end().ends_with('$')
        });
        // A word of its own each time, which is not in what is typed: nothing that stands there already is taken for it.
        self.checks.set(self.checks.get() + 1);
        let word = format!("so-{}", 1_000 + self.checks.get());
        self.write(&format!("clear; stty -a; echo so-$((1000+{}))", self.checks.get()));
        self.press("Enter");
        let screen = self.until(&word, |screen| screen.contains(&word) && screen.trim_end().ends_with('$'));
        for setting in ["icanon", "echo", "isig", "opost"] {
            assert!(screen.split_whitespace().any(|word| word == setting), "{setting}:\n{screen}");
        }
        self.write("visible");
        self.sees("$ visible");
        self.press("C-u");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
        let _ = self.watcher.kill();
        let _ = self.watcher.wait();
    }
}

fn tmux(socket: &PathBuf, home: &Home) -> Command {
    let mut command = Command::new("tmux");
    command.env_clear().env("HOME", home.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("LC_ALL", "C.UTF-8");
    command.current_dir(home.path()).args(["-u", "-f", "/dev/null"]).arg("-S").arg(socket);
    command
}

fn json(home: &Home, args: &[&str]) -> Value {
    let args = [args, &["-o", "json"]].concat();
    serde_json::from_str(&home.giga(&args).ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn filter_open_requeue_pause_quit() {
    let home = Home::new();
    let server = home.start();
    let mac = Holder::enroll(&home, &server, "mac-1", &["engine:shell"]).await;
    home.write("fix.md", manifest("fix-greeting", "engine: shell\nscript: 'true'\n"));
    home.write("night.md", manifest("nightly", "capabilities: [\"gpu:none\"]\n"));
    home.giga(&["job", "submit", "fix.md"]).ok();
    let (job, epoch) = mac.take("r1").await;
    mac.fail(&job, epoch, "verify_failed").await;
    home.giga(&["job", "submit", "night.md"]).ok();

    let terminal = Terminal::open(&home);
    terminal.run_top(&home, "");
    terminal.sees("● live");
    let screen = terminal.sees("0/4 seats");
    assert!(screen.contains("1 board"), "{screen}");

    // News come by themselves.
    home.write("late.md", manifest("came-later", "capabilities: [\"gpu:none\"]\n"));
    home.giga(&["job", "submit", "late.md"]).ok();
    terminal.sees("came-later");

    terminal.press("4");
    terminal.sees("stages: all");
    terminal.write("/fix");
    terminal.until("the filter", |screen| screen.contains("fix-greeting") && !screen.contains("nightly"));
    terminal.press("Enter");
    terminal.press("Enter");
    terminal.sees("verification failed");
    terminal.write("w");
    terminal.sees("Suggested fixes");
    terminal.write("r");
    terminal.sees("same as: giga job requeue fix-greeting");
    terminal.write("n");
    terminal.sees("nothing changed");
    assert_eq!(json(&home, &["job", "show", "fix-greeting"])["stage"], "failed");
    terminal.write("ry");
    terminal.sees("fix-greeting is queued");
    assert_eq!(json(&home, &["job", "show", "fix-greeting"])["stage"], "queued");

    terminal.write("5");
    terminal.sees("active, no limit");
    terminal.write("P");
    terminal.sees("pause demo? y to confirm");
    terminal.write("y");
    terminal.sees("PAUSED");
    assert_eq!(json(&home, &["budget", "show", "demo"])["paused"]["cause"], "operator");
    terminal.write("R");
    terminal.sees("demo is resumed");
    assert_eq!(json(&home, &["budget", "show", "demo"]).get("paused"), None);

    terminal.write("q");
    terminal.is_given_back();
}

#[test]
fn the_terminal_is_given_back_after_a_signal() {
    let home = Home::new();
    let _server = home.start();
    let terminal = Terminal::open(&home);
    for signal in ["TERM", "HUP", "INT"] {
        terminal.run_top(&home, "clear;");
        terminal.sees("● live");
        let pid = std::fs::read_to_string(home.path().join("top.pid")).unwrap();
        assert!(Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status().unwrap().success());
        terminal.is_given_back();
    }
    // Ctrl-Z goes to the shell, and fg comes back.
    terminal.write("set -m; clear");
    terminal.press("Enter");
    terminal.run_top(&home, "");
    terminal.sees("● live");
    terminal.press("C-z");
    terminal.is_given_back();
    terminal.write("fg");
    terminal.press("Enter");
    terminal.sees("● live");
    terminal.press("C-c");
    terminal.is_given_back();
}

/// As the command of a pane, or of `ssh -t`: nobody could wake it, so the system does not let it stop.
#[test]
fn where_there_is_no_shell_to_go_to_it_stays() {
    let home = Home::new();
    let _server = home.start();
    let terminal = Terminal::with(&home, &[env!("CARGO_BIN_EXE_giga"), "top"]);
    terminal.sees("● live");
    terminal.press("C-z");
    terminal.sees("no shell to suspend to");
    terminal.write("4");
    terminal.sees("stages: all");
    let pid = terminal.ask(&["display-message", "-p", "#{pane_pid}"]);
    terminal.ask(&["set-option", "remain-on-exit", "on"]);
    terminal.press("C-z");
    // At once, before it is known that nothing stopped it.
    assert!(Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap().success());
    terminal.until("the end", |_| terminal.ask(&["display-message", "-p", "#{pane_dead}"]).trim() == "1");
}

#[test]
fn what_is_logged_does_not_stand_between_the_frames() {
    let home = Home::new();
    let _server = home.start();
    let terminal = Terminal::open(&home);
    terminal.run_top(&home, "GIGA_LOG=debug");
    terminal.sees("● live");
    terminal.write("4");
    let screen = terminal.sees("stages: all");
    assert!(!screen.contains("DEBUG"), "{screen}");
    terminal.write("q");
    terminal.is_given_back();
    // Elsewhere it is not in the way.
    terminal.run_top(&home, "clear; 2>top.log GIGA_LOG=debug");
    terminal.sees("● live");
    terminal.write("q");
    terminal.is_given_back();
    let log = std::fs::read_to_string(home.path().join("top.log")).unwrap();
    assert!(log.contains("DEBUG"), "{log}");
}

#[test]
fn a_lost_coordinator_is_said_and_its_return_too() {
    let home = Home::new();
    let server = home.start();
    let address = server.url.trim_start_matches("http://").to_owned();
    let terminal = Terminal::open(&home);
    terminal.run_top(&home, "");
    terminal.sees("● live");
    server.kill9();
    terminal.sees("connection lost, reconnecting (");
    terminal.sees("○ lost");
    let mut again = giga(home.path());
    again.args(["serve", "--listen", &address]);
    let _server = Server::spawn(again, home.path());
    terminal.sees("● live");
    terminal.write("q");
    terminal.is_given_back();
}

#[test]
fn a_viewer_looks_and_touches_nothing() {
    let home = Home::new();
    let _server = home.start();
    home.giga(&["budget", "set", "demo", "--day", "5"]).ok();
    let token = home.giga(&["token", "create", "--role", "viewer"]).ok();
    let terminal = Terminal::open(&home);
    terminal.run_top(&home, &format!("GIGA_TOKEN={}", token.trim()));
    let screen = terminal.sees("● live");
    assert!(screen.contains("read-only"), "{screen}");
    terminal.write("5");
    let screen = terminal.sees("$5.00");
    assert!(!screen.contains("P pause"), "{screen}");
    terminal.write("P");
    terminal.sees("read-only: the role viewer may not do that");
    terminal.press("C-c");
    terminal.is_given_back();
}

#[test]
fn without_a_terminal_it_says_what_prints_the_same() {
    let home = Home::new();
    let message = home.giga(&["top"]).fails(2);
    assert!(message.contains("giga job list") && message.contains("giga factory list"), "{message}");
}
