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

use super::books::Planned;
use super::{Dealt, LOOK_AGAIN};
use crate::Coordinator;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Coordinator {
    pub(crate) async fn claim_topics(self: Arc<Self>) {
        let mut under_way = FuturesUnordered::new();
        let mut look_again = tokio::time::interval_at(tokio::time::Instant::now() + LOOK_AGAIN, LOOK_AGAIN);
        let mut failures = 0;
        while !self.stop.is_cancelled() {
            for planned in self.plan_topics() {
                under_way.push(self.claim_topic(planned, pause_after(failures)));
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.topics.wake.notified() => {}
                Some(claimed) = under_way.next() => failures = if claimed { 0 } else { failures + 1 },
                _ = look_again.tick() => self.look_at_topics(),
            }
        }
        // Whatever these bring for streams that are gone is given back.
        while under_way.next().await.is_some() {}
        let _ = self.topic_chores_once().await;
    }

    /// A hint may have been lost.
    pub fn look_at_topics(&self) {
        let mut books = self.topics.books();
        books.mark_all();
        let gates_may_be_old = books.any_closed();
        drop(books);
        if gates_may_be_old {
            self.topics.chore(|chores| chores.gates_are_old = true);
        }
    }

    fn plan_topics(&self) -> Vec<Planned> {
        let lease = self.topic_lease();
        self.topics.books().plan(lease)
    }

    /// Whether the store answered. One that did not is left alone for a while.
    async fn claim_topic(&self, planned: Planned, pause: Duration) -> bool {
        match self.topic_store.claim(planned.claim.clone()).await {
            Ok(jobs) => {
                self.deal(planned, jobs);
                true
            }
            Err(error) => {
                tracing::warn!(%error, topic = %planned.claim.key, "a claim failed; it is tried again");
                tokio::select! {
                    () = self.stop.cancelled() => {}
                    () = tokio::time::sleep(pause) => {}
                }
                self.topics.books().failed(&planned);
                false
            }
        }
    }

    fn deal(&self, planned: Planned, jobs: Vec<Assignment>) {
        self.metrics.topics.claimed(&planned.claim, jobs.len());
        if jobs.is_empty() {
            self.topics.books().deal(planned, jobs, self.clock.now());
            return;
        }
        let until = self.clock.now().plus(planned.claim.lease);
        let mut books = self.topics.books();
        let first = books.holds_nothing();
        let dealt = books.deal(planned, jobs, until);
        drop(books);
        if first {
            self.topics.lease_wake.notify_one();
        }
        if !dealt.undeliverable.is_empty() {
            self.topics.chore(|chores| chores.unsent.extend(dealt.undeliverable));
        }
    }

    /// Claims until nothing is ready or nobody has room, chores and dead letters before it included. Says how many jobs
    /// were claimed.
    pub async fn topic_claim_once(&self) -> Result<usize, StoreError> {
        self.topic_chores_once().await?;
        self.topic_letters_once().await;
        let mut total = 0;
        loop {
            let planned = self.plan_topics();
            if planned.is_empty() {
                return Ok(total);
            }
            let claims = planned.into_iter().map(|planned| async {
                match self.topic_store.claim(planned.claim.clone()).await {
                    Ok(jobs) => {
                        let count = jobs.len();
                        self.deal(planned, jobs);
                        Ok(count)
                    }
                    Err(error) => {
                        self.topics.books().failed(&planned);
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
        let now = self.about_now();
        self.metrics.topics.picked_up(dealt, now);
    }
}

fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE)
}
