//! The world outside: receivers that fail, hang, refuse, or take what they are sent and do not say so. Every try is
//! written down with the id that it came under.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{Effect, EffectOutcome, EffectTarget, Webhook};
use giga_ports::effects::TrackerItem;
use giga_ports::{Effects, EffectsError};
use parking_lot::Mutex;

use crate::bug::Bug;
use crate::history::Record;
use crate::prng::Prng;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct NodeEffects {
    world: Arc<World>,
    prng: Mutex<Prng>,
}

impl NodeEffects {
    pub(crate) fn new(world: Arc<World>, prng: Prng) -> Self {
        Self { world, prng: Mutex::new(prng) }
    }

    /// How long it takes, whether it is taken, and what is said of it.
    fn draw(&self) -> (Duration, bool, EffectOutcome) {
        let rates = self.world.rates();
        let mut prng = self.prng.lock();
        let failed = |detail: &str| EffectOutcome::Failed { detail: detail.to_owned(), after: None };
        if prng.chance(rates.outside_hangs) {
            let time = Duration::from_millis(prng.between(500, 8_000));
            return (time, prng.chance(500), failed("simulated: no answer in time"));
        }
        let time = Duration::from_millis(prng.between(1, 20));
        if !prng.chance(rates.outside_fails) {
            return (time, true, EffectOutcome::Delivered { detail: "simulated".to_owned() });
        }
        match prng.below(10) {
            0 => (time, false, EffectOutcome::Refused { detail: "simulated: gone".to_owned() }),
            1..6 => (time, false, failed("simulated: away")),
            _ => (time, true, failed("simulated: the answer was lost")),
        }
    }
}

#[async_trait]
impl Effects for NodeEffects {
    async fn deliver(&self, effect: &Effect, _: Option<&Webhook>) -> EffectOutcome {
        let (time, taken, outcome) = self.draw();
        tokio::time::sleep(time).await;
        let renamed = self.world.has(Bug::EffectRenamed) && effect.attempts > 1;
        let id = if renamed { format!("{}-{}", effect.id, effect.attempts) } else { effect.id.to_string() };
        self.world.trace.note(|| format!("outside: {id}, attempt {} -> {outcome:?}", effect.attempts));
        if let EffectTarget::Webhook(webhook) = effect.target {
            let pos = effect.payload.get("pos").and_then(serde_json::Value::as_u64).unwrap_or(0);
            self.world.history.add(Record::Outside { id, webhook, pos, taken });
        }
        outcome
    }

    async fn check_url(&self, _: &str) -> Result<(), EffectsError> {
        Ok(())
    }

    fn trackers(&self) -> Vec<String> {
        Vec::new()
    }

    async fn item(&self, tracker: &str, _: &str) -> Result<TrackerItem, EffectsError> {
        Err(EffectsError::NoSuchTracker(tracker.to_owned(), "there is none".to_owned()))
    }
}
