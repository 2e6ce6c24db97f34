//! Taking a claim, however a factory came by the job: by polling, by an offer, by its own choice.
//!
//! [`Claims::take_job`] is the only place that asks the store for a job. It keeps the metrics and the view in step with
//! the answer, so a way of claiming cannot forget either.

mod polling;
mod self_select;

pub(crate) use polling::ClaimAsk;
pub use self_select::Candidate;

use std::sync::Arc;

use giga_domain::budget::Closed;
use giga_domain::{DispatchSeq, FactoryId, Job, JobId, Offer, RequestId, Rev, Stage};
use giga_ports::StoreError;
use giga_ports::store::{Claim, Claimed, Lost};

use tokio::sync::mpsc;

use crate::Error;
use crate::core::Core;
use crate::view::Fleet;

#[derive(Debug, Clone)]
pub struct Accept {
    pub job: JobId,
    pub factory: FactoryId,
    pub dispatch_seq: DispatchSeq,
    pub request: RequestId,
}

/// What the claim goes by; the store refuses it where that has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Basis {
    /// A plan for this revision of the job.
    Planned(Rev),
    /// This offer of it.
    Offered(DispatchSeq),
    /// The factory's own choice.
    Chosen,
}

/// Takes the claims of all factories.
pub struct Claims {
    core: Arc<Core>,
    fleet: Arc<Fleet>,
    asks: mpsc::Sender<ClaimAsk>,
}

impl Claims {
    pub(crate) fn new(core: Arc<Core>, fleet: Arc<Fleet>) -> (Self, mpsc::Receiver<ClaimAsk>) {
        let (asks, asked) = mpsc::channel(1024);
        (Self { core, fleet, asks }, asked)
    }

    /// Takes an offered job. Repeating a request returns what it was granted.
    pub async fn accept(&self, accept: Accept) -> Result<Job, Error> {
        let Accept { job, factory, dispatch_seq, request } = accept;
        let taken = self.take_job(job, Basis::Offered(dispatch_seq), factory, request).await?;
        taken.map_err(|lost| Error::NotYours(why(&lost)))
    }

    /// Claims what was offered to the factory. `None`: it cannot be claimed any more, or the factory is at it already.
    pub async fn take_offer(&self, factory: &FactoryId, offer: &Offer) -> Result<Option<Job>, StoreError> {
        self.take_offered(factory, offer.job_id, offer.dispatch_seq).await
    }

    pub(crate) async fn take_offered(
        &self,
        factory: &FactoryId,
        job: JobId,
        dispatch_seq: DispatchSeq,
    ) -> Result<Option<Job>, StoreError> {
        // The same for every delivery of the offer: after a lost reply it finds its own grant.
        let request = format!("offer:{job}:{dispatch_seq}").parse().map_err(StoreError::broken)?;
        match self.take_job(job, Basis::Offered(dispatch_seq), factory.clone(), request).await {
            Ok(taken) => Ok(taken.ok().filter(|job| job.stage() == Stage::Assigned)),
            Err(error) if error.is_transient() => Err(error),
            // A message that can never be claimed must not come back for ever.
            Err(error) => {
                tracing::warn!(%factory, %job, %error, "an offer cannot be taken");
                Ok(None)
            }
        }
    }

    /// Claims the job for the factory, or says why it cannot be claimed.
    pub(crate) async fn take_job(
        &self,
        job: JobId,
        basis: Basis,
        factory: FactoryId,
        request: RequestId,
    ) -> Result<Result<Job, Lost>, StoreError> {
        let (rev, dispatch_seq) = match basis {
            Basis::Planned(rev) => (Some(rev), None),
            Basis::Offered(seq) => (None, Some(seq)),
            Basis::Chosen => (None, None),
        };
        let offered_at = dispatch_seq.and_then(|_| self.fleet.offered_at(job));
        let lease = self.fleet.flag_millis("lease_ms");
        match self.core.store.claim(Claim { job, rev, dispatch_seq, factory, request, lease }).await? {
            Claimed::Granted(job) => {
                self.core.metrics.picked_up(&job, offered_at);
                self.fleet.view.lock().put_claimed(&job);
                Ok(Ok(job))
            }
            Claimed::Lost(lost) => {
                tracing::debug!(%job, ?lost, "a claim lost its race");
                self.claim_lost(job, &lost);
                Ok(Err(lost))
            }
        }
    }

    /// A claim that was refused for want of money is no race that was lost: the view is wrong about the budget, and would
    /// lead to the same job again.
    fn claim_lost(&self, job: JobId, lost: &Lost) {
        self.core.metrics.jobs.claim_conflicts.inc();
        if matches!(lost, Lost::Budget(_)) {
            self.core.metrics.jobs.budget_conflicts.inc();
            let mut state = self.fleet.view.lock();
            if let Some(product) = state.queue.get(job).map(|job| job.product.clone()) {
                state.tenants.doubt(product);
            }
        }
    }
}

impl Fleet {
    /// Whether the factory may ask for work; this counts as a sign of life.
    pub(crate) fn may_claim(&self, factory: &FactoryId) -> Result<(), Error> {
        match self.view.lock().factories.get(factory).map(|f| f.advertised.seat_limit) {
            None => return Err(StoreError::NoSuchFactory(factory.clone()).into()),
            Some(0) => return Err(Error::NoHeartbeat(factory.clone())),
            Some(_) => {}
        }
        self.presence.touch(factory, self.core.store_now());
        Ok(())
    }
}

/// For whoever asked for this very job.
fn why(lost: &Lost) -> &'static str {
    match lost {
        Lost::Gone(why) | Lost::NotAllowed(why) => why,
        Lost::NoSeat => "the factory has no free seat",
        Lost::InUse => "what it needs by number is in use on the factory",
        Lost::KeyBusy => "its concurrency key is at its limit",
        Lost::Budget(Closed::Paused) => "its product's budget is closed",
        Lost::Budget(Closed::Short { .. }) => "its product's budget has too little left for it",
    }
}
