//! From an address to a container.

use std::sync::Arc;

use azure_core::credentials::{Secret, TokenCredential};
use azure_data_cosmos::options::Region;
use azure_data_cosmos::{AccountEndpoint, AccountReference, ContainerClient, CosmosClientBuilder, RoutingStrategy};
use azure_identity::{
    ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId, WorkloadIdentityCredential,
};
use giga_ports::StoreError;

use super::service::failure;
use super::Result;

/// `cosmos://ACCOUNT.documents.azure.com/DATABASE/CONTAINER`, behind which `?` and `&` may say:
/// `region=NAME` (of the regions of the account, the one next to this machine), `identity=managed`,
/// `identity=managed:CLIENT_ID`, `identity=workload`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub database: String,
    pub container: String,
    pub region: Option<String>,
    pub identity: Identity,
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

const SHAPE: &str = "cosmos://ACCOUNT.documents.azure.com/DATABASE/CONTAINER";

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
            return Err(wrong("holds a credential, and every process of the machine can read it there; use GIGA_COSMOS_KEY_FILE"));
        }
        if [host, database, container].iter().any(|part| part.is_empty()) {
            return Err(wrong("does not name an account, a database and a container"));
        }
        let (mut region, mut identity) = (None, Identity::default());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("region", name)) if !name.is_empty() => region = Some(name.replace("%20", " ")),
                Some(("identity", "managed")) => identity = Identity::Managed,
                Some(("identity", "workload")) => identity = Identity::Workload,
                Some(("identity", other)) if other.starts_with("managed:") => {
                    identity = Identity::ManagedAs(other["managed:".len()..].to_owned());
                }
                _ => return Err(wrong("has something else than `region` and `identity` behind the `?`")),
            }
        }
        let (host, database, container) = (host.to_owned(), database.to_owned(), container.to_owned());
        Ok(Self { host, database, container, region, identity })
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
        Identity::Managed => ManagedIdentityCredential::new(None).map(|made| made as Arc<dyn TokenCredential>),
        Identity::ManagedAs(client) => {
            let mut options = ManagedIdentityCredentialOptions::default();
            options.user_assigned_id = Some(UserAssignedId::ClientId(client.clone()));
            ManagedIdentityCredential::new(Some(options)).map(|made| made as Arc<dyn TokenCredential>)
        }
        Identity::Workload => {
            WorkloadIdentityCredential::new(None).map(|made| made as Arc<dyn TokenCredential>)
        }
    };
    made.map_err(|error| {
        StoreError::broken_because(format!(
            "this machine has no such identity for Cosmos DB: {error}; give it one, or a key by GIGA_COSMOS_KEY_FILE"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let address = Address::parse("cosmos://acme.documents.azure.com/giga/fleet").unwrap();
        assert_eq!(
            (&*address.host, &*address.database, &*address.container, address.identity),
            ("acme.documents.azure.com", "giga", "fleet", Identity::Managed)
        );
        let all = "cosmos://acme.documents.azure.com/giga/fleet?region=West%20Europe&identity=managed:4f1c";
        let address = Address::parse(all).unwrap();
        assert_eq!(address.region.as_deref(), Some("West Europe"));
        assert_eq!(address.identity, Identity::ManagedAs("4f1c".to_owned()));
    }

    #[test]
    fn a_wrong_address_is_refused_without_being_repeated() {
        for (url, says) in [
            ("cosmos://acme/giga", "does not name"),
            ("cosmos://acme//fleet", "does not name"),
            ("cosmos://:c2VjcmV0@acme/giga/fleet", "GIGA_COSMOS_KEY_FILE"),
            ("cosmos://acme/giga/fleet?key=c2VjcmV0", "behind the `?`"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("c2VjcmV0"), "{error}");
        }
    }
}
