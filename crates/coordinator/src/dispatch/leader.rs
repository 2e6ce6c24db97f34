//! Who leads: a lease row in the store, renewed at half its time.
//!
//! This node believes that it leads for a lease from the moment at which it *asked*, never from the answer, so it stops
//! before the store would let anybody else begin. Should it be wrong about the time, the store refuses its term.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Term, Timestamp};
use giga_ports::StoreError;
use giga_ports::broker::Hint;
use giga_ports::store::{StepDown, TakeLead};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Dispatch;
use crate::core::Core;

/// A follower that cannot tell how long the lead is taken, because the clocks differ, still asks no more often than a
/// twentieth of a lease.
const PATIENCE: u32 = 20;
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// How long a coordinator that stops waits for the others to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);

/// Whether this node leads, as far as it knows.
pub(crate) struct Lead {
    core: Arc<Core>,
    held: Mutex<Option<Held>>,
    left: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    term: Term,
    until: Timestamp,
}

impl Lead {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, held: Mutex::default(), left: Notify::new() }
    }

    /// The term that this node leads in.
    pub(crate) fn leading(&self) -> Option<Term> {
        let now = self.core.clock.now();
        self.held.lock().filter(|held| held.until > now).map(|held| held.term)
    }

    /// Somebody gave the lead up: try for it now.
    pub(crate) fn left(&self) {
        self.left.notify_one();
    }

    /// Somebody else leads, or may.
    fn lose(&self) {
        if let Some(held) = self.held.lock().take() {
            tracing::info!(term = %held.term, "this coordinator does not dispatch any more");
            self.core.metrics.dispatch.leader.set(0);
            self.core.metrics.dispatch.offers_age_ms.set(0);
        }
    }

    /// The store refused this node's term.
    pub(crate) fn somebody_else_leads(&self) {
        self.lose();
        self.left();
    }
}

impl Dispatch {
    /// Somebody gave the lead up: try for it now.
    pub(crate) fn leader_left(&self) {
        self.lead.left();
    }

    /// The term that this node leads in, as far as it knows.
    pub fn leading(&self) -> Option<Term> {
        self.lead.leading()
    }

    /// Takes or keeps the lead where it is to be had. Says the term where this node has it.
    pub async fn lead_once(&self) -> Result<Option<Term>, StoreError> {
        self.ask_for_the_lead().await.map(|(term, _)| term)
    }

    /// The term, and how long there is no need to ask again.
    async fn ask_for_the_lead(&self) -> Result<(Option<Term>, Duration), StoreError> {
        let asked_at = self.core.clock.now();
        let lease = self.core.options.lead_lease;
        let leader = self.core.store.lead(TakeLead { node: self.core.node.clone(), lease }).await?;
        if leader.node != self.core.node {
            self.lead.lose();
            let rest = leader.expires_at.since(self.core.store_now()).clamp(lease / PATIENCE, lease);
            return Ok((None, rest + self.core.jitter(lease / PATIENCE)));
        }
        self.core.store_clock.learn(leader.expires_at.minus(lease), asked_at, self.core.clock.now());
        let before = self.lead.held.lock().replace(Held { term: leader.term, until: asked_at.plus(lease) });
        if before.is_none_or(|held| held.term != leader.term) {
            tracing::info!(term = %leader.term, "this coordinator dispatches");
            self.core.metrics.dispatch.leader.set(1);
            self.core.metrics.dispatch.term.set(leader.term.0.cast_signed());
            // The one before may have died between an offer and its publication.
            self.offers_may_wait();
            self.shadow.start_over();
            self.moved.notify_one();
            self.effects.start_over();
        } else if before.is_some_and(|held| held.until <= asked_at) {
            // The lead had lapsed, and whoever looked meanwhile saw nobody lead.
            self.effects.start_over();
        }
        Ok((Some(leader.term), lease / 2))
    }

    /// Gives the lead up, where this node has it, so that nobody has to wait for its end.
    pub async fn step_down_once(&self) -> Result<(), StoreError> {
        let Some(held) = self.lead.held.lock().take() else { return Ok(()) };
        self.core.metrics.dispatch.leader.set(0);
        self.core.store.step_down(StepDown { node: self.core.node.clone(), term: held.term }).await
    }

    pub(super) async fn keep_the_lead(self: Arc<Self>) {
        loop {
            let pause = match self.ask_for_the_lead().await {
                Ok((_, pause)) => pause,
                Err(error) => {
                    tracing::warn!(%error, "the lead could not be asked for");
                    if self.leading().is_none() {
                        self.lead.lose();
                    }
                    AFTER_A_FAILURE + self.core.jitter(AFTER_A_FAILURE)
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
                // Also where this node believes that it leads: it may be the one that was wrong.
                () = self.lead.left.notified() => {}
            }
        }
        self.say_farewell().await;
    }

    async fn say_farewell(&self) {
        if self.leading().is_none() {
            return;
        }
        if let Err(error) = self.step_down_once().await {
            tracing::warn!(%error, "the lead could not be given up; it expires");
            return;
        }
        // Sent here and now: the task that sends hints is stopping too.
        let sent = tokio::time::timeout(FAREWELL, self.core.broker.hint(&Hint::Leaderless)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::warn!(
                "the other coordinators could not be notified that there is no leader; they will notice when the lease ends"
            );
        }
    }
}
