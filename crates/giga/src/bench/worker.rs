//! One worker process of a benchmark: handlers that do nothing, and a line now and then on how many they did.
//!
//! With `--tell-each` every job that a handler was given is told by id and epoch, so that a test can see what was handled
//! twice. A payload that begins with `at:` and nanoseconds since 1970 is stamped: how long it took to get here is told at the
//! end. Both ends run on one machine, so they share a clock.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use giga_worker::{Client, Config, Task, Worker};
use tokio_util::sync::CancellationToken;

use crate::args::BenchWorkerArgs;
use crate::config::Settings;
use crate::exit::CliError;

pub(super) const TOPIC: &str = "noop";
const TELL_EVERY: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Tally {
    handled: AtomicU64,
    latencies: Mutex<Vec<f64>>,
    /// Lines of `--tell-each` that were not told yet.
    each: Mutex<String>,
}

pub(super) fn stamp() -> Vec<u8> {
    let mut payload = format!("at:{}", nanos()).into_bytes();
    payload.resize(200, b' ');
    payload
}

fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

impl Tally {
    fn count(&self, task: &Task, tell_each: bool) {
        let stamped = task.payload.strip_prefix(b"at:").and_then(|rest| std::str::from_utf8(rest).ok());
        if let Some(at) = stamped.and_then(|text| text.trim().parse::<u128>().ok()) {
            let millis = nanos().saturating_sub(at) as f64 / 1e6;
            self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(millis);
        }
        if tell_each {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(each, "job {} {}", task.job_id, task.epoch);
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) async fn run(args: BenchWorkerArgs, settings: &Settings) -> Result<(), CliError> {
    crate::serve::allow_many_connections();
    let token = settings.token()?.ok_or_else(|| CliError::NoToken { places: settings.token_places() })?;
    let product = settings.product().map(|product| product.value).unwrap_or_default();
    let (url, secret) = (settings.url().value, token.secret.reveal().to_owned());
    let tally = Arc::new(Tally::default());
    let (leave, tell_each) = (CancellationToken::new(), args.tell_each);
    let work = Duration::from_millis(args.work_ms);
    let mut workers = tokio::task::JoinSet::new();
    for n in 0..args.streams {
        let config = Config::new(&url, &secret).product(&product);
        let client = Client::connect(config).await.map_err(|error| CliError::failed(error.to_string()))?;
        let counted = tally.clone();
        let worker = Worker::new(client).id(format!("{}-{n}", args.name)).handle(TOPIC, move |task: Task| {
            counted.count(&task, tell_each);
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
    let told = tokio::spawn(tell(tally.clone(), leave.clone()));
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
            return Err(CliError::failed(format!("a worker ended early: {why}")));
        }
    }
    leave.cancel();
    while workers.join_next().await.is_some() {}
    let _ = told.await;
    let latencies = std::mem::take(&mut *tally.latencies.lock().unwrap_or_else(PoisonError::into_inner));
    let mut stdout = std::io::stdout().lock();
    for millis in latencies {
        writeln!(stdout, "latency {millis:.3}")?;
    }
    Ok(stdout.flush()?)
}

async fn tell(tally: Arc<Tally>, leave: CancellationToken) {
    let mut told = 0;
    while !leave.is_cancelled() {
        tokio::time::sleep(TELL_EVERY).await;
        let handled = tally.handled.load(Ordering::Relaxed);
        if handled != told {
            told = handled;
            let each = std::mem::take(&mut *tally.each.lock().unwrap_or_else(PoisonError::into_inner));
            let mut stdout = std::io::stdout().lock();
            if writeln!(stdout, "{each}handled {handled}").and_then(|()| stdout.flush()).is_err() {
                leave.cancel();
            }
        }
    }
}
