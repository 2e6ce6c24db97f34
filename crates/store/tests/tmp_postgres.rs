use async_trait::async_trait;
use giga_ports::Store;
use giga_store::{BatchStore, PostgresBackend, StoreClock, Tuning};
use giga_testkit::ManualClock;
use giga_testkit::postgres::TestDatabase;
use giga_testkit::store_suite::StoreFixture;
use std::sync::Arc;
struct F(tokio::sync::OnceCell<TestDatabase>);
#[async_trait]
impl StoreFixture for F {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let db = self.0.get_or_init(TestDatabase::new).await;
        Arc::new(
            BatchStore::start(
                PostgresBackend::open(db.url(), StoreClock::Injected(clock)).await.unwrap(),
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
giga_testkit::store_conformance!(F(Default::default()));
