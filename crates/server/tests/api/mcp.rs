//! The API as tools: exactly the caller's rights, product and sight; hostile arguments change nothing.

use axum::http::Method;
use giga_coordinator::NewArtifact;
use giga_domain::token::Role;
use giga_domain::{Actor, Holder, HolderAction, Job, RunReport};
use giga_ports::blobs::in_one_piece;
use serde_json::{Value, json};

use crate::client::Call;
use crate::world::World;

/// What one call of a tool gave.
struct Gave {
    is_error: bool,
    texts: Vec<String>,
}

impl Gave {
    #[track_caller]
    fn facts(&self) -> Value {
        assert!(!self.is_error, "{:?}", self.texts);
        serde_json::from_str(&self.texts[0]).unwrap()
    }

    #[track_caller]
    fn refusal(&self, needle: &str) {
        assert!(self.is_error, "{:?}", self.texts);
        assert!(self.texts[0].contains(needle), "no `{needle}` in {}", self.texts[0]);
    }
}

fn call(world: &World, token: &str, message: Value) -> Call {
    world.post("/mcp").token(token).json(message)
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

async fn tools(world: &World, token: &str) -> Vec<Value> {
    let listed = call(world, token, request("tools/list", json!({}))).gives(200).await.json();
    listed["result"]["tools"].as_array().unwrap().clone()
}

async fn tool(world: &World, token: &str, name: &str, arguments: Value) -> Gave {
    let params = json!({"name": name, "arguments": arguments});
    let reply = call(world, token, request("tools/call", params)).gives(200).await;
    assert_eq!(reply.header("content-type"), "application/json");
    let answer = reply.json();
    assert_eq!(answer["id"], 7, "{answer}");
    let result = &answer["result"];
    let texts = result["content"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    Gave {
        is_error: result["isError"] == true,
        texts: texts.map(|block| block["text"].as_str().unwrap().to_owned()).collect(),
    }
}

/// With a diff, and waiting for a review.
async fn reviewed(world: &World, product: &str, factory: &str, diff: &str) -> Job {
    world.submit(product, "name: reviewed\nrepo: hello\nreview: {quorum: 1}").await;
    let job = world.claim(factory, "reviewed").await;
    let job = world.hold(&job, vec![HolderAction::Start]).await;
    let holder = Holder { factory: factory.parse().unwrap(), epoch: job.epoch };
    let (name, media_type) = ("changes.diff".parse().unwrap(), "text/x-diff".to_owned());
    let actor = Actor::Factory(holder.factory.clone());
    let new = NewArtifact { job: job.id, holder, actor, name, media_type };
    world.coordinator.put_artifact(new, in_one_piece(diff.to_owned())).await.unwrap();
    let report = RunReport {
        branch: Some(format!("giga/job/{}/1", job.id)),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    };
    world.hold(&job, vec![HolderAction::Report(report)]).await
}

#[tokio::test]
async fn a_job_goes_from_submit_to_review() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let token = world.token(Role::Operator, &["alpha"]).await;
    let began = request(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let answer = call(&world, &token, began).gives(200).await;
    assert_eq!(answer.header("mcp-session-id"), "", "nothing is kept between two calls");
    let answer = answer.json();
    assert_eq!(answer["result"]["serverInfo"]["name"], "giga");
    assert!(answer["result"]["instructions"].as_str().unwrap().contains("plan_job"));
    let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    call(&world, &token, noted).gives(202).await;

    let job = json!({"manifest": {"name": "fix", "priority": "high"}, "prompt": "Fix it."});
    let plan = tool(&world, &token, "plan_job", job.clone()).await.facts();
    assert_eq!(plan["routable"], true, "{plan}");
    let mut keyed = job.clone();
    keyed["idempotencyKey"] = json!("k-1");
    let made = tool(&world, &token, "submit_job", keyed.clone()).await.facts();
    let id = made["job"]["id"].as_str().unwrap().to_owned();
    assert_eq!((&made["job"]["stage"], &made["job"]["productId"]), (&json!("queued"), &json!("alpha")));
    let again = tool(&world, &token, "submit_job", keyed).await.facts();
    assert_eq!(again["job"]["id"], json!(id), "the key makes it the same job");
    let by_text = json!({"markdown": "---\nname: by-text\n---\nSay hello."});
    tool(&world, &token, "submit_job", by_text).await.facts();

    let page = tool(&world, &token, "list_jobs", json!({"limit": 1})).await.facts();
    assert_eq!((page["jobs"].as_array().unwrap().len(), &page["jobs"][0]["name"]), (1, &json!("by-text")));
    let next = json!({"limit": 1, "cursor": page["nextCursor"]});
    assert_eq!(tool(&world, &token, "list_jobs", next).await.facts()["jobs"][0]["id"], json!(id));
    let narrowed = json!({"stages": ["queued"], "priorities": ["high"], "name": "FIX"});
    assert_eq!(
        tool(&world, &token, "list_jobs", narrowed).await.facts()["jobs"].as_array().unwrap().len(),
        1
    );
    let shown = tool(&world, &token, "show_job", json!({"jobId": id})).await.facts();
    assert_eq!((&shown["job"]["bodyMd"], &shown["runs"]), (&json!("Fix it."), &json!([])));
    let why = tool(&world, &token, "explain_job", json!({"jobId": id})).await.facts();
    assert!(!why["summary"].as_str().unwrap().is_empty());
    let cancelled =
        tool(&world, &token, "cancel_job", json!({"jobId": id, "reason": "no need"})).await.facts();
    assert_eq!(cancelled["stage"], "cancelled");
    let history = tool(&world, &token, "job_history", json!({"jobId": id})).await.facts();
    let last = history["events"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["to"], &last["from"]), (&json!("cancelled"), &json!("queued")));
    tool(&world, &token, "requeue_job", json!({"jobId": id})).await.refusal("illegal_transition");
}

#[tokio::test]
async fn a_verdict_is_about_the_result_that_was_read() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let token = world.token(Role::Operator, &["alpha"]).await;
    let diff = format!("+{}é{}", "a".repeat(98), "b".repeat(100));
    let job = reviewed(&world, "alpha", "f-1", &diff).await.id.to_string();
    let read = tool(&world, &token, "read_diff", json!({"jobId": job, "length": 100})).await;
    let facts = read.facts();
    assert_eq!(read.texts[1], format!("+{}", "a".repeat(98)), "cut between characters");
    assert_eq!((&facts["commit"], &facts["leaseEpoch"]), (&json!("c0ffee"), &json!(1)));
    assert_eq!((&facts["size"], &facts["nextOffset"]), (&json!(201), &json!(99)));
    let rest = tool(&world, &token, "read_diff", json!({"jobId": job, "offset": 99})).await;
    assert_eq!(rest.texts[1], format!("é{}", "b".repeat(100)));

    let review = |commit: &str, verdict: &str| json!({"jobId": job, "verdict": verdict, "leaseEpoch": 1, "commit": commit});
    tool(&world, &token, "review_job", review("beef", "approve")).await.refusal("result_mismatch");
    tool(&world, &token, "review_job", review("c0ffee", "request_changes")).await.refusal("comment");
    let nameless = json!({"jobId": job, "verdict": "approve"});
    tool(&world, &token, "review_job", nameless).await.refusal("missing field `leaseEpoch`");
    let approved = tool(&world, &token, "review_job", review("c0ffee", "approve")).await.facts();
    assert_eq!(approved["stage"], "testing");
    let stale = json!({"jobId": job, "rev": 1});
    tool(&world, &token, "ship_job", stale).await.refusal("rev_mismatch");
    assert_eq!(tool(&world, &token, "ship_job", json!({"jobId": job})).await.facts()["stage"], "shipping");
}

#[tokio::test]
async fn logs_and_files_come_in_pieces() {
    let world = World::start().await;
    let factory = world.factory("f-1", &["alpha"]).await;
    let token = world.token(Role::Viewer, &["alpha"]).await;
    let job = world.building("alpha", "f-1", "talks").await;
    let log: String = (0..20_000).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    let append = format!("/api/fleet/jobs/{}/logs?leaseEpoch=1&offset=0", job.id);
    world.post(&append).token(&factory).body("text/plain", log.clone()).gives(200).await;
    let end = tool(&world, &token, "read_log", json!({"jobId": job.id.to_string(), "length": 100})).await;
    assert_eq!(end.texts[1], log[log.len() - 100..]);
    assert_eq!(end.facts()["total"], json!(log.len()));
    let (mut read, mut offset) = (String::new(), json!(0));
    while read.len() < log.len() {
        let piece = json!({"jobId": job.id.to_string(), "offset": offset, "length": 32_768});
        let piece = tool(&world, &token, "read_log", piece).await;
        assert!(!piece.texts[1].is_empty());
        read.push_str(&piece.texts[1]);
        offset = piece.facts()["nextOffset"].clone();
    }
    assert_eq!(read, log, "the pieces are the whole");
    let diff = tool(&world, &token, "read_diff", json!({"jobId": job.id.to_string()})).await;
    diff.refusal("has no result yet: it is at stage `building`");
    let put = format!("/api/fleet/jobs/{}/artifacts?leaseEpoch=1&name=a.bin", job.id);
    world.post(&put).token(&factory).body("application/octet-stream", vec![0xff; 40]).gives(201).await;
    let files = tool(&world, &token, "list_artifacts", json!({"jobId": job.id.to_string()})).await.facts();
    let file = files["artifacts"][0]["id"].clone();
    let bytes = tool(&world, &token, "read_artifact", json!({"artifactId": file})).await;
    assert_eq!(
        (bytes.facts()["complete"].clone(), bytes.texts[1].as_str()),
        (json!(true), &*"\u{fffd}".repeat(40))
    );
    tool(&world, &token, "read_artifact", json!({"artifactId": file, "offset": 41}))
        .await
        .refusal("range_not_satisfiable");
}

/// The tool that needs it, with arguments that would be taken.
fn needing(job: &str) -> Vec<(&'static str, Role, Value)> {
    vec![
        ("list_jobs", Role::Viewer, json!({})),
        ("plan_job", Role::Viewer, json!({"manifest": {"name": "a"}})),
        ("show_job", Role::Viewer, json!({"jobId": job})),
        ("explain_job", Role::Viewer, json!({"jobId": job})),
        ("job_history", Role::Viewer, json!({"jobId": job})),
        ("read_log", Role::Viewer, json!({"jobId": job})),
        ("read_diff", Role::Viewer, json!({"jobId": job})),
        ("list_artifacts", Role::Viewer, json!({"jobId": job})),
        ("list_questions", Role::Viewer, json!({"jobId": job})),
        ("answer_question", Role::Submitter, json!({"jobId": job, "answer": "yes"})),
        ("say_to_job", Role::Submitter, json!({"jobId": job, "text": "Hello."})),
        ("submit_job", Role::Submitter, json!({"manifest": {"name": "a"}})),
        ("review_job", Role::Operator, json!({"jobId": job, "verdict": "approve", "leaseEpoch": 1})),
        ("ship_job", Role::Operator, json!({"jobId": job})),
        ("requeue_job", Role::Operator, json!({"jobId": job})),
        ("cancel_job", Role::Operator, json!({"jobId": job})),
    ]
}

#[tokio::test]
async fn a_tool_may_what_the_token_may() {
    let world = World::start().await;
    world.factory("f-1", &["alpha", "beta"]).await;
    let own = reviewed(&world, "alpha", "f-1", "+a").await.id.to_string();
    let other = reviewed(&world, "beta", "f-1", "+b").await.id.to_string();
    let known: Vec<String> = tools(&world, &world.admin)
        .await
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    for name in &known {
        let is_tried = needing("").iter().any(|(tried, ..)| tried == name);
        assert!(is_tried || name == "read_artifact", "say above which role {name} needs");
    }
    for role in [Role::Viewer, Role::Submitter, Role::Operator, Role::Admin] {
        let token = world.token(role, &["alpha"]).await;
        for (name, least, arguments) in needing(&own) {
            let head = world.feed().await.len();
            let gave = tool(&world, &token, name, arguments).await;
            let forbidden = gave.texts[0].contains("(forbidden)");
            assert_eq!(forbidden, role < least, "{name} as {role:?}: {:?}", gave.texts);
            if role < least {
                assert!(gave.is_error);
                assert_eq!(world.feed().await.len(), head, "{name} was refused and yet did something");
            }
        }
        // Another product's job does not exist.
        for (name, least, arguments) in needing(&other) {
            if role < least || !arguments.to_string().contains(&other) {
                continue;
            }
            let head = world.feed().await.len();
            tool(&world, &token, name, arguments).await.refusal(&format!("there is no job {other}"));
            assert_eq!(world.feed().await.len(), head);
        }
    }
    let token = world.token(Role::Submitter, &["alpha"]).await;
    let foreign = json!({"manifest": {"name": "a", "product": "beta"}});
    tool(&world, &token, "submit_job", foreign).await.refusal("this token is for alpha, not for beta");
    let listed = tool(&world, &token, "list_jobs", json!({})).await.facts();
    assert!(listed["jobs"].as_array().unwrap().iter().all(|job| job["productId"] == "alpha"), "{listed}");
    // The header narrows tools as it narrows calls.
    let both = world.token(Role::Viewer, &["alpha", "beta"]).await;
    let list = request("tools/call", json!({"name": "list_jobs", "arguments": {}}));
    let narrowed = call(&world, &both, list).header("x-product-id", "beta").gives(200).await.text;
    assert!(narrowed.contains(&other) && !narrowed.contains(&own), "{narrowed}");
}

#[tokio::test]
async fn who_has_no_token_for_it_gets_no_tools() {
    let world = World::start().await;
    let factory = world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "a").await;
    let inside = world.coordinator.job_token(job.id, job.epoch).await.unwrap().reveal().to_owned();
    let list = request("tools/list", json!({}));
    world.post("/mcp").json(list.clone()).refused(401, "unauthenticated", "needs a token").await;
    call(&world, &factory, list.clone()).refused(403, "forbidden", "the role viewer").await;
    call(&world, &inside, list.clone()).refused(403, "forbidden", "the token of job").await;
    for (method, status) in [(Method::GET, 405), (Method::DELETE, 405)] {
        world.call(method, "/mcp").token(&world.admin).gives(status).await;
    }
    // A page of another site; one of the coordinator's own may.
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let call = call(&world, &world.admin, list.clone()).header("origin", origin);
        call.refused(403, "forbidden", "Origin").await;
    }
    call(&world, &world.admin, list).header("origin", &world.url.clone()).gives(200).await;
}

#[tokio::test]
async fn hostile_arguments_change_nothing() {
    let world = World::start().await;
    world.factory("f-1", &["alpha"]).await;
    let huge = "x".repeat(100_000);
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let wrong = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(true),
        json!(""),
        json!("../../tokens"),
        json!(".."),
        json!("01J9ZK3V5N8Q4W2E6R7T1Y0ABC/actions/cancel"),
        json!("a\u{0}b\r\nx-product-id: beta"),
        json!("\u{202e}"),
        json!(huge),
        json!([]),
        json!({"$ref": "#"}),
        deep,
    ];
    for described in tools(&world, &world.admin).await {
        let name = described["name"].as_str().unwrap();
        let job = reviewed(&world, "alpha", "f-1", "+a").await.id.to_string();
        let reads = described["annotations"]["readOnlyHint"] == true;
        for (property, schema) in described["inputSchema"]["properties"].as_object().unwrap() {
            for value in &wrong {
                // Everything else is as it should be, so that this alone decides.
                let good = needing(&job).into_iter().find(|(tool, ..)| *tool == name);
                let mut arguments = good.map_or(json!({}), |(.., arguments)| arguments);
                arguments[property] = value.clone();
                let head = world.feed().await.len();
                let gave = tool(&world, &world.admin, name, arguments).await;
                let changed = world.feed().await.len() != head;
                assert!(
                    !changed || !(gave.is_error || reads),
                    "{name} changed something: {property}: {value}"
                );
                // A reason or a key may be any text, and what may be left out may be nothing.
                let free_text =
                    value.is_string() && schema.get("pattern").is_none() && schema.get("enum").is_none();
                let flag = value == &json!(true) && schema["type"] == "boolean";
                assert!(!changed || value.is_null() || free_text || flag, "{name} took {property}: {value}");
                assert!(gave.texts.iter().all(|text| text.chars().count() < 42_000), "{name} is bounded");
            }
        }
        let head = world.feed().await.len();
        let unknown = tool(&world, &world.admin, name, json!({"nonsense": 1})).await;
        unknown.refusal("nonsense");
        assert_eq!(world.feed().await.len(), head);
    }
}

#[tokio::test]
async fn what_is_no_message_is_refused_whole() {
    let world = World::start().await;
    let head = world.feed().await.len();
    let post = || world.post("/mcp").token(&world.admin);
    post()
        .json(json!([request("tools/list", json!({}))]))
        .refused(400, "invalid_request", "an object, not a list")
        .await;
    post().json(json!({"id": 1})).refused(400, "invalid_request", "jsonrpc").await;
    post().body("text/plain", "{}").refused(415, "unsupported_media_type", "").await;
    post().body("application/json", "{").refused(400, "invalid_request", "not JSON").await;
    let large = json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": "x".repeat(5 << 20)}});
    post().json(large).refused(413, "payload_too_large", "").await;
    let unsupported =
        post().json(request("tools/list", json!({}))).header("mcp-protocol-version", "1999-01-01");
    unsupported.refused(400, "invalid_request", "MCP-Protocol-Version").await;
    let unknown = call(&world, &world.admin, request("no/such", json!({}))).send().await;
    assert!(unknown.json()["error"]["code"].is_i64(), "{}", unknown.text);
    let params = json!({"name": "drop_everything", "arguments": {}});
    let unknown = call(&world, &world.admin, request("tools/call", params)).send().await;
    assert!(unknown.json()["error"]["message"].as_str().unwrap().contains("submit_job"), "{}", unknown.text);
    assert_eq!(world.feed().await.len(), head);
}
