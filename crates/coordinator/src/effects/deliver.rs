//! From the outbox to the world: a line per receiver, one thing at a time in each, a bounded number of lines at once.
//!
//! A receiver that is slow or away holds up nobody but itself: what waits for it is not even looked at, and now and then
//! one thing is tried. Whatever cuts a line off, what it had taken comes back when its lease ends, under the same id.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use giga_domain::{Effect, EffectOutcome, EffectReceiver, EffectState, EffectTarget, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::{SettleEffect, TakeEffects};

use super::Effects;
use super::receiver_backoff::{Ended, Free};
use crate::Error;

/// Receivers that are spoken to at once.
const LINES: usize = 16;
/// How much is taken for one receiver at once.
const TAKE: usize = 128;
/// Longer than anything that is begun in it takes, an echo with all its calls included.
const LEASE: Duration = Duration::from_mins(1);
/// From here on in a line nothing new is begun.
const BEGIN_WITHIN: Duration = Duration::from_secs(8);
/// What has waited for longer for a receiver that does not come back is given up.
const PATIENCE: Duration = Duration::from_hours(72);
/// However the clocks differ, nobody asks more often.
const SHORTEST_SLEEP: Duration = Duration::from_millis(50);
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// Where no hint came and nothing was known to be due: somebody's word may have been lost.
pub(super) const SAFETY_LOOK: Duration = Duration::from_mins(1);

impl Effects {
    pub(super) async fn keep_delivering(self: Arc<Self>) {
        let mut lines = FuturesUnordered::new();
        // Nothing waits and nobody listens: until somebody rings there is nothing to look for.
        let mut quiet = false;
        loop {
            let pause = if self.lead.leading().is_none() || lines.len() >= LINES || quiet {
                SAFETY_LOOK
            } else {
                match self.whom_to_tell(LINES - lines.len()).await {
                    Ok((free, pause)) => {
                        quiet = free.is_empty() && pause == SAFETY_LOOK && self.nobody_listens();
                        for free in free {
                            self.backoff().begun(free.receiver.clone());
                            lines.push(self.line(free));
                        }
                        pause
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the outbox of effects cannot be read");
                        AFTER_A_FAILURE
                    }
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.due.notified() => quiet = false,
                Some(ended) = lines.next() => self.backoff().ended(&ended, self.core.store_now()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Delivers what is due now, a failure at most once, and says how much went out. For whoever decides himself what
    /// happens when.
    pub async fn deliver_once(&self) -> Result<usize, Error> {
        let mut delivered = 0;
        loop {
            let (free, _) = self.whom_to_tell(LINES).await?;
            if free.is_empty() {
                return Ok(delivered);
            }
            let mut lines: FuturesUnordered<_> = free.into_iter().map(|free| self.line(free)).collect();
            while let Some(ended) = lines.next().await {
                delivered += ended.delivered;
                self.backoff().ended(&ended, self.core.store_now());
            }
        }
    }

    /// For whom a line can be begun, and when to look again. Writes nothing.
    async fn whom_to_tell(&self, most: usize) -> Result<(Vec<Free>, Duration), StoreError> {
        let waiting = self.core.store.read().effect_receivers().await?;
        let now = self.core.store_now();
        let (free, next) = self.backoff().free(waiting, most, now);
        let pause = next.map_or(SAFETY_LOOK, |next| next.since(now));
        Ok((free, pause.clamp(SHORTEST_SLEEP, SAFETY_LOOK)))
    }

    /// One thing after the other, until something fails or it takes too long.
    async fn line(&self, free: Free) -> Ended {
        let Free { receiver, failed_last } = free;
        let mut ended = Ended { receiver, delivered: 0, failed: None };
        // What cannot be taken now is left alone for a moment, like a receiver that failed.
        let Ok(mut queue) = self.take(&ended.receiver, if failed_last { 1 } else { TAKE }).await else {
            ended.failed = Some(Duration::ZERO);
            return ended;
        };
        let begin_before = self.core.clock.now().plus(BEGIN_WITHIN);
        let mut last_failure = None;
        while let Some(effect) = queue.pop_front() {
            let mut outcome = self.send(&effect).await;
            self.core.metrics.effects.count(ended.receiver.kind(), &outcome);
            ended.delivered += usize::from(matches!(outcome, EffectOutcome::Delivered { .. }));
            if let Some((detail, asked)) = ends_the_run(&effect.target, &outcome) {
                ended.failed = Some(asked);
                last_failure = Some(detail);
            }
            if failed_last {
                outcome = self.given_up_by_age(&effect, outcome);
            }
            self.settle(&effect, outcome).await;
            if ended.failed.is_some() || self.core.clock.now() >= begin_before {
                break;
            }
        }
        self.put_back(queue).await;
        if let Some(detail) = last_failure.filter(|_| failed_last) {
            self.give_up_the_old(&ended.receiver, &detail).await;
        }
        ended
    }

    async fn take(&self, receiver: &EffectReceiver, most: usize) -> Result<VecDeque<Effect>, StoreError> {
        let taken = self
            .core
            .store
            .take_effects(TakeEffects { receiver: receiver.clone(), limit: most, lease: LEASE })
            .await;
        taken.map(VecDeque::from).inspect_err(|error| {
            tracing::warn!(%error, %receiver, "nothing could be taken from the outbox");
        })
    }

    async fn send(&self, effect: &Effect) -> EffectOutcome {
        let webhook = match &effect.target {
            EffectTarget::Webhook(id) => match self.known_webhook(*id).await {
                Ok(webhook) => webhook,
                Err(error) => return EffectOutcome::Failed { detail: error.to_string(), after: None },
            },
            EffectTarget::Tracker { .. } => None,
            EffectTarget::Forge { .. } => return self.deliver_request(effect).await,
        };
        self.port.deliver(effect, webhook.as_ref()).await
    }

    fn given_up_by_age(&self, effect: &Effect, outcome: EffectOutcome) -> EffectOutcome {
        match outcome {
            EffectOutcome::Failed { detail, .. } if is_old(effect, self.core.store_now()) => {
                EffectOutcome::Refused { detail: did_not_come_back(&detail) }
            }
            outcome => outcome,
        }
    }

    /// The receiver failed again: what has waited for it for too long is given up, tried or not. What was never tried is
    /// due since it was made, so the oldest come first, and the first batch with a young one in it is the last.
    async fn give_up_the_old(&self, receiver: &EffectReceiver, detail: &str) {
        let now = self.core.store_now();
        let first_due = self.core.store.read().effect_receivers().await.unwrap_or_default();
        let first_due = first_due.into_iter().find(|(waiting, _)| waiting == receiver).map(|(_, due)| due);
        if first_due.is_none_or(|due| now.since(due) <= PATIENCE) {
            return;
        }
        while let Ok(taken) = self.take(receiver, TAKE).await {
            let (old, young): (VecDeque<_>, VecDeque<_>) =
                taken.into_iter().partition(|effect| is_old(effect, now));
            let is_last = old.is_empty() || !young.is_empty();
            let refused = || EffectOutcome::Refused { detail: did_not_come_back(detail) };
            futures::future::join_all(old.iter().map(|effect| self.settle(effect, refused()))).await;
            self.put_back(young).await;
            if is_last || self.core.stop.is_cancelled() {
                return;
            }
        }
    }

    /// It was taken and not sent: that costs no attempt.
    async fn put_back(&self, queue: VecDeque<Effect>) {
        let after = Duration::ZERO;
        let back = queue.iter().map(|effect| self.settle(effect, EffectOutcome::Postponed { after }));
        futures::future::join_all(back).await;
    }

    /// What cannot be settled is sent again when its lease ends.
    async fn settle(&self, effect: &Effect, outcome: EffectOutcome) {
        match self
            .core
            .store
            .settle_effect(SettleEffect { id: effect.id.clone(), attempt: effect.attempts, outcome })
            .await
        {
            Ok(settled) if settled.state == EffectState::Dead => {
                let detail = settled.detail.unwrap_or_default();
                tracing::warn!(effect = %effect.id, detail, "a delivery was given up");
                if let EffectTarget::Forge { .. } = effect.target {
                    self.request_given_up(effect, &detail).await;
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(effect = %effect.id, %error, "the outcome of a delivery could not be written");
            }
        }
    }
}

fn is_old(effect: &Effect, now: Timestamp) -> bool {
    now.since(effect.created_at) > PATIENCE
}

fn did_not_come_back(detail: &str) -> String {
    format!("the receiver stayed unreachable: {detail}")
}

/// Whether the next thing would go the same way, the words for it, and for how long the receiver asked to be left alone.
fn ends_the_run(target: &EffectTarget, outcome: &EffectOutcome) -> Option<(String, Duration)> {
    match (outcome, target) {
        (EffectOutcome::Failed { detail, after }, _) => Some((detail.clone(), after.unwrap_or_default())),
        // What a tracker refuses is about one item; what a webhook refuses is about itself.
        (EffectOutcome::Refused { detail }, EffectTarget::Webhook(_)) => {
            Some((detail.clone(), Duration::ZERO))
        }
        _ => None,
    }
}
