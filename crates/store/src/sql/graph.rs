//! The texts of lookups about graphs of jobs. `list` is how the database says "one of the first parameter".

use giga_domain::transition::ParentEnd;
use giga_domain::{Job, JobId, JobSpec, Stage, Usd};
use giga_ports::StoreError;
use giga_ports::store::SubtreeTotals;

use super::select_jobs_from;
use crate::engine::{GraphLoaded, Standing, Taken};
use crate::rows::{Fields, Kind, Table};

pub(crate) const RECONSIDER: Table = Table {
    name: "reconsider",
    key: 1,
    columns: &[("id", Kind::Int), ("job_id", Kind::Text), ("parent_ended", Kind::Int)],
};

pub(crate) const ANY_TO_RECONSIDER: &str = "SELECT id FROM reconsider LIMIT 1";

/// Children that are looked at because their parent ended; `one_of` says whose. A child that had failed before need not be.
pub(crate) fn reconsider_children(one_of: &str) -> String {
    format!(
        "INSERT INTO reconsider (job_id, parent_ended) \
         SELECT id, CASE stage WHEN '{}' THEN 0 ELSE 1 END FROM jobs WHERE parent_id {one_of}",
        Stage::Failed
    )
}

/// How many deps of each job stand in each stage, where that is none for one that is gone. From the few deps of one job
/// to the job at their other end by its id, so that no planner starts at all jobs instead.
pub(crate) fn dep_stages(list: &str) -> String {
    format!(
        "SELECT job_id, stage, count(*) FROM ( \
             SELECT deps.job_id, (SELECT needed.stage FROM jobs AS needed WHERE needed.id = deps.dep_id) AS stage \
             FROM deps WHERE deps.job_id {list}) AS found \
         GROUP BY job_id, stage"
    )
}

/// How many children of each job stand in each stage.
pub(crate) fn child_stages(list: &str) -> String {
    format!("SELECT parent_id, stage, count(*) FROM jobs WHERE parent_id {list} GROUP BY parent_id, stage")
}

/// How many stand above each job, and how many children it has.
pub(crate) fn standings(list: &str) -> String {
    format!(
        "WITH RECURSIVE above (start, id, depth) AS ( \
             SELECT id, parent_id, CAST(0 AS BIGINT) FROM jobs WHERE id {list} \
             UNION ALL \
             SELECT above.start, jobs.parent_id, above.depth + 1 FROM above JOIN jobs ON jobs.id = above.id \
             WHERE above.depth < 1000) \
         SELECT start, max(depth), (SELECT count(*) FROM jobs AS child WHERE child.parent_id = above.start) \
         FROM above GROUP BY start"
    )
}

/// The job and all below it, generation by generation.
pub(crate) fn subtree() -> String {
    let tail = "ORDER BY below.depth, jobs.id LIMIT $2";
    format!(
        "WITH RECURSIVE below (id, depth) AS ( \
             SELECT id, CAST(0 AS BIGINT) FROM jobs WHERE id = $1 \
             UNION ALL \
             SELECT jobs.id, below.depth + 1 FROM below JOIN jobs ON jobs.parent_id = below.id \
             WHERE below.depth < 1000) {}",
        select_jobs_from("below JOIN jobs ON jobs.id = below.id", tail)
    )
}

/// How many jobs of a subtree that do the work stand in each stage, and what these have cost.
pub(crate) fn subtree_totals() -> String {
    "WITH RECURSIVE below (id, depth) AS ( \
         SELECT id, CAST(0 AS BIGINT) FROM jobs WHERE id = $1 \
         UNION ALL \
         SELECT jobs.id, below.depth + 1 FROM below JOIN jobs ON jobs.parent_id = below.id \
         WHERE below.depth < 1000), \
     worked (stage, usd) AS ( \
         SELECT jobs.stage, \
             coalesce((SELECT sum(charges.usd) FROM charges WHERE charges.job_id = jobs.id), 0) \
             + coalesce((SELECT leases.spent_usd FROM leases WHERE leases.job_id = jobs.id), 0) \
         FROM below JOIN jobs ON jobs.id = below.id WHERE jobs.kind = 'agent') \
     SELECT stage, count(*), CAST(sum(usd) AS BIGINT) FROM worked GROUP BY stage"
        .to_owned()
}

/// Puts the rows of [`subtree_totals`] together.
pub(crate) fn totals(rows: Vec<(Stage, u64, Usd)>) -> SubtreeTotals {
    let mut totals = SubtreeTotals::default();
    for (stage, jobs, usd) in rows {
        totals.by_stage[stage] += jobs;
        totals.spent += usd;
    }
    totals
}

/// A row of [`dep_stages`] or [`child_stages`].
pub(crate) fn stage_count(fields: &mut Fields<'_>) -> Result<(JobId, Option<Stage>, u32), StoreError> {
    Ok((fields.parse()?, fields.parse_or_null()?, fields.count()?))
}

/// Id, stage and spec of a parent.
pub(crate) fn parent(fields: &mut Fields<'_>) -> Result<(JobId, Stage, JobSpec), StoreError> {
    Ok((fields.parse()?, fields.parse()?, fields.json()?))
}

/// Who waits, and for whom.
pub(crate) fn wait(fields: &mut Fields<'_>) -> Result<(JobId, JobId), StoreError> {
    Ok((fields.parse()?, fields.parse()?))
}

/// A row of [`standings`].
pub(crate) fn standing(fields: &mut Fields<'_>) -> Result<(JobId, Standing), StoreError> {
    Ok((fields.parse()?, Standing { above: fields.count()?, children: fields.count()? }))
}

/// A row of [`RECONSIDER`].
pub(crate) fn taken(fields: &mut Fields<'_>) -> Result<Taken, StoreError> {
    let (row, job, parent_ended): (u64, JobId, u32) = (fields.count()?, fields.parse()?, fields.count()?);
    Ok(Taken { row, job, parent_ended: parent_ended > 0 })
}

/// Puts together how the jobs that were taken stand to others.
pub(crate) fn relations<'j>(
    loaded: &mut GraphLoaded,
    jobs: impl Fn(JobId) -> Option<&'j Job>,
    deps: Vec<(JobId, Option<Stage>, u32)>,
    children: Vec<(JobId, Option<Stage>, u32)>,
    parents: &[(JobId, Stage, JobSpec)],
) {
    for taken in &loaded.taken {
        let parent = jobs(taken.job).and_then(|job| job.spec.parent);
        let row = parent.and_then(|id| parents.iter().find(|(parent, ..)| *parent == id));
        let end = row.and_then(|(id, stage, spec)| ParentEnd::judge(*id, *stage, spec, taken.parent_ended));
        // Of several rows about a job one may bring the news.
        let relations = loaded.relations.entry(taken.job).or_default();
        relations.parent = relations.parent.or(end);
    }
    for (id, stage, count) in deps {
        loaded.relations.entry(id).or_default().deps.add(stage, count);
    }
    for (id, stage, count) in children {
        // A job always has a stage; only a dep can be gone.
        if let Some(stage) = stage {
            loaded.relations.entry(id).or_default().children.add(stage, count);
        }
    }
}
