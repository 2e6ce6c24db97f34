//! Topic jobs in plain maps: for tests, the simulator and `memory:`. It moves jobs only by `giga_domain::topic::step`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::topic::{
    TopicCommand, TopicHead, TopicJob, TopicKey, TopicStage, TopicState, first_state, step,
};
use giga_domain::{Actor, Epoch, JobId, Priority, Timestamp};
use giga_ports::store::StoreStats;
use giga_ports::topics::{
    Assignment, Enqueued, NewTopicJob, PauseScope, Settle, Settled, Swept, TopicClaim, TopicCounts,
    TopicOwner, TopicPause, TopicStore,
};
use giga_ports::{Clock, StoreError};
use parking_lot::{Mutex, MutexGuard};

use super::admission::{Admitted, Known, Pending};
use super::deal;

type Result<T> = std::result::Result<T, StoreError>;

pub struct MemoryTopics {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    writes: AtomicU64,
}

impl std::fmt::Debug for MemoryTopics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTopics").finish_non_exhaustive()
    }
}

impl MemoryTopics {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default(), writes: AtomicU64::new(0) }
    }

    /// Every write happens under this lock, whole.
    fn write(&self) -> (MutexGuard<'_, State>, Timestamp) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        (self.read(), self.clock.now())
    }

    fn read(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[derive(Default)]
struct State {
    jobs: BTreeMap<JobId, TopicJob>,
    ready: HashMap<TopicKey, BTreeSet<(Priority, JobId)>>,
    leased: BTreeSet<(Timestamp, JobId)>,
    scheduled: BTreeSet<(Timestamp, JobId)>,
    keys: HashMap<TopicKey, HashMap<String, JobId>>,
    counts: BTreeMap<TopicKey, [u64; 5]>,
    pauses: BTreeMap<PauseScope, TopicPause>,
}

impl State {
    fn insert(&mut self, new: &NewTopicJob, now: Timestamp) -> Enqueued {
        if let Some(job) = self.jobs.get(&new.id) {
            return Enqueued::Created { id: new.id, due: due(&job.head.state) };
        }
        let head = TopicHead {
            state: first_state(new.run_at, now),
            epoch: Epoch::ZERO,
            attempts: 0,
            retry: new.retry,
            last_error: None,
        };
        if let Some(key) = &new.idempotency_key {
            self.keys.entry(new.key.clone()).or_default().insert(key.clone(), new.id);
        }
        let job = TopicJob {
            id: new.id,
            key: new.key.clone(),
            priority: new.priority,
            payload: new.payload.clone(),
            idempotency_key: new.idempotency_key.clone(),
            created_at: now,
            head,
        };
        self.enter(&job);
        let due = due(&job.head.state);
        self.jobs.insert(new.id, job);
        Enqueued::Created { id: new.id, due }
    }

    /// Applies the command where the job allows it.
    fn step(&mut self, id: JobId, command: &TopicCommand, now: Timestamp) -> Option<&TopicJob> {
        let job = self.jobs.get(&id)?;
        let head = step(&job.head, command, now).ok()?;
        if head != job.head {
            let mut job = job.clone();
            self.leave(&job);
            job.head = head;
            self.enter(&job);
            self.jobs.insert(id, job);
        }
        self.jobs.get(&id)
    }

    fn enter(&mut self, job: &TopicJob) {
        match &job.head.state {
            TopicState::Ready => {
                self.ready.entry(job.key.clone()).or_default().insert((job.priority, job.id));
            }
            TopicState::Running { until, .. } => {
                self.leased.insert((*until, job.id));
            }
            TopicState::Scheduled { due } => {
                self.scheduled.insert((*due, job.id));
            }
            TopicState::Done { .. } | TopicState::Dead { .. } => {}
        }
        self.counts.entry(job.key.clone()).or_default()[job.head.state.stage() as usize] += 1;
    }

    fn leave(&mut self, job: &TopicJob) {
        match &job.head.state {
            TopicState::Ready => {
                self.ready.entry(job.key.clone()).or_default().remove(&(job.priority, job.id));
            }
            TopicState::Running { until, .. } => {
                self.leased.remove(&(*until, job.id));
            }
            TopicState::Scheduled { due } => {
                self.scheduled.remove(&(*due, job.id));
            }
            TopicState::Done { .. } | TopicState::Dead { .. } => {}
        }
        self.counts.entry(job.key.clone()).or_default()[job.head.state.stage() as usize] -= 1;
    }

    fn is_open(&self, key: &TopicKey) -> bool {
        !self.pauses.contains_key(&PauseScope::Everything)
            && !self.pauses.contains_key(&PauseScope::Topic(key.clone()))
    }

    fn sweep(&mut self, ids: Vec<JobId>, command: &TopicCommand, now: Timestamp) -> Swept {
        let moved = ids.into_iter().filter_map(|id| {
            let job = self.step(id, command, now)?;
            Some((job.key.clone(), id, job.head.state.stage()))
        });
        Swept { jobs: moved.collect(), next: None }
    }
}

impl Known for State {
    fn by_id(&self, id: JobId) -> Option<Enqueued> {
        self.jobs.get(&id).map(|job| Enqueued::Created { id, due: due(&job.head.state) })
    }

    fn by_key(&self, topic: &TopicKey, key: &str) -> Option<(JobId, &[u8])> {
        let id = *self.keys.get(topic)?.get(key)?;
        Some((id, self.jobs.get(&id)?.payload.as_slice()))
    }
}

fn due(state: &TopicState) -> Option<Timestamp> {
    match state {
        TopicState::Scheduled { due } => Some(*due),
        _ => None,
    }
}

fn ended(state: &TopicState) -> Option<Timestamp> {
    match state {
        TopicState::Done { at } | TopicState::Dead { at } => Some(*at),
        _ => None,
    }
}

/// The first so many whose time has come.
fn first(times: &BTreeSet<(Timestamp, JobId)>, now: Timestamp, limit: usize) -> Vec<JobId> {
    times.iter().take_while(|(at, _)| *at <= now).take(limit).map(|(_, id)| *id).collect()
}

#[async_trait]
impl TopicStore for MemoryTopics {
    async fn enqueue(&self, jobs: Vec<NewTopicJob>) -> Result<Vec<Enqueued>> {
        let (mut state, now) = self.write();
        let verdicts = Pending::default().admit(&jobs, &*state)?;
        let answers = jobs.iter().zip(verdicts).map(|(job, verdict)| match verdict {
            Admitted::New => state.insert(job, now),
            Admitted::Known(answer) => answer,
        });
        Ok(answers.collect())
    }

    async fn claim(&self, claim: TopicClaim) -> Result<Vec<Assignment>> {
        let (mut state, now) = self.write();
        if !state.is_open(&claim.key) {
            return Ok(Vec::new());
        }
        let ready = state.ready.get(&claim.key).into_iter().flatten();
        let mut room = deal::ByteRoom::of(&claim);
        let fits = |id: &JobId| state.jobs.get(id).is_none_or(|job| room.takes(job.payload.len() as u64));
        let picked: Vec<JobId> = ready.take(claim.slots()).map(|(_, id)| *id).take_while(fits).collect();
        let mut assignments = Vec::with_capacity(picked.len());
        for (id, worker) in picked.into_iter().zip(deal::slots(&claim.workers)) {
            let worker = claim.workers[worker].0.clone();
            let command = TopicCommand::Claim { worker: worker.clone(), lease: claim.lease };
            let Some(job) = state.step(id, &command, now) else { continue };
            assignments.push(Assignment {
                id,
                worker,
                epoch: job.head.epoch,
                attempt: job.head.attempts + 1,
                priority: job.priority,
                payload: job.payload.clone(),
                created_at: job.created_at,
                expires_at: now.plus(claim.lease),
            });
        }
        Ok(assignments)
    }

    async fn settle(&self, results: Vec<Settle>) -> Result<Vec<Settled>> {
        let (mut state, now) = self.write();
        let answers = results.into_iter().map(|settle| {
            let Some(job) = state.jobs.get(&settle.id) else { return Settled::Unknown };
            let repeated = job.head.state.stage() != TopicStage::Running;
            let command = TopicCommand::Settle { epoch: settle.epoch, outcome: settle.outcome };
            state.step(settle.id, &command, now).map_or(Settled::Fenced, |job| Settled::Applied {
                key: job.key.clone(),
                stage: job.head.state.stage(),
                due: due(&job.head.state),
                repeated,
            })
        });
        Ok(answers.collect())
    }

    async fn renew(&self, held: Vec<(JobId, Epoch)>, lease: Duration) -> Result<Vec<bool>> {
        let (mut state, now) = self.write();
        let mut renewed = |id, epoch| state.step(id, &TopicCommand::Renew { epoch, lease }, now).is_some();
        Ok(held.into_iter().map(|(id, epoch)| renewed(id, epoch)).collect())
    }

    async fn expire(&self, limit: usize) -> Result<Swept> {
        let (mut state, now) = self.write();
        let ended = first(&state.leased, now, limit);
        let swept = state.sweep(ended, &TopicCommand::Expire, now);
        Ok(Swept { next: state.leased.first().map(|(at, _)| *at), ..swept })
    }

    async fn promote(&self, limit: usize) -> Result<Swept> {
        let (mut state, now) = self.write();
        let due = first(&state.scheduled, now, limit);
        let swept = state.sweep(due, &TopicCommand::Promote, now);
        Ok(Swept { next: state.scheduled.first().map(|(at, _)| *at), ..swept })
    }

    async fn retry_dead(&self, key: TopicKey, jobs: Vec<JobId>, limit: usize) -> Result<Vec<JobId>> {
        let (mut state, now) = self.write();
        let named: BTreeSet<JobId> = jobs.into_iter().collect();
        let dead = state.jobs.values().filter(|job| {
            job.key == key
                && job.head.state.stage() == TopicStage::Dead
                && (named.is_empty() || named.contains(&job.id))
        });
        let ids: Vec<JobId> = dead.map(|job| job.id).take(limit).collect();
        Ok(ids.into_iter().filter(|id| state.step(*id, &TopicCommand::Retry, now).is_some()).collect())
    }

    async fn set_pause(&self, scope: PauseScope, paused: bool, actor: Actor) -> Result<()> {
        let (mut state, now) = self.write();
        if paused {
            let pause = TopicPause { scope: scope.clone(), since: now, by: actor };
            state.pauses.entry(scope).or_insert(pause);
        } else {
            state.pauses.remove(&scope);
        }
        Ok(())
    }

    async fn retire(&self, before: Timestamp, limit: usize) -> Result<usize> {
        let (mut state, _) = self.write();
        let old = state.jobs.values().filter(|job| ended(&job.head.state).is_some_and(|at| at < before));
        let ids: Vec<JobId> = old.map(|job| job.id).take(limit).collect();
        for id in &ids {
            let Some(job) = state.jobs.remove(id) else { continue };
            state.leave(&job);
            if let (Some(key), Some(keys)) = (&job.idempotency_key, state.keys.get_mut(&job.key)) {
                keys.remove(key);
            }
        }
        Ok(ids.len())
    }

    async fn pauses(&self) -> Result<Vec<TopicPause>> {
        Ok(self.read().pauses.values().cloned().collect())
    }

    async fn topics(&self) -> Result<Vec<TopicCounts>> {
        let counts =
            |(key, by_stage): (&TopicKey, &[u64; 5])| TopicCounts { key: key.clone(), by_stage: *by_stage };
        Ok(self.read().counts.iter().map(counts).collect())
    }

    async fn job(&self, id: JobId) -> Result<Option<TopicJob>> {
        Ok(self.read().jobs.get(&id).cloned())
    }

    async fn owners_of(&self, ids: &[JobId]) -> Result<HashMap<JobId, TopicOwner>> {
        let state = self.read();
        let owner = |id: &JobId| {
            let job = state.jobs.get(id)?;
            let worker = match &job.head.state {
                TopicState::Running { worker, .. } => Some(worker.clone()),
                _ => None,
            };
            Some((*id, TopicOwner { product: job.key.product.clone(), epoch: job.head.epoch, worker }))
        };
        Ok(ids.iter().filter_map(owner).collect())
    }

    async fn list(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>> {
        let state = self.read();
        let jobs = state.jobs.values().rev();
        let older = jobs.filter(|job| before.is_none_or(|before| job.id < before));
        let listed = older.filter(|job| job.key == *key && job.head.state.stage() == stage);
        Ok(listed.take(limit).cloned().collect())
    }

    fn stats(&self) -> StoreStats {
        let writes = self.writes.load(Ordering::Relaxed);
        StoreStats { commits: writes, commands: writes, retries: 0 }
    }
}
