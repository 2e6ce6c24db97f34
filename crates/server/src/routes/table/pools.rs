//! Pools of factories that come and go with the work.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Admin, Operator, Viewer};

use super::IF_MATCH;
use crate::handlers::pools;
use crate::routes::Access::{Pool, Role};
use crate::routes::{Code, Content, Route, Scope};

pub(super) fn pool_routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/fleet/pools", "listPools", Role(Viewer), Scope::Products, |m| {
            on(m, pools::list)
        })
        .about("The pools that may serve one of the caller's products: what each has, and what it is doing")
        .gives::<wire::PoolList>(200, "By name"),
        Route::new(Method::GET, "/api/fleet/pools/{name}", "getPool", Role(Viewer), Scope::Products, |m| {
            on(m, pools::get)
        })
        .about("One pool")
        .gives::<wire::Pool>(200, "The pool")
        .tagged()
        .refuses(&[Code::NotFound]),
        Route::new(Method::PUT, "/api/fleet/pools/{name}", "setPool", Role(Admin), Scope::Fleet, |m| {
            on(m, pools::set)
        })
        .about("Make a pool, or replace its settings")
        .params(&[IF_MATCH])
        .takes::<wire::PoolSettings>()
        .gives::<wire::Pool>(200, "The pool after it")
        .tagged()
        .refuses(&[Code::RevMismatch]),
        Route::new(Method::DELETE, "/api/fleet/pools/{name}", "removePool", Role(Admin), Scope::Fleet, |m| {
            on(m, pools::remove)
        })
        .about("Remove a pool that has no factories left")
        .answer(204, "It is gone", Content::Nothing)
        .refuses(&[Code::NotFound, Code::PoolInUse]),
        Route::new(
            Method::POST,
            "/api/fleet/pools/{name}/pause",
            "pausePool",
            Role(Operator),
            Scope::Fleet,
            |m| on(m, pools::pause),
        )
        .about("Start no more factories; those that there are go on")
        .gives::<wire::Pool>(200, "The pool after it")
        .tagged()
        .refuses(&[Code::NotFound, Code::RevMismatch]),
        Route::new(
            Method::POST,
            "/api/fleet/pools/{name}/resume",
            "resumePool",
            Role(Operator),
            Scope::Fleet,
            |m| on(m, pools::resume),
        )
        .about("Start factories again")
        .gives::<wire::Pool>(200, "The pool after it")
        .tagged()
        .refuses(&[Code::NotFound, Code::RevMismatch]),
        Route::new(
            Method::POST,
            "/api/fleet/pools/{name}/credentials",
            "issuePoolCredential",
            Role(Admin),
            Scope::Fleet,
            |m| on(m, pools::credential),
        )
        .about("A credential that factories of the pool enroll with, or that a scaler asks with")
        .takes::<wire::PoolCredentialRequest>()
        .gives::<wire::PoolCredential>(201, "The credential, which is shown once")
        .refuses(&[Code::NotFound]),
        Route::new(Method::POST, "/api/fleet/pools/{name}/enroll", "enrollInPool", Pool, Scope::Own, |m| {
            on(m, pools::enroll)
        })
        .about("A factory of the pool joins the fleet, by the pool's credential")
        .takes::<wire::PoolEnrollRequest>()
        .gives::<wire::PoolEnrollAnswer>(201, "The factory and its token, which is shown once")
        .refuses(&[Code::NotFound, Code::FactoryExists, Code::NotExpected]),
    ]
}
