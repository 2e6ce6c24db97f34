//! Webhooks and trackers: the only crate that talks to addresses which somebody typed.
//!
//! It keeps nothing. What is to be sent, how often and when is the coordinator's affair; this crate sends once, to nobody
//! that its owner has not allowed, and says what came of it.

mod address;
mod github;
mod guard;
mod http;
mod tracker;
mod webhook;

pub use guard::{Allowed, Lookup, Refused, SystemLookup};
pub use tracker::{Grant, Secret, TrackerConfig, TrackerKind};
pub use webhook::signature;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{Effect, EffectOutcome, EffectTarget, ProductId, Timestamp, Webhook};
use giga_ports::effects::{ItemName, TrackerItem};
use giga_ports::{Clock, Effects, EffectsError};

use crate::github::GitHub;
use crate::guard::{Found, Guard};
use crate::http::Http;

/// What the operator set up.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub allowed: Allowed,
    pub trackers: Vec<TrackerConfig>,
    /// Ten seconds where nothing is said.
    pub timeout: Option<Duration>,
}

/// The adapter of [`Effects`].
pub struct WorldOutside {
    http: Http,
    trackers: BTreeMap<String, GitHub>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for WorldOutside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorldOutside").field("trackers", &self.trackers.keys()).finish_non_exhaustive()
    }
}

impl WorldOutside {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Refused> {
        Self::with_lookup(config, clock, Arc::new(SystemLookup))
    }

    /// The same with another way to look names up, for tests.
    pub fn with_lookup(
        config: Config,
        clock: Arc<dyn Clock>,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, Refused> {
        let http = |allowed: Allowed| {
            let http = Http::new(Guard::new(allowed, lookup.clone()))
                .map_err(|error| Refused(format!("no HTTP client can be made: {error}")))?;
            Ok(http.with_timeout(config.timeout.unwrap_or(http::TIMEOUT)))
        };
        let mut trackers = BTreeMap::new();
        for tracker in &config.trackers {
            let wrong = |what: String| Refused(format!("tracker {}: {what}", tracker.name));
            // The operator names it, so it may be wherever the operator says.
            let host =
                host_of(&tracker.api).ok_or_else(|| wrong(format!("`{}` has no host", tracker.api)))?;
            let github = match tracker.kind {
                TrackerKind::GitHub => GitHub::new(tracker, http(config.allowed.clone().and_host(&host))?),
            };
            trackers.insert(tracker.name.clone(), github.map_err(wrong)?);
        }
        Ok(Self { http: http(config.allowed.clone())?, trackers, clock })
    }

    /// What marks comments in trackers as written by whoever shares this key. Without it, only as written with the same
    /// token.
    #[must_use]
    pub fn with_marker_key(mut self, key: [u8; 32]) -> Self {
        for tracker in self.trackers.values_mut() {
            tracker.mark_with(key);
        }
        self
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn tracker(&self, name: &str) -> Result<&GitHub, EffectsError> {
        self.trackers.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.trackers.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none is set up; GIGA_GITHUB_TOKEN or the setting github-token-file of the coordinator sets `github` up".to_owned()
            } else {
                format!("there is {}", known.join(", "))
            };
            let name = name.chars().take(80).flat_map(char::escape_default).collect();
            EffectsError::NoSuchTracker(name, known)
        })
    }
}

fn host_of(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    Some(url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned())
}

#[async_trait]
impl Effects for WorldOutside {
    async fn deliver(&self, effect: &Effect, webhook: Option<&Webhook>) -> EffectOutcome {
        match (&effect.target, webhook) {
            (EffectTarget::Webhook(_), Some(webhook)) => {
                webhook::deliver(&self.http, effect, webhook, self.now()).await
            }
            (EffectTarget::Webhook(id), None) => {
                EffectOutcome::Refused { detail: format!("there is no webhook {id} any more") }
            }
            (EffectTarget::Tracker { tracker, item }, _) => match self.tracker(tracker) {
                Ok(tracker) => tracker.echo(item, &effect.payload, self.now()).await,
                // Somebody may set it up again.
                Err(error) => EffectOutcome::Failed { detail: error.to_string(), after: None },
            },
        }
    }

    async fn check_url(&self, url: &str) -> Result<(), EffectsError> {
        match self.http.guard().check(url).await {
            Ok(Found::Reachable) => Ok(()),
            Ok(Found::Unknown(why)) => Err(EffectsError::Unreachable(why)),
            Err(refused) => Err(EffectsError::Malformed(refused.0)),
        }
    }

    fn trackers(&self) -> Vec<String> {
        self.trackers.keys().cloned().collect()
    }

    fn named(&self, tracker: &str, item: &str) -> Result<ItemName, EffectsError> {
        self.tracker(tracker)?.named(item)
    }

    fn granted(&self, tracker: &str, repo: &str, product: &ProductId) -> Option<bool> {
        self.trackers.get(tracker)?.granted(repo, product)
    }

    async fn item(&self, tracker: &str, item: &str) -> Result<TrackerItem, EffectsError> {
        self.tracker(tracker)?.item(item, self.now()).await
    }
}
