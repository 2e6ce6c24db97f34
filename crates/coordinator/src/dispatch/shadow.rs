//! Shadow mode: polling decides, the leader plans and publishes beside it, and the difference is recorded.
//!
//! Nothing acts on what is planned here: no target is set, and the offers go to a reader that only measures how long
//! they take. What is remembered is bounded and lost with the lead; what was found stands in the history of the jobs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{DispatchSeq, Event, FactoryId, JobId, Offer, ProductId, Timestamp};
use giga_ports::store::{Divergence, RecordDivergences};
use giga_scheduler::{JobView, plan_offers};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::Notify;

use super::Dispatch;
use crate::Error;
use crate::view::Whom;

/// Stands for every factory in shadow mode on the broker, so no factory may be called so.
pub(crate) const RESERVED_FACTORY: &str = "shadow";
/// How many plans are remembered until somebody claims the job.
const REMEMBERED: usize = 10_000;
/// How many divergences can be looked at.
const SHOWN: usize = 100;
/// How many jobs one plan places.
const TOGETHER: usize = 512;
/// Above every number that an offer of the store can have, so that no real offer is ever taken for a repetition.
const FIRST_SEQ: u64 = 1 << 52;
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// How well the dispatcher's plans agree with what polling does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShadowReport {
    /// Counted by the leader, since it leads.
    pub agreements: u64,
    /// Seen in the feed since this coordinator started.
    pub divergences: u64,
    /// The last of them, newest first.
    pub recent: Vec<Diverged>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diverged {
    pub job: JobId,
    pub product: Option<ProductId>,
    pub routed_to: String,
    pub claimed_by: String,
    pub lag_ms: u64,
    pub at: Timestamp,
}

#[derive(Default)]
pub(crate) struct Shadow {
    state: Mutex<State>,
    /// Rung when the first offer is about to be published.
    published: Notify,
}

#[derive(Default)]
struct State {
    routed: HashMap<JobId, Routed>,
    /// In the order of planning; may name jobs that were claimed since.
    order: VecDeque<JobId>,
    claimed: Vec<Claim>,
    /// Offers on their way through the broker.
    on_the_way: HashMap<u64, Timestamp>,
    last_seq: u64,
    report: ShadowReport,
}

struct Routed {
    to: FactoryId,
    at: Timestamp,
}

/// A job that was planned, and who took it.
struct Claim {
    job: JobId,
    routed: Routed,
    by: String,
    at: Timestamp,
}

impl Shadow {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A new leader plans afresh.
    pub(super) fn start_over(&self) {
        let mut state = self.lock();
        let report = std::mem::take(&mut state.report);
        *state = State { report: ShadowReport { agreements: 0, ..report }, ..State::default() };
    }

    pub(super) fn claimed(&self, event: &Event) {
        let (Some((job, _)), Some(by)) = (event.job, event.data.get("factoryId").and_then(Value::as_str))
        else {
            return;
        };
        let mut state = self.lock();
        if let Some(routed) = state.routed.remove(&job) {
            state.claimed.push(Claim { job, routed, by: by.to_owned(), at: event.at });
        }
    }

    pub(super) fn diverged(&self, event: &Event) {
        let Some((job, _)) = event.job else { return };
        let text = |name: &str| {
            let value = event.data.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut state = self.lock();
        state.report.divergences += 1;
        state.report.recent.insert(
            0,
            Diverged {
                job,
                product: event.product.clone(),
                routed_to: text("routedTo"),
                claimed_by: text("claimedBy"),
                lag_ms: event.data.get("lagMs").and_then(Value::as_u64).unwrap_or_default(),
                at: event.at,
            },
        );
        state.report.recent.truncate(SHOWN);
    }
}

impl State {
    fn remember(&mut self, job: JobId, routed: Routed) {
        self.routed.insert(job, routed);
        self.order.push_back(job);
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.routed.remove(&oldest);
            }
        }
    }

    /// The message that tells the reader, and nobody else, of a plan.
    fn message(&mut self, job: &JobView, reader: &FactoryId, now: Timestamp) -> Offer {
        self.last_seq += 1;
        if self.on_the_way.len() >= REMEMBERED {
            self.on_the_way.clear();
        }
        let seq = FIRST_SEQ + self.last_seq;
        self.on_the_way.insert(seq, now);
        Offer {
            job_id: job.id,
            dispatch_seq: DispatchSeq(seq),
            product_id: job.product.clone(),
            repo: None,
            caps: giga_domain::CapabilitySet::default(),
            priority: job.priority,
            target_factory_id: reader.clone(),
        }
    }
}

impl Dispatch {
    /// How the plans of shadow mode compare with what polling did.
    pub fn shadow_report(&self) -> ShadowReport {
        self.shadow.lock().report.clone()
    }

    /// Plans for the factories in shadow mode, and records what went otherwise.
    pub(super) async fn shadow_once(&self) -> Result<(), Error> {
        let messages = self.plan_in_the_shadow();
        if !messages.is_empty() {
            self.shadow.published.notify_one();
            if let Err(error) = self.core.within_patience(self.core.broker.publish(&messages)).await {
                tracing::debug!(%error, "shadow offers could not be published");
            }
        }
        self.compare_claims().await
    }

    fn plan_in_the_shadow(&self) -> Vec<Offer> {
        let now = self.core.store_now();
        let reader = reader();
        let mut state = self.fleet.view.lock();
        state.queue.settle(now);
        if !state.queue.has_ready() {
            return Vec::new();
        }
        let snapshot = self.fleet.snapshot(&state, now, Whom::Shadowed);
        if snapshot.factories.is_empty() {
            return Vec::new();
        }
        let policy = state.policy(now, Whom::Shadowed);
        let plan = plan_offers(&state.queue, &snapshot, now, &policy, TOGETHER);
        let mut shadow = self.shadow.lock();
        let mut messages = Vec::new();
        for placement in plan.placements {
            // Planned before and not claimed yet: the first plan stands.
            if shadow.routed.contains_key(&placement.job) {
                continue;
            }
            if let Some(job) = state.queue.get(placement.job) {
                messages.push(shadow.message(job, &reader, now));
                shadow.remember(placement.job, Routed { to: placement.factory, at: now });
            }
        }
        messages
    }

    async fn compare_claims(&self) -> Result<(), Error> {
        let claimed = std::mem::take(&mut self.shadow.lock().claimed);
        let mut divergences = Vec::new();
        for Claim { job, routed, by, at } in claimed {
            if routed.to.as_str() == by {
                self.core.metrics.dispatch.agreements.inc();
                self.shadow.lock().report.agreements += 1;
            } else if let Ok(claimed_by) = by.parse() {
                let lag_ms = u64::try_from(at.since(routed.at).as_millis()).unwrap_or(u64::MAX);
                divergences.push(Divergence { job, routed_to: routed.to, claimed_by, lag_ms });
            }
        }
        if divergences.is_empty() {
            return Ok(());
        }
        Ok(self.core.store.diverged(RecordDivergences { divergences }).await?)
    }

    /// Reads what was published in shadow mode, for no other end than to see how long it took. Asks the broker for
    /// nothing until something was published.
    pub(super) async fn measure_shadow_lag(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.shadow.published.notified() => {}
            }
            let reading = async {
                let mut offers = self.core.broker.consume(&reader()).await?;
                loop {
                    let delivered = offers.next().await?;
                    offers.ack(&delivered).await?;
                    let sent = self.shadow.lock().on_the_way.remove(&delivered.offer.dispatch_seq.0);
                    if let Some(sent) = sent {
                        let lag = self.core.store_now().since(sent);
                        self.core.metrics.dispatch.shadow_lag.observe(lag.as_secs_f64());
                    }
                }
            };
            let ended: Result<std::convert::Infallible, giga_ports::BrokerError> = tokio::select! {
                () = self.core.stop.cancelled() => return,
                ended = reading => ended,
            };
            let Err(error) = ended;
            tracing::debug!(%error, "shadow offers cannot be read");
            tokio::time::sleep(AFTER_A_FAILURE).await;
        }
    }
}

fn reader() -> FactoryId {
    RESERVED_FACTORY.parse().expect("the reader's name is a legal factory id")
}
