//! What a tenant is allowed and how much it counts.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much each term of a score counts for the product's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Weights {
    pub capability_fit: f64,
    pub affinity: f64,
    pub load: f64,
    pub cost_fit: f64,
    pub health: f64,
    pub starvation: f64,
}

impl Default for Weights {
    fn default() -> Self {
        domain::Weights::default().into()
    }
}

/// Replaces what was set; what is left out is the default from then on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetProductRequest {
    /// Its share of the fleet against the other products', 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// The repositories that it owns, by name. One repository has one owner at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repos: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    pub product_id: String,
    /// The ETag is made from it; 0 where nothing was ever set.
    pub rev: u64,
    pub share: f64,
    pub weights: Weights,
    pub repos: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProductList {
    /// By id; those that were ever set.
    pub products: Vec<Product>,
}

impl From<domain::Weights> for Weights {
    fn from(weights: domain::Weights) -> Self {
        let domain::Weights { capability_fit, affinity, load, cost_fit, health, starvation } = weights;
        Self { capability_fit, affinity, load, cost_fit, health, starvation }
    }
}

impl From<Weights> for domain::Weights {
    fn from(weights: Weights) -> Self {
        let Weights { capability_fit, affinity, load, cost_fit, health, starvation } = weights;
        Self { capability_fit, affinity, load, cost_fit, health, starvation }
    }
}

impl From<SetProductRequest> for domain::ProductSettings {
    fn from(request: SetProductRequest) -> Self {
        let default = Self::default();
        Self {
            share: request.share.unwrap_or(default.share),
            weights: request.weights.map_or(default.weights, Into::into),
            repos: request.repos,
        }
    }
}

impl From<&domain::Product> for Product {
    fn from(product: &domain::Product) -> Self {
        Self {
            product_id: product.id.to_string(),
            rev: product.rev.0,
            share: product.settings.share,
            weights: product.settings.weights.into(),
            repos: product.settings.repos.clone(),
        }
    }
}
