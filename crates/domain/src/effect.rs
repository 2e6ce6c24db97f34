//! Messages to webhooks, trackers and forges, through one outbox.
//!
//! An effect is made once per event and target, from the feed, and its id says which: however often it is sent, it is
//! sent under the same id, and whoever receives it can tell a repetition.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::word::words;
use crate::{EffectId, EventKind, FeedPos, JobId, ProductId, Timestamp, WebhookId, backoff};

/// An endpoint that the events of a product are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    /// `None`: of every product, and of the fleet.
    pub product: Option<ProductId>,
    pub url: String,
    /// Empty: every kind.
    pub kinds: Vec<EventKind>,
    /// What its messages are signed with.
    pub secret: SigningKey,
    pub created_at: Timestamp,
    /// Events after this one are sent.
    pub since: FeedPos,
}

/// Shown once, when it is made; never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey(pub [u8; 32]);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

impl Webhook {
    /// The id of whatever is asked for under this key, by this one, for this product: asked again, it is the same.
    pub fn id_of_request(key: &str, asked_by: &str, product: Option<&ProductId>) -> WebhookId {
        let product = product.map_or("", ProductId::as_str);
        let digest = Sha256::digest(format!("webhook\0{asked_by}\0{product}\0{key}"));
        WebhookId::from_u128(digest[..16].iter().fold(0, |id, byte| id << 8 | u128::from(*byte)))
    }

    /// Never of effects themselves: telling a receiver that a delivery to it failed would go on for ever.
    pub fn wants(&self, kind: EventKind, product: Option<&ProductId>) -> bool {
        !matches!(kind, EventKind::EffectGivenUp | EventKind::EffectRevived)
            && (self.product.is_none() || self.product.as_ref() == product)
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "lowercase")]
pub enum EffectTarget {
    Webhook(WebhookId),
    /// A tracker by its name, and the item there.
    Tracker {
        tracker: String,
        item: String,
    },
    /// The pull request of a job, at a forge by its name and in the repository there.
    Forge {
        forge: String,
        repo: String,
    },
}

impl EffectTarget {
    pub fn receiver(&self) -> EffectReceiver {
        match self {
            Self::Webhook(id) => EffectReceiver::Webhook(*id),
            Self::Tracker { tracker, .. } => EffectReceiver::Tracker(tracker.clone()),
            Self::Forge { forge, .. } => EffectReceiver::Forge(forge.clone()),
        }
    }
}

/// Who is spoken to. A tracker or a forge counts as one, whatever the item: its limits are for all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectReceiver {
    Webhook(WebhookId),
    Tracker(String),
    Forge(String),
}

impl EffectReceiver {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Tracker(_) => "tracker",
            Self::Forge(_) => "forge",
        }
    }
}

impl fmt::Display for EffectReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(id) => write!(f, "webhook:{id}"),
            Self::Tracker(name) => write!(f, "tracker:{name}"),
            Self::Forge(name) => write!(f, "forge:{name}"),
        }
    }
}

impl FromStr for EffectReceiver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("webhook", id)) => {
                id.parse().map(Self::Webhook).map_err(|error| format!("`{text}`: {error}"))
            }
            Some(("tracker", name)) => Ok(Self::Tracker(name.to_owned())),
            Some(("forge", name)) => Ok(Self::Forge(name.to_owned())),
            _ => Err(format!("`{text}` is neither a webhook nor a tracker nor a forge")),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewEffect {
    /// From its target and what it tells of: the same thing gets the same id for ever.
    pub id: EffectId,
    pub product: Option<ProductId>,
    pub target: EffectTarget,
    pub job: Option<JobId>,
    pub payload: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    pub id: EffectId,
    pub product: Option<ProductId>,
    pub target: EffectTarget,
    pub job: Option<JobId>,
    pub payload: Value,
    pub state: EffectState,
    /// How often it was taken to be sent.
    pub attempts: u32,
    /// What came of the last attempt.
    pub detail: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EffectState {
    /// To be sent from `due` on. One that is being sent is due again when whoever took it must have given up.
    Pending {
        due: Timestamp,
    },
    Delivered,
    /// Given up. Somebody can retry it.
    Dead,
}

words! {
    "state",
    /// An [`EffectState`] without what goes with it.
    pub enum EffectStateName {
        Pending,
        Delivered,
        Dead,
    }
}

impl EffectState {
    pub const fn name(self) -> EffectStateName {
        match self {
            Self::Pending { .. } => EffectStateName::Pending,
            Self::Delivered => EffectStateName::Delivered,
            Self::Dead => EffectStateName::Dead,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectOutcome {
    Delivered {
        detail: String,
    },
    /// May go better later; not before `after` where the receiver asked for that.
    Failed {
        detail: String,
        after: Option<Duration>,
    },
    /// Will never go better: a target that is refused or gone.
    Refused {
        detail: String,
    },
    /// It was taken and not sent, because its target is busy or away: that does not count as an attempt.
    Postponed {
        after: Duration,
    },
}

impl Effect {
    /// After so many attempts, spread over about two days, it is given up.
    pub const ATTEMPTS: u32 = 16;
    const FIRST_PAUSE: Duration = Duration::from_secs(5);
    /// Whatever a receiver asks for, nobody waits longer.
    pub const LONGEST_PAUSE: Duration = Duration::from_hours(6);

    pub fn new(new: NewEffect, now: Timestamp) -> Self {
        let NewEffect { id, product, target, job, payload } = new;
        Self {
            id,
            product,
            target,
            job,
            payload,
            state: EffectState::Pending { due: now },
            attempts: 0,
            detail: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Somebody is about to send it, and has `lease` to say what came of it.
    pub fn take(&mut self, now: Timestamp, lease: Duration) -> bool {
        match self.state {
            EffectState::Pending { due } if due <= now => {
                self.attempts += 1;
                self.state = EffectState::Pending { due: now.plus(lease) };
                self.updated_at = now;
                true
            }
            _ => false,
        }
    }

    /// What came of the attempt. An older one is no longer listened to. Says whether anything changed.
    pub fn settle(&mut self, attempt: u32, outcome: &EffectOutcome, now: Timestamp) -> bool {
        if attempt == 0 || attempt != self.attempts || !matches!(self.state, EffectState::Pending { .. }) {
            return false;
        }
        let (state, detail) = match outcome {
            EffectOutcome::Postponed { after } => {
                self.attempts -= 1;
                // What was never tried keeps its place among the others.
                let kept = after.is_zero() && self.attempts == 0;
                let due = if kept { self.created_at } else { now.plus((*after).min(Self::LONGEST_PAUSE)) };
                self.state = EffectState::Pending { due };
                self.updated_at = now;
                return true;
            }
            EffectOutcome::Delivered { detail } => (EffectState::Delivered, detail),
            EffectOutcome::Refused { detail } => (EffectState::Dead, detail),
            EffectOutcome::Failed { detail, .. } if self.attempts >= Self::ATTEMPTS => {
                (EffectState::Dead, detail)
            }
            EffectOutcome::Failed { detail, after } => {
                let pause = backoff::doubling(Self::FIRST_PAUSE, self.attempts, Self::LONGEST_PAUSE);
                let pause = pause.max(after.unwrap_or_default().min(Self::LONGEST_PAUSE));
                (EffectState::Pending { due: now.plus(pause) }, detail)
            }
        };
        self.state = state;
        self.detail = Some(detail.clone());
        self.updated_at = now;
        true
    }

    /// Nobody will try any more, whoever has it now.
    pub fn give_up(&mut self, detail: &str, now: Timestamp) -> bool {
        if self.is_over() {
            return false;
        }
        self.state = EffectState::Dead;
        self.detail = Some(detail.to_owned());
        self.updated_at = now;
        true
    }

    pub const fn is_over(&self) -> bool {
        !matches!(self.state, EffectState::Pending { .. })
    }

    /// Retries one that was given up, with all its attempts.
    pub fn revive(&mut self, now: Timestamp) -> bool {
        self.state == EffectState::Dead && self.send_again(now)
    }

    /// From the start, under the same id, where it is over.
    pub fn send_again(&mut self, now: Timestamp) -> bool {
        if !self.is_over() {
            return false;
        }
        self.state = EffectState::Pending { due: now };
        self.attempts = 0;
        self.updated_at = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect() -> Effect {
        let new = NewEffect {
            id: "w:1".parse().unwrap(),
            product: None,
            target: EffectTarget::Tracker { tracker: "github".to_owned(), item: "a/b#1".to_owned() },
            job: None,
            payload: Value::Null,
        };
        Effect::new(new, Timestamp::ZERO)
    }

    #[test]
    fn a_webhook_wants_its_product_and_kinds_and_never_its_own_failures() {
        let demo: ProductId = "demo".parse().unwrap();
        let all = Webhook {
            id: WebhookId::MIN,
            product: None,
            url: "https://example.org".to_owned(),
            kinds: Vec::new(),
            secret: SigningKey([171; 32]),
            created_at: Timestamp::ZERO,
            since: FeedPos::ZERO,
        };
        assert!(all.wants(EventKind::Shipped, Some(&demo)) && all.wants(EventKind::FlagChanged, None));
        assert!(
            !all.wants(EventKind::EffectGivenUp, Some(&demo)) && !all.wants(EventKind::EffectRevived, None)
        );
        let kinds = vec![EventKind::Shipped, EventKind::EffectGivenUp];
        let some = Webhook { product: Some(demo.clone()), kinds, ..all };
        assert!(some.wants(EventKind::Shipped, Some(&demo)));
        assert!(!some.wants(EventKind::Shipped, None) && !some.wants(EventKind::Failed, Some(&demo)));
        assert!(!some.wants(EventKind::EffectGivenUp, Some(&demo)));
        assert!(!format!("{some:?}").contains("171"), "the secret is not shown");
    }

    #[test]
    fn a_receiver_has_one_spelling() {
        for target in [
            EffectTarget::Webhook(WebhookId::from_u128(7)),
            EffectTarget::Tracker { tracker: "git:hub".to_owned(), item: "a/b#1".to_owned() },
            EffectTarget::Forge { forge: "gitlab".to_owned(), repo: "a/b/c".to_owned() },
        ] {
            let receiver = target.receiver();
            assert_eq!(receiver.to_string().parse(), Ok(receiver));
        }
        assert!(
            "nobody:1".parse::<EffectReceiver>().is_err() && "webhook".parse::<EffectReceiver>().is_err()
        );
    }

    #[test]
    fn it_is_tried_again_later_and_later_and_then_given_up() {
        let (mut effect, mut now, mut pauses) = (effect(), Timestamp::ZERO, Vec::new());
        let failed = EffectOutcome::Failed { detail: "500".to_owned(), after: None };
        while let EffectState::Pending { due } = effect.state {
            pauses.push(due.since(now));
            now = due;
            assert!(effect.take(now, Duration::from_secs(30)));
            assert!(effect.settle(effect.attempts, &failed, now));
        }
        assert_eq!(pauses.len(), Effect::ATTEMPTS as usize);
        assert!(pauses.is_sorted() && pauses.last() == Some(&Effect::LONGEST_PAUSE), "{pauses:?}");
        assert_eq!(effect.state, EffectState::Dead);
        assert!(effect.revive(now) && effect.take(now, Duration::ZERO), "somebody gave it another chance");
    }

    #[test]
    fn what_was_taken_and_not_sent_has_all_its_attempts_left() {
        let (mut effect, now) = (effect(), Timestamp::ZERO);
        let postponed = EffectOutcome::Postponed { after: Duration::from_secs(7) };
        for _ in 0..3 {
            let EffectState::Pending { due } = effect.state else { panic!("{:?}", effect.state) };
            assert!(effect.take(due, Duration::from_secs(30)) && effect.attempts == 1);
            assert!(effect.settle(1, &postponed, due) && effect.attempts == 0);
        }
        assert_eq!(effect.state, EffectState::Pending { due: now.plus(Duration::from_secs(21)) });
        assert!(!effect.settle(0, &postponed, now), "nobody has it");
        let later = now.plus(Duration::from_mins(1));
        assert!(effect.take(later, Duration::from_secs(30)));
        assert!(effect.settle(1, &EffectOutcome::Postponed { after: Duration::ZERO }, later));
        assert_eq!(effect.state, EffectState::Pending { due: effect.created_at }, "it keeps its place");
    }

    #[test]
    fn whoever_was_too_slow_is_not_listened_to_and_nothing_follows_a_delivery() {
        let (mut effect, now) = (effect(), Timestamp::ZERO);
        let delivered = EffectOutcome::Delivered { detail: "204".to_owned() };
        assert!(effect.take(now, Duration::from_secs(30)));
        assert!(!effect.take(now, Duration::from_secs(30)), "somebody has it");
        let later = now.plus(Duration::from_secs(30));
        assert!(effect.take(later, Duration::from_secs(30)), "whoever had it is gone");
        assert!(!effect.settle(1, &delivered, later));
        assert!(effect.settle(2, &delivered, later));
        assert!(!effect.settle(2, &delivered, later) && !effect.take(later, Duration::ZERO));
    }
}
