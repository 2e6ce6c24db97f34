//! What is noted about each request and put on each answer. Never a token, a body or a query.

use std::any::Any;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::app::App;
use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    pub(crate) requests: Family<RequestLabels, Counter>,
}

/// What was answered, where it was no route of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Served(pub(crate) &'static str);

/// Counts and logs by the route's pattern, so that nobody can make up labels.
pub(crate) async fn record(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = known(request.method());
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let route = matched.unwrap_or_else(|| {
        response.extensions().get::<Served>().map_or("unmatched", |served| served.0).to_owned()
    });
    app.http.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    let elapsed = began.elapsed();
    tracing::debug!(method, path, status, ?elapsed, "answered");
    response
}

fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

/// A bug in a handler costs its own request and nothing else.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without words");
    Problem::internal(&format!("a handler panicked: {text}")).into_response()
}

/// The API is data: nothing in it is to be framed, sniffed, run or kept by a browser.
pub(crate) async fn harden(mut response: Response) -> Response {
    let caching = if response.headers().contains_key(ETAG) { "private, no-cache" } else { "no-store" };
    let defaults: [(HeaderName, &'static str); 5] = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (CACHE_CONTROL, caching),
    ];
    for (name, value) in defaults {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
