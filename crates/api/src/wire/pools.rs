//! Pools: templates of factories that come and go with the work.

use giga_domain::Usd;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MemberState, PoolCredentialKind, PoolDriver, PoolStatus};

/// What an operator sets. What is left out has its default; a pool that is there is replaced as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PoolSettings {
    /// Who starts and stops its factories.
    pub driver: PoolDriver,
    /// Of the driver `command`: the program and its first arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 100)]
    pub command: Vec<String>,
    /// Of the driver `kubernetes`: the image of the factory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub image: Option<String>,
    /// Of the driver `kubernetes`: where its Jobs are made; left out, where the coordinator runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub namespace: Option<String>,
    /// More arguments of `giga factory run`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 100)]
    pub args: Vec<String>,
    /// Where its factories find the coordinator; left out, where the coordinator listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub url: Option<String>,
    /// What its factories have beside what they detect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub capabilities: Vec<String>,
    /// Whose jobs they take; empty: every product's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub products: Vec<String>,
    /// Jobs at a time on one of them.
    #[schema(minimum = 1, maximum = 1024)]
    pub seats: u32,
    /// So many at all times.
    #[schema(maximum = 500)]
    pub min: u32,
    /// So many at most.
    #[schema(maximum = 500)]
    pub max: u32,
    /// So many beyond those that work.
    #[schema(maximum = 500)]
    pub warm: u32,
    /// One without work for so long leaves.
    #[schema(minimum = 1000, maximum = 604_800_000)]
    pub idle_ms: u64,
    /// One that has not enrolled by then has failed to start.
    #[schema(minimum = 1000, maximum = 604_800_000)]
    pub start_timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub cost_usd_per_hour: Option<Usd>,
    /// The product whose budget pays its hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge_to: Option<String>,
    /// Starts nothing.
    pub paused: bool,
}

impl Default for PoolSettings {
    fn default() -> Self {
        (&giga_domain::PoolSettings::default()).into()
    }
}

impl From<&giga_domain::PoolSettings> for PoolSettings {
    fn from(settings: &giga_domain::PoolSettings) -> Self {
        let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let giga_domain::PoolSettings {
            driver,
            command,
            image,
            namespace,
            args,
            url,
            capabilities,
            products,
            seats,
            min,
            max,
            warm,
            idle,
            start_timeout,
            cost_per_hour,
            charge_to,
            paused,
        } = settings.clone();
        Self {
            driver: driver.into(),
            command,
            image,
            namespace,
            args,
            url,
            capabilities: capabilities.into(),
            products: products.iter().map(ToString::to_string).collect(),
            seats,
            min,
            max,
            warm,
            idle_ms: millis(idle),
            start_timeout_ms: millis(start_timeout),
            cost_usd_per_hour: cost_per_hour,
            charge_to: charge_to.map(|product| product.to_string()),
            paused,
        }
    }
}

/// A pool, what it has and what it is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    pub name: String,
    pub settings: PoolSettings,
    pub rev: u64,
    pub state: PoolStatus,
    /// The same in a sentence.
    pub summary: String,
    /// How many factories there should be now.
    pub target: u32,
    /// Queued jobs that wait for a factory of it.
    pub waiting: u32,
    /// How long a start takes, as far as it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Factories that it has ordered.
    pub starts: u64,
    /// Why the last start failed, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<PoolFailure>,
    /// What the hours of the factories that it has now have cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub cost_usd: Option<Usd>,
    /// By factory.
    pub members: Vec<PoolMember>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolFailure {
    /// Starts that failed since the last one that did not.
    pub in_a_row: u32,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolMember {
    pub factory_id: String,
    pub state: MemberState,
    pub since: String,
    pub ordered_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolled_at: Option<String>,
    /// What its driver knows it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Why it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Jobs that it holds.
    pub jobs: u32,
    pub live: bool,
    pub draining: bool,
    /// Since when it has nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolList {
    /// By name.
    pub pools: Vec<Pool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolCredentialRequest {
    pub kind: PoolCredentialKind,
    /// Such as `12h` or `never`; 30 days where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolCredential {
    pub id: String,
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolEnrollRequest {
    /// Left out, the factory gets a name after its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
}

/// What a factory of a pool works with from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolEnrollAnswer {
    pub factory_id: String,
    /// Its own token; shown once.
    pub token: String,
}
