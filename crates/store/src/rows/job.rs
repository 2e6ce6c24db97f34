//! Jobs and what hangs on them: lease, texts, deps.
//!
//! The `spec` column is the truth about what a job asks for; `name`, `priority` and the like repeat parts of it so
//! that they can be filtered by, and are never read back. A lease is never repeated in the job's row.

use std::collections::BTreeSet;

use giga_domain::{
    CapabilitySet, DispatchSeq, Epoch, EventSeq, FactoryId, Job, JobId, Lease, Rev, Spend, Stage, State,
};
use giga_ports::store::JobText;

use super::Kind::{Bytes, Int, Text};
use super::{Cell, Fields, Read, Row, Table, json, text};
use crate::engine::{JobInsert, LeaseRow};

/// The columns of a job that can change after submit, behind those that cannot.
macro_rules! with_changes {
    ($($fixed:expr),* $(,)?) => {
        &[
            $($fixed,)*
            ("stage", Text),
            ("state", Text),
            ("rev", Int),
            ("lease_epoch", Int),
            ("last_event", Int),
            ("attempts", Int),
            ("dispatch_seq", Int),
            ("checkpoint", Text),
            ("last_word", Text),
            ("updated_at", Int),
            ("enqueued_at", Int),
            ("ended_at", Int),
            ("last_factory_id", Text),
            ("last_steer", Text),
            ("setback", Text),
            ("result", Text),
            ("merge", Text),
            ("merge_due", Int),
            ("evictions", Int),
            ("gate", Text),
            ("reviews", Text),
            ("conversation", Text),
            ("question_due", Int),
        ]
    };
}

pub(crate) const JOBS: Table = Table {
    name: "jobs",
    key: 1,
    columns: with_changes![
        ("id", Text),
        ("product_id", Text),
        ("name", Text),
        ("priority", Int),
        ("repo", Text),
        ("parent_id", Text),
        ("idempotency_key", Text),
        ("concurrency_key", Text),
        ("deps_mode", Text),
        ("kind", Text),
        ("spec", Text),
        ("created_at", Int),
    ],
};

/// What can change after submit.
pub(crate) const JOB_CHANGES: Table = Table { name: "jobs", key: 1, columns: with_changes![("id", Text)] };

/// What a [`Job`] is read from, but for its lease.
pub(crate) const JOB_READ: Table = Table {
    name: "jobs",
    key: 1,
    columns: &[
        ("id", Text),
        ("product_id", Text),
        ("spec", Text),
        ("created_at", Int),
        ("stage", Text),
        ("state", Text),
        ("rev", Int),
        ("lease_epoch", Int),
        ("last_event", Int),
        ("attempts", Int),
        ("dispatch_seq", Int),
        ("checkpoint", Text),
        ("last_word", Text),
        ("updated_at", Int),
        ("enqueued_at", Int),
        ("last_factory_id", Text),
        ("last_steer", Text),
        ("setback", Text),
        ("result", Text),
        ("merge", Text),
        ("evictions", Int),
        ("gate", Text),
        ("reviews", Text),
        ("conversation", Text),
    ],
};

pub(crate) const LEASES: Table = Table {
    name: "leases",
    key: 1,
    columns: &[
        ("job_id", Text),
        ("product_id", Text),
        ("factory_id", Text),
        ("request_id", Text),
        ("granted_at", Int),
        ("expires_at", Int),
        ("concurrency_key", Text),
        ("reserved_usd", Int),
        ("spent_usd", Int),
        ("spent_tokens", Int),
        ("evict", Text),
        ("due_at", Int),
        ("units", Text),
    ],
};

pub(crate) const LEASE_READ: Table = Table {
    name: "leases",
    key: 1,
    columns: &[
        ("job_id", Text),
        ("factory_id", Text),
        ("request_id", Text),
        ("granted_at", Int),
        ("expires_at", Int),
        ("reserved_usd", Int),
        ("spent_usd", Int),
        ("spent_tokens", Int),
        ("evict", Text),
    ],
};

pub(crate) const JOB_TEXTS: Table = Table {
    name: "job_texts",
    key: 1,
    columns: &[
        ("job_id", Text),
        ("product_id", Text),
        ("manifest", Text),
        ("body", Bytes),
        ("fingerprint", Text),
        ("persona", Text),
    ],
};

pub(crate) const DEPS: Table =
    Table { name: "deps", key: 2, columns: &[("job_id", Text), ("dep_id", Text), ("product_id", Text)] };

pub(crate) fn job_row(job: &Job) -> Row {
    let spec = &job.spec;
    let mut row = vec![
        text(job.id),
        job.product.as_str().into(),
        spec.name.as_str().into(),
        u64::from(spec.priority.rank()).into(),
        spec.repo.as_deref().into(),
        spec.parent.map(text).into(),
        spec.idempotency_key.as_deref().into(),
        spec.concurrency.as_ref().map(|concurrency| concurrency.key.as_str()).into(),
        spec.deps_mode.as_str().into(),
        spec.kind.as_str().into(),
        json(spec),
        job.created_at.into(),
    ];
    row.extend(job_change_row(job).into_iter().skip(1));
    row
}

pub(crate) fn job_change_row(job: &Job) -> Row {
    vec![
        text(job.id),
        job.stage().as_str().into(),
        state_cell(&job.state),
        job.rev.0.into(),
        job.epoch.0.into(),
        job.last_event.0.into(),
        u64::from(job.attempts).into(),
        job.dispatch_seq.0.into(),
        job.checkpoint.as_ref().map(json).into(),
        job.lease_end.as_ref().map(json).into(),
        job.updated_at.into(),
        job.enqueued_at.into(),
        // Apart from `updated_at`, so that the index for retention does not follow every change of a live job.
        job.stage().is_terminal().then_some(job.updated_at).into(),
        job.last_factory.as_ref().map(text).into(),
        job.last_steer.as_ref().map(text).into(),
        job.setback.as_ref().map(json).into(),
        job.result.as_ref().map(json).into(),
        job.merge.as_ref().map(json).into(),
        // Repeated from `merge`, to be found by.
        job.merge.as_ref().and_then(giga_domain::Merge::due).into(),
        u64::from(job.evictions).into(),
        job.gate.as_ref().map(json).into(),
        (!job.reviews.is_empty()).then(|| json(&job.reviews)).into(),
        job.conversation.as_ref().map(json).into(),
        // Repeated from `conversation`, to be found by.
        job.conversation.as_ref().and_then(|talk| talk.due()).into(),
    ]
}

/// The payload of the stage, where it has one of its own. What is held has its payload in `leases`.
fn state_cell(state: &State) -> Cell {
    let stage = state.stage();
    if stage.is_held() || State::of(stage, None).is_some() { Cell::Null } else { json(state) }
}

pub(crate) fn lease_row(row: &LeaseRow) -> Row {
    vec![
        text(row.job),
        row.product.as_str().into(),
        row.lease.factory.as_str().into(),
        row.lease.request.as_str().into(),
        row.lease.granted_at.into(),
        row.lease.expires_at.into(),
        row.concurrency_key.as_deref().into(),
        row.lease.reserved.into(),
        row.lease.spent.usd.into(),
        row.lease.spent.tokens.into(),
        row.lease.evict.as_ref().map(json).into(),
        // Repeated from the rest, to be found by.
        row.lease.due().into(),
        row.units.as_ref().map(json).into(),
    ]
}

pub(crate) fn text_row(insert: &JobInsert) -> Row {
    vec![
        text(insert.job.id),
        insert.job.product.as_str().into(),
        text(&insert.manifest),
        Cell::Bytes(insert.body.as_bytes().to_vec()),
        insert.fingerprint.as_str().into(),
        insert.persona.as_deref().into(),
    ]
}

/// A dep that is named twice is one row.
pub(crate) fn dep_rows(job: &Job) -> impl Iterator<Item = Row> {
    let deps: BTreeSet<JobId> = job.spec.deps.iter().copied().collect();
    deps.into_iter().map(|dep| vec![text(job.id), text(dep), job.product.as_str().into()])
}

/// [`JOB_READ`] with the lease looked up elsewhere.
pub(crate) fn job(
    fields: &mut Fields<'_>,
    lease: impl FnOnce(&mut Fields<'_>, JobId) -> Read<Option<Lease>>,
) -> Read<Job> {
    let id = fields.parse()?;
    let product = fields.parse()?;
    let spec = fields.json()?;
    let created_at = fields.time()?;
    let stage: Stage = fields.parse()?;
    let state: Option<State> = fields.json_or_null()?;
    if state.as_ref().is_some_and(|state| state.stage() != stage) {
        return fields.contradiction(format!("it is not the state of a job that is {stage}"));
    }
    // The state is put in last: what a held job's is made of stands behind the other columns.
    let mut job = Job {
        id,
        product,
        spec,
        state: State::Blocked,
        rev: Rev(fields.count()?),
        epoch: Epoch(fields.count()?),
        last_event: EventSeq(fields.count()?),
        attempts: fields.count()?,
        dispatch_seq: DispatchSeq(fields.count()?),
        checkpoint: fields.json_or_null()?,
        lease_end: fields.json_or_null()?,
        created_at,
        updated_at: fields.time()?,
        enqueued_at: fields.time()?,
        last_factory: fields.parse_or_null()?,
        last_steer: fields.parse_or_null()?,
        setback: fields.json_or_null()?,
        result: fields.json_or_null()?,
        merge: fields.json_or_null()?,
        evictions: fields.count()?,
        gate: fields.json_or_null()?,
        reviews: fields.json_or_null()?.unwrap_or_default(),
        conversation: fields.json_or_null()?,
    };
    let lease = lease(fields, id)?;
    if lease.is_some() && !stage.is_held() {
        return fields.contradiction(format!("job {id} is {stage} and has a lease"));
    }
    let state = match state {
        Some(state) => (!stage.is_held()).then_some(state),
        None => State::of(stage, lease),
    };
    let Some(state) = state else {
        return fields.contradiction(format!("job {id} is {stage} without what belongs to it"));
    };
    job.state = state;
    Ok(job)
}

/// [`JOB_READ`] joined with [`LEASE_READ`].
pub(crate) fn leased_job(fields: &mut Fields<'_>) -> Read<Job> {
    job(fields, |fields, _| {
        fields.then(&LEASE_READ);
        match fields.text_or_null()? {
            Some(_) => lease_fields(fields).map(Some),
            None => Ok(None),
        }
    })
}

/// [`LEASE_READ`].
pub(crate) fn lease(fields: &mut Fields<'_>) -> Read<(JobId, Lease)> {
    Ok((fields.parse()?, lease_fields(fields)?))
}

fn lease_fields(fields: &mut Fields<'_>) -> Read<Lease> {
    Ok(Lease {
        factory: fields.parse()?,
        request: fields.parse()?,
        granted_at: fields.time()?,
        expires_at: fields.time()?,
        reserved: fields.amount()?,
        spent: Spend { usd: fields.amount()?, tokens: fields.count()? },
        evict: fields.json_or_null()?,
    })
}

/// The factory of a lease, and what the job uses there.
pub(crate) fn lease_units(fields: &mut Fields<'_>) -> Read<(FactoryId, CapabilitySet)> {
    Ok((fields.parse()?, fields.json()?))
}

/// [`JOB_TEXTS`].
pub(crate) fn job_text(fields: &mut Fields<'_>) -> Read<JobText> {
    fields.text()?;
    fields.text()?;
    let (manifest, body) = (fields.json()?, fields.utf8()?);
    fields.text()?;
    Ok(JobText { manifest, body, persona: fields.text_or_null()?.map(str::to_owned) })
}
