//! Links to artifacts that work without a token: the signature in them is the permission, for one file and for a while.
//!
//! Where the object store makes such links itself, the bytes never pass through here.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::HOST;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use giga_api::wire;
use giga_coordinator::LinkTo;
use giga_domain::{ArtifactId, Timestamp, limits};
use giga_ports::StoreError;

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::request::{PathText, Query, check};

const USUAL: Duration = Duration::from_mins(10);

pub(crate) async fn link(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
    uri: Uri,
    headers: HeaderMap,
) -> Answer<Json<wire::ArtifactLink>> {
    let ttl = query.text("ttl").map_or(Ok(USUAL), |text| check::duration("ttl", text))?;
    if ttl.is_zero() || ttl.as_secs() > limits::LINK_SECONDS {
        return Err(Problem::field("ttl", "a link works for 1s to 24h"));
    }
    let artifact = app.visible_artifact(&caller, path.id()?).await?;
    let link = app.coordinator.artifact_link(&artifact, ttl).await?;
    let url = match link.to {
        LinkTo::Store(url) => url,
        LinkTo::Coordinator { signature } => {
            let (id, expires) = (artifact.id, link.expires_at.as_millis());
            format!(
                "{}/api/fleet/artifacts/{id}/content?expires={expires}&sig={signature}",
                origin(app.is_https, &uri, &headers)
            )
        }
    };
    Ok(Json(wire::ArtifactLink { url, expires_at: link.expires_at.to_string() }))
}

/// As the caller wrote it; whoever makes up a host gets a link that leads there, and tells it to nobody but itself.
pub(super) fn origin(is_https: bool, uri: &Uri, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = uri.authority().map(axum::http::uri::Authority::as_str).or_else(|| text(HOST.as_str()));
    let scheme = if is_https || text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
    host.map(|host| format!("{scheme}://{host}")).unwrap_or_default()
}

pub(crate) async fn follow(
    State(app): State<App>,
    path: PathText,
    query: Query,
    headers: HeaderMap,
) -> Answer<Response> {
    let id: ArtifactId = path.id()?;
    let missing = |name: &str| Problem::field(name, "the query parameter is missing; use the link whole");
    let expires = query.number("expires")?.ok_or_else(|| missing("expires"))?;
    let signature = query.text("sig").ok_or_else(|| missing("sig"))?;
    let expires_at = Timestamp::from_millis(i64::try_from(expires).unwrap_or(i64::MAX));
    // The same words for a forged link and for an old one, and before anything is revealed about the file.
    if !app.coordinator.is_link(id, expires_at, signature).await? {
        return Err(Problem::forbidden("the link is not valid or its time is over; ask for a new one"));
    }
    let artifact = app.coordinator.reads().artifact(id).await?;
    let artifact = artifact.ok_or(StoreError::NoSuchArtifact(id))?;
    app.download(&artifact, &headers).await
}
