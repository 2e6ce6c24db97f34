//! Effects outside of the system: webhooks and trackers. Never called inside a transaction.
//!
//! Whoever implements this may be asked to deliver the same effect again, under the same id, and must not reach any
//! address that its owner has not allowed.

use async_trait::async_trait;
use giga_domain::{Effect, EffectOutcome, ProductId, Webhook};
use thiserror::Error;

#[async_trait]
pub trait Effects: Send + Sync {
    /// Sends it, and says what came of it. `webhook` is the receiver, where the target is one.
    async fn deliver(&self, effect: &Effect, webhook: Option<&Webhook>) -> EffectOutcome;

    /// Whether an address could ever be delivered to; the error says what is wrong with it, for whoever typed it.
    async fn check_url(&self, url: &str) -> Result<(), EffectsError>;

    /// The trackers that are set up, by name.
    fn trackers(&self) -> Vec<String>;

    /// What people call the tracker, such as `GitHub` for `github`.
    fn display_name(&self, tracker: &str) -> String {
        tracker.to_owned()
    }

    /// How an item is called, as far as that is known without a look at it.
    fn named(&self, tracker: &str, item: &str) -> Result<ItemName, EffectsError> {
        let _ = tracker;
        Ok(ItemName { item: item.to_owned(), repo: None })
    }

    /// Whether the operator lets the product use this repository of the tracker; `None` where none is configured.
    fn allows(&self, tracker: &str, repo: &str, product: &ProductId) -> Option<bool> {
        let _ = (tracker, repo, product);
        None
    }

    /// Looks an outside item up, such as `acme/app#12` in `github`.
    async fn item(&self, tracker: &str, item: &str) -> Result<TrackerItem, EffectsError>;
}

/// An item by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemName {
    /// Its one spelling, whatever was asked for.
    pub item: String,
    /// The repository that it is in, such as `acme/app`, where the tracker has such.
    pub repo: Option<String>,
}

/// An item of a tracker, as a job sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerItem {
    /// Its one spelling, whatever was asked for.
    pub item: String,
    pub url: String,
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EffectsError {
    #[error("there is no tracker `{0}` here; {1}")]
    NoSuchTracker(String, String),
    #[error("there is no item `{item}` in {tracker}: {reason}")]
    NoSuchItem { tracker: String, item: String, reason: String },
    /// The text says what would be right.
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Unreachable(String),
}
