use async_trait::async_trait;
use giga_ports::Store;
use giga_store::{BatchStore, SqliteBackend, Tuning};
use giga_testkit::ManualClock;
use giga_testkit::store_suite::StoreFixture;
use std::sync::Arc;
struct F(tempfile::TempDir);
#[async_trait]
impl StoreFixture for F {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        Arc::new(
            BatchStore::start(
                SqliteBackend::open(&self.0.path().join("d/x.db"), clock).await.unwrap(),
                Tuning::default(),
            )
            .await
            .unwrap(),
        )
    }
    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn Store>> {
        Some(self.open(clock).await)
    }
}
giga_testkit::store_conformance!(F(tempfile::tempdir().unwrap()));
