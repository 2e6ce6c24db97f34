//! Products: shares, weights, and the repositories that they own.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Viewer};

use super::IF_MATCH;
use crate::handlers::products;
use crate::routes::Access::Role;
use crate::routes::{Code, Route, Scope};

pub(super) fn product_routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/fleet/products", "listProducts", Role(Viewer), Scope::Products, |m| {
            on(m, products::list)
        })
        .about("Those of the caller's products that were ever set")
        .gives::<wire::ProductList>(200, "By id"),
        Route::new(
            Method::GET,
            "/api/fleet/products/{product}",
            "getProduct",
            Role(Viewer),
            Scope::Product,
            |m| on(m, products::get),
        )
        .about("One product; one that nobody ever set has the defaults")
        .gives::<wire::Product>(200, "The product")
        .tagged(),
        // A share and the ownership of repositories are taken from all the others.
        Route::new(
            Method::PUT,
            "/api/fleet/products/{product}",
            "setProduct",
            Role(Admin),
            Scope::Fleet,
            |m| on(m, products::set),
        )
        .about(
            "Set a product's share, weights and repositories; what is left out is the default from then on",
        )
        .takes::<wire::SetProductRequest>()
        .params(&[IF_MATCH])
        .gives::<wire::Product>(200, "The product after it")
        .tagged()
        .refuses(&[Code::RepoOwned]),
    ]
}
