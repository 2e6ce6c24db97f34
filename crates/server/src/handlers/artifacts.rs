//! Files that runs leave behind.
//!
//! They come from whatever ran in a job, so they are never shown in place: always an attachment, never sniffed, and
//! never something that a browser would run in the coordinator's name.

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::{Artifact, ArtifactId, ArtifactName, limits};
use giga_ports::StoreError;

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::handlers::holders::holder;
use crate::problem::Problem;
use crate::request::{BytesBody, PathText, Query, header};

const UNKNOWN_TYPE: &str = "application/octet-stream";
const MEDIA_TYPE_CHARS: usize = 120;

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
    headers: HeaderMap,
    BytesBody(bytes): BytesBody<{ limits::ARTIFACT_BYTES }>,
) -> Answer<Response> {
    let id = path.id()?;
    let missing = |name: &str| Problem::field(name, "the query parameter is missing");
    let name: ArtifactName = query.id("name")?.ok_or_else(|| missing("name"))?;
    let epoch = query.number("leaseEpoch")?.ok_or_else(|| missing("leaseEpoch"))?;
    let holder = holder(&caller, epoch)?;
    let media_type = media_type(&headers)?;
    match app.coordinator.put_artifact(id, holder, name, media_type, bytes.to_vec()).await {
        Ok(artifact) => Ok((StatusCode::CREATED, Json(wire::Artifact::from(&artifact))).into_response()),
        Err(error) => Err(app.refused(&caller, id, error).await),
    }
}

fn media_type(headers: &HeaderMap) -> Answer<String> {
    let given = header::single(headers, CONTENT_TYPE.as_str())?.unwrap_or(UNKNOWN_TYPE);
    if given.contains('/') && given.len() <= MEDIA_TYPE_CHARS {
        Ok(given.to_owned())
    } else {
        let message =
            format!("it must be a media type such as text/plain, of at most {MEDIA_TYPE_CHARS} characters");
        Err(Problem::field("content-type", message))
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::ArtifactList>> {
    let job = app.visible_job(&caller, path.id()?).await?;
    let artifacts = app.coordinator.reads().artifacts(job.id).await?;
    Ok(Json(wire::ArtifactList { artifacts: artifacts.iter().map(wire::Artifact::from).collect() }))
}

pub(crate) async fn get(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    let artifact = app.visible_artifact(&caller, path.id()?).await?;
    let bytes = app.coordinator.artifact_bytes(&artifact).await?;
    let media_type = HeaderValue::from_str(&artifact.media_type);
    let headers = [
        (CONTENT_TYPE, media_type.unwrap_or(HeaderValue::from_static(UNKNOWN_TYPE))),
        (CONTENT_DISPOSITION, attachment(&artifact.name)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'")),
    ];
    Ok((headers, bytes).into_response())
}

pub(crate) async fn delete(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let artifact = app.visible_artifact(&caller, path.id()?).await?;
    app.coordinator.delete_artifact(artifact, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl App {
    /// The artifact, unless it does not exist or belongs to another product: both answer alike.
    async fn visible_artifact(&self, caller: &Caller, id: ArtifactId) -> Answer<Artifact> {
        let artifact = self.coordinator.reads().artifact(id).await?;
        let visible = artifact.filter(|artifact| caller.products.allows(&artifact.product));
        visible.ok_or_else(|| StoreError::NoSuchArtifact(id).into())
    }
}

/// The name twice: once in letters that every client understands, once whole.
fn attachment(name: &ArtifactName) -> HeaderValue {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let file = name.file_name();
    let simple: String = file.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let whole: String = file
        .bytes()
        .map(|b| if plain(char::from(b)) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect();
    let text = format!("attachment; filename=\"{simple}\"; filename*=UTF-8''{whole}");
    HeaderValue::from_str(&text).expect("letters, digits, percent signs and what stands above are all ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_breaks_out_of_its_header() {
        for (name, expected) in [
            ("logs/report.txt", "attachment; filename=\"report.txt\"; filename*=UTF-8''report.txt"),
            ("a\"; x=\"b", "attachment; filename=\"a___x__b\"; filename*=UTF-8''a%22%3B%20x%3D%22b"),
            ("größe", "attachment; filename=\"gr__e\"; filename*=UTF-8''gr%C3%B6%C3%9Fe"),
        ] {
            assert_eq!(attachment(&name.parse().unwrap()), expected);
        }
    }
}
