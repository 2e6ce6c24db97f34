//! Files that runs leave behind.
//!
//! They come from whatever ran in a job, so they are never shown in place: always an attachment, never sniffed, and
//! never something that a browser would run in the coordinator's name.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::NewArtifact;
use giga_domain::{Artifact, ArtifactId, ArtifactName, JobId};
use giga_ports::StoreError;

use super::Answer;
use crate::app::App;
use crate::caller::{Caller, Who};
use crate::handlers::holders::holder;
use crate::problem::{Code, Problem};
use crate::request::ranges::{self, Wanted};
use crate::request::{PathText, Query, Upload, header};

const UNKNOWN_TYPE: &str = "application/octet-stream";
const MEDIA_TYPE_CHARS: usize = 120;

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    query: Query,
    headers: HeaderMap,
    upload: Upload,
) -> Answer<Response> {
    let id = path.id()?;
    match put_file(&app, &caller, id, &query, &headers, &upload).await {
        Ok(artifact) => Ok((StatusCode::CREATED, Json(wire::Artifact::from(&artifact))).into_response()),
        Err(problem) => {
            upload.throw_away().await;
            Err(problem)
        }
    }
}

async fn put_file(
    app: &App,
    caller: &Caller,
    job: JobId,
    query: &Query,
    headers: &HeaderMap,
    upload: &Upload,
) -> Answer<Artifact> {
    let missing = |name: &str| Problem::field(name, "the query parameter is missing");
    let name: ArtifactName = query.id("name")?.ok_or_else(|| missing("name"))?;
    let epoch = query.number("leaseEpoch")?.ok_or_else(|| missing("leaseEpoch"))?;
    let holder = holder(caller, epoch)?;
    if caller.is_kept_from(job) {
        return Err(Problem::no_job(job));
    }
    if matches!(caller.who, Who::Job(_)) && name.is_the_factorys() {
        return Err(Problem::forbidden(format!(
            "name: {} is written by the factory alone; choose another name",
            name.as_str()
        )));
    }
    let new = NewArtifact { job, holder, actor: caller.actor(), name, media_type: media_type(headers)? };
    let (coordinator, bytes) = (app.coordinator.clone(), upload.stream(app.coordinator.artifact_bytes()));
    // In a task of its own: a client that goes away must not leave half an upload behind.
    let putting = tokio::spawn(async move { coordinator.put_artifact(new, bytes).await });
    let put = putting.await.map_err(|error| Problem::internal(&error.to_string()))?;
    match put {
        Ok(artifact) => Ok(artifact),
        Err(error) => Err(app.refused(caller, job, error).await),
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

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
) -> Answer<Response> {
    let artifact = app.visible_artifact(&caller, path.id()?).await?;
    app.download(&artifact, &headers).await
}

pub(crate) async fn delete(State(app): State<App>, caller: Caller, path: PathText) -> Answer<StatusCode> {
    let artifact = app.visible_artifact(&caller, path.id()?).await?;
    app.coordinator.delete_artifact(artifact, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl App {
    /// The artifact, unless it does not exist or belongs to another product or job: all answer alike.
    pub(crate) async fn visible_artifact(&self, caller: &Caller, id: ArtifactId) -> Answer<Artifact> {
        let artifact = self.coordinator.reads().artifact(id).await?;
        let visible = artifact.filter(|artifact| {
            caller.products.allows(&artifact.product) && !caller.is_kept_from(artifact.job)
        });
        visible.ok_or_else(|| StoreError::NoSuchArtifact(id).into())
    }

    /// The bytes, or those that the `Range` header asks for, as they come from where they are.
    pub(crate) async fn download(&self, artifact: &Artifact, request: &HeaderMap) -> Answer<Response> {
        // What stands under an id never changes.
        let tag = format!("\"{}\"", artifact.id);
        let (status, wanted) = match ranges::wanted(request, &tag, artifact.size) {
            Wanted::Whole => (StatusCode::OK, 0..artifact.size),
            Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
            Wanted::Nothing => return Ok(unsatisfiable(artifact.size)),
        };
        let length = wanted.end - wanted.start;
        let mut headers = HeaderMap::new();
        if status == StatusCode::PARTIAL_CONTENT {
            let text = format!("bytes {}-{}/{}", wanted.start, wanted.end - 1, artifact.size);
            headers.insert(CONTENT_RANGE, ascii(&text));
        }
        let unknown = HeaderValue::from_static(UNKNOWN_TYPE);
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(&artifact.media_type).unwrap_or(unknown));
        headers.insert(CONTENT_DISPOSITION, ascii(&artifact.name.content_disposition()));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
        headers.insert(CONTENT_LENGTH, length.into());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private"));
        headers.insert(ETAG, ascii(&tag));
        let bytes = self.coordinator.artifact_stream(artifact, wanted).await?;
        Ok((status, headers, Body::from_stream(bytes)).into_response())
    }
}

fn unsatisfiable(size: u64) -> Response {
    let detail = format!("the file has {size} bytes, and none where the Range header asks for some");
    let problem = Problem::new(Code::RangeNotSatisfiable, detail);
    ([(CONTENT_RANGE, ascii(&format!("bytes */{size}")))], problem).into_response()
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("letters, digits and signs of ASCII are legal in a header")
}
