//! One round, one transaction, row by row: in one process a statement costs less than building a bigger one.

use std::collections::{BTreeMap, HashMap};

use giga_domain::topic::{TopicKey, TopicStage, TopicState, first_state};
use giga_domain::{Epoch, JobId, Priority, Timestamp};
use giga_ports::StoreError;
use giga_ports::topics::{Assignment, Enqueued, NewTopicJob, PauseScope, Settled, TopicClaim};
use rusqlite::{Connection, OptionalExtension, params};

use super::super::admission::{Admitted, Found, Pending};
use super::super::batch::{self, Decided, Delta, TopicBatch};
use super::super::command::{Retirement, Round, SetPause};
use super::super::deal;
use super::super::reads::{bytes, row_columns};
use super::super::settles::Settles;
use super::Result;
use crate::rows::{self, Cell, TopicPlace, TopicRow};
use crate::sqlite::connection::failure;
use crate::sqlite::read;

struct Work<'c> {
    connection: &'c Connection,
    now: Timestamp,
    topics: HashMap<TopicKey, i64>,
    deltas: BTreeMap<i64, Delta>,
}

pub(super) fn run(connection: &Connection, now: Timestamp, round: &mut Round) -> Result<()> {
    let mut work = Work { connection, now, topics: HashMap::new(), deltas: BTreeMap::new() };
    for asked in &mut round.pauses {
        asked.reply(Ok(work.set_pause(&asked.ask)?));
    }
    let settles = Settles::of(&round.settles);
    let mut done = HashMap::new();
    for (id, epoch) in &settles.successes {
        if let Some(key) = work.succeed(*id, *epoch)? {
            done.insert(*id, key);
        }
    }
    for asked in &mut round.renewals {
        let until = now.plus(asked.ask.lease);
        let mut kept = Vec::with_capacity(asked.ask.held.len());
        for (id, epoch) in &asked.ask.held {
            kept.push(work.renew(*id, *epoch, until)?);
        }
        asked.reply(Ok(kept));
    }

    let mut batch = TopicBatch::default();
    let mut decided = work.decide(round, &settles, &mut batch)?;
    work.write(&batch)?;
    let next = |state: TopicStage| work.next(state);
    decided.expired.next = next(TopicStage::Running)?;
    decided.promoted.next = next(TopicStage::Scheduled)?;
    for asked in &mut round.settles {
        let mut answers = Vec::with_capacity(asked.ask.len());
        for settle in &asked.ask {
            answers.push(match (decided.settled(settle.id, settle.epoch), done.get(&settle.id)) {
                (Some(answer), _) => answer,
                (_, Some(key)) => done_now(key.clone()),
                _ => work.unheard(settle.id, settle.epoch)?,
            });
        }
        asked.reply(Ok(answers));
    }
    decided.answer(round);

    work.enqueue(round)?;
    for asked in &mut round.claims {
        asked.reply(Ok(work.claim(&asked.ask)?));
    }
    for asked in &mut round.retirements {
        asked.reply(Ok(work.retire(&asked.ask)?));
    }
    work.count()
}

fn done_now(key: TopicKey) -> Settled {
    Settled::Applied { key, stage: TopicStage::Done, due: None, repeated: false }
}

const ROWS_FROM: &str = "FROM topic_jobs AS job JOIN topics ON topics.id = job.topic_id";

impl Work<'_> {
    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<usize> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(failure)
    }

    fn one<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(failure)?;
        statement.query_row(values, |row| row.get(0)).optional().map_err(failure)
    }

    fn rows(&self, tail: &str, values: Vec<Cell>) -> Result<Vec<TopicRow>> {
        let sql = format!("SELECT {} {ROWS_FROM} {tail}", row_columns("job.id"));
        read(self.connection, &sql, values, &rows::TOPIC_JOBS, rows::topic_row)
    }

    fn place(&self, id: JobId) -> Result<Option<TopicPlace>> {
        let sql = format!(
            "SELECT job.id, topics.product_id, topics.name, job.state, job.at, job.epoch {ROWS_FROM} WHERE job.id = $1"
        );
        let mut found = read(self.connection, &sql, vec![bytes(id)], &rows::TOPIC_PLACES, rows::topic_place)?;
        Ok(found.pop())
    }

    /// `None` for a topic that nobody has used yet.
    fn topic(&mut self, key: &TopicKey, make: bool) -> Result<Option<i64>> {
        if let Some(id) = self.topics.get(key) {
            return Ok(Some(*id));
        }
        let names = params![key.product.as_str(), key.topic.as_str()];
        if make {
            let sql = "INSERT INTO topics (product_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            self.execute(sql, names)?;
        }
        let found = self.one("SELECT id FROM topics WHERE product_id = $1 AND name = $2", names)?;
        if let Some(id) = found {
            self.topics.insert(key.clone(), id);
        }
        Ok(found)
    }

    fn made_topic(&mut self, key: &TopicKey) -> Result<i64> {
        let id = self.topic(key, true)?;
        id.ok_or_else(|| StoreError::broken_because(format!("topics has lost {key}")))
    }

    fn name(&self, topic: i64) -> Result<TopicKey> {
        if let Some((key, _)) = self.topics.iter().find(|(_, id)| **id == topic) {
            return Ok(key.clone());
        }
        let sql = "SELECT product_id, name FROM topics WHERE id = $1";
        let mut statement = self.connection.prepare_cached(sql).map_err(failure)?;
        let (product, name): (String, String) =
            statement.query_row([topic], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failure)?;
        let product = product.parse().map_err(StoreError::broken)?;
        Ok(TopicKey { product, topic: name.parse().map_err(StoreError::broken)? })
    }

    fn set_pause(&mut self, set: &SetPause) -> Result<()> {
        let topic = match &set.scope {
            PauseScope::Everything => 0,
            PauseScope::Topic(key) => match self.topic(key, set.paused)? {
                Some(topic) => topic,
                None => return Ok(()),
            },
        };
        if set.paused {
            let actor = serde_json::to_string(&set.actor).map_err(StoreError::broken)?;
            let sql = "INSERT INTO topic_gates VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            self.execute(sql, params![topic, self.now.as_millis(), actor])?;
        } else {
            self.execute("DELETE FROM topic_gates WHERE topic_id = $1", [topic])?;
        }
        Ok(())
    }

    fn succeed(&mut self, id: JobId, epoch: Epoch) -> Result<Option<TopicKey>> {
        let sql = "UPDATE topic_jobs SET state = 3, at = $1, worker = NULL \
                   WHERE id = $2 AND epoch = $3 AND state = 2 RETURNING topic_id";
        let values = params![self.now.as_millis(), raw(id), epoch.0.cast_signed()];
        let Some(topic) = self.one::<i64>(sql, values)? else { return Ok(None) };
        self.moved(topic, Some(TopicStage::Running), Some(TopicStage::Done));
        let key = self.name(topic)?;
        self.topics.insert(key.clone(), topic);
        Ok(Some(key))
    }

    fn renew(&self, id: JobId, epoch: Epoch, until: Timestamp) -> Result<bool> {
        let sql = "UPDATE topic_jobs SET at = max(at, $1) WHERE id = $2 AND epoch = $3 AND state = 2";
        Ok(self.execute(sql, params![until.as_millis(), raw(id), epoch.0.cast_signed()])? == 1)
    }

    /// A success that changed nothing: reported before, too late, or about nothing.
    fn unheard(&self, id: JobId, epoch: Epoch) -> Result<Settled> {
        Ok(match self.place(id)? {
            Some(place) if place.epoch == epoch && place.stage == TopicStage::Done => {
                Settled::Applied { key: place.key, stage: place.stage, due: None, repeated: true }
            }
            Some(_) => Settled::Fenced,
            None => Settled::Unknown,
        })
    }

    fn decide(&mut self, round: &Round, settles: &Settles, batch: &mut TopicBatch) -> Result<Decided> {
        for id in &settles.other_ids {
            batch.load(self.rows("WHERE job.id = $1", vec![bytes(*id)])?);
        }
        let ended = |work: &Self, state: u8, limit: usize| {
            let tail = format!("WHERE job.state = {state} AND job.at <= $1 ORDER BY job.at, job.id LIMIT $2");
            let values = vec![work.now.into(), limit.into()];
            if limit > 0 { work.rows(&tail, values) } else { Ok(Vec::new()) }
        };
        let sum = |limits: Vec<usize>| limits.into_iter().fold(0, usize::saturating_add);
        let expire = sum(round.expiries.iter().map(|asked| asked.ask).collect());
        let promote = sum(round.promotions.iter().map(|asked| asked.ask).collect());
        let expired = batch.load(ended(self, 2, expire)?);
        let due = batch.load(ended(self, 0, promote)?);
        let mut dead = Vec::with_capacity(round.retries.len());
        for asked in &round.retries {
            let Some(topic) = self.topic(&asked.ask.key, false)? else {
                dead.push(Vec::new());
                continue;
            };
            let mut found = Vec::new();
            if asked.ask.jobs.is_empty() {
                let tail = "WHERE job.topic_id = $1 AND job.state = 4 ORDER BY job.topic_id, job.id LIMIT $2";
                found = self.rows(tail, vec![Cell::Int(topic), asked.ask.limit.into()])?;
            }
            for id in &asked.ask.jobs {
                found.extend(self.rows("WHERE job.id = $1", vec![bytes(*id)])?);
            }
            found.dedup_by_key(|row| row.id);
            dead.push(batch.load(found));
        }
        Ok(Decided::of(round, settles, batch, self.now, (expired, due, dead)))
    }

    fn write(&mut self, batch: &TopicBatch) -> Result<()> {
        let sql = "UPDATE topic_jobs SET state = $1, at = $2, epoch = $3, attempts = $4, last_error = $5, \
                   worker = NULL WHERE id = $6";
        for row in batch.changed() {
            let head = &row.head;
            let at = batch::at(&head.state).as_millis();
            let values = params![
                head.state.stage() as i64,
                at,
                head.epoch.0.cast_signed(),
                head.attempts,
                head.last_error,
                raw(row.id)
            ];
            self.execute(sql, values)?;
        }
        for (key, delta) in batch.deltas() {
            let topic = self.made_topic(key)?;
            let kept = self.deltas.entry(topic).or_default();
            kept.iter_mut().zip(delta).for_each(|(kept, change)| *kept += change);
        }
        Ok(())
    }

    /// When the next one ends or is due.
    fn next(&self, stage: TopicStage) -> Result<Option<Timestamp>> {
        let sql = if stage == TopicStage::Running {
            "SELECT at FROM topic_jobs WHERE state = 2 ORDER BY at LIMIT 1"
        } else {
            "SELECT at FROM topic_jobs WHERE state = 0 ORDER BY at LIMIT 1"
        };
        Ok(self.one(sql, [])?.map(Timestamp::from_millis))
    }

    fn enqueue(&mut self, round: &mut Round) -> Result<()> {
        let mut found = Found::default();
        for job in round.enqueues.iter().flat_map(|asked| &asked.ask) {
            let topic = self.made_topic(&job.key)?;
            let Some(key) = &job.idempotency_key else { continue };
            if let Some(place) = self.place(job.id)? {
                found.ids.insert(job.id, place.due);
            }
            let sql = "SELECT id, payload FROM topic_jobs WHERE topic_id = $1 AND idempotency_key = $2";
            let mut statement = self.connection.prepare_cached(sql).map_err(failure)?;
            let row = statement.query_row(params![topic, key], |row| Ok((row.get(0)?, row.get(1)?)));
            if let Some((id, payload)) = row.optional().map_err(failure)? {
                found.keys.entry(job.key.clone()).or_default().insert(key.clone(), (id_of(id), payload));
            }
        }
        let mut pending = Pending::default();
        let mut replies = Vec::with_capacity(round.enqueues.len());
        for asked in &round.enqueues {
            replies.push(match pending.admit(&asked.ask, &found) {
                Err(refused) => Err(refused),
                Ok(verdicts) => {
                    let mut answers = Vec::with_capacity(verdicts.len());
                    for (job, verdict) in asked.ask.iter().zip(verdicts) {
                        answers.push(match verdict {
                            Admitted::Known(answer) => answer,
                            Admitted::New => self.insert(job)?,
                        });
                    }
                    Ok(answers)
                }
            });
        }
        for (asked, reply) in round.enqueues.iter_mut().zip(replies) {
            asked.reply(reply);
        }
        Ok(())
    }

    fn insert(&mut self, job: &NewTopicJob) -> Result<Enqueued> {
        let topic = self.made_topic(&job.key)?;
        let state = first_state(job.run_at, self.now);
        let sql = "INSERT INTO topic_jobs (id, created_at, at, epoch, backoff_ms, topic_id, attempts, retry_max, state, \
                       priority, idempotency_key, payload) \
                   VALUES ($1, $2, $3, 0, $4, $5, 0, $6, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING";
        let values = params![
            raw(job.id),
            self.now.as_millis(),
            batch::at(&state).as_millis(),
            i64::try_from(job.retry.backoff_ms).unwrap_or(i64::MAX),
            topic,
            job.retry.max,
            state.stage() as i64,
            job.priority.rank(),
            job.idempotency_key,
            job.payload,
        ];
        if self.execute(sql, values)? == 0 {
            // This very call, repeated.
            let due = self.place(job.id)?.and_then(|place| place.due);
            return Ok(Enqueued::Created { id: job.id, due });
        }
        self.moved(topic, None, Some(state.stage()));
        let due = if let TopicState::Scheduled { due } = state { Some(due) } else { None };
        Ok(Enqueued::Created { id: job.id, due })
    }

    fn claim(&mut self, claim: &TopicClaim) -> Result<Vec<Assignment>> {
        let Some(topic) = self.topic(&claim.key, false)? else { return Ok(Vec::new()) };
        let closed = "SELECT 1 FROM topic_gates WHERE topic_id IN (0, $1) LIMIT 1";
        if self.one::<i64>(closed, [topic])?.is_some() {
            return Ok(Vec::new());
        }
        let slots = deal::slots(&claim.workers);
        let sql = "SELECT id, length(payload) FROM topic_jobs WHERE topic_id = $1 AND state = 1 \
                   ORDER BY priority, id LIMIT $2";
        let mut pick = self.connection.prepare_cached(sql).map_err(failure)?;
        let limit = i64::try_from(slots.len()).unwrap_or(i64::MAX);
        let mut room = deal::ByteRoom::of(claim);
        let mut picked: Vec<[u8; 16]> = Vec::new();
        let mut rows = pick.query([topic, limit]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            if !room.takes(row.get::<_, i64>(1).map_err(failure)?.cast_unsigned()) {
                break;
            }
            picked.push(row.get(0).map_err(failure)?);
        }
        drop(rows);
        let sql = "UPDATE topic_jobs SET state = 2, at = $1, epoch = epoch + 1, worker = $2 WHERE id = $3 \
                   RETURNING epoch, attempts, priority, created_at, payload";
        let mut take = self.connection.prepare_cached(sql).map_err(failure)?;
        let expires_at = self.now.plus(claim.lease);
        let mut assignments = Vec::with_capacity(picked.len());
        for (id, worker) in picked.into_iter().zip(slots) {
            let worker = &claim.workers[worker].0;
            let mut rows =
                take.query(params![expires_at.as_millis(), worker.as_str(), id]).map_err(failure)?;
            let Some(row) = rows.next().map_err(failure)? else { continue };
            let rank: u8 = row.get(2).map_err(failure)?;
            assignments.push(Assignment {
                id: id_of(id),
                worker: worker.clone(),
                epoch: Epoch(row.get::<_, i64>(0).map_err(failure)?.cast_unsigned()),
                attempt: row.get::<_, u32>(1).map_err(failure)? + 1,
                priority: Priority::from_rank(rank)
                    .ok_or_else(|| StoreError::broken_because(format!("topic_jobs.priority: {rank}")))?,
                created_at: Timestamp::from_millis(row.get(3).map_err(failure)?),
                expires_at,
                payload: row.get(4).map_err(failure)?,
            });
        }
        drop((pick, take));
        let count = i64::try_from(assignments.len()).unwrap_or(i64::MAX);
        let delta = self.deltas.entry(topic).or_default();
        delta[TopicStage::Ready as usize] -= count;
        delta[TopicStage::Running as usize] += count;
        Ok(assignments)
    }

    /// Oldest first. A look through a million jobs that live takes a while in which nobody else writes; the limit
    /// and how seldom this is asked keep it apart from the busy hours.
    fn retire(&mut self, asked: &Retirement) -> Result<usize> {
        let sql = "DELETE FROM topic_jobs WHERE id IN (SELECT id FROM topic_jobs \
                       WHERE state >= 3 AND at < $1 ORDER BY id LIMIT $2) RETURNING topic_id, state";
        let mut statement = self.connection.prepare_cached(sql).map_err(failure)?;
        let limit = i64::try_from(asked.limit).unwrap_or(i64::MAX);
        let gone = statement
            .query_map([asked.before.as_millis(), limit], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(failure)?;
        let gone: Vec<(i64, u8)> = gone.collect::<rusqlite::Result<_>>().map_err(failure)?;
        drop(statement);
        for (topic, state) in &gone {
            self.moved(*topic, TopicStage::ALL.get(usize::from(*state)).copied(), None);
        }
        Ok(gone.len())
    }

    fn moved(&mut self, topic: i64, from: Option<TopicStage>, to: Option<TopicStage>) {
        let delta = self.deltas.entry(topic).or_default();
        if let Some(from) = from {
            delta[from as usize] -= 1;
        }
        if let Some(to) = to {
            delta[to as usize] += 1;
        }
    }

    fn count(&self) -> Result<()> {
        let sql = "INSERT INTO topic_counts VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (topic_id) DO UPDATE SET \
                   scheduled = scheduled + $2, ready = ready + $3, running = running + $4, done = done + $5, \
                   dead = dead + $6";
        for (topic, [scheduled, ready, running, done, dead]) in &self.deltas {
            if [scheduled, ready, running, done, dead].into_iter().any(|change| *change != 0) {
                self.execute(sql, params![topic, scheduled, ready, running, done, dead])?;
            }
        }
        Ok(())
    }
}

fn raw(id: JobId) -> [u8; 16] {
    id.as_u128().to_be_bytes()
}

fn id_of(raw: [u8; 16]) -> JobId {
    JobId::from_u128(u128::from_be_bytes(raw))
}
