//! The statements of a topic transaction, prepared and planned once per connection.
//!
//! Where a condition is written in a roundabout way, it keeps the planner from an index that is right for an empty
//! table and ruinous for a full one: plans are made once and have to be good for every size.

use giga_ports::StoreError;
use tokio_postgres::{Client, Statement};

use super::super::reads::row_columns;
use crate::postgres::error::failure;

pub(super) const ID_OUT: &str = "uuid_send(job.id)";

/// The time in milliseconds: a test's, or the server's.
const NOW: &str = "COALESCE($1::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)";
/// As a predicate, `state = 2` would offer the index of leases, which is walked from end to end to find one job.
const RUNNING: &str = "abs(job.state) = 2";

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
    now = format!("SELECT {NOW}");

    // Two coordinators that name the same jobs in one transaction each wait for each other in one order.
    lock = "SELECT FROM topic_jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE";
    succeed = format!(
        "WITH done AS (UPDATE topic_jobs AS job SET state = 3, at = {NOW}, worker = NULL \
             FROM unnest($2::uuid[], $3::bigint[]) AS given (id, epoch) \
             WHERE job.id = given.id AND job.epoch = given.epoch AND {RUNNING} RETURNING job.id, job.topic_id), \
         counted AS (INSERT INTO topic_deltas (topic_id, running, done) \
             SELECT topic_id, -count(*), count(*) FROM done GROUP BY topic_id) \
         SELECT id, topic_id FROM done");
    renew = format!(
        "UPDATE topic_jobs AS job SET at = greatest(job.at, {NOW} + given.lease) \
         FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS given (id, epoch, lease) \
         WHERE job.id = given.id AND job.epoch = given.epoch AND {RUNNING} RETURNING job.id, job.epoch");

    load = format!(
        "{} (SELECT * FROM topic_jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE) AS job {JOIN}", rows());
    load_free = format!(
        "{} (SELECT * FROM topic_jobs WHERE id = ANY($1::uuid[]) FOR UPDATE SKIP LOCKED) AS job {JOIN}", rows());
    expired = format!(
        "{} (SELECT * FROM topic_jobs WHERE state = 2 AND at <= {NOW} \
             ORDER BY at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) AS job {JOIN}", rows());
    due = format!(
        "{} (SELECT * FROM topic_jobs WHERE state = 0 AND at <= {NOW} \
             ORDER BY at LIMIT $2::bigint FOR UPDATE SKIP LOCKED) AS job {JOIN}", rows());
    dead = format!(
        "{} (SELECT * FROM topic_jobs WHERE topic_id = $1::integer AND state = 4 \
             ORDER BY topic_id, id LIMIT $2::bigint FOR UPDATE SKIP LOCKED) AS job {JOIN}", rows());
    next_expiry = "SELECT at FROM topic_jobs WHERE state = 2 ORDER BY at LIMIT 1";
    next_due = "SELECT at FROM topic_jobs WHERE state = 0 ORDER BY at LIMIT 1";
    by_key = "SELECT job.id, job.topic_id, job.idempotency_key, job.payload \
        FROM unnest($1::integer[], $2::text[]) AS wanted (topic_id, key) \
        JOIN topic_jobs AS job ON job.topic_id = wanted.topic_id AND job.idempotency_key = wanted.key";
    places = format!(
        "SELECT {ID_OUT}, topics.product_id, topics.name, job.state::bigint, job.at, job.epoch \
         FROM topic_jobs AS job {JOIN} WHERE job.id = ANY($1::uuid[])");

    // A row's lock is held already; whoever was moved here has no worker.
    move_jobs = "UPDATE topic_jobs AS job SET state = new.state, at = new.at, epoch = new.epoch, \
            attempts = new.attempts, last_error = new.last_error, worker = NULL \
        FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[], $5::integer[], $6::text[]) \
            AS new (id, state, at, epoch, attempts, last_error) WHERE job.id = new.id";
    count = "INSERT INTO topic_deltas (topic_id, scheduled, ready, running, done, dead) \
        SELECT topics.id, scheduled, ready, running, done, dead FROM unnest($1::text[], $2::text[], $3::integer[], \
            $4::integer[], $5::integer[], $6::integer[], $7::integer[]) \
            AS new (product_id, name, scheduled, ready, running, done, dead) \
        JOIN topics ON topics.product_id = new.product_id AND topics.name = new.name";
    // An id that is there is this very call, repeated. A key that is there by now fails the transaction; the next try
    // finds it.
    add = format!(
        "WITH added AS (INSERT INTO topic_jobs (id, created_at, at, epoch, backoff_ms, topic_id, attempts, retry_max, \
                 state, priority, idempotency_key, payload) \
             SELECT id, {NOW}, CASE WHEN run_at > {NOW} THEN run_at ELSE 0 END, 0, backoff_ms, topic_id, 0, retry_max, \
                 CASE WHEN run_at > {NOW} THEN 0 ELSE 1 END, priority, key, payload \
             FROM unnest($2::uuid[], $3::bigint[], $4::integer[], $5::integer[], $6::bigint[], $7::smallint[], \
                 $8::text[], $9::bytea[]) \
                 AS new (id, run_at, topic_id, retry_max, backoff_ms, priority, key, payload) \
             ON CONFLICT (id) DO NOTHING RETURNING id, topic_id, state), \
         counted AS (INSERT INTO topic_deltas (topic_id, scheduled, ready) \
             SELECT topic_id, count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1) \
             FROM added GROUP BY topic_id) \
         SELECT id, state FROM added");

    // A pause that was answered holds: pausing waits for the claims under way.
    enter_pauses = "SELECT pg_advisory_xact_lock_shared(7717, 2)";
    hold_pauses = "SELECT pg_advisory_xact_lock(7717, 2)";
    // Stretch by stretch, until there are enough. The roundabout condition on priority and id can only be met by
    // the index of ready jobs, and only in its order. `$5` are workers, `$6` says which of them has the n-th slot, `$10` how
    // many bytes all payloads may have.
    claim = format!(
        "WITH picked AS MATERIALIZED (SELECT job.id, job.bytes \
             FROM unnest($3::smallint[], $4::uuid[], $8::uuid[]) AS stretch (rank, low, high) \
             CROSS JOIN LATERAL (SELECT id, octet_length(payload)::bigint AS bytes FROM topic_jobs \
                 WHERE topic_id = $2::integer AND state = 1 AND (priority, id) >= (stretch.rank, stretch.low) \
                     AND (priority, id) < (stretch.rank, stretch.high) \
                 ORDER BY priority, id LIMIT $9::bigint FOR UPDATE SKIP LOCKED) AS job \
             WHERE NOT EXISTS (SELECT FROM topic_gates WHERE topic_id = ANY(ARRAY[0, $2::integer])) \
             LIMIT $9::bigint), \
         summed AS (SELECT id, row_number() OVER () AS slot, \
             sum(bytes) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes FROM picked), \
         dealt AS (SELECT id, slot FROM summed WHERE slot = 1 OR bytes <= $10::bigint), \
         claimed AS (UPDATE topic_jobs AS job SET state = 2, at = {NOW} + $7::bigint, epoch = job.epoch + 1, \
                 worker = ($5::text[])[($6::integer[])[dealt.slot]] \
             FROM dealt WHERE job.id = dealt.id \
             RETURNING dealt.slot, job.id, job.epoch, job.attempts, job.priority, job.created_at, job.at, job.payload), \
         counted AS (INSERT INTO topic_deltas (topic_id, ready, running) \
             SELECT $2::integer, -count(*), count(*) FROM claimed HAVING count(*) > 0) \
         SELECT slot, id, epoch, attempts, priority, created_at, at, payload FROM claimed");

    // One coordinator folds at a time; for the others there is nothing to do.
    fold = "WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(7717, 3) AS mine), \
        gone AS (DELETE FROM topic_deltas WHERE (SELECT mine FROM turn) RETURNING *) \
        INSERT INTO topic_counts AS kept (topic_id, scheduled, ready, running, done, dead) \
        SELECT topic_id, sum(scheduled), sum(ready), sum(running), sum(done), sum(dead) FROM gone GROUP BY topic_id \
        ON CONFLICT (topic_id) DO UPDATE SET scheduled = kept.scheduled + excluded.scheduled, \
            ready = kept.ready + excluded.ready, running = kept.running + excluded.running, \
            done = kept.done + excluded.done, dead = kept.dead + excluded.dead";

    put_pause = format!(
        "INSERT INTO topic_gates (topic_id, since, closed_by) VALUES ($2::integer, {NOW}, $3) ON CONFLICT DO NOTHING");
    lift_pause = "DELETE FROM topic_gates WHERE topic_id = $1::integer";

    topic = "SELECT id FROM topics WHERE product_id = $1 AND name = $2";
    names = "SELECT id, product_id, name FROM topics WHERE id = ANY($1::integer[])";
    make_topic = "INSERT INTO topics (product_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";

    walk = "SELECT id, state, at, created_at FROM topic_jobs WHERE id > $1::uuid ORDER BY id LIMIT $2::bigint";
    retire = "WITH old AS MATERIALIZED (SELECT id FROM topic_jobs WHERE id = ANY($1::uuid[]) AND state >= 3 \
            ORDER BY id FOR UPDATE SKIP LOCKED), \
        gone AS (DELETE FROM topic_jobs AS job USING old WHERE job.id = old.id RETURNING job.topic_id, job.state), \
        counted AS (INSERT INTO topic_deltas (topic_id, done, dead) \
            SELECT topic_id, -count(*) FILTER (WHERE state = 3), -count(*) FILTER (WHERE state = 4) \
            FROM gone GROUP BY topic_id) \
        SELECT count(*) FROM gone";
}

const JOIN: &str = "JOIN topics ON topics.id = job.topic_id";

fn rows() -> String {
    format!("SELECT {} FROM", row_columns(ID_OUT))
}
