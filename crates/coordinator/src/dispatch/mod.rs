//! The dispatcher: one leader plans, offers and publishes; whoever holds a factory's stream takes its offers.
//!
//! Nothing here is remembered that matters: a leader that dies takes only hints with it, and the next one finds all that
//! it needs in the jobs, the outbox and the feed. An offer never carries truth; the claim in the store decides.

mod dispatcher;
mod leader;
mod metrics;
mod outbox;
mod shadow;
mod streams;

pub use dispatcher::Dispatched;
pub use shadow::{Diverged, ShadowReport};
pub use streams::{FactoryStream, Grant, StreamEvent};

pub(crate) use metrics::DispatchMetrics;
pub(crate) use shadow::RESERVED_FACTORY;

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use giga_domain::{Event, EventKind, Timestamp};
use giga_ports::broker::DeadLetter;
use tokio::sync::Notify;

use crate::Coordinator;
use leader::Lead;
use shadow::Shadow;
use streams::Streams;

/// Dead letters that wait to be mirrored; more are dropped, for the mirror is a hint.
const LETTERS: usize = 1_000;

/// What this node knows of the lead, and the factories whose streams it holds.
#[derive(Default)]
pub(crate) struct Dispatch {
    lead: Lead,
    /// Rung when the view has moved or the lead was won: there may be something to place.
    moved: Notify,
    /// The broker may lack an offer that stands in the outbox.
    outbox_may_wait: AtomicBool,
    /// When the signs of life were last read from the store.
    looked_for_life: Mutex<Option<Timestamp>>,
    letters: Mutex<VecDeque<DeadLetter>>,
    streams: Streams,
    shadow: Shadow,
}

impl Coordinator {
    pub(crate) fn spawn_dispatch(self: &Arc<Self>) {
        self.tasks.spawn(self.clone().keep_the_lead());
        self.tasks.spawn(self.clone().keep_dispatching());
        self.tasks.spawn(self.clone().measure_shadow_lag());
    }

    /// Somebody gave the lead up: try for it now.
    pub(crate) fn leader_left(&self) {
        self.dispatch.lead.left();
    }

    /// Something changed that is no event.
    pub(crate) fn dispatch_may_find_more(&self) {
        self.dispatch.moved.notify_one();
    }

    /// What the feed has shown, once the view has it too.
    pub(crate) fn dispatch_sees(&self, events: &[Event]) {
        let leads = self.leading().is_some();
        for event in events {
            self.metrics.sees(event);
            match event.kind {
                EventKind::BudgetResumed | EventKind::BudgetChanged => {
                    self.budgets_moved(event.product.as_ref());
                }
                EventKind::EvictionAsked => self.pass_on_eviction(event),
                EventKind::Targeted => self.dispatch.streams.expect_offer(event),
                EventKind::Assigned => self.dispatch.shadow.claimed(event),
                EventKind::Diverged => {
                    self.metrics.dispatch.divergences.inc();
                    self.dispatch.shadow.diverged(event);
                }
                EventKind::DeadLettered if leads => self.dispatch.keep_letter(event),
                _ => {}
            }
        }
        self.dispatch.moved.notify_one();
    }
}

impl Dispatch {
    /// Whether the last look at the signs of life is long enough ago; if so, the next is now.
    pub(crate) fn may_look_for_life(&self, now: Timestamp, every: Duration) -> bool {
        let mut looked = self.looked_for_life.lock().unwrap_or_else(PoisonError::into_inner);
        let due = looked.is_none_or(|at| now.since(at) >= every);
        if due {
            *looked = Some(now);
        }
        due
    }

    fn keep_letter(&self, event: &Event) {
        let (Some((job_id, _)), Some(product_id)) = (event.job, event.product.clone()) else { return };
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        if letters.len() < LETTERS {
            let reason = event.cause.clone();
            letters.push_back(DeadLetter { job_id, product_id, topic: None, reason, at: event.at });
        }
    }

    fn take_letters(&self) -> VecDeque<DeadLetter> {
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
