//! A worker host as the coordinator knows it.

use serde::{Deserialize, Serialize};

use crate::job::repo_name;
use crate::repo::meant_by;
use crate::word::words;
use crate::{Account, Capability, CapabilitySet, Delivery, FactoryId, JobSpec, ProductId, Timestamp, Usd};

words! {
    "factory state",
    #[derive(Default)]
    pub enum FactoryState {
        #[default]
        Active,
        /// Finishes what it holds and is given nothing new.
        Draining,
    }
}

words! {
    "health",
    #[derive(Default)]
    pub enum Health {
        #[default]
        Ok,
        Degraded,
        Down,
    }
}

/// What its token allows. Empty products mean every product; `None` capabilities mean every capability.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FactoryScope {
    pub products: Vec<ProductId>,
    pub capabilities: Option<CapabilitySet>,
}

impl FactoryScope {
    pub fn allows_product(&self, product: &ProductId) -> bool {
        self.products.is_empty() || self.products.contains(product)
    }

    /// What it may use of what it says it has.
    pub fn cut(&self, advertised: &CapabilitySet) -> CapabilitySet {
        match &self.capabilities {
            Some(allowed) => advertised.intersection(allowed),
            None => advertised.clone(),
        }
    }
}

/// A repository that the factory has at hand, and when it last worked on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FactoryRepo {
    pub name: String,
    /// Where it comes from, as [`canonical_url`] spells it. Unknown of older factories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Where results are merged, in words; `None` where it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges_into: Option<String>,
}

impl FactoryRepo {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), url: None, last_used_at: None, merges_into: None }
    }
}

/// What a heartbeat says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advertised {
    /// As detected by the factory; cut to the token's scope wherever it is used.
    pub capabilities: CapabilitySet,
    pub repos: Vec<FactoryRepo>,
    /// It can clone what it lacks.
    pub can_clone: bool,
    /// What it may clone: prefixes of URLs, as [`canonical_url`] spells them. None: whatever is asked for, as far as anybody
    /// knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clones: Vec<String>,
    pub seat_limit: u32,
    /// Its own measure of how busy it is, 0 for idle; seats in use are counted apart from it.
    pub load: f64,
    pub health: Health,
    /// Why it is not well, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_reason: Option<String>,
    /// How jobs reach it now: as configured, or `poll` while that channel is down. `None`: it polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Unknown of older factories and of clients of the plain API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
    /// The logins of its engines. Unknown of older factories and of clients of the plain API.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<Account>,
    /// Where its owner says so.
    #[serde(
        rename = "costUsdMicrosPerHour",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::usd::as_micros::option"
    )]
    pub cost_per_hour: Option<Usd>,
}

impl Advertised {
    /// Whether it has the repository that a manifest names, or may clone it.
    pub fn reaches_repo(&self, repo: &str) -> bool {
        self.repo(repo).is_some() || may_clone(self.can_clone, &self.clones, repo)
    }

    /// The repository at hand that a manifest means.
    pub fn repo(&self, repo: &str) -> Option<&FactoryRepo> {
        repo_meant(&self.repos, repo)
    }
}

/// The one that a manifest means by a URL that it comes from, or by a name: its own, or the end of it where that is unique.
/// Where nobody knows where one comes from, the last part of a URL is its name.
pub fn repo_meant<'a>(repos: &'a [FactoryRepo], repo: &str) -> Option<&'a FactoryRepo> {
    if let Some(url) = canonical_url(repo) {
        return repos.iter().find(|known| match &known.url {
            Some(own) => *own == url,
            None => known.name == repo_name(repo),
        });
    }
    match *meant_by(repo, repos.iter().map(|known| known.name.as_str())) {
        [name] => repos.iter().find(|known| known.name == name),
        _ => None,
    }
}

/// Whether a factory may clone what a manifest names. A name says nothing about where to clone it from.
pub fn may_clone(can_clone: bool, prefixes: &[String], repo: &str) -> bool {
    if !can_clone || prefixes.is_empty() {
        return can_clone;
    }
    canonical_url(repo).is_some_and(|url| prefixes.iter().any(|prefix| is_below(&url, prefix)))
}

/// Whether the URL is the prefix or stands below it; both as [`canonical_url`] spells them.
pub fn is_below(url: &str, prefix: &str) -> bool {
    url.strip_prefix(prefix).is_some_and(|rest| {
        prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/') || rest == ".git"
    })
}

/// Scheme, host and path of a git URL, the host in lower case and without a user: one spelling for what means the same.
/// `None` for a name. Whether it is a URL that git may be given is not asked here.
pub fn canonical_url(repo: &str) -> Option<String> {
    let host_of = |authority: &str| {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        host.to_ascii_lowercase()
    };
    if repo.starts_with("file:///") {
        return Some(repo.to_owned());
    }
    if let Some((scheme, rest)) = repo.split_once("://") {
        let (authority, path) = rest.split_once('/')?;
        return Some(format!("{scheme}://{}/{path}", host_of(authority)));
    }
    let (authority, path) = repo.split_once(':')?;
    Some(format!("ssh://{}/{}", host_of(authority), path.trim_start_matches('/')))
}

/// Which process speaks for a factory: another one under the same name would take its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Of the folder that it keeps its state in, so that a restart is the same instance.
    pub id: String,
    pub host: String,
    /// When it was first heard from.
    pub since: Timestamp,
}

impl Instance {
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.id, &self.host) == (&other.id, &other.host)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Factory {
    pub id: FactoryId,
    pub state: FactoryState,
    pub scope: FactoryScope,
    pub advertised: Advertised,
    pub enrolled_at: Timestamp,
    pub last_seen_at: Option<Timestamp>,
}

impl Factory {
    /// What it may be given: advertised and within its token's scope. With an engine that reads prompts it can run any
    /// prompt; one that names no engine at all, as clients of the plain API may, is taken at its word when it asks.
    pub fn usable_capabilities(&self) -> CapabilitySet {
        let mut usable = self.scope.cut(&self.advertised.capabilities);
        let names_engines = self.advertised.capabilities.iter().any(|known| known.as_engine().is_some());
        let reads_prompts = usable.iter().filter_map(Capability::as_engine).any(|engine| engine != "shell");
        if reads_prompts || !names_engines {
            let any = Capability::engine(Capability::ANY_ENGINE).expect("every word is a capability");
            usable.insert(any);
        }
        usable
    }

    /// Whether it has all that the job asks for, of several engines one. Whether that one is open is not asked.
    pub fn has_what_it_needs(&self, spec: &JobSpec) -> bool {
        let usable = self.usable_capabilities();
        let several = spec.engine.alternatives();
        spec.capabilities.is_subset(&usable)
            && (several.is_empty() || several.iter().any(|pick| usable.contains(&pick.capability())))
    }
}
