//! What exists only in another product is never named: not in a list, an explanation, a plan, a warning, an alert or a
//! series of metrics.
//!
//! The other product is generated. Each of its names holds a word that stands nowhere else, so that all strings of an
//! answer are checked at once, whatever they are.

use axum::http::Method;
use giga_domain::factory::{Advertised, FactoryRepo, FactoryScope};
use giga_domain::token::Role;
use giga_domain::{CapabilitySet, FactoryId, Job, OperatorAction, ProductId, ProductSettings};
use giga_server::routes::{self, Access, Route};
use giga_testkit::SeededRandomness;
use serde_json::json;

use crate::client::Call;
use crate::streams::Sse;
use crate::walk::{Things, Who, credentials, sample};
use crate::world::{World, actor};

/// What the names of the hidden products hold, by kind.
const WORDS: [&str; 10] = [
    "prodzor",
    "faczor",
    "repozor",
    "jobzor",
    "topiczor",
    "capzor",
    "profilezor",
    "hookzor",
    "keyzor",
    "secretzor",
];

const SCOPED: [Who; 6] = [
    Who::User(Role::Viewer),
    Who::User(Role::Submitter),
    Who::User(Role::Operator),
    Who::User(Role::Admin),
    Who::Factory,
    Who::Inside,
];

/// A number below `most`, the same for the same seed.
struct Dice(SeededRandomness);

impl Dice {
    fn below(&self, most: usize) -> usize {
        use giga_ports::Randomness as _;
        usize::from(self.0.bytes()[0]) % most
    }
}

struct Hidden {
    /// Ids, which hold no word.
    ids: Vec<String>,
}

impl Hidden {
    fn is_named_in(&self, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        let word = WORDS.iter().find(|word| lower.contains(*word)).map(|word| (*word).to_owned());
        word.or_else(|| self.ids.iter().find(|id| text.contains(*id)).cloned())
    }
}

async fn enroll(world: &World, id: &str, products: &[ProductId], repos: &[String], capability: &str) {
    let id: FactoryId = id.parse().unwrap();
    let scope = FactoryScope { products: products.to_vec(), capabilities: None };
    world.coordinator.enroll(id.clone(), scope, actor()).await.unwrap();
    let repo = |name: &String| FactoryRepo {
        name: name.clone(),
        url: None,
        last_used_at: None,
        merges_into: Some("main, fast".to_owned()),
    };
    let advertised = Advertised {
        capabilities: CapabilitySet::parse(["os:linux", capability]).unwrap(),
        seat_limit: 2,
        repos: repos.iter().map(repo).collect(),
        ..Advertised::default()
    };
    world.coordinator.heartbeat(id, advertised).await.unwrap();
}

async fn drain(world: &World, factory: &str) {
    let call = world.post(&format!("/api/fleet/factories/{factory}/drain")).token(&world.admin);
    call.json(json!({"undo": false})).gives(200).await;
}

/// Products beside `alpha`, with everything that a product has, and a factory that serves all.
async fn hide(world: &World, dice: &Dice) -> Hidden {
    let mut ids = Vec::new();
    let mut shared_repos = vec!["hello".to_owned()];
    for number in 0..=dice.below(2) {
        let product: ProductId = format!("prodzor-{number}").parse().unwrap();
        let repos: Vec<String> = (0..=dice.below(3)).map(|n| format!("repozor-{number}-{n}")).collect();
        let settings = ProductSettings { repos: repos.clone(), ..ProductSettings::default() };
        world.coordinator.set_product(product.clone(), settings, None, actor()).await.unwrap();
        for n in 0..=dice.below(2) {
            let name = format!("faczor-{number}-{n}");
            enroll(world, &name, std::slice::from_ref(&product), &repos, "tool:capzor").await;
            if dice.below(2) == 0 {
                drain(world, &name).await;
            }
        }
        shared_repos.extend(repos);
        for n in 0..3 + dice.below(4) {
            let lines = format!(
                "name: jobzor-{number}-{n}\npriority: {}\nconcurrency: {{key: keyzor-{n}, limit: 1}}",
                ["low", "normal", "high"][dice.below(3)]
            );
            ids.push(world.submit(product.as_str(), &lines).await.id.to_string());
        }
        ids.push(world.dead_topic_job(product.as_str(), &format!("topiczor-{number}")).await.to_string());
        world.profile(product.as_str(), &format!("profilezor-{number}"), "engine: shell\n").await;
        let (name, value) = (format!("SECRETZOR_{number}").parse().unwrap(), b"the value".to_vec().into());
        world.coordinator.set_secret(product.clone(), name, value, actor()).await.unwrap();
        let put = world.call(Method::PUT, &format!("/api/fleet/budgets/{product}")).token(&world.admin);
        put.json(json!({"ceilings": {"day": 5}, "jobUsd": 1})).gives(200).await;
        let hook = json!({"url": format!("https://hookzor-{number}.example.com/"), "productId": product});
        let hook = world.post("/api/fleet/webhooks").token(&world.admin).json(hook).gives(201).await.json();
        ids.push(hook["webhook"]["id"].as_str().unwrap().to_owned());
        let token = world.coordinator.issue_token(Role::Viewer, vec![product], String::new(), actor());
        ids.push(token.await.unwrap().0.id.to_string());
    }
    enroll(world, "f-shared", &[], &shared_repos, "tool:common").await;
    // Its seats are taken by what nobody of `alpha` may know of.
    for request in ["one", "two"] {
        let held = world.claim("f-shared", request).await;
        assert!(held.product.as_str().starts_with("prodzor"));
    }
    Hidden { ids }
}

/// What people of `alpha` may send: things that are nearly, or exactly, those of the others.
fn manifests(of_another: &str) -> Vec<String> {
    let lines = |more: &str| format!("name: mine\nproduct: alpha\n{more}");
    vec![
        lines(""),
        lines("priority: critical"),
        lines("capabilities: [\"tool:capzot\"]"),
        lines("repo: repozot-0-0"),
        lines("repo: hello"),
        lines("capabilities: [\"tool:common\", \"os:mac\"]"),
        lines(&format!("deps: [{of_another}]")),
        lines("concurrency: {key: mine, limit: 1}"),
        lines("runAt: 2099-01-01T00:00:00Z"),
    ]
}

struct Scene {
    world: World,
    own: Things,
    hidden: Hidden,
    /// Of `alpha`, each for another reason where it is.
    jobs: Vec<Job>,
    /// Named by a job of `alpha` itself.
    known: String,
}

impl Scene {
    async fn make(seed: u64) -> Self {
        let world = World::start().await;
        world.outside.allow(&[("alpha", "acme/alpha")]);
        let own = Things::make(&world, "alpha", "f-alpha").await;
        drain(&world, "f-alpha").await;
        let mut hidden = hide(&world, &Dice(SeededRandomness::new(seed))).await;
        // Whoever names it as a dep knows its id, and nothing else of it.
        let known = hidden.ids.remove(0);
        let mut jobs = Vec::new();
        // Nobody may wait for a job of another product.
        for manifest in manifests(&known).iter().filter(|lines| !lines.contains("deps")) {
            jobs.push(world.submit("alpha", manifest).await);
        }
        Self { world, own, hidden, jobs, known }
    }

    /// Sends it and looks at every string that comes back.
    async fn check(&self, who: Who, what: &str, call: Call) {
        let reply = call.send().await;
        assert_ne!(reply.status, 405, "{what}");
        if let Some(named) = self.hidden.is_named_in(&reply.text) {
            panic!("{what} as {who:?} names `{named}`: {}", reply.text);
        }
        for (name, value) in &reply.headers {
            assert_eq!(self.hidden.is_named_in(value.to_str().unwrap_or_default()), None, "{what}: {name}");
        }
    }

    fn call(&self, token: &str, method: Method, path: &str) -> Call {
        self.world.call(method, path).token(token)
    }

    async fn route(&self, who: Who, route: &Route) {
        let token = credentials(&self.world, &self.own, who).await.unwrap();
        let sample = sample(route, &self.own);
        let mut call = self.call(&token, route.method.clone(), &sample.path);
        if sample.by_header {
            call = call.header("x-product-id", "alpha");
        }
        if let Some(body) = sample.body {
            call = call.json(body);
        }
        self.check(who, route.operation, call).await;
    }
}

fn may_try(route: &Route, who: Who) -> bool {
    match (route.access, who) {
        (Access::Factory | Access::RoleOrFactory(_), Who::Factory) => true,
        (Access::Role(least) | Access::RoleOrFactory(least), Who::User(role)) => role >= least,
        (_, Who::Inside) => route.from_inside,
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_list_and_no_explanation_names_what_exists_only_in_another_product() {
    for seed in 1..=4 {
        let scene = Scene::make(seed).await;
        for who in SCOPED {
            let token = credentials(&scene.world, &scene.own, who).await.unwrap();
            for route in routes::table() {
                let reads = route.method == Method::GET && !route.operation.starts_with("stream");
                if reads {
                    scene.route(who, route).await;
                }
            }
            for job in &scene.jobs {
                for what in ["explain", "events", "runs", "dag", "artifacts"] {
                    let path = format!("/api/fleet/jobs/{}/{what}", job.id);
                    scene.check(who, &path, scene.call(&token, Method::GET, &path)).await;
                }
            }
            let pages = [
                "/api/fleet/jobs?limit=500",
                "/api/fleet/events?limit=500",
                "/api/fleet/factories",
                "/api/fleet/audit?limit=500&actor=*",
                "/api/fleet/audit?limit=500&actor=test",
                "/api/fleet/audit?limit=500&kind=job.submitted,token.issued,product.changed,factory.enrolled",
            ];
            for page in pages {
                scene.check(who, page, scene.call(&token, Method::GET, page)).await;
            }
            for lines in manifests(&scene.known) {
                let plan = scene.call(&token, Method::POST, "/api/fleet/plan");
                scene.check(who, &lines, plan.markdown(&format!("---\n{lines}\n---\n"))).await;
            }
        }
        // All that a stream has to tell of the past.
        let viewer = credentials(&scene.world, &scene.own, Who::User(Role::Viewer)).await.unwrap();
        let page = scene.call(&viewer, Method::GET, "/api/fleet/events?limit=500").gives(200).await.json();
        let count = page["events"].as_array().unwrap().len();
        let stream = scene.call(&viewer, Method::GET, "/api/fleet/events/stream?after=0");
        let mut stream = Sse::open(stream).await;
        for _ in 0..count {
            let text = stream.next().await.unwrap().data.to_string();
            assert_eq!(scene.hidden.is_named_in(&text), None, "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_to_a_write_names_what_exists_only_in_another_product() {
    for route in routes::table().iter().filter(|route| route.method != Method::GET) {
        for who in [Who::User(Role::Admin), Who::Factory, Who::Inside] {
            if may_try(route, who) {
                Scene::make(7).await.route(who, route).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_or_warned_submit_names_nothing_of_another_product() {
    for (strict, foreign) in [(false, "refuse"), (true, "refuse"), (false, "route")] {
        let scene = Scene::make(3).await;
        for (flag, value) in
            [("strict", json!(strict)), ("foreign_repos", json!(foreign)), ("preemption", json!(true))]
        {
            scene.world.coordinator.set_flag(flag, value, actor()).await.unwrap();
        }
        let who = Who::User(Role::Operator);
        let token = credentials(&scene.world, &scene.own, who).await.unwrap();
        for lines in manifests(&scene.known) {
            let text = format!("---\n{lines}\n---\n");
            scene
                .check(who, &lines, scene.call(&token, Method::POST, "/api/fleet/jobs").markdown(&text))
                .await;
            let many = json!({"jobs": [{"markdown": text}]});
            scene
                .check(who, &lines, scene.call(&token, Method::POST, "/api/fleet/jobs/batch").json(many))
                .await;
        }
        // The repository is named by the caller; to whom it belongs is not said.
        let text = "---\nname: mine\nproduct: alpha\nrepo: repozor-0-0\n---\n";
        for path in ["/api/fleet/jobs", "/api/fleet/plan"] {
            let reply = scene.call(&token, Method::POST, path).markdown(text).send().await;
            assert!(reply.text.contains("belongs to another product"), "{}", reply.text);
            assert!(!reply.text.contains("prodzor") && !reply.text.contains("faczor"), "{}", reply.text);
        }
        let reply =
            scene.call(&scene.world.admin, Method::POST, "/api/fleet/plan").markdown(text).send().await;
        assert!(reply.text.contains("prodzor-0"), "whoever may see it is told: {}", reply.text);
        for job in &scene.jobs {
            let _ =
                scene.world.coordinator.operate(job.id, OperatorAction::Cancel, None, None, actor()).await;
        }
    }
}

#[tokio::test]
async fn prometheus_is_for_those_with_a_token_and_shows_each_its_own() {
    let scene = Scene::make(5).await;
    let nobody = scene.world.get("/metrics");
    nobody.refused(401, "unauthenticated", "this call needs a token").await;
    let viewer = credentials(&scene.world, &scene.own, Who::User(Role::Viewer)).await.unwrap();
    let own = scene.call(&viewer, Method::GET, "/metrics").gives(200).await.text;
    assert_eq!(scene.hidden.is_named_in(&own), None, "{own}");
    assert!(own.contains("# TYPE giga_queue_depth gauge"), "{own}");
    assert!(own.contains("giga_queue_depth{product=\"alpha\",stage=\"queued\"}") && own.ends_with("# EOF\n"));
    assert!(!own.contains("giga_seats") && !own.contains("giga_http_requests"), "the whole fleet's: {own}");
    let all = scene.call(&scene.world.admin, Method::GET, "/metrics").gives(200).await.text;
    assert!(all.contains("prodzor-0") && all.contains("giga_seats ") && all.contains("giga_http_requests"));
}
