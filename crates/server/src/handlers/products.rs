//! Products: what each is allowed and how much it counts.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_domain::Product;

use super::{Answer, product_in_path};
use crate::app::App;
use crate::caller::Caller;
use crate::request::{JsonBody, PathText, check, header};

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::ProductList>> {
    let products = app.coordinator.products().await?;
    let own = products.iter().filter(|product| caller.products.allows(&product.id));
    Ok(Json(wire::ProductList { products: own.map(Into::into).collect() }))
}

pub(crate) async fn get(State(app): State<App>, caller: Caller, path: PathText) -> Answer<Response> {
    let product = product_in_path(&caller, &path)?;
    Ok(tagged(&app.coordinator.product(&product).await?))
}

pub(crate) async fn set(
    State(app): State<App>,
    caller: Caller,
    path: PathText,
    headers: HeaderMap,
    JsonBody(request): JsonBody<wire::SetProductRequest>,
) -> Answer<Response> {
    let product = check::id("product", path.text("product")?)?;
    let if_rev = header::if_match(&headers)?;
    let product = app.coordinator.set_product(product, request.into(), if_rev, caller.actor()).await?;
    Ok(tagged(&product))
}

fn tagged(product: &Product) -> Response {
    (header::etag(&header::job_tag(product.rev)), Json(wire::Product::from(product))).into_response()
}
