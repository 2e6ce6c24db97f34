//! Critical jobs without a place: whom the leader asks to let go for them.
//!
//! Asking is all that happens here. The holder hears it with its next renewal, which a word down its stream brings
//! forward; it saves its work and releases. The seat that comes free goes to the job that it was given up for.

use std::collections::HashSet;
use std::time::Duration;

use giga_domain::{Actor, Event, JobId, Term};
use giga_ports::StoreError;
use giga_ports::store::{EvictJobs, NewEviction};
use giga_scheduler::{RunningJob, evictions};

use super::Dispatch;
use crate::Error;
use crate::view::{Fleet, ViewState, Whom};

/// How many holders one round asks.
const TOGETHER: usize = 16;

impl Dispatch {
    /// Asks holders to make room for critical jobs that a plan leaves without a place. Says how many were asked.
    pub(crate) async fn preempt(&self, term: Term) -> Result<usize, Error> {
        let victims = self.choose_victims();
        if victims.is_empty() {
            return Ok(0);
        }
        let grace = self.fleet.eviction_grace();
        let asked = match self
            .core
            .store
            .evict(EvictJobs { term: Some(term), asked: victims, grace, actor: Actor::system("dispatcher") })
            .await
        {
            Ok(asked) => asked.into_iter().filter(|asked| *asked).count(),
            Err(error @ StoreError::StaleTerm { .. }) => {
                tracing::warn!(%error, "no holder was asked to release its job");
                self.lead.somebody_else_leads();
                return Ok(0);
            }
            Err(error) => return Err(error.into()),
        };
        self.core.metrics.jobs.evictions_asked.inc_by(asked as u64);
        self.fleet.refresh().await?;
        Ok(asked)
    }

    fn choose_victims(&self) -> Vec<NewEviction> {
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        if state.flag("preemption") != true {
            return Vec::new();
        }
        state.queue.settle(now);
        if !state.queue.has_ready() {
            return Vec::new();
        }
        let policy = state.policy(now, Whom::Committed);
        let snapshot = self.fleet.snapshot(&state, now, Whom::Committed);
        let chosen = evictions(&state.queue, &state.running_jobs(), &snapshot, now, &policy, TOGETHER);
        let asked = chosen.into_iter().filter_map(|eviction| {
            let rev = state.running.get(&eviction.victim)?.rev;
            Some(NewEviction { job: eviction.victim, rev, for_job: Some(eviction.for_job) })
        });
        asked.collect()
    }

    /// A holder whose stream is here renews at once, and is told; others hear it with their next renewal.
    pub(crate) fn pass_on_word(&self, event: &Event) {
        let Some((job, _)) = event.job else { return };
        let holder = self.fleet.view.lock().running.get(&job).map(|running| running.factory.clone());
        if let Some(factory) = holder {
            self.news_for(&factory);
        }
    }
}

impl Fleet {
    /// Until the deadline of a holder that is asked to let go. It hears of it by renewing, which it does three times in the
    /// time of a lease, and has the time to save its work from then on.
    pub(crate) fn eviction_grace(&self) -> Duration {
        self.flag_millis("eviction_grace_ms") + self.flag_millis("lease_ms") / 3
    }

    /// Jobs whose holders are asked to let go.
    pub(crate) fn asked_to_let_go(&self) -> HashSet<JobId> {
        let state = self.view.lock();
        let asked = state.running.iter().filter(|(_, running)| running.evict.is_some());
        asked.map(|(id, _)| *id).collect()
    }
}

impl ViewState {
    pub(crate) fn running_jobs(&self) -> Vec<RunningJob> {
        let job = |(id, running): (&JobId, &crate::view::Running)| RunningJob {
            id: *id,
            product: running.product.clone(),
            priority: running.priority,
            factory: running.factory.clone(),
            started_at: running.granted_at,
            evictions: running.evictions,
            evict: running.evict,
        };
        self.running.iter().map(job).collect()
    }
}
