//! What a tenant is allowed and how much it counts.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{MergeBy, MergeFeedback, MergeStrategy, NetworkLevel, Permissions, ScoreTerm};

/// How much each term of a score counts for the product's jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weights(pub domain::Weights);

impl PartialSchema for Weights {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .description(Some("How much each term of a score counts for the product's jobs."))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        let weight = |term: domain::ScoreTerm| {
            ObjectBuilder::new()
                .schema_type(Type::Number)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
                .default(Some(term.default_weight().into()))
        };
        let terms = domain::ScoreTerm::ALL.into_iter();
        terms.fold(object, |object, term| object.property(term.as_str(), weight(term))).into()
    }
}

impl ToSchema for Weights {
    /// Its keys, which are those of the terms of a score, too.
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ScoreTerm::name().into_owned(), ScoreTerm::schema()));
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
    /// What a manifest leaves out about its merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeSettings>,
    /// Commands that must pass on every merged tree, after the job's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge_checks: Vec<String>,
    /// How many results may be merged and checked together, 4 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_batch: Option<u32>,
    /// What its jobs keep to, and those of others in its repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyFloor>,
}

/// What every job keeps to, whatever its submitter asks for. What a manifest leaves open is filled in; what asks for more is
/// refused. It holds for jobs that are submitted from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyFloor {
    /// Approvals that every result needs at least.
    pub quorum: u32,
    /// Whether a manifest may say `ship: auto`.
    pub auto_ship: bool,
    /// Engines that may be used, every one if empty; a manifest that names none gets the first.
    pub engines: Vec<String>,
    /// Whether jobs run in a sandbox or not at all.
    pub sandbox: bool,
    /// How far jobs may reach at most.
    pub network: NetworkLevel,
    /// The most that an engine may do without asking; if absent, whatever the manifest and the factory say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// Children of one job. If absent, people may add any number, and what runs inside a job 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_children: Option<u32>,
    /// How deep children may have children. If absent 16, and 4 for what runs inside a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Jobs that are queued or blocked; the flag `max_queued_jobs` holds as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued_jobs: Option<u64>,
    /// All artifacts of the product together; the flag `artifact_product_mib` holds as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_artifact_mib: Option<u64>,
}

impl Default for PolicyFloor {
    fn default() -> Self {
        (&domain::PolicyFloor::default()).into()
    }
}

impl From<PolicyFloor> for domain::PolicyFloor {
    fn from(policy: PolicyFloor) -> Self {
        Self {
            quorum: policy.quorum,
            auto_ship: policy.auto_ship,
            engines: policy.engines,
            sandbox: policy.sandbox,
            network: policy.network.into(),
            permissions: policy.permissions.map(Into::into),
            max_children: policy.max_children,
            max_depth: policy.max_depth,
            max_queued_jobs: policy.max_queued_jobs,
            max_artifact_mib: policy.max_artifact_mib,
        }
    }
}

impl From<&domain::PolicyFloor> for PolicyFloor {
    fn from(policy: &domain::PolicyFloor) -> Self {
        Self {
            quorum: policy.quorum,
            auto_ship: policy.auto_ship,
            engines: policy.engines.clone(),
            sandbox: policy.sandbox,
            network: policy.network.into(),
            permissions: policy.permissions.map(Into::into),
            max_children: policy.max_children,
            max_depth: policy.max_depth,
            max_queued_jobs: policy.max_queued_jobs,
            max_artifact_mib: policy.max_artifact_mib,
        }
    }
}

/// How results are merged; what is absent was not said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MergeSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MergeStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<MergeBy>,
    /// Of a pull request; `events` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<MergeFeedback>,
    /// Of the commit that is made; `{name}`, `{job}`, `{branch}` and `{reviewers}` are filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of the commit that is made, such as `Ana <ana@example.org>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

impl From<MergeSettings> for domain::job::MergeSettings {
    fn from(settings: MergeSettings) -> Self {
        let MergeSettings { strategy, by, feedback, message, author } = settings;
        let (strategy, by) = (strategy.map(Into::into), by.map(Into::into));
        Self { strategy, by, feedback: feedback.map(Into::into), message, author }
    }
}

impl From<&domain::job::MergeSettings> for MergeSettings {
    fn from(settings: &domain::job::MergeSettings) -> Self {
        let domain::job::MergeSettings { strategy, by, feedback, message, author } = settings.clone();
        let (strategy, by) = (strategy.map(Into::into), by.map(Into::into));
        Self { strategy, by, feedback: feedback.map(Into::into), message, author }
    }
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
    pub merge: MergeSettings,
    pub merge_checks: Vec<String>,
    pub merge_batch: u32,
    pub policy: PolicyFloor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProductList {
    /// By id; those that were ever set.
    pub products: Vec<Product>,
}

impl From<SetProductRequest> for domain::ProductSettings {
    fn from(request: SetProductRequest) -> Self {
        let default = Self::default();
        Self {
            share: request.share.unwrap_or(default.share),
            weights: request.weights.map_or(default.weights, |weights| weights.0),
            repos: request.repos,
            merge: request.merge.map(Into::into).unwrap_or_default(),
            merge_checks: request.merge_checks,
            merge_batch: request.merge_batch.unwrap_or(default.merge_batch),
            policy: request.policy.map(Into::into).unwrap_or_default(),
        }
    }
}

impl From<&domain::Product> for Product {
    fn from(product: &domain::Product) -> Self {
        Self {
            product_id: product.id.to_string(),
            rev: product.rev.0,
            share: product.settings.share,
            weights: Weights(product.settings.weights),
            repos: product.settings.repos.clone(),
            merge: (&product.settings.merge).into(),
            merge_checks: product.settings.merge_checks.clone(),
            merge_batch: product.settings.merge_batch,
            policy: (&product.settings.policy).into(),
        }
    }
}
