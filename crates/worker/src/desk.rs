//! What the worker has in hand: jobs waiting for a handler, leases held, results waiting for their report.
//!
//! Everything that runs meets here and nowhere else, under one short lock that is never held across an await. A job is on
//! the desk from its arrival until its handler returned; its result, until the report was answered. What is lost leaves the
//! desk at once, so a result of it finds no place any more.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use giga_proto::v1;
use giga_proto::v1::job_result::Outcome;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::appetite::Appetite;
use crate::client::{BATCH, CALL_BYTES};
use crate::{Summary, Task};

pub(crate) struct Desk {
    state: Mutex<State>,
    appetite: Mutex<Appetite>,
    /// One permit per waiting job.
    waiting: Semaphore,
    /// There are results, or there will be no more.
    results: Notify,
    /// Fewer jobs are in hand than somebody was waiting for.
    room: Notify,
    /// How long leases are here; zero until a job has said so.
    lease: watch::Sender<Duration>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    held: HashMap<String, Held>,
    finished: VecDeque<Finished>,
    /// No handler is started any more.
    stopping: bool,
    /// Results are kept back until the last jobs on their way have come in.
    holding_back: bool,
    /// No handler will finish any more.
    closed: bool,
    room_wanted: bool,
    tally: Summary,
}

struct Held {
    epoch: u64,
    lease: Duration,
    ends: Instant,
    lost: CancellationToken,
}

/// A result that the coordinator has not heard yet.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) result: v1::JobResult,
    /// From here on nobody wants it.
    pub(crate) lease_ends: Instant,
}

impl Desk {
    pub(crate) fn new(appetite: Appetite) -> Self {
        Self {
            state: Mutex::default(),
            appetite: Mutex::new(appetite),
            waiting: Semaphore::new(0),
            results: Notify::new(),
            room: Notify::new(),
            lease: watch::Sender::new(Duration::ZERO),
        }
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.appetite.lock().max_in_flight()
    }

    /// So many results are about to be reported. What to tell the coordinator with them, 0 for nothing. Where that is
    /// less than before, what no handler will get to soon is given back, for others to take.
    pub(crate) fn appetite(&self, finished: usize) -> u32 {
        let mut appetite = self.appetite.lock();
        let Some(wanted) = appetite.finished(finished, Instant::now()) else { return 0 };
        drop(appetite);
        let mut state = self.state.lock();
        while state.queue.len() > wanted
            && let Some(task) = state.queue.pop_back()
        {
            if !task.lost.is_cancelled() {
                self.put_result(&mut state, task.job_id, Outcome::Release(v1::Release {}));
            }
        }
        wanted as u32
    }

    // ---- jobs come in and go to handlers ----

    pub(crate) fn arrive(&self, tasks: impl Iterator<Item = Task>) {
        let now = Instant::now();
        let (mut arrived, mut lease) = (0, None);
        let mut state = self.state.lock();
        for task in tasks {
            let held = Held {
                epoch: task.epoch,
                lease: task.lease,
                ends: now + task.lease,
                lost: task.lost.clone(),
            };
            match state.held.entry(task.job_id.clone()) {
                Entry::Vacant(place) => {
                    place.insert(held);
                }
                Entry::Occupied(mut place) if place.get().epoch < task.epoch => {
                    // It was lost without our noticing, and comes back to us.
                    place.insert(held).lost.cancel();
                    state.tally.lost += 1;
                }
                Entry::Occupied(_) => {
                    debug!(job = task.job_id, epoch = task.epoch, "sent twice; already in hand");
                    continue;
                }
            }
            if state.stopping {
                self.put_result(&mut state, task.job_id, Outcome::Release(v1::Release {}));
                continue;
            }
            lease = Some(task.lease);
            arrived += 1;
            state.queue.push_back(task);
        }
        drop(state);
        self.waiting.add_permits(arrived);
        if let Some(lease) = lease {
            self.set_lease(lease);
        }
    }

    /// The next job to handle; `None` when no more will be started.
    pub(crate) async fn next(&self) -> Option<Task> {
        loop {
            self.waiting.acquire().await.ok()?.forget();
            let task = self.state.lock().queue.pop_front();
            // Those that were lost while they waited are not started.
            if let Some(task) = task.filter(|task| !task.lost.is_cancelled()) {
                return Some(task);
            }
        }
    }

    /// A handler returned.
    pub(crate) fn finish(&self, job_id: String, epoch: u64, outcome: Outcome) {
        let mut state = self.state.lock();
        if state.held.get(&job_id).is_none_or(|held| held.epoch != epoch) {
            drop(state);
            warn!(job = job_id, epoch, "the job was lost while it was worked on; its result is dropped");
            return;
        }
        self.put_result(&mut state, job_id, outcome);
    }

    fn put_result(&self, state: &mut State, job_id: String, outcome: Outcome) {
        let Some(held) = state.held.remove(&job_id) else { return };
        let result = v1::JobResult { job_id, epoch: held.epoch, outcome: Some(outcome) };
        state.finished.push_back(Finished { result, lease_ends: held.ends });
        if state.finished.len() == 1 {
            self.results.notify_one();
        }
        self.tell_of_room(state);
    }

    /// To be called wherever fewer jobs are in hand than before: whoever waits for room looks again.
    fn tell_of_room(&self, state: &mut State) {
        if std::mem::take(&mut state.room_wanted) {
            self.room.notify_one();
        }
    }

    /// Waits until fewer than so many jobs are in hand.
    pub(crate) async fn room(&self, limit: usize) {
        loop {
            {
                let mut state = self.state.lock();
                if state.held.len() < limit {
                    return;
                }
                state.room_wanted = true;
            }
            self.room.notified().await;
        }
    }

    // ---- results go out ----

    /// All results that wait, up to what one call may carry; `None` when there will be no more.
    pub(crate) async fn take_results(&self) -> Option<Vec<Finished>> {
        loop {
            let more = self.results.notified();
            {
                let mut state = self.state.lock();
                if !state.holding_back {
                    if !state.finished.is_empty() {
                        let batch = state.next_batch();
                        if !state.finished.is_empty() {
                            self.results.notify_one();
                        }
                        return Some(batch);
                    }
                    if state.closed {
                        return None;
                    }
                }
            }
            more.await;
            // Handlers that are about to return get to put their results into the same call.
            tokio::task::yield_now().await;
        }
    }

    /// The coordinator answered.
    pub(crate) fn settled(&self, batch: &[Finished], answer: &v1::ReportResultResponse) {
        let mut state = self.state.lock();
        if answer.statuses.len() != batch.len() {
            warn!(
                sent = batch.len(),
                answered = answer.statuses.len(),
                "the answer to a report is incomplete"
            );
        }
        for (finished, status) in batch.iter().zip(answer.statuses()) {
            let tally = &mut state.tally;
            let count = match (status, &finished.result.outcome) {
                (v1::ResultStatus::Recorded, Some(Outcome::Success(_))) => &mut tally.succeeded,
                (v1::ResultStatus::Recorded, Some(Outcome::Failure(_))) => &mut tally.failed,
                (v1::ResultStatus::Recorded, _) => &mut tally.released,
                (status, _) => {
                    let (job, epoch) = (&finished.result.job_id, finished.result.epoch);
                    warn!(
                        job,
                        epoch,
                        status = status.as_str_name(),
                        "the result was not taken; the job is lost"
                    );
                    &mut tally.lost
                }
            };
            *count += 1;
        }
    }

    /// Their leases ended before the coordinator could be told.
    pub(crate) fn unheard(&self, results: usize) {
        self.state.lock().tally.lost += results as u64;
        warn!(results, "results could not be reported before their leases ended; they are dropped");
    }

    // ---- leases ----

    pub(crate) fn leases(&self) -> watch::Receiver<Duration> {
        self.lease.subscribe()
    }

    fn set_lease(&self, lease: Duration) {
        self.lease.send_if_modified(|known| std::mem::replace(known, lease) != lease);
    }

    /// Those that were granted or renewed more than a third of their lease ago.
    pub(crate) fn due(&self) -> Vec<v1::Held> {
        let now = Instant::now();
        let state = self.state.lock();
        let due = state.held.iter().filter(|(_, held)| held.ends < now + held.lease * 2 / 3);
        due.map(|(id, held)| v1::Held { job_id: id.clone(), epoch: held.epoch }).collect()
    }

    /// A heartbeat was answered. The lease counts from when it was asked for: ours must not outlive the coordinator's.
    pub(crate) fn renewed(&self, asked: &[v1::Held], asked_at: Instant, answer: &v1::HeartbeatResponse) {
        let lease = (answer.lease_ms > 0).then(|| Duration::from_millis(answer.lease_ms.into()));
        let lost: Vec<&v1::Held> =
            asked.iter().filter(|held| answer.lost_job_ids.contains(&held.job_id)).collect();
        let mut state = self.state.lock();
        for gone in lost {
            state.lose(&gone.job_id, gone.epoch, "the coordinator says that the lease is lost");
        }
        for kept in asked {
            // It may have come back to us under another epoch in the meantime; that one was not renewed.
            if let Some(held) = state.held.get_mut(&kept.job_id).filter(|held| held.epoch == kept.epoch) {
                held.lease = lease.unwrap_or(held.lease);
                held.ends = asked_at + held.lease;
            }
        }
        self.tell_of_room(&mut state);
        drop(state);
        if let Some(lease) = lease {
            self.set_lease(lease);
        }
    }

    /// Loses what could not be renewed in time: another may have it by now.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let ended = state.held.iter().filter(|(_, held)| held.ends <= now);
        let ended: Vec<(String, u64)> = ended.map(|(id, held)| (id.clone(), held.epoch)).collect();
        for (job_id, epoch) in ended {
            state.lose(&job_id, epoch, "the lease ended before it could be renewed");
        }
        self.tell_of_room(&mut state);
    }

    // ---- the end ----

    /// Starts no more handlers; what has not been started, and what still comes, is given back. No result is handed out
    /// before [`Self::stopped`]: each would ask for another job.
    pub(crate) fn stop_starting(&self) {
        self.waiting.close();
        let mut state = self.state.lock();
        state.stopping = true;
        state.holding_back = true;
        while let Some(task) = state.queue.pop_front() {
            if !task.lost.is_cancelled() {
                self.put_result(&mut state, task.job_id, Outcome::Release(v1::Release {}));
            }
        }
    }

    /// Nothing comes in any more.
    pub(crate) fn stopped(&self) {
        self.state.lock().holding_back = false;
        self.results.notify_waiters();
    }

    /// Loses everything in hand: there is nobody left to report to.
    pub(crate) fn lose_all(&self) {
        let mut state = self.state.lock();
        state.tally.lost += state.held.len() as u64;
        for (_, held) in state.held.drain() {
            held.lost.cancel();
        }
    }

    /// All handlers have ended. What did not get to its end is given back.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        let unfinished: Vec<String> = state.held.keys().cloned().collect();
        for job_id in unfinished {
            self.put_result(&mut state, job_id, Outcome::Release(v1::Release {}));
        }
        state.closed = true;
        drop(state);
        self.results.notify_waiters();
    }

    pub(crate) fn summary(&self) -> Summary {
        self.state.lock().tally
    }
}

impl State {
    fn next_batch(&mut self) -> Vec<Finished> {
        let mut batch = Vec::with_capacity(self.finished.len().min(BATCH));
        let mut bytes = 0;
        while batch.len() < BATCH && bytes < CALL_BYTES {
            let Some(finished) = self.finished.pop_front() else { break };
            bytes += match &finished.result.outcome {
                Some(Outcome::Failure(failure)) => failure.error.len(),
                _ => 0,
            };
            batch.push(finished);
        }
        batch
    }

    fn lose(&mut self, job_id: &str, epoch: u64, why: &'static str) {
        if self.held.get(job_id).is_none_or(|held| held.epoch != epoch) {
            return;
        }
        if let Some(held) = self.held.remove(job_id) {
            warn!(job = job_id, epoch, "{why}");
            held.lost.cancel();
            self.tally.lost += 1;
        }
    }
}
