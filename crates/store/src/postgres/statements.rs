//! The statements of a write transaction, prepared once per connection.
//!
//! A plan is made once for each and kept: there is only one good one, and making it again would cost more than
//! running it.

use giga_ports::StoreError;
use tokio_postgres::{Client, Statement};

use super::error::failure;
use super::graph;
use crate::engine::BudgetRow;
use crate::rows::{self, Cell, JOB_READ, Kind, LEASE_READ, Table};
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
    take_to_reconsider =
        "SELECT id, job_id, parent_ended FROM reconsider ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED";
    mergeable = sql::MERGEABLE;
    retirable = sql::retirable(sql::RETIRABLE_TAIL);
    still_retirable = sql::retirable("AND id = ANY($2)");
    prunable = sql::PRUNABLE;

    lock_graph = "SELECT pg_advisory_xact_lock(7717, 4)";
    standings = sql::graph::standings("= ANY($1)");
    waits = graph::waits();
    dep_stages = sql::graph::dep_stages("= ANY($1)");
    child_stages = sql::graph::child_stages("= ANY($1)");
    parents = "SELECT id, stage, spec FROM jobs WHERE id = ANY(ARRAY( \
        SELECT DISTINCT parent_id FROM jobs WHERE id = ANY($1) AND parent_id IS NOT NULL))";

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
    make_budgets = make_budgets();
    lock_budgets = sql::select(
        &rows::BUDGETS,
        "WHERE product_id = ANY(ARRAY( \
            SELECT product_id FROM jobs WHERE id = ANY($1) UNION SELECT unnest($2::text[]))) \
         ORDER BY product_id FOR UPDATE");
    corrected = "SELECT charges.product_id, charges.request_id \
        FROM unnest($1::text[], $2::text[]) AS wanted (product_id, request_id) \
        JOIN charges ON charges.product_id = wanted.product_id AND charges.request_id = wanted.request_id";
    lock_factories = "SELECT id FROM factories WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    factories = sql::select(&rows::FACTORIES, "WHERE id = ANY($1)");
    seats = "SELECT factory_id, count(*) FROM leases WHERE factory_id = ANY($1) GROUP BY factory_id";
    units = "SELECT factory_id, units FROM leases WHERE factory_id = ANY($1) AND units IS NOT NULL";
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

    lock_products = "LOCK TABLE products IN SHARE ROW EXCLUSIVE MODE";
    products = sql::select(&rows::PRODUCTS, "");
    lock_profiles = "LOCK TABLE profiles IN SHARE ROW EXCLUSIVE MODE";
    newest_profiles = format!(
        "SELECT {} FROM unnest($1::text[], $2::text[]) AS wanted (product_id, name) JOIN LATERAL ( \
             SELECT * FROM profiles WHERE profiles.product_id = wanted.product_id \
             AND profiles.name = wanted.name ORDER BY version DESC LIMIT 1) AS profiles ON TRUE",
        rows::PROFILES.qualified_list());
    lock_shared_keys = "LOCK TABLE secrets IN SHARE ROW EXCLUSIVE MODE";
    shared_keys = sql::select(&rows::SECRETS, "WHERE name = ANY($1)");
    lock_job_secrets = "LOCK TABLE job_secrets IN SHARE ROW EXCLUSIVE MODE";
    job_secrets = sql::select(&rows::JOB_SECRETS, "WHERE product_id = ANY($1)");
    lock_fan_out = sql::select(&rows::FAN_OUT, "FOR UPDATE");
    feed_head = "SELECT last_pos FROM feed";
    webhooks = sql::select(&rows::WEBHOOKS, "");
    lock_effects = sql::select(&rows::EFFECTS, "WHERE id = ANY($1) ORDER BY id FOR UPDATE");
    lock_waiting_effects = "SELECT receiver, count(*) FROM ( \
        SELECT receiver, due_at FROM effects WHERE id = ANY($1) OR id = ANY(ARRAY( \
            SELECT waiting.id FROM effects AS waiting WHERE waiting.due_at IS NOT NULL AND waiting.receiver = ANY($2))) \
        ORDER BY id FOR UPDATE) AS locked WHERE due_at IS NOT NULL AND receiver = ANY($2) GROUP BY receiver";
    take_due_effects = sql::select(
        &rows::EFFECTS,
        "WHERE receiver = $1 AND due_at <= \
             COALESCE($2::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) \
         ORDER BY due_at, id LIMIT $3 FOR UPDATE SKIP LOCKED");
    take_effects_over = sql::select(&rows::EFFECTS_OVER, &format!("{} FOR UPDATE SKIP LOCKED", sql::EFFECTS_OVER_TAIL));

    insert_jobs = insert(&rows::JOBS);
    insert_texts = insert(&rows::JOB_TEXTS);
    insert_deps = insert(&rows::DEPS);
    update_jobs = update(&rows::JOB_CHANGES, replace);
    put_leases = upsert(&rows::LEASES, sql::replace_excluded);
    delete_leases = "DELETE FROM leases WHERE job_id = ANY($1)";
    insert_runs = insert(&rows::RUNS);
    update_runs = update(&rows::RUN_CHANGES, keep_when_empty);
    update_budgets = update(&rows::BUDGETS, replace);
    insert_charges = insert(&rows::CHARGES);
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
    delete_tokens = "DELETE FROM tokens WHERE id = ANY($1)";
    delete_flags = "DELETE FROM flags WHERE name = ANY($1)";
    put_leader = upsert(&rows::LEADER, sql::replace_excluded);
    insert_products = insert(&rows::PRODUCTS);
    update_products = update(&rows::PRODUCTS, replace);
    insert_profiles = insert(&rows::PROFILES);
    lock_pools = "LOCK TABLE pools IN SHARE ROW EXCLUSIVE MODE";
    pools = sql::select(&rows::POOLS, "");
    pool_members = sql::select(&rows::MEMBERS, "");
    put_pools = upsert(&rows::POOLS, sql::replace_excluded);
    delete_pools = "DELETE FROM pools WHERE name = ANY($1)";
    put_pool_members = upsert(&rows::MEMBERS, sql::replace_excluded);
    delete_pool_members = "DELETE FROM pool_members WHERE factory_id = ANY($1)";
    insert_shared_keys = insert(&rows::SECRETS);
    put_shared_keys = upsert(&rows::SECRETS, sql::replace_excluded);
    put_job_secrets = upsert(&rows::JOB_SECRETS, sql::replace_excluded);
    delete_job_secrets = "DELETE FROM job_secrets USING unnest($1::text[], $2::text[]) AS gone (product_id, name) \
        WHERE job_secrets.product_id = gone.product_id AND job_secrets.name = gone.name";
    insert_webhooks = insert(&rows::WEBHOOKS);
    delete_webhooks = "DELETE FROM webhooks WHERE id = ANY($1)";
    move_fan_out = "UPDATE fan_out SET pos = $1";
    give_up_effects = sql::GIVE_UP_EFFECTS;
    delete_effects = "DELETE FROM effects WHERE id = ANY($1)";
    insert_effects = insert(&rows::EFFECTS);
    update_effects = update(&rows::EFFECT_CHANGES, replace);
    // An offer that somebody else has locked is about to be deleted by him: it is passed over, and no two coordinators
    // wait for each other over unsent offers. Where he fails after all, the offer is sent once more, which harms nobody.
    withdraw_offers = "DELETE FROM outbox WHERE ctid = ANY(ARRAY( \
        SELECT ctid FROM outbox WHERE job_id = ANY($1) FOR UPDATE SKIP LOCKED))";
    delete_offers = "DELETE FROM outbox WHERE ctid = ANY(ARRAY( \
        SELECT outbox.ctid FROM unnest($1::text[], $2::bigint[]) AS gone (job_id, dispatch_seq) \
        JOIN outbox ON outbox.job_id = gone.job_id AND outbox.dispatch_seq = gone.dispatch_seq \
        FOR UPDATE OF outbox SKIP LOCKED))";
    put_offers = upsert(&rows::OFFERS, sql::replace_excluded);
    retire_events = "DELETE FROM events WHERE job_id = ANY($1)";
    retire_artifacts = "DELETE FROM artifacts WHERE job_id = ANY($1)";
    retire_runs = "DELETE FROM runs WHERE job_id = ANY($1)";
    retire_deps = "DELETE FROM deps WHERE job_id = ANY($1)";
    retire_texts = "DELETE FROM job_texts WHERE job_id = ANY($1)";
    retire_jobs = "DELETE FROM jobs WHERE id = ANY($1)";
    reconsidered = "DELETE FROM reconsider WHERE id = ANY($1)";
    reconsider_waiting = "INSERT INTO reconsider (job_id) SELECT DISTINCT job_id FROM deps WHERE dep_id = ANY($1)";
    reconsider_composites = "INSERT INTO reconsider (job_id) \
        SELECT id FROM jobs WHERE id = ANY($1) AND kind = 'composite' AND ended_at IS NULL";
    reconsider_children = sql::graph::reconsider_children("= ANY($1)");
    reconsider = "INSERT INTO reconsider (job_id) SELECT unnest($1::text[])";
    add_queue = upsert(&rows::QUEUE_COUNTS, sql::add_excluded);
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

/// A blank budget for each product of the jobs `$1`, and for each of `$2`, that has none. Whoever makes the same one at
/// the same time waits, in one order, and finds it.
fn make_budgets() -> String {
    let blank = rows::budget_row(&BudgetRow::new("x".parse().expect("it is a product's id")));
    let values: Vec<String> = blank[1..].iter().map(literal).collect();
    format!(
        "INSERT INTO budgets ({}) SELECT product_id, {} FROM ( \
             SELECT product_id FROM jobs WHERE id = ANY($1) UNION SELECT unnest($2::text[])) AS wanted \
         WHERE NOT EXISTS (SELECT 1 FROM budgets WHERE budgets.product_id = wanted.product_id) \
         ORDER BY product_id ON CONFLICT DO NOTHING",
        rows::BUDGETS.list(),
        values.join(", "),
    )
}

/// Of values that nobody gave us.
fn literal(cell: &Cell) -> String {
    match cell {
        Cell::Int(number) => number.to_string(),
        Cell::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Cell::Null | Cell::Bytes(_) => "NULL".to_owned(),
    }
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
