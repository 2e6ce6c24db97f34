//! The page: one document for every address in it, and the files which that document loads.
//!
//! Nothing here asks who is calling, because nothing here says anything about the fleet: the same bytes for everyone,
//! looked up by name in what the program carries, never on a disk. What the page shows it asks the API for, with the
//! token of whoever sits in front of it, sent by hand; there are no cookies here (ADR 15).

mod absent;
mod encoding;

use std::borrow::Cow;

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use giga_api::PAGE_HEADER;
use giga_web::{Asset, NONCE_PLACEHOLDER, Page};

use crate::app::App;
use crate::observe::Served;
use crate::problem::{Code, Problem};
use encoding::Coding;

/// The first segments that are no addresses of the page, with all below them.
const NOT_THE_PAGES: [&str; 7] = ["api", "auth", "livez", "mcp", "readyz", "metrics", "assets"];
const HTML: &str = "text/html; charset=utf-8";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ALLOWED: &str = "GET, HEAD";

/// What the page has no use for, nothing in it can ask for.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), \
     fullscreen=(self), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), \
     publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()";

/// Whatever is no route of the API.
pub(crate) async fn answer(
    State(app): State<App>,
    method: Method,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    let found = match app.options.page {
        Some(page) => page.asset(path).map(Found::Asset).or_else(|| document(path, page)),
        None => is_address(path).then_some(Found::NoPage),
    };
    let Some(found) = found else { return nothing(&method, path) };
    if method != Method::GET && method != Method::HEAD {
        return wrong_method(&method, path);
    }
    let mut response = match found {
        Found::Asset(asset) => asset_response(asset, &headers),
        _ if !takes_html(&headers) => return nothing(&method, path),
        Found::Document(page) => document_response(page, app.coordinator.nonce()),
        Found::NoPage => absent::response(),
    };
    // No other site can take anything of ours into its own pages.
    response.headers_mut().insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

enum Found {
    Asset(&'static Asset),
    Document(&'static Page),
    /// It would be an address of the page, if there was one.
    NoPage,
}

fn document(path: &str, page: &'static Page) -> Option<Found> {
    is_address(path).then_some(Found::Document(page))
}

/// Is this an address that somebody can have in front of them? Files are not, so that one that is missing is missed
/// and not answered with a document; they and gRPC services have a dot in their first segment. Further in, dots are
/// fine: topics, flags and factories have them in their names.
fn is_address(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    let first = segments.next().unwrap_or_default();
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-' || letter == b'_';
    let is_named = path == "/" || !first.is_empty();
    is_named && !NOT_THE_PAGES.contains(&first) && first.bytes().all(plain) && segments.all(is_harmless)
}

/// No address of ours leads upwards or hides a separator; whoever sends such a thing is looking for a way out.
fn is_harmless(segment: &str) -> bool {
    let lower = segment.to_ascii_lowercase();
    let dots = lower.replace("%2e", ".");
    dots != "." && dots != ".." && !["\\", "%5c", "%2f", "%00"].iter().any(|bad| lower.contains(bad))
}

/// A program that forgot `/api` and asks for JSON is to be told so, and not to be handed a document.
fn takes_html(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    let html = |value: &str| ["text/html", "text/*", "*/*"].iter().any(|kind| value.contains(kind));
    accepted.peek().is_none() || accepted.any(html)
}

fn nothing(method: &Method, path: &str) -> Response {
    let path: String = path.chars().take(200).collect();
    Problem::new(Code::NotFound, format!("there is no {method} {path}; see /api/openapi.json"))
        .into_response()
}

fn wrong_method(method: &Method, path: &str) -> Response {
    let path: String = path.chars().take(200).collect();
    let detail = format!("{path} belongs to the page and does not take {method}; the API is under /api");
    let mut response = Problem::new(Code::MethodNotAllowed, detail).into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(ALLOWED));
    response
}

/// Made anew for each answer, because of its nonce, and so never kept.
fn document_response(page: &Page, nonce: [u8; 16]) -> Response {
    let nonce = BASE64_STANDARD.encode(nonce);
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let body = page.index.replace(NONCE_PLACEHOLDER, &nonce);
    let mut response = whole(body.into_bytes().into(), HTML);
    let headers = response.headers_mut();
    let policy = HeaderValue::try_from(policy).expect("base64 has only letters that a header may have");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(PAGE_HEADER, HeaderValue::from_static("built"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("permissions-policy", HeaderValue::from_static(PERMISSIONS));
    response.extensions_mut().insert(Served("page"));
    response
}

fn asset_response(asset: &'static Asset, asked: &HeaderMap) -> Response {
    let (coding, packed) = match asset.body {
        giga_web::Body::Plain(_) => (Coding::Identity, None),
        giga_web::Body::Packed { gzip, brotli } => {
            let accepted = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
            match encoding::choose(accepted) {
                Coding::Brotli => (Coding::Brotli, Some(brotli)),
                Coding::Gzip => (Coding::Gzip, Some(gzip)),
                Coding::Identity => (Coding::Identity, None),
            }
        }
    };
    // Other bytes, another tag.
    let tag = match coding.name() {
        Some(name) => format!("\"{}-{name}\"", asset.fingerprint),
        None => format!("\"{}\"", asset.fingerprint),
    };
    let mut response = if is_known(asked, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let body = packed.map_or_else(|| asset.body.plain(), Cow::Borrowed);
        let mut response = whole(body, asset.content_type);
        if let Some(name) = coding.name() {
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(name));
        }
        response
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::try_from(tag).expect("a tag has only hexadecimal digits and a name"));
    let caching = if asset.hashed { FOR_EVER } else { "no-cache" };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if matches!(asset.body, giga_web::Body::Packed { .. }) {
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    response.extensions_mut().insert(Served("asset"));
    response
}

fn is_known(asked: &HeaderMap, tag: &str) -> bool {
    let given = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = given.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

/// With its length, which an answer to HEAD says too.
fn whole(body: Cow<'static, [u8]>, content_type: &'static str) -> Response {
    let length = HeaderValue::from(body.len());
    let body = match body {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_told_from_files_routes_and_ways_out() {
        for path in
            ["/", "/jobs", "/jobs/01ABC", "/topics/mail.v1", "/factories/mac.local", "/flags/", "/new-job"]
        {
            assert!(is_address(path), "{path}");
        }
        for path in [
            "/api",
            "/api/fleet/nothing",
            "/livez/x",
            "/metrics",
            "/assets/",
            "/assets/x.js",
            "/favicon.ico",
            "/gigafactory.v1.Nobody/Knows",
            "/..",
            "//jobs",
            "",
            "/jobs/..",
            "/jobs/%2e%2E/x",
            "/jobs/.",
            "/jobs/a%5Cb",
            "/jobs/a%2fb",
            "/jobs/a%00",
            "/%61pi",
            "/jobs;x",
        ] {
            assert!(!is_address(path), "{path}");
        }
    }
}
