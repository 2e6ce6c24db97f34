//! Feature flags.

use axum::Json;
use axum::extract::State;
use giga_api::wire;

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::request::{JsonBody, PathText};
use crate::shapes;

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::FlagList>> {
    let flags = app.coordinator.flags().await?;
    Ok(Json(wire::FlagList { flags: flags.into_iter().map(shapes::flag).collect() }))
}

pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    JsonBody(request): JsonBody<wire::SetFlagRequest>,
) -> Answer<Json<wire::Flag>> {
    let flag = app.coordinator.set_flag(path.text("name")?, request.value, caller.actor()).await?;
    Ok(Json(shapes::flag(flag)))
}
