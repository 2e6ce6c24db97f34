//! Random histories: every answer of a store, and every job afterwards, is what `giga_domain::topic::step` makes of it.
//!
//! The model is a map of jobs and nothing else. It knows no index, no cursor, no transaction and no count.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::job::RetryPolicy;
use giga_domain::topic::{
    Outcome, TopicCommand, TopicHead, TopicJob, TopicKey, TopicStage, TopicState, first_state, step,
};
use giga_domain::{Epoch, JobId, Priority, Timestamp};
use giga_ports::Clock;
use giga_ports::topics::{
    Assignment, Enqueued, NewTopicJob, PauseScope, Settle, Settled, Swept, TopicClaim, TopicStore,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::TopicFixture;
use super::world::{operator, topic};
use crate::ManualClock;

#[derive(Debug, Clone)]
enum Step {
    Enqueue(Vec<Shape>),
    Claim { topic: u8, slots: Vec<u32> },
    Settle(Vec<(Index, i64, Outcome)>),
    Renew(Vec<(Index, i64)>),
    Expire,
    Promote,
    Retry { topic: u8, named: Vec<Index>, limit: usize },
    Pause { topic: Option<u8>, closed: bool },
    Retire,
    Advance(u64),
}

#[derive(Debug, Clone)]
struct Shape {
    topic: u8,
    rank: u8,
    key: Option<u8>,
    payload: u8,
    delay_ms: Option<u64>,
    /// Back in time: older than what was claimed already.
    older: bool,
}

fn history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    let shape = (0..2_u8, 0..4_u8, proptest::option::weighted(0.3, 0..4_u8), 0..2_u8, any::<bool>())
        .prop_flat_map(|(topic, rank, key, payload, older)| {
            proptest::option::weighted(0.2, 0..3_000_u64).prop_map(move |delay_ms| Shape {
                topic,
                rank,
                key,
                payload,
                delay_ms,
                older,
            })
        });
    let outcome = prop_oneof![
        3 => Just(Outcome::Success),
        1 => Just(Outcome::Release),
        2 => any::<bool>().prop_map(|retryable| Outcome::Failure { error: "it broke".into(), retryable }),
    ];
    // How far the epoch that is named is off.
    let off = || prop_oneof![6 => Just(0_i64), 1 => Just(-1), 1 => Just(1)];
    let one = prop_oneof![
        4 => vec(shape, 1..6).prop_map(Step::Enqueue),
        4 => (0..3_u8, vec(0..4_u32, 1..3)).prop_map(|(topic, slots)| Step::Claim { topic, slots }),
        4 => vec((any::<Index>(), off(), outcome), 1..6).prop_map(Step::Settle),
        1 => vec((any::<Index>(), off()), 1..4).prop_map(Step::Renew),
        2 => Just(Step::Expire),
        2 => Just(Step::Promote),
        1 => (0..2_u8, vec(any::<Index>(), 0..3), 0..4_usize)
            .prop_map(|(topic, named, limit)| Step::Retry { topic, named, limit }),
        1 => (proptest::option::of(0..2_u8), proptest::bool::weighted(0.3))
            .prop_map(|(topic, closed)| Step::Pause { topic, closed }),
        1 => Just(Step::Retire),
        3 => (1..4_000_u64).prop_map(Step::Advance),
    ];
    vec(one, 1..steps)
}

const LEASE: Duration = Duration::from_secs(3);
const RETENTION: Duration = Duration::from_secs(8);
const RETRY: RetryPolicy = RetryPolicy { max: 1, backoff_ms: 700 };

fn key_of(number: u8) -> TopicKey {
    topic(["mail", "print", "nobody"][usize::from(number)])
}

struct Player {
    store: Arc<dyn TopicStore>,
    clock: Arc<ManualClock>,
    jobs: BTreeMap<JobId, TopicJob>,
    pauses: BTreeSet<PauseScope>,
    known: BTreeSet<TopicKey>,
    made: u128,
}

impl Player {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn play(&mut self, played: Step) {
        match played {
            Step::Enqueue(shapes) => self.enqueue(shapes).await,
            Step::Claim { topic, slots } => self.claim(key_of(topic), &slots).await,
            Step::Settle(words) => self.settle(words).await,
            Step::Renew(held) => self.renew(held).await,
            Step::Expire => {
                let time = |state: &TopicState| match state {
                    TopicState::Running { until, .. } => Some(*until),
                    _ => None,
                };
                let expected = self.sweep(&TopicCommand::Expire, time);
                assert_eq!(self.store.expire(10_000).await.unwrap(), expected);
            }
            Step::Promote => {
                let time = |state: &TopicState| match state {
                    TopicState::Scheduled { due } => Some(*due),
                    _ => None,
                };
                let expected = self.sweep(&TopicCommand::Promote, time);
                assert_eq!(self.store.promote(10_000).await.unwrap(), expected);
            }
            Step::Retry { topic, named, limit } => self.retry(key_of(topic), &named, limit).await,
            Step::Pause { topic, closed } => {
                let scope = topic.map_or(PauseScope::Everything, |topic| PauseScope::Topic(key_of(topic)));
                if closed {
                    self.pauses.insert(scope.clone())
                } else {
                    self.pauses.remove(&scope)
                };
                self.store.set_pause(scope, closed, operator()).await.unwrap();
            }
            Step::Retire => {
                let before = self.now().minus(RETENTION);
                let count = self.jobs.len();
                self.jobs.retain(|_, job| match job.head.state {
                    TopicState::Done { at } | TopicState::Dead { at } => at >= before,
                    _ => true,
                });
                assert_eq!(self.store.retire(before, 10_000).await.unwrap(), count - self.jobs.len());
            }
            Step::Advance(ms) => self.clock.advance(Duration::from_millis(ms)),
        }
    }

    fn new_job(&mut self, shape: &Shape) -> NewTopicJob {
        self.made += 1;
        let back = if shape.older { Duration::from_secs(5) } else { Duration::ZERO };
        NewTopicJob {
            id: JobId::from_parts(self.now().minus(back), self.made),
            key: key_of(shape.topic),
            priority: Priority::from_rank(shape.rank).unwrap(),
            payload: vec![shape.payload],
            idempotency_key: shape.key.map(|key| format!("key-{key}")),
            run_at: shape.delay_ms.map(|ms| self.now().plus(Duration::from_millis(ms))),
            retry: RETRY,
        }
    }

    async fn enqueue(&mut self, shapes: Vec<Shape>) {
        let new: Vec<NewTopicJob> = shapes.iter().map(|shape| self.new_job(shape)).collect();
        let before = self.jobs.clone();
        let mut expected = Some(Vec::new());
        for job in &new {
            let same = |other: &&TopicJob| {
                job.idempotency_key.is_some()
                    && other.key == job.key
                    && other.idempotency_key == job.idempotency_key
            };
            match self.jobs.values().find(same) {
                Some(other) if other.payload == job.payload => {
                    expected = expected.map(|mut answers| {
                        answers.push(Enqueued::Existing(other.id));
                        answers
                    });
                }
                Some(_) => expected = None,
                None => {
                    let state = first_state(job.run_at, self.now());
                    let due = job.run_at.filter(|_| state.stage() == TopicStage::Scheduled);
                    expected = expected.map(|mut answers| {
                        answers.push(Enqueued::Created { id: job.id, due });
                        answers
                    });
                    self.insert(job, state);
                }
            }
            if expected.is_none() {
                break;
            }
        }
        let answer = self.store.enqueue(new.clone()).await;
        if let Some(expected) = expected {
            assert_eq!(answer.unwrap(), expected);
            self.known.extend(new.into_iter().map(|job| job.key));
        } else {
            self.jobs = before;
            assert!(matches!(answer, Err(giga_ports::StoreError::KeyReused { .. })), "{answer:?}");
        }
    }

    fn insert(&mut self, new: &NewTopicJob, state: TopicState) {
        let head = TopicHead { state, epoch: Epoch::ZERO, attempts: 0, retry: RETRY, last_error: None };
        let job = TopicJob {
            id: new.id,
            key: new.key.clone(),
            priority: new.priority,
            payload: new.payload.clone(),
            idempotency_key: new.idempotency_key.clone(),
            created_at: self.now(),
            head,
        };
        self.jobs.insert(new.id, job);
    }

    async fn claim(&mut self, key: TopicKey, slots: &[u32]) {
        let now = self.now();
        let workers: Vec<_> =
            slots.iter().enumerate().map(|(n, free)| (format!("w-{n}").parse().unwrap(), *free)).collect();
        let claim = TopicClaim { key: key.clone(), workers, most_bytes: u64::MAX, lease: LEASE };
        let open = !self.pauses.contains(&PauseScope::Everything)
            && !self.pauses.contains(&PauseScope::Topic(key.clone()));
        let mut ready: Vec<_> = self
            .jobs
            .values()
            .filter(|job| open && job.key == key && job.head.state == TopicState::Ready)
            .map(|job| (job.priority, job.id))
            .collect();
        ready.sort_unstable();
        ready.truncate(claim.slots());
        let answer = self.store.claim(claim).await.unwrap();
        let got: Vec<_> = answer.iter().map(|held| (held.priority, held.id)).collect();
        assert_eq!(got, ready);
        for held in answer {
            let job = self.jobs.get_mut(&held.id).unwrap();
            let command = TopicCommand::Claim { worker: held.worker.clone(), lease: LEASE };
            job.head = step(&job.head, &command, now).unwrap();
            let expected = Assignment {
                id: job.id,
                worker: held.worker.clone(),
                epoch: job.head.epoch,
                attempt: job.head.attempts + 1,
                priority: job.priority,
                payload: job.payload.clone(),
                created_at: job.created_at,
                expires_at: now.plus(LEASE),
            };
            assert_eq!(held, expected);
        }
    }

    /// A job that exists, and an epoch that may be off.
    fn pick(&self, index: Index, off: i64) -> Option<(JobId, Epoch)> {
        let job = index.get(&self.jobs.values().collect::<Vec<_>>()).to_owned();
        Some((job.id, Epoch(job.head.epoch.0.checked_add_signed(off)?)))
    }

    async fn settle(&mut self, words: Vec<(Index, i64, Outcome)>) {
        if self.jobs.is_empty() {
            return;
        }
        let picked = words.into_iter().filter_map(|(index, off, outcome)| {
            let (id, epoch) = self.pick(index, off)?;
            Some(Settle { id, epoch, outcome })
        });
        let words: Vec<Settle> = picked.collect();
        let answers = self.store.settle(words.clone()).await.unwrap();
        let now = self.now();
        let mut expected = Vec::new();
        for word in words {
            let job = self.jobs.get_mut(&word.id).unwrap();
            let command = TopicCommand::Settle { epoch: word.epoch, outcome: word.outcome };
            let repeated = job.head.state.stage() != TopicStage::Running;
            expected.push(match step(&job.head, &command, now) {
                Err(_) => Settled::Fenced,
                Ok(head) => {
                    job.head = head;
                    let due = match job.head.state {
                        TopicState::Scheduled { due } => Some(due),
                        _ => None,
                    };
                    Settled::Applied { key: job.key.clone(), stage: job.head.state.stage(), due, repeated }
                }
            });
        }
        assert_eq!(answers, expected);
    }

    async fn renew(&mut self, held: Vec<(Index, i64)>) {
        if self.jobs.is_empty() {
            return;
        }
        let held: Vec<_> = held.into_iter().filter_map(|(index, off)| self.pick(index, off)).collect();
        let answers = self.store.renew(held.clone(), LEASE).await.unwrap();
        let now = self.now();
        for ((id, epoch), answer) in held.into_iter().zip(answers) {
            let job = self.jobs.get_mut(&id).unwrap();
            let renewed = step(&job.head, &TopicCommand::Renew { epoch, lease: LEASE }, now);
            assert_eq!(answer, renewed.is_ok());
            if let Ok(head) = renewed {
                job.head = head;
            }
        }
    }

    fn sweep(&mut self, command: &TopicCommand, time: fn(&TopicState) -> Option<Timestamp>) -> Swept {
        let now = self.now();
        let mut waiting: Vec<_> =
            self.jobs.values().filter_map(|job| Some((time(&job.head.state)?, job.id))).collect();
        waiting.sort_unstable();
        let mut swept = Swept::default();
        for (at, id) in waiting {
            let job = self.jobs.get_mut(&id).unwrap();
            match step(&job.head, command, now) {
                Ok(head) => {
                    job.head = head;
                    swept.jobs.push((job.key.clone(), id, job.head.state.stage()));
                }
                Err(_) => swept.next = swept.next.or(Some(at)),
            }
        }
        swept
    }

    async fn retry(&mut self, key: TopicKey, named: &[Index], limit: usize) {
        if self.jobs.is_empty() {
            return;
        }
        let named: Vec<JobId> = named.iter().filter_map(|index| Some(self.pick(*index, 0)?.0)).collect();
        let now = self.now();
        let wanted = |job: &&mut TopicJob| {
            job.key == key
                && job.head.state.stage() == TopicStage::Dead
                && (named.is_empty() || named.contains(&job.id))
        };
        let mut expected = Vec::new();
        for job in self.jobs.values_mut().filter(wanted).take(limit) {
            job.head = step(&job.head, &TopicCommand::Retry, now).unwrap();
            expected.push(job.id);
        }
        assert_eq!(self.store.retry_dead(key, named, limit).await.unwrap(), expected);
    }

    /// Every job, every count, every pause.
    async fn compare(&self) {
        for (id, job) in &self.jobs {
            assert_eq!(self.store.job(*id).await.unwrap().as_ref(), Some(job));
        }
        let counts = self.store.topics().await.unwrap();
        let keys: BTreeSet<TopicKey> = counts.iter().map(|counts| counts.key.clone()).collect();
        assert_eq!(keys, self.known);
        for counts in counts {
            for stage in TopicStage::ALL {
                let of = |job: &&TopicJob| job.key == counts.key && job.head.state.stage() == stage;
                let mut expected: Vec<JobId> = self.jobs.values().filter(of).map(|job| job.id).collect();
                expected.reverse();
                let listed = self.store.list(&counts.key, stage, None, 10_000).await.unwrap();
                let listed: Vec<JobId> = listed.iter().map(|job| job.id).collect();
                assert_eq!(listed, expected, "{stage} of {}", counts.key);
                assert_eq!(counts.count(stage), expected.len() as u64, "{stage} of {}", counts.key);
            }
        }
        let pauses: BTreeSet<PauseScope> =
            self.store.pauses().await.unwrap().into_iter().map(|closed| closed.scope).collect();
        assert_eq!(pauses, self.pauses);
    }
}

/// Panics with the shortest history on which the store is not the model. The seed is in the message;
/// `GIGA_MODEL_SEED` plays it again.
pub fn agrees_with_the_model<F: TopicFixture>(make: impl Fn() -> F, cases: u32, steps: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = std::env::var("GIGA_MODEL_SEED").ok().map(|text| text.parse().unwrap());
    let seed: u64 = asked.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config { cases, max_shrink_time: 60_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new_with_rng(config, rng).run(&history(steps), |history| {
        runtime.block_on(async {
            let clock = Arc::new(ManualClock::default());
            let fixture = make();
            let store = fixture.open(clock.clone()).await;
            let (jobs, pauses, known) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
            let mut player = Player { store, clock, jobs, pauses, known, made: 0 };
            for (number, step) in history.into_iter().enumerate() {
                player.play(step).await;
                if number % 5 == 0 {
                    player.compare().await;
                }
            }
            player.compare().await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("GIGA_MODEL_SEED={seed} plays it again\n{failure}");
    }
}
