//! An account in this process: the emulator of the service's own client, for tests and measurements. What is in it is
//! gone with it.

use std::sync::Arc;

use azure_core::credentials::Secret;
use azure_data_cosmos::options::Region;
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClientBuilder, CosmosError,
    CosmosRuntimeBuilder, RoutingStrategy,
};
use azure_data_cosmos_driver::fault_injection::FaultInjectionRule;
use azure_data_cosmos_driver::in_memory_emulator::{
    ConsistencyLevel, ContainerConfig, InMemoryEmulatorHttpClient, RequestObserver, VirtualAccountConfig,
    VirtualRegion,
};
use serde_json::json;

const GATEWAY: &str = "https://eastus.emulator.local";
const DATABASE: &str = "giga";
const CONTAINER: &str = "fleet";

#[derive(Debug)]
pub struct EmulatedAccount {
    emulator: Arc<InMemoryEmulatorHttpClient>,
}

impl EmulatedAccount {
    /// With an empty container. It throttles past so many request units per second, if any.
    pub fn new(request_units: Option<u64>) -> Self {
        Self::observed(request_units, None)
    }

    /// The same; somebody sees every request.
    pub fn observed(request_units: Option<u64>, observer: Option<Arc<dyn RequestObserver>>) -> Self {
        let region = VirtualRegion::new("East US", GATEWAY.parse().expect("it is an address"));
        let config = VirtualAccountConfig::new(vec![region])
            .expect("one region is enough")
            .with_consistency(ConsistencyLevel::Strong)
            .with_throttling_enabled(request_units.is_some());
        let mut emulator = InMemoryEmulatorHttpClient::new(config);
        if let Some(observer) = observer {
            emulator = emulator.with_request_observer(observer);
        }
        let store = emulator.store();
        store.create_database(DATABASE);
        let by = serde_json::from_value(json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 }))
            .expect("it is a definition of a partition key");
        let mut config = ContainerConfig::default().with_partition_count(1);
        if let Some(units) = request_units {
            config = config.with_throughput(units);
        }
        store.create_container_with_config(DATABASE, CONTAINER, by, config);
        Self { emulator: Arc::new(emulator) }
    }

    /// The container, reached as a process of its own would.
    pub async fn container(&self) -> Result<ContainerClient, CosmosError> {
        self.reach(CONTAINER, Vec::new()).await
    }

    /// The same, where this goes wrong on the way.
    pub async fn container_with(
        &self,
        faults: Vec<Arc<FaultInjectionRule>>,
    ) -> Result<ContainerClient, CosmosError> {
        self.reach(CONTAINER, faults).await
    }

    /// Another one, which is not there.
    pub async fn container_named(&self, name: &str) -> Result<ContainerClient, CosmosError> {
        self.reach(name, Vec::new()).await
    }

    async fn reach(
        &self,
        name: &str,
        faults: Vec<Arc<FaultInjectionRule>>,
    ) -> Result<ContainerClient, CosmosError> {
        let endpoint: AccountEndpoint = GATEWAY.parse()?;
        let account = AccountReference::with_authentication_key(endpoint, Secret::new("dGVzdGtleQ=="));
        let runtime = if faults.is_empty() {
            self.emulator.runtime_builder()
        } else {
            self.emulator.runtime_builder_with_fault_rules(faults)
        };
        let runtime = CosmosRuntimeBuilder::from(runtime).build().await?;
        let client = CosmosClientBuilder::new().with_runtime(runtime);
        let client = Box::pin(client.build(account, RoutingStrategy::ProximityTo(Region::EAST_US))).await?;
        Box::pin(client.database_client(DATABASE).container_client(name, None)).await
    }
}
