//! GitHub's issues as a tracker: looked up to become a job, and updated with the job's stage.
//!
//! One comment per job, found by a hidden marker that nobody else can make and edited from then on, so that telling the
//! same thing again never makes a second one; an older status never overwrites a newer. The token leaves this module
//! only as a header.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{EffectOutcome, Stage, Timestamp};
use giga_ports::EffectsError;
use giga_ports::effects::{ItemName, TrackerItem};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::{Answer, Http};
use crate::rest::{Rest, Trouble, parsed};
use crate::tracker::{Status, Tracker, TrackerConfig, TrackerKind, is_owner, is_repo, no_such, settings};

const PER_PAGE: usize = 100;
/// An issue with more comments than this gets no further look.
const PAGES: usize = 50;
/// Over all calls of one echo: whoever sends it has it for longer than that.
const ECHO_WITHIN: Duration = Duration::from_secs(30);

pub(crate) struct GitHub {
    rest: Rest,
    /// Where people see issues.
    web: String,
    close_on_ship: bool,
    /// What the markers of comments are signed with.
    marker_key: [u8; 32],
}

#[derive(Debug, Deserialize)]
struct Comment {
    id: u64,
    #[serde(default)]
    body: Option<String>,
}

/// A comment of ours about the job, and which of its events it tells of.
struct OwnComment {
    id: u64,
    seq: u64,
    body: String,
}

impl GitHub {
    pub(crate) const KIND: TrackerKind = TrackerKind {
        name: "github",
        display_name: "GitHub",
        default_api: "https://api.github.com",
        settings: settings!("github", "GITHUB"),
        open: |config, http| Ok(Box::new(Self::new(config, http)?)),
    };

    fn new(config: &TrackerConfig, http: Http) -> Result<Self, String> {
        let api = config.api.trim_end_matches('/').to_owned();
        let web = web_of(&api)?;
        Ok(Self {
            rest: Rest::new(api, headers(&config.token.0)?, http),
            web,
            close_on_ship: config.close_on_ship,
            marker_key: Sha256::digest(config.token.0.trim()).into(),
        })
    }

    async fn tell(&self, issue: &IssueRef, status: &Status, now: Timestamp) -> Result<&'static str, Trouble> {
        let found = self.issue(issue, now).await?;
        if !self.comment(issue, status, now).await? {
            return Ok("a newer status stands there already");
        }
        self.swap_label(issue, &found, status.to, now).await?;
        if self.close_on_ship && status.to == Stage::Shipped && found.state == "open" {
            let body = json!({ "state": "closed", "state_reason": "completed" });
            self.call(Method::PATCH, &path(issue, ""), Some(body), now).await?;
        }
        Ok("updated")
    }

    async fn issue(&self, issue: &IssueRef, now: Timestamp) -> Result<Issue, Trouble> {
        let found: Issue = parsed(&self.call(Method::GET, &path(issue, ""), None, now).await?)?;
        if found.pull_request.is_some() {
            return Err(Trouble::Gone("it is a pull request, not an issue".to_owned()));
        }
        if found.number != issue.number {
            return Err(Trouble::Gone(format!("the answer was about number {}", found.number)));
        }
        Ok(found)
    }

    /// Writes the one comment of the job. False where it tells of something newer already.
    async fn comment(&self, issue: &IssueRef, status: &Status, now: Timestamp) -> Result<bool, Trouble> {
        let body = text_of(status, &self.marker(&status.job_id, status.seq));
        let Some(first) = self.the_comment(issue, &status.job_id, now).await? else {
            let body = json!({ "body": body });
            self.call(Method::POST, &path(issue, "/comments"), Some(body), now).await?;
            // Somebody else may have written one in the same moment.
            let first = self.the_comment(issue, &status.job_id, now).await?;
            return Ok(first.is_none_or(|first| first.seq <= status.seq));
        };
        if first.seq > status.seq {
            return Ok(false);
        }
        if first.body != body {
            let body = json!({ "body": body });
            self.call(Method::PATCH, &comment_path(issue, first.id), Some(body), now).await?;
        }
        Ok(true)
    }

    /// The one comment of ours about the job. Two senders may have met once: the newest stays.
    async fn the_comment(
        &self,
        issue: &IssueRef,
        job: &str,
        now: Timestamp,
    ) -> Result<Option<OwnComment>, Trouble> {
        let mut own_comments = self.own_comments(issue, job, now).await?.into_iter();
        let first = own_comments.next();
        for extra in own_comments {
            match self.call(Method::DELETE, &comment_path(issue, extra.id), None, now).await {
                // Somebody was faster, or somebody else has copied one of ours.
                Ok(_) | Err(Trouble::Gone(_) | Trouble::Refused(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(first)
    }

    /// Comments of ours about the job, the newest status first, and the oldest of those first.
    async fn own_comments(
        &self,
        issue: &IssueRef,
        job: &str,
        now: Timestamp,
    ) -> Result<Vec<OwnComment>, Trouble> {
        let mut found: Vec<OwnComment> = Vec::new();
        for page in 1..=PAGES {
            let path = path(issue, &format!("/comments?per_page={PER_PAGE}&page={page}"));
            let comments: Vec<Comment> = parsed(&self.call(Method::GET, &path, None, now).await?)?;
            let last = comments.len() < PER_PAGE;
            for comment in comments {
                let body = comment.body.unwrap_or_default().replace("\r\n", "\n");
                if let Some(seq) = marked(&body, job).filter(|seq| body.starts_with(&self.marker(job, *seq)))
                {
                    found.push(OwnComment { id: comment.id, seq, body });
                }
            }
            if last {
                break;
            }
        }
        found.sort_by_key(|comment| (std::cmp::Reverse(comment.seq), comment.id));
        Ok(found)
    }

    /// What a comment about this event of the job begins with. Nobody else can make it; who copies it says nothing new.
    fn marker(&self, job: &str, seq: u64) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.marker_key).expect("a key may have any length");
        mac.update(format!("comment\0{}\0{job}\0{seq}", Self::KIND.name).as_bytes());
        let tag = mac.finalize().into_bytes();
        format!("<!-- giga:job:{job} seq:{seq} tag:{} -->", const_hex::encode(&tag[..16]))
    }

    async fn swap_label(
        &self,
        issue: &IssueRef,
        found: &Issue,
        stage: Stage,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        let wanted = label(stage);
        let ours = |name: &str| Stage::ALL.iter().any(|stage| label(*stage) == name);
        let has = |name: &String| found.labels.iter().any(|label| label.name == *name);
        if !has(&wanted) {
            let body = json!({ "labels": [wanted] });
            self.call(Method::POST, &path(issue, "/labels"), Some(body), now).await?;
        }
        for old in found.labels.iter().filter(|label| ours(&label.name) && label.name != wanted) {
            match self.call(Method::DELETE, &path(issue, &format!("/labels/{}", old.name)), None, now).await {
                // Somebody was faster.
                Ok(_) | Err(Trouble::Gone(_)) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        now: Timestamp,
    ) -> Result<Answer, Trouble> {
        self.rest.call(method, path, body, now).await
    }
}

/// Of every call to GitHub, with the token.
pub(crate) fn headers(token: &str) -> Result<HeaderMap, String> {
    let mut authorization = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        .map_err(|_| "its token has characters that no token has".to_owned())?;
    authorization.set_sensitive(true);
    let mut headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("application/vnd.github+json")),
        (AUTHORIZATION, authorization),
    ]);
    headers.insert("x-github-api-version", HeaderValue::from_static("2022-11-28"));
    Ok(headers)
}

/// Where people see what is at an API's address: `https://github.com` for `https://api.github.com`.
pub(crate) fn web_of(api: &str) -> Result<String, String> {
    let url = Url::parse(api).map_err(|error| format!("`{api}` is no URL: {error}"))?;
    let host = url.host_str().ok_or_else(|| format!("`{api}` has no host"))?;
    let authority = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
    let web = authority.strip_prefix("api.").unwrap_or(&authority);
    Ok(format!("{}://{web}", url.scheme()))
}

#[async_trait]
impl Tracker for GitHub {
    fn named(&self, item: &str) -> Result<ItemName, EffectsError> {
        let issue = IssueRef::read(item, &self.web)?;
        Ok(ItemName { item: issue.to_string(), repo: Some(format!("{}/{}", issue.owner, issue.repo)) })
    }

    fn mark_with(&mut self, key: [u8; 32]) {
        self.marker_key = key;
    }

    async fn item(&self, item: &str, now: Timestamp) -> Result<TrackerItem, EffectsError> {
        let issue = IssueRef::read(item, &self.web)?;
        match self.issue(&issue, now).await {
            Ok(found) => Ok(found.into_item(&issue, &self.web)),
            Err(Trouble::Gone(reason)) => Err(no_such(&Self::KIND, &issue, reason)),
            Err(Trouble::Refused(detail) | Trouble::Later { detail, .. }) => Err(EffectsError::Unreachable(
                format!("{} cannot be asked for {issue}: {detail}", Self::KIND.display_name),
            )),
        }
    }

    async fn echo(&self, item: &str, status: &Status, now: Timestamp) -> EffectOutcome {
        let issue = match IssueRef::read(item, &self.web) {
            Ok(issue) => issue,
            Err(error) => return EffectOutcome::Refused { detail: error.to_string() },
        };
        let sent = tokio::time::timeout(ECHO_WITHIN, self.tell(&issue, status, now)).await;
        match sent
            .unwrap_or_else(|_| Err(Trouble::later(format!("not done within {} s", ECHO_WITHIN.as_secs()))))
        {
            Ok(detail) => EffectOutcome::Delivered { detail: detail.to_owned() },
            Err(Trouble::Gone(detail) | Trouble::Refused(detail)) => EffectOutcome::Refused { detail },
            Err(Trouble::Later { detail, after }) => EffectOutcome::Failed { detail, after },
        }
    }
}

fn path(issue: &IssueRef, rest: &str) -> String {
    format!("/repos/{}/{}/issues/{}{rest}", issue.owner, issue.repo, issue.number)
}

fn comment_path(issue: &IssueRef, id: u64) -> String {
    format!("/repos/{}/{}/issues/comments/{id}", issue.owner, issue.repo)
}

fn label(stage: Stage) -> String {
    format!("giga:{stage}")
}

/// Which event of the job a comment says that it tells of, where it is about this job. The marker stands at its very
/// beginning.
fn marked(body: &str, job: &str) -> Option<u64> {
    body.strip_prefix(&format!("<!-- giga:job:{job} seq:"))?.split_once(" tag:")?.0.parse().ok()
}

fn text_of(status: &Status, marker: &str) -> String {
    let Status { job_id, name, to, at, cause, .. } = status;
    let cause = if cause.is_empty() { String::new() } else { format!("\n\n> {}", one_line(cause)) };
    format!("{marker}\n**{to}** · `{job_id}` {} · {at}{cause}\n", one_line(name))
}

/// Text of others inside a comment: no line breaks, nobody is called by name, nothing is markup.
fn one_line(text: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_control() => " ".to_owned(),
        '@' => "@\u{200b}".to_owned(),
        '#' => "#\u{200b}".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '&' => "&amp;".to_owned(),
        '`' | '*' | '_' | '[' | ']' | '!' | '\\' | '|' | '~' => format!("\\{c}"),
        c => c.to_string(),
    };
    text.chars().take(300).map(plain).collect()
}

/// `owner/repo#12`, in lower case: GitHub does not tell cases apart, so there is one spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IssueRef {
    owner: String,
    repo: String,
    number: u64,
}

impl IssueRef {
    /// `owner/repo#12`, or the address of the issue on `web`, such as `https://github.com`.
    fn read(text: &str, web: &str) -> Result<Self, EffectsError> {
        let wrong = || {
            let given: String = text.chars().take(80).flat_map(char::escape_default).collect();
            let rule = format!("an issue is written as owner/repo#12 or {web}/owner/repo/issues/12");
            EffectsError::Malformed(format!("`{given}` is no issue: {rule}"))
        };
        let on_web = text.strip_prefix(web).and_then(|rest| rest.strip_prefix('/'));
        let (owner, repo, number) = if let Some(path) = on_web {
            let parts: Vec<&str> = path.split('/').collect();
            let [owner, repo, "issues", number] = parts[..] else { return Err(wrong()) };
            (owner, repo, number)
        } else {
            let (repository, number) = text.split_once('#').ok_or_else(wrong)?;
            let (owner, repo) = repository.split_once('/').ok_or_else(wrong)?;
            (owner, repo, number)
        };
        if !is_owner(owner) || !is_repo(repo) || !is_number(number) {
            return Err(wrong());
        }
        Ok(Self {
            owner: owner.to_ascii_lowercase(),
            repo: repo.to_ascii_lowercase(),
            number: number.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for IssueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.owner, self.repo, self.number)
    }
}

fn is_number(text: &str) -> bool {
    (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0')
}

/// What an API says about an issue, as far as it is needed here.
#[derive(Debug, Deserialize)]
struct Issue {
    number: u64,
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    state: String,
    #[serde(default)]
    labels: Vec<Label>,
    /// Pull requests are issues too, for this API.
    #[serde(default)]
    pull_request: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Label {
    name: String,
}

impl Issue {
    fn into_item(self, issue: &IssueRef, web: &str) -> TrackerItem {
        TrackerItem {
            item: issue.to_string(),
            url: format!("{web}/{}/{}/issues/{}", issue.owner, issue.repo, issue.number),
            title: self.title,
            body: self.body.unwrap_or_default(),
            labels: self.labels.into_iter().map(|label| label.name).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "https://github.com";

    #[test]
    fn an_issue_has_one_spelling() {
        for text in ["acme/app#12", "Acme/App#12", "https://github.com/acme/app/issues/12"] {
            assert_eq!(IssueRef::read(text, WEB).unwrap().to_string(), "acme/app#12", "{text}");
        }
        assert!(IssueRef::read("a/.github#1", WEB).is_ok());
    }

    #[test]
    fn nothing_else_is_an_issue() {
        for text in [
            "",
            "acme",
            "acme/app",
            "acme#1",
            "acme/app#",
            "acme/app#0",
            "acme/app#012",
            "acme/app#-1",
            "acme/app#1x",
            "acme/app#1#2",
            "acme/../app#1",
            "acme/..#1",
            "../../user#1",
            "acme/app/x#1",
            "-a/app#1",
            "a b/app#1",
            "acme/app?x=1#1",
            "acme/app%2f#1",
            "acme/app\n#1",
            "http://github.com/acme/app/issues/1",
            "https://github.com/acme/app/pull/1",
            "https://github.com/acme/app/issues/1/",
            "https://github.com/acme/app/issues/1?x",
            "https://github.com.evil.org/acme/app/issues/1",
            "https://evil.org/acme/app/issues/1",
            "acme/app#9999999999999",
            "https://github.com//acme/app/issues/1",
            "https://github.com/acme/app/issues/1#issuecomment-2",
        ] {
            assert!(IssueRef::read(text, WEB).is_err(), "{text:?}");
        }
        assert!(IssueRef::read(&format!("{}/app#1", "a".repeat(40)), WEB).is_err());
        assert!(IssueRef::read(&format!("a/{}#1", "a".repeat(101)), WEB).is_err());
    }

    #[test]
    fn a_comment_is_known_by_its_marker() {
        let status = Status {
            job_id: "01J9".to_owned(),
            name: "fix @ana's <b>`bug`</b>\nplease".to_owned(),
            to: Stage::Building,
            seq: 4,
            at: "2026-11-15T00:00:00Z".to_owned(),
            cause: "started --> by #1".to_owned(),
        };
        let text = text_of(&status, "<!-- giga:job:01J9 seq:4 tag:00 -->");
        assert_eq!(marked(&text, "01J9"), Some(4));
        assert_eq!(marked(&text, "01J8"), None);
        assert_eq!(marked(&format!("> quoted\n{text}"), "01J9"), None, "a quotation is not ours");
        assert!(!text.contains("@ana") && !text.contains("<b>") && text.lines().count() == 4, "{text}");
    }
}
