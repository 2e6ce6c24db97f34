//! Graphs of jobs in PostgreSQL.
//!
//! Rows of `reconsider` are only added and removed, and taken without waiting for anybody: what another coordinator has
//! taken is passed over. What it adds while this one counts has rows of its own, which the next sweep finds.

use std::collections::BTreeSet;

use giga_domain::{JobId, Stage};
use giga_ports::StoreError;

use super::decode_all;
use super::load::{limit, texts};
use super::persist::delete;
use super::pipeline::{Answers, Pipeline, Ticket, Value};
use super::statements::Statements;
use crate::engine::{GraphNeeds, GraphWrites, Loaded};
use crate::rows::{Fields, JOBS};
use crate::sql::{self, graph};

type Result<T> = std::result::Result<T, StoreError>;

/// What is asked for before the jobs are locked, because it says which they are.
pub(super) struct First {
    taken: Option<Ticket>,
    keys: Option<Ticket>,
}

/// Whether there is anything to ask before.
pub(super) fn comes_first(needs: &GraphNeeds) -> bool {
    needs.reconsider > 0 || !needs.keys.is_empty()
}

pub(super) async fn ask_first<'c>(
    pipeline: &mut Pipeline<'c>,
    statements: &'c Statements,
    needs: &GraphNeeds,
) -> First {
    let taken = pipeline
        .send_if(needs.reconsider > 0, &statements.take_to_reconsider, || vec![limit(needs.reconsider)])
        .await;
    let keys = pipeline.send_if(!needs.keys.is_empty(), &statements.keys, || keys(needs)).await;
    First { taken, keys }
}

fn keys(needs: &GraphNeeds) -> Vec<Value> {
    vec![texts(needs.keys.iter().map(|(product, _)| product)), texts(needs.keys.iter().map(|(_, key)| key))]
}

/// The jobs that have to be locked for the graph's sake.
pub(super) fn answer_first(
    answers: &mut Answers,
    first: &First,
    loaded: &mut Loaded,
) -> Result<BTreeSet<JobId>> {
    loaded.graph.taken = decode_all(&answers.take(first.taken), &graph::RECONSIDER, graph::taken)?;
    let by_key = |fields: &mut Fields<'_>| {
        fields.text()?;
        fields.text()?;
        fields.parse()
    };
    let found = decode_all(&answers.take(first.keys), &JOBS, by_key)?;
    Ok(found.into_iter().chain(loaded.graph.taken.iter().map(|taken| taken.job)).collect())
}

/// What is asked for behind the locks of the jobs.
pub(super) struct Looks {
    standings: Option<Ticket>,
    waits: Option<Ticket>,
    deps: Option<Ticket>,
    children: Option<Ticket>,
    parents: Option<Ticket>,
}

/// Before any job is locked: whoever lets jobs wait for more does so alone.
pub(super) async fn lock<'c>(pipeline: &mut Pipeline<'c>, statements: &'c Statements, needs: &GraphNeeds) {
    pipeline.send_if(!needs.awaited.is_empty(), &statements.lock_graph, Vec::new).await;
}

pub(super) async fn look<'c>(
    pipeline: &mut Pipeline<'c>,
    statements: &'c Statements,
    needs: &GraphNeeds,
    loaded: &Loaded,
) -> Looks {
    let taken: BTreeSet<JobId> = loaded.graph.taken.iter().map(|taken| taken.job).collect();
    let any = !taken.is_empty();
    let waits = !needs.awaited.is_empty();
    Looks {
        standings: pipeline
            .send_if(!needs.parents.is_empty(), &statements.standings, || vec![texts(&needs.parents)])
            .await,
        waits: pipeline.send_if(waits, &statements.waits, || vec![texts(&needs.awaited)]).await,
        deps: pipeline.send_if(any, &statements.dep_stages, || vec![texts(&taken)]).await,
        children: pipeline.send_if(any, &statements.child_stages, || vec![texts(&taken)]).await,
        parents: pipeline.send_if(any, &statements.parents, || vec![texts(&taken)]).await,
    }
}

/// Behind the jobs themselves.
pub(super) fn answer(
    answers: &mut Answers,
    looks: &Looks,
    needs: &GraphNeeds,
    loaded: &mut Loaded,
) -> Result<()> {
    loaded.graph.parents =
        decode_all(&answers.take(looks.standings), &JOBS, graph::standing)?.into_iter().collect();
    loaded.graph.waits = decode_all(&answers.take(looks.waits), &JOBS, graph::wait)?;
    let deps = decode_all(&answers.take(looks.deps), &JOBS, graph::stage_count)?;
    let children = decode_all(&answers.take(looks.children), &JOBS, graph::stage_count)?;
    let parents = decode_all(&answers.take(looks.parents), &JOBS, graph::parent)?;
    graph::relations(&mut loaded.graph, |id| loaded.jobs.get(&id), deps, children, &parents);
    // A key that somebody used between the first look and the locks: its job is not locked, and may end unseen.
    let missed = |key| loaded.keys.get(key).is_some_and(|(id, _)| !loaded.jobs.contains_key(id));
    if needs.keys.iter().any(missed) {
        let reason = "somebody else has just made a job under the same key".to_owned();
        return Err(StoreError::Unavailable { reason, source: None });
    }
    Ok(())
}

/// Behind the jobs, so that those which this very batch makes are found too.
pub(super) async fn persist<'c>(out: &mut Pipeline<'c>, s: &'c Statements, writes: &GraphWrites) {
    if !writes.seen_to.is_empty() {
        let rows: Vec<i64> = writes.seen_to.iter().map(|row| row.cast_signed()).collect();
        out.send(&s.reconsidered, vec![Box::new(rows)]).await;
    }
    delete(out, &s.reconsider_waiting, &writes.over).await;
    let parents: Vec<JobId> = writes.parents.iter().copied().collect();
    delete(out, &s.reconsider_composites, &parents).await;
    delete(out, &s.reconsider_children, &writes.ending).await;
    delete(out, &s.reconsider, &writes.again).await;
}

/// Who waits for these jobs, directly or through others.
pub(super) fn waits() -> String {
    let waiting = sql::stages(Stage::is_waiting);
    format!(
        "WITH RECURSIVE above (id, awaits) AS ( \
             SELECT id, ''::text COLLATE \"C\" FROM jobs WHERE id = ANY($1) \
             UNION \
             SELECT next.id, above.id FROM above CROSS JOIN LATERAL ( \
                 SELECT waiting.id FROM deps JOIN jobs AS waiting ON waiting.id = deps.job_id \
                     WHERE deps.dep_id = above.id AND waiting.stage IN {waiting} \
                 UNION ALL \
                 SELECT parent.id FROM jobs AS child JOIN jobs AS parent ON parent.id = child.parent_id \
                     WHERE child.id = above.id AND parent.kind = 'composite' AND parent.stage IN {waiting} \
             ) AS next) \
         SELECT id, awaits FROM above WHERE awaits <> ''"
    )
}
