//! What time itself does to topic jobs: scheduled ones become due, leases end, old ones are removed.
//!
//! Each sleeps until something is known to be due and asks the store nothing before; a look without a reason happens
//! once a minute for leases, because another coordinator may have granted one and died, and seldom for schedules.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::topic::TopicStage;
use giga_ports::StoreError;
use giga_ports::topics::Swept;
use tokio::time::Instant;

use super::LOOK_AGAIN;
use super::Topics;

const LOOK_FOR_DUE: Duration = Duration::from_mins(5);
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
const SWEEP: usize = 1_000;
const RETIRE: usize = 1_000;
/// At the very end of a lease it has just not ended.
const MARGIN: Duration = Duration::from_millis(2);

impl Topics {
    pub(crate) async fn keep_promoting(self: Arc<Self>) {
        let mut pause = Duration::ZERO;
        if let Err(error) = self.core.read_store_clock().await {
            tracing::warn!(%error, "the store's clock could not be read; schedules go by this machine's");
        }
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {
                    if let Err(error) = self.promote_once().await {
                        tracing::warn!(%error, "scheduled topic jobs could not be looked at");
                        pause = AFTER_A_FAILURE;
                        continue;
                    }
                }
                () = self.due_wake.notified() => {}
            }
            let due = *self.due.lock();
            pause = due.map_or(LOOK_FOR_DUE, |due| due.since(self.core.store_now()).min(LOOK_FOR_DUE));
        }
    }

    /// Makes everything ready that is due; says how many jobs that were.
    pub async fn promote_once(&self) -> Result<usize, StoreError> {
        let known = self.due.lock().take();
        let mut count = 0;
        let retries = self.store.stats().retries;
        loop {
            let swept = match self.store.promote(SWEEP).await {
                Ok(swept) => swept,
                Err(error) => {
                    if let Some(at) = known {
                        self.learn_due(at);
                    }
                    return Err(error);
                }
            };
            count += swept.jobs.len();
            self.ready(swept.jobs.iter().map(|(key, id, _)| (key, *id)), false);
            if swept.jobs.len() < SWEEP {
                self.look_if_retried(retries);
                if let Some(next) = swept.next {
                    self.core.read_store_clock().await?;
                    self.learn_due(next);
                }
                return Ok(count);
            }
        }
    }

    /// Deadlines are points in time: however often it is woken meanwhile, none of them moves away.
    pub(crate) async fn keep_expiring(self: Arc<Self>) {
        let mut look_at = Instant::now();
        let mut not_before = look_at;
        loop {
            let here = self.registry().next_lease_end();
            let here = here.map(|until| Instant::now() + until.since(self.core.clock.now()) + MARGIN);
            let wake_at = here.map_or(look_at, |here| here.min(look_at)).max(not_before);
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep_until(wake_at) => {}
                () = self.lease_wake.notified() => continue,
            }
            // What this was set for may have been settled or renewed.
            let ended_here = !self.registry().overdue(self.core.clock.now()).is_empty();
            if !ended_here && Instant::now() < look_at {
                continue;
            }
            match self.expire_once().await {
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
    pub async fn expire_once(&self) -> Result<Option<Duration>, StoreError> {
        let retries = self.store.stats().retries;
        let next = loop {
            let serial = self.registry().serial();
            let swept = self.store.expire(SWEEP).await?;
            self.after_expiring(&swept, serial);
            if swept.jobs.len() < SWEEP {
                break swept.next;
            }
        };
        self.look_if_retried(retries);
        let overdue = self.registry().overdue(self.core.clock.now());
        let (left, verified) = self.verify_held(overdue).await;
        self.follow_ups().doubtful.extend(left);
        verified?;
        match next {
            None => Ok(None),
            Some(next) => Ok(Some(next.since(self.core.read_store_clock().await?) + MARGIN)),
        }
    }

    fn after_expiring(&self, swept: &Swept, serial: u64) {
        if swept.jobs.is_empty() {
            return;
        }
        self.core.metrics.topics.expiries.inc_by(swept.jobs.len() as u64);
        let jobs: Vec<_> = swept.jobs.iter().map(|(_, id, _)| id).collect();
        tracing::warn!(count = jobs.len(), first = ?jobs.first(), "leases of topic jobs expired");
        let mut registry = self.registry();
        swept.jobs.iter().for_each(|(_, id, _)| registry.free_swept(*id, serial));
        drop(registry);
        self.wake.notify_one();
        let of = |wanted| swept.jobs.iter().filter(move |(_, _, stage)| *stage == wanted);
        self.ready(of(TopicStage::Ready).map(|(key, id, _)| (key, *id)), false);
        for (key, id, _) in of(TopicStage::Dead) {
            let reason = "its worker did not renew its lease in time, and no attempts are left";
            self.died(key, *id, reason.to_owned());
        }
    }

    pub(crate) async fn keep_retiring(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep(self.core.options.retention_every) => {}
            }
            match self.retire_old().await {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "old topic jobs removed"),
                Err(error) => tracing::warn!(%error, "old topic jobs could not be removed"),
            }
        }
    }

    /// Removes what was done or dead for longer than the flag `retention_hours` says; returns how many jobs that were.
    pub async fn retire_old(&self) -> Result<usize, StoreError> {
        let hours = self.fleet.flag("retention_hours").as_u64().unwrap_or(u64::MAX / 3600);
        let before = self.core.store.read().now().await?.minus(Duration::from_secs(hours * 3600));
        let mut count = 0;
        loop {
            let removed = self.store.retire(before, RETIRE).await?;
            count += removed;
            if removed < RETIRE || self.core.stop.is_cancelled() {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }
}
