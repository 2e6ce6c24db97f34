//! Graphs of jobs in SQLite.

use giga_domain::Stage;
use giga_ports::StoreError;
use rusqlite::Connection;

use super::persist::write;
use super::read;
use crate::engine::{GraphNeeds, GraphWrites, Loaded};
use crate::rows::{Cell, JOBS, text};
use crate::sql::{self, graph};

type Result<T> = std::result::Result<T, StoreError>;

const LISTED: &str = "IN (SELECT value FROM json_each($1))";

/// Before the jobs are loaded: which they are.
pub(super) fn take(connection: &Connection, needs: &GraphNeeds, loaded: &mut Loaded) -> Result<()> {
    if needs.reconsider > 0 {
        let sql = "SELECT id, job_id, parent_ended FROM reconsider ORDER BY id LIMIT $1";
        loaded.graph.taken =
            read(connection, sql, vec![needs.reconsider.into()], &graph::RECONSIDER, graph::taken)?;
    }
    Ok(())
}

/// Behind the jobs: how they stand to others.
pub(super) fn look(connection: &Connection, needs: &GraphNeeds, loaded: &mut Loaded) -> Result<()> {
    if !needs.parents.is_empty() {
        let sql = graph::standings(LISTED);
        let found = read(connection, &sql, vec![list(&needs.parents)], &JOBS, graph::standing)?;
        loaded.graph.parents = found.into_iter().collect();
    }
    if !needs.awaited.is_empty() {
        let sql = waits();
        loaded.graph.waits = read(connection, &sql, vec![list(&needs.awaited)], &JOBS, graph::wait)?;
    }
    if loaded.graph.taken.is_empty() {
        return Ok(());
    }
    let jobs = || vec![list(loaded.graph.taken.iter().map(|taken| &taken.job))];
    let deps = read(connection, &graph::dep_stages(LISTED), jobs(), &JOBS, graph::stage_count)?;
    let children = read(connection, &graph::child_stages(LISTED), jobs(), &JOBS, graph::stage_count)?;
    let sql = format!(
        "SELECT id, stage, spec FROM jobs WHERE id IN (SELECT parent_id FROM jobs WHERE id {LISTED})"
    );
    let parents = read(connection, &sql, jobs(), &JOBS, graph::parent)?;
    graph::relations(&mut loaded.graph, |id| loaded.jobs.get(&id), deps, children, &parents);
    Ok(())
}

/// `+` keeps the planner from starting at all jobs of a stage.
fn waits() -> String {
    let waiting = sql::stages(Stage::is_waiting);
    format!(
        "WITH RECURSIVE above (id, awaits) AS ( \
             SELECT value, '' FROM json_each($1) \
             UNION \
             SELECT waiting.id, above.id FROM above JOIN deps ON deps.dep_id = above.id \
                 JOIN jobs AS waiting ON waiting.id = deps.job_id WHERE +waiting.stage IN {waiting} \
             UNION \
             SELECT parent.id, above.id FROM above JOIN jobs AS child ON child.id = above.id \
                 JOIN jobs AS parent ON parent.id = child.parent_id \
                 WHERE parent.kind = 'composite' AND +parent.stage IN {waiting}) \
         SELECT id, awaits FROM above WHERE awaits <> ''"
    )
}

pub(super) fn persist(connection: &Connection, writes: &GraphWrites) -> Result<()> {
    write(
        connection,
        "DELETE FROM reconsider WHERE id = $1",
        writes.seen_to.iter().map(|row| vec![Cell::from(*row)]),
    )?;
    let over = "INSERT INTO reconsider (job_id) SELECT job_id FROM deps WHERE dep_id = $1";
    write(connection, over, writes.over.iter().map(|id| vec![text(id)]))?;
    let parents = "INSERT INTO reconsider (job_id) \
                   SELECT id FROM jobs WHERE id = $1 AND kind = 'composite' AND ended_at IS NULL";
    write(connection, parents, writes.parents.iter().map(|id| vec![text(id)]))?;
    let ending = graph::reconsider_children("= $1");
    write(connection, &ending, writes.ending.iter().map(|id| vec![text(id)]))?;
    let again = "INSERT INTO reconsider (job_id) VALUES ($1)";
    write(connection, again, writes.again.iter().map(|id| vec![text(id)]))
}

fn list(ids: impl IntoIterator<Item: ToString>) -> Cell {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    Cell::Text(serde_json::Value::from(ids).to_string())
}
