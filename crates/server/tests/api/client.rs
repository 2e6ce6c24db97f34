//! Requests and answers, as short as a test wants them.

use std::time::Duration;

use axum::http::{HeaderMap, Method};
use serde_json::Value;

/// Longer than anything takes; a test that gets here has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Call(reqwest::RequestBuilder);

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Call {
    pub(crate) fn new(client: &reqwest::Client, method: Method, url: String) -> Self {
        Self(client.request(method, url))
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        Self(self.0.header(name, value))
    }

    pub(crate) fn json(self, body: Value) -> Self {
        Self(self.0.json(&body))
    }

    pub(crate) fn markdown(self, text: &str) -> Self {
        self.body("text/markdown", text.to_owned())
    }

    pub(crate) fn body(self, content_type: &str, body: impl Into<reqwest::Body>) -> Self {
        Self(self.0.header("content-type", content_type).body(body))
    }

    /// The answer as it arrives, for streams.
    pub(crate) async fn open(self) -> reqwest::Response {
        tokio::time::timeout(PATIENCE, self.0.send()).await.unwrap().unwrap()
    }

    pub(crate) async fn send(self) -> Reply {
        let response = self.open().await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = tokio::time::timeout(PATIENCE, response.text()).await.unwrap().unwrap();
        Reply { status, headers, text }
    }

    /// Sends it and expects this status.
    pub(crate) async fn gives(self, status: u16) -> Reply {
        let reply = self.send().await;
        assert_eq!(reply.status, status, "{}", reply.text);
        reply
    }

    /// Sends it and expects a problem with this code, whose text contains `needle`.
    pub(crate) async fn refused(self, status: u16, code: &str, needle: &str) -> Reply {
        let reply = self.gives(status).await;
        assert_eq!(reply.header("content-type"), "application/problem+json", "{}", reply.text);
        let problem = reply.json();
        assert_eq!(problem["code"], code, "{}", reply.text);
        assert_eq!(problem["status"], status);
        assert!(!problem["title"].as_str().unwrap().is_empty());
        assert!(problem["detail"].as_str().unwrap().contains(needle), "no `{needle}` in {}", reply.text);
        reply
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}
