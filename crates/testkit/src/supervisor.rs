//! A shell process that owns a server, takes orders on its standard input and answers each in one line.
//!
//! It watches a pipe that only the test process holds: when that process is gone, panicked or killed alike, the shell
//! stops the server and removes its files. No server is ever left behind.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

#[derive(Debug)]
pub(crate) struct Supervisor {
    process: Child,
    /// `None` once dropped. Its end is what the supervisor takes as the end of this process.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Returns what it says first: the folder that it made.
    pub(crate) fn launch(mut command: Command) -> (Self, String) {
        // A group of its own: what is sent to the test's group, such as Ctrl-C, must not end it first.
        command.process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let orders = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().unwrap());
        let mut supervisor = Self { process, orders, answers };
        let folder = supervisor.answer().unwrap_or_else(|why| panic!("the server's supervisor: {why}"));
        (supervisor, folder)
    }

    pub(crate) fn order(&mut self, order: &str) -> Result<String, String> {
        writeln!(self.orders.as_mut().unwrap(), "{order}").map_err(|error| error.to_string())?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        match line.trim_end().split_once(' ') {
            Some(("ok", what)) => Ok(what.to_owned()),
            _ => Err(line),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.process.wait();
    }
}
