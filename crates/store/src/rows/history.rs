//! What happened: events and runs.

use std::collections::BTreeMap;

use giga_domain::{
    Epoch, Event, EventKind, EventSeq, Failure, FeedPos, JobId, Run, RunOutcome, RunReport, Timestamp,
};

use super::Kind::{Int, Text};
use super::{Cell, Fields, Read, Row, Table, json, text};
use crate::engine::{PendingEvent, RunWrite};

pub(crate) const EVENTS: Table = Table {
    name: "events",
    key: 1,
    columns: &[
        ("pos", Int),
        ("job_id", Text),
        ("seq", Int),
        ("product_id", Text),
        ("at", Int),
        ("actor", Text),
        ("kind", Text),
        ("from_stage", Text),
        ("to_stage", Text),
        ("cause", Text),
        ("data", Text),
    ],
};

pub(crate) const RUNS: Table = Table {
    name: "runs",
    key: 2,
    columns: &[
        ("job_id", Text),
        ("lease_epoch", Int),
        ("product_id", Text),
        ("factory_id", Text),
        ("engine", Text),
        ("assigned_at", Int),
        ("started_at", Int),
        ("ended_at", Int),
        ("outcome", Text),
        ("failure", Text),
        ("report", Text),
        ("model", Text),
    ],
};

/// What a run learns after it was opened. Empty values leave what is there.
pub(crate) const RUN_CHANGES: Table = Table {
    name: "runs",
    key: 2,
    columns: &[
        ("job_id", Text),
        ("lease_epoch", Int),
        ("engine", Text),
        ("model", Text),
        ("started_at", Int),
        ("ended_at", Int),
        ("outcome", Text),
        ("failure", Text),
        ("report", Text),
    ],
};

/// Without the position, which only the database can give.
pub(crate) fn event_row(event: &PendingEvent) -> Row {
    let PendingEvent { product, job, at, actor, event } = event;
    vec![
        job.map(|(id, _)| text(id)).into(),
        job.map(|(_, seq)| seq.0).into(),
        product.as_ref().map(text).into(),
        (*at).into(),
        json(actor),
        event.kind.as_str().into(),
        event.from.map(text).into(),
        event.to.map(text).into(),
        event.cause.as_str().into(),
        json(&event.data),
    ]
}

/// [`EVENTS`].
pub(crate) fn event(fields: &mut Fields<'_>) -> Read<Event> {
    let pos = FeedPos(fields.count()?);
    let job: Option<JobId> = fields.parse_or_null()?;
    let seq = fields.int_or_null()?;
    let job = match (job, seq.map(u64::try_from)) {
        (None, None) => None,
        (Some(job), Some(Ok(seq))) => Some((job, EventSeq(seq))),
        _ => return fields.contradiction("an event has a job and a place in its history, or neither"),
    };
    Ok(Event {
        pos,
        job,
        product: fields.parse_or_null()?,
        at: fields.time()?,
        actor: fields.json()?,
        // A newer coordinator on the same database may write what this one has no word for; whoever reads the feed goes on.
        kind: fields.text()?.parse().unwrap_or(EventKind::Unknown),
        from: fields.parse_or_null()?,
        to: fields.parse_or_null()?,
        cause: fields.text()?.to_owned(),
        data: fields.json()?,
    })
}

/// The run writes of a batch, folded so that each run is written once.
#[derive(Debug, Default)]
pub(crate) struct RunRows {
    pub(crate) opened: Vec<Row>,
    pub(crate) changed: Vec<Row>,
}

#[derive(Default)]
struct Folded {
    opened: Option<Run>,
    engine: Option<String>,
    model: Option<String>,
    started_at: Option<Timestamp>,
    ended: Option<(Timestamp, RunOutcome, RunReport)>,
}

impl RunRows {
    pub(crate) fn fold(writes: Vec<RunWrite>) -> Self {
        let mut runs: BTreeMap<(JobId, Epoch), Folded> = BTreeMap::new();
        for write in writes {
            match write {
                RunWrite::Open(run) => {
                    let name = (run.job, run.epoch);
                    runs.entry(name).or_default().opened = Some(run);
                }
                RunWrite::Engine { job, epoch, engine, model } => {
                    let run = runs.entry((job, epoch)).or_default();
                    run.engine = Some(engine);
                    run.model = model;
                }
                RunWrite::Start { job, epoch, at } => {
                    runs.entry((job, epoch)).or_default().started_at = Some(at);
                }
                RunWrite::Close { job, epoch, at, outcome, report } => {
                    runs.entry((job, epoch)).or_default().ended = Some((at, outcome, report));
                }
            }
        }
        let mut rows = Self::default();
        for ((job, epoch), mut folded) in runs {
            match folded.opened.take() {
                Some(run) => rows.opened.push(opened_row(run, folded)),
                None => rows.changed.push(changed_row(job, epoch, folded)),
            }
        }
        rows
    }
}

fn opened_row(run: Run, changed: Folded) -> Row {
    let Folded { opened: _, engine, model, started_at, ended } = changed;
    let (ended_at, outcome, report) = match ended {
        Some((at, outcome, report)) => (Some(at), outcome, report),
        None => (run.ended_at, run.outcome, run.report),
    };
    let (outcome, failure) = outcome_cells(&outcome);
    vec![
        text(run.job),
        run.epoch.0.into(),
        run.product.as_str().into(),
        run.factory.as_str().into(),
        engine.or(run.engine).into(),
        run.assigned_at.into(),
        started_at.or(run.started_at).into(),
        ended_at.into(),
        outcome,
        failure,
        json(&report),
        model.or(run.model).into(),
    ]
}

fn changed_row(job: JobId, epoch: Epoch, changed: Folded) -> Row {
    let Folded { opened: _, engine, model, started_at, ended } = changed;
    let mut row = vec![text(job), epoch.0.into(), engine.into(), model.into(), started_at.into()];
    match ended {
        Some((at, outcome, report)) => {
            let (outcome, failure) = outcome_cells(&outcome);
            row.extend([at.into(), outcome, failure, json(&report)]);
        }
        None => row.extend([Cell::Null, Cell::Null, Cell::Null, Cell::Null]),
    }
    row
}

fn outcome_cells(outcome: &RunOutcome) -> (Cell, Cell) {
    let failure = match outcome {
        RunOutcome::Failed { failure } => json(failure),
        _ => Cell::Null,
    };
    (<&'static str>::from(outcome).into(), failure)
}

fn outcome(fields: &mut Fields<'_>) -> Read<RunOutcome> {
    let name = fields.text()?;
    let failure: Option<Failure> = fields.json_or_null()?;
    Ok(match (name, failure) {
        ("running", None) => RunOutcome::Running,
        ("succeeded", None) => RunOutcome::Succeeded,
        ("failed", Some(failure)) => RunOutcome::Failed { failure },
        ("expired", None) => RunOutcome::Expired,
        ("released", None) => RunOutcome::Released,
        ("preempted", None) => RunOutcome::Preempted,
        ("cancelled", None) => RunOutcome::Cancelled,
        (other, _) => return fields.contradiction(format!("no run ends like this: `{other}`")),
    })
}

/// [`RUNS`].
pub(crate) fn run(fields: &mut Fields<'_>) -> Read<Run> {
    Ok(Run {
        job: fields.parse()?,
        epoch: Epoch(fields.count()?),
        product: fields.parse()?,
        factory: fields.parse()?,
        engine: fields.text_or_null()?.map(str::to_owned),
        assigned_at: fields.time()?,
        started_at: fields.time_or_null()?,
        ended_at: fields.time_or_null()?,
        outcome: outcome(fields)?,
        report: fields.json()?,
        model: fields.text_or_null()?.map(str::to_owned),
    })
}
