//! Named secrets of products, and how the holder of a job gets those that it names.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Viewer};

use crate::handlers::secrets;
use crate::routes::Access::{Factory, Role};
use crate::routes::{Code, Content, Route, Scope};

pub(super) fn secret_routes() -> Vec<Route> {
    let of_product = |method, path, operation, access, handler| {
        Route::new(method, path, operation, access, Scope::Product, handler)
    };
    vec![
        of_product(Method::GET, "/api/fleet/products/{product}/secrets", "listSecrets", Role(Viewer), |m| {
            on(m, secrets::list)
        })
        .about("Secrets of a product: their names, versions and who set them, never their values")
        .gives::<wire::SecretList>(200, "By name"),
        of_product(
            Method::PUT,
            "/api/fleet/products/{product}/secrets/{name}",
            "setSecret",
            Role(Admin),
            |m| on(m, secrets::set),
        )
        .about("Set a secret; the body is its value, byte for byte, 6 bytes to 64 KiB")
        .takes_bytes()
        .gives::<wire::Secret>(200, "The secret, without its value")
        .refuses(&[Code::SecretKey, Code::RevMismatch]),
        of_product(
            Method::DELETE,
            "/api/fleet/products/{product}/secrets/{name}",
            "removeSecret",
            Role(Admin),
            |m| on(m, secrets::remove),
        )
        .about("Remove a secret; jobs that name it fail when they start")
        .answer(204, "It is gone", Content::Nothing)
        .refuses(&[Code::NotFound]),
        Route::new(
            Method::POST,
            "/api/fleet/secrets/rotate",
            "rotateSecrets",
            Role(Admin),
            Scope::Fleet,
            |m| on(m, secrets::rotate),
        )
        .about("Encrypt every secret again with the first key of the key file")
        .gives::<wire::RotatedSecrets>(200, "How many were encrypted again")
        .refuses(&[Code::SecretKey]),
        // Not for what runs inside the job: it has them, or was not to have them.
        Route::new(Method::POST, "/api/fleet/jobs/{id}/secrets", "getJobSecrets", Factory, Scope::Own, |m| {
            on(m, secrets::of_job)
        })
        .about("The holder gets the secrets that its job names, right before it runs it")
        .takes::<wire::JobSecretsRequest>()
        .gives::<wire::JobSecrets>(200, "Their values; not to be kept")
        .refuses(&[Code::Fenced, Code::NotFound, Code::NoSecret, Code::SecretKey]),
    ]
}
