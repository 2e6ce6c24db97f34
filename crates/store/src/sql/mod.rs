//! What the two SQL databases share: the texts of lookups, and every read.
//!
//! A read is one statement outside of any transaction, so it never waits for a writer and never sees half a write.
//! Texts here must run on both: `$1`, `$2`, … appear in this order, and functions that differ are asked for.

pub(crate) mod graph;
pub(crate) mod reads;

use std::future::Future;

use async_trait::async_trait;
use giga_domain::{JobId, Stage, Timestamp};
use giga_ports::StoreError;

use crate::engine::{Backend, Batch, Committed};
use crate::rows::{Cell, Fields, JOB_READ, LEASE_READ, Table};

/// A database that is spoken to in SQL, behind the engine.
pub struct SqlBackend<D> {
    pub(crate) driver: D,
}

impl<D> std::fmt::Debug for SqlBackend<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Nothing of the driver: it knows passwords.
        f.debug_struct("SqlBackend").finish_non_exhaustive()
    }
}

pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) values: Vec<Cell>,
    /// Whose columns are selected, for decoding and for errors.
    pub(crate) table: &'static Table,
}

pub(crate) type Decode<T> = fn(&mut Fields<'_>) -> Result<T, StoreError>;

pub(crate) trait Driver: Send + Sync + 'static {
    /// The table `jobs`, read in the order of ids through the index of live ones.
    const LIVE_JOBS: &'static str;

    /// Whether the name of a job contains the text that `{}` stands for, which is in lower case. Only A to Z are taken
    /// for a to z, whatever the database's language is.
    const NAME_CONTAINS: &'static str;

    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    fn ping(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn query<T: Send + 'static>(
        &self,
        query: Query,
        decode: Decode<T>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

    fn transact(&self, batch: Batch) -> impl Future<Output = (Batch, Result<Committed, StoreError>)> + Send;
}

#[async_trait]
impl<D: Driver> Backend for SqlBackend<D> {
    async fn transact(&self, batch: Batch) -> (Batch, Result<Committed, StoreError>) {
        self.driver.transact(batch).await
    }

    async fn any_to_reconsider(&self) -> Result<bool, StoreError> {
        let sql = graph::ANY_TO_RECONSIDER.to_owned();
        let query = Query { sql, values: Vec::new(), table: &graph::RECONSIDER };
        Ok(!self.driver.query(query, crate::rows::number::<u64>).await?.is_empty())
    }
}

/// Jobs with their leases; `tail` says which.
pub(crate) fn select_jobs(tail: &str) -> String {
    select_jobs_from("jobs", tail)
}

fn select_jobs_from(jobs: &str, tail: &str) -> String {
    format!(
        "SELECT {}, {} FROM {jobs} LEFT JOIN leases ON leases.job_id = jobs.id {tail}",
        JOB_READ.qualified_list(),
        LEASE_READ.qualified_list(),
    )
}

/// `('queued', 'assigned', …)`: the stages of which the domain says so, as SQL lists them.
pub(crate) fn stages(such: fn(Stage) -> bool) -> String {
    let names: Vec<_> =
        Stage::ALL.into_iter().filter(|stage| such(*stage)).map(|s| format!("'{s}'")).collect();
    format!("({})", names.join(", "))
}

pub(crate) fn select(table: &Table, tail: &str) -> String {
    format!("SELECT {} FROM {} {tail}", table.list(), table.name)
}

/// Goes behind an insert. `set` makes the assignment for a column that is not of the key.
pub(crate) fn on_conflict(table: &Table, set: fn(&Table, &str) -> String) -> String {
    let key: Vec<_> = table.names().take(table.key).collect();
    let sets: Vec<_> = table.names().skip(table.key).map(|column| set(table, column)).collect();
    format!(" ON CONFLICT ({}) DO UPDATE SET {}", key.join(", "), sets.join(", "))
}

pub(crate) fn replace_excluded(_: &Table, column: &str) -> String {
    format!("{column} = excluded.{column}")
}

pub(crate) fn add_excluded(table: &Table, column: &str) -> String {
    format!("{column} = {}.{column} + excluded.{column}", table.name)
}

/// The leases that are due first. One more than wanted is asked for: it says when the next one is.
pub(crate) const FIRST_TO_EXPIRE: &str = "SELECT job_id, due_at FROM leases ORDER BY due_at, job_id LIMIT $1";

/// From [`FIRST_TO_EXPIRE`] to the jobs whose lease is due and when the first that stays will be.
pub(crate) fn split_expired(
    mut first: Vec<(JobId, Timestamp)>,
    now: Timestamp,
    limit: usize,
) -> (Vec<JobId>, Option<Timestamp>) {
    let over = first.iter().take(limit).take_while(|(_, ends)| *ends <= now).count();
    let next = first.get(over).map(|(_, ends)| *ends);
    first.truncate(over);
    (first.into_iter().map(|(id, _)| id).collect(), next)
}

/// Orders to merge, those that are due first.
pub(crate) const MERGEABLE: &str =
    "SELECT id FROM jobs WHERE merge_due IS NOT NULL ORDER BY merge_due, id LIMIT $1";

/// Jobs with open questions, those whose time is up first.
pub(crate) const FIRST_ASKING: &str =
    "SELECT id, question_due FROM jobs WHERE question_due IS NOT NULL ORDER BY question_due, id LIMIT $1";

/// Jobs that ended before a time and that nobody hangs on: none waits for them, and neither their parent nor a child is
/// still open. From a job to the few beside it by their ids: the subqueries and the idle `OFFSET` keep planners from
/// starting at all jobs of a stage instead, which looks cheap to them while a table is small.
pub(crate) fn retirable(more: &str) -> String {
    format!(
        "SELECT id FROM jobs WHERE ended_at < $1 AND NOT EXISTS ( \
             SELECT 1 FROM deps WHERE deps.dep_id = jobs.id \
             AND (SELECT waiting.stage FROM jobs AS waiting WHERE waiting.id = deps.job_id) IN {} \
             LIMIT 1 OFFSET 0) \
         AND NOT EXISTS ( \
             SELECT 1 FROM jobs AS parent WHERE parent.id = jobs.parent_id AND parent.ended_at IS NULL \
             LIMIT 1 OFFSET 0) \
         AND NOT EXISTS ( \
             SELECT 1 FROM jobs AS child WHERE child.parent_id = jobs.id AND child.ended_at IS NULL \
             LIMIT 1 OFFSET 0) {more}",
        stages(Stage::is_waiting)
    )
}

pub(crate) const RETIRABLE_TAIL: &str = "ORDER BY ended_at, id LIMIT $2";

/// Whatever waits for a receiver is given up, in one step.
pub(crate) const GIVE_UP_EFFECTS: &str = "\
    UPDATE effects SET state = 'dead', due_at = NULL, detail = $1, updated_at = $2 \
    WHERE receiver = $3 AND due_at IS NOT NULL";

/// Effects that were over before a time, oldest first.
pub(crate) const EFFECTS_OVER_TAIL: &str =
    "WHERE due_at IS NULL AND updated_at < $1 ORDER BY updated_at, id LIMIT $2";

pub(crate) const PRUNABLE: &str = "\
    SELECT id FROM factories WHERE COALESCE(last_seen_at, enrolled_at) < $1 \
        AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.factory_id = factories.id) \
    ORDER BY id";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::{POSTGRES, SQLITE};

    /// A partial index has the stages as text. It has to be the text that the look asks with.
    #[test]
    fn the_index_of_live_jobs_holds_what_the_domain_calls_live() {
        let index = format!("CREATE INDEX jobs_live ON jobs (id) WHERE stage IN {};", stages(Stage::is_live));
        for migrations in [SQLITE, POSTGRES] {
            let made = migrations.iter().rev().find(|migration| migration.sql.contains("INDEX jobs_live"));
            assert!(made.is_some_and(|migration| migration.sql.contains(&index)), "{index}");
        }
    }

    /// The same for what people did, and it is how an actor is written.
    #[test]
    fn the_index_of_people_holds_what_people_did() {
        let index = format!(
            "CREATE INDEX IF NOT EXISTS events_by_people ON events (pos) WHERE {};",
            reads::BY_PEOPLE
        );
        for migrations in [SQLITE, POSTGRES] {
            assert!(migrations.iter().any(|migration| migration.sql.contains(&index)), "{index}");
        }
        let id = "tok-1".parse().map(giga_domain::Actor::Token).unwrap();
        let written = serde_json::to_string(&id).unwrap();
        assert!(reads::BY_PEOPLE.contains(&format!("1, 15) = '{}'", &written[..15])), "{written}");
    }
}
