//! Calls to somebody's REST API with a token, and what an answer means: it is there, gone, refused, or to be asked later.
//!
//! The token leaves this module only as a header.

use std::time::Duration;

use giga_domain::{Effect, Timestamp};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::http::{Answer, Failure, Http};

/// A hundred long comments fit.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Where the other side says that it is asked too often and not when to come back.
const QUIET: Duration = Duration::from_mins(1);

pub(crate) struct Rest {
    api: String,
    /// Those that say who we are among them.
    headers: HeaderMap,
    http: Http,
}

/// Why something was not done, and what follows from it.
#[derive(Debug)]
pub(crate) enum Trouble {
    Gone(String),
    Refused(String),
    Later { detail: String, after: Option<Duration> },
}

impl Trouble {
    pub(crate) fn later(detail: impl Into<String>) -> Self {
        Self::Later { detail: detail.into(), after: None }
    }
}

impl Rest {
    pub(crate) const fn new(api: String, headers: HeaderMap, http: Http) -> Self {
        Self { api, headers, http }
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        now: Timestamp,
    ) -> Result<Answer, Trouble> {
        let mut headers = self.headers.clone();
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let url = format!("{}{path}", self.api);
        let body = body.map(|body| body.to_string().into_bytes());
        let answer =
            self.http.send(method, &url, headers, body, ANSWER_BYTES).await.map_err(|f| match f {
                Failure::Refused(detail) => Trouble::Refused(detail),
                Failure::Failed(detail) => Trouble::later(detail),
            })?;
        judge(answer, now)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, now: Timestamp) -> Result<T, Trouble> {
        parsed(&self.call(Method::GET, path, None, now).await?)
    }
}

fn judge(answer: Answer, now: Timestamp) -> Result<Answer, Trouble> {
    let message = message_of(&answer);
    match answer.status.as_u16() {
        200..=299 if answer.cut => Err(Trouble::Refused("its answer is too large".to_owned())),
        200..=299 => Ok(answer),
        300..=399 => Err(Trouble::Gone("it has moved; name it as it is called now".to_owned())),
        401 => Err(Trouble::later(format!("the token is not accepted ({message})"))),
        403 | 429 => match quiet_for(&answer, now) {
            Some(after) => Err(Trouble::Later { detail: message, after: Some(after) }),
            None if answer.status == StatusCode::TOO_MANY_REQUESTS || message.contains("rate limit") => {
                Err(Trouble::Later { detail: message, after: Some(QUIET) })
            }
            // About this item: others may go well.
            None => Err(Trouble::Refused(format!("the token may not do this here ({message})"))),
        },
        404 | 410 => {
            Err(Trouble::Gone(format!("it does not exist, or the token may not see it ({message})")))
        }
        400..=499 => Err(Trouble::Refused(message)),
        _ => Err(Trouble::Later { detail: message, after: quiet_for(&answer, now) }),
    }
}

/// How long the other side wants to be left alone. GitHub and GitLab spell it differently.
fn quiet_for(answer: &Answer, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| answer.headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    answer.retry_after(now).or_else(|| {
        let limit = |prefix: &str| {
            let reset = number(&format!("{prefix}ratelimit-reset"));
            reset.filter(|_| number(&format!("{prefix}ratelimit-remaining")) == Some(0))
        };
        let reset = limit("x-").or_else(|| limit(""))?;
        let pause = Timestamp::from_millis(reset.saturating_mul(1_000)).since(now);
        Some(pause.saturating_add(Duration::from_secs(1)).min(Effect::LONGEST_PAUSE))
    })
}

/// The status with the other side's own message, which holds nothing of ours.
fn message_of(answer: &Answer) -> String {
    let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let said = [&reply["message"], &reply["error"]].into_iter().find(|said| !said.is_null());
    let Some(said) = said else { return answer.status.to_string() };
    let details = reply["errors"].as_array().into_iter().flatten();
    let details = details.filter_map(|error| error["message"].as_str().or_else(|| error.as_str()));
    let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    let whole = std::iter::once(said.as_str()).chain(details).collect::<Vec<_>>().join("; ");
    let message: String = whole.chars().filter(|c| !c.is_control()).take(200).collect();
    format!("{}: {message}", answer.status.as_u16())
}

pub(crate) fn parsed<T: DeserializeOwned>(answer: &Answer) -> Result<T, Trouble> {
    serde_json::from_slice(&answer.body)
        .map_err(|error| Trouble::later(format!("its answer makes no sense: {error}")))
}
