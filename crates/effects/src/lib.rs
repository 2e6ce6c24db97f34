//! Webhooks, trackers and forges: the only crate that talks to addresses which somebody typed.
//!
//! It keeps nothing. What is to be sent, how often and when is the coordinator's affair; this crate sends once, to nobody
//! that its owner has not allowed, and says what came of it.

mod address;
mod forge;
mod github;
mod guard;
mod http;
mod rest;
mod tracker;
mod webhook;

pub use forge::{FORGES, ForgeConfig, ForgeKind};
pub use guard::{Allowed, Lookup, Refused, SystemLookup};
pub use tracker::{
    RepoAccess, SettingNames, TRACKERS, TrackerConfig, TrackerKind, TrackerSettings, TrackerToken,
};
pub use webhook::signature;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::job::OpenRequest;
use giga_domain::{Effect, EffectOutcome, EffectTarget, ProductId, Timestamp, Webhook};
use giga_ports::effects::{
    ForgeRepo, ForgeTrouble, HookError, HookMessage, HookSubject, ItemName, Proposal, RepoPlace,
    RequestState, TrackerItem,
};
use giga_ports::{Clock, Effects, EffectsError};

use crate::forge::{Forge, OpenedForge, Place};
use crate::guard::{Found, Guard};
use crate::http::Http;
use crate::tracker::{Status, Tracker};

/// Over all calls of one thing that is done to a request: whoever sends it has it for longer than that.
const FORGE_WITHIN: Duration = Duration::from_secs(40);

/// What the operator set up.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub allowed: Allowed,
    pub trackers: Vec<TrackerConfig>,
    pub forges: Vec<ForgeConfig>,
    /// Ten seconds by default.
    pub timeout: Option<Duration>,
}

/// The adapter of [`Effects`].
pub struct HttpEffects {
    http: Http,
    /// By the name of their kind.
    trackers: BTreeMap<&'static str, (TrackerConfig, Box<dyn Tracker>)>,
    forges: BTreeMap<&'static str, OpenedForge>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for HttpEffects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpEffects").field("trackers", &self.trackers.keys()).finish_non_exhaustive()
    }
}

impl HttpEffects {
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
            let kind = tracker.kind;
            let wrong = |what: String| Refused(format!("tracker {}: {what}", kind.name));
            // The operator names it, so it may be wherever the operator says.
            let host =
                host_of(&tracker.api).ok_or_else(|| wrong(format!("`{}` has no host", tracker.api)))?;
            let opened = (kind.open)(tracker, http(config.allowed.clone().and_host(&host))?);
            trackers.insert(kind.name, (tracker.clone(), opened.map_err(wrong)?));
        }
        let mut forges = BTreeMap::new();
        for forge in &config.forges {
            let name = forge.kind.name;
            let wrong = |what: String| Refused(format!("forge {name}: {what}"));
            let host = host_of(&forge.api).ok_or_else(|| wrong(format!("`{}` has no host", forge.api)))?;
            let http = http(config.allowed.clone().and_host(&host))?;
            forges.insert(name, OpenedForge::new(forge, http).map_err(wrong)?);
        }
        Ok(Self { http: http(config.allowed.clone())?, trackers, forges, clock })
    }

    /// What marks what is written into trackers as written by whoever shares this key. Without it, only as written with
    /// the same token.
    #[must_use]
    pub fn with_marker_key(mut self, key: [u8; 32]) -> Self {
        for (_, tracker) in self.trackers.values_mut() {
            tracker.mark_with(key);
        }
        self
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn tracker(&self, name: &str) -> Result<&dyn Tracker, EffectsError> {
        if let Some((_, tracker)) = self.trackers.get(name) {
            return Ok(&**tracker);
        }
        let known: Vec<&str> = self.trackers.keys().copied().collect();
        let hint = if known.is_empty() {
            let how = |kind: &TrackerKind| {
                let TrackerSettings { token_variable, token_file: (file, ..), .. } = &kind.settings;
                format!("{token_variable} or the setting {file} of the coordinator sets up `{}`", kind.name)
            };
            format!("none is set up; {}", TRACKERS.iter().map(how).collect::<Vec<_>>().join(", "))
        } else {
            format!("there is {}", known.join(", "))
        };
        let name = name.chars().take(80).flat_map(char::escape_default).collect();
        Err(EffectsError::NoSuchTracker(name, hint))
    }
}

impl HttpEffects {
    fn forge(&self, at: &ForgeRepo) -> Result<&dyn Forge, ForgeTrouble> {
        let known = self.forges.get(at.forge.as_str()).map(|opened| &*opened.forge);
        known.ok_or_else(|| ForgeTrouble::Later {
            // Somebody may set it up again.
            detail: format!("there is no forge `{}` here any more", at.forge),
            after: None,
        })
    }

    /// What stands for a repository that no forge here has.
    fn nowhere(&self, what: &str) -> EffectsError {
        let known =
            self.forges.values().map(|opened| format!("{} at {}", opened.config.kind.name, opened.host));
        let known = known.collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none is set up".to_owned() } else { format!("there is {known}") };
        EffectsError::Malformed(format!(
            "no forge of this coordinator has {what}, so no pull request can be opened ({known})"
        ))
    }
}

async fn within<T>(call: impl Future<Output = Result<T, rest::Trouble>> + Send) -> Result<T, ForgeTrouble> {
    if let Ok(done) = tokio::time::timeout(FORGE_WITHIN, call).await {
        return done.map_err(forge::trouble);
    }
    let detail = format!("not done within {} s", FORGE_WITHIN.as_secs());
    Err(ForgeTrouble::Later { detail, after: None })
}

fn host_of(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    Some(url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned())
}

#[async_trait]
impl Effects for HttpEffects {
    async fn deliver(&self, effect: &Effect, webhook: Option<&Webhook>) -> EffectOutcome {
        match (&effect.target, webhook) {
            (EffectTarget::Webhook(_), Some(webhook)) => {
                webhook::deliver(&self.http, effect, webhook, self.now()).await
            }
            (EffectTarget::Webhook(id), None) => {
                EffectOutcome::Refused { detail: format!("there is no webhook {id} any more") }
            }
            (EffectTarget::Forge { .. }, _) => {
                EffectOutcome::Refused { detail: "a request is opened and closed, not delivered".to_owned() }
            }
            (EffectTarget::Tracker { tracker, item }, _) => match self.tracker(tracker) {
                Ok(tracker) => match Status::read(&effect.payload) {
                    Ok(status) => tracker.echo(item, &status, self.now()).await,
                    Err(detail) => EffectOutcome::Refused { detail },
                },
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
        self.trackers.keys().map(|name| (*name).to_owned()).collect()
    }

    fn display_name(&self, tracker: &str) -> String {
        let known = self.trackers.get(tracker);
        known.map_or(tracker, |(config, _)| config.kind.display_name).to_owned()
    }

    fn named(&self, tracker: &str, item: &str) -> Result<ItemName, EffectsError> {
        self.tracker(tracker)?.named(item)
    }

    fn allows(&self, tracker: &str, repo: &str, product: &ProductId) -> Option<bool> {
        let of_tracker = self.trackers.get(tracker).map(|(config, _)| &config.repos);
        let rules = of_tracker.or_else(|| self.forges.get(tracker).map(|opened| &opened.config.repos))?;
        (!rules.is_empty()).then(|| rules.iter().any(|rule| rule.allows(repo, product)))
    }

    async fn item(&self, tracker: &str, item: &str) -> Result<TrackerItem, EffectsError> {
        self.tracker(tracker)?.item(item, self.now()).await
    }

    fn forges(&self) -> Vec<String> {
        self.forges.keys().map(|name| (*name).to_owned()).collect()
    }

    fn forge_of(&self, place: &RepoPlace) -> Result<ForgeRepo, EffectsError> {
        let named = Place::of_url(&place.repo);
        let Some(at) = named.or_else(|| place.origin.as_deref().and_then(Place::of_origin)) else {
            // A folder of the factory's: by the name that its owner gave it, where that can only mean one.
            let mut all = self.forges.values();
            return match (all.next(), all.next()) {
                (Some(only), None) if only.forge.repository(&place.repo).is_some() => {
                    Ok(ForgeRepo { forge: only.config.kind.name.to_owned(), repo: place.repo.clone() })
                }
                _ => Err(self.nowhere(&format!("`{}`, which is a folder of the factory", place.repo))),
            };
        };
        let mut found = self.forges.values().filter(|opened| opened.host == at.host);
        let found = found.find_map(|opened| Some((opened, opened.forge.repository(&at.path)?)));
        match found {
            Some((opened, repo)) => Ok(ForgeRepo { forge: opened.config.kind.name.to_owned(), repo }),
            None => Err(self.nowhere(&format!("{}/{}", at.host, at.path))),
        }
    }

    async fn open_request(&self, at: &ForgeRepo, proposal: &Proposal) -> Result<OpenRequest, ForgeTrouble> {
        within(self.forge(at)?.open(&at.repo, proposal, self.now())).await
    }

    async fn look_at_request(
        &self,
        at: &ForgeRepo,
        branch: &str,
        commit: &str,
    ) -> Result<Option<RequestState>, ForgeTrouble> {
        within(self.forge(at)?.look(&at.repo, branch, commit, self.now())).await
    }

    async fn close_request(&self, at: &ForgeRepo, branch: &str) -> Result<String, ForgeTrouble> {
        within(self.forge(at)?.close(&at.repo, branch, self.now())).await
    }

    fn read_hook(&self, forge: &str, message: &HookMessage<'_>) -> Result<Option<HookSubject>, HookError> {
        let opened = self.forges.get(forge).ok_or_else(|| HookError::NoSuchForge(forge.to_owned()))?;
        opened.read_hook(message)
    }
}
