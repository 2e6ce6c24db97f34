//! Worker processes: started together, counted together.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

use crate::server::{Coordinator, PRODUCT};

/// What no run may take longer than.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) struct WorkerProcesses {
    processes: Vec<Process>,
}

struct Process {
    child: Child,
    /// Closing it asks the worker to leave.
    stdin: Option<ChildStdin>,
    handled: watch::Receiver<u64>,
    latencies: tokio::task::JoinHandle<Vec<f64>>,
}

impl WorkerProcesses {
    /// `streams` workers in each of `processes` processes.
    pub(crate) fn start(coordinator: &Coordinator, processes: usize, streams: usize) -> Result<Self> {
        let processes =
            (0..processes).map(|n| Process::start(coordinator, n, streams)).collect::<Result<_>>()?;
        Ok(Self { processes })
    }

    pub(crate) fn handled(&self) -> u64 {
        self.processes.iter().map(|process| *process.handled.borrow()).sum()
    }

    /// Comes back when all of them together have handled so many.
    pub(crate) async fn until(&mut self, wanted: u64) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while self.handled() < wanted {
            if Instant::now() > end {
                let handled = self.handled();
                bail!("only {handled} of {wanted} jobs were handled");
            }
            let changes = self.processes.iter_mut().map(|process| Box::pin(process.handled.changed()));
            let news = futures::future::select_all(changes);
            if let Ok((Err(_), ..)) = tokio::time::timeout(Duration::from_secs(1), news).await {
                bail!("a worker of the benchmark ended early");
            }
        }
        Ok(())
    }

    /// Asks them to leave; milliseconds from enqueue to start of everything that was stamped.
    pub(crate) async fn stop(self) -> Result<Vec<f64>> {
        let mut all = Vec::new();
        for mut process in self.processes {
            process.stdin.take();
            all.extend(process.latencies.await.unwrap_or_default());
            process.child.wait().await?;
        }
        Ok(all)
    }
}

impl Process {
    fn start(coordinator: &Coordinator, n: usize, streams: usize) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["worker", "--name", &format!("bench-{n}"), "--streams", &streams.to_string()]);
        command.env_clear().env("GIGA_URL", &coordinator.url).env("GIGA_TOKEN", &coordinator.token);
        command.env("GIGA_PRODUCT", PRODUCT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout was asked for");
        let (counted, handled) = watch::channel(0);
        let latencies = tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            let mut latencies = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                match line.split_once(' ') {
                    Some(("handled", count)) => {
                        counted.send_replace(count.parse().unwrap_or_default());
                    }
                    Some(("latency", millis)) => latencies.extend(millis.parse::<f64>()),
                    _ => {}
                }
            }
            latencies
        });
        Ok(Self { child, stdin, handled, latencies })
    }
}
