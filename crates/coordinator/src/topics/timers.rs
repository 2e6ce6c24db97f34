//! What time itself does to topic jobs: scheduled ones become due, leases end, old ones are removed.
//!
//! Each sleeps until something is known to be due and asks the store nothing before; a look without a reason happens
//! once a minute for leases, because another coordinator may have granted one and died, and seldom for schedules.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use giga_domain::Timestamp;
use giga_domain::topic::TopicStage;
use giga_ports::StoreError;
use giga_ports::topics::Swept;
use tokio::time::Instant;

use super::LOOK_AGAIN;
use crate::Coordinator;

const LOOK_FOR_DUE: Duration = Duration::from_mins(5);
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
const SWEEP: usize = 1_000;
const RETIRE: usize = 1_000;
/// At the very end of a lease it has just not ended.
const MARGIN: Duration = Duration::from_millis(2);

impl Coordinator {
    pub(crate) async fn promote_topics(self: Arc<Self>) {
        let mut pause = Duration::ZERO;
        if let Err(error) = self.compare_clocks().await {
            tracing::warn!(%error, "the store's clock could not be read; schedules go by this machine's");
        }
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {
                    if let Err(error) = self.topic_promote_once().await {
                        tracing::warn!(%error, "scheduled topic jobs could not be looked at");
                        pause = AFTER_A_FAILURE;
                        continue;
                    }
                }
                () = self.topics.due_wake.notified() => {}
            }
            let due = *self.topics.due.lock().unwrap_or_else(PoisonError::into_inner);
            pause = due.map_or(LOOK_FOR_DUE, |due| due.since(self.about_now()).min(LOOK_FOR_DUE));
        }
    }

    /// Makes everything ready that is due; says how many jobs that were.
    pub async fn topic_promote_once(&self) -> Result<usize, StoreError> {
        let known = self.topics.due.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut count = 0;
        let retries = self.topic_store.stats().retries;
        loop {
            let swept = match self.topic_store.promote(SWEEP).await {
                Ok(swept) => swept,
                Err(error) => {
                    if let Some(at) = known {
                        self.topics.learn_due(at);
                    }
                    return Err(error);
                }
            };
            count += swept.jobs.len();
            self.topics_ready(swept.jobs.iter().map(|(key, id, _)| (key, *id)), false);
            if swept.jobs.len() < SWEEP {
                self.look_if_retried(retries);
                if let Some(next) = swept.next {
                    self.compare_clocks().await?;
                    self.topics.learn_due(next);
                }
                return Ok(count);
            }
        }
    }

    /// Deadlines are points in time: however often it is woken meanwhile, none of them moves away.
    pub(crate) async fn expire_topics(self: Arc<Self>) {
        let mut look_at = Instant::now();
        let mut not_before = look_at;
        loop {
            let here = self.topics.books().next_lease_end();
            let here = here.map(|until| Instant::now() + until.since(self.clock.now()) + MARGIN);
            let wake_at = here.map_or(look_at, |here| here.min(look_at)).max(not_before);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep_until(wake_at) => {}
                () = self.topics.lease_wake.notified() => continue,
            }
            // What this was set for may have been settled or renewed.
            let ended_here = !self.topics.books().overdue(self.clock.now()).is_empty();
            if !ended_here && Instant::now() < look_at {
                continue;
            }
            match self.topic_expire_once().await {
                Ok(next) => look_at = Instant::now() + next.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN),
                Err(error) => {
                    tracing::warn!(%error, "ended leases of topic jobs could not be looked for");
                    not_before = Instant::now() + AFTER_A_FAILURE;
                }
            }
        }
    }

    /// Takes back what was held past its lease, and frees the slots of what was settled or taken back elsewhere. Says
    /// how long the next lease lasts, where there is one.
    pub async fn topic_expire_once(&self) -> Result<Option<Duration>, StoreError> {
        let retries = self.topic_store.stats().retries;
        let next = loop {
            let serial = self.topics.books().serial();
            let swept = self.topic_store.expire(SWEEP).await?;
            self.after_expiring(&swept, serial);
            if swept.jobs.len() < SWEEP {
                break swept.next;
            }
        };
        self.look_if_retried(retries);
        let overdue = self.topics.books().overdue(self.clock.now());
        let (left, verified) = self.verify_held(overdue).await;
        self.topics.chores().doubtful.extend(left);
        verified?;
        match next {
            None => Ok(None),
            Some(next) => Ok(Some(next.since(self.compare_clocks().await?) + MARGIN)),
        }
    }

    fn after_expiring(&self, swept: &Swept, serial: u64) {
        if swept.jobs.is_empty() {
            return;
        }
        self.metrics.topics.expiries.inc_by(swept.jobs.len() as u64);
        let jobs: Vec<_> = swept.jobs.iter().map(|(_, id, _)| id).collect();
        tracing::warn!(count = jobs.len(), first = ?jobs.first(), "leases of topic jobs ended without a word");
        let mut books = self.topics.books();
        swept.jobs.iter().for_each(|(_, id, _)| books.free_swept(*id, serial));
        drop(books);
        self.topics.wake.notify_one();
        let of = |wanted| swept.jobs.iter().filter(move |(_, _, stage)| *stage == wanted);
        self.topics_ready(of(TopicStage::Ready).map(|(key, id, _)| (key, *id)), false);
        for (key, id, _) in of(TopicStage::Dead) {
            let reason = "its worker did not renew its lease in time, and no attempts are left";
            self.topic_job_died(key, *id, reason.to_owned());
        }
    }

    /// What the store's clock says, remembered as the difference to this process's.
    async fn compare_clocks(&self) -> Result<Timestamp, StoreError> {
        let stores = self.store.read().now().await?;
        let ahead = stores.as_millis().saturating_sub(self.clock.now().as_millis());
        self.topics.ahead_ms.store(ahead, Ordering::Relaxed);
        Ok(stores)
    }

    pub(crate) async fn retain_topics(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(self.options.retention_every) => {}
            }
            match self.topic_retire_old().await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "old topic jobs removed"),
                Err(error) => tracing::warn!(%error, "old topic jobs could not be removed"),
            }
        }
    }

    /// Removes what was done or dead for longer than the flag `retention_hours` says; returns how many jobs that were.
    pub async fn topic_retire_old(&self) -> Result<usize, StoreError> {
        let hours = self.flag("retention_hours").as_u64().unwrap_or(u64::MAX / 3600);
        let before = self.store.read().now().await?.minus(Duration::from_secs(hours * 3600));
        let mut count = 0;
        loop {
            let removed = self.topic_store.retire(before, RETIRE).await?;
            count += removed;
            if removed < RETIRE || self.stop.is_cancelled() {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }
}
