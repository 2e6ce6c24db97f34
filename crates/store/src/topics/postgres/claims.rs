//! Claims of a round: one statement per topic and lease, whoever asks.

use giga_domain::topic::TopicKey;
use giga_domain::{Epoch, Timestamp, limits};
use giga_ports::StoreError;
use giga_ports::topics::{Assignment, TopicClaim};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::super::command::Asked;
use super::super::cursor::{Cursors, Look};
use super::super::deal;
use super::statements::Statements;
use super::values::{Id, array, limit, millis, now, priority};
use super::{Result, Writer};
use crate::postgres::ClockSource;
use crate::postgres::error::failure;
use crate::postgres::pipeline::{Answers, Pipeline, Ticket, Value};

type Asks = [Asked<TopicClaim, Vec<Assignment>>];

pub(super) struct Claims(Vec<Shared>);

/// Callers that want jobs of one topic on the same terms.
struct Shared {
    key: TopicKey,
    topic: i32,
    lease: i64,
    /// Which caller, and which of its workers.
    slots: Vec<(usize, usize)>,
    workers: Vec<String>,
    /// The place of the slot's worker in `workers`, from 1 as arrays count.
    places: Vec<i32>,
    most_bytes: u64,
}

/// A claim that was sent.
pub(super) struct Picked {
    look: Look,
    rows: Option<Ticket>,
}

impl Claims {
    pub(super) async fn of(writer: &mut Writer, asks: &mut Asks) -> Result<Self> {
        let mut shared: Vec<Shared> = Vec::new();
        for (caller, asked) in asks.iter_mut().enumerate() {
            let Some(topic) = writer.topic(&asked.ask.key, false).await? else {
                asked.reply(Ok(Vec::new()));
                continue;
            };
            let lease = millis(asked.ask.lease);
            let place = shared.iter().position(|other| other.topic == topic && other.lease == lease);
            let place = place.unwrap_or_else(|| {
                shared.push(Shared::new(asked.ask.key.clone(), topic, lease));
                shared.len() - 1
            });
            shared[place].join(caller, &asked.ask);
        }
        Ok(Self(shared))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) async fn send<'c>(
        &self,
        pipeline: &mut Pipeline<'c>,
        statements: &'c Statements,
        clock: &ClockSource,
        cursors: &Cursors,
    ) -> Vec<Picked> {
        if !self.is_empty() {
            pipeline.send(&statements.enter_pauses, Vec::new()).await;
        }
        let mut picked = Vec::with_capacity(self.0.len());
        for shared in &self.0 {
            let look = cursors.look(&shared.key, Instant::now());
            let rows = pipeline.send(&statements.claim, shared.values(clock, &look)).await;
            picked.push(Picked { look, rows });
        }
        picked
    }

    /// After the commit.
    pub(super) fn answer(
        self,
        asks: &mut Asks,
        cursors: &Cursors,
        picked: Vec<Picked>,
        answers: &mut Answers,
    ) -> Result<()> {
        for (shared, Picked { look, rows }) in self.0.into_iter().zip(picked) {
            let rows = answers.take(rows);
            let mut of_callers: Vec<Vec<Assignment>> = asks.iter().map(|_| Vec::new()).collect();
            let mut found = Vec::with_capacity(rows.len());
            let mut bytes = 0_u64;
            for row in &rows {
                let (slot, assignment) = shared.assignment(asks, row)?;
                found.push((assignment.priority, assignment.id));
                bytes += assignment.payload.len() as u64;
                of_callers[slot].push(assignment);
            }
            // Where the bytes ended it, more may be ready.
            let short = rows.len() < shared.slots.len() && shared.has_room_for_another(bytes);
            cursors.looked(&shared.key, &look, found.into_iter(), short, Instant::now());
            for (caller, mut assignments) in of_callers.into_iter().enumerate() {
                if shared.slots.iter().any(|(asked, _)| *asked == caller) {
                    assignments.sort_by_key(|assignment| (assignment.priority, assignment.id));
                    asks[caller].reply(Ok(assignments));
                }
            }
        }
        Ok(())
    }
}

impl Shared {
    fn new(key: TopicKey, topic: i32, lease: i64) -> Self {
        Self { key, topic, lease, slots: Vec::new(), workers: Vec::new(), places: Vec::new(), most_bytes: 0 }
    }

    fn has_room_for_another(&self, bytes: u64) -> bool {
        bytes.saturating_add(limits::TOPIC_PAYLOAD_BYTES as u64) <= self.most_bytes
    }

    fn join(&mut self, caller: usize, claim: &TopicClaim) {
        let before = self.workers.len();
        self.most_bytes = self.most_bytes.saturating_add(claim.most_bytes);
        self.workers.extend(claim.workers.iter().map(|(worker, _)| worker.to_string()));
        for worker in deal::slots(&claim.workers) {
            self.slots.push((caller, worker));
            self.places.push(i32::try_from(before + worker + 1).unwrap_or(i32::MAX));
        }
    }

    fn values(&self, clock: &ClockSource, look: &Look) -> Vec<Value> {
        let stretches = || look.stretches.iter();
        vec![
            now(clock),
            Box::new(self.topic),
            array(stretches().map(|stretch| i16::from(stretch.priority.rank()))),
            array(stretches().map(|stretch| Id(stretch.low))),
            Box::new(self.workers.clone()),
            Box::new(self.places.clone()),
            Box::new(self.lease),
            array(stretches().map(|stretch| Id(stretch.high))),
            Box::new(limit(self.slots.len())),
            Box::new(i64::try_from(self.most_bytes).unwrap_or(i64::MAX)),
        ]
    }

    fn assignment(&self, asks: &Asks, row: &Row) -> Result<(usize, Assignment)> {
        let slot: i64 = row.try_get(0).map_err(failure)?;
        let slot = usize::try_from(slot - 1).ok().and_then(|slot| self.slots.get(slot));
        let Some((caller, worker)) = slot else {
            return Err(StoreError::broken_because("a claim gave out a slot that nobody asked for"));
        };
        let Id(id) = row.try_get(1).map_err(failure)?;
        let attempts: i32 = row.try_get(3).map_err(failure)?;
        let assignment = Assignment {
            id,
            worker: asks[*caller].ask.workers[*worker].0.clone(),
            epoch: Epoch(row.try_get::<_, i64>(2).map_err(failure)?.cast_unsigned()),
            attempt: attempts.cast_unsigned() + 1,
            priority: priority(row.try_get(4).map_err(failure)?)?,
            created_at: Timestamp::from_millis(row.try_get(5).map_err(failure)?),
            expires_at: Timestamp::from_millis(row.try_get(6).map_err(failure)?),
            payload: row.try_get(7).map_err(failure)?,
        };
        Ok((*caller, assignment))
    }
}
