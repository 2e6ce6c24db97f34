//! From an address to a container.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use azure_core::credentials::{Secret, TokenCredential};
use azure_data_cosmos::options::Region;
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClientBuilder, RoutingStrategy,
};
use azure_identity::{
    ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId, WorkloadIdentityCredential,
};
use giga_ports::StoreError;

use super::Result;
use super::service::failure;

/// `cosmos://ACCOUNT.documents.azure.com/DATABASE/CONTAINER?…`, where behind the `?` stand, with `&` between them:
///
/// - `topics=sqlite:PATH` or `topics=postgres://…`, the last of them: where topic jobs are kept, which are not here;
/// - `key-file=PATH`, a file with the account's key, or `identity=managed`, `identity=managed:CLIENT_ID` or
///   `identity=workload`; without any of them `identity=managed`;
/// - `region=NAME`: of the regions of the account, the one next to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub database: String,
    pub container: String,
    pub region: Option<String>,
    pub identity: Identity,
    pub key_file: Option<PathBuf>,
    pub topics: TopicsAt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicsAt {
    /// For a coordinator that is alone.
    Sqlite(PathBuf),
    /// For several.
    Postgres(String),
}

/// Who this machine is, where there is no key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Identity {
    /// Of the machine, or one of several that it has.
    #[default]
    Managed,
    ManagedAs(String),
    /// Of a pod in Kubernetes.
    Workload,
}

/// The account's key; without one, the identity in the address.
#[derive(Clone, Default)]
pub struct Credential(pub Option<String>);

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Credential(key)" } else { "Credential(identity)" })
    }
}

impl Credential {
    /// The key that stands in this file.
    pub async fn read(path: &Path) -> Result<Self> {
        let file = path.to_owned();
        let text = crate::sqlite::blocking(move || std::fs::read_to_string(file)).await;
        let key = text
            .map_err(|error| StoreError::broken_because(format!("key-file: {}: {error}", path.display())))?;
        if key.trim().is_empty() {
            return Err(StoreError::broken_because(format!("key-file: {} is empty", path.display())));
        }
        Ok(Self(Some(key.trim().to_owned())))
    }
}

const SHAPE: &str = "cosmos://ACCOUNT.documents.azure.com/DATABASE/CONTAINER?topics=sqlite:PATH";

impl Address {
    pub fn parse(url: &str) -> Result<Self> {
        // The address is not repeated: what looks wrong may hold a key.
        let wrong = |what: &str| StoreError::broken_because(format!("the store's URL {what}; it is {SHAPE}"));
        let rest = url.strip_prefix("cosmos://").ok_or_else(|| wrong("does not begin with cosmos://"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let [host, database, container] = parts[..] else {
            return Err(wrong("does not name an account, a database and a container"));
        };
        if host.contains('@') {
            return Err(wrong(
                "holds a credential, and every process of the machine can read it there; name a file with the key by `key-file=PATH`",
            ));
        }
        if [host, database, container].iter().any(|part| part.is_empty()) {
            return Err(wrong("does not name an account, a database and a container"));
        }
        // The last, because an address of PostgreSQL may hold everything that stands between these.
        let (query, topics) = match query.split_once("topics=") {
            Some((before, topics)) if before.is_empty() || before.ends_with('&') => (before, topics),
            _ => return Err(wrong("does not say where topic jobs are kept, by `topics=` at its end")),
        };
        let (mut region, mut identity, mut key_file) = (None, None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("region", name)) if !name.is_empty() => region = Some(name.replace("%20", " ")),
                Some(("key-file", path)) if !path.is_empty() => key_file = Some(PathBuf::from(path)),
                Some(("identity", "managed")) => identity = Some(Identity::Managed),
                Some(("identity", "workload")) => identity = Some(Identity::Workload),
                Some(("identity", other)) if other.starts_with("managed:") => {
                    identity = Some(Identity::ManagedAs(other["managed:".len()..].to_owned()));
                }
                _ => {
                    return Err(wrong(
                        "has something else than key-file, identity, region and topics behind the `?`",
                    ));
                }
            }
        }
        if key_file.is_some() && identity.is_some() {
            return Err(wrong("names both a key-file and an identity"));
        }
        Ok(Self {
            host: host.to_owned(),
            database: database.to_owned(),
            container: container.to_owned(),
            region,
            identity: identity.unwrap_or_default(),
            key_file,
            topics: TopicsAt::parse(topics).ok_or_else(|| {
                wrong("keeps topic jobs neither in `sqlite:PATH` nor in `postgres://USER@HOST/DATABASE` without a password")
            })?,
        })
    }
}

impl TopicsAt {
    fn parse(url: &str) -> Option<Self> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return (!path.is_empty() && !path.starts_with(':')).then(|| Self::Sqlite(path.into()));
        }
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"))?;
        // Where the store's address is shown, nobody looks for a password here.
        let user = rest.split(['/', '?']).next()?.rsplit_once('@').map_or("", |(user, _)| user);
        (!user.contains(':') && !rest.contains("password=")).then(|| Self::Postgres(url.to_owned()))
    }
}

/// Signs in and finds the container, which must be there.
pub async fn connect(address: &Address, credential: Credential) -> Result<ContainerClient> {
    let endpoint: AccountEndpoint = format!("https://{}/", address.host).parse().map_err(failure)?;
    let account = match credential.0 {
        Some(key) => AccountReference::with_authentication_key(endpoint, Secret::new(key.trim().to_owned())),
        None => AccountReference::with_credential(endpoint, identity(&address.identity)?),
    };
    let routing = match &address.region {
        Some(region) => RoutingStrategy::ProximityTo(Region::from(region.clone())),
        None => RoutingStrategy::PreferredRegions(Vec::new()),
    };
    let client = Box::pin(CosmosClientBuilder::new().build(account, routing)).await.map_err(failure)?;
    Box::pin(client.database_client(&address.database).container_client(&address.container, None))
        .await
        .map_err(failure)
}

fn identity(identity: &Identity) -> Result<Arc<dyn TokenCredential>> {
    let made: azure_core::Result<Arc<dyn TokenCredential>> = match identity {
        Identity::Managed => {
            ManagedIdentityCredential::new(None).map(|made| made as Arc<dyn TokenCredential>)
        }
        Identity::ManagedAs(client) => {
            let options = ManagedIdentityCredentialOptions {
                user_assigned_id: Some(UserAssignedId::ClientId(client.clone())),
                ..ManagedIdentityCredentialOptions::default()
            };
            ManagedIdentityCredential::new(Some(options)).map(|made| made as Arc<dyn TokenCredential>)
        }
        Identity::Workload => {
            WorkloadIdentityCredential::new(None).map(|made| made as Arc<dyn TokenCredential>)
        }
    };
    made.map_err(|error| {
        StoreError::broken_because(format!(
            "this machine has no such identity for Cosmos DB: {error}; give it one, or a key by `key-file=PATH`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let address =
            Address::parse("cosmos://acme.documents.azure.com/giga/fleet?topics=sqlite:topics.db").unwrap();
        assert_eq!(
            (&*address.host, &*address.database, &*address.container, address.identity),
            ("acme.documents.azure.com", "giga", "fleet", Identity::Managed)
        );
        assert_eq!(address.topics, TopicsAt::Sqlite("topics.db".into()));
        let all = "cosmos://acme/giga/fleet?region=West%20Europe&identity=managed:4f1c\
                   &topics=postgres://giga@db/giga?sslmode=require&connect_timeout=3";
        let address = Address::parse(all).unwrap();
        assert_eq!(address.region.as_deref(), Some("West Europe"));
        assert_eq!(address.identity, Identity::ManagedAs("4f1c".to_owned()));
        let topics = "postgres://giga@db/giga?sslmode=require&connect_timeout=3".to_owned();
        assert_eq!(address.topics, TopicsAt::Postgres(topics));
        let with_key = Address::parse("cosmos://acme/giga/fleet?key-file=/etc/key&topics=sqlite:t").unwrap();
        assert_eq!(with_key.key_file.as_deref(), Some(Path::new("/etc/key")));
    }

    #[test]
    fn a_wrong_address_is_refused_without_being_repeated() {
        for (url, says) in [
            ("cosmos://acme/giga?topics=sqlite:t", "does not name"),
            ("cosmos://acme//fleet?topics=sqlite:t", "does not name"),
            ("cosmos://:c2VjcmV0@acme/giga/fleet", "key-file=PATH"),
            ("cosmos://acme/giga/fleet", "topics="),
            ("cosmos://acme/giga/fleet?key=c2VjcmV0&topics=sqlite:t", "behind the `?`"),
            ("cosmos://acme/giga/fleet?key-file=k&identity=managed&topics=sqlite:t", "both"),
            ("cosmos://acme/giga/fleet?topics=postgres://giga:c2VjcmV0@db/giga", "without a password"),
            ("cosmos://acme/giga/fleet?topics=memory:", "neither"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("c2VjcmV0"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_key_comes_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "c2VjcmV0\n").unwrap();
        let key = Credential::read(&path).await.unwrap();
        assert_eq!((key.0.as_deref(), &*format!("{key:?}")), (Some("c2VjcmV0"), "Credential(key)"));
        std::fs::write(&path, "\n").unwrap();
        assert!(Credential::read(&path).await.unwrap_err().to_string().contains("is empty"));
        assert!(Credential::read(&folder.path().join("none")).await.is_err());
    }
}
