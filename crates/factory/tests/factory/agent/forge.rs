//! A forge on loopback that speaks the routes of GitHub and of GitLab that the coordinator calls, over one real repository.
//!
//! What it knows of commits it reads from git, and what people do to its requests they do by calling it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_effects::{Config, FORGES, ForgeConfig, HttpEffects, TrackerToken};
use hmac::{Hmac, KeyInit as _, Mac as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::sync::watch;

use super::world::{RealClock, git};

pub(crate) const REPO: &str = "acme/hello";
pub(crate) const TOKEN: &str = "forge-token";
pub(crate) const SECRET: &str = "hook-secret";

#[derive(Debug, Clone)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) branch: String,
    pub(crate) base: String,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) is_open: bool,
    /// The commit that it was merged as.
    pub(crate) merged: Option<String>,
    /// What it showed when it ended.
    head: Option<String>,
    closed_by: Option<String>,
    reviews: Vec<Value>,
    comments: Vec<Value>,
    /// Of which commit, and how it ended.
    checks: Vec<(String, bool)>,
}

#[derive(Default)]
struct Known {
    origin: PathBuf,
    pulls: Vec<Pull>,
    next_id: u64,
}

#[derive(Clone)]
pub(crate) struct Forge {
    url: String,
    known: Arc<Mutex<Known>>,
    /// How many requests were opened; whoever opens one is not answered while `mute` says so.
    created: watch::Sender<usize>,
    mute: watch::Sender<bool>,
}

impl Forge {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let forge = Self {
            url,
            known: Arc::default(),
            created: watch::Sender::new(0),
            mute: watch::Sender::new(false),
        };
        let app = Router::new().fallback(answer).with_state(forge.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        forge
    }

    pub(crate) fn has(&self, origin: &Path) {
        origin.clone_into(&mut self.known.lock().origin);
    }

    /// What a coordinator uses to reach it, as the forge of this kind.
    pub(crate) fn reached_as(&self, kind: &str) -> Arc<HttpEffects> {
        let kind = FORGES.iter().find(|known| known.name == kind).unwrap();
        let api = if kind.name == "gitlab" { format!("{}/api/v4", self.url) } else { self.url.clone() };
        let token = TrackerToken(TOKEN.to_owned());
        let secret = Some(TrackerToken(SECRET.to_owned()));
        let config = ForgeConfig { kind, api, token, secret, repos: Vec::new() };
        let config = Config { forges: vec![config], ..Config::default() };
        Arc::new(HttpEffects::new(config, Arc::new(RealClock)).unwrap())
    }

    pub(crate) fn pulls(&self) -> Vec<Pull> {
        self.known.lock().pulls.clone()
    }

    /// Whoever opens a request from here on is not answered.
    pub(crate) fn mute(&self, mute: bool) {
        self.mute.send_replace(mute);
    }

    pub(crate) async fn until_created(&self, count: usize) {
        self.created.subscribe().wait_for(|created| *created >= count).await.unwrap();
    }

    pub(crate) fn head(&self, number: u64) -> String {
        let known = self.known.lock();
        known.head(known.pull(number))
    }

    /// Somebody merges it, as the forge does: a merge commit in the branch.
    pub(crate) fn merge(&self, number: u64) -> String {
        let mut known = self.known.lock();
        let origin = known.origin.clone();
        let pull = known.pull(number).clone();
        let head = known.head(&pull);
        let tip = git(&origin, &["rev-parse", &pull.base]);
        let tree = git(&origin, &["merge-tree", "--write-tree", &tip, &head]);
        let commit = git(&origin, &["commit-tree", &tree, "-p", &tip, "-p", &head, "-m", "Merged by ana"]);
        git(&origin, &["update-ref", &format!("refs/heads/{}", pull.base), &commit, &tip]);
        let pull = known.pull_mut(number);
        (pull.is_open, pull.merged, pull.head) = (false, Some(commit.clone()), Some(head));
        commit
    }

    pub(crate) fn close(&self, number: u64, by: &str) {
        let mut known = self.known.lock();
        known.end(number, Some(by));
    }

    pub(crate) fn review(&self, number: u64, by: &str, state: &str, body: &str, on_line: Option<&str>) {
        let mut known = self.known.lock();
        known.next_id += 10;
        let (id, head) = (known.next_id, known.head(known.pull(number)));
        let pull = known.pull_mut(number);
        pull.reviews.push(json!({
            "id": id, "user": {"login": by}, "body": body, "state": state, "commit_id": head,
        }));
        if let Some(text) = on_line {
            pull.comments.push(json!({
                "id": id + 1, "user": {"login": by}, "body": text, "path": "greeting.txt", "line": 1,
                "pull_request_review_id": id,
            }));
        }
    }

    pub(crate) fn comment(&self, number: u64, by: &str, body: &str) {
        let mut known = self.known.lock();
        known.next_id += 10;
        let id = known.next_id;
        known.pull_mut(number).comments.push(json!({"id": id, "user": {"login": by}, "body": body}));
    }

    /// Its checks end so, for what it shows now.
    pub(crate) fn checks(&self, number: u64, passed: bool) {
        let mut known = self.known.lock();
        let head = known.head(known.pull(number));
        known.pull_mut(number).checks.push((head, passed));
    }

    /// What GitHub sends when something happens to the request, with a signature made with this secret.
    pub(crate) async fn github_hook(&self, coordinator: &str, number: u64, secret: &str) -> StatusCode {
        let branch = self.known.lock().pull(number).branch.clone();
        let body = json!({
            "action": "whatever",
            "repository": {"full_name": REPO},
            "pull_request": {"number": number, "head": {"ref": branch}},
        });
        let body = body.to_string();
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let signature = format!("sha256={}", const_hex::encode(mac.finalize().into_bytes()));
        let headers = [("x-hub-signature-256", signature.as_str()), ("x-github-event", "pull_request")];
        post(&format!("{coordinator}/api/hooks/github"), &headers, body).await
    }

    pub(crate) async fn gitlab_hook(&self, coordinator: &str, number: u64, secret: &str) -> StatusCode {
        let branch = self.known.lock().pull(number).branch.clone();
        let body = json!({
            "object_kind": "merge_request",
            "project": {"path_with_namespace": REPO},
            "object_attributes": {"iid": number, "source_branch": branch},
        });
        let headers = [("x-gitlab-token", secret), ("x-gitlab-event", "Merge Request Hook")];
        post(&format!("{coordinator}/api/hooks/gitlab"), &headers, body.to_string()).await
    }
}

pub(crate) async fn post(url: &str, headers: &[(&str, &str)], body: String) -> StatusCode {
    let mut request = reqwest::Client::new().post(url).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    StatusCode::from_u16(request.send().await.unwrap().status().as_u16()).unwrap()
}

impl Known {
    fn pull(&self, number: u64) -> &Pull {
        self.pulls.iter().find(|pull| pull.number == number).unwrap()
    }

    fn pull_mut(&mut self, number: u64) -> &mut Pull {
        self.pulls.iter_mut().find(|pull| pull.number == number).unwrap()
    }

    fn branch(&self, branch: &str) -> Option<String> {
        let found =
            git(&self.origin, &["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{branch}")]);
        (!found.is_empty()).then_some(found)
    }

    fn head(&self, pull: &Pull) -> String {
        pull.head.clone().or_else(|| self.branch(&pull.branch)).unwrap_or_default()
    }

    fn end(&mut self, number: u64, by: Option<&str>) {
        let head = self.head(self.pull(number));
        let pull = self.pull_mut(number);
        (pull.is_open, pull.head, pull.closed_by) = (false, Some(head), by.map(str::to_owned));
    }

    fn create(&mut self, branch: &str, base: &str, title: &str, body: &str) -> Result<Pull, &'static str> {
        if self.branch(branch).is_none() || self.branch(base).is_none() {
            return Err("head or base is invalid");
        }
        if self.pulls.iter().any(|pull| pull.is_open && pull.branch == branch) {
            return Err("A pull request already exists");
        }
        let pull = Pull {
            number: self.pulls.len() as u64 + 1,
            branch: branch.to_owned(),
            base: base.to_owned(),
            title: title.to_owned(),
            body: body.to_owned(),
            is_open: true,
            merged: None,
            head: None,
            closed_by: None,
            reviews: Vec::new(),
            comments: Vec::new(),
            checks: Vec::new(),
        };
        self.pulls.push(pull.clone());
        Ok(pull)
    }

    fn reopen(&mut self, number: u64) {
        let pull = self.pull_mut(number);
        (pull.is_open, pull.head, pull.closed_by) = (true, None, None);
    }

    fn commits(&self, pull: &Pull) -> Vec<String> {
        let range = format!("{}..{}", pull.base, self.head(pull));
        git(&self.origin, &["rev-list", &range]).lines().map(str::to_owned).collect()
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

async fn answer(State(forge): State<Forge>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body: Value = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().replace("%2F", "/");
    let creates =
        parts.method == Method::POST && (path.ends_with("/pulls") || path.ends_with("/merge_requests"));
    let answered = match path.strip_prefix("/api/v4/projects/acme%2Fhello/") {
        Some(rest) => forge.gitlab(&parts.method, &parts.headers, rest, &query, &body),
        None => match path.strip_prefix("/repos/acme/hello/") {
            Some(rest) => forge.github(&parts.method, &parts.headers, rest, &query, &body),
            None => not_found(),
        },
    };
    if creates && answered.0 == StatusCode::CREATED {
        forge.created.send_modify(|created| *created += 1);
        // The request is there; whoever asked for it never learns.
        forge.mute.subscribe().wait_for(|mute| !mute).await.unwrap();
    }
    let (status, value) = answered;
    (status, [("content-type", "application/json")], Bytes::from(value.to_string())).into_response()
}

type Answered = (StatusCode, Value);

fn not_found() -> Answered {
    (StatusCode::NOT_FOUND, json!({"message": "Not Found"}))
}

fn ok(value: Value) -> Answered {
    (StatusCode::OK, value)
}

impl Forge {
    fn github(
        &self,
        method: &Method,
        headers: &HeaderMap,
        rest: &str,
        query: &str,
        body: &Value,
    ) -> Answered {
        if headers.get("authorization").is_none_or(|given| given != &format!("Bearer {TOKEN}")) {
            return (StatusCode::UNAUTHORIZED, json!({"message": "Bad credentials"}));
        }
        let mut known = self.known.lock();
        let shown = |known: &Known, pull: &Pull| {
            json!({
                "number": pull.number,
                "html_url": format!("{}/acme/hello/pull/{}", self.url, pull.number),
                "state": if pull.is_open { "open" } else { "closed" },
                "merged_at": pull.merged.as_ref().map(|_| "2026-11-16T00:00:00Z"),
                "merge_commit_sha": pull.merged,
                "head": {"ref": pull.branch, "sha": known.head(pull), "repo": {"full_name": REPO}},
                "base": {"ref": pull.base, "sha": "", "repo": {"full_name": REPO}},
                "title": pull.title, "body": pull.body,
            })
        };
        let parts: Vec<&str> = rest.split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["pulls"]) => {
                let head = query.split('&').find_map(|pair| pair.strip_prefix("head=acme:")).unwrap();
                let of_head = known.pulls.iter().filter(|pull| pull.branch == head);
                ok(of_head.map(|pull| shown(&known, pull)).collect())
            }
            ("POST", ["pulls"]) => {
                let made = known.create(
                    &text(body, "head"),
                    &text(body, "base"),
                    &text(body, "title"),
                    &text(body, "body"),
                );
                match made {
                    Ok(pull) => (StatusCode::CREATED, shown(&known, &pull)),
                    Err(why) => {
                        let body = json!({"message": "Validation Failed", "errors": [{"message": why}]});
                        (StatusCode::UNPROCESSABLE_ENTITY, body)
                    }
                }
            }
            ("PATCH", ["pulls", number]) => {
                let number = number.parse().unwrap();
                match body["state"].as_str() {
                    Some("closed") => known.end(number, Some("giga-bot")),
                    Some("open") => known.reopen(number),
                    _ => {}
                }
                if let Some(base) = body["base"].as_str() {
                    base.clone_into(&mut known.pull_mut(number).base);
                }
                let pull = known.pull(number);
                ok(shown(&known, pull))
            }
            ("GET", ["pulls", number, what]) => {
                let pull = known.pull(number.parse().unwrap());
                match *what {
                    "commits" => ok(known.commits(pull).into_iter().map(|sha| json!({"sha": sha})).collect()),
                    "reviews" => ok(json!(pull.reviews)),
                    "comments" => {
                        ok(pull.comments.iter().filter(|c| !c["path"].is_null()).cloned().collect())
                    }
                    _ => not_found(),
                }
            }
            ("GET", ["issues", number]) => {
                let by = known.pull(number.parse().unwrap()).closed_by.clone();
                ok(json!({"closed_by": by.map(|by| json!({"login": by}))}))
            }
            ("GET", ["issues", number, "comments"]) => {
                let pull = known.pull(number.parse().unwrap());
                ok(pull.comments.iter().filter(|comment| comment["path"].is_null()).cloned().collect())
            }
            ("GET", ["commits", sha, "check-runs"]) => {
                let all = known.pulls.iter().flat_map(|pull| &pull.checks).filter(|(of, _)| of == sha);
                let run = |(_, passed): &(String, bool)| {
                    let conclusion = if *passed { "success" } else { "failure" };
                    json!({"name": "ci", "status": "completed", "conclusion": conclusion, "html_url": "https://ci/1"})
                };
                ok(json!({"check_runs": all.map(run).collect::<Vec<_>>()}))
            }
            ("GET", ["commits", _, "status"]) => ok(json!({"state": "pending", "statuses": []})),
            _ => not_found(),
        }
    }

    fn gitlab(
        &self,
        method: &Method,
        headers: &HeaderMap,
        rest: &str,
        query: &str,
        body: &Value,
    ) -> Answered {
        if headers.get("private-token").is_none_or(|given| given != TOKEN) {
            return (StatusCode::UNAUTHORIZED, json!({"message": "401 Unauthorized"}));
        }
        let mut known = self.known.lock();
        let shown = |known: &Known, pull: &Pull| {
            let head = known.head(pull);
            let checks = pull.checks.iter().rev().find(|(of, _)| *of == head);
            let state = match (&pull.merged, pull.is_open) {
                (Some(_), _) => "merged",
                (None, true) => "opened",
                (None, false) => "closed",
            };
            json!({
                "iid": pull.number,
                "web_url": format!("{}/acme/hello/-/merge_requests/{}", self.url, pull.number),
                "state": state,
                "sha": head,
                "source_branch": pull.branch, "target_branch": pull.base,
                "source_project_id": 1, "target_project_id": 1,
                "merge_commit_sha": pull.merged,
                "closed_by": pull.closed_by.as_ref().map(|by| json!({"username": by})),
                "head_pipeline": checks.map(|(_, passed)| {
                    json!({"status": if *passed { "success" } else { "failed" }, "web_url": "https://ci/1"})
                }),
            })
        };
        let parts: Vec<&str> = rest.split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["merge_requests"]) => {
                let source = query.split('&').find_map(|pair| pair.strip_prefix("source_branch=")).unwrap();
                let of_source = known.pulls.iter().filter(|pull| pull.branch == source);
                ok(of_source.map(|pull| shown(&known, pull)).collect())
            }
            ("POST", ["merge_requests"]) => {
                let made = known.create(
                    &text(body, "source_branch"),
                    &text(body, "target_branch"),
                    &text(body, "title"),
                    &text(body, "description"),
                );
                match made {
                    Ok(pull) => (StatusCode::CREATED, shown(&known, &pull)),
                    Err(why) => (StatusCode::CONFLICT, json!({"message": [why]})),
                }
            }
            ("PUT", ["merge_requests", iid]) => {
                let iid = iid.parse().unwrap();
                match body["state_event"].as_str() {
                    Some("close") => known.end(iid, Some("giga-bot")),
                    Some("reopen") => known.reopen(iid),
                    _ => {}
                }
                let pull = known.pull(iid);
                ok(shown(&known, pull))
            }
            ("GET", ["merge_requests", iid]) => {
                let pull = known.pull(iid.parse().unwrap());
                ok(shown(&known, pull))
            }
            ("GET", ["merge_requests", iid, what]) => {
                let pull = known.pull(iid.parse().unwrap());
                let user = |value: &Value| json!({"username": value["user"]["login"]});
                match *what {
                    "commits" => ok(known.commits(pull).into_iter().map(|sha| json!({"id": sha})).collect()),
                    "notes" => {
                        let note = |c: &Value| json!({"id": c["id"], "body": c["body"], "author": user(c), "system": false});
                        ok(pull.comments.iter().map(note).collect())
                    }
                    "reviewers" => {
                        let state = |review: &Value| match review["state"].as_str() {
                            Some("CHANGES_REQUESTED") => "requested_changes",
                            Some("APPROVED") => "approved",
                            _ => "reviewed",
                        };
                        let one = |review: &Value| json!({"user": user(review), "state": state(review)});
                        ok(pull.reviews.last().map(one).into_iter().collect())
                    }
                    _ => not_found(),
                }
            }
            _ => not_found(),
        }
    }
}
