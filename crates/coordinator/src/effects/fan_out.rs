//! From the feed into the outbox: which events somebody subscribed to.
//!
//! Only while somebody listens: a fleet without webhooks and trackers is never followed here. Effects and cursor move in
//! one step, so whatever cuts this off, nothing is left out and nothing gets a second id.

use giga_ports::store::FanOut;
use std::collections::HashMap;
use std::sync::Arc;

use giga_domain::{EffectTarget, Event, EventKind, FeedPos, Job, JobId, NewEffect, ProductId, Webhook};
use serde_json::{Value, json};

use super::Effects;
use super::change_webhooks;
use super::deliver::SAFETY_LOOK;
use super::requests::{concerns_requests, to_forge};
use super::trackers::tracker_of;
use crate::{Error, Sight};

const PAGE: usize = 200;
/// So many events with nothing to tell are passed over before the cursor is moved past them.
const SILENCE: u64 = 1_000;

impl Effects {
    pub(super) async fn keep_fanning_out(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.moved.notified() => {}
                // Somebody's word may have been lost: that costs time and nothing else.
                () = tokio::time::sleep(SAFETY_LOOK) => {}
            }
            if let Err(error) = self.fan_out_once().await {
                tracing::warn!(%error, "events could not be put into the outbox");
                self.known().cursor = None;
                tokio::select! {
                    () = self.core.stop.cancelled() => return,
                    () = tokio::time::sleep(self.core.options.sweep_every) => self.moved.notify_one(),
                }
            }
        }
    }

    /// Puts what the feed has shown into the outbox, where this node leads and somebody listens. Says how much that was.
    pub async fn fan_out_once(&self) -> Result<usize, Error> {
        let mut made = 0;
        while self.lead.leading().is_some() {
            let webhooks = self.known_webhooks().await?;
            let trackers = self.port.trackers();
            let has_forges = !self.port.forges().is_empty();
            if webhooks.is_empty() && trackers.is_empty() && !has_forges {
                break;
            }
            let moved_elsewhere = self.known().cursor.is_none();
            let (durable, mut seen) = self.fan_out_cursor().await?;
            let webhooks = if moved_elsewhere {
                // Read behind the cursor: whoever was added before it is in the list.
                self.known().forget_webhooks();
                self.known_webhooks().await?
            } else {
                webhooks
            };
            if trackers.is_empty() && !has_forges {
                // Before the first of them came nobody listened.
                seen = seen.max(webhooks.iter().map(|webhook| webhook.since).min().unwrap_or_default());
            }
            let events = self.core.store.read().feed(seen, PAGE).await?;
            let Some(to) = events.last().map(|event| event.pos) else { break };
            let webhooks = if change_webhooks(&events) {
                // Read behind these events, so that whoever was added by one of them is in the list.
                self.known().forget_webhooks();
                self.known_webhooks().await?
            } else {
                webhooks
            };
            let effects = self.effects_of(&events, &webhooks, &trackers).await?;
            let count = effects.len();
            let quiet = count == 0 && durable > FeedPos::ZERO && to.0 - durable.0 < SILENCE;
            let moved = quiet || self.core.store.fan_out(FanOut { from: durable, to, effects }).await?;
            // Where the cursor stands elsewhere, somebody else was here: look again.
            let durable = if quiet { durable } else { to };
            self.known().cursor = moved.then_some((durable, to));
            if moved && count > 0 {
                made += count;
                self.may_wait();
            }
            if moved && events.len() < PAGE {
                break;
            }
        }
        Ok(made)
    }

    async fn fan_out_cursor(&self) -> Result<(FeedPos, FeedPos), Error> {
        let known = self.known().cursor;
        if let Some(known) = known {
            return Ok(known);
        }
        let durable = self.core.store.read().fan_out_cursor().await?;
        Ok((durable, durable))
    }

    async fn effects_of(
        &self,
        events: &[Event],
        webhooks: &[Webhook],
        trackers: &[String],
    ) -> Result<Vec<NewEffect>, Error> {
        let jobs = self.tracked_jobs(events, trackers).await?;
        let shown = self.shown_jobs(events).await?;
        let mut effects = Vec::new();
        for event in events {
            let listens = |webhook: &&Webhook| {
                event.pos > webhook.since
                    && tells_of_more_than_effects(event.kind)
                    && webhook.wants(event.kind, event.product.as_ref())
            };
            effects.extend(webhooks.iter().filter(listens).map(|webhook| to_webhook(event, webhook)));
            if let Some(job) = event.job.and_then(|(id, _)| jobs.get(&id)) {
                effects.extend(to_tracker(event, job, trackers));
            }
            if let Some(job) = event.job.and_then(|(id, _)| shown.get(&id)) {
                effects.extend(to_forge(event, job));
            }
        }
        Ok(effects)
    }

    /// Those that events of theirs may have made a pull request necessary or pointless for.
    async fn shown_jobs(&self, events: &[Event]) -> Result<HashMap<JobId, Job>, Error> {
        if self.port.forges().is_empty() {
            return Ok(HashMap::new());
        }
        let mut ids: Vec<JobId> = events
            .iter()
            .filter(|event| concerns_requests(event))
            .filter_map(|event| Some(event.job?.0))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let jobs = self.core.store.read().jobs_by_id(&ids).await?;
        Ok(jobs.into_iter().map(|job| (job.id, job)).collect())
    }

    /// Of the jobs whose stage changed, those that came from a tracker.
    async fn tracked_jobs(
        &self,
        events: &[Event],
        trackers: &[String],
    ) -> Result<HashMap<JobId, Job>, Error> {
        if trackers.is_empty() {
            return Ok(HashMap::new());
        }
        let moved = events.iter().filter(|event| changes_stage(event));
        let mut ids: Vec<JobId> = moved.filter_map(|event| Some(event.job?.0)).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let jobs = self.core.store.read().jobs_by_id(&ids).await?;
        let is_tracked = |job: &Job| {
            tracker_of(job)
                .is_some_and(|(name, item)| self.is_withdrawn(&name, &item, &job.product).is_none())
        };
        Ok(jobs.into_iter().filter(is_tracked).map(|job| (job.id, job)).collect())
    }
}

/// An effect that failed is no reason for another effect, which would fail too, for ever.
pub(super) const fn tells_of_more_than_effects(kind: EventKind) -> bool {
    !matches!(kind, EventKind::EffectGivenUp | EventKind::EffectRevived)
}

fn changes_stage(event: &Event) -> bool {
    event.to.is_some() && event.from != event.to
}

fn to_webhook(event: &Event, webhook: &Webhook) -> NewEffect {
    let id = format!("wh:{}:{}", webhook.id, event.pos);
    NewEffect {
        payload: payload(&id, &sight(webhook.product.as_ref()).of_event(event)),
        id: id.parse().expect("ids and numbers between colons are an effect id"),
        // What a webhook of the whole fleet gets is for those who may see the whole fleet.
        product: webhook.product.clone(),
        target: EffectTarget::Webhook(webhook.id),
        job: event.job.map(|(id, _)| id),
    }
}

/// Whoever reads what is sent for one product may see that product.
fn sight(product: Option<&ProductId>) -> Sight {
    product.map_or(Sight::Everything, |product| Sight::Products(vec![product.clone()]))
}

fn payload(id: &str, event: &Event) -> Value {
    json!({
        "id": id,
        "type": event.kind.as_str(),
        "at": event.at,
        "productId": event.product,
        "jobId": event.job.map(|(id, _)| id),
        "seq": event.job.map(|(_, seq)| seq),
        "pos": event.pos,
        "from": event.from,
        "to": event.to,
        "actor": event.actor,
        "cause": event.cause,
        "data": event.data,
    })
}

fn to_tracker(event: &Event, job: &Job, trackers: &[String]) -> Option<NewEffect> {
    let (_, seq) = event.job?;
    let (tracker, item) = tracker_of(job)?;
    let to = event.to.filter(|_| changes_stage(event) && trackers.contains(&tracker))?;
    Some(NewEffect {
        id: format!("tracker:{}:{seq}", job.id)
            .parse()
            .expect("ids and numbers between colons are an effect id"),
        product: Some(job.product.clone()),
        target: EffectTarget::Tracker { tracker, item },
        job: Some(job.id),
        payload: json!({
            "jobId": job.id,
            "name": job.spec.name,
            "seq": seq,
            "to": to,
            "at": event.at,
            "cause": sight(Some(&job.product)).of_event(event).cause,
        }),
    })
}

#[cfg(test)]
mod tests {
    use giga_domain::{Actor, EventSeq, SigningKey, Stage, Timestamp};

    use super::*;

    #[test]
    fn a_product_is_not_told_whose_job_took_a_seat() {
        let (own, other) = (JobId::from_u128(1), JobId::from_u128(2));
        let event = Event {
            pos: FeedPos(7),
            product: Some("alpha".parse().unwrap()),
            job: Some((own, EventSeq(3))),
            at: Timestamp::ZERO,
            actor: Actor::system("dispatcher"),
            kind: EventKind::Preempted,
            from: Some(Stage::Building),
            to: Some(Stage::Queued),
            cause: format!("gave its seat to job {other}"),
            data: serde_json::Map::from_iter([("forJob".to_owned(), json!(other))]),
        };
        let told = |product: Option<&str>| {
            let webhook = Webhook {
                id: giga_domain::WebhookId::from_u128(9),
                product: product.map(|product| product.parse().unwrap()),
                url: String::new(),
                kinds: Vec::new(),
                secret: SigningKey([0; 32]),
                created_at: Timestamp::ZERO,
                since: FeedPos(0),
            };
            to_webhook(&event, &webhook).payload.to_string()
        };
        let of_the_product = told(Some("alpha"));
        assert!(!of_the_product.contains(&other.to_string()), "{of_the_product}");
        assert!(of_the_product.contains("gave its seat to another job"), "{of_the_product}");
        assert!(told(None).contains(&other.to_string()), "who sees the fleet is told");
    }
}
