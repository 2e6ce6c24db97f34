//! One function per route: check what was sent, call a use case, shape the answer.
//!
//! Who may call each of them is not decided here but in the route table.

pub(crate) mod accounts;
pub(crate) mod artifacts;
pub(crate) mod audit;
pub(crate) mod budgets;
pub(crate) mod capabilities;
pub(crate) mod control;
pub(crate) mod conversation;
pub(crate) mod dag;
pub(crate) mod effects;
pub(crate) mod events;
pub(crate) mod factories;
pub(crate) mod flags;
pub(crate) mod fleet;
pub(crate) mod health;
pub(crate) mod holders;
pub(crate) mod hooks;
pub(crate) mod jobs;
pub(crate) mod links;
pub(crate) mod mcp;
pub(crate) mod pools;
pub(crate) mod products;
pub(crate) mod profiles;
pub(crate) mod secrets;
pub(crate) mod sign_in;
pub(crate) mod submit;
pub(crate) mod tokens;
pub(crate) mod topics;
pub(crate) mod work;

use axum::Json;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::{Job, ProductId};

use crate::caller::Caller;
use crate::problem::Problem;
use crate::request::{PathText, check, header};

pub(crate) type Answer<T> = Result<T, Problem>;

/// A job with its entity tag, as every write of one answers.
fn tagged(job: &Job) -> Response {
    (header::etag(&header::job_tag(job.rev)), Json(wire::Job::from(job))).into_response()
}

/// The same with its reviews.
fn tagged_with_reviews(job: &Job) -> Response {
    (header::etag(&header::job_tag(job.rev)), Json(wire::Job::from(job).with_reviews(job))).into_response()
}

/// The product that the path names, where the caller may speak of it. One outside the token's scope is refused in the
/// same words whether or not it exists.
fn product_in_path(caller: &Caller, path: &PathText) -> Answer<ProductId> {
    let product: ProductId = check::id("product", path.text("product")?)?;
    if caller.products.allows(&product) {
        return Ok(product);
    }
    if caller.scope.allows(&product) {
        let meant = caller.products.listed();
        let message =
            format!("the path says {product}, the header x-product-id says {meant}; leave the header out");
        return Err(Problem::field("product", message));
    }
    let own = caller.scope.listed();
    Err(Problem::forbidden(format!("product: this token is for {own}, not for {product}")))
}
