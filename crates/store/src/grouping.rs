//! One task that turns many callers' commands into few transactions, whatever the commands are.
//!
//! A command can be run again from the start after a passing error, even when the commit's fate is unknown. Nobody is
//! answered before the commit, and nobody's bad command fails its neighbours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use giga_ports::StoreError;
use giga_ports::store::StoreStats;
use tokio::sync::mpsc;

#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// The most commands in one transaction.
    pub batch: usize,
    /// Callers past so many waiting commands wait to be let in.
    pub queue: usize,
    /// How long a passing error is retried before callers hear of it.
    pub patience: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { batch: 256, queue: 4096, patience: Duration::from_secs(8) }
    }
}

/// A command that waits for its answer.
pub(crate) trait Command: Send + 'static {
    /// How much of a transaction it takes up; [`HEAVIEST`] is a whole one.
    fn weight(&self) -> usize {
        1
    }

    /// After the commit.
    fn answer(self);

    fn fail(self, error: StoreError);
}

/// Past this a transaction is long enough for the next command to be better off in its own.
pub(crate) const HEAVIEST: usize = 20_000;

#[async_trait]
pub(crate) trait Transact<C>: Send + Sync + 'static {
    /// Runs the commands in one transaction. They come back either way; on an error nothing of them is known to have
    /// stayed.
    async fn transact(&self, commands: Vec<C>) -> (Vec<C>, Result<(), StoreError>);
}

/// The way in. Dropping it ends the task after what it has taken on.
#[derive(Debug)]
pub(crate) struct Group<C> {
    queue: mpsc::Sender<C>,
    stats: Arc<Stats>,
}

#[derive(Debug, Default)]
struct Stats {
    commits: AtomicU64,
    commands: AtomicU64,
    retries: AtomicU64,
}

impl<C: Command> Group<C> {
    /// Starts the task on the current runtime.
    pub(crate) fn start(target: Arc<impl Transact<C>>, tuning: Tuning) -> Self {
        let (queue, waiting) = mpsc::channel(tuning.queue);
        let stats = Arc::new(Stats::default());
        let writer = Writer { target, tuning, stats: stats.clone() };
        tokio::spawn(writer.run(waiting));
        Self { queue, stats }
    }

    pub(crate) async fn send(&self, command: C) -> Result<(), StoreError> {
        self.queue.send(command).await.map_err(|_| shutting_down())
    }

    pub(crate) fn stats(&self) -> StoreStats {
        StoreStats {
            commits: self.stats.commits.load(Ordering::Relaxed),
            commands: self.stats.commands.load(Ordering::Relaxed),
            retries: self.stats.retries.load(Ordering::Relaxed),
        }
    }
}

pub(crate) fn shutting_down() -> StoreError {
    StoreError::Unavailable { reason: "the store is shutting down".into(), source: None }
}

struct Writer<T> {
    target: Arc<T>,
    tuning: Tuning,
    stats: Arc<Stats>,
}

impl<T> Writer<T> {
    async fn run<C: Command>(self, mut waiting: mpsc::Receiver<C>)
    where
        T: Transact<C>,
    {
        let mut taken = Vec::new();
        // While a transaction is under way others queue up behind it and share the next one: the busier, the
        // fewer transactions per command, and nobody waits for a timer.
        while !taken.is_empty() || waiting.recv_many(&mut taken, self.tuning.batch).await > 0 {
            let rest = taken.split_off(fitting(&taken));
            self.commit(std::mem::replace(&mut taken, rest)).await;
        }
    }

    async fn commit<C: Command>(&self, commands: Vec<C>)
    where
        T: Transact<C>,
    {
        let size = commands.len();
        match self.persevere(commands).await {
            Ok(commands) => commands.into_iter().for_each(C::answer),
            Err((commands, error)) if size == 1 || error.is_transient() => {
                let text = error.to_string();
                tracing::error!(error = %text, commands = size, "a write failed");
                for command in commands {
                    command.fail(copy_of(&error, &text));
                }
            }
            // One command that the database cannot take must not fail its neighbours.
            Err((commands, _)) => {
                for command in commands {
                    Box::pin(self.commit(vec![command])).await;
                }
            }
        }
    }

    /// Runs the commands until they are committed, a lasting error comes up, or patience ends.
    async fn persevere<C: Command>(&self, mut commands: Vec<C>) -> Result<Vec<C>, (Vec<C>, StoreError)>
    where
        T: Transact<C>,
    {
        let size = commands.len() as u64;
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_millis(5);
        loop {
            let (returned, result) = self.target.transact(commands).await;
            match result {
                Ok(()) => {
                    self.stats.commits.fetch_add(1, Ordering::Relaxed);
                    self.stats.commands.fetch_add(size, Ordering::Relaxed);
                    return Ok(returned);
                }
                Err(error) if error.is_transient() && waited < self.tuning.patience => {
                    self.stats.retries.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "a write is tried again");
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    pause = (pause * 2).min(Duration::from_millis(500));
                    commands = returned;
                }
                Err(error) => return Err((returned, error)),
            }
        }
    }
}

/// How many of them one transaction takes: at least one.
fn fitting<C: Command>(commands: &[C]) -> usize {
    let mut weight = 0;
    let fit = commands.iter().take_while(|command| {
        weight += command.weight();
        weight <= HEAVIEST
    });
    fit.count().max(1)
}

fn copy_of(error: &StoreError, text: &str) -> StoreError {
    if error.is_transient() {
        StoreError::Unavailable { reason: text.to_owned(), source: None }
    } else {
        StoreError::broken_because(text)
    }
}
