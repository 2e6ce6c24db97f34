//! Opening a store: twice, at the same time, after a newer version, and with what was there before.
#![expect(clippy::unwrap_used, reason = "a test: a panic is how it reports")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_domain::{Actor, JobId};
use giga_ports::store::NewJob;
use giga_ports::{Clock, Store, StoreError};
use giga_store::{BatchStore, PostgresBackend, SqliteBackend, StoreClock, Tuning};
use giga_testkit::ManualClock;
use giga_testkit::postgres::TestDatabase;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// A place where a store's data can be, and how to change it behind the store's back.
#[derive(Clone)]
enum Place {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Place {
    async fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        let clock = Arc::new(ManualClock::default());
        Ok(match self {
            Self::Sqlite(path) => {
                Arc::new(BatchStore::start(SqliteBackend::open(path, clock).await?, Tuning::default()).await?)
            }
            Self::Postgres(url) => {
                let backend = PostgresBackend::open(url, StoreClock::Injected(clock)).await?;
                Arc::new(BatchStore::start(backend, Tuning::default()).await?)
            }
        })
    }

    async fn run(&self, sql: &str) {
        match self {
            Self::Sqlite(path) => rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap(),
            Self::Postgres(url) => {
                let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
                let connection = tokio::spawn(connection);
                client.batch_execute(sql).await.unwrap();
                drop(client);
                connection.await.unwrap().unwrap();
            }
        }
    }
}

fn sqlite(folder: &TempDir) -> Place {
    Place::Sqlite(folder.path().join("giga.db"))
}

async fn postgres() -> Place {
    Place::Postgres(TestDatabase::new().await.url().to_owned())
}

/// Numbered from 1; each test uses a number once.
fn new_job(number: u128) -> NewJob {
    NewJob {
        id: JobId::from_parts(ManualClock::default().now(), number),
        product: "demo".parse().unwrap(),
        spec: serde_json::from_value(json!({ "name": format!("job {number}") })).unwrap(),
        manifest: json!({}),
        body: "body".to_owned(),
        fingerprint: "fingerprint".to_owned(),
    }
}

async fn submit(store: &dyn Store, number: u128) {
    store.submit(vec![new_job(number)], Actor::system("test")).await.unwrap();
}

async fn opened_again_it_keeps_everything(place: Place) {
    let first = place.open().await.unwrap();
    submit(&*first, 1).await;
    let job = first.read().job(new_job(1).id).await.unwrap();
    assert!(job.is_some());
    // While the first is open, and after it is gone.
    let second = place.open().await.unwrap();
    assert_eq!(second.read().job(new_job(1).id).await.unwrap(), job);
    drop((first, second));
    let third = place.open().await.unwrap();
    assert_eq!(third.read().job(new_job(1).id).await.unwrap(), job);
    submit(&*third, 2).await;
    assert_eq!(third.read().feed_head().await.unwrap(), *third.head().borrow());
}

async fn opened_by_many_at_once(place: Place) {
    let mut opening = JoinSet::new();
    for number in 1..=4 {
        let place = place.clone();
        opening.spawn(async move {
            let store = place.open().await.unwrap();
            submit(&*store, number).await;
            store
        });
    }
    for store in opening.join_all().await {
        for number in 1..=4 {
            assert!(store.read().job(new_job(number).id).await.unwrap().is_some());
        }
    }
}

async fn a_newer_schema_is_refused(place: Place) {
    submit(&*place.open().await.unwrap(), 1).await;
    let columns = "version, name, checksum, applied_at";
    place
        .run(&format!(
            "INSERT INTO schema_migrations ({columns}) SELECT 9999, 'later', checksum, applied_at FROM schema_migrations LIMIT 1"
        ))
        .await;
    let error = place.open().await.err().expect("a schema from the future cannot be understood");
    assert!(!error.is_transient(), "waiting will not help: {error}");
    assert!(error.to_string().contains("9999"), "{error}");
    // Nothing was touched: without the newer entry it opens as before.
    place.run("DELETE FROM schema_migrations WHERE version = 9999").await;
    assert!(place.open().await.unwrap().read().job(new_job(1).id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_opened_again_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    opened_again_it_keeps_everything(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_opened_again_keeps_everything() {
    opened_again_it_keeps_everything(postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_opened_by_many_at_once() {
    let folder = tempfile::tempdir().unwrap();
    opened_by_many_at_once(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_opened_by_many_at_once() {
    opened_by_many_at_once(postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_refuses_a_newer_schema() {
    let folder = tempfile::tempdir().unwrap();
    a_newer_schema_is_refused(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_refuses_a_newer_schema() {
    a_newer_schema_is_refused(postgres().await).await;
}

/// A folder that cannot be made, a file that is something else: an error that says so, not a panic or a wait.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "not a database at all, but long enough to look like one ".repeat(100)).unwrap();
    for path in [file.as_path(), Path::new("/dev/null/giga.db")] {
        let error = Place::Sqlite(path.to_owned()).open().await.err().expect("this is no database");
        assert!(error.to_string().contains(path.to_str().unwrap()), "it names the file: {error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap().len(), 5_600, "and leaves it as it was");
    let error = Place::Postgres("postgres://nobody@127.0.0.1:1/none".to_owned()).open().await;
    assert!(error.err().expect("nobody listens there").is_transient());
}
