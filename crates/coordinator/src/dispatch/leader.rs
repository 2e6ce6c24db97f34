//! Who leads: a lease row in the store, renewed at half its time.
//!
//! This node believes that it leads for a lease from the moment at which it *asked*, never from the answer, so it stops
//! before the store would let anybody else begin. Should it be wrong about the time, the store refuses its term.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use giga_domain::{Term, Timestamp};
use giga_ports::StoreError;
use giga_ports::broker::Hint;
use giga_ports::store::{StepDown, TakeLead};
use tokio::sync::Notify;

use crate::Coordinator;

/// A follower that cannot tell how long the lead is taken, because the clocks differ, still asks no more often than a
/// twentieth of a lease.
const PATIENCE: u32 = 20;
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// How long a coordinator that stops waits for the others to hear of it.
const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Lead {
    held: Mutex<Option<Held>>,
    left: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    term: Term,
    until: Timestamp,
}

impl Lead {
    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn left(&self) {
        self.left.notify_one();
    }
}

impl Coordinator {
    /// The term that this node leads in, as far as it knows.
    pub fn leading(&self) -> Option<Term> {
        let now = self.clock.now();
        self.dispatch.lead.lock().filter(|held| held.until > now).map(|held| held.term)
    }

    /// Takes or keeps the lead where it is to be had. Says the term where this node has it.
    pub async fn lead_once(&self) -> Result<Option<Term>, StoreError> {
        self.ask_for_the_lead().await.map(|(term, _)| term)
    }

    /// The term, and how long there is no need to ask again.
    async fn ask_for_the_lead(&self) -> Result<(Option<Term>, Duration), StoreError> {
        let asked_at = self.clock.now();
        let lease = self.options.lead_lease;
        let leader = self.store.lead(TakeLead { node: self.node.clone(), lease }).await?;
        if leader.node != self.node {
            self.lose_the_lead();
            let rest = leader.expires_at.since(self.store_now()).clamp(lease / PATIENCE, lease);
            return Ok((None, rest + self.jitter(lease / PATIENCE)));
        }
        self.store_clock.learn(leader.expires_at.minus(lease), asked_at, self.clock.now());
        let before =
            self.dispatch.lead.lock().replace(Held { term: leader.term, until: asked_at.plus(lease) });
        if before.is_none_or(|held| held.term != leader.term) {
            tracing::info!(term = %leader.term, "this coordinator dispatches");
            self.metrics.dispatch.leader.set(1);
            self.metrics.dispatch.term.set(leader.term.0.cast_signed());
            // The one before may have died between an offer and its publication.
            self.outbox_may_wait();
            self.dispatch.shadow.start_over();
            self.dispatch.moved.notify_one();
            self.effects_start_over();
        } else if before.is_some_and(|held| held.until <= asked_at) {
            // The lead had lapsed, and whoever looked meanwhile saw nobody lead.
            self.effects_start_over();
        }
        Ok((Some(leader.term), lease / 2))
    }

    /// Somebody else leads, or may.
    pub(super) fn lose_the_lead(&self) {
        if let Some(held) = self.dispatch.lead.lock().take() {
            tracing::info!(term = %held.term, "this coordinator does not dispatch any more");
            self.metrics.dispatch.leader.set(0);
            self.metrics.dispatch.outbox_age_ms.set(0);
        }
    }

    /// The store refused this node's term.
    pub(crate) fn somebody_else_leads(&self) {
        self.lose_the_lead();
        self.leader_left();
    }

    /// Gives the lead up, where this node has it, so that nobody has to wait for its end.
    pub async fn step_down_once(&self) -> Result<(), StoreError> {
        let Some(held) = self.dispatch.lead.lock().take() else { return Ok(()) };
        self.metrics.dispatch.leader.set(0);
        self.store.step_down(StepDown { node: self.node.clone(), term: held.term }).await
    }

    pub(super) async fn keep_the_lead(self: Arc<Self>) {
        loop {
            let pause = match self.ask_for_the_lead().await {
                Ok((_, pause)) => pause,
                Err(error) => {
                    tracing::warn!(%error, "the lead could not be asked for");
                    if self.leading().is_none() {
                        self.lose_the_lead();
                    }
                    AFTER_A_FAILURE + self.jitter(AFTER_A_FAILURE)
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
                // Also where this node believes that it leads: it may be the one that was wrong.
                () = self.dispatch.lead.left.notified() => {}
            }
        }
        self.say_farewell().await;
    }

    async fn say_farewell(&self) {
        if self.leading().is_none() {
            return;
        }
        if let Err(error) = self.step_down_once().await {
            tracing::warn!(%error, "the lead could not be given up; it ends by itself");
            return;
        }
        // Told here and now: the task that tells hints is stopping too.
        let told = tokio::time::timeout(FAREWELL, self.broker.hint(&Hint::Leaderless)).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::warn!("the others could not be told that there is no leader; they find out by time");
        }
    }

    /// Up to `most`, so that many that wait for the same moment do not all come at it.
    pub(super) fn jitter(&self, most: Duration) -> Duration {
        let bytes = self.random.bytes();
        most.mul_f64(f64::from(u16::from_be_bytes([bytes[0], bytes[1]])) / f64::from(u16::MAX))
    }
}
