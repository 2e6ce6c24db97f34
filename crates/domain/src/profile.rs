//! A persona with what goes with it, under a name and a version. A version never changes.

use serde_json::{Map, Value};

use crate::{Actor, ProductId, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub product: ProductId,
    pub name: String,
    /// From 1, without gaps.
    pub version: u32,
    pub content: ProfileContent,
    pub created_at: Timestamp,
    pub created_by: Actor,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ProfileContent {
    /// What the engine is given before the body of the job.
    pub persona: String,
    /// Keys of a manifest that stand in for those which the manifest leaves out. Capabilities are added to its own.
    pub defaults: Map<String, Value>,
}
