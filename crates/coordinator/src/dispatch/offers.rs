//! Unsent offers, from the store to the broker: publish first, then mark as sent, never the other way.
//!
//! Cut off between the two, the same message goes out again under the same id, and the broker or the claim tells the
//! repetition. A broker that is down costs time only: the offers wait here, and what nobody picks up is offered anew.

use std::sync::atomic::Ordering;

use giga_domain::{DispatchSeq, JobId, Offer};
use giga_ports::store::Sent;

use super::Dispatch;
use crate::Error;

/// How many rows are read at once.
const BATCH: usize = 500;
impl Dispatch {
    pub(super) fn offers_may_wait(&self) {
        self.offers_may_wait.store(true, Ordering::SeqCst);
    }

    /// Whether an offer may be unsent that nobody is about to publish.
    pub(super) fn has_offers_to_look_at(&self) -> bool {
        self.offers_may_wait.load(Ordering::SeqCst)
    }

    /// Publishes the unsent offers. Those that no longer stand are dropped. Says how many went out.
    pub async fn offers_once(&self) -> Result<usize, Error> {
        if self.lead.leading().is_none() {
            return Ok(0);
        }
        // Before the look: whatever fails from here on sets it again.
        self.offers_may_wait.store(false, Ordering::SeqCst);
        let result = self.drain_offers().await;
        if result.is_err() {
            self.offers_may_wait();
        }
        result
    }

    async fn drain_offers(&self) -> Result<usize, Error> {
        let mut published = 0;
        loop {
            let waiting = self.core.store.read().unsent_offers(BATCH).await?;
            let Some(oldest) = waiting.first() else {
                self.core.metrics.dispatch.offers_age_ms.set(0);
                return Ok(published);
            };
            let age = self.core.store_now().since(oldest.since).as_millis();
            self.core.metrics.dispatch.offers_age_ms.set(i64::try_from(age).unwrap_or(i64::MAX));
            // After the look: an offer that is newer than the view would be taken for one that no longer stands.
            self.fleet.refresh().await?;
            let (current, over): (Vec<Offer>, Vec<Offer>) = {
                let now = self.core.store_now();
                let state = self.fleet.view.lock();
                waiting.into_iter().map(|row| row.offer).partition(|offer| state.stands(offer, now))
            };
            // First, so that few rows wait while the broker is away.
            if !over.is_empty() {
                self.core.store.sent(Sent { offers: keys(&over) }).await?;
            }
            published += current.len();
            self.publish(&current).await?;
        }
    }

    /// Hands offers to the broker and marks them as sent.
    pub(super) async fn publish(&self, offers: &[Offer]) -> Result<(), Error> {
        if offers.is_empty() {
            return Ok(());
        }
        self.core.within_patience(self.core.broker.publish(offers)).await?;
        Ok(self.core.store.sent(Sent { offers: keys(offers) }).await?)
    }
}

fn keys(offers: &[Offer]) -> Vec<(JobId, DispatchSeq)> {
    offers.iter().map(|offer| (offer.job_id, offer.dispatch_seq)).collect()
}
