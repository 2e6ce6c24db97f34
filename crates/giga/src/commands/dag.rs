//! `giga dag`: a job and everything below it, with dependencies and progress.

use std::collections::HashMap;
use std::fmt::Write;

use comfy_table::Cell;
use giga_api::wire::{Dag, DagJob, DepsMode, JobKind, Stage};

use super::Done;
use super::context::Context;
use crate::output::{Columns, bar, printable, say, stage_cell};

/// Of many, so many are named.
const MOST_NAMED: usize = 5;
const BAR_CELLS: usize = 20;

pub(crate) async fn dag(meant: &str, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, meant).await?;
    let dag = client.dag(&id).await?;
    context.output.one(&dag.json, "/rootId", || dag_text(&dag))?;
    if dag.truncated {
        say(&format!("showing the first {} jobs; there are more below them", dag.jobs.len()));
    }
    Ok(())
}

fn dag_text(dag: &Dag) -> String {
    let mut text = String::new();
    let progress = &dag.progress;
    let drawn = bar(progress.shipped as f64, 0.0, progress.total.max(1) as f64, BAR_CELLS);
    let _ = write!(text, "{drawn} {}%, {} of {} shipped", progress.percent, progress.shipped, progress.total);
    for (stage, count) in progress.by_stage.iter().filter(|(stage, _)| **stage != Stage::Shipped) {
        let _ = write!(text, ", {count} {}", stage.label());
    }
    if !progress.spent_usd.is_zero() {
        let _ = write!(text, ", {} spent", progress.spent_usd);
    }
    text.push_str("\n\n");
    text.push_str(&tree(dag));
    text
}

/// One line per job, each under its parent.
fn tree(dag: &Dag) -> String {
    let mut below: HashMap<&str, Vec<&DagJob>> = HashMap::new();
    for job in dag.jobs.iter().skip(1) {
        below.entry(job.parent_id.as_deref().unwrap_or_default()).or_default().push(job);
    }
    let names = Names::of(dag);
    let mut table = Columns::new(&["JOB", "STAGE", "SHIPPED", "ID", "NOTE~"]);
    table.right(&[2]);
    // By hand and not by recursion: how deep a tree is, is for others to bound.
    let mut open: Vec<(&DagJob, String, String)> =
        dag.jobs.first().map(|root| (root, String::new(), String::new())).into_iter().collect();
    while let Some((job, branch, indent)) = open.pop() {
        let children = below.remove(job.id.as_str()).unwrap_or_default();
        let progress = job.progress.as_ref().filter(|_| !children.is_empty());
        let shipped = progress.map(|of| format!("{}/{}", of.shipped, of.total)).unwrap_or_default();
        table.row([
            Cell::new(format!("{branch}{}", printable(&job.name))),
            stage_cell(job.stage),
            Cell::new(shipped),
            Cell::new(printable(&job.id)),
            Cell::new(printable(&names.note(job))),
        ]);
        // Onto the pile from behind, so that the first comes off first.
        for (place, child) in children.iter().enumerate().rev() {
            let last = place + 1 == children.len();
            let (own, further) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((child, format!("{indent}{own}"), format!("{indent}{further}")));
        }
    }
    table.render()
}

/// What jobs are called that others wait for, and whether these still have to.
struct Names<'d> {
    known: HashMap<&'d str, (String, Option<Stage>)>,
}

impl<'d> Names<'d> {
    fn of(dag: &'d Dag) -> Self {
        let inside = dag.jobs.iter().map(|job| (job.id.as_str(), (job.name.clone(), Some(job.stage))));
        let outside = dag
            .outside
            .iter()
            .map(|job| (job.id.as_str(), (format!("{} ({})", job.name, job.id), Some(job.stage))));
        Self { known: inside.chain(outside).collect() }
    }

    fn note(&self, job: &DagJob) -> String {
        if let Some(factory) = &job.factory_id {
            return format!("on {factory}");
        }
        if let Some(failure) = &job.failure {
            return failure.words();
        }
        if job.stage == Stage::Blocked { self.waiting_for(job) } else { String::new() }
    }

    fn waiting_for(&self, job: &DagJob) -> String {
        let gone = (String::new(), None);
        let awaited: Vec<String> = job
            .deps
            .iter()
            .map(|id| (id, self.known.get(id.as_str()).unwrap_or(&gone)))
            .filter(|(_, (_, stage))| *stage != Some(Stage::Shipped))
            .map(|(id, (name, _))| if name.is_empty() { id.clone() } else { name.clone() })
            .collect();
        let more = awaited.len().saturating_sub(MOST_NAMED);
        let mut named = awaited.into_iter().take(MOST_NAMED).collect::<Vec<_>>().join(", ");
        if more > 0 {
            let _ = write!(named, " and {more} more");
        }
        match (named.is_empty(), job.deps_mode) {
            (true, _) if job.kind == JobKind::Composite => "waiting for its children".to_owned(),
            (true, _) => String::new(),
            (false, DepsMode::Any) => format!("waiting for any of {named}"),
            (false, DepsMode::All) => format!("waiting for {named}"),
        }
    }
}
