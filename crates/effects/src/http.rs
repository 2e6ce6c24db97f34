//! One HTTP request to where somebody wanted it, and what came back.
//!
//! No redirects, no proxies from the environment, no cookies, one deadline over all, a bounded answer. Nothing that this
//! says about a failure holds the address or a header: both may be secrets.

use std::error::Error as _;
use std::time::Duration;

use giga_domain::{Effect, Timestamp};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, StatusCode};

use crate::guard::{Guard, Refused, is_encrypted};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("gigafactory/", env!("CARGO_PKG_VERSION"));
/// Of an answer that says something odd.
const SHOWN_BYTES: usize = 200;

pub(crate) struct Http {
    guard: Guard,
    encrypted: Client,
    plain: Client,
    timeout: Duration,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// There was more than was read.
    pub(crate) cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// What the URL itself says may not be reached.
    Refused(String),
    /// It may go better later.
    Failed(String),
}

impl Http {
    pub(crate) fn new(guard: Guard) -> Result<Self, reqwest::Error> {
        Ok(Self { encrypted: client(&guard, true)?, plain: client(&guard, false)?, guard, timeout: TIMEOUT })
    }

    #[must_use]
    pub(crate) const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) const fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Sends it once. Of the answer at most `most` bytes are read.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
        most: usize,
    ) -> Result<Answer, Failure> {
        let url = self.guard.read(url).map_err(|refused| Failure::Refused(refused.0))?;
        let client = if is_encrypted(&url) { &self.encrypted } else { &self.plain };
        let mut request = client.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let answered = tokio::time::timeout(self.timeout, async {
            let mut response = request.send().await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let (mut body, mut cut) = (Vec::new(), false);
            while let Some(piece) = response.chunk().await? {
                body.extend_from_slice(&piece[..piece.len().min(most - body.len())]);
                if body.len() == most {
                    cut = true;
                    break;
                }
            }
            Ok(Answer { status, headers, body, cut })
        });
        match answered.await {
            Ok(answered) => answered.map_err(|error| self.failure(&error)),
            Err(_) => Err(Failure::Failed(self.too_slow())),
        }
    }

    fn too_slow(&self) -> String {
        format!("no answer within {} s", self.timeout.as_secs_f64())
    }

    fn failure(&self, error: &reqwest::Error) -> Failure {
        if error.is_timeout() {
            return Failure::Failed(self.too_slow());
        }
        let mut cause = error.source();
        let mut last = None;
        while let Some(error) = cause {
            if let Some(refused) = error.downcast_ref::<Refused>() {
                // What a name leads to may be another thing in a moment; only the URL itself is refused for good.
                return Failure::Failed(refused.0.clone());
            }
            last = Some(error.to_string());
            cause = error.source();
        }
        let what = if error.is_connect() { "it cannot be reached" } else { "the connection broke" };
        let cause = last.map(|cause| format!(": {}", shown(cause.as_bytes()))).unwrap_or_default();
        Failure::Failed(format!("{what}{cause}"))
    }
}

fn client(guard: &Guard, encrypted: bool) -> Result<Client, reqwest::Error> {
    Client::builder()
        .dns_resolver(guard.resolver(encrypted))
        .redirect(reqwest::redirect::Policy::none())
        // Each attempt is counted and spaced by the outbox, and by nobody else.
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .https_only(encrypted)
        .user_agent(USER_AGENT)
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(Duration::from_secs(15))
        .build()
}

impl Answer {
    /// How long the other side wants to be left alone, within reason: seconds, or a date.
    pub(crate) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        self.asked_for(now).map(|pause| pause.min(Effect::LONGEST_PAUSE))
    }

    fn asked_for(&self, now: Timestamp) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(Timestamp::from_millis(at.as_millisecond()).since(now))
    }

    /// The status in words, with the beginning of the body where it is an error.
    pub(crate) fn summary(&self) -> String {
        let status = self.status.as_u16();
        let reason = self.status.canonical_reason().map(|r| format!(" {r}")).unwrap_or_default();
        if self.status.is_success() || self.body.is_empty() {
            return format!("{status}{reason}");
        }
        format!("{status}{reason}: {}", shown(&self.body))
    }
}

/// The beginning of what somebody else wrote, fit for one line.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]).into_owned();
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(after: &str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, after.parse().unwrap());
        Answer { status: StatusCode::TOO_MANY_REQUESTS, headers, body: b"a\x1b[31m\n b".to_vec(), cut: false }
    }

    #[test]
    fn a_receiver_says_when_in_seconds_or_as_a_date() {
        let now: Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
        for (text, expected) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("99999999999", Some(Effect::LONGEST_PAUSE.as_secs())),
            ("Sun, 06 Nov 2044 08:00:00 GMT", Some(Effect::LONGEST_PAUSE.as_secs())),
            ("-1", None),
            ("soon", None),
        ] {
            assert_eq!(answer(text).retry_after(now), expected.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn what_others_write_is_shown_on_one_line() {
        assert_eq!(answer("1").summary(), "429 Too Many Requests: a [31m b");
    }
}
