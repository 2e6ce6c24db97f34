//! What is made in the cluster: a Job and a Secret for each factory.

use giga_domain::{FactoryId, PoolName};
use giga_ports::pool_driver::CREDENTIAL_VARIABLE;
use giga_ports::{DriverError, StartOrder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// On Jobs, Pods and Secrets: to which pool they belong.
const POOL: &str = "gigafactory/pool";
/// As a label the name of the Job, because a label may not be as long as an id; as an annotation the id.
pub(super) const FACTORY: &str = "gigafactory/factory";
/// A label, and the name of everything in a Job's Pods, has no more.
const NAME_CHARS: usize = 63;
/// Of the user in our image; any other number that is not 0 does as well.
const USER: u32 = 10_001;
/// One that is told to end saves its jobs and hands them back.
const DRAIN_SECONDS: u32 = 300;
/// A coordinator that is away finds out within this time how a factory ended.
const KEPT_SECONDS: u32 = 3_600;
const KEY: &str = "token";
const DATA: &str = "/var/lib/giga";

/// Always the same for a factory: that is how its Job is found again.
pub(super) fn job_name(factory: &FactoryId) -> String {
    let id = factory.as_str();
    if is_label(id) {
        return id.to_owned();
    }
    let legal = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let digest = const_hex::encode(&Sha256::digest(id.as_bytes())[..5]);
    let start: String = id.chars().map(legal).take(NAME_CHARS - 1 - digest.len()).collect();
    format!("{}-{digest}", start.trim_matches('-'))
}

/// No Secret of anybody else's is called so.
fn secret_name(job: &str) -> String {
    format!("giga-pool-{job}")
}

/// A label ends with a letter or a digit, which the name of a pool need not.
fn pool_label(pool: &PoolName) -> &str {
    pool.as_str().trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// RFC 1123: what names of namespaces and of Jobs with Pods may be.
fn is_label(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty()
        && name.len() <= NAME_CHARS
        && name.chars().all(legal)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// It becomes part of a path.
pub(super) fn check_namespace(namespace: &str) -> Result<(), DriverError> {
    if is_label(namespace) {
        return Ok(());
    }
    let rule = "1 to 63 of a-z, 0-9 and `-`, with no `-` at either end";
    Err(DriverError::lasting(format!("`{namespace}` is no name of a namespace: {rule}")))
}

fn labels(order: &StartOrder, name: &str) -> Value {
    json!({ POOL: pool_label(&order.pool), FACTORY: name, "app.kubernetes.io/managed-by": "gigafactory" })
}

pub(super) fn job(order: &StartOrder, namespace: &str) -> Result<Value, DriverError> {
    let name = job_name(&order.factory);
    let image = order.settings.image.as_deref().filter(|image| !image.is_empty());
    let image = image.ok_or_else(|| DriverError::lasting("the pool has no image; set one with --image"))?;
    let words: Vec<String> =
        ["factory", "run"].map(str::to_owned).into_iter().chain(order.arguments()).collect();
    let labels = labels(order, &name);
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": { FACTORY: order.factory },
        },
        "spec": {
            // A factory that ends is not started again by the cluster: the coordinator decides whether one is wanted.
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {
                "metadata": {
                    "labels": labels,
                    // Whoever makes room on a node is to wait for its end.
                    "annotations": { "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" },
                },
                "spec": {
                    "restartPolicy": "Never",
                    // It runs other people's code: it gets no rights in the cluster.
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": DRAIN_SECONDS,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "fsGroup": USER,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [{
                        "name": "factory",
                        "image": image,
                        "args": words,
                        "env": [
                            { "name": "GIGA_DATA", "value": format!("{DATA}/data") },
                            {
                                "name": CREDENTIAL_VARIABLE,
                                "valueFrom": { "secretKeyRef": { "name": secret_name(&name), "key": KEY } },
                            },
                        ],
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": { "drop": ["ALL"] },
                        },
                        "volumeMounts": [
                            { "name": "data", "mountPath": DATA },
                            { "name": "tmp", "mountPath": "/tmp" },
                        ],
                    }],
                    "volumes": [{ "name": "data", "emptyDir": {} }, { "name": "tmp", "emptyDir": {} }],
                },
            },
        },
    }))
}

/// Of the Job with this uid, with which the cluster removes it.
pub(super) fn secret(order: &StartOrder, namespace: &str, uid: &str) -> Value {
    let name = job_name(&order.factory);
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "immutable": true,
        "metadata": {
            "name": secret_name(&name),
            "namespace": namespace,
            "labels": labels(order, &name),
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid }],
        },
        "stringData": { KEY: order.credential },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_and_never_those_of_another() {
        let name = |id: &str| job_name(&id.parse().unwrap());
        assert_eq!(name("gpu-7f"), "gpu-7f");
        let long = "x".repeat(64);
        let ids = ["Gpu-7f", "gpu.7f", "gpu_7f", "gpu-", long.as_str(), &"X".repeat(64)];
        let mut names: Vec<String> = ids.iter().map(|id| name(id)).collect();
        assert!(names.iter().all(|name| is_label(name)), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ids.len());
    }

    #[test]
    fn the_name_of_a_pool_becomes_a_label() {
        let label = |name: &str| pool_label(&name.parse().unwrap()).to_owned();
        assert_eq!((label("gpu.a"), label("gpu-_.")), ("gpu.a".to_owned(), "gpu".to_owned()));
    }

    #[test]
    fn a_namespace_cannot_lead_elsewhere() {
        for wrong in ["", "a/b", "..", "A", "a?b", "-a", "a-", "a%2f"] {
            let error = check_namespace(wrong).unwrap_err();
            assert!(error.to_string().contains("is no name of a namespace") && !error.transient, "{wrong}");
        }
        check_namespace("giga-1").unwrap();
    }
}
