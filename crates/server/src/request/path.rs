//! Ids in the path.

use std::str::FromStr;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use giga_domain::id::IdError;

use super::check;
use crate::app::App;
use crate::problem::Problem;

/// The named parts of the path, decoded.
pub(crate) struct PathText(RawPathParams);

impl PathText {
    pub(crate) fn text(&self, name: &str) -> Result<&str, Problem> {
        let found = self.0.iter().find(|(key, _)| *key == name);
        found
            .map(|(_, text)| text)
            .ok_or_else(|| Problem::internal("a handler asked for a missing path part"))
    }

    /// The part called `id`.
    pub(crate) fn id<T: FromStr<Err = IdError>>(&self) -> Result<T, Problem> {
        check::id("id", self.text("id")?)
    }
}

impl FromRequestParts<App> for PathText {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        RawPathParams::from_request_parts(parts, app).await.map(Self).map_err(|rejection| match rejection {
            RawPathParamsRejection::InvalidUtf8InPathParam(_) => {
                Problem::field("path", "it must be percent-encoded UTF-8")
            }
            other => Problem::internal(&other.to_string()),
        })
    }
}
