//! Opening a store: twice, at the same time, after a newer version, and with what was there before.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::job::ShipMode;
use giga_domain::token::{Permission, TokenRecord, TokenSecret};
use giga_domain::{
    Actor, Ask, CapabilitySet, EventKind, FactoryId, FeedPos, Holder, HolderAction, JobId, JobKind,
    MergeAction, MergeOutcome, RunReport, Stage,
};
use giga_ports::store::{
    Advertise, Claim, Claimed, Enroll, ExpireLeases, Hold, HoldMerge, HoldMerges, Lost, NewJob, Reconsider,
    RotateKey, SetSecret, Submit, TakeMerges,
};
use giga_ports::{Clock, Store, StoreError};
use giga_store::{BatchStore, ClockSource, PostgresBackend, SqliteBackend, Tuning};
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
                let backend = PostgresBackend::open(url, ClockSource::Injected(clock)).await?;
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
        persona: None,
        fingerprint: "fingerprint".to_owned(),
        under: None,
        tree: giga_domain::TreeLimits::default(),
    }
}

async fn submit(store: &dyn Store, number: u128) {
    store.submit(Submit { jobs: vec![new_job(number)], actor: Actor::system("test") }).await.unwrap();
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

async fn a_newer_schema_that_only_adds_is_used(place: Place) {
    submit(&*place.open().await.unwrap(), 1).await;
    let columns = "version, name, checksum, readable_from, applied_at";
    let add = |version: u32, readable_from: u32| {
        format!(
            "INSERT INTO schema_additions ({columns}) SELECT {version}, 'later', checksum, {readable_from}, applied_at \
             FROM schema_migrations LIMIT 1"
        )
    };
    place.run(&add(9998, 12)).await;
    submit(&*place.open().await.unwrap(), 2).await;
    place.run(&add(9999, 9998)).await;
    let error = place.open().await.err().expect("one that takes more than this binary knows");
    assert!(error.to_string().contains("at least version 9998"), "{error}");
    place.run("DELETE FROM schema_additions WHERE version = 9999").await;
    assert!(place.open().await.unwrap().read().job(new_job(2).id).await.unwrap().is_some());
}

/// A coordinator of the next release writes events that this one has no word for; the feed goes on all the same.
async fn an_event_of_a_newer_version_stops_nobody(place: Place) {
    let store = place.open().await.unwrap();
    submit(&*store, 1).await;
    place.run("UPDATE events SET kind = 'job.teleported' WHERE pos = 1").await;
    submit(&*store, 2).await;
    let feed = store.read().feed(FeedPos(0), 10).await.unwrap();
    let kinds: Vec<EventKind> = feed.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Unknown, EventKind::Submitted]);
    assert_ne!(feed[0].cause, "", "what people read is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_reads_events_of_a_newer_version() {
    let folder = tempfile::tempdir().unwrap();
    an_event_of_a_newer_version_stops_nobody(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_reads_events_of_a_newer_version() {
    an_event_of_a_newer_version_stops_nobody(postgres().await).await;
}

/// What the sixth migration has made, taken back: a column per stage again.
const COLUMN_PER_STAGE: &str = "\
    CREATE TABLE queue_state (product_id TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, \
        queued BIGINT NOT NULL, blocked BIGINT NOT NULL, assigned BIGINT NOT NULL, \
        building BIGINT NOT NULL, review BIGINT NOT NULL, testing BIGINT NOT NULL, shipped BIGINT NOT NULL, \
        failed BIGINT NOT NULL, dead_letter BIGINT NOT NULL, cancelled BIGINT NOT NULL); \
    INSERT INTO queue_state SELECT product_id, sum(version), \
        sum(CASE stage WHEN 'queued' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'blocked' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'assigned' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'building' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'review' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'testing' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'shipped' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'failed' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'dead_letter' THEN jobs ELSE 0 END), \
        sum(CASE stage WHEN 'cancelled' THEN jobs ELSE 0 END) \
        FROM queue_counts GROUP BY product_id; \
    DROP TABLE queue_counts; ALTER TABLE jobs DROP COLUMN setback; \
    ALTER TABLE secrets DROP COLUMN created_at; \
    DROP INDEX leases_with_units; ALTER TABLE leases DROP COLUMN units; ALTER TABLE runs DROP COLUMN model; DROP INDEX jobs_that_ask; ALTER TABLE jobs DROP COLUMN conversation; ALTER TABLE jobs DROP COLUMN question_due; \
    DROP TABLE IF EXISTS job_secrets; DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions; DELETE FROM schema_migrations WHERE version > 5";

/// What the migrations after the third have made, taken back, but for the sixth.
const BEFORE_BUDGETS: &str = "\
    DROP INDEX leases_by_due; CREATE INDEX leases_by_expiry ON leases (expires_at); \
    ALTER TABLE leases DROP COLUMN reserved_usd; ALTER TABLE leases DROP COLUMN spent_usd; \
    ALTER TABLE leases DROP COLUMN spent_tokens; ALTER TABLE leases DROP COLUMN evict; \
    ALTER TABLE leases DROP COLUMN due_at; \
    ALTER TABLE jobs RENAME COLUMN last_word TO settled; ALTER TABLE jobs DROP COLUMN kind; ALTER TABLE jobs DROP COLUMN evictions; ALTER TABLE jobs DROP COLUMN gate; \
    ALTER TABLE jobs DROP COLUMN reviews; ALTER TABLE job_texts DROP COLUMN persona; \
    DROP TABLE budgets; DROP TABLE charges; DROP TABLE reconsider; DROP TABLE products; DROP TABLE profiles; \
    DROP TABLE webhooks; DROP TABLE effects; DROP TABLE fan_out; DROP TABLE secrets; \
    DROP TABLE IF EXISTS job_secrets; DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions; DELETE FROM schema_migrations WHERE version > 3";

/// One with room for all.
async fn factory(store: &dyn Store) -> FactoryId {
    let mac: FactoryId = "mac-1".parse().unwrap();
    let permission = Permission::Factory { factory: mac.clone(), scope: FactoryScope::default() };
    let token = TokenRecord {
        id: "token-1".parse().unwrap(),
        hash: TokenSecret::from_random("factory", [7; 32]).hash(),
        permission,
        label: "mac-1".to_owned(),
        created_at: ManualClock::default().now(),
        expires_at: None,
        revoked_at: None,
    };
    let new = Enroll { id: mac.clone(), scope: FactoryScope::default(), token, actor: Actor::system("test") };
    store.enroll(new).await.unwrap();
    let seats = Advertised { seat_limit: 9, ..Advertised::default() };
    store.advertise(Advertise { factory: mac.clone(), advertised: seats }).await.unwrap();
    mac
}

/// A fleet in the middle of its work: one job is held, and one waits for another that has shipped meanwhile.
async fn work_goes_on_after_an_upgrade(place: Place) {
    let store = place.open().await.unwrap();
    let actor = || Actor::system("test");
    let mac = factory(&*store).await;
    let mut dep = new_job(1);
    dep.spec.ship = ShipMode::Auto;
    let mut child = new_job(2);
    child.spec.deps = vec![dep.id];
    let jobs = vec![dep.clone(), child.clone(), new_job(3)];
    store.submit(Submit { jobs, actor: actor() }).await.unwrap();
    let mut held = Vec::new();
    for (job, request) in [(dep.id, "r1"), (new_job(3).id, "r2")] {
        let (factory, request) = (mac.clone(), request.parse().unwrap());
        let lease = Duration::from_mins(1);
        let claim = Claim { job, rev: None, dispatch_seq: None, factory, request, lease };
        let Claimed::Granted(job) = store.claim(claim).await.unwrap() else { panic!("not granted") };
        held.push(job);
    }
    let holder = Holder { factory: mac, epoch: held[0].epoch };
    let actions = vec![HolderAction::Start, HolderAction::Report(RunReport::default())];
    store.hold(Hold { job: dep.id, holder, actions }).await.unwrap();
    drop(store);
    place.run(COLUMN_PER_STAGE).await;
    place.run(BEFORE_BUDGETS).await;

    let store = place.open().await.unwrap();
    assert_eq!(store.read().job(held[1].id).await.unwrap().as_ref(), Some(&held[1]));
    let ends = held[1].lease().unwrap().expires_at;
    assert_eq!(
        store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().next_expiry,
        Some(ends),
        "the reaper knows of it"
    );
    assert_eq!(
        store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved,
        [child.id],
        "what it waited for has shipped"
    );
    assert_eq!(store.read().job_text(child.id).await.unwrap().unwrap().persona, None);
}

/// Before there were graphs a composite was a job like any other. Those that are there must not wait for children that
/// nobody will ever give them.
async fn a_composite_of_before_is_still_claimed(place: Place) {
    let store = place.open().await.unwrap();
    let mut jobs = vec![new_job(1), new_job(2)];
    // A name may say what it likes.
    r#"{"kind":"composite"}"#.clone_into(&mut jobs[1].spec.name);
    store.submit(Submit { jobs: jobs.clone(), actor: Actor::system("test") }).await.unwrap();
    drop(store);
    place.run(COLUMN_PER_STAGE).await;
    place.run(BEFORE_BUDGETS).await;
    place.run(r#"UPDATE jobs SET spec = replace(spec, '"kind":"agent"', '"kind":"composite"')"#).await;
    let store = place.open().await.unwrap();
    for job in jobs {
        let found = store.read().job(job.id).await.unwrap().unwrap();
        assert_eq!(
            (found.spec.kind, found.stage(), &found.spec.name),
            (JobKind::Agent, Stage::Queued, &job.spec.name)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_claims_a_composite_of_before() {
    let folder = tempfile::tempdir().unwrap();
    a_composite_of_before_is_still_claimed(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_claims_a_composite_of_before() {
    a_composite_of_before_is_still_claimed(postgres().await).await;
}

/// One of the version before that still runs knows nothing of budgets, nor of those who wait for a job.
#[tokio::test(flavor = "multi_thread")]
async fn a_coordinator_of_before_cannot_move_a_job_any_more() {
    let place = postgres().await;
    let Place::Postgres(url) = &place else { unreachable!("it was asked for") };
    submit(&*place.open().await.unwrap(), 1).await;
    place.run(COLUMN_PER_STAGE).await;
    place.run(BEFORE_BUDGETS).await;
    let (old, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    // As it stood in that version: prepared before the upgrade.
    let load =
        old.prepare("SELECT id, checkpoint, settled FROM jobs WHERE id = ANY($1) FOR UPDATE").await.unwrap();
    let write = old.prepare("UPDATE jobs SET stage = $1, settled = NULL").await.unwrap();
    let ids = vec![new_job(1).id.to_string()];
    assert_eq!(old.query(&load, &[&ids]).await.unwrap().len(), 1);
    place.open().await.unwrap();
    let refused = old.query(&load, &[&ids]).await.unwrap_err();
    assert!(refused.as_db_error().is_some_and(|error| error.message().contains("settled")), "{refused}");
    assert!(old.execute(&write, &[&"shipped"]).await.is_err());
    drop(old);
    connection.await.unwrap().unwrap();
}

/// What the word to ship made of a job before it meant that it is merged.
const BEFORE_SHIPPING: &str = r#"
    UPDATE jobs SET stage = 'shipped', ended_at = updated_at, state = '{"stage":"shipped"}' WHERE stage = 'shipping';
    UPDATE queue_counts SET jobs = jobs + 1 WHERE stage = 'shipped';
    DELETE FROM queue_counts WHERE stage = 'shipping';
    ALTER TABLE jobs DROP COLUMN setback;
    ALTER TABLE secrets DROP COLUMN created_at;
    DROP INDEX leases_with_units; ALTER TABLE leases DROP COLUMN units; ALTER TABLE runs DROP COLUMN model; DROP INDEX jobs_that_ask; ALTER TABLE jobs DROP COLUMN conversation; ALTER TABLE jobs DROP COLUMN question_due; 
    DROP TABLE IF EXISTS job_secrets; DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions; DELETE FROM schema_migrations WHERE version > 6"#;

/// One was merged, one was going to be: that one is shipping now, and is merged as any other.
async fn what_was_shipped_and_not_merged_is_shipping(place: Place) {
    let store = place.open().await.unwrap();
    let mac = factory(&*store).await;
    let with_repo = |number| {
        let mut job = new_job(number);
        job.spec.repo = Some("hello".to_owned());
        job.spec.ship = ShipMode::Auto;
        job
    };
    let jobs = vec![with_repo(1), with_repo(2)];
    store.submit(Submit { jobs: jobs.clone(), actor: Actor::system("test") }).await.unwrap();
    let known = Advertised {
        seat_limit: 9,
        repos: vec![serde_json::from_value(json!({"name": "hello"})).unwrap()],
        ..Advertised::default()
    };
    store.advertise(Advertise { factory: mac.clone(), advertised: known }).await.unwrap();
    for (job, request) in jobs.iter().zip(["r1", "r2"]) {
        let (factory, request) = (mac.clone(), request.parse().unwrap());
        let lease = Duration::from_mins(1);
        let claim = Claim { job: job.id, rev: None, dispatch_seq: None, factory, request, lease };
        let Claimed::Granted(held) = store.claim(claim).await.unwrap() else { panic!("not granted") };
        let report = RunReport {
            branch: Some("aq/job/x/1".to_owned()),
            commit: Some("c0ffee".to_owned()),
            ..RunReport::default()
        };
        let holder = Holder { factory: mac.clone(), epoch: held.epoch };
        let actions = vec![HolderAction::Start, HolderAction::Report(report)];
        store.hold(Hold { job: job.id, holder, actions }).await.unwrap();
    }
    let take = || TakeMerges {
        factory: mac.clone(),
        lease: Duration::from_mins(1),
        batches: [("demo".parse().unwrap(), 1)].into(),
    };
    let merged = MergeOutcome::Merged { commit: "abc".to_owned(), into: "main".to_owned(), note: None };
    let settle = |job, attempt| HoldMerges {
        factory: mac.clone(),
        holds: vec![HoldMerge { job, attempt, action: MergeAction::Settle(merged.clone()) }],
    };
    let first = store.take_merges(take()).await.unwrap().remove(0);
    store.hold_merges(settle(first.id, 1)).await.unwrap();
    let waiting = store.read().job(jobs[1].id).await.unwrap().unwrap();
    drop(store);
    place.run(BEFORE_SHIPPING).await;

    let store = place.open().await.unwrap();
    let found = store.read().job(jobs[1].id).await.unwrap().unwrap();
    assert_eq!((found.stage(), &found.merge), (Stage::Shipping, &waiting.merge));
    let counts = store.read().queue_state(&"demo".parse().unwrap()).await.unwrap();
    assert_eq!((counts.count(Stage::Shipping), counts.count(Stage::Shipped)), (1, 1));
    let taken = store.take_merges(take()).await.unwrap();
    assert_eq!(taken.iter().map(|job| job.id).collect::<Vec<_>>(), [jobs[1].id]);
    let done = store.hold_merges(settle(jobs[1].id, 1)).await.unwrap();
    assert_eq!(done[0].stage(), Stage::Shipped);
    let counts = store.read().queue_state(&"demo".parse().unwrap()).await.unwrap();
    assert_eq!((counts.count(Stage::Shipping), counts.count(Stage::Shipped)), (0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_ships_what_was_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    what_was_shipped_and_not_merged_is_shipping(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_ships_what_was_not_merged() {
    what_was_shipped_and_not_merged_is_shipping(postgres().await).await;
}

/// Two products, jobs in several stages: every count and every version is as before, and goes on from there.
async fn queue_counts_are_carried_over(place: Place) {
    let store = place.open().await.unwrap();
    for number in 1..=5 {
        submit(&*store, number).await;
    }
    let mut blocked = new_job(6);
    blocked.spec.deps = vec![new_job(1).id];
    let elsewhere = NewJob { product: "other".parse().unwrap(), ..new_job(7) };
    let more = Submit { jobs: vec![blocked, elsewhere], actor: Actor::system("test") };
    store.submit(more).await.unwrap();
    let before = store.read().queue_states().await.unwrap();
    let demo = before[0].1;
    assert_eq!((demo.count(Stage::Queued), demo.count(Stage::Blocked), demo.version), (5, 1, 6));
    drop(store);
    place.run(COLUMN_PER_STAGE).await;
    let store = place.open().await.unwrap();
    assert_eq!(store.read().queue_states().await.unwrap(), before);
    submit(&*store, 8).await;
    let after = store.read().queue_state(&"demo".parse().unwrap()).await.unwrap();
    assert_eq!((after.count(Stage::Queued), after.version), (6, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_carries_queue_counts_over() {
    let folder = tempfile::tempdir().unwrap();
    queue_counts_are_carried_over(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_carries_queue_counts_over() {
    queue_counts_are_carried_over(postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_goes_on_after_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    work_goes_on_after_an_upgrade(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_goes_on_after_an_upgrade() {
    work_goes_on_after_an_upgrade(postgres().await).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_uses_a_newer_schema_that_only_adds() {
    let folder = tempfile::tempdir().unwrap();
    a_newer_schema_that_only_adds_is_used(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_uses_a_newer_schema_that_only_adds() {
    a_newer_schema_that_only_adds_is_used(postgres().await).await;
}

/// A key of before rotation is as old as can be: it is replaced at once, and what it signed stays good.
async fn a_key_of_before_is_replaced_and_kept(place: Place) {
    let store = place.open().await.unwrap();
    let key = |fresh, older_than| RotateKey {
        name: "links",
        previous: "links.previous",
        fresh: [fresh; 32],
        older_than,
        actor: Actor::system("test"),
    };
    store.rotate_key(key(1, Duration::MAX)).await.unwrap();
    drop(store);
    place
        .run(
            "ALTER TABLE secrets DROP COLUMN created_at; DROP TABLE job_secrets; \
             DROP INDEX leases_with_units; ALTER TABLE leases DROP COLUMN units; ALTER TABLE runs DROP COLUMN model; DROP INDEX jobs_that_ask; ALTER TABLE jobs DROP COLUMN conversation; \
             ALTER TABLE jobs DROP COLUMN question_due; \
             DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions; DELETE FROM schema_migrations WHERE version > 7",
        )
        .await;
    let store = place.open().await.unwrap();
    let ring = store.rotate_key(key(2, Duration::from_millis(1))).await.unwrap();
    assert_eq!((ring.current, ring.previous), ([2; 32], Some([1; 32])));
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_a_key_of_before() {
    let folder = tempfile::tempdir().unwrap();
    a_key_of_before_is_replaced_and_kept(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_keeps_a_key_of_before() {
    a_key_of_before_is_replaced_and_kept(postgres().await).await;
}

/// What the eleventh migration has made, taken back.
const BEFORE_TALK: &str = "\
    DROP INDEX leases_with_units; ALTER TABLE leases DROP COLUMN units; ALTER TABLE runs DROP COLUMN model; DROP INDEX jobs_that_ask; ALTER TABLE jobs DROP COLUMN conversation; \
    ALTER TABLE jobs DROP COLUMN question_due;";

/// A job of before the eleventh migration has said nothing, and can ask from here on.
async fn a_job_of_before_can_ask(place: Place) {
    let store = place.open().await.unwrap();
    submit(&*store, 1).await;
    let mac = factory(&*store).await;
    drop(store);
    place
        .run(&format!(
            "{BEFORE_TALK} DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions; DELETE FROM schema_migrations WHERE version >= 11"
        ))
        .await;
    let store = place.open().await.unwrap();
    let id = new_job(1).id;
    assert_eq!(store.read().job(id).await.unwrap().unwrap().conversation, None);
    let claim = Claim {
        job: id,
        rev: None,
        dispatch_seq: None,
        factory: mac.clone(),
        request: "r".parse().unwrap(),
        lease: Duration::from_secs(30),
    };
    let Claimed::Granted(job) = store.claim(claim).await.unwrap() else { panic!("it can be claimed") };
    let ask = HolderAction::Ask(Ask { text: "which port?".to_owned(), ..Ask::default() });
    let holder = Holder { factory: mac, epoch: job.epoch };
    let asked = store.hold(Hold { job: id, holder, actions: vec![ask] }).await.unwrap();
    assert!(asked.needs_input());
    assert_eq!(store.read().job(id).await.unwrap(), Some(asked));
    assert_eq!(store.read().asking(1).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_jobs_of_before_can_ask() {
    let folder = tempfile::tempdir().unwrap();
    a_job_of_before_can_ask(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_jobs_of_before_can_ask() {
    a_job_of_before_can_ask(postgres().await).await;
}

/// A lease of before the thirteenth migration says nothing of what its job uses: that counts as nothing until it ends, and
/// what is granted afterwards counts.
async fn a_lease_of_before_uses_nothing_by_number(place: Place) {
    let store = place.open().await.unwrap();
    let mac = factory(&*store).await;
    let capabilities = CapabilitySet::parse(["os:linux", "gpu=1"]).unwrap();
    let advertised = Advertised { capabilities, seat_limit: 9, ..Advertised::default() };
    store.advertise(Advertise { factory: mac.clone(), advertised }).await.unwrap();
    let claim = async |store: &dyn Store, number: u128| {
        let claim = Claim {
            job: new_job(number).id,
            rev: None,
            dispatch_seq: None,
            factory: mac.clone(),
            request: format!("r-{number}").parse().unwrap(),
            lease: Duration::from_secs(30),
        };
        store.claim(claim).await.unwrap()
    };
    for number in 1..=3 {
        let mut new = new_job(number);
        new.spec.capabilities = CapabilitySet::parse(["gpu"]).unwrap();
        store.submit(Submit { jobs: vec![new], actor: Actor::system("test") }).await.unwrap();
    }
    assert!(matches!(claim(&*store, 1).await, Claimed::Granted(_)));
    drop(store);
    place
        .run(
            "DROP INDEX leases_with_units; ALTER TABLE leases DROP COLUMN units; \
             DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions WHERE version >= 13",
        )
        .await;
    let store = place.open().await.unwrap();
    assert!(matches!(claim(&*store, 2).await, Claimed::Granted(_)));
    assert_eq!(claim(&*store, 3).await, Claimed::Lost(Lost::InUse));
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_leases_of_before_use_nothing_by_number() {
    let folder = tempfile::tempdir().unwrap();
    a_lease_of_before_uses_nothing_by_number(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_leases_of_before_use_nothing_by_number() {
    a_lease_of_before_uses_nothing_by_number(postgres().await).await;
}

/// A database of before the tenth migration has no table for secrets, and gets one.
async fn secrets_can_be_set_after_an_upgrade(place: Place) {
    submit(&*place.open().await.unwrap(), 1).await;
    place
        .run(&format!(
            "{BEFORE_TALK} DROP TABLE job_secrets; DROP TABLE IF EXISTS pools; DROP TABLE IF EXISTS pool_members; DELETE FROM schema_additions; DELETE FROM schema_migrations WHERE version >= 10"
        ))
        .await;
    let store = place.open().await.unwrap();
    let (product, name) = ("demo".parse().unwrap(), "KEY".parse().unwrap());
    let set = SetSecret {
        product,
        name,
        version: 1,
        key_id: "k".to_owned(),
        sealed: vec![0, 255],
        actor: Actor::system("test"),
    };
    let secret = store.set_secret(set).await.unwrap();
    assert_eq!(store.read().secrets(&secret.product).await.unwrap(), [secret]);
    assert!(store.read().job(new_job(1).id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_has_secrets_after_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    secrets_can_be_set_after_an_upgrade(sqlite(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_has_secrets_after_an_upgrade() {
    secrets_can_be_set_after_an_upgrade(postgres().await).await;
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
