//! Webhooks, the outbox, and the bridge to trackers.
//!
//! A webhook's secret is answered once, when it is made, and by nothing else.

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use giga_api::wire;
use giga_coordinator::{AddWebhook, Ingested, Sight, SubmitRequest, job_name, tracked_body, tracker_key};
use giga_domain::manifest::Draft;
use giga_domain::{
    Effect, EffectId, EffectTarget, EventKind, ProductId, SigningKey, Timestamp, Webhook, WebhookId, limits,
};
use giga_ports::StoreError;
use giga_ports::store::EffectFilter;
use serde_json::{Map, Value};

use super::{Answer, submit};
use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::{Code, Problem};
use crate::request::{JsonBody, PathText, Query, check, header};

const KEY_HEADER: &str = "idempotency-key";
const TRACKER_CHARS: usize = 64;

pub(crate) async fn webhooks(State(app): State<App>, caller: Caller) -> Answer<Json<wire::WebhookList>> {
    let all = app.coordinator.effects().webhooks().await?;
    let own = all.iter().filter(|webhook| sees(&caller.products, webhook.product.as_ref()));
    Ok(Json(wire::WebhookList { webhooks: own.map(Into::into).collect() }))
}

/// What belongs to no product is for those who may see every product.
fn sees(products: &Products, product: Option<&ProductId>) -> bool {
    match product {
        Some(product) => products.allows(product),
        None => *products == Products::All,
    }
}

pub(crate) async fn add_webhook(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::AddWebhookRequest>,
) -> Answer<(StatusCode, Json<wire::AddWebhookAnswer>)> {
    let product = subscribed_product(&caller, request.product_id.as_deref())?;
    check::at_most("types", request.types.len(), EventKind::ALL.len())?;
    let kinds = request.types.into_iter().map(Into::into).collect();
    let add = AddWebhook { product, url: request.url, kinds, actor: caller.actor() };
    let key = header::single(&headers, KEY_HEADER)?;
    key.map(|key| check::name(KEY_HEADER, key, limits::IDEMPOTENCY_KEY_CHARS)).transpose()?;
    let webhook = app.coordinator.effects().add_webhook_once(add, key).await?;
    let answer = wire::AddWebhookAnswer { webhook: (&webhook).into(), secret: shown_once(&webhook.secret) };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// As Standard Webhooks writes it.
fn shown_once(secret: &SigningKey) -> String {
    format!("whsec_{}", STANDARD.encode(secret.0))
}

fn subscribed_product(caller: &Caller, named: Option<&str>) -> Answer<Option<ProductId>> {
    match (named, &caller.products) {
        (Some(named), products) => {
            let product: ProductId = check::id("productId", named)?;
            if products.allows(&product) {
                return Ok(Some(product));
            }
            let own = products.listed();
            Err(Problem::forbidden(format!("productId: this token is for {own}, not for {product}")))
        }
        (None, Products::All) => Ok(None),
        (None, Products::Only(own)) if own.len() == 1 => Ok(Some(own[0].clone())),
        (None, products @ Products::Only(_)) => {
            Err(Problem::field("productId", format!("name one of {}", products.listed())))
        }
    }
}

pub(crate) async fn remove_webhook(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<StatusCode> {
    let webhook = app.visible_webhook(&caller, path.id()?).await?;
    app.coordinator.effects().remove_webhook(webhook.id, caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn test_webhook(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    let webhook = app.visible_webhook(&caller, path.id()?).await?;
    let effect = app.coordinator.effects().test_webhook(&webhook, &caller.actor()).await?;
    Ok((StatusCode::ACCEPTED, Json(wire::Effect::from(&effect))).into_response())
}

pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    query: Query,
) -> Answer<Json<wire::EffectPage>> {
    let filter = EffectFilter {
        products: caller.products.as_filter().to_vec(),
        state: query.word("state")?,
        target: query.id("webhook")?.map(EffectTarget::Webhook),
        job: query.id("job")?,
    };
    let limit = query.limit()?;
    let before = query.text("cursor").map(from_cursor).transpose()?;
    // One more than asked for tells whether there is another page.
    let mut effects = app.coordinator.effects().list(&filter, before, limit + 1).await?;
    let more = effects.len() > limit;
    effects.truncate(limit);
    let next_cursor = effects.last().filter(|_| more).map(to_cursor);
    Ok(Json(wire::EffectPage { effects: effects.iter().map(Into::into).collect(), next_cursor }))
}

fn to_cursor(last: &Effect) -> String {
    format!("e1-{}-{}", last.created_at.as_millis(), last.id)
}

fn from_cursor(text: &str) -> Answer<(Timestamp, EffectId)> {
    let read = || {
        let (millis, id) = text.strip_prefix("e1-")?.split_once('-')?;
        let at = Timestamp::from_millis(millis.parse().ok()?);
        Some((at, id.parse().ok()?))
    };
    read().ok_or_else(|| {
        Problem::field("cursor", "it is malformed: send `nextCursor` of the page before as it came")
    })
}

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Effect>> {
    let effect = app.visible_effect(&caller, path.id()?).await?;
    Ok(Json((&effect).into()))
}

pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
) -> Answer<Json<wire::Effect>> {
    let effect = app.visible_effect(&caller, path.id()?).await?;
    let effect = app.coordinator.effects().revive(effect.id, caller.actor()).await?;
    Ok(Json((&effect).into()))
}

pub(crate) async fn ingest(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::IngestRequest>,
) -> Answer<Response> {
    check::name("tracker", &request.tracker, TRACKER_CHARS)?;
    check::name("item", &request.item, limits::URL_CHARS)?;
    let mut manifest = match request.manifest {
        None => Map::new(),
        Some(Value::Object(manifest)) => manifest,
        Some(_) => {
            return Err(Problem::field("manifest", "it must be an object such as {\"repo\": \"hello\"}"));
        }
    };
    if manifest.contains_key("idempotencyKey") {
        return Err(Problem::field("manifest.idempotencyKey", "leave it out: the item is the key"));
    }
    // What is wrong without a look at the item is reported before anybody else is asked.
    let named = manifest.contains_key("name");
    manifest.entry("name").or_insert_with(|| Value::from("item"));
    let draft = Draft::from_json(&Value::Object(manifest.clone()), String::new())?;
    let (product, ..) = submit::resolved(&app, &caller, &headers, draft, None).await?;
    let sees_everything = caller.products == Products::All;
    let spelled =
        app.coordinator.effects().usable_item(&request.tracker, &request.item, &product, sees_everything)?;
    if let Some(job) =
        app.coordinator.effects().ingested(&product, &tracker_key(&request.tracker, &spelled)).await?
    {
        return Ok(ingested_answer(&caller.sight(), &Ingested { job, submitted: None }));
    }
    let item = app.coordinator.effects().tracker_item(&request.tracker, &request.item).await?;
    if !named {
        manifest.insert("name".to_owned(), Value::from(job_name(&item)));
    }
    let draft = Draft::from_json(&Value::Object(manifest), tracked_body(&request.body_md, &item))?;
    let key = tracker_key(&request.tracker, &item.item);
    let (product, mut manifest, body) = submit::resolved(&app, &caller, &headers, draft, Some(&key)).await?;
    manifest.idempotency_key = Some(key);
    let request = SubmitRequest { product, manifest, body, actor: caller.actor() };
    let sight = caller.sight();
    let made = app.coordinator.ingest(request).await.map_err(|error| Problem::told_to(&sight, error))?;
    Ok(ingested_answer(&sight, &made))
}

fn ingested_answer(sight: &Sight, ingested: &Ingested) -> Response {
    let status = if ingested.submitted.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    let (routable, warnings) = match &ingested.submitted {
        Some(made) => {
            let unroutable = made.routable.as_ref().err().map(ToString::to_string);
            let foreign = made.foreign_repo.as_ref().map(|foreign| foreign.told_to(sight));
            (unroutable.is_none(), unroutable.into_iter().chain(foreign).collect())
        }
        None => (true, Vec::new()),
    };
    let job = &ingested.job;
    let answer = wire::SubmitAnswer { job: job.into(), routable, warnings };
    let location = [(LOCATION, format!("/api/fleet/jobs/{}", job.id))];
    (status, location, header::etag(&header::job_tag(job.rev)), Json(answer)).into_response()
}

pub(crate) async fn echo(
    State(app): State<App>,
    caller: Caller,
    JsonBody(request): JsonBody<wire::EchoRequest>,
) -> Answer<Response> {
    let job = app.visible_job(&caller, check::id("jobId", &request.job_id)?).await?;
    let effect = app.coordinator.effects().echo(job.id).await?;
    Ok((StatusCode::ACCEPTED, Json(wire::Effect::from(&effect))).into_response())
}

impl App {
    /// The webhook, unless it does not exist or tells of more than the caller may see: both answer alike.
    async fn visible_webhook(&self, caller: &Caller, id: WebhookId) -> Answer<Webhook> {
        let all = self.coordinator.effects().webhooks().await?;
        let found = all.into_iter().find(|webhook| webhook.id == id);
        let visible = found.filter(|webhook| sees(&caller.products, webhook.product.as_ref()));
        visible.ok_or_else(|| Problem::new(Code::NotFound, format!("there is no webhook {id}")))
    }

    async fn visible_effect(&self, caller: &Caller, id: EffectId) -> Answer<Effect> {
        let effect = self.coordinator.effects().get(&id).await?;
        if sees(&caller.products, effect.product.as_ref()) {
            Ok(effect)
        } else {
            Err(StoreError::NoSuchEffect(id).into())
        }
    }
}
