//! Profiles, by name and version.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Operator, Viewer};

use crate::handlers::profiles;
use crate::routes::Access::Role;
use crate::routes::{Code, Route, Scope};

pub(super) fn profile_routes() -> Vec<Route> {
    let about_one = |method, path, operation, access, handler| {
        Route::new(method, path, operation, access, Scope::Product, handler)
    };
    vec![
        about_one(Method::GET, "/api/fleet/profiles", "listProfiles", Role(Viewer), |m| {
            on(m, profiles::list)
        })
        .about("The newest version of each profile of the product")
        .gives::<wire::ProfileList>(200, "By name"),
        about_one(Method::POST, "/api/fleet/profiles/{name}", "addProfile", Role(Operator), |m| {
            on(m, profiles::add)
        })
        .about("Make the next version of a profile; the content of the newest again is that version")
        .takes_profile()
        .gives::<wire::Profile>(200, "The version; versions never change"),
        about_one(Method::GET, "/api/fleet/profiles/{name}", "getProfile", Role(Viewer), |m| {
            on(m, profiles::get)
        })
        .about("The newest version of a profile")
        .gives::<wire::Profile>(200, "The profile")
        .refuses(&[Code::NotFound]),
        about_one(
            Method::GET,
            "/api/fleet/profiles/{name}/{version}",
            "getProfileVersion",
            Role(Viewer),
            |m| on(m, profiles::get_version),
        )
        .about("One version of a profile")
        .gives::<wire::Profile>(200, "The profile")
        .refuses(&[Code::NotFound]),
    ]
}
