//! Two ways to say the same to GitHub: its REST API with a token, or the `gh` command line with the user's sign-in.
//!
//! Neither retries: whether a call may be repeated is for the caller to know. The token is never shown or logged.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::ForgeError;
use crate::process;

const ANSWER_BYTES: usize = 8 << 20;
const ANSWER_TIME: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
}

impl Method {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
        }
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// The host whose repositories this reaches.
    fn host(&self) -> &str;

    /// An error means that it is not known whether the call arrived.
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Answer, ForgeError>;
}

/// The API over HTTPS.
pub struct RestApi {
    host: String,
    base: String,
    token: String,
    http: reqwest::Client,
}

impl fmt::Debug for RestApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestApi").field("host", &self.host).field("base", &self.base).finish_non_exhaustive()
    }
}

impl RestApi {
    /// `base` is `https://api.github.com`, or `https://<host>/api/v3` of an enterprise server.
    pub fn new(host: &str, base: &str, token: &str) -> Result<Self, ForgeError> {
        let http = reqwest::Client::builder()
            .user_agent("gigafactory")
            .timeout(ANSWER_TIME)
            // A redirect could carry the token to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| ForgeError::Unavailable(error.to_string()))?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { host: host.to_owned(), base, token: token.to_owned(), http })
    }
}

#[async_trait]
impl Transport for RestApi {
    fn host(&self) -> &str {
        &self.host
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Answer, ForgeError> {
        let url = format!("{}/{path}", self.base);
        let request = match method {
            Method::Get => self.http.get(url),
            Method::Post => self.http.post(url),
            Method::Put => self.http.put(url),
            Method::Patch => self.http.patch(url),
        };
        let request = request
            .bearer_auth(&self.token)
            .header("accept", "application/vnd.github+json")
            .header("x-github-api-version", "2022-11-28");
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let lost = |error: reqwest::Error| ForgeError::Unavailable(error.without_url().to_string());
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if bytes.len() + chunk.len() > ANSWER_BYTES {
                return Err(ForgeError::Unavailable("the answer is too long".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) })
    }
}

/// The `gh` command line: the user's own sign-in, no token of ours.
#[derive(Debug, Clone)]
pub struct GhCli {
    host: String,
    program: PathBuf,
}

impl GhCli {
    /// `program` is `gh`, or where it is.
    pub fn new(host: &str, program: impl Into<PathBuf>) -> Self {
        Self { host: host.to_owned(), program: program.into() }
    }
}

#[async_trait]
impl Transport for GhCli {
    fn host(&self) -> &str {
        &self.host
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Answer, ForgeError> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(["api", "--include", "--hostname", &self.host, "--method", method.as_str()]);
        if body.is_some() {
            command.args(["--input", "-"]);
        }
        command
            .arg(path)
            .env("GH_PROMPT_DISABLED", "1")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("NO_COLOR", "1");
        for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("GIGA_")) {
            command.env_remove(key);
        }
        let input = body.map(|body| body.to_string().into_bytes());
        let finished = process::run(command, input, ANSWER_BYTES, ANSWER_TIME).await;
        let finished = finished.map_err(|error| ForgeError::Unavailable(format!("`gh`: {error}")))?;
        // `gh` ends with 1 for every HTTP error; the status line says which.
        let text = String::from_utf8_lossy(&finished.stdout);
        parse_included(&text).ok_or_else(|| {
            let message: String = finished.stderr.chars().take(500).collect();
            if message.contains("auth login") {
                ForgeError::Unauthorised(format!(
                    "`gh` is not signed in to {}: {}",
                    self.host,
                    message.trim()
                ))
            } else {
                ForgeError::Unavailable(format!("`gh` ended with {}: {}", finished.status, message.trim()))
            }
        })
    }
}

/// `HTTP/2.0 200 OK`, headers, an empty line, the body.
fn parse_included(text: &str) -> Option<Answer> {
    let status = text.strip_prefix("HTTP/")?.split_whitespace().nth(1)?.parse().ok()?;
    let body = text.split_once("\r\n\r\n").or_else(|| text.split_once("\n\n")).map_or("", |(_, body)| body);
    Some(Answer { status, body: serde_json::from_str(body).unwrap_or(Value::Null) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_gh() {
        let answer = parse_included("HTTP/2.0 201 Created\r\nX: y\r\n\r\n{\"number\":7}").unwrap();
        assert_eq!((answer.status, &answer.body["number"]), (201, &Value::from(7)));
        assert_eq!(parse_included("HTTP/1.1 204 No Content\n\n").unwrap().body, Value::Null);
        assert!(parse_included("").is_none() && parse_included("{}").is_none());
    }

    #[test]
    fn the_token_is_not_shown() {
        let api = RestApi::new("github.com", "https://api.github.com/", "ghp_secret").unwrap();
        assert!(!format!("{api:?}").contains("ghp_secret"));
    }
}
