//! The dispatcher: one leader plans, offers and publishes; whoever holds a factory's stream takes its offers.
//!
//! Nothing here is remembered that matters: a leader that dies takes only hints with it, and the next one finds all that
//! it needs in the jobs, the unsent offers and the feed. An offer never carries truth; the claim in the store decides.

mod dispatcher;
mod leader;
mod merges;
mod metrics;
mod offers;
mod preemption;
mod reopening;
mod shadow;
mod streams;

pub use dispatcher::Dispatched;
pub use shadow::{Diverged, ShadowReport};
pub use streams::{FactoryStream, Grant, StreamEvent};

pub(crate) use leader::Lead;
pub(crate) use metrics::DispatchMetrics;
pub(crate) use shadow::RESERVED_FACTORY;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use giga_domain::{Event, EventKind, Job};
use giga_ports::broker::DeadLetter;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::claims::Claims;
use crate::core::Core;
use crate::effects::Effects;
use crate::view::{Fleet, Follower};
use merges::DueMerges;
use shadow::Shadow;
use streams::Streams;

/// Dead letters that wait to be mirrored; more are dropped, for the mirror is a hint.
const LETTERS: usize = 1_000;

/// The dispatcher of this node, and the factories whose streams it holds.
pub struct Dispatch {
    core: Arc<Core>,
    fleet: Arc<Fleet>,
    claims: Arc<Claims>,
    effects: Arc<Effects>,
    lead: Arc<Lead>,
    /// Rung when the view has moved or the lead was won: there may be something to place.
    moved: Notify,
    /// The broker may lack an unsent offer.
    offers_may_wait: AtomicBool,
    letters: Mutex<VecDeque<DeadLetter>>,
    streams: Streams,
    shadow: Shadow,
    merges: DueMerges,
}

impl Dispatch {
    pub(crate) fn new(
        core: Arc<Core>,
        fleet: Arc<Fleet>,
        claims: Arc<Claims>,
        effects: Arc<Effects>,
        lead: Arc<Lead>,
    ) -> Self {
        Self {
            core,
            fleet,
            claims,
            effects,
            lead,
            moved: Notify::new(),
            offers_may_wait: AtomicBool::new(false),
            letters: Mutex::default(),
            streams: Streams::default(),
            shadow: Shadow::default(),
            merges: DueMerges::default(),
        }
    }

    pub(crate) fn spawn(self: &Arc<Self>) {
        self.core.tasks.spawn(self.clone().keep_the_lead());
        self.core.tasks.spawn(self.clone().keep_dispatching());
        self.core.tasks.spawn(self.clone().measure_shadow_lag());
        self.core.tasks.spawn(self.clone().watch_merges());
    }

    fn keep_letter(&self, event: &Event) {
        let (Some((job_id, _)), Some(product_id)) = (event.job, event.product.clone()) else { return };
        let mut letters = self.letters.lock();
        if letters.len() < LETTERS {
            let reason = event.cause.clone();
            letters.push_back(DeadLetter { job_id, product_id, topic: None, reason, at: event.at });
        }
    }

    fn take_letters(&self) -> VecDeque<DeadLetter> {
        std::mem::take(&mut *self.letters.lock())
    }
}

impl Follower for Dispatch {
    fn sees(&self, events: &[Event]) {
        let leads = self.lead.leading().is_some();
        for event in events {
            self.core.metrics.sees(event);
            match event.kind {
                EventKind::BudgetResumed | EventKind::BudgetChanged => {
                    self.budgets_moved(event.product.as_ref());
                }
                EventKind::EvictionAsked
                | EventKind::QuestionAnswered
                | EventKind::QuestionExpired
                | EventKind::MessageSent => self.pass_on_word(event),
                EventKind::Targeted => self.streams.expect_offer(event),
                EventKind::Assigned => self.shadow.claimed(event),
                EventKind::Diverged => {
                    self.core.metrics.dispatch.divergences.inc();
                    self.shadow.diverged(event);
                }
                EventKind::DeadLettered if leads => self.keep_letter(event),
                _ => {}
            }
        }
        self.moved.notify_one();
    }

    fn sees_jobs(&self, jobs: &[Job]) {
        self.see_merges(jobs);
    }

    fn flags_changed(&self) {
        self.delivery_modes_changed();
    }
}
