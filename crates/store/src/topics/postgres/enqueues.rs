//! New jobs of a round: which of them are known by their key, one insert for the rest.

use std::collections::{HashMap, HashSet};

use giga_domain::{JobId, Timestamp};
use giga_ports::topics::{Enqueued, NewTopicJob};
use tokio_postgres::Row;

use super::super::admission::{Admitted, Found, Pending};
use super::super::command::Asked;
use super::values::{Id, array, now};
use super::{Result, Writer};
use crate::postgres::ClockSource;
use crate::postgres::decode_all;
use crate::postgres::error::failure;
use crate::postgres::pipeline::{Pipeline, Ticket, Value};
use crate::rows::{self, TopicPlace};

type Asks = [Asked<Vec<NewTopicJob>, Vec<Enqueued>>];

/// The jobs with a key, which have to be looked for. Those without one are told apart by the insert itself.
pub(super) struct Keyed {
    ids: Vec<JobId>,
    topics: Vec<i32>,
    keys: Vec<String>,
}

impl Keyed {
    pub(super) fn of(writer: &Writer, asks: &Asks) -> Result<Self> {
        let mut keyed = Self { ids: Vec::new(), topics: Vec::new(), keys: Vec::new() };
        for job in asks.iter().flat_map(|asked| &asked.ask) {
            if let Some(key) = &job.idempotency_key {
                keyed.ids.push(job.id);
                keyed.topics.push(writer.known(&job.key)?);
                keyed.keys.push(key.clone());
            }
        }
        Ok(keyed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// By id and by key.
    pub(super) async fn send<'c>(
        self,
        pipeline: &mut Pipeline<'c>,
        writer: &'c Writer,
    ) -> (Option<Ticket>, Option<Ticket>) {
        if self.is_empty() {
            return (None, None);
        }
        let s = &writer.statements;
        let by_id = pipeline.send(&s.places, vec![array(self.ids.into_iter().map(Id))]).await;
        (by_id, pipeline.send(&s.by_key, vec![Box::new(self.topics), Box::new(self.keys)]).await)
    }
}

pub(super) fn found(writer: &Writer, by_id: &[Row], by_key: &[Row]) -> Result<Found> {
    let mut found = Found::default();
    for place in decode_all(by_id, &rows::TOPIC_PLACES, rows::topic_place)? {
        found.ids.insert(place.id, place.due);
    }
    for row in by_key {
        let Id(id) = row.try_get(0).map_err(failure)?;
        let topic = writer.key(row.try_get(1).map_err(failure)?)?;
        let key = row.try_get(2).map_err(failure)?;
        let payload = row.try_get(3).map_err(failure)?;
        found.keys.entry(topic).or_default().insert(key, (id, payload));
    }
    Ok(found)
}

/// What became of each call of the round, and which jobs are to be inserted.
pub(super) struct Admission<'a> {
    pub(super) new: Vec<&'a NewTopicJob>,
    verdicts: Vec<Result<Vec<Admitted>>>,
}

impl<'a> Admission<'a> {
    pub(super) fn of(asks: &'a Asks, found: &Found) -> Self {
        let mut pending = Pending::default();
        let verdicts: Vec<_> = asks.iter().map(|asked| pending.admit(&asked.ask, found)).collect();
        let mut new = Vec::new();
        for (asked, verdict) in asks.iter().zip(&verdicts) {
            let jobs = asked.ask.iter().zip(verdict.iter().flatten());
            new.extend(jobs.filter(|(_, verdict)| **verdict == Admitted::New).map(|(job, _)| job));
        }
        // Two coordinators that insert the same keys wait for each other in one order.
        if new.iter().any(|job| job.idempotency_key.is_some()) {
            new.sort_by(|one, other| {
                let place = |job: &'a NewTopicJob| (&job.key, &job.idempotency_key, job.id);
                place(one).cmp(&place(other))
            });
        }
        Self { new, verdicts }
    }

    pub(super) async fn send<'c>(
        &self,
        pipeline: &mut Pipeline<'c>,
        writer: &'c Writer,
        clock: &ClockSource,
    ) -> Result<Option<Ticket>> {
        if self.new.is_empty() {
            return Ok(None);
        }
        let mut topics = Vec::with_capacity(self.new.len());
        for job in &self.new {
            topics.push(writer.known(&job.key)?);
        }
        let jobs = || self.new.iter();
        let values: Vec<Value> = vec![
            now(clock),
            array(jobs().map(|job| Id(job.id))),
            array(jobs().map(|job| job.run_at.map(Timestamp::as_millis))),
            Box::new(topics),
            array(jobs().map(|job| i32::try_from(job.retry.max).unwrap_or(i32::MAX))),
            array(jobs().map(|job| i64::try_from(job.retry.backoff_ms).unwrap_or(i64::MAX))),
            array(jobs().map(|job| i16::from(job.priority.rank()))),
            array(jobs().map(|job| job.idempotency_key.clone())),
            array(jobs().map(|job| job.payload.clone())),
        ];
        Ok(pipeline.send(&writer.statements.add, values).await)
    }

    /// Ids that were there before. `added` tells whether each new job waits for its time.
    pub(super) fn repeated(&self, added: &Added) -> impl Iterator<Item = JobId> {
        self.new.iter().map(|job| job.id).filter(|id| !added.0.contains(id))
    }

    /// After the commit: an answer per call.
    pub(super) fn answers(
        self,
        asks: &Asks,
        added: &Added,
        places: &HashMap<JobId, TopicPlace>,
    ) -> Vec<Result<Vec<Enqueued>>> {
        let answer = |job: &NewTopicJob, verdict| match verdict {
            Admitted::Known(answer) => answer,
            Admitted::New if added.1.contains(&job.id) => Enqueued::Created { id: job.id, due: job.run_at },
            Admitted::New => {
                Enqueued::Created { id: job.id, due: places.get(&job.id).and_then(|place| place.due) }
            }
        };
        let of_call = |(asked, verdicts): (&Asked<Vec<NewTopicJob>, _>, Result<Vec<Admitted>>)| {
            Ok(asked.ask.iter().zip(verdicts?).map(|(job, verdict)| answer(job, verdict)).collect())
        };
        asks.iter().zip(self.verdicts).map(of_call).collect()
    }
}

/// The ids that were inserted, and those of them that wait for their time.
#[derive(Default)]
pub(super) struct Added(HashSet<JobId>, HashSet<JobId>);

impl Added {
    pub(super) fn read(rows: &[Row]) -> Result<Self> {
        let mut added = Self::default();
        for row in rows {
            let Id(id) = row.try_get(0).map_err(failure)?;
            added.0.insert(id);
            if row.try_get::<_, i16>(1).map_err(failure)? == 0 {
                added.1.insert(id);
            }
        }
        Ok(added)
    }
}
