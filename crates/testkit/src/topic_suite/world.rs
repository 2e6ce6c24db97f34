//! What a case works with: a fresh topic store, its clock, and short words for what most cases have to do first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use giga_domain::job::RetryPolicy;
use giga_domain::topic::{Outcome, TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, JobId, Priority, Timestamp};
use giga_ports::topics::{Assignment, Enqueued, NewTopicJob, Settle, Settled, TopicClaim, TopicStore};
use giga_ports::{Clock, Randomness};

use super::TopicFixture;
use crate::{ManualClock, SeededRandomness};

/// How long leases last where a case does not care.
pub(super) const LEASE: Duration = Duration::from_mins(1);
pub(super) const BACKOFF: Duration = Duration::from_secs(1);
/// One retry, so that the second failure is the last.
pub(super) const ONE_RETRY: RetryPolicy = RetryPolicy { max: 1, backoff_ms: 1_000 };

pub struct TopicWorld {
    pub store: Arc<dyn TopicStore>,
    pub clock: Arc<ManualClock>,
    fixture: Box<dyn TopicFixture>,
    random: SeededRandomness,
    named: AtomicU64,
}

impl std::fmt::Debug for TopicWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopicWorld").field("clock", &self.clock).finish_non_exhaustive()
    }
}

pub(super) fn topic(name: &str) -> TopicKey {
    TopicKey { product: "demo".parse().unwrap(), topic: name.parse().unwrap() }
}

pub(super) fn mail() -> TopicKey {
    topic("mail")
}

pub(super) fn operator() -> Actor {
    Actor::Token("tok-ops".parse().unwrap())
}

pub(super) fn settle(assignment: &Assignment, outcome: Outcome) -> Settle {
    Settle { id: assignment.id, epoch: assignment.epoch, outcome }
}

pub(super) fn failure(retryable: bool) -> Outcome {
    Outcome::Failure { error: "it broke".into(), retryable }
}

pub(super) fn applied(key: &TopicKey, stage: TopicStage) -> Settled {
    Settled::Applied { key: key.clone(), stage, due: None, repeated: false }
}

/// The answer to the same word, said again.
pub(super) fn again(answer: &Settled) -> Settled {
    match answer.clone() {
        Settled::Applied { key, stage, due, .. } => Settled::Applied { key, stage, due, repeated: true },
        other => other,
    }
}

pub(super) fn ids(assignments: &[Assignment]) -> Vec<JobId> {
    assignments.iter().map(|assignment| assignment.id).collect()
}

impl TopicWorld {
    pub async fn open(fixture: impl TopicFixture + 'static) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = fixture.open(clock.clone()).await;
        let (random, named) = (SeededRandomness::default(), AtomicU64::new(0));
        Self { store, clock, fixture: Box::new(fixture), random, named }
    }

    /// A second handle where the store has processes, so that a race is one between processes too.
    pub(super) async fn handles(&self) -> Vec<Arc<dyn TopicStore>> {
        let mut handles = vec![self.store.clone()];
        handles.extend(self.fixture.reopen(self.clock.clone()).await);
        handles
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Ids rise with every call.
    pub(super) fn job(&self, change: impl FnOnce(&mut NewTopicJob)) -> NewTopicJob {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        let random = u128::from_be_bytes(self.random.bytes()[..16].try_into().unwrap());
        let mut job = NewTopicJob {
            id: JobId::from_parts(self.now(), (u128::from(number) << 48) | (random >> 80)),
            key: mail(),
            priority: Priority::Normal,
            payload: format!("payload {number} \0\u{fe}").into_bytes(),
            idempotency_key: None,
            run_at: None,
            retry: ONE_RETRY,
        };
        change(&mut job);
        job
    }

    pub(super) fn jobs(&self, count: usize) -> Vec<NewTopicJob> {
        (0..count).map(|_| self.job(|_| ())).collect()
    }

    /// So many ready jobs, oldest first.
    pub(super) async fn ready(&self, count: usize) -> Vec<JobId> {
        let jobs = self.jobs(count);
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let made = self.store.enqueue(jobs).await.unwrap();
        let expected: Vec<_> = ids.iter().map(|id| Enqueued::Created { id: *id, due: None }).collect();
        assert_eq!(made, expected);
        ids
    }

    pub(super) async fn claim(&self, slots: u32) -> Vec<Assignment> {
        self.claim_for(&[("worker-1", slots)]).await
    }

    pub(super) async fn claim_for(&self, workers: &[(&str, u32)]) -> Vec<Assignment> {
        self.store.claim(claim_of(mail(), workers)).await.unwrap()
    }

    pub(super) async fn claim_one(&self) -> Assignment {
        let mut claimed = self.claim(1).await;
        assert_eq!(claimed.len(), 1, "there is a ready job");
        claimed.remove(0)
    }

    pub(super) async fn settle(&self, assignment: &Assignment, outcome: Outcome) -> Settled {
        self.store.settle(vec![settle(assignment, outcome)]).await.unwrap().remove(0)
    }

    pub(super) async fn get(&self, id: JobId) -> TopicJob {
        self.store.job(id).await.unwrap().expect("the job exists")
    }

    pub(super) async fn stage(&self, id: JobId) -> TopicStage {
        self.get(id).await.head.state.stage()
    }

    /// One job, failed for good.
    pub(super) async fn dead(&self) -> JobId {
        let id = self.ready(1).await[0];
        let held = self.claim_one().await;
        assert_eq!(held.id, id);
        assert_eq!(self.settle(&held, failure(false)).await, applied(&mail(), TopicStage::Dead));
        id
    }

    /// The counts of a topic, by stage, held against a real count.
    pub(super) async fn counts(&self, key: &TopicKey) -> BTreeMap<TopicStage, u64> {
        let topics = self.store.topics().await.unwrap();
        let counted = topics.iter().find(|counts| counts.key == *key);
        let mut counts = BTreeMap::new();
        for stage in TopicStage::ALL {
            let listed = self.store.list(key, stage, None, 1_000_000).await.unwrap().len() as u64;
            let kept = counted.map_or(0, |counts| counts.count(stage));
            assert_eq!(kept, listed, "{stage} of {key}");
            if kept > 0 {
                counts.insert(stage, kept);
            }
        }
        counts
    }
}

pub(super) fn claim_of(key: TopicKey, workers: &[(&str, u32)]) -> TopicClaim {
    let workers = workers.iter().map(|(name, free)| (name.parse().unwrap(), *free)).collect();
    TopicClaim { key, workers, most_bytes: u64::MAX, lease: LEASE }
}
