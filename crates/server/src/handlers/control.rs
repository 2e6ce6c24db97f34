//! What a control plane asks for itself: whose token it has, and texts made ready to be shown.

use axum::Json;
use giga_api::wire;
use giga_domain::limits;

use super::Answer;
use crate::caller::{Caller, Who};
use crate::markdown;
use crate::problem::Problem;
use crate::request::{LargeJson, check};

pub(crate) async fn whoami(caller: Caller) -> Answer<Json<wire::WhoAmI>> {
    let (kind, role, factory_id) = match &caller.who {
        Who::User(role) => (wire::TokenKind::User, Some(*role), None),
        Who::Factory(factory) => (wire::TokenKind::Factory, None, Some(factory.to_string())),
        Who::Job(_) | Who::Pool { .. } | Who::Scaler(_) => {
            return Err(Problem::internal("the guard let a token through that reads nothing"));
        }
    };
    let products = caller.scope.as_filter();
    Ok(Json(wire::WhoAmI {
        token_id: caller.token.to_string(),
        label: caller.label.clone(),
        kind,
        role: role.map(Into::into),
        products: products.iter().map(ToString::to_string).collect(),
        every_product: products.is_empty(),
        factory_id,
        expires_at: caller.expires_at.map(|at| at.to_string()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

pub(crate) async fn markdown(
    LargeJson(request): LargeJson<wire::MarkdownRequest, { limits::MANIFEST_BYTES }>,
) -> Answer<Json<wire::MarkdownAnswer>> {
    check::at_most("texts", request.texts.len(), limits::MARKDOWN_TEXTS)?;
    // A large text takes a while, and nobody else should wait for it.
    let rendered = tokio::task::spawn_blocking(move || {
        request.texts.iter().map(|text| markdown::render(text)).collect()
    });
    let html = rendered.await.map_err(|error| Problem::internal(&error.to_string()))?;
    Ok(Json(wire::MarkdownAnswer { html }))
}
