//! Merge requests of GitLab.

use async_trait::async_trait;
use giga_domain::job::OpenRequest;
use giga_domain::{Timestamp, Verdict};
use giga_ports::effects::{Checks, HookMessage, HookSubject, Proposal, RequestState, Said, Standing};
use hmac::Mac as _;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Forge, ForgeConfig, ForgeKind, escaped, mac, newest, words};
use crate::http::Http;
use crate::rest::{Rest, Trouble, parsed};
use crate::tracker::{is_repo, settings};

pub(super) const KIND: ForgeKind = ForgeKind {
    name: "gitlab",
    display_name: "GitLab",
    default_api: "https://gitlab.com/api/v4",
    settings: settings!("gitlab", "GITLAB"),
    secret_file: (
        "gitlab-webhook-secret-file",
        "--gitlab-webhook-secret-file",
        "GIGA_GITLAB_WEBHOOK_SECRET_FILE",
    ),
    shares_tracker: false,
    open: |config, http| Ok(Box::new(GitLab::new(config, http)?)),
};

struct GitLab {
    rest: Rest,
}

#[derive(Debug, Deserialize)]
struct MergeRequest {
    iid: u64,
    web_url: String,
    state: String,
    source_branch: String,
    target_branch: String,
    #[serde(default)]
    sha: Option<String>,
    #[serde(default)]
    merge_commit_sha: Option<String>,
    #[serde(default)]
    squash_commit_sha: Option<String>,
    #[serde(default)]
    closed_by: Option<User>,
    #[serde(default)]
    head_pipeline: Option<Pipeline>,
    #[serde(default)]
    source_project_id: Option<u64>,
    #[serde(default)]
    target_project_id: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Pipeline {
    status: String,
    #[serde(default)]
    web_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct User {
    username: String,
}

#[derive(Debug, Deserialize)]
struct Note {
    id: u64,
    body: String,
    author: User,
    #[serde(default)]
    system: bool,
}

#[derive(Debug, Deserialize)]
struct Reviewer {
    user: User,
    #[serde(default)]
    state: String,
}

impl MergeRequest {
    fn is_open(&self) -> bool {
        matches!(self.state.as_str(), "opened" | "locked")
    }

    fn is_merged(&self) -> bool {
        self.state == "merged"
    }

    fn opened(&self) -> OpenRequest {
        OpenRequest { number: self.iid, url: self.web_url.clone() }
    }

    /// What the branch got: GitLab names it by how it was merged.
    fn merged_as(&self) -> Option<String> {
        [&self.merge_commit_sha, &self.squash_commit_sha, &self.sha].into_iter().flatten().next().cloned()
    }
}

impl GitLab {
    fn new(config: &ForgeConfig, http: Http) -> Result<Self, String> {
        let mut token = HeaderValue::from_str(config.token.0.trim())
            .map_err(|_| "its token has characters that no token has".to_owned())?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert("private-token", token);
        let api = config.api.trim_end_matches('/').to_owned();
        Ok(Self { rest: Rest::new(api, headers, http) })
    }

    /// The one that is open, or the last one.
    async fn find(&self, repo: &str, branch: &str, now: Timestamp) -> Result<Option<MergeRequest>, Trouble> {
        let path = format!("{}?source_branch={}&state=all&per_page=100", all(repo), escaped(branch));
        let all: Vec<MergeRequest> = self.rest.get(&path, now).await?;
        // A fork may have a branch of the same name.
        let is_own = |request: &MergeRequest| {
            request.source_branch == branch && request.source_project_id == request.target_project_id
        };
        Ok(all.into_iter().filter(is_own).max_by_key(|request| (request.is_open(), request.iid)))
    }

    async fn create(&self, repo: &str, proposal: &Proposal, now: Timestamp) -> Result<MergeRequest, Trouble> {
        let Proposal { branch, into, title, body, .. } = proposal;
        let new = json!({
            "title": title, "source_branch": branch, "target_branch": into, "description": body,
        });
        match self.rest.call(Method::POST, &all(repo), Some(new), now).await {
            Ok(answer) => parsed(&answer),
            // Somebody was faster between the look and the call, or the answer to an earlier call was lost.
            Err(Trouble::Refused(why)) => match self.find(repo, branch, now).await? {
                Some(request) if request.is_open() => Ok(request),
                _ => Err(Trouble::Refused(why)),
            },
            Err(trouble) => Err(trouble),
        }
    }

    async fn put(
        &self,
        repo: &str,
        iid: u64,
        change: Value,
        now: Timestamp,
    ) -> Result<MergeRequest, Trouble> {
        parsed(&self.rest.call(Method::PUT, &one(repo, iid), Some(change), now).await?)
    }

    async fn shows(
        &self,
        repo: &str,
        request: &MergeRequest,
        commit: &str,
        now: Timestamp,
    ) -> Result<bool, Trouble> {
        #[derive(Deserialize)]
        struct Commit {
            id: String,
        }
        if request.sha.as_deref() == Some(commit) {
            return Ok(true);
        }
        // Somebody may have added to it.
        let path = format!("{}/commits?per_page=100", one(repo, request.iid));
        let commits: Vec<Commit> = self.rest.get(&path, now).await?;
        Ok(commits.iter().any(|one| one.id == commit))
    }

    async fn said(&self, repo: &str, iid: u64, now: Timestamp) -> Result<Vec<Said>, Trouble> {
        let at = one(repo, iid);
        let path = format!("{at}/notes?sort=desc&order_by=created_at&per_page=100");
        let mut notes: Vec<Note> = self.rest.get(&path, now).await?;
        notes.retain(|note| !note.system);
        notes.sort_by_key(|note| note.id);
        let reviewers: Vec<Reviewer> = match self.rest.get(&format!("{at}/reviewers"), now).await {
            // Older ones have no such thing.
            Err(Trouble::Gone(_) | Trouble::Refused(_)) => Vec::new(),
            found => found?,
        };
        let verdicts = reviewers.into_iter().filter_map(|reviewer| {
            let verdict = match reviewer.state.as_str() {
                "requested_changes" => Verdict::RequestChanges,
                "approved" => Verdict::Approve,
                _ => return None,
            };
            // Whoever asks for changes stays in that state until they are content: new words make it a new request.
            let own: Vec<&Note> =
                notes.iter().filter(|note| note.author.username == reviewer.user.username).collect();
            let last = own.last().map_or(0, |note| note.id);
            let recent = own.iter().rev().take(10).rev().map(|note| note.body.as_str());
            Some(Said {
                id: format!("review:{}:{verdict}:{last}", reviewer.user.username),
                words: words(&recent.collect::<Vec<_>>().join("\n\n")),
                by: reviewer.user.username,
                verdict: Some(verdict),
            })
        });
        let verdicts: Vec<Said> = verdicts.collect();
        let plain = notes.iter().map(|note| Said {
            id: format!("comment:{}", note.id),
            by: note.author.username.clone(),
            verdict: None,
            words: words(&note.body),
        });
        let mut said = newest(plain.collect());
        said.extend(newest(verdicts));
        Ok(said)
    }
}

fn all(repo: &str) -> String {
    format!("/projects/{}/merge_requests", escaped(repo))
}

fn one(repo: &str, iid: u64) -> String {
    format!("{}/{iid}", all(repo))
}

fn checks_of(request: &MergeRequest) -> Option<Checks> {
    let (pipeline, sha) = (request.head_pipeline.as_ref()?, request.sha.as_deref()?);
    match pipeline.status.as_str() {
        "success" => Some(super::checks(sha, &[])),
        "failed" | "canceled" => {
            let more = pipeline.web_url.as_deref().unwrap_or_default();
            Some(super::checks(sha, &[format!("pipeline: {} {more}", pipeline.status)]))
        }
        _ => None,
    }
}

#[async_trait]
impl Forge for GitLab {
    fn repository(&self, path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').collect();
        (segments.len() >= 2 && segments.iter().all(|segment| is_repo(segment))).then(|| path.to_owned())
    }

    async fn open(&self, repo: &str, proposal: &Proposal, now: Timestamp) -> Result<OpenRequest, Trouble> {
        let request = match self.find(repo, &proposal.branch, now).await? {
            Some(request) if request.is_open() => request,
            // Merged as it is: whoever looks at it will see.
            Some(request) if request.is_merged() && request.sha.as_deref() == Some(&proposal.commit) => {
                return Ok(request.opened());
            }
            Some(request) if !request.is_merged() => {
                match self.put(repo, request.iid, json!({ "state_event": "reopen" }), now).await {
                    Ok(request) => request,
                    Err(Trouble::Refused(_)) => self.create(repo, proposal, now).await?,
                    Err(trouble) => return Err(trouble),
                }
            }
            _ => self.create(repo, proposal, now).await?,
        };
        if request.target_branch != proposal.into {
            self.put(repo, request.iid, json!({ "target_branch": proposal.into }), now).await?;
        }
        Ok(request.opened())
    }

    async fn look(
        &self,
        repo: &str,
        branch: &str,
        commit: &str,
        now: Timestamp,
    ) -> Result<Option<RequestState>, Trouble> {
        let Some(found) = self.find(repo, branch, now).await? else { return Ok(None) };
        // Only the one alone says how its pipeline stands.
        let request: MergeRequest = self.rest.get(&one(repo, found.iid), now).await?;
        let shows_commit = self.shows(repo, &request, commit, now).await?;
        let mut state = RequestState {
            opened: request.opened(),
            into: request.target_branch.clone(),
            shows_commit,
            standing: Standing::Open,
            said: Vec::new(),
            checks: None,
        };
        if request.is_merged() {
            let commit = request.merged_as().unwrap_or_else(|| commit.to_owned());
            state.standing = Standing::Merged { commit };
        } else if shows_commit {
            state.said = self.said(repo, request.iid, now).await?;
            if request.is_open() {
                state.checks = checks_of(&request);
            } else {
                state.standing = Standing::Closed { by: request.closed_by.map(|user| user.username) };
            }
        }
        Ok(Some(state))
    }

    async fn close(&self, repo: &str, branch: &str, now: Timestamp) -> Result<String, Trouble> {
        match self.find(repo, branch, now).await? {
            None => Ok("there is none to close".to_owned()),
            Some(request) if !request.is_open() => Ok("it is closed already".to_owned()),
            Some(request) => {
                self.put(repo, request.iid, json!({ "state_event": "close" }), now).await?;
                Ok(format!("closed {}", request.web_url))
            }
        }
    }

    fn is_signed(&self, message: &HookMessage<'_>, secret: &str) -> bool {
        // GitLab sends the secret itself. Compared as codes, in constant time.
        let expected = mac(secret, secret.as_bytes()).finalize().into_bytes();
        let given = (message.header)("x-gitlab-token");
        given.is_some_and(|given| mac(secret, given.as_bytes()).verify_slice(&expected).is_ok())
    }

    fn subject(&self, message: &HookMessage<'_>) -> Result<Option<HookSubject>, String> {
        let body: Value =
            serde_json::from_slice(message.body).map_err(|error| format!("the body is not JSON: {error}"))?;
        let Some(repo) = body["project"]["path_with_namespace"].as_str() else { return Ok(None) };
        let about = match (message.header)("x-gitlab-event").as_deref() {
            Some("Merge Request Hook") => (&body["object_attributes"], "source_branch"),
            Some("Note Hook") => (&body["merge_request"], "source_branch"),
            Some("Pipeline Hook") => (&body["object_attributes"], "ref"),
            _ => return Ok(None),
        };
        let branch = about.0[about.1].as_str().map(str::to_owned);
        let number = about.0["iid"].as_u64().filter(|_| about.1 == "source_branch");
        let subject = HookSubject { repo: repo.to_owned(), branch, number };
        Ok((subject.branch.is_some() || subject.number.is_some()).then_some(subject))
    }
}
