//! Pull requests of GitHub.

use async_trait::async_trait;
use giga_domain::job::OpenRequest;
use giga_domain::{Timestamp, Verdict};
use giga_ports::effects::{Checks, HookMessage, HookSubject, Proposal, RequestState, Said, Standing};
use hmac::Mac as _;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Forge, ForgeConfig, ForgeKind, mac, newest, words};
use crate::github::{GitHub as Tracker, headers};
use crate::http::Http;
use crate::rest::{Rest, Trouble, parsed};
use crate::tracker::{is_owner, is_repo, settings};

pub(super) const KIND: ForgeKind = ForgeKind {
    name: "github",
    display_name: "GitHub",
    default_api: Tracker::KIND.default_api,
    settings: settings!("github", "GITHUB"),
    secret_file: (
        "github-webhook-secret-file",
        "--github-webhook-secret-file",
        "GIGA_GITHUB_WEBHOOK_SECRET_FILE",
    ),
    shares_tracker: true,
    open: |config, http| Ok(Box::new(GitHub::new(config, http)?)),
};

struct GitHub {
    rest: Rest,
}

#[derive(Debug, Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    #[serde(default)]
    merged_at: Option<String>,
    #[serde(default)]
    merge_commit_sha: Option<String>,
    head: End,
    base: End,
}

#[derive(Debug, Deserialize)]
struct End {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    /// None where it is gone.
    #[serde(default)]
    repo: Option<Repository>,
}

#[derive(Debug, Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Debug, Deserialize)]
struct User {
    login: String,
}

fn name_of(user: Option<User>) -> String {
    user.map_or_else(|| "somebody".to_owned(), |user| user.login)
}

#[derive(Debug, Deserialize)]
struct Review {
    id: u64,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    body: Option<String>,
    state: String,
    #[serde(default)]
    commit_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Comment {
    id: u64,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    body: Option<String>,
    /// Of a comment on a line.
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    line: Option<u64>,
    #[serde(default)]
    pull_request_review_id: Option<u64>,
}

impl Comment {
    fn on_a_line(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{path}{line}: {}", self.body.as_deref().unwrap_or_default())
    }
}

impl Pull {
    fn is_open(&self) -> bool {
        self.state == "open"
    }

    fn opened(&self) -> OpenRequest {
        OpenRequest { number: self.number, url: self.html_url.clone() }
    }
}

impl GitHub {
    fn new(config: &ForgeConfig, http: Http) -> Result<Self, String> {
        let api = config.api.trim_end_matches('/').to_owned();
        Ok(Self { rest: Rest::new(api, headers(&config.token.0)?, http) })
    }

    /// The one that is open, or the last one.
    async fn find(&self, repo: &str, branch: &str, now: Timestamp) -> Result<Option<Pull>, Trouble> {
        let owner = repo.split('/').next().unwrap_or_default();
        let path = format!("/repos/{repo}/pulls?head={owner}:{branch}&state=all&per_page=100");
        let all: Vec<Pull> = self.rest.get(&path, now).await?;
        // A fork may have a branch of the same name.
        let is_own = |pull: &Pull| {
            let from = pull.head.repo.as_ref();
            pull.head.branch == branch && from.is_none_or(|from| from.full_name.eq_ignore_ascii_case(repo))
        };
        Ok(all.into_iter().filter(is_own).max_by_key(|pull| (pull.is_open(), pull.number)))
    }

    async fn create(&self, repo: &str, proposal: &Proposal, now: Timestamp) -> Result<Pull, Trouble> {
        let Proposal { branch, into, title, body, .. } = proposal;
        let new = json!({ "title": title, "head": branch, "base": into, "body": body });
        match self.rest.call(Method::POST, &format!("/repos/{repo}/pulls"), Some(new), now).await {
            Ok(answer) => parsed(&answer),
            // Somebody was faster between the look and the call, or the answer to an earlier call was lost.
            Err(Trouble::Refused(why)) => match self.find(repo, branch, now).await? {
                Some(pull) if pull.is_open() => Ok(pull),
                _ => Err(Trouble::Refused(why)),
            },
            Err(trouble) => Err(trouble),
        }
    }

    async fn patch(&self, repo: &str, number: u64, change: Value, now: Timestamp) -> Result<Pull, Trouble> {
        let path = format!("/repos/{repo}/pulls/{number}");
        parsed(&self.rest.call(Method::PATCH, &path, Some(change), now).await?)
    }

    async fn shows(&self, repo: &str, pull: &Pull, commit: &str, now: Timestamp) -> Result<bool, Trouble> {
        #[derive(Deserialize)]
        struct Commit {
            sha: String,
        }
        if pull.head.sha == commit {
            return Ok(true);
        }
        // Somebody may have added to it.
        let path = format!("/repos/{repo}/pulls/{}/commits?per_page=100", pull.number);
        let commits: Vec<Commit> = self.rest.get(&path, now).await?;
        Ok(commits.iter().any(|one| one.sha == commit))
    }

    async fn closed_by(&self, repo: &str, number: u64, now: Timestamp) -> Option<String> {
        #[derive(Deserialize)]
        struct Issue {
            #[serde(default)]
            closed_by: Option<User>,
        }
        let issue: Issue = self.rest.get(&format!("/repos/{repo}/issues/{number}"), now).await.ok()?;
        issue.closed_by.map(|user| user.login)
    }

    async fn said(
        &self,
        repo: &str,
        pull: &Pull,
        commit: &str,
        now: Timestamp,
    ) -> Result<Vec<Said>, Trouble> {
        let at = format!("/repos/{repo}/pulls/{}", pull.number);
        let reviews: Vec<Review> = self.rest.get(&format!("{at}/reviews?per_page=100"), now).await?;
        let newest_first = "per_page=100&sort=created&direction=desc";
        let mut on_lines: Vec<Comment> = self.rest.get(&format!("{at}/comments?{newest_first}"), now).await?;
        on_lines.sort_by_key(|comment| comment.id);
        let plain = format!("/repos/{repo}/issues/{}/comments?per_page=100", pull.number);
        let plain: Vec<Comment> = self.rest.get(&plain, now).await?;
        let reviews = reviews.into_iter().filter_map(|review| {
            let about_this =
                review.commit_id.as_deref().is_some_and(|id| id == commit || id == pull.head.sha);
            let verdict = match review.state.as_str() {
                "APPROVED" => Some(Verdict::Approve),
                "CHANGES_REQUESTED" => Some(Verdict::RequestChanges),
                "COMMENTED" => None,
                _ => return None,
            };
            let of_review =
                on_lines.iter().filter(|comment| comment.pull_request_review_id == Some(review.id));
            let parts =
                std::iter::once(review.body.unwrap_or_default()).chain(of_review.map(Comment::on_a_line));
            let parts: Vec<String> = parts.filter(|part| !part.trim().is_empty()).collect();
            let said = Said {
                id: format!("review:{}", review.id),
                by: name_of(review.user),
                verdict: verdict.filter(|_| about_this),
                words: words(&parts.join("\n\n")),
            };
            (said.verdict.is_some() || !said.words.is_empty()).then_some(said)
        });
        let plain = plain.into_iter().map(|comment| Said {
            id: format!("comment:{}", comment.id),
            by: name_of(comment.user),
            verdict: None,
            words: words(comment.body.as_deref().unwrap_or_default()),
        });
        let mut said = newest(plain.collect());
        said.extend(newest(reviews.collect()));
        Ok(said)
    }

    /// None while any of them runs, or where there are none.
    async fn checks(&self, repo: &str, sha: &str, now: Timestamp) -> Result<Option<Checks>, Trouble> {
        #[derive(Default, Deserialize)]
        struct Runs {
            #[serde(default)]
            check_runs: Vec<Run>,
        }
        #[derive(Deserialize)]
        struct Run {
            name: String,
            status: String,
            #[serde(default)]
            conclusion: Option<String>,
            #[serde(default)]
            html_url: Option<String>,
        }
        #[derive(Default, Deserialize)]
        struct Combined {
            #[serde(default)]
            statuses: Vec<Status>,
        }
        #[derive(Deserialize)]
        struct Status {
            context: String,
            state: String,
            #[serde(default)]
            description: Option<String>,
        }
        let at = format!("/repos/{repo}/commits/{sha}");
        let runs: Runs = or_unseen(self.rest.get(&format!("{at}/check-runs?per_page=100"), now).await)?;
        let combined: Combined = or_unseen(self.rest.get(&format!("{at}/status?per_page=100"), now).await)?;
        let mut failed = Vec::new();
        for run in &runs.check_runs {
            if run.status != "completed" {
                return Ok(None);
            }
            let conclusion = run.conclusion.as_deref().unwrap_or_default();
            if matches!(conclusion, "failure" | "timed_out" | "startup_failure" | "action_required") {
                let more = run.html_url.as_deref().unwrap_or_default();
                failed.push(format!("{}: {conclusion} {more}", run.name));
            }
        }
        for status in &combined.statuses {
            match status.state.as_str() {
                "pending" => return Ok(None),
                "success" => {}
                _ => {
                    let more = status.description.as_deref().unwrap_or_default();
                    failed.push(format!("{}: {} {more}", status.context, status.state));
                }
            }
        }
        if runs.check_runs.is_empty() && combined.statuses.is_empty() {
            return Ok(None);
        }
        Ok(Some(super::checks(sha, &failed)))
    }
}

/// A token that may not see checks still opens requests.
fn or_unseen<T: Default>(found: Result<T, Trouble>) -> Result<T, Trouble> {
    match found {
        Err(Trouble::Gone(_) | Trouble::Refused(_)) => Ok(T::default()),
        found => found,
    }
}

#[async_trait]
impl Forge for GitHub {
    fn repository(&self, path: &str) -> Option<String> {
        let (owner, name) = path.split_once('/')?;
        (is_owner(owner) && is_repo(name)).then(|| path.to_owned())
    }

    async fn open(&self, repo: &str, proposal: &Proposal, now: Timestamp) -> Result<OpenRequest, Trouble> {
        let pull = match self.find(repo, &proposal.branch, now).await? {
            Some(pull) if pull.is_open() => pull,
            // Merged as it is: whoever looks at it will see.
            Some(pull) if pull.merged_at.is_some() && pull.head.sha == proposal.commit => {
                return Ok(pull.opened());
            }
            Some(pull) if pull.merged_at.is_none() => {
                match self.patch(repo, pull.number, json!({ "state": "open" }), now).await {
                    Ok(pull) => pull,
                    // GitHub does not open what was pushed anew in the meantime.
                    Err(Trouble::Refused(_)) => self.create(repo, proposal, now).await?,
                    Err(trouble) => return Err(trouble),
                }
            }
            _ => self.create(repo, proposal, now).await?,
        };
        if pull.base.branch != proposal.into {
            self.patch(repo, pull.number, json!({ "base": proposal.into }), now).await?;
        }
        Ok(pull.opened())
    }

    async fn look(
        &self,
        repo: &str,
        branch: &str,
        commit: &str,
        now: Timestamp,
    ) -> Result<Option<RequestState>, Trouble> {
        let Some(pull) = self.find(repo, branch, now).await? else { return Ok(None) };
        let shows_commit = self.shows(repo, &pull, commit, now).await?;
        let mut state = RequestState {
            opened: pull.opened(),
            into: pull.base.branch.clone(),
            shows_commit,
            standing: Standing::Open,
            said: Vec::new(),
            checks: None,
        };
        if pull.merged_at.is_some() {
            let commit = pull.merge_commit_sha.unwrap_or_else(|| pull.head.sha.clone());
            state.standing = Standing::Merged { commit };
        } else if shows_commit {
            state.said = self.said(repo, &pull, commit, now).await?;
            if pull.is_open() {
                state.checks = self.checks(repo, &pull.head.sha, now).await?;
            } else {
                state.standing = Standing::Closed { by: self.closed_by(repo, pull.number, now).await };
            }
        }
        Ok(Some(state))
    }

    async fn close(&self, repo: &str, branch: &str, now: Timestamp) -> Result<String, Trouble> {
        match self.find(repo, branch, now).await? {
            None => Ok("there is none to close".to_owned()),
            Some(pull) if !pull.is_open() => Ok("it is closed already".to_owned()),
            Some(pull) => {
                self.patch(repo, pull.number, json!({ "state": "closed" }), now).await?;
                Ok(format!("closed {}", pull.html_url))
            }
        }
    }

    fn is_signed(&self, message: &HookMessage<'_>, secret: &str) -> bool {
        let given = (message.header)("x-hub-signature-256");
        let given = given.as_deref().and_then(|given| given.strip_prefix("sha256="));
        let given = given.and_then(|given| const_hex::decode(given).ok());
        // In constant time.
        given.is_some_and(|given| mac(secret, message.body).verify_slice(&given).is_ok())
    }

    fn subject(&self, message: &HookMessage<'_>) -> Result<Option<HookSubject>, String> {
        let body = json_of(message.body)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let Some(repo) = text(&body["repository"]["full_name"]) else { return Ok(None) };
        let (branch, number) = match (message.header)("x-github-event").as_deref() {
            Some("pull_request" | "pull_request_review" | "pull_request_review_comment") => {
                let pull = &body["pull_request"];
                (text(&pull["head"]["ref"]), pull["number"].as_u64())
            }
            Some("issue_comment") if !body["issue"]["pull_request"].is_null() => {
                (None, body["issue"]["number"].as_u64())
            }
            Some("check_run") => (text(&body["check_run"]["check_suite"]["head_branch"]), None),
            Some("check_suite") => (text(&body["check_suite"]["head_branch"]), None),
            Some("workflow_run") => (text(&body["workflow_run"]["head_branch"]), None),
            Some("status") => {
                let branches = body["branches"].as_array().into_iter().flatten();
                let mut names = branches.filter_map(|branch| branch["name"].as_str());
                (names.find(|name| name.starts_with("giga/request/")).map(str::to_owned), None)
            }
            _ => return Ok(None),
        };
        Ok((branch.is_some() || number.is_some()).then_some(HookSubject { repo, branch, number }))
    }
}

/// GitHub sends JSON, or a form with JSON in it, as its settings say.
fn json_of(body: &[u8]) -> Result<Value, String> {
    let wrong = |error: serde_json::Error| format!("the body is not JSON: {error}");
    if !body.starts_with(b"payload=") {
        return serde_json::from_slice(body).map_err(wrong);
    }
    let form = std::str::from_utf8(body).map_err(|error| format!("the body is no form: {error}"))?;
    let url =
        Url::parse(&format!("form:?{form}")).map_err(|error| format!("the body is no form: {error}"))?;
    let payload = url.query_pairs().find(|(name, _)| name == "payload");
    let payload = payload.map(|(_, payload)| payload.into_owned()).unwrap_or_default();
    serde_json::from_str(&payload).map_err(wrong)
}
