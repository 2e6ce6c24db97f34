//! The guard in front of every route: who is calling, may they, for which product, with which parameters. gRPC calls
//! are judged by the same functions.
//!
//! It knows routes only by their entry in the table, so a route without a rule cannot be reached. It says whether a token
//! was once valid only to whoever has it whole, and never logs one.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use giga_coordinator::Identified;
use giga_domain::token::{Role, TokenSecret};
use giga_domain::{JobToken, ProductId};

use crate::app::App;
use crate::caller::{Caller, Products, Who};
use crate::connections::Connection;
use crate::problem::{Problem, whole_seconds};
use crate::request::{check, header, query};
use crate::routes::{Access, Route, Scope};

/// Where the connection comes from, on every request that came over one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl Peer {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().copied().unwrap_or(Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
    }
}

#[derive(Clone)]
pub(crate) struct GuardState {
    pub(crate) app: App,
    pub(crate) route: &'static Route,
}

pub(crate) async fn guard(
    State(guarded): State<GuardState>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let route = guarded.route;
    if route.access != Access::Public {
        let caller = authenticate(&guarded.app, Peer::of(request.extensions()), request.headers()).await?;
        Connection::has_shown_a_token(request.extensions());
        if !(route.from_inside && matches!(caller.who, Who::Job(_))) {
            admit(route.access, &caller)?;
        }
        let caller = narrow(route.scope, caller, request.headers())?;
        request.extensions_mut().insert(caller);
    }
    if !route.ignores_unknown_params {
        query::check(request.uri(), route.query_names())?;
    }
    request.extensions_mut().insert(route);
    Ok(next.run(request).await)
}

pub(crate) async fn authenticate(app: &App, peer: Peer, headers: &HeaderMap) -> Result<Caller, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(Problem::unauthenticated(
            "this call needs a token: send exactly one header `Authorization: Bearer giga_…`",
        ));
    };
    let malformed = || {
        Problem::unauthenticated(
            "the Authorization header is malformed: it should be `Bearer`, a space and a token",
        )
    };
    let (scheme, text) = value.to_str().ok().and_then(|v| v.trim().split_once(' ')).ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(malformed());
    }
    if JobToken::looks_like(text.trim()) {
        return inside_a_job(app, text.trim()).await;
    }
    let secret =
        TokenSecret::parse(text.trim()).map_err(|error| Problem::unauthenticated(error.to_string()))?;
    match app.coordinator.identify(&secret, peer.0).await? {
        Identified::Known(token) => Ok(Caller::new(token, secret)),
        Identified::Unknown => match app.coordinator.ended(&secret) {
            Some((_, at)) if secret.is_of_sign_in() => Err(Problem::unauthenticated(format!(
                "you were signed in until {at}; sign in again, in a terminal with `giga login`"
            ))),
            Some((id, at)) => Err(Problem::unauthenticated(format!(
                "the token expired at {at}; an admin can renew it with `giga token renew {id}`, or create another with \
                 `giga token create`"
            ))),
            None => Err(Problem::unauthenticated("the token is unknown, revoked or expired")),
        },
        Identified::TooMany { retry_after } => {
            let seconds = whole_seconds(retry_after);
            let detail = format!(
                "too many unknown tokens came from this address; check the token, and try again in {seconds} s"
            );
            Err(Problem::too_many(detail, retry_after))
        }
    }
}

/// Asked of the store each time: the token ends with the lease, and nobody says when that is.
async fn inside_a_job(app: &App, text: &str) -> Result<Caller, Problem> {
    let token = JobToken::parse(text).map_err(|error| Problem::unauthenticated(error.to_string()))?;
    match app.coordinator.authenticate_job(&token).await? {
        Some((job, holder)) => Caller::inside(&job, holder, token.secret()),
        None => Err(Problem::unauthenticated(
            "the job token is unknown, or the epoch that it is for no longer holds the job",
        )),
    }
}

pub(crate) fn admit(access: Access, caller: &Caller) -> Result<(), Problem> {
    let needed = match (access, &caller.who) {
        (Access::Public, _)
        | (Access::Factory | Access::RoleOrFactory(_), Who::Factory(_))
        | (Access::Pool, Who::Pool { .. }) => return Ok(()),
        (Access::Role(least) | Access::RoleOrFactory(least), Who::User(role)) if *role >= least => {
            return Ok(());
        }
        (Access::Role(least) | Access::RoleOrFactory(least), _) => at_least(least),
        (Access::Pool, _) => "a credential of the pool".to_owned(),
        (Access::Factory, _) => "the token of the factory itself".to_owned(),
    };
    Err(refused(&needed, caller))
}

/// In the same words for every call.
pub(crate) fn refused(needed: &str, caller: &Caller) -> Problem {
    let has = match &caller.who {
        Who::User(role) => format!("this token has the role {}", role.as_str()),
        Who::Factory(factory) => format!("this is the token of factory {factory}"),
        Who::Pool { pool, .. } => format!("this is a credential that factories of pool {pool} enroll with"),
        Who::Scaler(pool) => format!("this is the credential of a scaler of pool {pool}"),
        Who::Job(inside) => {
            format!("this is the token of job {}, for a few calls about that job", inside.job)
        }
    };
    Problem::forbidden(format!("this call needs {needed}; {has}"))
}

fn at_least(role: Role) -> String {
    match role {
        Role::Admin => "the role admin".to_owned(),
        role => format!("the role {} or higher", role.as_str()),
    }
}

/// Cuts the caller's products to the one that `x-product-id` names. A product outside the token's scope is refused
/// in the same words whether or not it exists.
pub(crate) fn narrow(scope: Scope, mut caller: Caller, headers: &HeaderMap) -> Result<Caller, Problem> {
    if scope == Scope::Fleet && caller.products != Products::All {
        let own = caller.products.listed();
        return Err(Problem::forbidden(format!(
            "this call is about the whole fleet and needs a token for every product; this token is for {own}"
        )));
    }
    if let Some(text) = header::single(headers, "x-product-id")? {
        let product: ProductId = check::id("x-product-id", text)?;
        if !caller.products.allows(&product) {
            let own = caller.products.listed();
            return Err(Problem::forbidden(format!(
                "x-product-id: this token is for {own}, not for {product}"
            )));
        }
        if scope.narrows() {
            caller.products = Products::Only(vec![product]);
        }
    }
    Ok(caller)
}
