//! Effects: from the feed into the outbox, from the outbox to webhooks, trackers and forges.
//!
//! The leader does both, and nothing breaks where two believe that they lead: the outbox moves its cursor by
//! compare-and-set and hands every effect to one sender at a time. Nothing that matters is kept here.

mod deliver;
mod fan_out;
mod metrics;
mod receiver_backoff;
mod requests;
mod trackers;
mod webhooks;

pub use trackers::{Ingested, job_name, tracked_body, tracker_key};
pub use webhooks::{AddWebhook, WEBHOOK_TEST};

pub(crate) use metrics::EffectMetrics;

use std::sync::Arc;

use giga_domain::{Event, EventKind, FeedPos, Job, Webhook, WebhookId};
use giga_ports::StoreError;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::core::Core;
use crate::dispatch::Lead;
use crate::hints::Hints;
use crate::view::{Fleet, Follower};
use receiver_backoff::ReceiverBackoff;
use requests::OpenRequests;

/// Sends effects. What this node knows of the outbox are copies, which may be old.
pub struct Effects {
    core: Arc<Core>,
    fleet: Arc<Fleet>,
    lead: Arc<Lead>,
    hints: Arc<Hints>,
    port: Arc<dyn giga_ports::Effects>,
    known: Mutex<Known>,
    backoff: Mutex<ReceiverBackoff>,
    /// Rung when the feed has moved, or somebody new listens.
    moved: Notify,
    /// Rung when something may be due.
    due: Notify,
    requests: Mutex<OpenRequests>,
    /// Rung when something happened to a pull request, or there is one more.
    look: Notify,
}

#[derive(Default)]
struct Known {
    webhooks: Option<Arc<Vec<Webhook>>>,
    /// Counts how often the list was marked as old: one that was read before that is not kept.
    generation: u64,
    /// Where the cursor in the store stands, and how far the feed was read with nothing to tell.
    cursor: Option<(FeedPos, FeedPos)>,
}

impl Known {
    fn forget_webhooks(&mut self) {
        self.webhooks = None;
        self.generation += 1;
    }
}

impl Effects {
    pub(crate) fn new(
        core: Arc<Core>,
        fleet: Arc<Fleet>,
        lead: Arc<Lead>,
        hints: Arc<Hints>,
        port: Arc<dyn giga_ports::Effects>,
    ) -> Self {
        Self {
            core,
            fleet,
            lead,
            hints,
            port,
            known: Mutex::default(),
            backoff: Mutex::default(),
            moved: Notify::new(),
            due: Notify::new(),
            requests: Mutex::default(),
            look: Notify::new(),
        }
    }

    fn backoff(&self) -> MutexGuard<'_, ReceiverBackoff> {
        self.backoff.lock()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }

    pub(crate) fn spawn(self: &Arc<Self>) {
        self.core.tasks.spawn(self.clone().keep_fanning_out());
        self.core.tasks.spawn(self.clone().keep_delivering());
        if !self.port.forges().is_empty() {
            self.core.tasks.spawn(self.clone().keep_looking());
        }
    }

    /// Something may have been put into the outbox, here or elsewhere.
    pub(crate) fn may_wait(&self) {
        self.due.notify_one();
    }

    /// This node leads from here on: whatever it knew may be old.
    pub(crate) fn start_over(&self) {
        {
            let mut known = self.known();
            known.forget_webhooks();
            known.cursor = None;
        }
        self.moved.notify_one();
        self.due.notify_one();
        self.look.notify_one();
    }

    /// As far as is known here; whoever is added rings.
    fn nobody_listens(&self) -> bool {
        let webhooks = self.known().webhooks.clone();
        webhooks.is_some_and(|webhooks| webhooks.is_empty())
            && self.port.trackers().is_empty()
            && self.port.forges().is_empty()
    }

    async fn known_webhooks(&self) -> Result<Arc<Vec<Webhook>>, StoreError> {
        let generation = {
            let known = self.known();
            if let Some(webhooks) = known.webhooks.clone() {
                return Ok(webhooks);
            }
            known.generation
        };
        let webhooks = Arc::new(self.core.store.read().webhooks().await?);
        let mut known = self.known();
        if known.generation == generation {
            known.webhooks = Some(webhooks.clone());
        }
        Ok(webhooks)
    }

    /// The webhook, looked for again where this node has not heard of it.
    async fn known_webhook(&self, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
        let find = |webhooks: &[Webhook]| webhooks.iter().find(|webhook| webhook.id == id).cloned();
        if let Some(webhook) = find(&self.known_webhooks().await?) {
            return Ok(Some(webhook));
        }
        self.known().forget_webhooks();
        Ok(find(&self.known_webhooks().await?))
    }
}

impl Follower for Effects {
    fn sees(&self, events: &[Event]) {
        if change_webhooks(events) {
            self.known().forget_webhooks();
        }
        if events.iter().any(|event| event.kind == EventKind::EffectRevived) {
            self.due.notify_one();
        }
        self.moved.notify_one();
    }

    fn sees_jobs(&self, jobs: &[Job]) {
        self.see_requests(jobs);
    }
}

/// Whoever knows the webhooks from before these events knows an old list.
fn change_webhooks(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event.kind, EventKind::WebhookAdded | EventKind::WebhookRemoved))
}
