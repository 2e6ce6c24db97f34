//! Profiles over HTTP: versions, and manifests that name one.

use giga_domain::token::Role;
use serde_json::json;

use crate::world::World;

const CODER: &str = "/api/fleet/profiles/coder";
const TEXT: &str =
    "---\nengine: claude\ncapabilities: [has:git]\nbudget: {usd: 2.50}\n---\nYou write tests.\n";

#[tokio::test]
async fn versions_follow_each_other_and_never_change() {
    let world = World::start().await;
    let add =
        |text: &str| world.post(CODER).token(&world.admin).header("x-product-id", "demo").markdown(text);
    let first = add(TEXT).gives(200).await.json();
    assert_eq!((&first["version"], &first["personaMd"]), (&json!(1), &json!("You write tests.\n")));
    assert_eq!(first["defaults"]["budget"]["usd"], 2.5);
    assert_eq!(add(TEXT).gives(200).await.json()["version"], 1, "the same again is the same");
    assert_eq!(add("---\n---\nYou write docs.\n").gives(200).await.json()["version"], 2);
    let get = |path: &str| world.get(path).token(&world.admin).header("x-product-id", "demo");
    assert_eq!(get(CODER).gives(200).await.json()["version"], 2);
    assert_eq!(get(&format!("{CODER}/1")).gives(200).await.json(), first);
    get(&format!("{CODER}/3")).refused(404, "not_found", "no version 3 of the profile coder").await;
    get(&format!("{CODER}/0")).refused(400, "invalid_request", "version: versions are numbered from 1").await;
    get(&format!("{CODER}/x")).refused(400, "invalid_request", "version: ").await;
    get("/api/fleet/profiles/nobody")
        .refused(404, "not_found", "no profile nobody in the product demo")
        .await;
    let list = get("/api/fleet/profiles").gives(200).await.json();
    assert_eq!(list["profiles"].as_array().unwrap().len(), 1);
    world.get(CODER).token(&world.admin).header("x-product-id", "other").refused(404, "not_found", "").await;
}

#[tokio::test]
async fn what_a_profile_may_not_say_is_named_and_nothing_is_kept() {
    let world = World::start().await;
    let post = |path: &str| world.post(path).token(&world.admin);
    let refused = post(CODER).markdown("---\nname: x\nprority: high\npriority: urgent\n---\np\n");
    let refused = refused.refused(400, "invalid_manifest", "name belongs to each job").await.json();
    let fields: Vec<_> = refused["errors"].as_array().unwrap().iter().map(|e| e["field"].clone()).collect();
    assert_eq!(fields, ["name", "prority", "priority"]);
    assert_eq!(refused["errors"][1]["line"], 3);
    let body = json!({"personaMd": "p", "defaults": {"verify": [7]}});
    post(CODER).json(body).refused(400, "invalid_manifest", "verify[0]").await;
    post(CODER).json(json!({"persona": "p"})).refused(400, "invalid_request", "personaMd").await;
    post(CODER).body("text/plain", "x").refused(415, "unsupported_media_type", "text/markdown").await;
    post("/api/fleet/profiles/a%20b").markdown(TEXT).refused(400, "invalid_request", "name: ").await;
    let list = world.get("/api/fleet/profiles").token(&world.admin).gives(200).await.json();
    assert_eq!(list["profiles"], json!([]));
}

#[tokio::test]
async fn a_manifest_gets_what_it_leaves_out_and_the_factory_gets_the_persona() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    world.profile("demo", "coder", "priority: high\nverify: [make]\n").await;
    world.profile("demo", "coder", "priority: low\nbudget: {usd: 3}\n").await;
    let submit = |text: &str| world.post("/api/fleet/jobs").token(&world.admin).markdown(text);
    let newest = submit("---\nname: a\nproduct: demo\npersona: coder\n---\nBody\n").gives(201).await.json();
    assert_eq!(newest["job"]["priority"], "low");
    let fixed = "---\nname: b\nproduct: demo\npersona: coder@1\npriority: critical\n---\nBody\n";
    let fixed = submit(fixed).gives(201).await.json();
    assert_eq!(fixed["job"]["priority"], "critical", "what the manifest says stands");

    let claim = json!({"factoryId": "f-1", "requestId": "r"});
    let granted = world.post("/api/fleet/claim").token(&token).json(claim).gives(200).await.json();
    assert_eq!(granted["job"]["id"], fixed["job"]["id"]);
    assert_eq!(granted["job"]["personaMd"], "You are coder.\n");
    assert_eq!(granted["job"]["bodyMd"], "Body\n");
    let manifest = &granted["job"]["manifest"];
    assert_eq!((&manifest["persona"], &manifest["verify"]), (&json!("coder@1"), &json!(["make"])));
    let path = format!("/api/fleet/jobs/{}", newest["job"]["id"].as_str().unwrap());
    let shown = world.get(&path).token(&world.admin).gives(200).await.json();
    assert_eq!(
        (&shown["manifest"]["persona"], &shown["manifest"]["budget"]["usd"]),
        (&json!("coder@2"), &json!(3.0))
    );

    let plan = world.post("/api/fleet/plan").token(&world.admin);
    let plan =
        plan.markdown("---\nname: a\nproduct: demo\npersona: coder\nretry: {max: 1}\n---\n").gives(200).await;
    assert_eq!(plan.json()["worstCaseUsd"], 6.0, "the dry run knows the profile too");
}

#[tokio::test]
async fn a_profile_that_is_not_there_is_a_problem_of_that_field() {
    let world = World::start().await;
    world.profile("demo", "coder", "priority: high\n").await;
    let head = world.feed().await.len();
    for (persona, needle) in [
        ("codr", "names the profile codr, which the product demo does not have; did you mean `coder`?"),
        ("coder@7", "of which there are versions 1 to 1; did you mean `coder@1`?"),
        ("painter", "giga profile list"),
        ("a b", "persona must be a profile and its version"),
    ] {
        for path in ["/api/fleet/jobs", "/api/fleet/plan"] {
            let text = format!("---\nname: a\nproduct: demo\npersona: {persona}\n---\n");
            let call = world.post(path).token(&world.admin).markdown(&text);
            let error = call.refused(400, "invalid_manifest", needle).await.json()["errors"][0].clone();
            assert_eq!((&error["field"], &error["line"]), (&json!("persona"), &json!(4)));
        }
    }
    let text = "---\nname: a\nproduct: other\npersona: coder\n---\n";
    let call = world.post("/api/fleet/jobs").token(&world.admin).markdown(text);
    call.refused(400, "invalid_manifest", "the product other does not have; make it with").await;
    assert_eq!(world.feed().await.len(), head);
}

#[tokio::test]
async fn the_same_file_is_the_same_job_although_its_profile_went_on() {
    let world = World::start().await;
    world.profile("demo", "coder", "priority: high\n").await;
    let text = "---\nname: a\nproduct: demo\npersona: coder\nidempotencyKey: k\n---\nBody\n";
    let submit = || world.post("/api/fleet/jobs").token(&world.admin).markdown(text);
    let first = submit().gives(201).await.json();
    world.profile("demo", "coder", "priority: low\n").await;
    let again = submit().gives(200).await.json();
    assert_eq!((&again["job"]["id"], &again["job"]["priority"]), (&first["job"]["id"], &json!("high")));
    let other = text.replace("coder\n", "coder@2\n");
    let call = world.post("/api/fleet/jobs").token(&world.admin).markdown(&other);
    call.refused(409, "idempotency_conflict", "").await;
}

#[tokio::test]
async fn a_profile_belongs_to_its_product() {
    let world = World::start().await;
    world.profile("alpha", "coder", "priority: high\n").await;
    let both = world.token(Role::Operator, &["alpha", "beta"]).await;
    let call = world.get("/api/fleet/profiles").token(&both);
    call.refused(400, "invalid_request", "x-product-id: say in this header which of alpha, beta").await;
    let beta = world.get("/api/fleet/profiles").token(&both).header("x-product-id", "beta").gives(200).await;
    assert_eq!(beta.json()["profiles"], json!([]));
}
