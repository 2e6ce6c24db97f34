//! Who is calling by gRPC: the same tokens, headers and words as in REST, with rules of their own for workers.

use std::time::Duration;

use axum::http::HeaderMap;
use giga_domain::FeedPos;
use giga_domain::token::{Role, Secret};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::app::App;
use crate::auth::{admit, authenticate, narrow, refused};
use crate::caller::{Caller, Who};
use crate::problem::Problem;
use crate::routes::{Access, Scope};

/// How long the coordinator may remember a token: what is asked later than this after a revocation is told the truth.
const REMEMBERED: Duration = Duration::from_millis(2_100);
/// Where nothing is heard of the feed at all.
const SELDOM: Duration = Duration::from_mins(15);

/// Somebody who serves topics: a worker, or whoever may do everything with jobs anyway. Submitters and viewers stay out,
/// because a token that reads or sends should not be able to take work away.
pub(super) async fn worker(app: &App, metadata: &MetadataMap) -> Result<Caller, Status> {
    let headers: &HeaderMap = metadata.as_ref();
    let caller = authenticate(app, headers).await?;
    if !matches!(caller.who, Who::User(Role::Worker | Role::Operator | Role::Admin)) {
        return Err(refused("the role worker, operator or admin", &caller).into());
    }
    Ok(narrow(Scope::Product, caller, headers)?)
}

pub(super) async fn submitter(app: &App, metadata: &MetadataMap) -> Result<Caller, Status> {
    let headers: &HeaderMap = metadata.as_ref();
    let caller = authenticate(app, headers).await?;
    admit(Access::Role(Role::Submitter), &caller)?;
    Ok(narrow(Scope::Product, caller, headers)?)
}

/// Asks again whether the token of an open stream lives. A revocation is an event, so the store is asked only after the
/// feed has moved: quiet streams cost nothing.
pub(super) struct Welcome {
    app: App,
    caller: Caller,
    head: watch::Receiver<FeedPos>,
    ask_at: Instant,
    moved: bool,
    asked: Option<JoinHandle<bool>>,
}

impl Welcome {
    /// To be made before the token is first looked at.
    pub(super) fn new(app: &App, head: watch::Receiver<FeedPos>, caller: Caller) -> Self {
        Self { app: app.clone(), caller, head, ask_at: Instant::now() + SELDOM, moved: false, asked: None }
    }

    /// Returns when the token has come to its end. Nothing is lost where the call is given up: a question that was begun
    /// goes on with the next call, so that a busy stream cannot put it off for ever.
    pub(super) async fn is_over(&mut self) -> Status {
        loop {
            tokio::select! {
                changed = self.head.changed(), if !self.moved => {
                    if changed.is_err() {
                        return super::stopping();
                    }
                    self.moved = true;
                    self.ask_at = Instant::now() + REMEMBERED.min(self.app.options.look_every);
                }
                () = tokio::time::sleep_until(self.ask_at), if self.asked.is_none() => {
                    self.moved = false;
                    self.ask_at = Instant::now() + SELDOM;
                    self.asked = Some(ask(self.app.clone(), self.caller.secret.clone()));
                }
                is_live = answered(&mut self.asked) => {
                    self.asked = None;
                    if !is_live {
                        return Problem::unauthenticated("the token is unknown, revoked or expired").into();
                    }
                }
            }
        }
    }
}

fn ask(app: App, secret: Secret) -> JoinHandle<bool> {
    // A store that cannot be reached just now is no reason to send a worker away.
    tokio::spawn(async move { !matches!(app.coordinator.authenticate(&secret).await, Ok(None)) })
}

async fn answered(asked: &mut Option<JoinHandle<bool>>) -> bool {
    match asked {
        Some(asked) => asked.await.unwrap_or(true),
        None => std::future::pending().await,
    }
}
