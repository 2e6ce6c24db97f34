//! Named secrets: set, listed, removed, and given to the holder of a job. No other route answers with a value.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::{SecretName, limits};
use zeroize::Zeroizing;

use super::holders::holder;
use super::{Answer, product_in_path};
use crate::app::App;
use crate::caller::Caller;
use crate::names::Names;
use crate::problem::{Code, Problem};
use crate::request::body::BytesBody;
use crate::request::{JsonBody, PathText, check};

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::SecretList>> {
    let secrets = app.coordinator.secrets(&product_in_path(&caller, &path)?).await?;
    let names = Names::read(&app).await?;
    let shown = secrets.iter().map(|secret| wire::Secret::new(secret, names.of(&secret.updated_by)));
    Ok(Json(wire::SecretList { secrets: shown.collect() }))
}

pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    BytesBody(value): BytesBody<{ limits::SECRET_BYTES }>,
) -> Answer<Json<wire::Secret>> {
    let product = product_in_path(&caller, &path)?;
    let value = Zeroizing::new(Vec::from(value));
    let secret = app.coordinator.set_secret(product, name(&path)?, value, caller.actor()).await?;
    let by = Names::read(&app).await?.of(&secret.updated_by);
    Ok(Json(wire::Secret::new(&secret, by)))
}

pub(crate) async fn remove(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let (product, name) = (product_in_path(&caller, &path)?, name(&path)?);
    if app.coordinator.remove_secret(product.clone(), name.clone(), caller.actor()).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::new(Code::NotFound, format!("there is no secret {name} in product {product}")))
}

pub(crate) async fn rotate(State(app): State<App>, caller: Caller) -> Answer<Json<wire::RotatedSecrets>> {
    let rekeyed = app.coordinator.rekey_secrets(caller.actor()).await?;
    Ok(Json(wire::RotatedSecrets {
        key_id: rekeyed.key_id,
        rotated: rekeyed.rekeyed as u64,
        unchanged: rekeyed.unchanged as u64,
    }))
}

pub(crate) async fn of_job(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::JobSecretsRequest>,
) -> Answer<Response> {
    let id = path.id()?;
    let holder = holder(&caller, request.lease_epoch)?;
    let given = match app.coordinator.secrets_for_holder(id, &holder).await {
        Ok(given) => given,
        Err(error) => return Err(app.refused(&caller, id, error).await),
    };
    let secrets = given.iter().map(|given| wire::JobSecret::new(&given.used, &given.value)).collect();
    Ok(([(CACHE_CONTROL, "no-store")], Json(wire::JobSecrets { secrets })).into_response())
}

fn name(path: &PathText) -> Answer<SecretName> {
    check::id("name", path.text("name")?)
}
