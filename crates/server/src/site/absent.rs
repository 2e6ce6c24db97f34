//! The answer where the page was not built: readable in a browser and with curl, and no error, because nothing is wrong.

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::Response;
use giga_api::PAGE_HEADER;

use super::{HTML, whole};
use crate::observe::Served;

pub(super) fn response() -> Response {
    let mut response = whole(include_bytes!("absent.html").as_slice().into(), HTML);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(PAGE_HEADER, HeaderValue::from_static("absent"));
    response.extensions_mut().insert(Served("page"));
    response
}
