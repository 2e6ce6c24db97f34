//! Personas with what goes with them. A version never changes.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The JSON form of a profile; Markdown with the defaults as front matter and the persona as its body is the other one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddProfileRequest {
    /// What the engine is given before the body of the job.
    #[serde(default)]
    pub persona_md: String,
    /// Keys of a manifest that stand in for those which the manifest leaves out. Capabilities are added to its own.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub defaults: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    pub product_id: String,
    pub name: String,
    /// From 1, without gaps.
    pub version: u32,
    pub persona_md: String,
    #[schema(value_type = Object)]
    pub defaults: Map<String, Value>,
    pub created_at: String,
    pub created_by: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProfileList {
    /// The newest version of each, by name.
    pub profiles: Vec<Profile>,
}

impl From<&domain::Profile> for Profile {
    fn from(profile: &domain::Profile) -> Self {
        Self {
            product_id: profile.product.to_string(),
            name: profile.name.clone(),
            version: profile.version,
            persona_md: profile.content.persona.clone(),
            defaults: profile.content.defaults.clone(),
            created_at: profile.created_at.to_string(),
            created_by: profile.created_by.to_string(),
        }
    }
}
