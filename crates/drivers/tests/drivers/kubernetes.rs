//! `kubernetes` against a small API server that refuses what a real one would: methods, paths, tokens, media types, names. What a
//! real one says is tested in `real-kubernetes`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_domain::{DriverKind, FactoryId, PoolSettings};
use giga_drivers::{KubernetesDriver, KubernetesOptions, Token};
use giga_ports::{DriverError, PoolDriver, StartOrder, StopOrder};
use giga_testkit::driver_suite::{CREDENTIAL, DriverFixture};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

const TOKEN: &str = "of-the-service-account";

#[derive(Default)]
struct Cluster {
    objects: BTreeMap<String, Value>,
    calls: Vec<String>,
    /// Answered to the next calls of this kind, in place of what would be.
    refusals: BTreeMap<&'static str, (u16, &'static str)>,
    /// Why the container of every Pod waits.
    waiting: Option<(&'static str, &'static str)>,
    uids: u32,
}

type Shared = Arc<Mutex<Cluster>>;

struct World {
    cluster: Shared,
    folder: TempDir,
    url: String,
}

impl World {
    async fn new() -> Self {
        let cluster = Shared::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(serve).with_state(cluster.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).unwrap();
        Self { cluster, folder, url }
    }

    fn options(&self) -> KubernetesOptions {
        KubernetesOptions {
            url: self.url.clone(),
            token: Token::File(self.folder.path().join("token")),
            ca_cert: None,
            namespace: "giga".to_owned(),
            limit: KubernetesOptions::LIMIT,
        }
    }

    fn order(&self) -> StartOrder {
        StartOrder {
            pool: "gpu".parse().unwrap(),
            settings: self.settings(),
            factory: "Gpu.1".parse().unwrap(),
            url: "https://giga.example".to_owned(),
            credential: CREDENTIAL.to_owned(),
        }
    }

    fn stop(&self, handle: Option<String>) -> StopOrder {
        let StartOrder { pool, settings, factory, .. } = self.order();
        StopOrder { pool, settings, factory, handle }
    }

    async fn start(&self) -> Result<String, DriverError> {
        self.open().start(&self.order()).await
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.cluster.lock().calls)
    }

    fn jobs_of(&self, factory: &FactoryId) -> Vec<String> {
        let cluster = self.cluster.lock();
        let of_it = |object: &Value| {
            object["kind"] == "Job"
                && object["metadata"]["annotations"]["gigafactory/factory"] == factory.as_str()
        };
        cluster.objects.iter().filter(|(_, object)| of_it(object)).map(|(path, _)| path.clone()).collect()
    }
}

/// Nothing else is allowed to the coordinator.
fn is_allowed(method: &Method, path: &str) -> bool {
    let resource = path.split('/').rev().find(|part| ["jobs", "secrets", "pods"].contains(part));
    match resource {
        Some("jobs") => [Method::POST, Method::GET, Method::DELETE].contains(method),
        Some("secrets") => method == Method::POST,
        Some("pods") => method == Method::GET,
        _ => false,
    }
}

fn status(code: u16, reason: &str, message: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code,
    });
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

async fn serve(State(cluster): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (method, path) = (parts.method, parts.uri.path().to_owned());
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let mut cluster = cluster.lock();
    let kind =
        path.split('/').rev().find(|part| ["jobs", "secrets", "pods"].contains(part)).unwrap_or_default();
    cluster.calls.push(format!("{method} {kind}"));
    if header("authorization") != format!("Bearer {TOKEN}") {
        return status(401, "Unauthorized", "Unauthorized");
    }
    if !is_allowed(&method, &path) || !path.contains("/namespaces/giga/") {
        return status(403, "Forbidden", &format!("{method} {path} is forbidden"));
    }
    let call = cluster.calls.last().cloned().unwrap();
    if let Some((code, message)) = cluster.refusals.get(call.as_str()).copied() {
        return status(code, "Refused", message);
    }
    if kind == "pods" {
        let pods = cluster.waiting.map(|(reason, message)| {
            let state = json!({"waiting": {"reason": reason, "message": message}});
            json!({"status": {"containerStatuses": [{"name": "factory", "state": state}]}})
        });
        assert!(query.starts_with("labelSelector=job-name%3D"), "{query}");
        return axum::Json(json!({"kind": "PodList", "items": pods.into_iter().collect::<Vec<_>>()}))
            .into_response();
    }
    match method {
        Method::POST => {
            assert_eq!(header("content-type"), "application/json");
            let mut object: Value = serde_json::from_slice(&body).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let versions = [("jobs", "batch/v1", "Job"), ("secrets", "v1", "Secret")];
            let fits = |(of, version, name): &(&str, &str, &str)| {
                *of == kind && object["apiVersion"] == *version && object["kind"] == *name
            };
            assert!(versions.iter().any(fits) && object["metadata"]["namespace"] == "giga", "{object}");
            let path = format!("{path}/{name}");
            if cluster.objects.contains_key(&path) {
                return status(409, "AlreadyExists", &format!("{kind} \"{name}\" already exists"));
            }
            cluster.uids += 1;
            object["metadata"]["uid"] = json!(format!("uid-{}", cluster.uids));
            cluster.objects.insert(path, object.clone());
            (StatusCode::CREATED, axum::Json(object)).into_response()
        }
        Method::GET => match cluster.objects.get(&path) {
            Some(object) => axum::Json(object.clone()).into_response(),
            None => status(404, "NotFound", "not found"),
        },
        Method::DELETE => {
            assert_eq!(query, "propagationPolicy=Background", "its Pod would stay");
            let Some(job) = cluster.objects.remove(&path) else {
                return status(404, "NotFound", "not found");
            };
            let uid = job["metadata"]["uid"].clone();
            cluster.objects.retain(|_, object| object["metadata"]["ownerReferences"][0]["uid"] != uid);
            axum::Json(json!({"kind": "Status", "status": "Success"})).into_response()
        }
        _ => status(405, "MethodNotAllowed", "no"),
    }
}

#[async_trait]
impl DriverFixture for World {
    fn open(&self) -> Arc<dyn PoolDriver> {
        Arc::new(KubernetesDriver::new(self.options()).unwrap())
    }

    fn settings(&self) -> PoolSettings {
        PoolSettings {
            driver: DriverKind::Kubernetes,
            image: Some("registry.example/giga-factory:1".to_owned()),
            ..PoolSettings::default()
        }
    }

    async fn count(&self, factory: &FactoryId) -> usize {
        self.jobs_of(factory).len()
    }

    async fn end(&self, factory: &FactoryId) {
        for path in self.jobs_of(factory) {
            let mut cluster = self.cluster.lock();
            let job = cluster.objects.get_mut(&path).unwrap();
            job["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        }
    }
}

giga_testkit::driver_conformance!(World::new().await);

#[tokio::test]
async fn a_factory_is_a_job_and_a_secret_of_it() {
    let world = World::new().await;
    let handle = world.start().await.unwrap();
    assert_eq!(world.calls(), ["POST jobs", "POST secrets"]);
    insta::assert_json_snapshot!("job_and_secret", world.cluster.lock().objects);
    let job = world.jobs_of(&world.order().factory).pop().unwrap();
    assert!(
        !world.cluster.lock().objects[&job].to_string().contains(CREDENTIAL),
        "who may look at Jobs would read it"
    );
    world.open().stop(&world.stop(Some(handle))).await.unwrap();
    assert_eq!(world.calls(), ["DELETE jobs"]);
    assert!(world.cluster.lock().objects.is_empty());
}

#[tokio::test]
async fn a_job_without_its_secret_gets_it() {
    let world = World::new().await;
    world.cluster.lock().refusals.insert("POST secrets", (500, "etcd is away"));
    let error = world.start().await.unwrap_err();
    assert_eq!(error.to_string(), "the API server of Kubernetes failed: etcd is away");
    assert!(error.transient);
    world.cluster.lock().refusals.clear();
    let handle = world.start().await.unwrap();
    assert_eq!(world.calls(), ["POST jobs", "POST secrets", "POST jobs", "GET jobs", "POST secrets"]);
    assert_eq!(world.cluster.lock().objects.len(), 2, "and no second one");
    assert_eq!(handle.split_once('/').unwrap().0, "giga");
}

#[tokio::test]
async fn the_job_of_somebody_else_is_not_taken_for_ours() {
    let world = World::new().await;
    let handle = world.start().await.unwrap();
    let name = handle.split_once('/').unwrap().1.to_owned();
    let path = format!("/apis/batch/v1/namespaces/giga/jobs/{name}");
    world.cluster.lock().objects.get_mut(&path).unwrap()["metadata"]["annotations"] = json!({});
    let error = world.start().await.unwrap_err();
    assert!(error.to_string().contains("is not of factory Gpu.1") && !error.transient, "{error}");
    let deleted = json!("2026-11-18T00:00:00Z");
    let metadata = json!({"annotations": {"gigafactory/factory": "Gpu.1"}, "deletionTimestamp": deleted});
    world.cluster.lock().objects.get_mut(&path).unwrap()["metadata"] = metadata;
    let error = world.start().await.unwrap_err();
    assert!(error.to_string().ends_with("is being deleted still") && error.transient, "{error}");
}

#[tokio::test]
async fn what_is_wrong_is_said_to_the_operator() {
    let world = World::new().await;
    let refused = async |code, message| {
        world.cluster.lock().refusals.insert("POST jobs", (code, message));
        let error = world.start().await.unwrap_err();
        (error.to_string(), error.transient)
    };
    let rights = refused(403, "jobs is forbidden").await;
    assert!(
        rights.0.contains("docs/pool-drivers.md") && rights.0.ends_with(": jobs is forbidden") && !rights.1,
        "{rights:?}"
    );
    let quota = refused(403, "exceeded quota: small").await;
    assert_eq!(quota, ("the namespace's quota is used up: exceeded quota: small".to_owned(), true));
    assert_eq!(refused(422, "spec: bad").await, ("Kubernetes refuses the Job: spec: bad".to_owned(), false));
    assert!(refused(429, "").await.1 && refused(503, "").await.1);
    assert_eq!(refused(404, "x").await.0, "there is no namespace giga in the cluster");
    world.cluster.lock().refusals.clear();

    std::fs::write(world.folder.path().join("token"), "another").unwrap();
    let error = world.start().await.unwrap_err();
    assert!(
        error.transient && error.to_string().contains("does not accept the coordinator's token"),
        "{error}"
    );
    std::fs::write(world.folder.path().join("token"), TOKEN).unwrap();
    let handle = world.start().await.unwrap();

    let order = world.stop(Some(handle));
    world.cluster.lock().waiting = Some(("ContainerCreating", ""));
    assert_eq!(world.open().is_alive(&order).await.unwrap(), Some(true));
    world.cluster.lock().waiting = Some(("ImagePullBackOff", "not found"));
    let error = world.open().is_alive(&order).await.unwrap_err();
    assert_eq!(error.to_string(), "the image cannot be pulled: ImagePullBackOff: not found");
    world.cluster.lock().refusals.insert("GET pods", (403, "pods is forbidden"));
    assert_eq!(world.open().is_alive(&order).await.unwrap(), Some(true), "a right that it can do without");

    let away = KubernetesOptions { url: "http://127.0.0.1:1".to_owned(), ..world.options() };
    let error = KubernetesDriver::new(away).unwrap().start(&world.order()).await.unwrap_err();
    assert!(error.transient && error.to_string().contains("cannot be reached"), "{error}");
    let mut elsewhere = world.order();
    elsewhere.settings.namespace = Some("../kube-system".to_owned());
    let error = world.open().start(&elsewhere).await.unwrap_err();
    assert!(error.to_string().contains("is no name of a namespace"), "{error}");
}
