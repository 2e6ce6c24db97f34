//! A worker's stream: what it is sent, and its presence for as long as it lasts.
//!
//! Dropping it ends the presence. What it was dealt and nobody took out of it is released at once; what was taken out
//! is the worker's until it reports or its lease ends, because a lost connection is not a lost worker.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{ProductId, TopicName, WorkerId, limits};
use giga_ports::topics::Assignment;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::Topics;
use super::registry::{StreamId, UNSENT_MOST};
use crate::{Error, FieldProblem};

/// Who wants to be sent what.
#[derive(Debug, Clone)]
pub struct OpenStream {
    pub product: ProductId,
    pub topics: Vec<TopicName>,
    pub worker: WorkerId,
    pub max_in_flight: u32,
}

/// A job for the worker of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dealt {
    pub topic: TopicName,
    /// How long the lease was when it was granted.
    pub lease: Duration,
    pub job: Assignment,
}

pub struct WorkerStream {
    topics: Arc<Topics>,
    id: StreamId,
    inlet: UnboundedReceiver<Vec<Dealt>>,
    /// Received and not handed out.
    waiting: VecDeque<Dealt>,
    /// Bytes of payload in `inlet` and `waiting`.
    unsent: Arc<AtomicUsize>,
}

impl std::fmt::Debug for WorkerStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerStream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Topics {
    pub fn open_stream(self: &Arc<Self>, open: OpenStream) -> Result<WorkerStream, Error> {
        let count = open.topics.len();
        if count == 0 || count > limits::STREAM_TOPICS {
            let most = limits::STREAM_TOPICS;
            return Err(FieldProblem::new("topics", format!("name 1 to {most} topics, not {count}")).into());
        }
        check_max_in_flight(open.max_in_flight)?;
        let mut topics: Vec<TopicKey> =
            open.topics.into_iter().map(|topic| TopicKey { product: open.product.clone(), topic }).collect();
        topics.sort_unstable();
        topics.dedup();
        let (outlet, inlet) = mpsc::unbounded_channel();
        let unsent = Arc::new(AtomicUsize::new(0));
        let mut registry = self.registry();
        let id = registry.open(open.worker, topics, open.max_in_flight, outlet, unsent.clone());
        self.core.metrics.topics.streams.set(registry.streams() as i64);
        drop(registry);
        self.wake.notify_one();
        Ok(WorkerStream { topics: self.clone(), id, inlet, waiting: VecDeque::new(), unsent })
    }

    /// From here on the worker's streams take so many. `within` are the caller's products, `None` for all of them.
    pub fn set_max_in_flight(
        &self,
        within: Option<&[ProductId]>,
        worker: &WorkerId,
        most: u32,
    ) -> Result<(), Error> {
        check_max_in_flight(most)?;
        self.registry().set_max_in_flight(within, worker, most);
        self.wake.notify_one();
        Ok(())
    }
}

fn check_max_in_flight(most: u32) -> Result<(), Error> {
    if most == 0 || most > limits::IN_FLIGHT {
        let message = format!("it must be from 1 to {}, not {most}", limits::IN_FLIGHT);
        return Err(FieldProblem::new("maxInFlight", message).into());
    }
    Ok(())
}

impl WorkerStream {
    /// Waits until there is something and takes all of it that fits: at most so many jobs, and so many bytes of payload
    /// but for a single job that is larger. Nothing is lost where the call is given up. `None` when the coordinator
    /// stops.
    pub async fn next(&mut self, most_jobs: usize, most_bytes: usize) -> Option<Vec<Dealt>> {
        if self.waiting.is_empty() {
            let dealt = tokio::select! {
                () = self.topics.core.stop.cancelled() => None,
                dealt = self.inlet.recv() => dealt,
            };
            self.waiting.extend(dealt?);
        }
        while self.waiting.len() < most_jobs {
            let Ok(dealt) = self.inlet.try_recv() else { break };
            self.waiting.extend(dealt);
        }
        let mut bytes = 0;
        let fit = self.waiting.iter().take(most_jobs).take_while(|dealt| {
            bytes += dealt.job.payload.len();
            bytes <= most_bytes
        });
        let count = fit.count().max(1);
        let taken: Vec<Dealt> = self.waiting.drain(..count).collect();
        let bytes: usize = taken.iter().map(|dealt| dealt.job.payload.len()).sum();
        let unsent = self.unsent.fetch_sub(bytes, Ordering::Relaxed);
        if unsent >= UNSENT_MOST && unsent - bytes < UNSENT_MOST {
            self.topics.wake.notify_one();
        }
        self.topics.picked_up(&taken);
        Some(taken)
    }
}

impl Drop for WorkerStream {
    fn drop(&mut self) {
        self.inlet.close();
        while let Ok(dealt) = self.inlet.try_recv() {
            self.waiting.extend(dealt);
        }
        let hub = &self.topics;
        let mut registry = hub.registry();
        for dealt in &self.waiting {
            registry.free(dealt.job.id, dealt.job.epoch);
        }
        registry.close(self.id);
        self.topics.core.metrics.topics.streams.set(registry.streams() as i64);
        drop(registry);
        if !self.waiting.is_empty() {
            let unsent = self.waiting.drain(..).map(|dealt| (dealt.job.id, dealt.job.epoch));
            hub.follow_up(|left| left.unsent.extend(unsent));
        }
    }
}
