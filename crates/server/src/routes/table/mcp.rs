//! The API as tools of the Model Context Protocol.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::Viewer;

use crate::handlers::mcp;
use crate::routes::Access::Role;
use crate::routes::{Content, Route, Scope};

/// What it is called in the table.
pub(crate) const OPERATION: &str = "mcp";

pub(super) fn mcp_routes() -> Vec<Route> {
    vec![
        // Each tool is a call of the API in its turn, with the caller's token: that call's own row says who may make it.
        Route::new(Method::POST, "/mcp", OPERATION, Role(Viewer), Scope::Nothing, |m| on(m, mcp::serve))
            .about("The API as tools of the Model Context Protocol (streamable HTTP, without sessions); every tool is a call of this API with the same token")
            .takes::<wire::McpMessage>()
            .gives::<wire::McpMessage>(200, "The answer to a request; a tool's refusal is one too")
            .answer(202, "A notification was taken note of", Content::Nothing),
    ]
}
