//! Worker processes: started together, counted together.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

use super::Measured;
use super::server::{Coordinator, PRODUCT};
use crate::exit::CliError;

/// What no run may take longer than.
const PATIENCE: Duration = Duration::from_mins(5);

pub(super) struct Crew {
    members: Vec<Member>,
}

struct Member {
    process: Child,
    /// Closing it asks the worker to leave.
    orders: Option<ChildStdin>,
    handled: watch::Receiver<u64>,
    latencies: tokio::task::JoinHandle<Vec<f64>>,
}

impl Crew {
    /// `streams` workers in each of `processes` processes.
    pub(super) fn start(coordinator: &Coordinator, processes: usize, streams: usize) -> Measured<Self> {
        let members =
            (0..processes).map(|n| Member::start(coordinator, n, streams)).collect::<Measured<_>>()?;
        Ok(Self { members })
    }

    pub(super) fn handled(&self) -> u64 {
        self.members.iter().map(|member| *member.handled.borrow()).sum()
    }

    /// Comes back when all of them together have handled so many.
    pub(super) async fn until(&mut self, wanted: u64) -> Measured<()> {
        let end = Instant::now() + PATIENCE;
        while self.handled() < wanted {
            if Instant::now() > end {
                let handled = self.handled();
                return Err(CliError::failed(format!("only {handled} of {wanted} jobs were handled")));
            }
            let changes = self.members.iter_mut().map(|member| Box::pin(member.handled.changed()));
            let news = futures::future::select_all(changes);
            if let Ok((Err(_), ..)) = tokio::time::timeout(Duration::from_secs(1), news).await {
                return Err(CliError::failed("a worker of the benchmark ended early"));
            }
        }
        Ok(())
    }

    /// Asks them to leave; milliseconds from enqueue to start of everything that was stamped.
    pub(super) async fn dismiss(self) -> Measured<Vec<f64>> {
        let mut all = Vec::new();
        for mut member in self.members {
            member.orders.take();
            all.extend(member.latencies.await.unwrap_or_default());
            member.process.wait().await?;
        }
        Ok(all)
    }
}

impl Member {
    fn start(coordinator: &Coordinator, n: usize, streams: usize) -> Measured<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "worker", "--name", &format!("bench-{n}"), "--streams", &streams.to_string()]);
        command.env_clear().env("GIGA_URL", &coordinator.url).env("GIGA_TOKEN", &coordinator.token);
        command.env("GIGA_PRODUCT", PRODUCT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let orders = process.stdin.take();
        let stdout = process.stdout.take().expect("stdout was asked for");
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
        Ok(Self { process, orders, handled, latencies })
    }
}
