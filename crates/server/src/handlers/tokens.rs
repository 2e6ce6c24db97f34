//! Tokens and signing keys: nobody sees, issues, renews or ends a token that is wider than their own, and a secret is shown once.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use giga_api::wire;
use giga_domain::token::{Lifetime, Permission, TokenRecord};
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
    let (role, lifetime) = (request.role.into(), lifetime(request.expires.as_deref())?);
    let (token, secret) =
        app.coordinator.issue_token_for(lifetime, role, products, request.label, caller.actor()).await?;
    let answer = wire::IssueTokenAnswer {
        id: token.id.to_string(),
        token: secret.reveal().to_owned(),
        expires_at: token.expires_at.map(|at| at.to_string()),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

fn lifetime(text: Option<&str>) -> Answer<Lifetime> {
    let parsed = text.map_or(Ok(Lifetime::USER), str::parse);
    parsed.map_err(|error| Problem::field("expires", error.to_string()))
}

pub(crate) async fn renew(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::RenewTokenRequest>,
) -> Answer<Json<wire::Token>> {
    let token = own(&app, &caller, path.id()?).await?;
    let lifetime = match (request.expires.as_deref(), &token.permission) {
        (None, Permission::Factory { .. }) => Lifetime::RENEWED,
        (text, _) => lifetime(text)?,
    };
    let renewed = app.coordinator.renew_token(&token, lifetime, caller.actor()).await?;
    Ok(Json(shapes::token(&renewed)))
}

/// One that is no wider than the caller's own.
async fn own(app: &App, caller: &Caller, id: TokenId) -> Answer<TokenRecord> {
    let tokens = app.coordinator.reads().tokens().await?;
    let own = |token: &TokenRecord| caller.scope.covers(shapes::products_of(&token.permission));
    let found = tokens.into_iter().find(|token| token.id == id && own(token));
    found.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no token {id}")))
}

pub(crate) async fn rotate_keys(State(app): State<App>, caller: Caller) -> Answer<Json<wire::RotatedKeys>> {
    let keys = app.coordinator.rotate_keys(caller.actor()).await?;
    Ok(Json(wire::RotatedKeys { keys: keys.into_iter().map(str::to_owned).collect() }))
}

pub(crate) async fn revoke(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let token = own(&app, &caller, path.id()?).await?;
    app.coordinator.revoke_token(token.id, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
