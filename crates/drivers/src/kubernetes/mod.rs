//! `kubernetes`: factories as Jobs of a cluster, a Job each.
//!
//! With the least rights: Jobs of one namespace are made, read and deleted, Secrets only made. A credential is in a Secret
//! and not in the Job, because whoever may look at Jobs and Pods, which is nearly everybody in a namespace, would read it there. The
//! Secret belongs to its Job, so the cluster removes it with the Job, and nobody here needs the right to read or delete one.
//!
//! Calls are few and plain, so they go over the HTTP client that the workspace has; the crate `kube` would bring a hundred others.

mod client;
mod objects;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{DriverKind, PoolSettings};
use giga_ports::{DriverError, PoolDriver, StartOrder, StopOrder};
use reqwest::Method;
use serde_json::Value;

use self::client::{Api, Refused};
use self::objects::{FACTORY, check_namespace, job, job_name, secret};

/// Where a Pod finds what it may do at the API server.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Why a container does not start, and will not.
const DOES_NOT_START: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
];

#[derive(Debug, Clone)]
pub struct KubernetesOptions {
    /// Of the API server, such as `https://10.0.0.1:443`.
    pub url: String,
    pub token: Token,
    /// PEM; without it, the roots of the system.
    pub ca_cert: Option<PathBuf>,
    /// For pools that name none.
    pub namespace: String,
    /// How long one call may take.
    pub limit: Duration,
}

/// Who the coordinator is to the API server.
#[derive(Clone)]
pub enum Token {
    /// Read again for every call: the cluster replaces it every hour.
    File(PathBuf),
    Text(String),
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text"),
        }
    }
}

impl KubernetesOptions {
    pub const LIMIT: Duration = Duration::from_secs(30);

    /// Those of the cluster that this process runs in, if it does.
    pub fn of_this_cluster(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Self::from_service_account(variable, Path::new(SERVICE_ACCOUNT))
    }

    /// Of the cluster that the operator names, or of the one that this process runs in; `variable` reads its environment. None
    /// where there is neither.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, DriverError> {
        let Some(url) = variable("GIGA_KUBERNETES_URL") else {
            return Ok(Self::of_this_cluster(variable));
        };
        let missing =
            |name: &str| DriverError::lasting(format!("GIGA_KUBERNETES_URL is set, so set {name} too"));
        let wanted = |name: &str| variable(name).ok_or_else(|| missing(name));
        Ok(Some(Self {
            url,
            token: Token::File(wanted("GIGA_KUBERNETES_TOKEN_FILE")?.into()),
            ca_cert: variable("GIGA_KUBERNETES_CA_CERT").map(PathBuf::from),
            namespace: wanted("GIGA_KUBERNETES_NAMESPACE")?,
            limit: Self::LIMIT,
        }))
    }

    fn from_service_account(variable: impl Fn(&str) -> Option<String>, folder: &Path) -> Option<Self> {
        let host = variable("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty())?;
        let port = variable("KUBERNETES_SERVICE_PORT").filter(|port| !port.is_empty());
        let namespace = std::fs::read_to_string(folder.join("namespace")).ok()?.trim().to_owned();
        let token = folder.join("token");
        if !token.exists() {
            return None;
        }
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        Some(Self {
            url: format!("https://{host}:{}", port.as_deref().unwrap_or("443")),
            token: Token::File(token),
            ca_cert: Some(folder.join("ca.crt")),
            namespace,
            limit: Self::LIMIT,
        })
    }
}

#[derive(Debug)]
pub struct KubernetesDriver {
    api: Api,
    namespace: String,
}

impl KubernetesDriver {
    pub fn new(options: KubernetesOptions) -> Result<Self, DriverError> {
        let namespace = options.namespace.clone();
        check_namespace(&namespace)?;
        Ok(Self { api: Api::new(options)?, namespace })
    }

    fn namespace<'a>(&'a self, settings: &'a PoolSettings) -> Result<&'a str, DriverError> {
        let namespace = settings.namespace.as_deref().unwrap_or(&self.namespace);
        check_namespace(namespace)?;
        Ok(namespace)
    }

    /// The place of a member's Job: what the start answered, where it is known, because the pool may name another namespace now.
    fn place(&self, order: &StopOrder) -> Result<(String, String), DriverError> {
        let name = job_name(&order.factory);
        let noted = order.handle.as_deref().and_then(|handle| handle.split_once('/'));
        if let Some((namespace, noted)) = noted.filter(|(_, noted)| *noted == name) {
            check_namespace(namespace)?;
            return Ok((namespace.to_owned(), noted.to_owned()));
        }
        Ok((self.namespace(&order.settings)?.to_owned(), name))
    }

    /// The Job that has the name already, if it is this member's.
    async fn known(&self, order: &StartOrder, path: &str, name: &str) -> Result<Value, DriverError> {
        let known = self.api.call(Method::GET, &format!("{path}/{name}"), None).await;
        let known = known.map_err(|refused| match refused {
            Refused::NotFound(_) => DriverError::transient(format!("Job {name} has just gone")),
            other => other.into(),
        })?;
        if known["metadata"]["annotations"][FACTORY] != order.factory.as_str() {
            return Err(DriverError::lasting(format!(
                "there is a Job {name} already, and it is not of factory {}; delete it, or use another namespace",
                order.factory
            )));
        }
        if !known["metadata"]["deletionTimestamp"].is_null() {
            return Err(DriverError::transient(format!("Job {name} is being deleted still")));
        }
        Ok(known)
    }

    /// Why its Pod does not start, where that is known and may be read.
    async fn complaint(&self, namespace: &str, name: &str) -> Option<String> {
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=job-name%3D{name}&limit=1");
        let pods = self.api.call(Method::GET, &path, None).await.ok()?;
        let status = &pods["items"][0]["status"]["containerStatuses"][0]["state"]["waiting"];
        let reason = status["reason"].as_str().filter(|reason| DOES_NOT_START.contains(reason))?;
        let message = status["message"].as_str().unwrap_or_default();
        let message: String = message.chars().filter(|c| !c.is_control()).take(300).collect();
        let what = if reason.contains("Image") {
            "the image cannot be pulled"
        } else {
            "the container does not start"
        };
        Some(format!("{what}: {reason}{}{message}", if message.is_empty() { "" } else { ": " }))
    }
}

fn jobs(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}

#[async_trait]
impl PoolDriver for KubernetesDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Kubernetes
    }

    async fn start(&self, order: &StartOrder) -> Result<String, DriverError> {
        let namespace = self.namespace(&order.settings)?;
        let name = job_name(&order.factory);
        let path = jobs(namespace);
        let made = self.api.call(Method::POST, &path, Some(&job(order, namespace)?)).await;
        let made = match made {
            Ok(made) => made,
            Err(Refused::Exists(_)) => self.known(order, &path, &name).await?,
            Err(Refused::NotFound(_)) => {
                return Err(DriverError::lasting(format!(
                    "there is no namespace {namespace} in the cluster"
                )));
            }
            Err(other) => return Err(other.into()),
        };
        let uid = made["metadata"]["uid"].as_str().ok_or_else(|| {
            DriverError::lasting(
                "the API server answered a Job without a uid; is it a Kubernetes API server?",
            )
        })?;
        // The container waits for it: the Job has to be there first, so that the Secret can belong to it.
        let secret = secret(order, namespace, uid);
        match self
            .api
            .call(Method::POST, &format!("/api/v1/namespaces/{namespace}/secrets"), Some(&secret))
            .await
        {
            Ok(_) | Err(Refused::Exists(_)) => Ok(format!("{namespace}/{name}")),
            Err(other) => Err(other.into()),
        }
    }

    async fn stop(&self, order: &StopOrder) -> Result<(), DriverError> {
        let (namespace, name) = self.place(order)?;
        // Its Pod and its Secret go with it.
        let path = format!("{}/{name}?propagationPolicy=Background", jobs(&namespace));
        match self.api.call(Method::DELETE, &path, None).await {
            Ok(_) | Err(Refused::NotFound(_)) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    async fn is_alive(&self, order: &StopOrder) -> Result<Option<bool>, DriverError> {
        let (namespace, name) = self.place(order)?;
        let job = match self.api.call(Method::GET, &format!("{}/{name}", jobs(&namespace)), None).await {
            Ok(job) => job,
            Err(Refused::NotFound(_)) => return Ok(Some(false)),
            Err(other) => return Err(other.into()),
        };
        let conditions = job["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has_ended = conditions.iter().any(|condition| {
            condition["status"] == "True"
                && (condition["type"] == "Complete" || condition["type"] == "Failed")
        });
        if has_ended || !job["metadata"]["deletionTimestamp"].is_null() {
            return Ok(Some(false));
        }
        match self.complaint(&namespace, &name).await {
            Some(complaint) => Err(DriverError::lasting(complaint)),
            None => Ok(Some(true)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], folder: &Path) -> Option<KubernetesOptions> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        KubernetesOptions::from_service_account(variable, folder)
    }

    #[test]
    fn a_pod_knows_its_cluster_and_others_know_none() {
        let folder = tempfile::tempdir().unwrap();
        let host = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        assert!(found(&[host], folder.path()).is_none(), "there is no account");
        for (name, text) in [("namespace", "giga\n"), ("token", "t"), ("ca.crt", "c")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        assert!(found(&[], folder.path()).is_none());
        let known = found(&[host, ("KUBERNETES_SERVICE_PORT", "6443")], folder.path()).unwrap();
        assert_eq!((known.url.as_str(), known.namespace.as_str()), ("https://10.0.0.1:6443", "giga"));
        let named = |variables: &[(&str, &str)]| {
            let variables: std::collections::BTreeMap<_, _> = variables.iter().copied().collect();
            KubernetesOptions::from_environment(|name| variables.get(name).map(|value| (*value).to_owned()))
        };
        let url = ("GIGA_KUBERNETES_URL", "https://k8s.example");
        let token = ("GIGA_KUBERNETES_TOKEN_FILE", "/t");
        let wrong = named(&[url, token]).unwrap_err().to_string();
        assert_eq!(wrong, "GIGA_KUBERNETES_URL is set, so set GIGA_KUBERNETES_NAMESPACE too");
        let named = named(&[url, token, ("GIGA_KUBERNETES_NAMESPACE", "pools")]).unwrap().unwrap();
        assert_eq!((named.url.as_str(), named.namespace.as_str()), ("https://k8s.example", "pools"));
        let six = found(&[("KUBERNETES_SERVICE_HOST", "fd00::1")], folder.path()).unwrap();
        assert_eq!(six.url, "https://[fd00::1]:443");
    }
}
