//! The statements of a write transaction, prepared once per connection.
//!
//! A plan is made once for each and kept: there is only one good one, and making it again would cost more than
//! running it.

use giga_ports::StoreError;
use tokio_postgres::{Client, Statement};

use super::error::failure;
use crate::rows::{self, JOB_READ, Kind, LEASE_READ, Table};
use crate::sql;

macro_rules! statements {
    ($($name:ident = $sql:expr;)*) => {
        pub(super) struct Statements { $(pub(super) $name: Statement,)* }

        impl Statements {
            /// In one round trip.
            pub(super) async fn prepare(client: &Client) -> Result<Self, StoreError> {
                client.batch_execute("SET plan_cache_mode = force_generic_plan").await.map_err(failure)?;
                let texts: Vec<String> = vec![$($sql.into(),)*];
                let prepared = texts.iter().map(|sql| client.prepare(sql));
                let mut prepared = futures::future::try_join_all(prepared).await.map_err(failure)?.into_iter();
                Ok(Self { $($name: prepared.next().expect("there is a statement for every text"),)* })
            }
        }
    };
}

statements! {
    now = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    first_to_expire = sql::FIRST_TO_EXPIRE;
    unblockable = sql::UNBLOCKABLE;
    mergeable = sql::MERGEABLE;
    retirable = sql::retirable(sql::RETIRABLE_TAIL);
    still_retirable = sql::retirable("AND id = ANY($2)");
    prunable = sql::PRUNABLE;

    // Locks and looks are two statements: a look that is part of the lock would show leases as they were before
    // the lock was waited for.
    lock_jobs = sql::select(&JOB_READ, "WHERE id = ANY($1) ORDER BY id FOR UPDATE");
    leases = sql::select(&LEASE_READ, "WHERE job_id = ANY($1)");
    jobs = sql::select_jobs("WHERE jobs.id = ANY($1)");
    keys = "SELECT wanted.product_id, wanted.key, jobs.id, job_texts.fingerprint \
        FROM unnest($1::text[], $2::text[]) AS wanted (product_id, key) \
        JOIN jobs ON jobs.product_id = wanted.product_id AND jobs.idempotency_key = wanted.key \
        JOIN job_texts ON job_texts.job_id = jobs.id";
    // A product id has no colon, so two pairs never make the same text.
    lock_concurrency_keys = "SELECT pg_advisory_xact_lock(key) FROM ( \
        SELECT DISTINCT hashtextextended(product_id || ':' || concurrency_key, 0) AS key FROM jobs \
        WHERE id = ANY($1) AND concurrency_key IS NOT NULL ORDER BY key) AS keys";
    keys_in_use = "SELECT leases.product_id, leases.concurrency_key, count(*) FROM ( \
        SELECT DISTINCT product_id, concurrency_key FROM jobs \
        WHERE id = ANY($1) AND concurrency_key IS NOT NULL) AS wanted \
        JOIN leases ON leases.product_id = wanted.product_id \
            AND leases.concurrency_key = wanted.concurrency_key \
        GROUP BY leases.product_id, leases.concurrency_key";
    lock_factories = "SELECT id FROM factories WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    factories = sql::select(&rows::FACTORIES, "WHERE id = ANY($1)");
    seats = "SELECT factory_id, count(*) FROM leases WHERE factory_id = ANY($1) GROUP BY factory_id";
    artifacts = format!(
        "SELECT {} FROM unnest($1::text[], $2::bigint[], $3::text[]) AS wanted (job_id, lease_epoch, name) \
         JOIN artifacts ON artifacts.job_id = wanted.job_id \
             AND artifacts.lease_epoch = wanted.lease_epoch AND artifacts.name = wanted.name",
        rows::ARTIFACTS.qualified_list());
    grants = "SELECT leases.factory_id, leases.request_id, leases.job_id \
        FROM unnest($1::text[], $2::text[]) AS wanted (factory_id, request_id) \
        JOIN leases ON leases.factory_id = wanted.factory_id AND leases.request_id = wanted.request_id \
        ORDER BY leases.job_id DESC";
    lock_tokens = sql::select(
        &rows::TOKENS, "WHERE id = ANY($1) OR factory_id = ANY($2) ORDER BY id FOR UPDATE");
    lock_flags = sql::select(&rows::FLAGS, "WHERE name = ANY($1) ORDER BY name FOR UPDATE");
    lock_leader = sql::select(&rows::LEADER, "FOR UPDATE");

    insert_jobs = insert(&rows::JOBS);
    insert_texts = insert(&rows::JOB_TEXTS);
    insert_deps = insert(&rows::DEPS);
    update_jobs = update(&rows::JOB_CHANGES, replace);
    put_leases = upsert(&rows::LEASES, sql::replace_excluded);
    delete_leases = "DELETE FROM leases WHERE job_id = ANY($1)";
    insert_runs = insert(&rows::RUNS);
    update_runs = update(&rows::RUN_CHANGES, keep_when_empty);
    delete_artifacts = "DELETE FROM artifacts WHERE id = ANY($1)";
    insert_artifacts = insert(&rows::ARTIFACTS);
    insert_factories = insert(&rows::FACTORIES);
    update_factories = update(&rows::FACTORIES, replace);
    delete_factories = "DELETE FROM factories WHERE id = ANY($1)";
    see_factories = update(&rows::SIGHTINGS, later);
    insert_tokens = insert(&rows::TOKENS);
    update_tokens = update(&rows::TOKENS, replace);
    insert_flags = insert(&rows::FLAGS);
    update_flags = update(&rows::FLAGS, replace);
    delete_flags = "DELETE FROM flags WHERE name = ANY($1)";
    put_leader = upsert(&rows::LEADER, sql::replace_excluded);
    // An offer that somebody else has locked is about to be deleted by him: it is passed over, and no two coordinators
    // wait for each other over the outbox. Where he fails after all, the offer is sent once more, which harms nobody.
    withdraw_offers = "DELETE FROM outbox WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM outbox WHERE job_id = ANY($1) FOR UPDATE SKIP LOCKED))";
    delete_offers = "DELETE FROM outbox WHERE ctid = ANY(ARRAY( \
        SELECT outbox.ctid FROM unnest($1::text[], $2::bigint[]) AS gone (job_id, dispatch_seq) \
        JOIN outbox ON outbox.job_id = gone.job_id AND outbox.dispatch_seq = gone.dispatch_seq \
        FOR UPDATE OF outbox SKIP LOCKED))";
    put_offers = upsert(&rows::OUTBOX, sql::replace_excluded);
    retire_events = "DELETE FROM events WHERE job_id = ANY($1)";
    retire_artifacts = "DELETE FROM artifacts WHERE job_id = ANY($1)";
    retire_runs = "DELETE FROM runs WHERE job_id = ANY($1)";
    retire_deps = "DELETE FROM deps WHERE job_id = ANY($1)";
    retire_texts = "DELETE FROM job_texts WHERE job_id = ANY($1)";
    retire_jobs = "DELETE FROM jobs WHERE id = ANY($1)";
    add_queue = upsert(&rows::QUEUE_STATE, sql::add_excluded);
    append_events = append_events();
}

/// `unnest($1::text[], $2::bigint[], …)`: one array per column, the first of them numbered `first`.
fn unnest(columns: &[(&str, Kind)], first: usize) -> String {
    let arrays = columns.iter().zip(first..).map(|((_, kind), place)| match kind {
        Kind::Text => format!("${place}::text[]"),
        Kind::Int => format!("${place}::bigint[]"),
        Kind::Bytes => format!("${place}::bytea[]"),
    });
    format!("unnest({})", arrays.collect::<Vec<_>>().join(", "))
}

fn insert(table: &Table) -> String {
    format!("INSERT INTO {} ({}) SELECT * FROM {}", table.name, table.list(), unnest(table.columns, 1))
}

fn upsert(table: &Table, set: fn(&Table, &str) -> String) -> String {
    insert(table) + &sql::on_conflict(table, set)
}

fn update(table: &Table, set: fn(&Table, &str) -> String) -> String {
    let sets: Vec<_> = table.names().skip(table.key).map(|column| set(table, column)).collect();
    let key: Vec<_> = table
        .names()
        .take(table.key)
        .map(|column| format!("{}.{column} = new.{column}", table.name))
        .collect();
    format!(
        "UPDATE {} SET {} FROM {} AS new ({}) WHERE {}",
        table.name,
        sets.join(", "),
        unnest(table.columns, 1),
        table.list(),
        key.join(" AND ")
    )
}

fn replace(_: &Table, column: &str) -> String {
    format!("{column} = new.{column}")
}

fn keep_when_empty(table: &Table, column: &str) -> String {
    format!("{column} = COALESCE(new.{column}, {}.{column})", table.name)
}

fn later(table: &Table, column: &str) -> String {
    format!("{column} = greatest({}.{column}, new.{column})", table.name)
}

/// Takes the feed's lock and so many positions, and gives them to the events in their order. `$1` is how many.
fn append_events() -> String {
    let columns = &rows::EVENTS.columns[1..];
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    format!(
        "WITH head AS (UPDATE feed SET last_pos = last_pos + $1::bigint RETURNING last_pos), \
         added AS (INSERT INTO events (pos, {names}) \
             SELECT head.last_pos - $1::bigint + new.place, {names} \
             FROM head, {} WITH ORDINALITY AS new ({names}, place)) \
         SELECT last_pos FROM head",
        unnest(columns, 2)
    )
}
