//! Request bodies: read up to a limit, whether or not their length was announced.
//!
//! A body is never buffered past its limit. What a client sends beyond it is read and thrown away for a while, because
//! an answer that comes while the client still writes would be lost with the connection.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Extensions, HeaderMap};
use futures::{StreamExt, stream};
use giga_domain::limits;
use giga_ports::BlobError;
use giga_ports::blobs::ByteStream;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::room::GrowingBody;
use super::{json, shown};
use crate::app::App;
use crate::caller::Caller;
use crate::problem::{Code, Problem};

/// How much past the limit is thrown away before the connection is simply closed.
const THROWN_AWAY: usize = 16 * 1024 * 1024;

/// What is larger than this gets more time, and how many bytes of it have to come per second.
const LARGE: usize = 1024 * 1024;
const SLOWEST: usize = 256 * 1024;

/// A JSON object of this type.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The same where it may carry many payloads, or long texts.
pub(crate) struct LargeJson<T, const LIMIT: usize = { limits::TOPIC_REQUEST_BYTES }>(pub(crate) T);

/// The same, or nothing at all, which means the default.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, app.options.request_bytes, app, &parts.extensions).await?;
        require_json(&parts.headers)?;
        json::parse(&bytes).map(Self)
    }
}

impl<T: DeserializeOwned, const LIMIT: usize> FromRequest<App> for LargeJson<T, LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, LIMIT, app, &parts.extensions).await?;
        require_json(&parts.headers)?;
        json::parse(&bytes).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, app.options.request_bytes, app, &parts.extensions).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        require_json(&parts.headers)?;
        json::parse(&bytes).map(Self)
    }
}

/// Bytes of any kind, up to a limit.
pub(crate) struct BytesBody<const LIMIT: usize>(pub(crate) Bytes);

impl<const LIMIT: usize> FromRequest<App> for BytesBody<LIMIT> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        read(body, LIMIT, app, &parts.extensions).await.map(Self)
    }
}

/// A body that goes on to somewhere else while it arrives.
pub(crate) struct Upload {
    body: Arc<Mutex<Body>>,
    patience: Duration,
}

impl FromRequest<App> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let body = Arc::new(Mutex::new(request.into_body()));
        Ok(Self { body, patience: app.options.body_timeout })
    }
}

impl Upload {
    /// The bytes as they come, as long as they do.
    pub(crate) fn stream(&self, most: u64) -> ByteStream {
        let extra = Duration::from_secs(most.saturating_sub(LARGE as u64) / SLOWEST as u64);
        let until = Instant::now() + self.patience + extra;
        let body = self.body.clone();
        stream::unfold(Some(body), move |body| async move {
            let body = body?;
            let frame = tokio::time::timeout_at(until, body.lock().await.frame()).await;
            match frame {
                Ok(None) => None,
                Ok(Some(Ok(frame))) => Some((Ok(frame.into_data().unwrap_or_default()), Some(body))),
                Ok(Some(Err(error))) => {
                    tracing::debug!(%error, "a body broke off");
                    let reason = "it broke off before its end; send it again".to_owned();
                    Some((Err(BlobError::BrokeOff(reason)), None))
                }
                Err(_) => {
                    let reason = "it did not arrive in time; send it again, faster".to_owned();
                    Some((Err(BlobError::BrokeOff(reason)), None))
                }
            }
        })
        .boxed()
    }

    /// What a refused client still sends, up to a point, so that it gets to read the answer.
    pub(crate) async fn throw_away(&self) {
        let mut thrown = 0;
        let rest = async {
            let mut body = self.body.lock().await;
            while let Some(Ok(frame)) = body.frame().await {
                thrown += frame.into_data().map_or(0, |data| data.len());
                if thrown > THROWN_AWAY {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(self.patience, rest).await;
    }
}

/// A job as it can be sent.
#[derive(Debug)]
pub(crate) enum ManifestBody {
    Markdown(Bytes),
    Json(giga_api::wire::SubmitRequest),
}

impl FromRequest<App> for ManifestBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, app.options.manifest_bytes, app, &parts.extensions).await?;
        let wanted = "send the manifest as text/markdown, or {manifest, bodyMd} as application/json";
        match media_type(&parts.headers, wanted)?.as_str() {
            "text/markdown" | "text/x-markdown" => Ok(Self::Markdown(bytes)),
            "application/json" => json::parse(&bytes).map(Self::Json),
            other => Err(unsupported(other, wanted)),
        }
    }
}

/// A profile as it can be sent.
#[derive(Debug)]
pub(crate) enum ProfileBody {
    Markdown(Bytes),
    Json(giga_api::wire::AddProfileRequest),
}

impl FromRequest<App> for ProfileBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, app.options.request_bytes, app, &parts.extensions).await?;
        let wanted = "send the profile as text/markdown, or {personaMd, defaults} as application/json";
        match media_type(&parts.headers, wanted)?.as_str() {
            "text/markdown" | "text/x-markdown" => Ok(Self::Markdown(bytes)),
            "application/json" => json::parse(&bytes).map(Self::Json),
            other => Err(unsupported(other, wanted)),
        }
    }
}

pub(crate) async fn read(
    body: Body,
    limit: usize,
    app: &App,
    extensions: &Extensions,
) -> Result<Bytes, Problem> {
    let caller = extensions.get::<Caller>().map(|caller| caller.token.clone());
    let kept = GrowingBody::new(&app.body_room, caller);
    let extra = Duration::from_secs((limit.saturating_sub(LARGE) / SLOWEST) as u64);
    let patience = app.options.body_timeout + extra;
    let reading = tokio::time::timeout(patience, read_up_to(body, limit, kept));
    reading.await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {} seconds", patience.as_secs());
        Err(Problem::new(Code::RequestTimeout, detail))
    })
}

async fn read_up_to(mut body: Body, limit: usize, mut kept: GrowingBody) -> Result<Bytes, Problem> {
    let mut arrived = 0usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            tracing::debug!(%error, "a body broke off");
            Problem::field("body", "it broke off before its end; send it again")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        arrived = arrived.saturating_add(data.len());
        if arrived <= limit {
            kept.extend(&data)?;
        } else if arrived > limit.saturating_add(THROWN_AWAY) {
            break;
        }
    }
    if arrived > limit {
        let detail = format!("the body is larger than {limit} bytes, the most that this call takes");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    Ok(Bytes::from_owner(kept))
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let wanted = "send application/json";
    match media_type(headers, wanted)?.as_str() {
        "application/json" => Ok(()),
        other => Err(unsupported(other, wanted)),
    }
}

fn unsupported(given: &str, wanted: &str) -> Problem {
    let detail = format!("content-type `{}` is not understood here: {wanted}", shown(given));
    Problem::new(Code::UnsupportedMediaType, detail)
}

/// The media type in lower case, its parameters checked and left out.
fn media_type(headers: &HeaderMap, wanted: &str) -> Result<String, Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        let detail = format!("the content-type header is missing: {wanted}");
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_owned();
    for parameter in parts {
        let charset = parameter.strip_prefix("charset=").map(|charset| charset.trim_matches('"'));
        if charset.is_some_and(|charset| charset != "utf-8" && charset != "utf8") {
            let detail = format!("content-type `{}`: only UTF-8 is understood", shown(&text));
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
    }
    Ok(media_type)
}
