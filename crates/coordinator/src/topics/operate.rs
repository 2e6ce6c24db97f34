//! What operators see and do: topics with their depths, gates, dead jobs that get another chance.

use std::collections::{BTreeMap, HashMap};

use giga_domain::topic::{TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, EventKind, JobId, NewEvent, ProductId};
use giga_ports::broker::Hint;
use giga_ports::store::Note;
use giga_ports::topics::{ClosedGate, Gate, TopicCounts};

use crate::{Coordinator, Error};

/// A topic as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicOverview {
    pub counts: TopicCounts,
    /// Its own gate, where that is closed.
    pub paused: Option<ClosedGate>,
    /// Workers that are connected to this coordinator.
    pub workers: usize,
    /// Jobs that this coordinator sent and that are not settled.
    pub in_flight: usize,
}

/// All topics, and the gate in front of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicGates {
    pub everything: Option<ClosedGate>,
    pub topics: Vec<TopicOverview>,
}

/// How many dead jobs one call brings back at most.
const RETRY_MOST: usize = 10_000;

impl Coordinator {
    /// Of the products that `allows` lets through: those that ever had a job and those that a worker waits for.
    pub async fn topics(&self, allows: impl Fn(&ProductId) -> bool) -> Result<TopicGates, Error> {
        let (counts, closed) =
            futures::future::try_join(self.topic_store.topics(), self.topic_store.gates()).await?;
        let mut everything = None;
        let mut paused: HashMap<TopicKey, ClosedGate> = HashMap::new();
        for gate in closed {
            match &gate.gate {
                Gate::Everything => everything = Some(gate),
                Gate::Topic(key) => {
                    paused.insert(key.clone(), gate);
                }
            }
        }
        let here = self.topics.books().by_topic();
        let mut all: BTreeMap<TopicKey, [u64; 5]> =
            here.keys().chain(paused.keys()).map(|key| (key.clone(), [0; 5])).collect();
        all.extend(counts.into_iter().map(|counts| (counts.key, counts.by_stage)));
        let topics = all.into_iter().filter(|(key, _)| allows(&key.product)).map(|(key, by_stage)| {
            let (workers, in_flight) = here.get(&key).copied().unwrap_or_default();
            let paused = paused.remove(&key);
            TopicOverview { counts: TopicCounts { key, by_stage }, paused, workers, in_flight }
        });
        Ok(TopicGates { everything, topics: topics.collect() })
    }

    /// Nothing of the topic, or nothing at all, is handed out until it is resumed.
    pub async fn pause_topic(&self, topic: Option<TopicKey>, actor: Actor) -> Result<(), Error> {
        self.set_topic_gate(topic, true, actor).await
    }

    pub async fn resume_topic(&self, topic: Option<TopicKey>, actor: Actor) -> Result<(), Error> {
        self.set_topic_gate(topic, false, actor).await
    }

    async fn set_topic_gate(&self, topic: Option<TopicKey>, closed: bool, actor: Actor) -> Result<(), Error> {
        let gate = topic.clone().map_or(Gate::Everything, Gate::Topic);
        let was_closed = self.topic_store.gates().await?.iter().any(|closed| closed.gate == gate);
        self.topic_store.set_gate(gate.clone(), closed, actor.clone()).await?;
        self.topics.books().set_gate(gate, closed);
        self.topics.wake.notify_one();
        if was_closed != closed {
            let (kind, done) = if closed {
                (EventKind::TopicPaused, "paused")
            } else {
                (EventKind::TopicResumed, "resumed")
            };
            let event = match &topic {
                Some(key) => NewEvent::new(kind, format!("topic {key} {done}"))
                    .with("topic", key.topic.as_str())
                    .with("productId", key.product.as_str()),
                None => NewEvent::new(kind, format!("all topics {done}")),
            };
            self.store.note(Note { event, actor }).await?;
        }
        self.hints.tell(Hint::Gates);
        Ok(())
    }

    /// Gives dead jobs of the topic another chance: those named, or all where none is named.
    pub async fn retry_dead_topic_jobs(
        &self,
        key: TopicKey,
        jobs: Vec<JobId>,
        actor: Actor,
    ) -> Result<Vec<JobId>, Error> {
        let retries = self.topic_store.stats().retries;
        let retried = self.topic_store.retry_dead(key.clone(), jobs, RETRY_MOST).await?;
        self.look_if_retried(retries);
        if retried.is_empty() {
            return Ok(retried);
        }
        self.topics_ready(retried.iter().map(|id| (&key, *id)), false);
        let cause = format!("{} dead jobs of topic {key} are tried again", retried.len());
        let event = NewEvent::new(EventKind::TopicRetried, cause)
            .with("topic", key.topic.as_str())
            .with("productId", key.product.as_str())
            .with("count", retried.len());
        self.store.note(Note { event, actor }).await?;
        Ok(retried)
    }

    pub async fn topic_job(&self, id: JobId) -> Result<Option<TopicJob>, Error> {
        Ok(self.topic_store.job(id).await?)
    }

    /// Newest first.
    pub async fn topic_jobs(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>, Error> {
        Ok(self.topic_store.list(key, stage, before, limit).await?)
    }

    pub fn topic_store_stats(&self) -> giga_ports::store::StoreStats {
        self.topic_store.stats()
    }
}
