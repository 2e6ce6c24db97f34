//! Submitting a job, for real and as a dry run.

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::{KnownProfiles, SubmitRequest};
use giga_domain::manifest::{Draft, Manifest, TRACKER_KEY};
use giga_domain::product::DEFAULT_PRODUCT;
use giga_domain::{FailReason, ProductId, limits};

use super::Answer;
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;
use crate::request::body::ManifestBody;
use crate::request::{check, header};
use crate::shapes;

const KEY_HEADER: &str = "idempotency-key";

pub(crate) async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: ManifestBody,
) -> Answer<Response> {
    let (product, mut manifest, body) = read(&app, &caller, &headers, body).await?;
    manifest.idempotency_key = choose_key(&headers, manifest.idempotency_key.take())?;
    let request = SubmitRequest { product, manifest, body, actor: caller.actor() };
    let sight = caller.sight();
    let submitted = app.coordinator.submit(request).await;
    let submitted = submitted.map_err(|error| Problem::told_to(&sight, error))?;
    let job = &submitted.job;
    let answer = wire::SubmitAnswer {
        job: job.into(),
        routable: submitted.routable.is_ok(),
        warnings: submitted
            .routable
            .err()
            .map(|why| why.to_string())
            .into_iter()
            .chain(submitted.foreign_repo.map(|foreign| foreign.told_to(&sight)))
            .collect(),
    };
    let status = if submitted.created { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(LOCATION, format!("/api/fleet/jobs/{}", job.id))];
    Ok((status, location, header::etag(&header::job_tag(job.rev)), Json(answer)).into_response())
}

pub(crate) async fn plan(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: ManifestBody,
) -> Answer<Json<wire::PlanAnswer>> {
    let (product, manifest, _) = read(&app, &caller, &headers, body).await?;
    let sight = caller.sight();
    let dry_run = app.coordinator.dry_run_for(&sight, product, &manifest).await;
    let dry_run = dry_run.map_err(|error| Problem::told_to(&sight, error))?;
    let visible = app.visible_factories(&caller).await?;
    Ok(Json(wire::PlanAnswer {
        routable: dry_run.routable.is_ok(),
        refused: dry_run.refused,
        warnings: dry_run
            .routable
            .err()
            .map(|why| why.to_string())
            .into_iter()
            .chain(dry_run.foreign_repo.map(|foreign| foreign.told_to(&sight)))
            .collect(),
        worst_case_usd: dry_run.worst_case,
        merges_into: dry_run.merges_into.filter(|(who, _)| visible.contains(who)).map(|(_, into)| into),
        retries: dry_run.retries.map(|(attempts, on)| retries(attempts, &on)),
        explanation: shapes::explanation(dry_run.explanation, |v| visible.contains(&v.factory_id)),
    }))
}

/// What was sent, with what its profile fills in, for the product that it is for.
async fn read(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    body: ManifestBody,
) -> Answer<(ProductId, Manifest, String)> {
    let draft = match body {
        ManifestBody::Markdown(bytes) => Draft::from_markdown(&bytes)?,
        ManifestBody::Json(request) => Draft::from_json(&request.manifest, request.body_md)?,
    };
    resolved(app, caller, headers, draft, header::single(headers, KEY_HEADER)?).await
}

pub(super) async fn resolved(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    draft: Draft,
    key: Option<&str>,
) -> Answer<(ProductId, Manifest, String)> {
    resolved_among(&mut KnownProfiles::default(), app, caller, headers, draft, key).await
}

/// The same for one of many.
pub(super) async fn resolved_among(
    known: &mut KnownProfiles,
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    draft: Draft,
    key: Option<&str>,
) -> Answer<(ProductId, Manifest, String)> {
    let product = choose_product(caller, headers, draft.product()?.as_ref())?;
    let (mut manifest, body) = app.coordinator.resolve_among(known, &product, draft, key).await?;
    // Written out, so that naming the product here or there makes the same job.
    manifest.product = Some(product.clone());
    Ok((product, manifest, body))
}

/// The manifest or the header says which; where neither does, the token may leave no choice.
fn choose_product(caller: &Caller, headers: &HeaderMap, named: Option<&ProductId>) -> Answer<ProductId> {
    let in_header = header::single(headers, "x-product-id")?;
    match (named, in_header, &caller.products) {
        (Some(named), Some(header), _) if named.as_str() != header => {
            let message =
                format!("the manifest says {named}, the header x-product-id says {header}; leave one out");
            Err(Problem::field("product", message))
        }
        (Some(named), _, products) if !products.allows(named) => {
            let own = products.listed();
            Err(Problem::forbidden(format!("product: this token is for {own}, not for {named}")))
        }
        (Some(named), _, _) => Ok(named.clone()),
        (None, _, Products::All) => check::id("product", DEFAULT_PRODUCT),
        (None, _, Products::Only(own)) if own.len() == 1 => Ok(own[0].clone()),
        (None, _, Products::Only(_)) => {
            let own = caller.products.listed();
            let message =
                format!("say which of {own} it is for, in the manifest or in the header x-product-id");
            Err(Problem::field("product", message))
        }
    }
}

fn choose_key(headers: &HeaderMap, in_manifest: Option<String>) -> Answer<Option<String>> {
    let name = KEY_HEADER;
    let Some(in_header) = header::single(headers, name)? else { return Ok(in_manifest) };
    check::name(name, in_header, limits::IDEMPOTENCY_KEY_CHARS)?;
    if in_header.starts_with(TRACKER_KEY) {
        let message =
            format!("it may not begin with `{TRACKER_KEY}`, which is reserved for items of trackers");
        return Err(Problem::field(name, message));
    }
    match in_manifest {
        Some(key) if key != in_header => {
            Err(Problem::field(name, "the manifest has another idempotencyKey; leave one of them out"))
        }
        _ => Ok(Some(in_header.to_owned())),
    }
}

fn retries(attempts: u32, on: &[FailReason]) -> wire::Retries {
    let rest = FailReason::RETRIED_ON_REQUEST.into_iter().filter(|reason| !on.contains(reason));
    wire::Retries {
        attempts,
        on: on.iter().copied().map(Into::into).collect(),
        not_on: rest.map(Into::into).collect(),
    }
}
