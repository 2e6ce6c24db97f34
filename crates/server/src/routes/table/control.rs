//! What a control plane asks for itself.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Viewer, Worker};

use crate::handlers::control;
use crate::routes::Access::{Role, RoleOrFactory};
use crate::routes::{Route, Scope};

pub(super) fn control_routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/fleet/whoami", "whoami", RoleOrFactory(Worker), Scope::Nothing, |m| {
            on(m, control::whoami)
        })
        .about("Whose token this is, and what it is good for")
        .gives::<wire::WhoAmI>(200, "The caller"),
        Route::new(
            Method::POST,
            "/api/fleet/markdown",
            "renderMarkdown",
            Role(Viewer),
            Scope::Nothing,
            |m| on(m, control::markdown),
        )
        .about("Markdown as HTML that may be shown: up to 50 texts, 1 MiB in all")
        .takes::<wire::MarkdownRequest>()
        .gives::<wire::MarkdownAnswer>(200, "One piece of HTML for each text, in their order"),
    ]
}
