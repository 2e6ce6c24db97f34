//! Reviews over HTTP: who speaks for whom, what was said, and what was asked for.

use axum::http::Method;
use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn whoever_reviews_goes_by_the_label_of_the_token() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.in_review("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}/review", job.id);
    let ana = world.labelled(Role::Operator, "ana").await;
    let review = |token: &str, body: Value| world.post(&path).token(token).json(body);
    let head = world.feed().await.len();
    let forged = review(&ana, json!({"verdict": "approve", "reviewer": "bo"}));
    forged.refused(403, "forbidden", "reviewer: this token reviews as `ana`; only an admin").await;
    assert_eq!(world.feed().await.len(), head, "nobody approved anything");

    let comment = "the test is missing";
    let body = json!({"verdict": "request_changes", "reviewer": "ana", "comment": comment});
    let back = review(&ana, body).gives(200).await.json();
    assert_eq!(back["stage"], "queued");
    let note = &back["reviews"][0];
    assert_eq!(
        (&note["reviewer"], &note["verdict"], &note["comment"], &note["leaseEpoch"]),
        (&json!("ana"), &json!("request_changes"), &json!(comment), &json!(1))
    );
    let events = world.feed().await;
    let event = events.last().unwrap();
    assert_eq!(event.data["reviewer"], "ana");
    assert!(event.actor.to_string().starts_with("token "), "the token that spoke: {}", event.actor);
}

#[tokio::test]
async fn a_verdict_against_it_needs_words() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.in_review("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}/review", job.id);
    let review = |body: Value| world.post(&path).token(&world.admin).json(body);
    let head = world.feed().await.len();
    for (verdict, told) in [("request_changes", "say what should change"), ("reject", "say why")] {
        for body in [json!({"verdict": verdict}), json!({"verdict": verdict, "comment": " \n"})] {
            let refused = review(body).refused(400, "invalid_request", told).await.json();
            assert_eq!(refused["errors"][0]["field"], "comment", "{refused}");
        }
    }
    assert_eq!(world.feed().await.len(), head, "nothing happened");
    let answer = review(json!({"verdict": "reject", "comment": "not like this"})).gives(200).await.json();
    assert_eq!(answer["stage"], "failed");
}

#[tokio::test]
async fn an_admin_may_speak_for_somebody_and_the_event_keeps_both() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.in_review("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}/review", job.id);
    let body = json!({"verdict": "approve", "reviewer": "bo"});
    world.post(&path).token(&world.admin).json(body).gives(200).await;
    let events = world.feed().await;
    let event = events.last().unwrap();
    assert_eq!((event.data["reviewer"].as_str(), event.actor == crate::world::actor()), (Some("bo"), false));
}

#[tokio::test]
async fn only_an_admin_asks_for_less_than_the_gate_that_holds() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.in_review("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let ask =
        |token: &str, body: Value| world.post(&format!("{path}/review/request")).token(token).json(body);
    let eve = world.labelled(Role::Operator, "eve").await;
    let named = json!({"quorum": 2, "reviewers": ["ana", "bo"]});
    ask(&eve, named.clone()).gives(200).await;
    let head = world.feed().await.len();
    for weaker in
        [json!({"reviewers": ["eve"]}), json!({"quorum": 2, "reviewers": ["ana", "eve"]}), json!({})]
    {
        let refused = ask(&eve, weaker);
        refused.refused(403, "forbidden", "asks for 2 approval(s) from ana, bo; only an admin").await;
    }
    assert_eq!(world.feed().await.len(), head);
    assert_eq!(world.get(&path).token(&eve).gives(200).await.json()["gate"], named);
    let asked = ask(&world.admin, json!({"reviewers": ["eve"]})).gives(200).await.json();
    assert_eq!((&asked["gate"]["reviewers"], &asked["stage"]), (&json!(["eve"]), &json!("review")));
}

#[tokio::test]
async fn a_verdict_about_another_result_is_refused_and_a_repeated_one_answered_again() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let job = world.in_review("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let ana = world.labelled(Role::Operator, "ana").await;
    let review = |epoch: u64| {
        let body = json!({"verdict": "request_changes", "comment": "again", "leaseEpoch": epoch});
        world.post(&format!("{path}/review")).token(&ana).json(body)
    };
    let other = review(2).refused(409, "result_mismatch", "the result of run 2").await.json();
    assert_eq!(other["leaseEpoch"], 1);
    let answer = review(1).gives(200).await.json();
    assert_eq!((&answer["stage"], &answer["reviews"][0]["comment"]), (&json!("queued"), &json!("again")));
    let head = world.feed().await.len();
    assert_eq!(review(1).gives(200).await.json(), answer, "the answer was lost");
    assert_eq!(world.feed().await.len(), head);

    // Long texts go with one job, not with a page of them.
    assert_eq!(world.get(&path).token(&ana).gives(200).await.json()["reviews"], answer["reviews"]);
    let page = world.get("/api/fleet/jobs").token(&ana).gives(200).await.json();
    assert_eq!((&page["jobs"][0]["id"], &page["jobs"][0]["reviews"]), (&answer["id"], &Value::Null));
}

#[tokio::test]
async fn a_report_is_not_refused_for_how_a_check_is_spelled() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let checks = json!([
        {"command": format!("printf '\u{1b}[31m\0x'\n{}", "y".repeat(9_000)), "passed": true, "output": "a\0b"},
    ]);
    let report = json!({"leaseEpoch": 1, "report": {"checks": checks}});
    world.post(&format!("{path}/report")).token(&token).json(report).gives(200).await;
    let runs = world.get(&format!("{path}/runs")).token(&world.admin).gives(200).await.json();
    let kept = runs["runs"][0]["report"]["checks"][0]["command"].as_str().unwrap();
    assert_eq!(kept.chars().count(), giga_domain::limits::REASON_CHARS);
    assert!(kept.starts_with("printf '[31mx'\nyyy"), "{}", &kept[..20]);
}

#[tokio::test]
async fn a_review_can_be_asked_for_while_the_job_runs() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let ask = |body: Value| world.post(&format!("{path}/review/request")).token(&world.admin).json(body);
    for (body, field) in [
        (json!({"quorum": 0}), "quorum"),
        (json!({"quorum": 3, "reviewers": ["ana", "bo"]}), "quorum"),
        (json!({"reviewers": ["ana", "ana"]}), "reviewers[1]"),
        (json!({"reviewers": ["a\nb"]}), "reviewers[0]"),
        (json!({"reviewer": ["ana"]}), "reviewer"),
    ] {
        let refused = ask(body).refused(400, "invalid_request", field).await;
        assert_eq!(refused.json()["errors"][0]["field"], field);
    }
    let stale = ask(json!({})).header("if-match", "\"rev-1\"");
    stale.refused(412, "rev_mismatch", "revision").await;
    let asked = ask(json!({"reviewers": ["ana"]})).gives(200).await.json();
    assert_eq!(asked["gate"], json!({"quorum": 1, "reviewers": ["ana"]}));
    let checks = json!([
        {"command": "cargo test", "passed": true, "wallMs": 1_200, "output": "12 passed"},
        {"command": "cargo fmt", "passed": false, "output": "x".repeat(9_000)},
    ]);
    let report = json!({"leaseEpoch": 1, "report": {"costUsd": 0.4, "tokens": 7, "checks": checks}});
    let reported = world.post(&format!("{path}/report")).token(&token).json(report).gives(200).await.json();
    assert_eq!(reported["stage"], "review", "the manifest asked for none, somebody did");
    let runs = world.get(&format!("{path}/runs")).token(&world.admin).gives(200).await.json();
    let kept = &runs["runs"][0]["report"]["checks"];
    assert_eq!((&kept[0]["output"], &kept[0]["wallMs"]), (&json!("12 passed"), &json!(1_200)));
    assert_eq!(kept[1]["output"].as_str().unwrap().len(), 4_096, "the end of it");
    let ship = world.call(Method::POST, &format!("{path}/actions/ship")).token(&world.admin);
    ship.refused(409, "illegal_transition", "a review has to approve it first").await;
}
