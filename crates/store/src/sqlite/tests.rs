//! What is particular to a file: rights, damage, other processes. Everything else is the conformance suite's.

use std::path::Path;
use std::sync::Arc;

use giga_domain::{Actor, FactoryId, FeedPos, Stage, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::{FactoryReads, HealthReads, HistoryOf, JobFilter, RegistryStore, SetFlag};
use giga_testkit::ManualClock;
use rusqlite::{Connection, params_from_iter};
use serde_json::json;

use super::{Sqlite, connection};
use crate::rows;
use crate::sql::Driver;
use crate::sql::reads::history_query;
use crate::{BatchStore, SqliteBackend, SqliteStore, Tuning};

async fn open(path: &Path) -> Result<SqliteBackend, StoreError> {
    SqliteBackend::open(path, Arc::new(ManualClock::default())).await
}

async fn store(path: &Path) -> SqliteStore {
    BatchStore::start(open(path).await.unwrap(), Tuning::default()).await.unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_and_its_folder_are_made_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/giga.db");
    let store = store(&path).await;
    store
        .set_flag(SetFlag { name: "strict".to_owned(), value: json!(true), actor: Actor::system("test") })
        .await
        .unwrap();
    let rights = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(rights(path.parent().unwrap()), 0o700);
    for name in ["giga.db", "giga.db-wal", "giga.db-shm"] {
        assert_eq!(rights(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn another_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "These are my notes, and no database at all. ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let error = open(&path).await.unwrap_err();
    assert!(!error.is_transient());
    assert!(error.to_string().contains("notes.txt: the file is not an SQLite database"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("giga.db");
    drop(open(&path).await.unwrap());
    let add = "INSERT INTO schema_migrations VALUES (99, 'later', '?', 0)";
    Connection::open(&path).unwrap().execute(add, []).unwrap();
    let error = open(&path).await.unwrap_err();
    assert!(error.to_string().contains("giga.db: its schema is at version 99"), "{error}");
}

#[tokio::test]
async fn opening_twice_and_at_once_migrates_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("giga.db");
    let opened = futures::future::join_all((0..8).map(|_| open(&path))).await;
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    let count = "SELECT (SELECT count(*) FROM schema_migrations) + (SELECT count(*) FROM schema_additions)";
    let rows: i64 = Connection::open(&path).unwrap().query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, crate::migrations::SQLITE.len() as i64);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("giga.db");
    let backend = open(&path).await.unwrap();
    let add = "INSERT INTO factories VALUES ('mac-1', 'asleep', '{}', '{}', 0, NULL)";
    Connection::open(&path).unwrap().execute(add, []).unwrap();
    let error = backend.factory(&"mac-1".parse::<FactoryId>().unwrap()).await.unwrap_err();
    assert!(!error.is_transient());
    assert!(error.to_string().contains("factories.state of row mac-1 cannot be read"), "{error}");
}

#[tokio::test]
async fn a_file_that_another_process_keeps_is_passing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("giga.db");
    let backend = open(&path).await.unwrap();
    backend.ping().await.unwrap();
    let error = super::failure(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
        None,
    ));
    assert!(error.is_transient());
    std::fs::remove_file(&path).unwrap();
    assert!(backend.ping().await.unwrap_err().is_transient(), "a lost file is not ready");
}

/// What the database does for a list: for each of its steps the one that it is part of, and what it is.
fn plan_of(connection: &Connection, filter: &JobFilter) -> Vec<(i64, String)> {
    let before = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC".parse().unwrap();
    let (tail, values) = rows::list_query(filter, Some(before), 51, Sqlite::NAME_CONTAINS);
    let sql = format!("EXPLAIN QUERY PLAN {}", crate::sql::select_jobs(&tail));
    let mut statement = connection.prepare(&sql).unwrap();
    let steps =
        statement.query_map(params_from_iter(values), |row| Ok((row.get("parent")?, row.get("detail")?)));
    steps.unwrap().map(Result::unwrap).collect()
}

/// However many jobs there are: they come out of an index in the order that they are shown in, and only what is few
/// is sorted.
#[test]
fn a_list_reads_no_more_jobs_than_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let connection = connection::open_writer(&folder.path().join("plans.db"), Timestamp::ZERO).unwrap();
    let any = JobFilter::default;
    let products = || vec!["a".parse().unwrap(), "b".parse().unwrap()];
    for (filter, index) in [
        (any(), "sqlite_autoindex_jobs_1"),
        (JobFilter { products: products()[..1].to_vec(), ..any() }, "jobs_by_product"),
        (JobFilter { products: products(), ..any() }, "jobs_by_product"),
        (JobFilter { stages: vec![Stage::Queued], ..any() }, "jobs_by_stage"),
        (JobFilter { stages: Stage::ALL.to_vec(), ..any() }, "jobs_by_stage"),
        (JobFilter { products: products(), stages: vec![Stage::Queued], ..any() }, "jobs_by_stage"),
        (JobFilter { products: products(), stages: Stage::ALL.to_vec(), ..any() }, "jobs_by_stage"),
        (
            JobFilter { parent: Some("01J9ZK3V5N8Q4W2E6R7T1Y0ABC".parse().unwrap()), ..any() },
            "jobs_by_parent",
        ),
    ] {
        let plan = plan_of(&connection, &filter);
        let of_jobs = |(_, step): &&(i64, String)| step.contains(" jobs ");
        assert!(plan.iter().any(|(_, step)| step.contains(index)), "{filter:?}: {plan:#?}");
        for (parent, step) in plan.iter().filter(of_jobs) {
            assert!(step.contains(" USING "), "{filter:?} reads everything: {plan:#?}");
            let sorts = plan.iter().any(|(of, step)| of == parent && step.contains("TEMP B-TREE"));
            assert!(!sorts, "{filter:?} sorts what it reads: {plan:#?}");
        }
    }
    // Held jobs are few: whoever holds them is asked first.
    let held = plan_of(&connection, &JobFilter { factory: Some("f-1".parse().unwrap()), ..any() });
    assert!(held[0].1.starts_with("SEARCH leases USING INDEX leases_by_request"), "{held:#?}");
}

/// The same for each part of the history: nothing is sorted, and none is found by walking through the others.
#[test]
fn the_history_reads_no_more_events_than_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let connection = connection::open_writer(&folder.path().join("plans.db"), Timestamp::ZERO).unwrap();
    let job = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC".parse().unwrap();
    for (of, how) in [
        (HistoryOf::Everything, "INTEGER PRIMARY KEY"),
        (HistoryOf::People, "INDEX events_by_people"),
        (HistoryOf::NoJob, "INDEX events_of_no_job"),
        (HistoryOf::Job(job), "INDEX events_by_job"),
    ] {
        let (tail, values) = history_query(of, Some(FeedPos(7)), 50);
        let sql = format!("EXPLAIN QUERY PLAN {}", crate::sql::select(&rows::EVENTS, &tail));
        let mut statement = connection.prepare(&sql).unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get("detail")).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.len() == 1 && steps[0].contains(how), "{of:?}: {steps:?}");
    }
}
