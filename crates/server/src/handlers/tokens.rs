//! Tokens: nobody sees, issues or ends one that is wider than their own, and a secret is shown once.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use giga_api::wire;
use giga_domain::{TokenId, limits};

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::request::{JsonBody, PathText, check};
use crate::shapes;

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::TokenList>> {
    let tokens = app.coordinator.reads().tokens().await?;
    let own = tokens.iter().filter(|token| caller.scope.covers(shapes::products_of(&token.permission)));
    Ok(Json(wire::TokenList { tokens: own.map(shapes::token).collect() }))
}

pub(crate) async fn issue(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::IssueTokenRequest>,
) -> Answer<(StatusCode, Json<wire::IssueTokenAnswer>)> {
    let products = check::products("products", &request.products)?;
    if !request.label.is_empty() {
        check::name("label", &request.label, limits::NAME_CHARS)?;
    }
    if !caller.scope.covers(&products) {
        let own = caller.scope.listed();
        return Err(Problem::forbidden(format!(
            "products: a token cannot be wider than the one that issues it, which is for {own}"
        )));
    }
    let (token, secret) =
        app.coordinator.issue_token(request.role.into(), products, request.label, caller.actor()).await?;
    let answer = wire::IssueTokenAnswer { id: token.id.to_string(), token: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(answer)))
}

pub(crate) async fn revoke(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let id: TokenId = path.id()?;
    let tokens = app.coordinator.reads().tokens().await?;
    let own = |permission| caller.scope.covers(shapes::products_of(permission));
    if !tokens.iter().any(|token| token.id == id && own(&token.permission)) {
        return Err(Problem::new(Code::NotFound, format!("there is no token {id}")));
    }
    app.coordinator.revoke_token(id, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
