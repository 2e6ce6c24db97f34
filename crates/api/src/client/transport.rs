//! One call: built, sent, repeated where that is safe, and read.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answer, Client, ClientError, RawCall, RawMethod};
use crate::wire::Problem;

const TIMEOUT: Duration = Duration::from_secs(30);
/// The slowest that a large body may travel, in bytes per second.
const SLOWEST: u64 = 256 * 1024;
/// 100, 250 and 500 ms between the tries of one call: long enough for a restart to go unnoticed, short enough that
/// somebody who forgot to start the coordinator is told at once.
const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_factor(2.5)
    .with_max_delay(Duration::from_millis(500))
    .with_max_times(3);
/// How long a call that comes too early waits for its turn, all tries together.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// How much of an answer that nobody understands is shown.
const SHOWN_CHARS: usize = 200;

pub(super) struct Call<'a> {
    method: Method,
    path: Vec<&'a str>,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Option<(String, Vec<u8>)>,
    timeout: Duration,
    /// Sending it twice has the same effect as sending it once.
    repeatable: bool,
}

impl<'a> Call<'a> {
    pub(super) fn get(path: &[&'a str]) -> Self {
        Self { repeatable: true, ..Self::new(Method::GET, path) }
    }

    pub(super) fn post(path: &[&'a str]) -> Self {
        Self::new(Method::POST, path)
    }

    pub(super) fn patch(path: &[&'a str]) -> Self {
        Self::new(Method::PATCH, path)
    }

    pub(super) fn put(path: &[&'a str]) -> Self {
        Self { repeatable: true, ..Self::new(Method::PUT, path) }
    }

    pub(super) fn delete(path: &[&'a str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    fn new(method: Method, path: &[&'a str]) -> Self {
        Self {
            method,
            path: path.to_vec(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            timeout: TIMEOUT,
            repeatable: false,
        }
    }

    pub(super) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(super) fn json(self, body: &impl Serialize) -> Self {
        let bytes = serde_json::to_vec(body).expect("wire types have only string keys and finite numbers");
        self.bytes("application/json", bytes)
    }

    pub(super) fn bytes(self, kind: &str, bytes: Vec<u8>) -> Self {
        let mut call = self.moves(bytes.len() as u64);
        call.body = Some((kind.to_owned(), bytes));
        call
    }

    /// So many bytes go there or come back, which takes its time.
    pub(super) fn moves(mut self, bytes: u64) -> Self {
        self.timeout = TIMEOUT + Duration::from_secs(bytes / SLOWEST);
        self
    }

    /// As somebody else has put it together.
    pub(super) fn raw(call: &'a RawCall) -> Self {
        let method = match call.method {
            RawMethod::Get => Method::GET,
            RawMethod::Post => Method::POST,
        };
        let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
        let mut raw = Self::new(method, &path).repeatable(call.repeatable);
        raw.query.clone_from(&call.query);
        raw.headers.clone_from(&call.headers);
        match &call.body {
            Some((kind, bytes)) => raw.bytes(kind, bytes.clone()),
            None => raw,
        }
    }

    pub(super) fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }
}

impl Client {
    pub(super) async fn ask<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<Answer<T>, ClientError> {
        let mut waited = Duration::ZERO;
        loop {
            let once = async || self.read(self.send(&call, Some(call.timeout)).await?).await;
            let answer = once.retry(DELAYS).when(|error| may_repeat(&call, error)).await;
            // Whoever is told to come later did nothing, so any call may be sent again.
            let wait = answer.as_ref().err().and_then(ClientError::asks_to_wait);
            let Some(wait) = wait.filter(|wait| waited + *wait <= LONGEST_WAIT) else { return answer };
            waited += wait;
            tokio::time::sleep(wait).await;
        }
    }

    /// Whatever is answered, as it came; sent again as `ask` does.
    pub(super) async fn bytes_of(&self, call: Call<'_>) -> Result<Vec<u8>, ClientError> {
        let once = async || {
            let response = self.send(&call, Some(call.timeout)).await?;
            response.bytes().await.map_err(|source| ClientError::unreachable(&self.base, source))
        };
        let bytes = once.retry(DELAYS).when(|error| may_repeat(&call, error)).await?;
        Ok(bytes.to_vec())
    }

    /// For answers that are no JSON. Sent once: whoever wants much of something asks again by themselves.
    pub(super) async fn fetch(&self, call: Call<'_>) -> Result<Vec<u8>, ClientError> {
        let response = self.send(&call, Some(call.timeout)).await?;
        let bytes = response.bytes().await.map_err(|source| ClientError::unreachable(&self.base, source))?;
        Ok(bytes.to_vec())
    }

    /// For calls that answer 204 or 304 when there is nothing to say.
    pub(super) async fn ask_or_nothing<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
    ) -> Result<Option<T>, ClientError> {
        Ok(self.ask::<Option<T>>(call).await?.value)
    }

    /// Sends once. The answer is a success or "not modified"; anything else is an error.
    pub(super) async fn send(
        &self,
        call: &Call<'_>,
        timeout: Option<Duration>,
    ) -> Result<Response, ClientError> {
        let mut request = self.http.request(call.method.clone(), self.address(call));
        request = self.identify(request)?;
        for (name, value) in &call.headers {
            request = request.header(*name, header(value, "header")?);
        }
        if let Some((kind, bytes)) = &call.body {
            request = request.header("content-type", header(kind, "content type")?).body(bytes.clone());
        }
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        let response = request.send().await.map_err(|source| ClientError::unreachable(&self.base, source))?;
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            Ok(response)
        } else {
            Err(self.refusal(response).await)
        }
    }

    fn identify(&self, mut request: RequestBuilder) -> Result<RequestBuilder, ClientError> {
        if let Some(token) = &self.token {
            let mut value = header(&format!("Bearer {token}"), "token")?;
            value.set_sensitive(true);
            request = request.header("authorization", value);
        }
        if let Some(product) = &self.product {
            request = request.header("x-product-id", header(product, "product")?);
        }
        Ok(request)
    }

    /// Each part of the path is escaped: what a user typed as an id stays one segment.
    fn address(&self, call: &Call<'_>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "fleet"]).extend(&call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        url
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<Answer<T>, ClientError> {
        let status = response.status().as_u16();
        let bytes = response.bytes().await.map_err(|source| ClientError::unreachable(&self.base, source))?;
        let bad = |reason: String| ClientError::BadAnswer { url: self.url().to_owned(), status, reason };
        let json: Value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?
        };
        // Not from the value, which rounds numbers that a payload may have.
        let value = if bytes.is_empty() { T::deserialize(&json) } else { serde_json::from_slice(&bytes) };
        let value = value.map_err(|error| bad(error.to_string()))?;
        Ok(Answer { value, json, status })
    }

    async fn refusal(&self, response: Response) -> ClientError {
        let status = response.status();
        let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after_ms =
            retry_after.and_then(|text| text.trim().parse::<u64>().ok()).map(|seconds| seconds * 1_000);
        let bytes = match response.bytes().await {
            Ok(bytes) => bytes,
            Err(source) => return ClientError::unreachable(&self.base, source),
        };
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => {
                let retry_after_ms = problem.retry_after_ms.or(retry_after_ms);
                ClientError::Problem(Box::new(Problem { retry_after_ms, ..problem }))
            }
            // A load balancer whose coordinator is gone, or did not answer it.
            Err(_) if matches!(status.as_u16(), 502..=504) => ClientError::Unreachable {
                url: self.url().to_owned(),
                reason: "the service is unavailable".to_owned(),
                source: None,
            },
            Err(_) => {
                let text = String::from_utf8_lossy(&bytes);
                let shown: String = text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
                let reason = if shown.is_empty() { "nothing".to_owned() } else { shown };
                ClientError::BadAnswer { url: self.url().to_owned(), status: status.as_u16(), reason }
            }
        }
    }
}

fn may_repeat(call: &Call<'_>, error: &ClientError) -> bool {
    let ClientError::Unreachable { source: Some(source), .. } = error else {
        return call.repeatable && error.is_passing() && error.asks_to_wait().is_none();
    };
    // Without a connection nothing was sent, so nothing can have happened. Whoever was silent for the whole timeout
    // will be silent again.
    source.is_connect() || (call.repeatable && !source.is_timeout())
}

fn header(value: &str, what: &'static str) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(value).map_err(|_: InvalidHeaderValue| ClientError::Unsendable(what))
}
