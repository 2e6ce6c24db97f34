//! The Model Context Protocol over HTTP: one request, one answer, nothing kept in between.
//!
//! Never decides what a caller may do. A tool is a call of the API, made by the very router that serves everybody, with the
//! token of whoever asked: the guard, the limits and the words are the same.

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use giga_api::client::{RawCall, RawMethod};
use giga_api::wire;
use giga_mcp::{Api, CallError, McpServer, serve_http};
use http_body_util::{BodyExt, Limited};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;

use super::Answer;
use crate::app::App;
use crate::auth::Peer;
use crate::problem::{Code, Problem};
use crate::request::{LargeJson, shown};

/// A manifest of the largest size as a text of JSON, with everything in it escaped, and the message around it.
pub(crate) const MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// What a tool reads of one answer; those that are longer are asked for in parts.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Both; what is answered is always the first.
const ACCEPTED: &str = "application/json, text/event-stream";
const PRODUCT: HeaderName = HeaderName::from_static("x-product-id");

/// The whole API but this route.
#[derive(Debug, Clone)]
pub(crate) struct ApiRouter(pub(crate) Router);

pub(crate) async fn serve(
    State(app): State<App>,
    Extension(ApiRouter(router)): Extension<ApiRouter>,
    uri: Uri,
    headers: HeaderMap,
    extensions: axum::http::Extensions,
    LargeJson(message): LargeJson<wire::McpMessage, MESSAGE_BYTES>,
) -> Answer<Response> {
    check_origin(&app, &uri, &headers)?;
    let own = [AUTHORIZATION, PRODUCT];
    let own = own.into_iter().filter_map(|name| headers.get(&name).cloned().map(|value| (name, value)));
    let api = SameCaller { router, headers: own.collect(), peer: Peer::of(&extensions) };
    let bytes = serde_json::to_vec(&message).map_err(|error| Problem::internal(&error.to_string()))?;
    let mut request = Request::new(Bytes::from(bytes));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let response = serve_http(McpServer::fleet(Arc::new(api)), request).await;
    Ok(in_our_words(response.map(Body::new)).await)
}

/// A page of another site has no token of ours and could not read an answer; what it sends is not even looked at.
fn check_origin(app: &App, uri: &Uri, headers: &HeaderMap) -> Answer<()> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    if origin.to_str().is_ok_and(|origin| origin == super::links::origin(app.is_https, uri, headers)) {
        return Ok(());
    }
    let given = shown(&String::from_utf8_lossy(origin.as_bytes()));
    Err(Problem::forbidden(format!("Origin: pages of {given} may not call this coordinator")))
}

/// What the protocol's library refuses in plain text is a problem like any other; its JSON is the protocol's own.
async fn in_our_words(response: Response) -> Response {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    let status = response.status();
    if status.is_success() || response.headers().get(CONTENT_TYPE).is_some_and(is_json) {
        return response;
    }
    let text = Limited::new(response.into_body(), 4096).collect().await;
    let text = text.map(|text| String::from_utf8_lossy(&text.to_bytes()).into_owned()).unwrap_or_default();
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        return Problem::internal(&text).into_response();
    }
    Problem::new(Code::InvalidRequest, text).into_response()
}

/// Calls the API as whoever called us.
#[derive(Debug)]
struct SameCaller {
    router: Router,
    /// The token, and the product if one is named.
    headers: HeaderMap,
    peer: Peer,
}

#[async_trait]
impl Api for SameCaller {
    async fn call(&self, call: RawCall) -> Result<Vec<u8>, CallError> {
        let request = self.request(call).map_err(|error| CallError::Unanswered(error.to_string()))?;
        let service = TowerToHyperService::new(self.router.clone());
        let Ok(response) = service.call(request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        let bytes = body
            .map_err(|error| CallError::Unanswered(format!("the answer is cut off: {error}")))?
            .to_bytes();
        if status.is_success() {
            return Ok(bytes.to_vec());
        }
        let problem: Result<wire::Problem, _> = serde_json::from_slice(&bytes);
        Err(match problem {
            Ok(problem) => CallError::Refused(Box::new(problem)),
            Err(_) => CallError::Unanswered(format!("the coordinator answered {status}")),
        })
    }
}

impl SameCaller {
    fn request(&self, call: RawCall) -> Result<Request<Body>, axum::http::Error> {
        let mut request = Request::builder().uri(call.path_and_query()).method(match call.method {
            RawMethod::Get => Method::GET,
            RawMethod::Post => Method::POST,
        });
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        request = request.extension(self.peer);
        match call.body {
            Some((kind, bytes)) => request.header(CONTENT_TYPE, kind).body(Body::from(bytes)),
            None => request.body(Body::empty()),
        }
    }
}
