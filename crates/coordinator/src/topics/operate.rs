//! What operators see and do: topics with their depths, pauses, dead jobs that are retried.

use std::collections::{BTreeMap, HashMap};

use giga_domain::topic::{TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, JobId, NewEvent, ProductId};
use giga_ports::broker::Hint;
use giga_ports::store::Note;
use giga_ports::topics::{PauseScope, TopicCounts, TopicPause};

use super::Topics;
use crate::Error;

/// A topic as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicOverview {
    pub counts: TopicCounts,
    /// Where it is paused itself.
    pub paused: Option<TopicPause>,
    /// Workers that are connected to this coordinator.
    pub workers: usize,
    /// Jobs that this coordinator sent and that are not settled.
    pub in_flight: usize,
}

/// All topics, and whether all of them are paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicGates {
    pub everything: Option<TopicPause>,
    pub topics: Vec<TopicOverview>,
}

/// How many dead jobs one call brings back at most.
const RETRY_MOST: usize = 10_000;

impl Topics {
    /// Of the products that `allows` lets through: those that ever had a job and those that a worker waits for.
    pub async fn overview(&self, allows: impl Fn(&ProductId) -> bool) -> Result<TopicGates, Error> {
        let (counts, closed) = futures::future::try_join(self.store.topics(), self.store.pauses()).await?;
        let mut everything = None;
        let mut paused: HashMap<TopicKey, TopicPause> = HashMap::new();
        for pause in closed {
            match &pause.scope {
                PauseScope::Everything => everything = Some(pause),
                PauseScope::Topic(key) => {
                    paused.insert(key.clone(), pause);
                }
            }
        }
        let here = self.registry().by_topic();
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
    pub async fn pause(&self, topic: Option<TopicKey>, actor: Actor) -> Result<(), Error> {
        self.set_pause(topic, true, actor).await
    }

    pub async fn resume(&self, topic: Option<TopicKey>, actor: Actor) -> Result<(), Error> {
        self.set_pause(topic, false, actor).await
    }

    async fn set_pause(&self, topic: Option<TopicKey>, closed: bool, actor: Actor) -> Result<(), Error> {
        let scope = topic.clone().map_or(PauseScope::Everything, PauseScope::Topic);
        let was_closed = self.store.pauses().await?.iter().any(|closed| closed.scope == scope);
        self.store.set_pause(scope.clone(), closed, actor.clone()).await?;
        self.registry().set_pause(scope, closed);
        self.wake.notify_one();
        if was_closed != closed {
            let made = if closed { NewEvent::topic_paused } else { NewEvent::topic_resumed };
            let event = made(topic.as_ref());
            self.core.store.note(Note { event, actor }).await?;
        }
        self.hints.send(Hint::Pauses);
        Ok(())
    }

    /// Retries dead jobs of the topic: those named, or all where none is named.
    pub async fn retry_dead(
        &self,
        key: TopicKey,
        jobs: Vec<JobId>,
        actor: Actor,
    ) -> Result<Vec<JobId>, Error> {
        let retries = self.store.stats().retries;
        let retried = self.store.retry_dead(key.clone(), jobs, RETRY_MOST).await?;
        self.look_if_retried(retries);
        if retried.is_empty() {
            return Ok(retried);
        }
        self.ready(retried.iter().map(|id| (&key, *id)), false);
        let event = NewEvent::topic_retried(&key, retried.len());
        self.core.store.note(Note { event, actor }).await?;
        Ok(retried)
    }

    pub async fn job(&self, id: JobId) -> Result<Option<TopicJob>, Error> {
        Ok(self.store.job(id).await?)
    }

    /// Newest first.
    pub async fn jobs(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>, Error> {
        Ok(self.store.list(key, stage, before, limit).await?)
    }

    pub fn store_stats(&self) -> giga_ports::store::StoreStats {
        self.store.stats()
    }
}
