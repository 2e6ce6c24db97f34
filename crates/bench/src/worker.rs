//! One worker process of a benchmark: handlers that do nothing, and a line now and then that says how many they did.
//!
//! With `--print-each` the id and epoch of every job that a handler was given are printed, so that a test can see what was handled
//! twice. A payload that begins with `at:` and nanoseconds since 1970 is stamped: how long it took to get here is printed
//! at the end. Both ends run on one machine, so they share a clock.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use giga_worker::{Client, Config, Task, Worker};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{WorkerArgs, allow_many_connections};

pub(crate) const TOPIC: &str = "noop";
const PRINT_EVERY: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Tally {
    handled: AtomicU64,
    latencies: Mutex<Vec<f64>>,
    /// Lines of `--print-each` that were not printed yet.
    each: Mutex<String>,
}

pub(crate) fn stamp() -> Vec<u8> {
    let mut payload = format!("at:{}", nanos()).into_bytes();
    payload.resize(200, b' ');
    payload
}

fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

impl Tally {
    fn count(&self, task: &Task, print_each: bool) {
        let stamped = task.payload.strip_prefix(b"at:").and_then(|rest| std::str::from_utf8(rest).ok());
        if let Some(at) = stamped.and_then(|text| text.trim().parse::<u128>().ok()) {
            let millis = nanos().saturating_sub(at) as f64 / 1e6;
            self.latencies.lock().push(millis);
        }
        if print_each {
            let mut each = self.each.lock();
            let _ = writeln!(each, "job {} {}", task.job_id, task.epoch);
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) async fn run(args: WorkerArgs) -> Result<()> {
    allow_many_connections();
    let tally = Arc::new(Tally::default());
    let (leave, print_each) = (CancellationToken::new(), args.print_each);
    let work = Duration::from_millis(args.work_ms);
    let mut workers = tokio::task::JoinSet::new();
    for n in 0..args.streams {
        let config = Config::new(&args.caller.url, &args.caller.token).product(&args.product);
        let client = Client::connect(config).await?;
        let counted = tally.clone();
        let worker = Worker::new(client).id(format!("{}-{n}", args.name)).handle(TOPIC, move |task: Task| {
            counted.count(&task, print_each);
            async move {
                if !work.is_zero() {
                    tokio::time::sleep(work).await;
                }
                Ok(())
            }
        });
        let leave = leave.clone();
        workers.spawn(async move { worker.run(leave.cancelled_owned()).await });
    }
    let printing = tokio::spawn(print(tally.clone(), leave.clone()));
    // Whoever started this closes the pipe when it is over.
    let over = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    tokio::select! {
        _ = over => {}
        Some(ended) = workers.join_next() => {
            let why = match ended {
                Ok(Ok(_)) => "it left".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            bail!("a worker ended early: {why}");
        }
    }
    leave.cancel();
    while workers.join_next().await.is_some() {}
    let _ = printing.await;
    let latencies = std::mem::take(&mut *tally.latencies.lock());
    let mut stdout = std::io::stdout().lock();
    for millis in latencies {
        writeln!(stdout, "latency {millis:.3}")?;
    }
    Ok(stdout.flush()?)
}

async fn print(tally: Arc<Tally>, leave: CancellationToken) {
    let mut printed = 0;
    while !leave.is_cancelled() {
        tokio::time::sleep(PRINT_EVERY).await;
        let handled = tally.handled.load(Ordering::Relaxed);
        if handled != printed {
            printed = handled;
            let each = std::mem::take(&mut *tally.each.lock());
            let mut stdout = std::io::stdout().lock();
            if writeln!(stdout, "{each}handled {handled}").and_then(|()| stdout.flush()).is_err() {
                leave.cancel();
            }
        }
    }
}
