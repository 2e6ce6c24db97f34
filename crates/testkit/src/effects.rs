//! The world outside, as a test wants it: remembers what it was asked to deliver and answers as told.

use std::collections::BTreeMap;

use async_trait::async_trait;
use giga_domain::{Effect, EffectOutcome, ProductId, Webhook};
use giga_ports::Effects;
use giga_ports::effects::{EffectsError, ItemName, TrackerItem};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

type Answer = Box<dyn Fn(&Effect) -> EffectOutcome + Send>;

/// Takes everything, until it is told otherwise.
pub struct Recorded {
    answer: Mutex<Answer>,
    asked: watch::Sender<Vec<(Effect, Option<Webhook>)>>,
    /// By tracker and item; a tracker without items is set up, too.
    items: Mutex<BTreeMap<String, BTreeMap<String, TrackerItem>>>,
    /// Which product may use which repository, where any is configured.
    allowed: Mutex<Option<Vec<(ProductId, String)>>>,
}

impl Default for Recorded {
    fn default() -> Self {
        let taken = |_: &Effect| EffectOutcome::Delivered { detail: "taken".to_owned() };
        Self {
            answer: Mutex::new(Box::new(taken)),
            asked: watch::Sender::default(),
            items: Mutex::default(),
            allowed: Mutex::default(),
        }
    }
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").field("asked", &self.asked.borrow().len()).finish_non_exhaustive()
    }
}

impl Recorded {
    /// From here on this decides what comes of a delivery.
    pub fn answer_with(&self, answer: impl Fn(&Effect) -> EffectOutcome + Send + 'static) {
        *locked(&self.answer) = Box::new(answer);
    }

    /// Every delivery that was asked for, with the receiver that was named, in order.
    pub fn asked(&self) -> Vec<(Effect, Option<Webhook>)> {
        self.asked.borrow().clone()
    }

    /// The same, as soon as there are so many.
    pub async fn asked_at_least(&self, count: usize) -> Vec<(Effect, Option<Webhook>)> {
        let mut asked = self.asked.subscribe();
        let enough = asked.wait_for(|asked| asked.len() >= count).await;
        enough.expect("the sender is in `self`").clone()
    }

    /// From here on only these products may use these repositories.
    pub fn allow(&self, rules: &[(&str, &str)]) {
        let read = |(product, repo): &(&str, &str)| (product.parse().expect("a product"), (*repo).to_owned());
        *locked(&self.allowed) = Some(rules.iter().map(read).collect());
    }

    /// Sets the tracker up, with this item among the others that it has.
    pub fn put_item(&self, tracker: &str, item: TrackerItem) {
        locked(&self.items).entry(tracker.to_owned()).or_default().insert(item.item.clone(), item);
    }
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[async_trait]
impl Effects for Recorded {
    async fn deliver(&self, effect: &Effect, webhook: Option<&Webhook>) -> EffectOutcome {
        let outcome = locked(&self.answer)(effect);
        self.asked.send_modify(|asked| asked.push((effect.clone(), webhook.cloned())));
        outcome
    }

    async fn check_url(&self, url: &str) -> Result<(), EffectsError> {
        if url.starts_with("https://") {
            return Ok(());
        }
        Err(EffectsError::Malformed(format!("`{url}` does not begin with https://")))
    }

    fn trackers(&self) -> Vec<String> {
        locked(&self.items).keys().cloned().collect()
    }

    fn named(&self, _: &str, item: &str) -> Result<ItemName, EffectsError> {
        let repo = item.split_once('#').map(|(repo, _)| repo.to_owned());
        Ok(ItemName { item: item.to_owned(), repo })
    }

    fn allows(&self, _: &str, repo: &str, product: &ProductId) -> Option<bool> {
        let allowed = locked(&self.allowed);
        allowed.as_ref().map(|allowed| allowed.iter().any(|(to, what)| to == product && what == repo))
    }

    async fn item(&self, tracker: &str, item: &str) -> Result<TrackerItem, EffectsError> {
        let trackers = locked(&self.items);
        let Some(items) = trackers.get(tracker) else {
            let known = trackers.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(EffectsError::NoSuchTracker(tracker.to_owned(), format!("there are: {known}")));
        };
        items.get(item).cloned().ok_or_else(|| EffectsError::NoSuchItem {
            tracker: tracker.to_owned(),
            item: item.to_owned(),
            reason: "nobody made it".to_owned(),
        })
    }
}
