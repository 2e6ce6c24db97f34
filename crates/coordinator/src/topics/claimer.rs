//! The claimer: one claim per topic at a time, for all of the topic's free slots together.
//!
//! While a claim is under way, freed slots and new jobs gather for the next one, so the busier the hub is, the larger
//! its claims. Claims of several topics are asked for together and share a transaction. A claim that fails keeps the
//! streams; what it may have taken comes back when its lease ends.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use giga_ports::StoreError;
use giga_ports::topics::Assignment;

use super::Topics;
use super::registry::Planned;
use super::{Dealt, LOOK_AGAIN};
use crate::backoff::pause_after;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Topics {
    pub(crate) async fn keep_claiming(self: Arc<Self>) {
        let mut under_way = FuturesUnordered::new();
        let mut look_again = tokio::time::interval_at(tokio::time::Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
        let mut failures = 0;
        while !self.core.stop.is_cancelled() {
            for planned in self.plan() {
                under_way.push(self.claim(planned, pause_after(failures + 1, FIRST_PAUSE, LONGEST_PAUSE)));
            }
            tokio::select! {
                () = self.core.stop.cancelled() => {}
                () = self.wake.notified() => {}
                Some(claimed) = under_way.next() => failures = if claimed { 0 } else { failures + 1 },
                _ = look_again.tick() => self.look_everywhere(),
            }
        }
        // Whatever these bring for streams that are gone is released.
        while under_way.next().await.is_some() {}
        let _ = self.follow_up_once().await;
    }

    /// A hint may have been lost.
    pub fn look_everywhere(&self) {
        let mut registry = self.registry();
        registry.mark_all();
        let gates_may_be_old = registry.any_closed();
        drop(registry);
        if gates_may_be_old {
            self.follow_up(|left| left.pauses_are_old = true);
        }
    }

    fn plan(&self) -> Vec<Planned> {
        let lease = self.lease();
        self.registry().plan(lease)
    }

    /// Whether the store answered. One that did not is left alone for a while.
    async fn claim(&self, planned: Planned, pause: Duration) -> bool {
        match self.store.claim(planned.claim.clone()).await {
            Ok(jobs) => {
                self.deal(planned, jobs);
                true
            }
            Err(error) => {
                tracing::warn!(%error, topic = %planned.claim.key, "a claim failed; it is tried again");
                tokio::select! {
                    () = self.core.stop.cancelled() => {}
                    () = tokio::time::sleep(pause) => {}
                }
                self.registry().failed(&planned);
                false
            }
        }
    }

    fn deal(&self, planned: Planned, jobs: Vec<Assignment>) {
        self.core.metrics.topics.claimed(&planned.claim, jobs.len());
        if jobs.is_empty() {
            self.registry().deal(planned, jobs, self.core.clock.now());
            return;
        }
        let until = self.core.clock.now().plus(planned.claim.lease);
        let mut registry = self.registry();
        let first = registry.holds_nothing();
        let dealt = registry.deal(planned, jobs, until);
        drop(registry);
        if first {
            self.lease_wake.notify_one();
        }
        if !dealt.undeliverable.is_empty() {
            self.follow_up(|left| left.unsent.extend(dealt.undeliverable));
        }
    }

    /// Claims until nothing is ready or nobody has room, follow_ups and dead letters before it included. Says how many jobs
    /// were claimed.
    pub async fn claim_once(&self) -> Result<usize, StoreError> {
        self.follow_up_once().await?;
        self.mirror_dead_once().await;
        let mut total = 0;
        loop {
            let planned = self.plan();
            if planned.is_empty() {
                return Ok(total);
            }
            let claims = planned.into_iter().map(|planned| async {
                match self.store.claim(planned.claim.clone()).await {
                    Ok(jobs) => {
                        let count = jobs.len();
                        self.deal(planned, jobs);
                        Ok(count)
                    }
                    Err(error) => {
                        self.registry().failed(&planned);
                        Err(error)
                    }
                }
            });
            for claimed in futures::future::join_all(claims).await {
                total += claimed?;
            }
        }
    }

    /// These leave for their worker now.
    pub(super) fn picked_up(&self, dealt: &[Dealt]) {
        let now = self.core.store_now();
        self.core.metrics.topics.picked_up(dealt, now);
    }
}
