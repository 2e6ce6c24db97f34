//! Pull requests on GitHub, over either transport.
//!
//! A head branch belongs to one job and epoch, so whatever request exists for it is the one: this never opens
//! another, not after a lost reply and not after a person closed it. Every attempt begins with a look.

use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable as _};
use giga_domain::RequestId;
use serde_json::{Value, json};

use super::transport::{Answer, Method, Transport};
use super::{Forge, ForgeError, Opened, PullRequest, RequestMerge};
use crate::workspace::{CommitId, GitUrl};

const RETRIES: usize = 3;

#[derive(Debug)]
pub struct GitHub {
    transport: Box<dyn Transport>,
    /// Doubles from attempt to attempt.
    wait: Duration,
}

impl GitHub {
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), wait: Duration::from_secs(1) }
    }

    #[must_use]
    pub const fn with_retry_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// `owner/name`, from a URL of this host.
    fn repository(&self, url: &GitUrl) -> Result<(String, String), ForgeError> {
        let host = self.transport.host();
        let not_here = || ForgeError::NotHere { url: url.to_string(), host: host.to_owned() };
        let (found, path) = url.host_and_path().ok_or_else(not_here)?;
        let path = path.trim_end_matches('/');
        let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/').ok_or_else(not_here)?;
        if found != host || name.contains(['/', '%']) || owner.contains('%') {
            return Err(not_here());
        }
        Ok((owner.to_owned(), name.to_owned()))
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Answer, ForgeError> {
        let answer = self.transport.call(method, path, body).await?;
        match answer.status {
            401 => Err(ForgeError::Unauthorised(reason(&answer))),
            // 403 and 429 are also how GitHub says "slower, please".
            403 if !reason(&answer).to_lowercase().contains("rate limit") => {
                Err(ForgeError::Unauthorised(reason(&answer)))
            }
            403 | 429 | 500.. => Err(ForgeError::Unavailable(reason(&answer))),
            _ => Ok(answer),
        }
    }

    /// Runs a step that looks before it acts, so that it can be run again when its reply was lost.
    async fn repeat<T, F>(&self, step: impl Fn() -> F) -> Result<T, ForgeError>
    where
        F: Future<Output = Result<T, ForgeError>>,
    {
        let delays = ExponentialBuilder::new().with_min_delay(self.wait).with_max_times(RETRIES);
        step.retry(delays)
            .when(ForgeError::is_retryable)
            .notify(|error, wait| tracing::warn!(%error, ?wait, "GitHub did not answer; trying again"))
            .await
    }

    async fn find(&self, at: &Repository, request: &PullRequest) -> Result<Option<Opened>, ForgeError> {
        let Repository(owner, name) = at;
        // Ours are spelled with letters, digits and slashes, so nothing here needs escaping.
        let path = format!("repos/{owner}/{name}/pulls?head={owner}:{}&state=all&per_page=100", request.head);
        let answer = self.call(Method::Get, &path, None).await?;
        let Some(all) = answer.body.as_array().filter(|_| answer.status == 200) else {
            return Err(refused("looking for the request", &answer));
        };
        let marker = marker(&request.key);
        let of_head = |pull: &&Value| pull["head"]["ref"].as_str() == Some(&request.head);
        let is_marked = |pull: &&Value| pull["body"].as_str().is_some_and(|body| body.contains(&marker));
        let ours = all.iter().filter(of_head).find(is_marked).or_else(|| all.iter().find(of_head));
        Ok(ours.and_then(|pull| opened(pull, true)))
    }

    async fn open_once(&self, at: &Repository, request: &PullRequest) -> Result<Opened, ForgeError> {
        if let Some(existing) = self.find(at, request).await? {
            return Ok(existing);
        }
        let Repository(owner, name) = at;
        let body = json!({
            "title": request.title,
            "head": request.head,
            "base": request.base,
            "body": format!("{}\n\n{}\n", request.body.trim_end(), marker(&request.key)),
        });
        let answer = self.call(Method::Post, &format!("repos/{owner}/{name}/pulls"), Some(body)).await?;
        if answer.status == 201
            && let Some(new) = opened(&answer.body, false)
        {
            return Ok(new);
        }
        // Somebody was faster between the look and the call.
        if answer.status == 422
            && let Some(existing) = self.find(at, request).await?
        {
            return Ok(existing);
        }
        Err(refused("opening the request", &answer))
    }

    async fn merge_once(
        &self,
        path: &str,
        commit: &CommitId,
        message: &str,
    ) -> Result<RequestMerge, ForgeError> {
        let pull = self.call(Method::Get, path, None).await?;
        if pull.status != 200 {
            return Err(refused("looking at the request", &pull));
        }
        if pull.body["merged"].as_bool() == Some(true) {
            return Ok(RequestMerge::AlreadyMerged { commit: merge_commit(&pull.body["merge_commit_sha"])? });
        }
        let (title, text) = message.split_once('\n').unwrap_or((message, ""));
        // With the commit named, GitHub refuses when the branch has moved since it was approved.
        let body = json!({
            "sha": commit.as_str(),
            "merge_method": "merge",
            "commit_title": title,
            "commit_message": text.trim(),
        });
        let answer = self.call(Method::Put, &format!("{path}/merge"), Some(body)).await?;
        match answer.status {
            200 => Ok(RequestMerge::Merged { commit: merge_commit(&answer.body["sha"])? }),
            405 | 409 => Ok(RequestMerge::NotMergeable { detail: reason(&answer) }),
            _ => Err(refused("merging the request", &answer)),
        }
    }
}

#[derive(Debug)]
struct Repository(String, String);

#[async_trait]
impl Forge for GitHub {
    async fn open_request(&self, request: &PullRequest) -> Result<Option<Opened>, ForgeError> {
        let (owner, name) = self.repository(&request.repo)?;
        let at = Repository(owner, name);
        self.repeat(|| self.open_once(&at, request)).await.map(Some)
    }

    async fn merge_request(
        &self,
        repo: &GitUrl,
        number: u64,
        commit: &CommitId,
        message: &str,
    ) -> Result<Option<RequestMerge>, ForgeError> {
        let (owner, name) = self.repository(repo)?;
        let path = format!("repos/{owner}/{name}/pulls/{number}");
        self.repeat(|| self.merge_once(&path, commit, message)).await.map(Some)
    }

    async fn close_request(&self, repo: &GitUrl, number: u64) -> Result<(), ForgeError> {
        let (owner, name) = self.repository(repo)?;
        let path = format!("repos/{owner}/{name}/pulls/{number}");
        self.repeat(|| async {
            let answer = self.call(Method::Patch, &path, Some(json!({"state": "closed"}))).await?;
            if answer.status == 200 { Ok(()) } else { Err(refused("closing the request", &answer)) }
        })
        .await
    }
}

/// In the body of the request, invisible to readers.
fn marker(key: &RequestId) -> String {
    format!("<!-- gigafactory-request: {key} -->")
}

fn opened(pull: &Value, existed: bool) -> Option<Opened> {
    Some(Opened { url: pull["html_url"].as_str()?.to_owned(), number: pull["number"].as_u64()?, existed })
}

fn merge_commit(value: &Value) -> Result<CommitId, ForgeError> {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| ForgeError::Refused("merged, but the answer names no commit".to_owned()))
}

/// GitHub's own message, bounded.
fn reason(answer: &Answer) -> String {
    let text = answer.body["message"].as_str().unwrap_or("no message");
    let details = answer.body["errors"].as_array().into_iter().flatten();
    let details = details.filter_map(|error| error["message"].as_str().or_else(|| error.as_str()));
    let whole = std::iter::once(text).chain(details).collect::<Vec<_>>().join("; ");
    format!("{} (HTTP {})", whole.chars().take(500).collect::<String>(), answer.status)
}

fn refused(what: &str, answer: &Answer) -> ForgeError {
    ForgeError::Refused(format!("{what}: {}", reason(answer)))
}
