//! Profiles: looked at, and made by adding versions. Nothing here changes one.

use axum::Json;
use axum::extract::State;
use giga_api::wire;
use giga_domain::ProfileContent;

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::{Code, Problem};
use crate::request::body::ProfileBody;
use crate::request::query::whole_number;
use crate::request::{PathText, shown};

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::ProfileList>> {
    let profiles = app.coordinator.profiles(&caller.product()?).await?;
    Ok(Json(wire::ProfileList { profiles: profiles.iter().map(Into::into).collect() }))
}

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Profile>> {
    find(&app, &caller, path.text("name")?, None).await
}

pub(crate) async fn get_version(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Profile>> {
    let version = whole_number("version", path.text("version")?)?;
    let version = u32::try_from(version).ok().filter(|version| *version > 0);
    let version = version.ok_or_else(|| Problem::field("version", "versions are numbered from 1 on"))?;
    find(&app, &caller, path.text("name")?, Some(version)).await
}

async fn find(app: &App, caller: &Caller, name: &str, version: Option<u32>) -> Answer<Json<wire::Profile>> {
    let product = caller.product()?;
    if let Some(profile) = app.coordinator.profile(&product, name, version).await? {
        return Ok(Json((&profile).into()));
    }
    let name = shown(name);
    let what = match version {
        Some(version) => format!("no version {version} of the profile {name}"),
        None => format!("no profile {name}"),
    };
    Err(Problem::new(Code::NotFound, format!("there is {what} in the product {product}")))
}

pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    body: ProfileBody,
) -> Answer<Json<wire::Profile>> {
    let content = match body {
        ProfileBody::Markdown(bytes) => ProfileContent::from_markdown(&bytes)?,
        ProfileBody::Json(request) => ProfileContent::from_json(request.persona_md, request.defaults)?,
    };
    let name = path.text("name")?.to_owned();
    let profile = app.coordinator.add_profile(caller.product()?, name, content, caller.actor()).await?;
    Ok(Json((&profile).into()))
}
