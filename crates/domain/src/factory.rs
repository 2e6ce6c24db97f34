//! A worker host as the coordinator knows it.

use serde::{Deserialize, Serialize};

use crate::repo::meant_by;
use crate::word::words;
use crate::{CapabilitySet, Delivery, FactoryId, ProductId, Timestamp, Usd};

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// Where results are merged, in words; `None` where it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges_into: Option<String>,
}

impl FactoryRepo {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), last_used_at: None, merges_into: None }
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
    pub seat_limit: u32,
    /// Its own measure of how busy it is, 0 for idle; seats in use are counted apart from it.
    pub load: f64,
    pub health: Health,
    /// How jobs reach it now: as configured, or `poll` while that channel is down. `None`: it polls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Where its owner says so.
    #[serde(
        rename = "costUsdMicrosPerHour",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::usd::as_micros::option"
    )]
    pub cost_per_hour: Option<Usd>,
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

impl Advertised {
    /// The repository at hand that goes by this name ([`crate::job::repo_name`]).
    pub fn repo(&self, name: &str) -> Option<&FactoryRepo> {
        match *meant_by(name, self.repos.iter().map(|repo| repo.name.as_str())) {
            [known] => self.repos.iter().find(|repo| repo.name == known),
            _ => None,
        }
    }
}

impl Factory {
    /// What it may be given: advertised and within its token's scope.
    pub fn usable_capabilities(&self) -> CapabilitySet {
        self.scope.cut(&self.advertised.capabilities)
    }
}
