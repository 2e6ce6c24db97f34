//! Messages of forges about pull requests. No token opens this: the signature does, and it opens nothing but a look at
//! the request that the message names.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use giga_ports::effects::{HookError, HookMessage};

use super::Answer;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::request::{BytesBody, PathText, header};

/// Forges send everything that they know about a request.
const HOOK_BYTES: usize = 4 * 1024 * 1024;

pub(crate) async fn receive(
    State(app): State<App>,
    path: PathText,
    headers: HeaderMap,
    BytesBody(body): BytesBody<HOOK_BYTES>,
) -> Answer<StatusCode> {
    let forge = path.text("forge")?;
    let header = |name: &str| header::single(&headers, name).ok().flatten().map(str::to_owned);
    let message = HookMessage { header: &header, body: &body };
    match app.coordinator.effects().receive_hook(forge, &message) {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error @ HookError::NoSuchForge(_)) => Err(Problem::new(Code::NotFound, error.to_string())),
        Err(error @ (HookError::NoSecret(_) | HookError::Unsigned)) => {
            Err(Problem::new(Code::Unauthenticated, error.to_string()))
        }
        Err(HookError::Malformed(why)) => Err(Problem::field("body", why)),
    }
}
