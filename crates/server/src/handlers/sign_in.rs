//! Signing in and out. These are the calls of people who have no token yet, so each is slowed per address, and nothing is asked
//! of the store before the provider has vouched for somebody.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
use giga_coordinator::Arrival;
use giga_domain::token::{TokenRecord, TokenSecret};
use giga_oidc::{DevicePoll, Person};

use super::Answer;
use crate::app::App;
use crate::auth::Peer;
use crate::caller::Caller;
use crate::problem::{Code, Problem, status, whole_seconds};
use crate::request::{JsonBody, Query, check};
use crate::sign_in::{Attempt, LOGIN_PATH, SignIn, return_path};

const MOST_CODE_CHARS: usize = 4_000;

pub(crate) async fn offer(State(app): State<App>) -> Json<wire::SignInOffer> {
    let offered = app.options.sign_in.as_ref();
    Json(wire::SignInOffer {
        offered: offered.is_some(),
        provider: offered.map(|sign_in| sign_in.provider.display_name()),
        login_path: offered.map(|_| LOGIN_PATH.to_owned()),
    })
}

pub(crate) async fn start_device(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
) -> Answer<Json<wire::DeviceSignIn>> {
    let sign_in = admitted(&app, peer)?;
    let code = sign_in.provider.start_device().await?;
    Ok(Json(wire::DeviceSignIn {
        interval_s: code.interval().as_secs(),
        device_code: code.device_code,
        user_code: code.user_code,
        verification_uri: code.verification_uri,
        verification_uri_complete: code.verification_uri_complete,
        expires_in_s: code.expires_in,
    }))
}

pub(crate) async fn poll_device(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    JsonBody(request): JsonBody<wire::PollSignInRequest>,
) -> Answer<Json<wire::PollSignInAnswer>> {
    check::name("deviceCode", &request.device_code, MOST_CODE_CHARS)?;
    let sign_in = admitted(&app, peer)?;
    let waiting = |state| wire::PollSignInAnswer { state, token: None, label: None, expires_at: None };
    let answer = match sign_in.provider.poll_device(&request.device_code, app.coordinator.now()).await? {
        DevicePoll::Pending => waiting(wire::SignInState::Pending),
        DevicePoll::SlowDown => waiting(wire::SignInState::SlowDown),
        DevicePoll::Done(person) => {
            let (token, secret) = welcome(&app, &sign_in, &person, "terminal").await?;
            wire::PollSignInAnswer {
                state: wire::SignInState::Done,
                token: Some(secret.reveal().to_owned()),
                label: Some(token.label),
                expires_at: token.expires_at.map(|at| at.to_string()),
            }
        }
    };
    Ok(Json(answer))
}

pub(crate) async fn sign_out(State(app): State<App>, caller: Caller) -> Answer<StatusCode> {
    if app.coordinator.sign_out(&caller.secret, caller.token.clone()).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let id = &caller.token;
    Err(Problem::forbidden(format!(
        "{id} was not made by signing in; an admin can end it with `giga token revoke {id}`"
    )))
}

/// The way out.
pub(crate) async fn login(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let to = return_path(query.text("to"));
    let begun = async {
        let sign_in = admitted(&app, peer)?;
        let attempt = Attempt::begin(&app.coordinator, &to);
        let (redirect_uri, pkce) = (sign_in.redirect_uri(), attempt.pkce()?);
        let url = sign_in.provider.authorization_url(attempt.authorization(&redirect_uri, &pkce)).await?;
        let cookie = attempt.cookie(&app.coordinator, is_https(&sign_in)).await?;
        redirect(&url, &cookie)
    };
    begun.await.unwrap_or_else(|problem| explained(problem, &headers))
}

/// The way back.
pub(crate) async fn callback(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    query: Query,
    headers: HeaderMap,
) -> Response {
    let arrived = async {
        let sign_in = admitted(&app, peer)?;
        let attempt = Attempt::from_cookie(&app.coordinator, &headers).await?;
        let attempt =
            attempt.filter(|attempt| query.text("state") == Some(&attempt.state)).ok_or_else(|| {
                Problem::unauthenticated(
                    "this attempt to sign in was not begun here, is over, or took longer than ten minutes",
                )
            })?;
        if query.text("iss").is_some_and(|issuer| issuer != sign_in.provider.issuer()) {
            return Err(Problem::unauthenticated(
                "another identity provider answered than the one that was asked",
            ));
        }
        let code = match (query.text("error"), query.text("code")) {
            (None, Some(code)) if code.len() <= MOST_CODE_CHARS => code,
            (Some(error), _) => {
                let words = query.text("error_description").unwrap_or(error);
                let words: String = words.chars().take(300).collect();
                return Err(Problem::unauthenticated(format!(
                    "the identity provider did not sign you in: {words}"
                )));
            }
            _ => return Err(Problem::unauthenticated("the identity provider sent no code")),
        };
        let (redirect_uri, pkce) = (sign_in.redirect_uri(), attempt.pkce()?);
        let begun = attempt.authorization(&redirect_uri, &pkce);
        let person = sign_in.provider.exchange(code, begun, app.coordinator.now()).await?;
        let (_, secret) = welcome(&app, &sign_in, &person, "page").await?;
        // Behind the `#`: it stays in the browser, and the page takes it from there.
        redirect(
            &format!("{}#token={}", attempt.to, secret.reveal()),
            &Attempt::no_cookie(is_https(&sign_in)),
        )
    };
    arrived.await.unwrap_or_else(|problem| explained(problem, &headers))
}

/// Is there anything to sign in with, and is it this address's turn?
fn admitted(app: &App, peer: Option<Extension<Peer>>) -> Answer<Arc<SignIn>> {
    let Some(sign_in) = app.options.sign_in.clone() else {
        return Err(Problem::new(
            Code::NotFound,
            "signing in is not set up here: use a token, or ask the operator for --oidc-issuer",
        ));
    };
    let peer = peer.map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |Extension(peer)| peer.0);
    app.coordinator.may_sign_in(peer).map_err(|retry_after| {
        let seconds = whole_seconds(retry_after);
        let detail = format!("too many attempts to sign in came from this address; try again in {seconds} s");
        Problem::too_many(detail, retry_after)
    })?;
    Ok(sign_in)
}

async fn welcome(
    app: &App,
    sign_in: &SignIn,
    person: &Person,
    via: &'static str,
) -> Answer<(TokenRecord, TokenSecret)> {
    let Person { subject, name, groups } = person;
    let arrival = Arrival { issuer: sign_in.provider.issuer(), subject, name, groups, via };
    if let Some(issued) = app.coordinator.sign_in(arrival, &sign_in.grants, sign_in.lifetime).await? {
        return Ok(issued);
    }
    tracing::warn!(%subject, %name, ?groups, "nobody of these groups may sign in");
    let theirs = if groups.is_empty() { "in no group".to_owned() } else { format!("in {}", listed(groups)) };
    Err(Problem::forbidden(format!(
        "{name} is {theirs}, and none of that gives access here; ask the operator for a grant (--oidc-grant), or to be added to \
         one of {}",
        listed(&sign_in.grants.iter().map(|grant| grant.group.clone()).collect::<Vec<_>>())
    )))
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(20).map(|name| name.chars().take(100).collect::<String>());
    let more = if names.len() > 20 { ", …" } else { "" };
    shown.collect::<Vec<_>>().join(", ") + more
}

/// What cannot be taken for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn is_https(sign_in: &SignIn) -> bool {
    sign_in.public_url.starts_with("https://")
}

fn redirect(to: &str, cookie: &str) -> Answer<Response> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Problem::internal("an address to go to cannot be sent"))
    };
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(LOCATION, value(to)?);
    response.headers_mut().insert(SET_COOKIE, value(cookie)?);
    Ok(response)
}

/// In words for somebody in front of a browser; programs get what they always get.
fn explained(problem: Problem, headers: &HeaderMap) -> Response {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut response = if accepted.into_iter().any(|value| value.contains("text/html")) {
        let text = escaped(problem.detail());
        let html = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Not signed in</title><h1>Not signed in</h1>\
             <p>{text}</p><p><a href=\"{LOGIN_PATH}\">Try again</a> or <a href=\"/\">go back</a></p></html>"
        );
        let kind = (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        (status(problem.code()), [kind], html).into_response()
    } else {
        problem.into_response()
    };
    // Nothing of the attempt can be used again.
    if let Ok(cookie) = HeaderValue::from_str(&Attempt::no_cookie(false)) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

impl From<giga_oidc::Error> for Problem {
    fn from(error: giga_oidc::Error) -> Self {
        use giga_oidc::Error::{Away, Refused, Unsupported, Untrusted};
        tracing::warn!(%error, "an attempt to sign in failed");
        let text = error.to_string();
        match error {
            Away { .. } => Self::new(Code::Unavailable, text),
            Refused(_) | Untrusted(_) => Self::unauthenticated(text),
            Unsupported(_) => Self::new(Code::NotFound, text),
        }
    }
}
