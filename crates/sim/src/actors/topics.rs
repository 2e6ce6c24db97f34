//! Topic jobs: those who send them in, and the workers that handle them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Dealt, NewTopicWork, OpenStream};
use giga_domain::job::RetryPolicy;
use giga_domain::topic::{Outcome, TopicState};
use giga_domain::{Epoch, JobId, Priority, ProductId, TopicName, WorkerId};
use giga_ports::topics::Settle;
use giga_ports::{Clock, TopicStore};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::nap;
use crate::bug::Bug;
use crate::history::Record;
use crate::prng::Prng;
use crate::world::{Address, Trouble, World};

pub(super) fn product() -> ProductId {
    "demo".parse().expect("four letters make a product id")
}

pub(super) fn topics() -> Vec<TopicName> {
    ["mail", "thumbnails"].map(|name| name.parse().expect("letters make a topic")).to_vec()
}

#[derive(Debug)]
pub(crate) struct Producer {
    pub world: Arc<World>,
    pub prng: Prng,
}

impl Producer {
    pub(crate) async fn run(mut self) {
        let jobs = self.world.scenario.topic_jobs;
        let pace = self.world.scenario.storm.as_millis() as u64 * 2 / 3 / jobs.max(1) as u64;
        for number in 0..jobs {
            nap(&mut self.prng, 0, pace).await;
            let key = self.prng.chance(600).then(|| format!("topic-key-{number}"));
            let later = Duration::from_millis(self.prng.between(0, 2_000));
            let work = NewTopicWork {
                topic: self.prng.pick(&topics()).clone(),
                priority: *self.prng.pick(&Priority::ALL),
                payload: number.to_string().into_bytes(),
                idempotency_key: key.clone(),
                run_at: self.prng.chance(200).then(|| self.world.clock.now().plus(later)),
                retry: RetryPolicy { max: 4, backoff_ms: self.prng.between(50, 500) },
            };
            let again = 1 + u64::from(key.is_some()) * self.prng.below(2);
            for _ in 0..again {
                let Some(job) = self.enqueue(&work).await else { break };
                self.world.history.add(Record::TopicKept { key: key.clone(), job });
            }
        }
    }

    async fn enqueue(&mut self, work: &NewTopicWork) -> Option<JobId> {
        loop {
            let work = vec![work.clone()];
            let repeat = work[0].idempotency_key.is_some();
            let enqueued = self
                .world
                .call(&mut self.prng, |one| async move { one.topics().enqueue(&product(), work).await })
                .await;
            match enqueued {
                Ok(enqueued) => return enqueued.first().map(giga_ports::topics::Enqueued::id),
                Err(Trouble::Lost) if repeat => nap(&mut self.prng, 20, 400).await,
                Err(_) => return None,
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Worker {
    pub world: Arc<World>,
    pub number: usize,
    pub prng: Prng,
}

/// What the worker has in hand.
type InHand = Arc<Mutex<BTreeMap<JobId, Epoch>>>;

impl Worker {
    pub(crate) async fn run(mut self) {
        let mut sessions = 0;
        loop {
            sessions += 1;
            let name: WorkerId = format!("w{}-{sessions}", self.number)
                .parse()
                .expect("a letter, digits and a dash make a worker id");
            self.serve(name).await;
            nap(&mut self.prng, 20, 400).await;
        }
    }

    /// One stream, until it ends. What is in hand then is dropped, as by a process that dies.
    async fn serve(&mut self, name: WorkerId) {
        let Some(Address { coordinator, life, .. }) = self.world.some_address(&mut self.prng) else {
            return;
        };
        let most = self.prng.between(1, 4) as u32;
        self.world.history.add(Record::Opened { worker: name.clone(), most });
        let max_in_flight = if self.world.has(Bug::TooManyInFlight) { most + 2 } else { most };
        let open = OpenStream { product: product(), topics: topics(), worker: name.clone(), max_in_flight };
        let Ok(mut stream) = coordinator.topics().open_stream(open) else { return };
        drop(coordinator);
        let in_hand = InHand::default();
        let mut received: Vec<(JobId, Epoch)> = Vec::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeats(self.world.clone(), name.clone(), in_hand.clone(), self.prng.fork()));
        loop {
            let rates = self.world.rates();
            let limit = self.prng.between(400, 1_500);
            let dealt = tokio::select! {
                biased;
                () = life.ended() => return,
                dealt = tokio::time::timeout(Duration::from_millis(limit), stream.next(2, 1 << 20)) => dealt,
            };
            match dealt {
                Ok(Some(dealt)) => {
                    received.extend(dealt.iter().map(|dealt| (dealt.job.id, dealt.job.epoch)));
                    let running = self.still_held(&name, &received).await;
                    self.world.history.add(Record::InFlight { worker: name.clone(), running });
                    for Dealt { job, .. } in dealt {
                        in_hand.lock().insert(job.id, job.epoch);
                        let handler = Handler {
                            world: self.world.clone(),
                            worker: name.clone(),
                            in_hand: in_hand.clone(),
                            prng: self.prng.fork(),
                        };
                        tasks.spawn(handler.handle(job.id, job.epoch));
                    }
                }
                Ok(None) => return,
                Err(_) if self.prng.chance(rates.stream_cut) => return,
                Err(_) => {}
            }
        }
    }
}

impl Worker {
    /// How many of these are with the worker still, whatever it has come to think itself. What was claimed for it and got
    /// lost on the way is not: its lease covers that.
    async fn still_held(&self, name: &WorkerId, received: &[(JobId, Epoch)]) -> usize {
        let mut count = 0;
        for (job, epoch) in received {
            if let Ok(Some(job)) = self.world.topics.job(*job).await
                && job.head.epoch == *epoch
                && matches!(job.head.state, TopicState::Running { worker, .. } if worker == *name)
            {
                count += 1;
            }
        }
        count
    }
}

async fn heartbeats(world: Arc<World>, worker: WorkerId, in_hand: InHand, mut prng: Prng) {
    let lease = world.scenario.topic_lease.as_millis() as u64;
    loop {
        nap(&mut prng, lease / 4, lease / 2).await;
        let held: Vec<(JobId, Epoch)> = {
            let in_hand = in_hand.lock();
            in_hand.iter().map(|(job, epoch)| (*job, *epoch)).collect()
        };
        if !held.is_empty() && !prng.chance(world.rates().zombie) {
            let worker = worker.clone();
            let renewed =
                world.call(&mut prng, |one| async move { one.topics().renew(None, &worker, held).await });
            let _ = renewed.await;
        }
    }
}

struct Handler {
    world: Arc<World>,
    worker: WorkerId,
    in_hand: InHand,
    prng: Prng,
}

impl Handler {
    async fn handle(mut self, job: JobId, epoch: Epoch) {
        let lease = self.world.scenario.topic_lease.as_millis() as u64;
        nap(&mut self.prng, 5, lease / 2).await;
        if self.prng.chance(self.world.rates().zombie) {
            // Its heartbeats stop as well.
            self.in_hand.lock().remove(&job);
            nap(&mut self.prng, lease, lease * 3).await;
        }
        let failed = |retryable| Outcome::Failure { error: "it did not work".to_owned(), retryable };
        let outcome = match self.prng.below(100) {
            0..72 => Outcome::Success,
            72..88 => failed(true),
            88..92 => failed(false),
            _ => Outcome::Release,
        };
        for _ in 0..20 {
            let (worker, settle) = (self.worker.clone(), Settle { id: job, epoch, outcome: outcome.clone() });
            let reply =
                self.world
                    .call(&mut self.prng, |one| async move {
                        one.topics().report(None, &worker, vec![settle]).await
                    })
                    .await;
            match reply {
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
                _ => break,
            }
        }
        self.in_hand.lock().remove(&job);
    }
}
