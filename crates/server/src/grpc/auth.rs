//! Who is calling by gRPC: the same tokens, headers and words as in REST, with rules of their own for workers.

use std::time::Duration;

use axum::http::HeaderMap;
use giga_domain::token::{Right, Role, TokenSecret};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::{Request, Status};

use crate::app::App;
use crate::auth::{Peer, admit, authenticate, narrow, refused};
use crate::caller::{Caller, Who};
use crate::connections::Connection;
use crate::problem::Problem;
use crate::routes::{Access, Scope};

/// Many tokens may change at once, and many streams be open: each asks so long after the first change.
const TOGETHER: Duration = Duration::from_secs(2);
/// Where nothing is heard of the feed at all.
const SELDOM: Duration = Duration::from_mins(15);

const AFTER_A_FAILURE: Duration = Duration::from_secs(5);
/// The end of a token is over when it is asked about.
const A_MOMENT: Duration = Duration::from_millis(1);

/// Somebody who serves topics: a worker, or whoever may do everything with jobs anyway. Submitters and viewers stay out,
/// because a token that reads or sends should not be able to take work away.
pub(super) async fn worker<T>(app: &App, request: &Request<T>) -> Result<Caller, Status> {
    let headers: &HeaderMap = request.metadata().as_ref();
    let caller = authenticate(app, Peer::of(request.extensions()), headers).await?;
    Connection::has_shown_a_token(request.extensions());
    if !matches!(caller.who, Who::User(role) if role.may(Right::ServeTopics)) {
        let roles = Role::ALL.into_iter().filter(|role| role.may(Right::ServeTopics));
        let roles = roles.map(Role::as_str).collect::<Vec<_>>().join(", ");
        let needed =
            roles.rsplit_once(", ").map_or(roles.clone(), |(some, last)| format!("{some} or {last}"));
        return Err(refused(&format!("the role {needed}"), &caller).into());
    }
    Ok(narrow(Scope::Product, caller, headers)?)
}

pub(super) async fn submitter<T>(app: &App, request: &Request<T>) -> Result<Caller, Status> {
    let headers: &HeaderMap = request.metadata().as_ref();
    let caller = authenticate(app, Peer::of(request.extensions()), headers).await?;
    Connection::has_shown_a_token(request.extensions());
    admit(Access::Role(Role::Submitter), &caller)?;
    Ok(narrow(Scope::Product, caller, headers)?)
}

/// Asks again whether the token of an open stream lives. A revocation is an event, so it is asked only after tokens have
/// changed and when the token's own time is over: neither quiet nor busy streams cost the store anything.
pub(super) struct TokenWatch {
    app: App,
    caller: Caller,
    tokens: watch::Receiver<u64>,
    ask_at: Instant,
    changed: bool,
    asked: Option<JoinHandle<Token>>,
}

impl TokenWatch {
    /// To be made before the token is first looked at.
    pub(super) fn new(app: &App, tokens: watch::Receiver<u64>, caller: Caller) -> Self {
        // At once, which is answered from memory, to know when the token ends.
        Self { app: app.clone(), caller, tokens, ask_at: Instant::now(), changed: false, asked: None }
    }

    /// Returns when the token has come to its end. Nothing is lost where the call is given up: a question that was begun
    /// goes on with the next call, so that a busy stream cannot put it off for ever.
    pub(super) async fn is_over(&mut self) -> Status {
        loop {
            tokio::select! {
                changed = self.tokens.changed(), if !self.changed => {
                    if changed.is_err() {
                        return super::stopping();
                    }
                    self.changed = true;
                    let soon = Instant::now() + TOGETHER.min(self.app.options.look_every);
                    self.ask_at = self.ask_at.min(soon);
                }
                () = tokio::time::sleep_until(self.ask_at), if self.asked.is_none() => {
                    self.changed = false;
                    self.ask_at = Instant::now() + SELDOM;
                    self.asked = Some(ask(self.app.clone(), self.caller.secret.clone()));
                }
                token = answered(&mut self.asked) => {
                    self.asked = None;
                    match token {
                        Token::Lives { rest: Some(rest) } => {
                            self.ask_at = self.ask_at.min(Instant::now() + rest.min(SELDOM) + A_MOMENT);
                        }
                        Token::Lives { rest: None } => {}
                        Token::Over => {
                            return Problem::unauthenticated("the token is unknown, revoked or expired").into();
                        }
                    }
                }
            }
        }
    }
}

enum Token {
    /// For so long, where it has an end.
    Lives {
        rest: Option<Duration>,
    },
    Over,
}

fn ask(app: App, secret: TokenSecret) -> JoinHandle<Token> {
    tokio::spawn(async move {
        match app.coordinator.authenticate(&secret).await {
            Ok(Some(token)) => Token::Lives { rest: app.coordinator.rest_of(&token) },
            Ok(None) => Token::Over,
            // A store that cannot be reached just now is no reason to send a worker away.
            Err(_) => Token::Lives { rest: Some(AFTER_A_FAILURE) },
        }
    })
}

async fn answered(asked: &mut Option<JoinHandle<Token>>) -> Token {
    match asked {
        Some(asked) => asked.await.unwrap_or(Token::Lives { rest: Some(AFTER_A_FAILURE) }),
        None => std::future::pending().await,
    }
}
