//! The three topic stores against the exported suite, each case on data of its own.

use std::sync::Arc;

use async_trait::async_trait;
use giga_ports::TopicStore;
use giga_store::{ClockSource, MemoryTopics, Tuning, topics_on_postgres, topics_on_sqlite};
use giga_testkit::ManualClock;
use giga_testkit::postgres::TestDatabase;
use giga_testkit::topic_suite::TopicFixture;
use tokio::sync::OnceCell;

struct Memory;

#[async_trait]
impl TopicFixture for Memory {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn TopicStore> {
        Arc::new(MemoryTopics::new(clock))
    }

    async fn reopen(&self, _: Arc<ManualClock>) -> Option<Arc<dyn TopicStore>> {
        None
    }
}

/// The folder goes with it.
struct Sqlite(tempfile::TempDir);

impl Sqlite {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl TopicFixture for Sqlite {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn TopicStore> {
        topics_on_sqlite(&self.0.path().join("giga.db"), clock, Tuning::default()).await.unwrap()
    }

    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn TopicStore>> {
        Some(self.open(clock).await)
    }
}

#[derive(Default)]
struct Postgres(OnceCell<TestDatabase>);

#[async_trait]
impl TopicFixture for Postgres {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn TopicStore> {
        let database = self.0.get_or_init(TestDatabase::new).await;
        let clock = ClockSource::Injected(clock);
        topics_on_postgres(database.url(), clock, Tuning::default()).await.unwrap()
    }

    async fn reopen(&self, clock: Arc<ManualClock>) -> Option<Arc<dyn TopicStore>> {
        Some(self.open(clock).await)
    }
}

macro_rules! conforms {
    ($name:ident, $fixture:expr) => {
        mod $name {
            use super::*;

            giga_testkit::topic_conformance!($fixture);

            #[test]
            fn random_histories_agree_with_the_model() {
                giga_testkit::topic_suite::walk::agrees_with_the_model(|| $fixture, 24, 80);
            }
        }
    };
}

conforms!(memory, Memory);
conforms!(postgres, Postgres::default());
conforms!(sqlite, Sqlite::new());
