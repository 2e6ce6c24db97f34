//! One job through the API: its tags, its life, lists and cursors.

use axum::http::Method;
use giga_domain::FactoryId;
use serde_json::json;

use crate::world::World;

const NOBODY: &str = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC";

#[tokio::test]
async fn a_job_goes_from_submit_to_shipped() {
    let world = World::start().await;
    let factory = world.factory("f-1", &[]).await;
    let submitted = world.post("/api/fleet/jobs").token(&world.admin).markdown("---\nname: a\n---\nDo.\n");
    let id = submitted.gives(201).await.json()["job"]["id"].as_str().unwrap().to_owned();
    let job = format!("/api/fleet/jobs/{id}");
    let claim = || {
        world.post("/api/fleet/claim").token(&factory).json(json!({"factoryId": "f-1", "requestId": "r-1"}))
    };
    let claimed = claim().gives(200).await.json();
    assert_eq!((&claimed["job"]["stage"], &claimed["leaseEpoch"]), (&json!("assigned"), &json!(1)));
    assert_eq!(claimed["job"]["bodyMd"], "Do.\n");
    assert_eq!(claim().gives(200).await.json(), claimed, "a repeated request returns the same grant");

    let patch = |body| world.call(Method::PATCH, &job).token(&factory).json(body);
    let both = json!({"leaseEpoch": 1, "stage": "building", "checkpoint": {"wipRef": "refs/wip/1"}});
    let started = patch(both).gives(200).await;
    assert_eq!((started.header("etag"), &started.json()["stage"]), ("\"rev-3\"", &json!("building")));
    assert_eq!(started.json()["checkpoint"]["wipRef"], "refs/wip/1");
    let renewed = world.post(&format!("{job}/lease/renew")).token(&factory).json(json!({"leaseEpoch": 1}));
    assert_eq!(renewed.gives(200).await.json()["directives"], json!([]));
    let report = json!({"leaseEpoch": 1, "report": {"summary": "done", "costUsd": 0.25, "tokens": 12}});
    let reported = world.post(&format!("{job}/report")).token(&factory).json(report).gives(200).await.json();
    assert_eq!(reported["stage"], "testing");

    let runs = world.get(&format!("{job}/runs")).token(&world.admin).gives(200).await.json();
    assert_eq!(
        (&runs["runs"][0]["outcome"], &runs["runs"][0]["report"]["costUsd"]),
        (&json!("succeeded"), &json!(0.25))
    );
    let shipped = world.post(&format!("{job}/actions/ship")).token(&world.admin).gives(200).await.json();
    assert_eq!(shipped["stage"], "shipped");
    let again = world.post(&format!("{job}/actions/requeue")).token(&world.admin);
    let refused = again.refused(409, "illegal_transition", "final").await;
    assert_eq!(refused.json()["stage"], "shipped");

    let events = world.get(&format!("{job}/events?limit=3")).token(&world.admin).gives(200).await.json();
    let seqs: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!((seqs, &events["nextAfter"]), (vec![1, 2, 3], &json!(3)));
    let rest = world.get(&format!("{job}/events?after=3")).token(&world.admin).gives(200).await.json();
    assert_eq!((&rest["events"][0]["seq"], rest.get("nextAfter")), (&json!(4), None));
}

#[tokio::test]
async fn a_factory_sees_what_it_holds_and_nothing_else() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let held = world.building("demo", "f-1", "held").await;
    let queued = world.submit("demo", "name: queued").await;
    world.get(&format!("/api/fleet/jobs/{}", held.id)).token(&token).gives(200).await;
    let other = world.get(&format!("/api/fleet/jobs/{}", queued.id)).token(&token);
    other.refused(404, "not_found", &queued.id.to_string()).await;
}

#[tokio::test]
async fn a_factory_is_told_where_jobs_of_others_are_and_no_more() {
    let world = World::start().await;
    let token = world.factory("f-1", &["alpha"]).await;
    world.factory("f-2", &["alpha"]).await;
    let held = world.building("alpha", "f-2", "held").await.id;
    let over = world.submit("alpha", "name: over\n").await.id;
    let cancel = format!("/api/fleet/jobs/{over}/actions/cancel");
    let ended = world.post(&cancel).token(&world.admin).gives(200).await.json()["updatedAt"].clone();
    let foreign = world.submit("beta", "name: foreign\n").await.id;
    let ask = |ids: &str| world.get(&format!("/api/fleet/stages?id={ids}")).token(&token);

    let answer = ask(&format!("{over},{foreign},{NOBODY},{held}")).gives(200).await.json();
    let expected = json!({
        "jobs": [
            {"id": held.to_string(), "stage": "building"},
            {"id": over.to_string(), "stage": "cancelled", "endedAt": ended},
        ],
        "branchRetentionHours": 336,
    });
    assert_eq!(answer, expected);
    world.get(&format!("/api/fleet/jobs/{held}")).token(&token).refused(404, "not_found", "").await;
    world.get("/api/fleet/stages").token(&token).refused(400, "invalid_request", "id").await;
    ask("x").refused(400, "invalid_request", "id").await;
    ask(&vec![NOBODY; 101].join(",")).refused(400, "invalid_request", "at most 100").await;
}

#[tokio::test]
async fn a_release_uses_no_attempt_and_a_failure_does() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let job = world.building("demo", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}/lease/release", job.id);
    let body = json!({"leaseEpoch": job.epoch.0, "checkpoint": {"commit": "abc"}});
    let released = world.post(&path).token(&token).json(body).gives(200).await.json();
    assert_eq!(
        (&released["stage"], &released["attempts"], &released["checkpoint"]["commit"]),
        (&json!("queued"), &json!(0), &json!("abc"))
    );
    let job = world.claim("f-1", "again").await;
    let body = json!({"jobId": job.id.to_string(), "leaseEpoch": job.epoch.0, "reason": "crash", "retryable": false, "detail": "boom"});
    let failed = world.post("/api/fleet/fail").token(&token).json(body.clone()).gives(200).await;
    assert_eq!((&failed.json()["stage"], &failed.json()["attempts"]), (&json!("failed"), &json!(1)));
    assert_eq!(failed.json()["failure"], json!({"reason": "crash", "detail": "boom"}));
    // A lost reply: the same word again is answered the same way.
    let again = world.post("/api/fleet/fail").token(&token).json(body).gives(200).await;
    assert_eq!(again.json(), failed.json());
}

#[tokio::test]
async fn tags_guard_reads_and_actions() {
    let world = World::start().await;
    let job = world.submit("demo", "name: a").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    let get = |tag: &str| world.get(&path).token(&world.admin).header("if-none-match", tag);
    assert_eq!(world.get(&path).token(&world.admin).gives(200).await.header("etag"), "\"rev-1\"");
    let unchanged = get("\"rev-1\"").gives(304).await;
    assert_eq!((unchanged.header("etag"), unchanged.text.as_str()), ("\"rev-1\"", ""));
    get("\"rev-0\", W/\"rev-1\"").gives(304).await;
    get("\"rev-0\"").gives(200).await;
    get("rev-1").refused(400, "invalid_request", "if-none-match").await;

    let cancel =
        |tag: &str| world.post(&format!("{path}/actions/cancel")).token(&world.admin).header("if-match", tag);
    cancel("\"rev-9\"").refused(412, "rev_mismatch", "revision 1 by now, not 9").await;
    for bad in ["rev-1", "\"1\"", "W/\"rev-1\"", "\"rev-1\",\"rev-2\""] {
        cancel(bad).refused(400, "invalid_request", "if-match").await;
    }
    assert_eq!(world.job(job.id).await, job, "refusals change nothing");
    let cancelled = cancel("\"rev-1\"").gives(200).await;
    assert_eq!((cancelled.header("etag"), &cancelled.json()["stage"]), ("\"rev-2\"", &json!("cancelled")));
    cancel("*").gives(200).await;
}

#[tokio::test]
async fn a_review_counts_reviewers() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    world.submit("demo", "name: a\nreview: {quorum: 2, reviewers: [ana, bo]}").await;
    let job = world.claim("f-1", "r").await;
    let path = format!("/api/fleet/jobs/{}", job.id);
    world
        .call(Method::PATCH, &path)
        .token(&token)
        .json(json!({"leaseEpoch": 1, "stage": "building"}))
        .gives(200)
        .await;
    world
        .call(Method::PATCH, &path)
        .token(&token)
        .json(json!({"leaseEpoch": 1, "stage": "review"}))
        .gives(200)
        .await;
    let review = |body| world.post(&format!("{path}/review")).token(&world.admin).json(body);
    review(json!({"verdict": "approve", "reviewer": "eve"})).refused(403, "forbidden", "ana, bo").await;
    // Without a name it is the token's label that speaks.
    review(json!({"verdict": "approve"})).refused(403, "forbidden", "local admin").await;
    review(json!({"verdict": "aprove", "reviewer": "ana"}))
        .refused(400, "invalid_request", "did you mean `approve`?")
        .await;
    let once = review(json!({"verdict": "approve", "reviewer": "ana"})).gives(200).await.json();
    assert_eq!((&once["stage"], &once["approvals"]), (&json!("review"), &json!(["ana"])));
    let stale = review(json!({"verdict": "approve", "reviewer": "bo"})).header("if-match", "\"rev-1\"");
    stale.refused(412, "rev_mismatch", "revision").await;
    let twice =
        review(json!({"verdict": "approve", "reviewer": "bo", "comment": "fine"})).gives(200).await.json();
    assert_eq!(twice["stage"], "testing");
}

#[tokio::test]
async fn lists_filter_and_page_without_gaps() {
    let world = World::start().await;
    world.factory("f-1", &[]).await;
    let mut made: Vec<String> = Vec::new();
    for n in 0..23 {
        world.clock.advance(std::time::Duration::from_millis(1));
        let priority = if n % 2 == 0 { "high" } else { "low" };
        let job =
            world.submit("demo", &format!("name: job-{n}\npriority: {priority}\nrepo: r{}", n % 3)).await;
        made.push(job.id.to_string());
    }
    made.reverse();
    let list = |query: &str| world.get(&format!("/api/fleet/jobs?{query}")).token(&world.admin);
    let ids = |page: &serde_json::Value| -> Vec<String> {
        page["jobs"].as_array().unwrap().iter().map(|j| j["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut seen = Vec::new();
    let mut query = "limit=5".to_owned();
    loop {
        let page = list(&query).gives(200).await.json();
        seen.extend(ids(&page));
        // A job that comes in between does not move the pages.
        world.clock.advance(std::time::Duration::from_millis(1));
        world.submit("demo", "name: later").await;
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("limit=5&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, made);

    assert_eq!(ids(&list("priority=high&limit=500").gives(200).await.json()).len(), 12);
    assert_eq!(ids(&list("priority=high,low&repo=r0").gives(200).await.json()).len(), 8);
    assert_eq!(ids(&list("name=job-1&stage=queued,blocked").gives(200).await.json()).len(), 11);
    assert_eq!(ids(&list("stage=failed").gives(200).await.json()).len(), 0);
    assert_eq!(ids(&list("name=JOB-1&stage=queued").gives(200).await.json()).len(), 11);
    let picked = format!("id={},{},{NOBODY},{}", made[4], made[0], made[4]);
    assert_eq!(ids(&list(&picked).gives(200).await.json()), [made[0].as_str(), made[4].as_str()]);
    assert_eq!(ids(&list(&format!("{picked}&limit=1")).gives(200).await.json()), [made[0].as_str()]);
    assert_eq!(ids(&list(&format!("{picked}&stage=failed")).gives(200).await.json()).len(), 0);
    let held = world.claim("f-1", "r").await;
    let factory: FactoryId = "f-1".parse().unwrap();
    assert_eq!(ids(&list(&format!("factory={factory}")).gives(200).await.json()), [held.id.to_string()]);
}

#[tokio::test]
async fn ids_of_another_product_are_not_found() {
    let world = World::start().await;
    let (ours, theirs) = (world.submit("alpha", "name: a").await, world.submit("beta", "name: b").await);
    let viewer = world.token(giga_domain::token::Role::Viewer, &["alpha"]).await;
    let both = format!("/api/fleet/jobs?id={},{}", ours.id, theirs.id);
    let page = world.get(&both).token(&viewer).gives(200).await.json();
    let jobs = page["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), &jobs[0]["id"]), (1, &json!(ours.id)));
    assert_eq!(
        world.get(&both).token(&world.admin).gives(200).await.json()["jobs"].as_array().unwrap().len(),
        2
    );
}
