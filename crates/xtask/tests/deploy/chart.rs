//! The chart, rendered by Helm itself with every example, and judged by the schemas of Kubernetes (the oldest and the newest
//! that it is for), KEDA and the Prometheus operator.

use std::process::Command;

use serde_json::{Value, json};

use crate::{fed, judged, root, tools};

fn template(values: &str, set: &[&str]) -> Result<String, String> {
    let mut helm = Command::new(tools().join("bin/helm"));
    helm.args(["template", "giga"]).arg(root().join("deploy/helm/gigafactory")).args(["-n", "work"]);
    helm.args(["-f", "-"]);
    for value in set {
        helm.args(["--set", value]);
    }
    // None of the user's own settings or plugins.
    let output = fed(helm.env("HOME", "/nonexistent").env_remove("KUBECONFIG"), values);
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn example(name: &str) -> String {
    let file = root().join("deploy/helm/examples").join(format!("{name}.yaml"));
    std::fs::read_to_string(file).unwrap()
}

fn rendered(name: &str) -> Vec<Value> {
    let text = template(&example(name), &[]).unwrap();
    let documents = judged(&["manifests"], &text).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    let documents = documents.as_array().unwrap().clone();
    documents.iter().for_each(is_confined);
    assert!(!documents.iter().any(|document| document["kind"] == "Secret"), "secrets are named, never made");
    documents
}

fn pod(document: &Value) -> Option<&Value> {
    let spec = &document["spec"];
    [&spec["template"]["spec"], &spec["jobTargetRef"]["template"]["spec"]]
        .into_iter()
        .find(|pod| pod.is_object())
}

/// Every pod of every example: not root, nothing to gain, nothing to write to but its volumes.
fn is_confined(document: &Value) {
    let Some(pod) = pod(document) else { return };
    let name = &document["metadata"]["name"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
    assert_eq!(pod["securityContext"]["runAsUser"], 10001, "{name}");
    let is_nested = pod["hostUsers"] == false;
    let seccomp = if is_nested { "Unconfined" } else { "RuntimeDefault" };
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], seccomp, "{name}");
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(context["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{name}");
        assert!(context["privileged"].is_null() && pod["hostNetwork"].is_null(), "{name}");
        assert!(container["resources"]["limits"]["memory"].is_string(), "{name} has no bound of memory");
        let mounts = container["volumeMounts"].as_array().unwrap();
        let places: Vec<&str> = mounts.iter().filter_map(|mount| mount["mountPath"].as_str()).collect();
        assert!(places.contains(&"/tmp") && places.contains(&"/var/lib/giga"), "{name}: {places:?}");
    }
}

fn find<'a>(documents: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found = documents.iter().filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.next().unwrap_or_else(|| panic!("there is no {kind} {name}"))
}

fn kinds(documents: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = documents.iter().filter_map(|document| document["kind"].as_str()).collect();
    kinds.sort_unstable();
    kinds
}

fn has_argument(pod: &Value, wanted: &str) -> bool {
    pod["containers"][0]["args"].as_array().unwrap().iter().any(|argument| argument == wanted)
}

fn variable<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    pod["containers"][0]["env"].as_array().unwrap().iter().find(|variable| variable["name"] == name)
}

#[test]
fn the_least_is_a_coordinator_and_what_it_is_reached_by() {
    let documents = rendered("bare");
    assert_eq!(kinds(&documents), ["Deployment", "Service", "ServiceAccount", "ServiceAccount"]);
    let coordinator = pod(find(&documents, "Deployment", "giga-gigafactory")).unwrap();
    assert_eq!(coordinator["automountServiceAccountToken"], false);
    let image = format!("registry.example/gigafactory-coordinator:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(coordinator["containers"][0]["image"], image.as_str());
    let store = variable(coordinator, "GIGA_STORE").unwrap();
    assert_eq!(store["valueFrom"]["secretKeyRef"], json!({"name": "giga-store", "key": "url"}));
}

#[test]
fn a_factory_that_stays_has_its_own_name_and_token() {
    let documents = rendered("minimal");
    let deployment = find(&documents, "Deployment", "giga-gigafactory-linux-1");
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    let factory = pod(deployment).unwrap();
    assert!(
        has_argument(factory, "--id=linux-1") && has_argument(factory, "--token-file=/etc/giga/token/token")
    );
    assert_eq!(variable(factory, "GIGA_URL").unwrap()["value"], "http://giga-gigafactory.work.svc:7717");
    assert_eq!(variable(factory, "GIGA_ALLOW_PLAIN_HTTP").unwrap()["value"], "true");
    assert_eq!(factory["serviceAccountName"], "giga-gigafactory-factory");
    let policy = find(&documents, "NetworkPolicy", "giga-gigafactory-factory");
    assert_eq!(policy["spec"]["ingress"], json!([]));
    let internet = &policy["spec"]["egress"][2]["to"][0]["ipBlock"];
    assert!(internet["except"].as_array().unwrap().contains(&json!("169.254.0.0/16")), "{internet}");
    assert!(
        documents.iter().all(|document| document["kind"] != "PodDisruptionBudget"),
        "one could never be drained"
    );
}

#[test]
fn several_coordinators_with_nats_and_tls() {
    let documents = rendered("nats-tls");
    let deployment = find(&documents, "Deployment", "giga-gigafactory");
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    let coordinator = pod(deployment).unwrap();
    for wanted in [
        "--tls-cert=/etc/giga/tls/tls.crt",
        "--nats-key=/etc/giga/nats/key",
        "--secrets-key=/etc/giga/secrets/key",
        "--artifacts=s3://giga-artifacts/prod",
        "--oidc-grant=eng=operator:web,api",
        "--metrics-listen=0.0.0.0:9717",
    ] {
        assert!(has_argument(coordinator, wanted), "{wanted}");
    }
    let container = &coordinator["containers"][0];
    for (probe, path) in
        [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]
    {
        assert_eq!(container[probe]["httpGet"]["path"], path);
        assert_eq!(container[probe]["httpGet"]["scheme"], "HTTPS");
    }
    assert_eq!(find(&documents, "PodDisruptionBudget", "giga-gigafactory")["spec"]["minAvailable"], 2);
    assert_eq!(
        find(&documents, "ServiceMonitor", "giga-gigafactory")["spec"]["endpoints"][0]["port"],
        "metrics"
    );
    let policy = find(&documents, "NetworkPolicy", "giga-gigafactory");
    let from = &policy["spec"]["ingress"][1]["from"][0]["namespaceSelector"]["matchLabels"];
    assert_eq!(from["kubernetes.io/metadata.name"], "monitoring");
    let factory = pod(find(&documents, "Deployment", "giga-gigafactory-build-1")).unwrap();
    assert_eq!(factory["containers"][0]["securityContext"]["procMount"], "Unmasked");
    assert!(has_argument(factory, "--sandbox=require") && has_argument(factory, "--capability=license:qt=2"));
    assert_eq!(variable(factory, "GIGA_CA_CERT").unwrap()["value"], "/etc/giga/ca/ca.crt");
    assert!(variable(factory, "GIGA_ALLOW_PLAIN_HTTP").is_none());
}

#[test]
fn pools_are_asked_about_with_their_own_credential() {
    let documents = rendered("pools");
    let jobs = find(&documents, "ScaledJob", "giga-gigafactory-gpu");
    let trigger = &jobs["spec"]["triggers"][0];
    assert_eq!(trigger["type"], "external", "KEDA does not push to a ScaledJob");
    let metadata = json!({
        "scalerAddress": "giga-gigafactory.work.svc:7717",
        "pool": "gpu",
        "tokenFromEnv": "GIGA_SCALER_TOKEN",
    });
    assert_eq!(trigger["metadata"], metadata);
    assert_eq!(jobs["spec"]["scalingStrategy"]["strategy"], "default");
    assert_eq!(jobs["spec"]["minReplicaCount"], 0);
    let template = &jobs["spec"]["jobTargetRef"];
    assert_eq!(template["backoffLimit"], 0);
    let factory = pod(jobs).unwrap();
    assert_eq!(factory["restartPolicy"], "Never");
    assert!(has_argument(factory, "--pool=gpu") && !has_argument(factory, "--id=gpu"));
    assert_eq!(factory["terminationGracePeriodSeconds"], 600);
    assert!(!factory.to_string().contains("--seats"), "the pool itself says how many, unless the values do");
    // What is resolved is the environment of the container that the trigger's variable is in.
    assert_eq!(jobs["spec"]["envSourceContainerName"], factory["containers"][0]["name"]);
    let token = &variable(factory, "GIGA_SCALER_TOKEN").unwrap()["valueFrom"]["secretKeyRef"];
    assert_eq!(*token, json!({"name": "pool-gpu", "key": "scaler"}));
    let trusted = find(&documents, "TriggerAuthentication", "giga-gigafactory-gpu");
    assert_eq!(
        trusted["spec"]["secretTargetRef"],
        json!([{"parameter": "caCert", "name": "giga-ca", "key": "ca.crt"}])
    );
    assert_eq!(trigger["authenticationRef"]["name"], "giga-gigafactory-gpu");

    // Who may call: factories, coordinators, the namespace of the driver's Jobs, and KEDA; without pools no KEDA.
    let from = |documents: &[Value]| {
        let policy = find(documents, "NetworkPolicy", "giga-gigafactory");
        policy["spec"]["ingress"][0]["from"].as_array().unwrap().clone()
    };
    let of_namespace =
        |name: &str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}});
    let callers = from(&documents);
    assert_eq!(callers.len(), 4, "{callers:?}");
    assert!(
        callers.contains(&of_namespace("keda")) && callers.contains(&of_namespace("giga-jobs")),
        "{callers:?}"
    );
    assert_eq!(from(&rendered("minimal")).len(), 2);

    let pushed = find(&documents, "ScaledObject", "giga-gigafactory-quick");
    assert_eq!(pushed["spec"]["triggers"][0]["type"], "external-push");
    let deployment = find(&documents, "Deployment", "giga-gigafactory-quick");
    assert!(deployment["spec"]["replicas"].is_null(), "an upgrade would take back what KEDA decided");
    assert_eq!(pod(deployment).unwrap()["terminationGracePeriodSeconds"], 900);
}

#[test]
fn rights_are_given_for_the_driver_alone_and_no_more_than_it_takes() {
    let documents = rendered("pools");
    let role = find(&documents, "Role", "giga-gigafactory-pools");
    assert_eq!(role["metadata"]["namespace"], "giga-jobs");
    let rules = json!([
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]);
    assert_eq!(role["rules"], rules);
    let bound = find(&documents, "RoleBinding", "giga-gigafactory-pools");
    let subjects = json!([{"kind": "ServiceAccount", "name": "giga-gigafactory", "namespace": "work"}]);
    assert_eq!(bound["subjects"], subjects);
    assert!(
        !documents.iter().any(|it| it["kind"].as_str().is_some_and(|kind| kind.starts_with("ClusterRole")))
    );
    let without = rendered("nats-tls");
    assert!(!kinds(&without).iter().any(|kind| kind.starts_with("Role")));
    assert_eq!(
        pod(find(&without, "Deployment", "giga-gigafactory")).unwrap()["automountServiceAccountToken"],
        false
    );
}

/// Each with the words that help.
#[test]
fn values_that_do_not_work_are_refused() {
    let good = example("bare");
    for (set, wanted) in [
        ("coordinator.store.secret=", "coordinator.store.secret names the Secret with the URL of PostgreSQL"),
        ("coordinator.replicas=2", "set coordinator.artifacts to a bucket, or coordinator.replicas to 1"),
        ("coordinator.replicas=0", "/coordinator/replicas"),
        ("coordinator.artifacts=/data", "/coordinator/artifacts"),
        ("tls.allowPlainHttp=false", "set tls.secret, or tls.allowPlainHttp=true"),
        ("coordinator.natsKey.secret=nk", "set coordinator.broker.secret"),
        ("coordinator.oidc.issuer=http://login", "/coordinator/oidc/issuer"),
        ("coordinator.oidc.issuer=https://login", "needs coordinator.oidc.clientId"),
        ("coordinator.oidc.grants={eng=king}", "/coordinator/oidc/grants/0"),
        ("metrics.serviceMonitor.enabled=true", "needs metrics.enabled=true"),
        ("coordinator.replica=3", "replica"),
        ("factories.linux-1.seats=2", "tokenSecret"),
        ("factories.Linux.tokenSecret.secret=x", "/factories"),
        ("factoryDefaults.sandbox=on", "/factoryDefaults/sandbox"),
        ("factoryDefaults.terminationGracePeriodSeconds=5", "/factoryDefaults/terminationGracePeriodSeconds"),
        ("pools.gpu.tokenSecret.secret=x", "scalerSecret"),
        ("pools.gpu.kind=pods", "/pools/gpu/kind"),
        ("image.coordinator.digest=abc", "/image/coordinator/digest"),
    ] {
        let said = template(&good, &[set]).expect_err(set);
        // Helm writes places as `coordinator.replicas` or `/coordinator/replicas`, by its version.
        let dotted = wanted.trim_start_matches('/').replace('/', ".");
        assert!(said.contains(wanted) || said.contains(&dotted), "{set}: {said}");
    }
    let pools = example("pools");
    let same = ["factories.gpu.tokenSecret.secret=x"];
    assert!(template(&pools, &same).unwrap_err().contains("gpu is a pool and a factory"));
    assert!(template(&pools, &["tls.ca.secret="]).unwrap_err().contains("tls.ca.secret: set it"));
}

#[test]
fn helm_finds_nothing_to_complain_about() {
    let folder = root().join("deploy/helm");
    for name in ["minimal", "nats-tls", "pools", "bare"] {
        let mut lint = Command::new(tools().join("bin/helm"));
        lint.args(["lint", "--strict", "--quiet"]).arg(folder.join("gigafactory"));
        lint.arg("-f").arg(folder.join("examples").join(format!("{name}.yaml")));
        let output = lint.env("HOME", "/nonexistent").env_remove("KUBECONFIG").output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// The judges see what they are there for.
#[test]
fn manifests_that_no_cluster_would_take_are_noticed() {
    let text = template(&example("pools"), &[]).unwrap();
    for (good, bad, wanted) in [
        ("topologySpreadConstraints:", "topologySpreading:", "topologySpreading"),
        ("restartPolicy: Never", "restartPolicy: 7", "restartPolicy"),
        ("backoffLimit: 0", "backoff: 0", "Job giga-gigafactory-gpu"),
        ("tokenFromEnv: GIGA_SCALER_TOKEN", "tokenFromEnv: 7", "ScaledJob giga-gigafactory-gpu"),
        ("strategy: gradual", "strategy: slow", "slow"),
    ] {
        assert!(text.contains(good), "{good}");
        let wrong = judged(&["manifests"], &text.replace(good, bad)).expect_err(bad);
        assert!(wrong.contains(wanted), "{bad}: {wrong}");
    }
}
