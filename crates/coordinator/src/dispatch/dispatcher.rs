//! The leader's round: look, plan, offer, publish; again until a plan places nothing.
//!
//! It goes by what is queued and ready, never by whether a target is set, and keeps nothing from one round to the next.
//! Woken when the view has moved; a timer runs only while jobs are queued or offers may be unsent.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{JobId, Offer, ProductId, Term};
use giga_ports::StoreError;
use giga_ports::store::{MakeOffers, NewOffer};
use giga_scheduler::plan_offers;

use super::Dispatch;
use crate::Error;
use crate::view::Whom;

/// How many offers one transaction makes.
const TOGETHER: usize = 512;
/// After so many rounds in a row others get a turn; whoever wakes next goes on.
const ROUNDS: usize = 256;
/// The longest sleep while jobs are queued: a factory that comes back to life is no event.
const SAFETY: Duration = Duration::from_secs(5);
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// What one call did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dispatched {
    /// Offers that were made; whether the broker has them is not said.
    pub offered: Vec<Offer>,
    /// Placements of jobs that changed before they could be offered.
    pub lost: usize,
}

struct Chosen {
    offer: NewOffer,
    /// Since it could have been offered.
    waited: Duration,
    /// It was offered before, and nobody picked it up.
    again: bool,
    product: ProductId,
}

impl Dispatch {
    /// One dispatch: everything that can be offered now is. Does nothing where this node does not lead.
    pub async fn dispatch_once(&self) -> Result<Dispatched, Error> {
        if self.lead.leading().is_none() {
            return Ok(Dispatched::default());
        }
        self.fleet.refresh().await?;
        self.dispatch().await
    }

    pub(super) async fn keep_dispatching(self: Arc<Self>) {
        let mut may_be_behind = true;
        loop {
            let round = async {
                if self.has_offers_to_look_at() && self.lead.leading().is_some() {
                    // A broker that is down costs time: offers that nobody received are made to others later.
                    if let Err(error) = self.offers_once().await {
                        tracing::warn!(%error, "unsent offers wait");
                    }
                }
                if may_be_behind { self.dispatch_once().await } else { self.dispatch().await }
            };
            let pause = match round.await {
                Ok(_) => self.until_something_is_due(),
                Err(error) => {
                    tracing::warn!(%error, "the dispatcher could not finish its round");
                    Some(AFTER_A_FAILURE)
                }
            };
            let timer = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            may_be_behind = tokio::select! {
                () = self.core.stop.cancelled() => return,
                // The view has just been brought up to date by whoever rang.
                () = self.moved.notified() => false,
                () = timer => true,
            };
        }
    }

    /// How long nothing changes by the clock alone. `None`: until somebody rings.
    fn until_something_is_due(&self) -> Option<Duration> {
        self.lead.leading()?;
        if self.has_offers_to_look_at() {
            return Some(AFTER_A_FAILURE);
        }
        let now = self.core.store_now();
        let state = self.fleet.view.lock();
        if state.queue.is_empty() {
            return None;
        }
        let change = state.queue.next_change().map_or(SAFETY, |at| at.since(now) + Duration::from_millis(1));
        Some(change.min(SAFETY))
    }

    async fn dispatch(&self) -> Result<Dispatched, Error> {
        let mut done = Dispatched::default();
        let mut offered: HashSet<JobId> = HashSet::new();
        let mut budgets_asked_for = BTreeSet::new();
        for _ in 0..ROUNDS {
            let Some(term) = self.lead.leading() else { return Ok(done) };
            self.refresh_heartbeats_before_planning().await?;
            let mut chosen = self.choose();
            if self.ask_for_budgets_again(&chosen, &mut budgets_asked_for).await? {
                chosen = self.choose();
            }
            // Its deadline cannot be over yet: whatever the reason, this would go on for ever.
            if let Some(again) = chosen.iter().find(|chosen| offered.contains(&chosen.offer.job)) {
                tracing::warn!(job = %again.offer.job, "it would be offered again at once; do the clocks differ?");
                break;
            }
            if chosen.is_empty() || !self.offer(term, chosen, &mut done).await? {
                break;
            }
            offered.extend(done.offered[offered.len()..].iter().map(|offer| offer.job_id));
            self.fleet.refresh().await?;
        }
        if let Some(term) = self.lead.leading() {
            self.preempt(term).await?;
        }
        self.shadow_once().await?;
        self.mirror_dead_letters().await;
        Ok(done)
    }

    /// Makes and publishes the offers. Says whether another plan may find more.
    async fn offer(&self, term: Term, chosen: Vec<Chosen>, done: &mut Dispatched) -> Result<bool, Error> {
        let wanted: Vec<NewOffer> = chosen.iter().map(|chosen| chosen.offer.clone()).collect();
        let made = match self
            .core
            .store
            .offer(MakeOffers { term, chosen: wanted, pickup: self.fleet.flag_millis("pickup_ms") })
            .await
        {
            Ok(made) => made,
            Err(error @ StoreError::StaleTerm { .. }) => {
                tracing::warn!(%error, "nothing was offered");
                self.lead.somebody_else_leads();
                return Ok(false);
            }
            Err(error) => {
                // It may have been carried out all the same.
                self.offers_may_wait();
                return Err(error.into());
            }
        };
        let metrics = &self.core.metrics.dispatch;
        let mut offers = Vec::with_capacity(made.len());
        for (chosen, offer) in chosen.into_iter().zip(made) {
            let Some(offer) = offer else {
                done.lost += 1;
                continue;
            };
            metrics.offers.inc();
            metrics.lag.observe(chosen.waited.as_secs_f64());
            if offer.dispatch_seq.0 > 1 {
                metrics.reoffers.inc();
            }
            if chosen.again {
                metrics.pickup_expiries.inc();
            }
            offers.push(offer);
        }
        if let Err(error) = self.publish(&offers).await {
            tracing::warn!(%error, "offers wait to be sent");
            self.offers_may_wait();
        }
        let any = !offers.is_empty();
        done.offered.extend(offers);
        Ok(any)
    }

    fn choose(&self) -> Vec<Chosen> {
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        state.queue.settle(now);
        if !state.queue.has_ready() {
            return Vec::new();
        }
        let snapshot = self.fleet.snapshot(&state, now, Whom::Targeted);
        if snapshot.factories.is_empty() {
            return Vec::new();
        }
        let policy = state.policy(now, Whom::Targeted);
        let plan = plan_offers(&state.queue, &snapshot, now, &policy, TOGETHER);
        let chosen = |placement: giga_scheduler::Placement| {
            let job = state.queue.get(placement.job)?;
            let missed = job.offered_to.as_ref().map(|(_, deadline)| *deadline);
            Some(Chosen {
                offer: NewOffer { job: placement.job, rev: placement.rev, factory: placement.factory },
                waited: now.since(missed.unwrap_or(job.enqueued_at).max(job.ready_at)),
                again: missed.is_some(),
                product: job.product.clone(),
            })
        };
        plan.placements.into_iter().filter_map(chosen).collect()
    }

    /// A job that nobody picked up may have been refused because of its budget, whose row can change without an event:
    /// a run that overruns sets more aside. Asked once per dispatch and product; says whether anything was asked.
    async fn ask_for_budgets_again(
        &self,
        chosen: &[Chosen],
        asked_for: &mut BTreeSet<ProductId>,
    ) -> Result<bool, StoreError> {
        let doubtful: BTreeSet<ProductId> = {
            let mut state = self.fleet.view.lock();
            let again = chosen.iter().filter(|chosen| chosen.again).map(|chosen| &chosen.product);
            let doubtful = again.filter(|id| state.tenants.is_limited(id) && !asked_for.contains(*id));
            let doubtful: BTreeSet<ProductId> = doubtful.cloned().collect();
            doubtful.iter().cloned().for_each(|product| state.tenants.doubt(product));
            doubtful
        };
        if doubtful.is_empty() {
            return Ok(false);
        }
        asked_for.extend(doubtful);
        self.fleet.refresh().await?;
        Ok(true)
    }

    /// Before a factory is passed over as silent: its heartbeats may go to another coordinator.
    async fn refresh_heartbeats_before_planning(&self) -> Result<(), StoreError> {
        let in_doubt = {
            let now = self.core.store_now();
            let mut state = self.fleet.view.lock();
            state.queue.settle(now);
            state.queue.has_ready() && self.fleet.misses_somebody(&state, now)
        };
        if in_doubt { self.fleet.read_heartbeats_if_due().await } else { Ok(()) }
    }

    async fn mirror_dead_letters(&self) {
        let mut letters = self.take_letters();
        while let Some(letter) = letters.pop_front() {
            if let Err(error) = self.core.within_patience(self.core.broker.dead_letter(&letter)).await {
                let others = letters.len();
                tracing::warn!(%error, job = %letter.job_id, others, "dead letters could not be mirrored");
                return;
            }
        }
    }
}
