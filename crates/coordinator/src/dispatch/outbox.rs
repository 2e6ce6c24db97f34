//! From the outbox to the broker: publish first, then mark as sent, never the other way.
//!
//! Cut off between the two, the same message goes out again under the same id, and the broker or the claim tells the
//! repetition. A broker that is down costs time only: the offers wait here, and what nobody picks up is offered anew.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use giga_domain::{DispatchSeq, JobId, Offer};
use giga_ports::BrokerError;
use giga_ports::store::Sent;

use crate::{Coordinator, Error};

/// How many rows are read at once.
const BATCH: usize = 500;
/// A broker that has not answered by then counts as down.
const PATIENCE: Duration = Duration::from_secs(2);

impl Coordinator {
    pub(super) fn outbox_may_wait(&self) {
        self.dispatch.outbox_may_wait.store(true, Ordering::SeqCst);
    }

    /// Whether an offer may stand in the outbox that nobody is about to publish.
    pub(super) fn has_outbox_to_look_at(&self) -> bool {
        self.dispatch.outbox_may_wait.load(Ordering::SeqCst)
    }

    /// Publishes what waits in the outbox. Offers that no longer stand are dropped from it. Says how many went out.
    pub async fn outbox_once(&self) -> Result<usize, Error> {
        if self.leading().is_none() {
            return Ok(0);
        }
        // Before the look: whatever fails from here on sets it again.
        self.dispatch.outbox_may_wait.store(false, Ordering::SeqCst);
        let result = self.drain_outbox().await;
        if result.is_err() {
            self.outbox_may_wait();
        }
        result
    }

    async fn drain_outbox(&self) -> Result<usize, Error> {
        let mut published = 0;
        loop {
            let waiting = self.store.read().outbox(BATCH).await?;
            let Some(oldest) = waiting.first() else {
                self.metrics.dispatch.outbox_age_ms.set(0);
                return Ok(published);
            };
            let age = self.store_now().since(oldest.since).as_millis();
            self.metrics.dispatch.outbox_age_ms.set(i64::try_from(age).unwrap_or(i64::MAX));
            // After the look: an offer that is newer than the view would be taken for one that no longer stands.
            self.refresh().await?;
            let (current, over): (Vec<Offer>, Vec<Offer>) = {
                let now = self.store_now();
                let state = self.view.lock();
                waiting.into_iter().map(|row| row.offer).partition(|offer| state.stands(offer, now))
            };
            // First, so that the outbox stays small while the broker is away.
            if !over.is_empty() {
                self.store.sent(Sent { offers: keys(&over) }).await?;
            }
            published += current.len();
            self.publish(&current).await?;
        }
    }

    /// Hands offers to the broker and strikes them from the outbox.
    pub(super) async fn publish(&self, offers: &[Offer]) -> Result<(), Error> {
        if offers.is_empty() {
            return Ok(());
        }
        self.within_patience(self.broker.publish(offers)).await?;
        Ok(self.store.sent(Sent { offers: keys(offers) }).await?)
    }

    /// What is asked of the broker here may fail, and must hold nothing up.
    pub(crate) async fn within_patience<T>(
        &self,
        asked: impl Future<Output = Result<T, BrokerError>>,
    ) -> Result<T, BrokerError> {
        tokio::select! {
            biased;
            answered = tokio::time::timeout(PATIENCE, asked) => answered.unwrap_or_else(|_| {
                Err(BrokerError::because(format!("no answer for {} s", PATIENCE.as_secs())))
            }),
            () = self.stop.cancelled() => Err(BrokerError::because("the coordinator stops")),
        }
    }
}

fn keys(offers: &[Offer]) -> Vec<(JobId, DispatchSeq)> {
    offers.iter().map(|offer| (offer.job_id, offer.dispatch_seq)).collect()
}
