//! The jobs that the worker holds: waiting for a handler, leased, or finished and waiting to be reported.
//!
//! All tasks of the worker share this and nothing else, under one short lock that is never held across an await. A job is
//! in flight from its arrival until its handler returns; its result, until the report is answered. A lost job is removed at
//! once, so a late result for it is dropped.

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

use crate::client::{BATCH, CALL_BYTES};
use crate::prefetch::Prefetch;
use crate::{Summary, Task};

pub(crate) struct InFlight {
    state: Mutex<State>,
    prefetch: Mutex<Prefetch>,
    /// One permit per waiting job.
    waiting: Semaphore,
    /// There are results, or there will be no more.
    results: Notify,
    /// There are fewer jobs in flight than the intake was waiting for.
    room: Notify,
    /// How long a lease lasts; zero until the first job has arrived.
    lease: watch::Sender<Duration>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    held: HashMap<String, Held>,
    finished: VecDeque<Finished>,
    /// No more handlers are started.
    stopping: bool,
    /// No results are reported until the last jobs on their way have arrived.
    holding_back: bool,
    /// No more handlers will finish.
    closed: bool,
    room_wanted: bool,
    summary: Summary,
}

struct Held {
    epoch: u64,
    lease: Duration,
    ends: Instant,
    lost: CancellationToken,
}

/// A result that is not reported yet.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) result: v1::JobResult,
    /// The result is of no use afterwards.
    pub(crate) lease_ends: Instant,
}

impl InFlight {
    pub(crate) fn new(prefetch: Prefetch) -> Self {
        Self {
            state: Mutex::default(),
            prefetch: Mutex::new(prefetch),
            waiting: Semaphore::new(0),
            results: Notify::new(),
            room: Notify::new(),
            lease: watch::Sender::new(Duration::ZERO),
        }
    }

    pub(crate) fn max_in_flight(&self) -> usize {
        self.prefetch.lock().max_in_flight()
    }

    /// Called with the number of results about to be reported. Returns the `max_in_flight` to report with them, 0 for no
    /// change. If it shrinks, jobs that no handler will get to soon are released for other workers.
    pub(crate) fn adjust_prefetch(&self, finished: usize) -> u32 {
        let mut prefetch = self.prefetch.lock();
        let Some(wanted) = prefetch.finished(finished, Instant::now()) else { return 0 };
        drop(prefetch);
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

    // ---- jobs arrive and go to handlers ----

    pub(crate) fn receive(&self, tasks: impl Iterator<Item = Task>) {
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
                    // We lost it without noticing, and now it is assigned to us again.
                    place.insert(held).lost.cancel();
                    state.summary.lost += 1;
                }
                Entry::Occupied(_) => {
                    debug!(job = task.job_id, epoch = task.epoch, "received twice; already in flight");
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
            // Jobs that were lost while they waited are not started.
            if let Some(task) = task.filter(|task| !task.lost.is_cancelled()) {
                return Some(task);
            }
        }
    }

    /// A handler has returned.
    pub(crate) fn finish(&self, job_id: String, epoch: u64, outcome: Outcome) {
        let mut state = self.state.lock();
        if state.held.get(&job_id).is_none_or(|held| held.epoch != epoch) {
            drop(state);
            warn!(job = job_id, epoch, "the lease was lost while the handler ran; its result is dropped");
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
        self.notify_room(state);
    }

    /// Call this wherever the number of jobs in flight shrinks.
    fn notify_room(&self, state: &mut State) {
        if std::mem::take(&mut state.room_wanted) {
            self.room.notify_one();
        }
    }

    /// Waits until fewer than `limit` jobs are in flight.
    pub(crate) async fn wait_for_room(&self, limit: usize) {
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

    // ---- results are reported ----

    /// All finished results, up to what one call may carry; `None` when there will be no more.
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
            // Lets handlers that are about to return add their results to the same call.
            tokio::task::yield_now().await;
        }
    }

    /// The coordinator has answered a report.
    pub(crate) fn reported(&self, batch: &[Finished], answer: &v1::ReportResultResponse) {
        let mut state = self.state.lock();
        if answer.statuses.len() != batch.len() {
            warn!(
                sent = batch.len(),
                answered = answer.statuses.len(),
                "the answer to a report is incomplete"
            );
        }
        for (finished, status) in batch.iter().zip(answer.statuses()) {
            let summary = &mut state.summary;
            let count = match (status, &finished.result.outcome) {
                (v1::ResultStatus::Recorded, Some(Outcome::Success(_))) => &mut summary.succeeded,
                (v1::ResultStatus::Recorded, Some(Outcome::Failure(_))) => &mut summary.failed,
                (v1::ResultStatus::Recorded, _) => &mut summary.released,
                (status, _) => {
                    let (job, epoch) = (&finished.result.job_id, finished.result.epoch);
                    warn!(
                        job,
                        epoch,
                        status = status.as_str_name(),
                        "the result was rejected; the lease was lost"
                    );
                    &mut summary.lost
                }
            };
            *count += 1;
        }
    }

    /// Their leases expired before they could be reported.
    pub(crate) fn unreported(&self, results: usize) {
        self.state.lock().summary.lost += results as u64;
        warn!(results, "results could not be reported before their leases expired; they are dropped");
    }

    // ---- leases ----

    pub(crate) fn leases(&self) -> watch::Receiver<Duration> {
        self.lease.subscribe()
    }

    fn set_lease(&self, lease: Duration) {
        self.lease.send_if_modified(|known| std::mem::replace(known, lease) != lease);
    }

    /// Leases that were granted or renewed more than a third of their duration ago.
    pub(crate) fn due(&self) -> Vec<v1::Held> {
        let now = Instant::now();
        let state = self.state.lock();
        let due = state.held.iter().filter(|(_, held)| held.ends < now + held.lease * 2 / 3);
        due.map(|(id, held)| v1::Held { job_id: id.clone(), epoch: held.epoch }).collect()
    }

    /// A heartbeat was answered. The lease counts from when the heartbeat was sent: ours must not outlive the coordinator's.
    pub(crate) fn renewed(&self, asked: &[v1::Held], asked_at: Instant, answer: &v1::HeartbeatResponse) {
        let lease = (answer.lease_ms > 0).then(|| Duration::from_millis(answer.lease_ms.into()));
        let lost: Vec<&v1::Held> =
            asked.iter().filter(|held| answer.lost_job_ids.contains(&held.job_id)).collect();
        let mut state = self.state.lock();
        for gone in lost {
            state.lose(&gone.job_id, gone.epoch, "the coordinator has revoked the lease");
        }
        for kept in asked {
            // It may have been assigned to us again under another epoch meanwhile; that lease was not renewed.
            if let Some(held) = state.held.get_mut(&kept.job_id).filter(|held| held.epoch == kept.epoch) {
                held.lease = lease.unwrap_or(held.lease);
                held.ends = asked_at + held.lease;
            }
        }
        self.notify_room(&mut state);
        drop(state);
        if let Some(lease) = lease {
            self.set_lease(lease);
        }
    }

    /// Drops jobs whose leases were not renewed in time: another worker may hold them by now.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let ended = state.held.iter().filter(|(_, held)| held.ends <= now);
        let ended: Vec<(String, u64)> = ended.map(|(id, held)| (id.clone(), held.epoch)).collect();
        for (job_id, epoch) in ended {
            state.lose(&job_id, epoch, "the lease expired before it could be renewed");
        }
        self.notify_room(&mut state);
    }

    // ---- the end ----

    /// Starts no more handlers; jobs that are waiting, and those that still arrive, are released. No result is reported
    /// before [`Self::intake_ended`]: each report would ask for another job.
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

    /// No more jobs will arrive.
    pub(crate) fn intake_ended(&self) {
        self.state.lock().holding_back = false;
        self.results.notify_waiters();
    }

    /// Drops all jobs: there is no coordinator left to report to.
    pub(crate) fn lose_all(&self) {
        let mut state = self.state.lock();
        state.summary.lost += state.held.len() as u64;
        for (_, held) in state.held.drain() {
            held.lost.cancel();
        }
    }

    /// All handlers have ended. Unfinished jobs are released.
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
        self.state.lock().summary
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
            self.summary.lost += 1;
        }
    }
}
