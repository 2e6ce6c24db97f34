//! What a control plane asks for itself: whose token it has, and texts made ready to be shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Role, TokenKind};

/// Whose token this is, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhoAmI {
    pub token_id: String,
    /// What the token was called when it was issued; may be empty.
    pub label: String,
    pub kind: TokenKind,
    /// A factory has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The products that the token is for. Empty: every product, and `everyProduct` says so too.
    pub products: Vec<String>,
    pub every_product: bool,
    /// Whose token it is, where `kind` is `factory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factory_id: Option<String>,
    /// Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The version of the coordinator that answers.
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkdownRequest {
    /// At most 50.
    pub texts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MarkdownAnswer {
    /// One for each text, in their order: safe to put into a page as it is, and it loads nothing from anywhere. HTML in
    /// a text is shown as text, images are links, headings begin at the third level.
    pub html: Vec<String>,
}
