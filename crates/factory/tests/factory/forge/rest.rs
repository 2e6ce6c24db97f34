//! Over the REST API: whatever is lost on the way, there is one request and one merge.

use giga_factory::forge::{Forge, ForgeError, GitHub, PlainGit, RequestMerge, RestApi};
use giga_factory::workspace::GitUrl;
use serde_json::json;

use super::fake::{Trouble, commit, repo, request, start, start_for};

#[tokio::test]
async fn a_request_is_opened_once() {
    let (hub, github) = start().await;
    let first = github.open_request(&request()).await.unwrap().unwrap();
    assert_eq!((first.number, first.existed), (1, false));
    assert_eq!(first.url, "https://github.com/org/app/pull/1");
    let second = github.open_request(&request()).await.unwrap().unwrap();
    assert_eq!((second.number, second.existed), (1, true));
    let hub = hub.lock();
    assert_eq!(hub.pulls.len(), 1);
    let body = hub.pulls[0]["body"].as_str().unwrap();
    assert!(body.starts_with("What was done.") && body.contains("01J9ZK3V5N8Q4W2E6R7T1Y0ABC:2:pr"));
}

#[tokio::test]
async fn lost_replies_and_server_errors_do_not_open_a_second() {
    for trouble in [
        vec![Trouble::LostReply],
        vec![Trouble::DoneWith(502)],
        vec![Trouble::NotDone(500), Trouble::NotDone(503), Trouble::LostReply],
        vec![Trouble::NotDone(429), Trouble::DoneWith(504)],
    ] {
        let (hub, github) = start().await;
        hub.lock().trouble.extend(trouble.iter().copied());
        let opened = github.open_request(&request()).await.unwrap().unwrap();
        assert_eq!((opened.number, opened.existed), (1, true), "{trouble:?}");
        let hub = hub.lock();
        assert_eq!((hub.pulls.len(), hub.changes), (1, 1), "{trouble:?}");
    }
}

#[tokio::test]
async fn trouble_without_end_is_told_as_such() {
    let (hub, github) = start().await;
    hub.lock().trouble.extend([Trouble::NotDone(503); 10]);
    let error = github.open_request(&request()).await.unwrap_err();
    assert!(matches!(error, ForgeError::Unavailable(_)) && error.is_retryable(), "{error}");
    hub.lock().trouble.clear();
    assert!(!github.open_request(&request()).await.unwrap().unwrap().existed);
}

#[tokio::test]
async fn what_a_person_opened_or_closed_is_not_opened_again() {
    let (hub, github) = start().await;
    hub.lock().pulls.push(json!({
        "number": 1, "html_url": "https://github.com/org/app/pull/1", "state": "closed", "merged": false,
        "body": null, "head": {"ref": request().head, "label": format!("org:{}", request().head)},
    }));
    let opened = github.open_request(&request()).await.unwrap().unwrap();
    assert_eq!((opened.number, opened.existed), (1, true));
    assert_eq!(hub.lock().changes, 0);
}

#[tokio::test]
async fn a_merge_happens_once() {
    for trouble in [vec![], vec![Trouble::LostReply], vec![Trouble::NotDone(500), Trouble::DoneWith(502)]] {
        let (hub, github) = start().await;
        let number = github.open_request(&request()).await.unwrap().unwrap().number;
        hub.lock().trouble.extend(trouble.iter().copied());
        let merged =
            github.merge_request(&repo(), number, &commit(), "Merge\n\nbody").await.unwrap().unwrap();
        let expected = "b".repeat(40).parse().unwrap();
        if trouble.is_empty() {
            assert_eq!(merged, RequestMerge::Merged { commit: expected });
        } else {
            assert_eq!(merged, RequestMerge::AlreadyMerged { commit: expected }, "{trouble:?}");
        }
        assert_eq!(hub.lock().changes, 2, "one opened, one merged");
    }
}

#[tokio::test]
async fn what_cannot_be_merged_says_why() {
    let (_hub, github) = start().await;
    let number = github.open_request(&request()).await.unwrap().unwrap().number;
    let moved = "c".repeat(40).parse().unwrap();
    let answer = github.merge_request(&repo(), number, &moved, "x").await.unwrap().unwrap();
    assert!(matches!(answer, RequestMerge::NotMergeable { detail } if detail.contains("was modified")));
    github.close_request(&repo(), number).await.unwrap();
    github.close_request(&repo(), number).await.expect("closed already is as good");
    let answer = github.merge_request(&repo(), number, &commit(), "x").await.unwrap().unwrap();
    assert!(matches!(answer, RequestMerge::NotMergeable { .. }));
    let missing = github.merge_request(&repo(), 9, &commit(), "x").await.unwrap_err();
    assert!(missing.to_string().contains("Not Found") && !missing.is_retryable(), "{missing}");
}

#[tokio::test]
async fn repositories_of_other_hosts_are_refused() {
    let (_hub, github) = start().await;
    for url in [
        "https://gitlab.com/org/app",
        "file:///srv/app.git",
        "https://github.com/app",
        "https://github.com/a/b/c",
    ] {
        let mut request = request();
        request.repo = GitUrl::parse(url).unwrap();
        let error = github.open_request(&request).await.unwrap_err();
        assert!(matches!(error, ForgeError::NotHere { .. }), "{url}: {error}");
    }
}

#[tokio::test]
async fn nobody_at_the_other_end_is_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let api = RestApi::new("github.com", &base, "secret-token").unwrap();
    let github = GitHub::new(api).with_retry_wait(std::time::Duration::from_millis(1));
    let error = github.open_request(&request()).await.unwrap_err();
    assert!(matches!(error, ForgeError::Unavailable(_)), "{error}");
    assert!(!error.to_string().contains("secret-token"));
}

#[tokio::test]
async fn bad_credentials_are_not_retried() {
    let (_hub, github) = start_for("wrong").await;
    let error = github.open_request(&request()).await.unwrap_err();
    assert!(
        matches!(&error, ForgeError::Unauthorised(message) if message.contains("Bad credentials")),
        "{error}"
    );
}

#[tokio::test]
async fn a_plain_remote_has_nothing_to_open() {
    assert_eq!(PlainGit.open_request(&request()).await.unwrap(), None);
    assert_eq!(PlainGit.merge_request(&repo(), 1, &commit(), "x").await.unwrap(), None);
    PlainGit.close_request(&repo(), 1).await.unwrap();
}
