//! How people sign in and out, and what they did.

use axum::http::Method;
use axum::routing::on;
use giga_api::wire;
use giga_domain::token::Role::{Operator, Worker};

use super::{LIMIT, query, words};
use crate::handlers::{audit, sign_in};
use crate::routes::Access::{Public, Role};
use crate::routes::{Code, Content, Param, Route, Scope};
use crate::sign_in::{CALLBACK_PATH, LOGIN_PATH};

/// What identity providers put behind the address that they send browsers back to.
const SENT_BACK: [Param; 5] = [
    query("code", "What proves that somebody signed in"),
    query("state", "Which attempt it belongs to"),
    query("iss", "Who answers"),
    query("error", "Why nobody signed in"),
    query("error_description", "The same in words"),
];

pub(super) fn people_routes() -> Vec<Route> {
    let refusals =
        [Code::Unauthenticated, Code::Forbidden, Code::NotFound, Code::TooManyRequests, Code::Unavailable];
    vec![
        Route::new(Method::GET, "/api/fleet/sign-in", "signInOffer", Public, Scope::Nothing, |m| {
            on(m, sign_in::offer)
        })
        .about("Whether and with whom people sign in here")
        .gives::<wire::SignInOffer>(200, "What is offered"),
        Route::new(
            Method::POST,
            "/api/fleet/sign-in/device",
            "startDeviceSignIn",
            Public,
            Scope::Nothing,
            |m| on(m, sign_in::start_device),
        )
        .about("Begin to sign in from a terminal (the device flow of RFC 8628)")
        .gives::<wire::DeviceSignIn>(200, "What to show, and what to poll with")
        .refuses(&refusals),
        Route::new(
            Method::POST,
            "/api/fleet/sign-in/device/poll",
            "pollDeviceSignIn",
            Public,
            Scope::Nothing,
            |m| on(m, sign_in::poll_device),
        )
        .about("Whether somebody has signed in meanwhile")
        .takes::<wire::PollSignInRequest>()
        .gives::<wire::PollSignInAnswer>(200, "Not yet, or a token")
        .refuses(&[Code::InvalidRequest])
        .refuses(&refusals),
        Route::new(Method::GET, LOGIN_PATH, "login", Public, Scope::Nothing, |m| on(m, sign_in::login))
            .about("Send a browser to the identity provider")
            .params(&[query("to", "The address in the page to come back to")])
            .answer(303, "To the provider", Content::Nothing)
            .refuses(&refusals),
        Route::new(Method::GET, CALLBACK_PATH, "loginCallback", Public, Scope::Nothing, |m| {
            on(m, sign_in::callback)
        })
        .about("Where the identity provider sends the browser back to")
        .params(&SENT_BACK)
        .ignores_unknown_params()
        .answer(303, "To the page, with a token behind the `#`", Content::Nothing)
        .refuses(&refusals),
        Route::new(Method::POST, "/api/fleet/sign-out", "signOut", Role(Worker), Scope::Nothing, |m| {
            on(m, sign_in::sign_out)
        })
        .about("End the token of this call, where signing in made it")
        .answer(204, "Done", Content::Nothing),
        Route::new(Method::GET, "/api/fleet/audit", "listAudit", Role(Operator), Scope::Products, |m| {
            on(m, audit::list)
        })
        .about("Who did what, newest first. Without a filter: what people and programs did with their tokens")
        .params(&[
            query(
                "actor",
                "A token's id or a part of its label, a factory, or a part of the coordinator; `*`: anybody",
            ),
            words::<wire::EventType>(
                "kind",
                "Only these types, separated by commas; by anybody, unless `actor` says who",
            ),
            query("job", "Only this job, whoever did it"),
            query("since", "Not before this time (RFC 3339)"),
            query("until", "Before this time (RFC 3339)"),
            query("before", "From `nextBefore` of the page before"),
            LIMIT,
        ])
        .gives::<wire::AuditPage>(200, "A page")
        .refuses(&[Code::NotFound]),
    ]
}
