//! Topic jobs, as both databases hand them out: ids as 16 bytes, numbers as 64-bit ones.

use giga_domain::job::RetryPolicy;
use giga_domain::topic::{TopicHead, TopicJob, TopicKey, TopicStage, TopicState};
use giga_domain::{Epoch, JobId, Priority, Timestamp};
use giga_ports::topics::{PauseScope, TopicCounts, TopicOwner, TopicPause};

use super::Kind::{Bytes, Int, Text};
use super::{Fields, Read, Table};

pub(crate) const TOPIC_JOBS: Table = Table {
    name: "topic_jobs",
    key: 1,
    columns: &[
        ("id", Bytes),
        ("product_id", Text),
        ("name", Text),
        ("priority", Int),
        ("state", Int),
        ("at", Int),
        ("epoch", Int),
        ("attempts", Int),
        ("retry_max", Int),
        ("backoff_ms", Int),
        ("worker", Text),
        ("last_error", Text),
        ("idempotency_key", Text),
        ("created_at", Int),
        ("payload", Bytes),
    ],
};

/// What a decision needs: all but the last three columns.
pub(crate) struct TopicRow {
    pub(crate) id: JobId,
    pub(crate) key: TopicKey,
    pub(crate) priority: Priority,
    pub(crate) head: TopicHead,
}

pub(crate) fn topic_row(fields: &mut Fields<'_>) -> Read<TopicRow> {
    let id = fields.job_id()?;
    let key = fields.topic_key()?;
    let rank: u8 = fields.count()?;
    let Some(priority) = Priority::from_rank(rank) else {
        return fields.contradiction(format!("{rank} is no priority"));
    };
    let stage = fields.stage()?;
    let at = fields.time()?;
    let (epoch, attempts) = (Epoch(fields.count()?), fields.count()?);
    let retry = RetryPolicy { max: fields.count()?, backoff_ms: fields.count()? };
    let worker = fields.parse_or_null()?;
    let state = match (stage, worker) {
        (TopicStage::Scheduled, _) => TopicState::Scheduled { due: at },
        (TopicStage::Ready, _) => TopicState::Ready,
        (TopicStage::Running, Some(worker)) => TopicState::Running { worker, until: at },
        (TopicStage::Running, None) => return fields.contradiction("a running job has a worker"),
        (TopicStage::Done, _) => TopicState::Done { at },
        (TopicStage::Dead, _) => TopicState::Dead { at },
    };
    let last_error = fields.text_or_null()?.map(str::to_owned);
    Ok(TopicRow { id, key, priority, head: TopicHead { state, epoch, attempts, retry, last_error } })
}

pub(crate) fn topic_job(fields: &mut Fields<'_>) -> Read<TopicJob> {
    let TopicRow { id, key, priority, head } = topic_row(fields)?;
    Ok(TopicJob {
        id,
        key,
        priority,
        idempotency_key: fields.text_or_null()?.map(str::to_owned),
        created_at: fields.time()?,
        payload: fields.bytes()?.to_vec(),
        head,
    })
}

/// A job's place without the job: what a repeated word is answered with.
pub(crate) const TOPIC_PLACES: Table = Table {
    name: "topic_jobs",
    key: 1,
    columns: &[
        ("id", Bytes),
        ("product_id", Text),
        ("name", Text),
        ("state", Int),
        ("at", Int),
        ("epoch", Int),
    ],
};

pub(crate) struct TopicPlace {
    pub(crate) id: JobId,
    pub(crate) key: TopicKey,
    pub(crate) stage: TopicStage,
    pub(crate) due: Option<Timestamp>,
    pub(crate) epoch: Epoch,
}

pub(crate) fn topic_place(fields: &mut Fields<'_>) -> Read<TopicPlace> {
    let (id, key, stage, at) = (fields.job_id()?, fields.topic_key()?, fields.stage()?, fields.time()?);
    let due = (stage == TopicStage::Scheduled).then_some(at);
    Ok(TopicPlace { id, key, stage, due, epoch: Epoch(fields.count()?) })
}

/// Whose job it is.
pub(crate) const TOPIC_OWNERS: Table = Table {
    name: "topic_jobs",
    key: 1,
    columns: &[("id", Bytes), ("product_id", Text), ("epoch", Int), ("worker", Text)],
};

pub(crate) fn topic_owner(fields: &mut Fields<'_>) -> Read<(JobId, TopicOwner)> {
    let (id, product, epoch) = (fields.job_id()?, fields.parse()?, Epoch(fields.count()?));
    Ok((id, TopicOwner { product, epoch, worker: fields.parse_or_null()? }))
}

pub(crate) const TOPIC_COUNTS: Table = Table {
    name: "topic_counts",
    key: 2,
    columns: &[
        ("product_id", Text),
        ("name", Text),
        ("scheduled", Int),
        ("ready", Int),
        ("running", Int),
        ("done", Int),
        ("dead", Int),
    ],
};

pub(crate) fn topic_counts(fields: &mut Fields<'_>) -> Read<TopicCounts> {
    let key = fields.topic_key()?;
    let mut by_stage = [0; 5];
    for count in &mut by_stage {
        *count = fields.count()?;
    }
    Ok(TopicCounts { key, by_stage })
}

/// Without a product and a name it is the pause of everything.
pub(crate) const TOPIC_GATES: Table = Table {
    name: "topic_gates",
    key: 2,
    columns: &[("product_id", Text), ("name", Text), ("since", Int), ("closed_by", Text)],
};

pub(crate) fn topic_pause(fields: &mut Fields<'_>) -> Read<TopicPause> {
    let scope = match (fields.parse_or_null()?, fields.parse_or_null()?) {
        (Some(product), Some(topic)) => PauseScope::Topic(TopicKey { product, topic }),
        _ => PauseScope::Everything,
    };
    Ok(TopicPause { scope, since: fields.time()?, by: fields.json()? })
}

impl<'r> Fields<'r> {
    pub(crate) fn bytes(&mut self) -> Read<&'r [u8]> {
        let column = self.step();
        let bytes = self.source.bytes(column).or_else(|why| self.fail(column, why))?;
        self.required(column, bytes)
    }

    pub(crate) fn job_id(&mut self) -> Read<JobId> {
        let bytes = self.bytes()?;
        match bytes.try_into() {
            Ok(sixteen) => Ok(JobId::from_u128(u128::from_be_bytes(sixteen))),
            Err(_) => self.contradiction(format!("{} bytes are no id", bytes.len())),
        }
    }

    fn topic_key(&mut self) -> Read<TopicKey> {
        Ok(TopicKey { product: self.parse()?, topic: self.parse()? })
    }

    fn stage(&mut self) -> Read<TopicStage> {
        let number: usize = self.count()?;
        let stage = TopicStage::ALL.get(number).copied();
        stage.map_or_else(|| self.contradiction(format!("{number} is no state")), Ok)
    }
}
