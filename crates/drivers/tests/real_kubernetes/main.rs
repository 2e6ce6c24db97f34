//! `kubernetes` against a real API server with its etcd: run by name, with `KUBE_APISERVER` and `ETCD` set to the programs.
//!
//! The coordinator has the rights of docs/pool-drivers.md and no others. There is no controller beside the server, so Jobs have no
//! Pods here, and Secrets whose Job is gone stay.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{DriverKind, FactoryId, PoolSettings};
use giga_drivers::{KubernetesDriver, KubernetesOptions, Token};
use giga_ports::{PoolDriver, StartOrder};
use giga_testkit::certificates::Authority;
use giga_testkit::driver_suite::{CREDENTIAL, DriverFixture, members};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

const ADMIN: &str = "admin-of-the-test";
const COORDINATOR: &str = "coordinator-of-the-test";

struct Server {
    url: String,
    authority: Authority,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
    _processes: [Child; 2],
}

fn program(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("set {variable} to the program")).into()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(program: &Path, args: &[String], log: &Path) -> Child {
    let log = std::fs::File::create(log).unwrap();
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.kill_on_drop(true).spawn().unwrap()
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let authority = Authority::new();
        let served = authority.issue("apiserver", &["127.0.0.1"]);
        let [etcd, peer, port] = [free_port(), free_port(), free_port()];
        let args = [
            format!("--data-dir={}", file("etcd")),
            format!("--listen-client-urls=http://127.0.0.1:{etcd}"),
            format!("--advertise-client-urls=http://127.0.0.1:{etcd}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        let store = spawn(&program("ETCD"), &args, &folder.path().join("etcd.log"));
        let tokens = format!("{ADMIN},admin,1,\"system:masters\"\n{COORDINATOR},coordinator,2\n");
        std::fs::write(file("tokens"), tokens).unwrap();
        let args = [
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", file("certs")),
            format!("--tls-cert-file={}", served.cert.display()),
            format!("--tls-private-key-file={}", served.key.display()),
            format!("--token-auth-file={}", file("tokens")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", served.cert.display()),
            format!("--service-account-signing-key-file={}", served.key.display()),
        ];
        let server = spawn(&program("KUBE_APISERVER"), &args, &folder.path().join("apiserver.log"));
        let roots = reqwest::Certificate::from_pem_bundle(&authority.pem()).unwrap();
        let http = reqwest::Client::builder().tls_certs_only(roots).build().unwrap();
        let url = format!("https://127.0.0.1:{port}");
        let server = Self { url, authority, http, _folder: folder, _processes: [store, server] };
        server.until_ready().await;
        server
    }

    async fn until_ready(&self) {
        let ready = async {
            while !matches!(self.http.get(format!("{}/readyz", self.url)).bearer_auth(ADMIN).send().await, Ok(answer) if answer.status().is_success())
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(Duration::from_mins(3), ready).await.is_err() {
            let log = std::fs::read_to_string(self._folder.path().join("apiserver.log")).unwrap_or_default();
            panic!(
                "the API server is not ready:\n{}",
                log.lines().rev().take(20).collect::<Vec<_>>().join("\n")
            );
        }
    }

    async fn call(&self, token: &str, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.http.request(method.clone(), format!("{}{path}", self.url)).bearer_auth(token);
        if let Some(body) = body {
            let kind =
                if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
            request = request.header("content-type", kind).body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
    }

    async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, answer) = self.call(ADMIN, method, path, body).await;
        assert!((200..300).contains(&status), "{status} {answer}");
        answer
    }

    /// A namespace in which the coordinator may do what it needs to.
    async fn namespace<'a>(&'a self, name: &'a str) -> Place<'a> {
        self.admin(Method::POST, "/api/v1/namespaces", Some(json!({"metadata": {"name": name}}))).await;
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}");
        let rules = json!([
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        ]);
        let role = json!({"metadata": {"name": "pools"}, "rules": rules});
        self.admin(Method::POST, &format!("{rbac}/roles"), Some(role)).await;
        let binding = json!({
            "metadata": {"name": "pools"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pools"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "coordinator"}],
        });
        self.admin(Method::POST, &format!("{rbac}/rolebindings"), Some(binding)).await;
        let place = Place { server: self, namespace: name };
        // The server's own copy of the rights may be a moment old.
        let known = async {
            while self.call(COORDINATOR, Method::GET, &place.jobs("/none"), None).await.0 == 403 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), known).await.unwrap();
        place
    }
}

struct Place<'a> {
    server: &'a Server,
    namespace: &'a str,
}

impl Place<'_> {
    fn jobs(&self, rest: &str) -> String {
        format!("/apis/batch/v1/namespaces/{}/jobs{rest}", self.namespace)
    }

    async fn jobs_of(&self, factory: &FactoryId) -> Vec<String> {
        let all = self.server.admin(Method::GET, &self.jobs(""), None).await;
        let jobs = all["items"].as_array().unwrap().iter().map(|job| &job["metadata"]);
        let of_it = jobs.filter(|job| job["annotations"]["gigafactory/factory"] == factory.as_str());
        of_it.map(|job| job["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[async_trait]
impl DriverFixture for Place<'_> {
    fn open(&self) -> Arc<dyn PoolDriver> {
        let options = KubernetesOptions {
            url: self.server.url.clone(),
            token: Token::Text(COORDINATOR.to_owned()),
            ca_cert: Some(self.server.authority.file()),
            namespace: self.namespace.to_owned(),
            limit: KubernetesOptions::LIMIT,
        };
        Arc::new(KubernetesDriver::new(options).unwrap())
    }

    fn settings(&self) -> PoolSettings {
        PoolSettings {
            driver: DriverKind::Kubernetes,
            image: Some("registry.example/giga-factory:1".to_owned()),
            ..PoolSettings::default()
        }
    }

    async fn count(&self, factory: &FactoryId) -> usize {
        self.jobs_of(factory).await.len()
    }

    async fn end(&self, factory: &FactoryId) {
        for name in self.jobs_of(factory).await {
            let ended = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
            self.server.admin(Method::PATCH, &self.jobs(&format!("/{name}/status")), Some(ended)).await;
        }
    }
}

/// What is sent is in what is kept: a field that the server does not know would be dropped without a word.
fn assert_kept(sent: &Value, kept: &Value, place: &str) {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => {
            for (name, value) in sent {
                assert_kept(value, kept.get(name).unwrap_or(&Value::Null), &format!("{place}.{name}"));
            }
        }
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => {
            for (at, (sent, kept)) in sent.iter().zip(kept).enumerate() {
                assert_kept(sent, kept, &format!("{place}[{at}]"));
            }
        }
        (sent, kept) => assert_eq!(sent, kept, "{place}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_takes_what_the_driver_sends() {
    let server = Server::start().await;
    members::one_that_is_started_is_there_until_it_is_stopped(&server.namespace("one").await).await;
    members::a_start_that_comes_twice_starts_one(&server.namespace("two").await).await;
    members::two_that_start_the_same_at_once_start_one(&server.namespace("three").await).await;
    members::a_coordinator_that_comes_back_finds_what_the_one_before_started(&server.namespace("four").await)
        .await;
    members::one_whose_handle_was_never_noted_is_found_and_stopped(&server.namespace("five").await).await;
    members::what_is_gone_or_never_was_can_be_stopped(&server.namespace("six").await).await;
    members::one_that_ended_by_itself_is_seen_to_be_gone(&server.namespace("seven").await).await;
    members::a_stop_meets_nobody_else(&server.namespace("eight").await).await;

    // No field is dropped without a word, and the Secret belongs to the Job.
    let place = server.namespace("nine").await;
    let order = StartOrder {
        pool: "gpu".parse().unwrap(),
        settings: place.settings(),
        factory: "Gpu.1".parse().unwrap(),
        url: "https://giga.example".to_owned(),
        credential: CREDENTIAL.to_owned(),
    };
    let handle = place.open().start(&order).await.unwrap();
    let name = handle.split_once('/').unwrap().1;
    let snapshot = include_str!("../drivers/snapshots/drivers__kubernetes__job_and_secret.snap");
    let sent: Value = serde_json::from_str(snapshot.splitn(3, "---\n").nth(2).unwrap()).unwrap();
    let mut sent: Vec<Value> = sent.as_object().unwrap().values().cloned().collect();
    for object in &mut sent {
        object["metadata"]["namespace"] = json!("nine");
        object["metadata"].as_object_mut().unwrap().remove("uid");
        object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        object.as_object_mut().unwrap().remove("stringData");
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            // Servers before 1.21 drop it unless they are told not to.
            spec.remove("ttlSecondsAfterFinished");
        }
    }
    let job = server.admin(Method::GET, &place.jobs(&format!("/{name}")), None).await;
    let secret = format!("/api/v1/namespaces/nine/secrets/giga-pool-{name}");
    let kept = server.admin(Method::GET, &secret, None).await;
    assert_eq!(kept["metadata"]["ownerReferences"][0]["uid"], job["metadata"]["uid"]);
    for object in &sent {
        assert_kept(
            object,
            if object["kind"] == "Job" { &job } else { &kept },
            object["kind"].as_str().unwrap(),
        );
    }

    // What it has no right to.
    for (method, path) in [
        (Method::GET, secret.as_str()),
        (Method::DELETE, secret.as_str()),
        (Method::GET, "/api/v1/namespaces/nine/secrets"),
        (Method::GET, "/apis/batch/v1/namespaces/default/jobs"),
    ] {
        assert_eq!(server.call(COORDINATOR, method, path, None).await.0, 403, "{path}");
    }
    let mut elsewhere = order.clone();
    elsewhere.settings.namespace = Some("default".to_owned());
    let error = place.open().start(&elsewhere).await.unwrap_err();
    assert!(error.to_string().contains("docs/pool-drivers.md") && !error.transient, "{error}");
}
