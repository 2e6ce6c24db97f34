//! One function per route: check what was sent, call a use case, shape the answer.
//!
//! Who may call each of them is not decided here but in the route table.

pub(crate) mod artifacts;
pub(crate) mod events;
pub(crate) mod factories;
pub(crate) mod flags;
pub(crate) mod fleet;
pub(crate) mod health;
pub(crate) mod holders;
pub(crate) mod jobs;
pub(crate) mod submit;
pub(crate) mod tokens;
pub(crate) mod topics;
pub(crate) mod work;

use axum::Json;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::Job;

use crate::problem::Problem;
use crate::request::header;

pub(crate) type Answer<T> = Result<T, Problem>;

/// A job with its entity tag, as every write of one answers.
fn tagged(job: &Job) -> Response {
    (header::etag(&header::job_tag(job.rev)), Json(wire::Job::from(job))).into_response()
}
