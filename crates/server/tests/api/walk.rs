//! Every route × every kind of caller × own and other product: what comes back follows from the route table alone.

use std::time::Duration;

use axum::http::Method;
use giga_coordinator::{LinkTo, NewArtifact};
use giga_domain::token::Role;
use giga_domain::{Actor, Ask, DriverKind, Holder, PoolSettings};
use giga_ports::blobs::in_one_piece;
use giga_server::routes::{self, Access, Route, Scope};
use serde_json::{Value, json};

use crate::client::Call;
use crate::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    Garbage,
    Revoked,
    /// Limited to the product `alpha`.
    User(Role),
    /// Admin for every product.
    Root,
    /// Limited to the product `alpha`.
    Factory,
    /// What runs inside the job that `alpha`'s factory holds.
    Inside,
}

const CALLERS: [Who; 11] = [
    Who::Nobody,
    Who::Garbage,
    Who::Revoked,
    Who::User(Role::Worker),
    Who::User(Role::Viewer),
    Who::User(Role::Submitter),
    Who::User(Role::Operator),
    Who::User(Role::Admin),
    Who::Root,
    Who::Factory,
    Who::Inside,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Other,
}

/// One thing of each kind that a route can be about, for one product.
pub(crate) struct Things {
    product: &'static str,
    factory: &'static str,
    token: String,
    held: String,
    held_epoch: u64,
    review: String,
    /// Shipped, and its factory has taken the order to merge it.
    merging: String,
    artifact: String,
    /// The token of what runs inside the held job.
    inside: String,
    /// What a link to the artifact has behind its path.
    link: String,
    other_token_id: String,
    /// Dead, in the topic `mail`.
    topic_job: String,
    webhook: String,
    /// Told to it.
    effect: String,
    /// Made from the item of a tracker.
    tracked: String,
}

impl Things {
    pub(crate) async fn make(world: &World, product: &'static str, factory: &'static str) -> Self {
        let token = world.factory(factory, &[product]).await;
        let review = world.in_review(product, factory, "review").await;
        let merging = world.shipped(product, factory, "merging").await;
        let taken = world.coordinator.take_merges(factory.parse().unwrap()).await.unwrap();
        assert_eq!(taken.iter().map(|taken| taken.job.id).collect::<Vec<_>>(), [merging.id]);
        let held = world.building(product, factory, "held").await;
        let holder = Holder { factory: factory.parse().unwrap(), epoch: held.epoch };
        let name = "report.txt".parse().unwrap();
        let (actor, media_type) = (Actor::Factory(holder.factory.clone()), "text/plain".to_owned());
        let new = NewArtifact { job: held.id, holder, actor, name, media_type };
        let put = world.coordinator.put_artifact(new, in_one_piece("x"));
        let artifact = put.await.unwrap();
        let ask = Ask { text: "Which port?".to_owned(), ..Ask::default() };
        let lease = held.lease().unwrap();
        let holder = Holder { factory: lease.factory.clone(), epoch: held.epoch };
        world.coordinator.ask(held.id, holder, ask).await.unwrap();
        let inside = world.coordinator.job_token(held.id, held.epoch).await.unwrap().reveal().to_owned();
        let link = world.coordinator.artifact_link(&artifact, Duration::from_mins(1)).await.unwrap();
        let LinkTo::Coordinator { signature } = link.to else { panic!("a folder signs nothing") };
        let link = format!("?expires={}&sig={signature}", link.expires_at.as_millis());
        let products = vec![product.parse().unwrap()];
        let issued =
            world.coordinator.issue_token(Role::Viewer, products, String::new(), crate::world::actor());
        let topic_job = world.dead_topic_job(product, "mail").await.to_string();
        world.profile(product, "coder", "engine: shell\n").await;
        let (of, name) = (product.parse().unwrap(), "API_KEY".parse().unwrap());
        let value = b"the value".to_vec().into();
        world.coordinator.set_secret(of, name, value, crate::world::actor()).await.unwrap();
        let (webhook, effect) = world.webhook(product).await;
        let tracked = world.tracked(product, 1).await.id;
        // So that nobody claims it.
        let cancel = giga_domain::OperatorAction::Cancel;
        world.coordinator.operate(tracked, cancel, None, None, crate::world::actor()).await.unwrap();
        world.item(product, 2);
        let settings = PoolSettings {
            driver: DriverKind::Keda,
            products: vec![product.parse().unwrap()],
            ..PoolSettings::default()
        };
        let pool = format!("pool-{product}").parse().unwrap();
        world.coordinator.pools().set(pool, settings, None, crate::world::actor()).await.unwrap();
        Self {
            webhook,
            effect,
            tracked: tracked.to_string(),
            product,
            factory,
            token,
            topic_job,
            held: held.id.to_string(),
            held_epoch: held.epoch.0,
            review: review.id.to_string(),
            merging: merging.id.to_string(),
            artifact: artifact.id.to_string(),
            inside,
            link,
            other_token_id: issued.await.unwrap().0.id.to_string(),
        }
    }
}

/// A request that succeeds for whoever may make it.
pub(crate) struct Sample {
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
    success: u16,
    /// What a caller gets who has the role but not the product.
    other: u16,
    /// `x-product-id` says which product is meant.
    pub(crate) by_header: bool,
}

/// A route that is not known here has no test of its auth rule, which fails the walk.
pub(crate) fn sample(route: &Route, things: &Things) -> Sample {
    let Things { product, factory, held, held_epoch, review, merging, artifact, other_token_id, .. } = things;
    let topic_job = things.topic_job.as_str();
    let epoch = json!({ "leaseEpoch": held_epoch });
    let query = match route.operation {
        "appendLog" => format!("?leaseEpoch={held_epoch}&offset=0"),
        "putArtifact" => format!("?leaseEpoch={held_epoch}&name=new.txt"),
        "listCandidates" => format!("?factoryId={factory}"),
        "listStages" => format!("?id={held},{review}"),
        "followArtifactLink" => things.link.clone(),
        _ => String::new(),
    };
    let (id, body, success) = match route.operation {
        "submitJob" => ("", Some(json!({"manifest": {"name": "new", "product": product}})), 201),
        "planJob" => ("", Some(json!({"manifest": {"name": "new", "product": product}})), 200),
        "submitJobs" => ("", Some(json!({"jobs": [{"manifest": {"name": "new", "product": product}}]})), 201),
        "submitChildren" => (held.as_str(), Some(json!({"children": [{"manifest": {"name": "new"}}]})), 201),
        "getDag" | "getJob" | "listRuns" | "explainJob" | "listJobEvents" | "streamJobEvents" | "readLog"
        | "listArtifacts" | "getConversation" => (held.as_str(), None, 200),
        "askPeople" => (held.as_str(), Some(json!({"leaseEpoch": held_epoch, "text": "Which color?"})), 201),
        "markDelivered" => (held.as_str(), Some(json!({"leaseEpoch": held_epoch, "seqs": [1]})), 204),
        "answerQuestion" => (held.as_str(), Some(json!({"question": 1, "answer": "8080"})), 200),
        "sayToJob" => (held.as_str(), Some(json!({"text": "faster"})), 200),
        "putArtifact" => (held.as_str(), Some(json!("bytes")), 201),
        "getArtifact" | "linkArtifact" | "followArtifactLink" => (artifact.as_str(), None, 200),
        "deleteArtifact" => (artifact.as_str(), None, 204),
        "appendLog" => (held.as_str(), Some(json!("one line")), 200),
        "actOnJob" => (held.as_str(), Some(json!({"reason": "no longer needed"})), 200),
        "reviewJob" => (review.as_str(), Some(json!({"verdict": "approve"})), 200),
        // No forge is set up here, whoever asks.
        "receiveHook" => ("", Some(json!({})), 404),
        "claimMerges" => ("", Some(json!({"factoryId": factory})), 204),
        "settleMerge" => {
            let body = json!({"factoryId": "f-alpha", "attempt": 1, "outcome": "merged", "commit": "abc", "into": "main"});
            (merging.as_str(), Some(body), 200)
        }
        "renewMerges" => {
            let body = json!({"factoryId": factory, "merges": [{"jobId": merging, "attempt": 1}]});
            ("", Some(body), 200)
        }
        "pushMerges" => {
            let candidate = json!({"commit": "abc", "into": "main"});
            let merge = json!({"jobId": merging, "attempt": 1, "candidate": candidate});
            ("", Some(json!({"factoryId": "f-alpha", "merges": [merge]})), 204)
        }
        "claimJob" => ("", Some(json!({"factoryId": factory, "requestId": "walk"})), 204),
        "acceptJob" => {
            // The request that won its own job, repeated; for the other's job one that never won anything.
            let request = if *product == "alpha" { "held" } else { "walk" };
            let body = json!({"jobId": held, "factoryId": "f-alpha", "dispatchSeq": 0, "requestId": request});
            ("", Some(body), 200)
        }
        "failJob" => (
            "",
            Some(json!({"jobId": held, "leaseEpoch": held_epoch, "reason": "crash", "retryable": true})),
            200,
        ),
        "patchJob" => (held.as_str(), Some(json!({"leaseEpoch": held_epoch, "stage": "testing"})), 200),
        "reportJob" | "renewLease" | "releaseLease" | "getJobSecrets" => (held.as_str(), Some(epoch), 200),
        "getFactory" | "rotateFactoryToken" => (*factory, None, 200),
        "drainFactory" => (*factory, Some(json!({"undo": false})), 200),
        "revokeFactoryTokens" | "deregisterFactory" => (*factory, None, 204),
        "enrollFactory" => ("", Some(json!({"factoryId": "f-new", "products": [product]})), 201),
        "heartbeat" => {
            ("", Some(json!({"factoryId": factory, "capabilities": ["os:linux"], "seatLimit": 8})), 200)
        }
        "pruneFactories" => ("", Some(json!({"idle": "24h"})), 200),
        "leaveFleet" => ("", Some(json!({"factoryId": factory})), 200),
        "setPool" => ("", Some(json!({"driver": "keda", "max": 3})), 200),
        "issuePoolCredential" => ("", Some(json!({"kind": "enroll"})), 201),
        // Nobody here has such a credential: see `pools`.
        "enrollInPool" => ("", Some(json!({})), 403),
        "setFlag" => ("", Some(json!({"value": true})), 200),
        "issueToken" => ("", Some(json!({"role": "viewer", "products": [product]})), 201),
        "revokeToken" => (other_token_id.as_str(), None, 204),
        "renewToken" => (other_token_id.as_str(), Some(json!({"expires": "never"})), 200),
        "listJobs" | "listStages" | "listEvents" | "streamEvents" | "listFactories" | "listAccounts"
        | "listCapabilities" | "listFlags" | "listTokens" | "fleetMetrics" | "queueState" | "listAlerts"
        | "shadow" | "listCandidates" | "openapi" | "livez" | "readyz" | "prometheus" | "listTopics"
        | "pauseTopic" | "resumeTopic" | "pauseAllTopics" | "resumeAllTopics" | "listTopicJobs"
        | "listBudgets" | "getBudget" | "getBurndown" | "pauseBudget" | "resumeBudget" | "listProducts"
        | "getProduct" | "listProfiles" | "getProfile" | "getProfileVersion" | "listSecrets"
        | "rotateSecrets" | "listWebhooks" | "listEffects" | "whoami" | "rotateKeys" | "signInOffer"
        | "listAudit" | "listPools" | "getPool" | "pausePool" | "resumePool" => ("", None, 200),
        // No identity provider is set up here, and none of these tokens is of somebody who signed in.
        "startDeviceSignIn" | "login" | "loginCallback" => ("", None, 404),
        "pollDeviceSignIn" => ("", Some(json!({"deviceCode": "x"})), 404),
        "signOut" => ("", None, 403),
        // Its tools are walked in `mcp`.
        "mcp" => ("", Some(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})), 200),
        "renderMarkdown" => ("", Some(json!({"texts": ["**bold**"]})), 200),
        "addWebhook" => ("", Some(json!({"url": "https://example.com/hook", "productId": product})), 201),
        "removeWebhook" => (things.webhook.as_str(), None, 204),
        "testWebhook" => (things.webhook.as_str(), None, 202),
        "getEffect" | "retryEffect" => (things.effect.as_str(), None, 200),
        "ingestItem" => {
            let item = format!("acme/{product}#2");
            ("", Some(json!({"tracker": "github", "item": item, "manifest": {"product": product}})), 201)
        }
        "echoJob" => ("", Some(json!({"jobId": things.tracked})), 202),
        "setBudget" => ("", Some(json!({"ceilings": {"day": 5}})), 200),
        "correctBudget" => ("", Some(json!({"usd": -0.5, "reason": "refunded"})), 200),
        "setProduct" => ("", Some(json!({"share": 2})), 200),
        "setSecret" => ("", Some(json!("the value")), 200),
        "removeSecret" | "removePool" => ("", None, 204),
        "addProfile" => ("", Some(json!({"personaMd": "Be brief."})), 200),
        "requestReview" => (held.as_str(), Some(json!({"quorum": 2})), 200),
        "enqueueTopicJobs" => ("", Some(json!({"payload": {"to": "ana"}})), 201),
        "getTopicJob" => (topic_job, None, 200),
        "retryDeadTopicJobs" => ("", Some(json!({"jobs": [topic_job]})), 200),
        unknown => panic!("{unknown} is not in the walk: say how it is called and what it answers"),
    };
    let other = match (route.operation, route.scope) {
        // The body names another factory, or more products than the caller has.
        (
            "claimJob" | "listCandidates" | "claimMerges" | "renewMerges" | "heartbeat" | "enrollFactory"
            | "issueToken" | "leaveFleet",
            _,
        ) => 403,
        ("acceptJob", _) => 409,
        ("revokeToken" | "renewToken", _) | (_, Scope::Job | Scope::Factory | Scope::Own) => 404,
        // The list is cut to what the caller may see.
        ("listTokens", _) | (_, Scope::Nothing) => success,
        (_, Scope::Product | Scope::Products | Scope::Within | Scope::Fleet) => 403,
    };
    let about_topics = route.path.contains("/topic");
    let about_profiles = route.path.contains("/profiles");
    let name = match (about_topics, about_profiles) {
        (true, _) => "mail",
        (_, true) => "coder",
        _ if route.path.contains("/secrets") => "API_KEY",
        _ if route.path.contains("/pools") => &format!("pool-{product}"),
        _ => "strict",
    };
    let path = route
        .path
        .replace("{id}", id)
        .replace("{action}", "cancel")
        .replace("{name}", name)
        .replace("{forge}", "github")
        + &query;
    let path = path.replace("{product}", product).replace("{version}", "1");
    let by_header = match route.scope {
        Scope::Products => body.is_none(),
        // The name of the topic or profile is in the path, its product in the header.
        Scope::Product => about_topics || about_profiles,
        _ => false,
    };
    Sample { path, body, success, other, by_header }
}

fn expected(route: &Route, sample: &Sample, who: Who, whose: Whose) -> u16 {
    let within_scope = match (whose, route.scope) {
        (_, Scope::Fleet) => 403,
        (Whose::Own, _) => sample.success,
        (Whose::Other, _) => sample.other,
    };
    match (route.access, who) {
        (Access::Public, _) | (Access::Role(_) | Access::RoleOrFactory(_), Who::Root) => sample.success,
        (_, Who::Nobody | Who::Garbage | Who::Revoked) => 401,
        (_, Who::Inside) if route.from_inside => within_scope,
        (Access::Factory | Access::RoleOrFactory(_), Who::Factory) => within_scope,
        (Access::Role(least) | Access::RoleOrFactory(least), Who::User(role)) if role >= least => {
            within_scope
        }
        _ => 403,
    }
}

pub(crate) async fn credentials(world: &World, own: &Things, who: Who) -> Option<String> {
    match who {
        Who::Nobody => None,
        Who::Garbage => Some("giga_user_garbage".to_owned()),
        Who::Revoked => {
            let (token, secret) = world
                .coordinator
                .issue_token(Role::Admin, Vec::new(), String::new(), crate::world::actor())
                .await
                .unwrap();
            world.coordinator.revoke_token(token.id, crate::world::actor()).await.unwrap();
            Some(secret.reveal().to_owned())
        }
        Who::User(role) => Some(world.token(role, &["alpha"]).await),
        Who::Root => Some(world.admin.clone()),
        Who::Factory => Some(own.token.clone()),
        Who::Inside => Some(own.inside.clone()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_every_caller_as_the_table_says() {
    for route in routes::table() {
        for who in CALLERS {
            for whose in [Whose::Own, Whose::Other] {
                walk(route, who, whose).await;
            }
        }
    }
}

async fn walk(route: &'static Route, who: Who, whose: Whose) {
    let world = World::start().await;
    let own = Things::make(&world, "alpha", "f-alpha").await;
    let other = Things::make(&world, "beta", "f-beta").await;
    world.outside.allow(&[("alpha", "acme/alpha"), ("beta", "acme/beta")]);
    let credentials = credentials(&world, &own, who).await;
    let things = if whose == Whose::Own { &own } else { &other };
    let sample = sample(route, things);
    let head = world.feed().await.len();

    let mut call = Call::new(&world.http, route.method.clone(), format!("{}{}", world.url, sample.path));
    if let Some(token) = &credentials {
        call = call.token(token);
    }
    if sample.by_header {
        call = call.header("x-product-id", things.product);
    }
    if let Some(body) = &sample.body {
        call = call.json(body.clone());
    }
    let status = if route.operation.starts_with("stream") {
        call.open().await.status().as_u16()
    } else {
        let reply = call.send().await;
        if reply.status >= 400 {
            assert_eq!(reply.header("content-type"), "application/problem+json", "{}", route.operation);
        }
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        reply.status
    };
    let expected = expected(route, &sample, who, whose);
    assert_eq!(status, expected, "{} {} as {who:?} on {whose:?}", route.method, sample.path);
    if status >= 400 {
        assert_eq!(world.feed().await.len(), head, "{} was refused and yet did something", route.operation);
    }
}

#[tokio::test]
async fn nothing_else_is_served() {
    let world = World::start().await;
    let admin = &world.admin;
    // What is no route may be an address of the page; see `site`.
    for path in
        ["/api", "/api/fleet", "/api/fleet/jobs/", "/api/fleet/nothing", "/api/../livez/x", "/admin.php"]
    {
        world.get(path).token(admin).refused(404, "not_found", "there is no GET").await;
    }
    for (method, path) in [
        (Method::DELETE, "/api/fleet/jobs"),
        (Method::PUT, "/api/fleet/claim"),
        (Method::OPTIONS, "/api/fleet/jobs"),
        (Method::POST, "/livez"),
    ] {
        let reply = world.call(method, path).token(admin).refused(405, "method_not_allowed", "Allow").await;
        assert!(!reply.header("allow").is_empty());
        assert_eq!(reply.header("access-control-allow-origin"), "", "no CORS unless somebody asks for it");
    }
}
