//! Named secrets of products. Values go in as bytes, and come out to the holder of a job alone.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use giga_domain as domain;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    pub product_id: String,
    pub name: String,
    /// How often it was set.
    pub version: u64,
    /// The key that its value is encrypted with.
    pub key_id: String,
    pub created_at: String,
    pub updated_at: String,
    /// Who set this version.
    pub updated_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    /// By name.
    pub secrets: Vec<Secret>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotatedSecrets {
    /// The first key of the file: all are encrypted with it now.
    pub key_id: String,
    pub rotated: u64,
    /// Those that were encrypted with it before.
    pub unchanged: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobSecretsRequest {
    pub lease_epoch: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSecrets {
    pub secrets: Vec<JobSecret>,
}

/// A secret for the holder of a job that names it: in a variable or in a file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobSecret {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// Below the job's home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// In Base64.
    pub value: String,
}

impl JobSecret {
    pub fn new(used: &domain::SecretUse, value: &[u8]) -> Self {
        Self {
            name: used.name.to_string(),
            env: used.place.env().map(str::to_owned),
            file: used.place.file().map(str::to_owned),
            value: STANDARD.encode(value),
        }
    }

    /// `None` where it is not Base64.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.value).ok()
    }
}

/// Without its value.
impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSecret").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Secret {
    /// `updated_by` is what people call whoever set it.
    pub fn new(secret: &domain::Secret, updated_by: String) -> Self {
        Self {
            product_id: secret.product.to_string(),
            name: secret.name.to_string(),
            version: secret.version,
            key_id: secret.key_id.clone(),
            created_at: secret.created_at.to_string(),
            updated_at: secret.updated_at.to_string(),
            updated_by,
        }
    }
}
