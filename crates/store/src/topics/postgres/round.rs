//! One round, one transaction: successes and renewals, what has to be looked at first, then moves, new jobs, claims and
//! the commit. A round that has nothing to look at is sent as a whole.

use std::collections::BTreeMap;

use giga_domain::topic::TopicState;
use giga_domain::{Epoch, JobId, Timestamp};
use giga_ports::StoreError;
use tokio_postgres::Row;

use super::super::admission::Found;
use super::super::batch::{self, Decided, TopicBatch};
use super::super::command::Round;
use super::super::cursor::Cursors;
use super::super::settles::Settles;
use super::claims::Claims;
use super::enqueues::{self, Added, Admission, Keyed};
use super::values::{Id, array, limit, millis, now};
use super::{Result, Writer, answers};
use crate::postgres::ClockSource;
use crate::postgres::decode_all;
use crate::postgres::error::failure;
use crate::postgres::pipeline::{Answers, Pipeline, Ticket, Value};
use crate::rows::{self, TopicRow};

/// Rounds between two folds of the counts.
const FOLD_EVERY: u32 = 1_000;

/// Where the answers of the first part are found.
#[derive(Default)]
struct Sent {
    succeeded: Option<Ticket>,
    renewed: Option<Ticket>,
    now: Option<Ticket>,
    named: Option<Ticket>,
    expired: Option<Ticket>,
    due: Option<Ticket>,
    dead: Vec<Option<Ticket>>,
    by_id: Option<Ticket>,
    by_key: Option<Ticket>,
}

pub(super) async fn run(
    writer: &mut Writer,
    clock: &ClockSource,
    cursors: &Cursors,
    round: &mut Round,
) -> Result<()> {
    let claims = Claims::of(writer, &mut round.claims).await?;
    for job in round.enqueues.iter().flat_map(|asked| &asked.ask) {
        writer.topic(&job.key, true).await?;
    }
    let mut dead_topics = Vec::with_capacity(round.retries.len());
    for asked in &round.retries {
        dead_topics.push(writer.topic(&asked.ask.key, false).await?);
    }
    let settles = Settles::of(&round.settles);
    let renewals = renewals(round);
    let keyed = Keyed::of(writer, &round.enqueues)?;
    let sweeps = !(round.expiries.is_empty() && round.promotions.is_empty() && round.retries.is_empty());
    let looks = sweeps || !settles.others.is_empty() || !keyed.is_empty();
    let writes = !(settles.successes.is_empty() && renewals.is_empty() && round.enqueues.is_empty());
    if !looks && !writes && claims.is_empty() {
        return Ok(());
    }

    let folds = writer.unfolded >= FOLD_EVERY;
    let w = &*writer;
    let s = &w.statements;
    let mut sent = Sent::default();
    let mut pipeline = w.pipeline();
    pipeline.send_plain("BEGIN").await;
    lock(&mut pipeline, w, &settles, &renewals).await;
    let any = !settles.successes.is_empty();
    sent.succeeded = pipeline.send_if(any, &s.succeed, || succeed(clock, &settles)).await;
    sent.renewed = pipeline.send_if(!renewals.is_empty(), &s.renew, || renew(clock, &renewals)).await;

    let (mut first, mut batch) = (Answers::default(), TopicBatch::default());
    let (mut decided, mut found) = (Decided::default(), Found::default());
    if looks {
        let ids = || vec![array(settles.other_ids.iter().copied().map(Id))];
        sent.named = pipeline.send_if(!settles.other_ids.is_empty(), &s.load, ids).await;
        send_sweeps(&mut pipeline, w, clock, round, &dead_topics, &mut sent).await;
        (sent.by_id, sent.by_key) = keyed.send(&mut pipeline, w).await;
        sent.now = pipeline.send(&s.now, vec![now(clock)]).await;
        first = pipeline.finish().await?;
        found = enqueues::found(w, &first.take(sent.by_id), &first.take(sent.by_key))?;
        decided = decide(round, &settles, &mut batch, &mut first, &sent)?;
        pipeline = w.pipeline();
    }

    move_jobs(&mut pipeline, w, &batch).await?;
    let admission = Admission::of(&round.enqueues, &found);
    let added = admission.send(&mut pipeline, w, clock).await?;
    for row in batch.changed().filter(|row| row.head.state == TopicState::Ready) {
        cursors.lower(&row.key, row.priority, row.id);
    }
    for job in &admission.new {
        cursors.lower(&job.key, job.priority, job.id);
    }
    let picked = claims.send(&mut pipeline, s, clock, cursors).await;
    let next_expiry = pipeline.send_if(!round.expiries.is_empty(), &s.next_expiry, Vec::new).await;
    let next_due = pipeline.send_if(!round.promotions.is_empty(), &s.next_due, Vec::new).await;
    pipeline.send_if(folds, &s.fold, Vec::new).await;
    pipeline.send_plain("COMMIT").await;
    let mut second = pipeline.finish().await?;

    // From here on the round is durable, and what remains is to say so.
    decided.expired.next = time(&second.take(next_expiry))?;
    decided.promoted.next = time(&second.take(next_due))?;
    let of_first_part = if looks { &mut first } else { &mut second };
    let (succeeded, renewed) = (of_first_part.take(sent.succeeded), of_first_part.take(sent.renewed));
    let added = Added::read(&second.take(added))?;
    let done = answers::done(&succeeded)?;
    let unheard = settles.successes.iter().map(|(id, _)| *id).filter(|id| !done.contains_key(id));
    let unchanged: Vec<Id> = unheard.chain(admission.repeated(&added)).map(Id).collect();
    let places = answers::places(w, &unchanged).await?;
    let enqueued = admission.answers(&round.enqueues, &added, &places);
    for (asked, answer) in round.enqueues.iter_mut().zip(enqueued) {
        asked.reply(answer);
    }
    claims.answer(&mut round.claims, cursors, picked, &mut second)?;
    writer.unfolded = if folds { 0 } else { writer.unfolded + 1 };
    writer.learn(done.values().copied()).await?;
    answers::settles(writer, round, &done, &places, &mut decided)?;
    answers::renewals(round, &renewed)?;
    decided.answer(round);
    Ok(())
}

/// Each job once, with the longest lease that was asked for.
type Renewals = BTreeMap<(JobId, Epoch), i64>;

fn renewals(round: &Round) -> Renewals {
    let mut longest = Renewals::new();
    for asked in &round.renewals {
        let lease = millis(asked.ask.lease);
        for held in &asked.ask.held {
            let kept = longest.entry(*held).or_default();
            *kept = (*kept).max(lease);
        }
    }
    longest
}

/// A single statement locks in the order of ids by itself; several would lock in an order of their own.
async fn lock<'c>(pipeline: &mut Pipeline<'c>, writer: &'c Writer, settles: &Settles, renewals: &Renewals) {
    let kinds = [settles.successes.len(), renewals.len(), settles.other_ids.len()];
    if kinds.iter().filter(|count| **count > 0).count() > 1 {
        let named = settles.successes.iter().map(|(id, _)| *id).chain(renewals.keys().map(|(id, _)| *id));
        let mut ids: Vec<JobId> = named.chain(settles.other_ids.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        pipeline.send(&writer.statements.lock, vec![array(ids.into_iter().map(Id))]).await;
    }
}

fn succeed(clock: &ClockSource, settles: &Settles) -> Vec<Value> {
    let successes = || settles.successes.iter();
    vec![
        now(clock),
        array(successes().map(|(id, _)| Id(*id))),
        array(successes().map(|(_, epoch)| epoch.0.cast_signed())),
    ]
}

fn renew(clock: &ClockSource, held: &Renewals) -> Vec<Value> {
    let ids = array(held.keys().map(|(id, _)| Id(*id)));
    let epochs = array(held.keys().map(|(_, epoch)| epoch.0.cast_signed()));
    vec![now(clock), ids, epochs, array(held.values().copied())]
}

async fn send_sweeps<'c>(
    pipeline: &mut Pipeline<'c>,
    writer: &'c Writer,
    clock: &ClockSource,
    round: &Round,
    dead_topics: &[Option<i32>],
    sent: &mut Sent,
) {
    let s = &writer.statements;
    let expire = round.expiries.iter().map(|asked| asked.ask).fold(0, usize::saturating_add);
    let promote = round.promotions.iter().map(|asked| asked.ask).fold(0, usize::saturating_add);
    let values = |most: usize| -> Vec<Value> { vec![now(clock), Box::new(limit(most))] };
    sent.expired = pipeline.send_if(expire > 0, &s.expired, || values(expire)).await;
    sent.due = pipeline.send_if(promote > 0, &s.due, || values(promote)).await;
    for (asked, topic) in round.retries.iter().zip(dead_topics) {
        let ticket = match topic {
            None => None,
            Some(topic) if asked.ask.jobs.is_empty() => {
                pipeline.send(&s.dead, vec![Box::new(*topic), Box::new(limit(asked.ask.limit))]).await
            }
            Some(_) => pipeline.send(&s.load_free, vec![array(asked.ask.jobs.iter().copied().map(Id))]).await,
        };
        sent.dead.push(ticket);
    }
}

fn decide(
    round: &Round,
    settles: &Settles,
    batch: &mut TopicBatch,
    answers: &mut Answers,
    sent: &Sent,
) -> Result<Decided> {
    let now = time(&answers.take(sent.now))?;
    let now = now.ok_or_else(|| StoreError::broken_because("PostgreSQL did not tell the time"))?;
    let mut load =
        |batch: &mut TopicBatch, ticket| Ok::<_, StoreError>(batch.load(rows_of(&answers.take(ticket))?));
    load(batch, sent.named)?;
    let (expired, due) = (load(batch, sent.expired)?, load(batch, sent.due)?);
    let mut dead = Vec::with_capacity(sent.dead.len());
    for ticket in &sent.dead {
        dead.push(load(batch, *ticket)?);
    }
    Ok(Decided::of(round, settles, batch, now, (expired, due, dead)))
}

fn rows_of(rows: &[Row]) -> Result<Vec<TopicRow>> {
    decode_all(rows, &rows::TOPIC_JOBS, rows::topic_row)
}

async fn move_jobs<'c>(pipeline: &mut Pipeline<'c>, writer: &'c Writer, batch: &TopicBatch) -> Result<()> {
    let moved: Vec<&TopicRow> = batch.changed().collect();
    if moved.is_empty() {
        return Ok(());
    }
    let rows = || moved.iter();
    let values: Vec<Value> = vec![
        array(rows().map(|row| Id(row.id))),
        array(rows().map(|row| row.head.state.stage() as i16)),
        array(rows().map(|row| batch::at(&row.head.state).as_millis())),
        array(rows().map(|row| row.head.epoch.0.cast_signed())),
        array(rows().map(|row| row.head.attempts.cast_signed())),
        array(rows().map(|row| row.head.last_error.clone())),
    ];
    pipeline.send(&writer.statements.move_jobs, values).await;
    let deltas = batch.deltas();
    let mut values: Vec<Value> = vec![
        array(deltas.keys().map(|key| key.product.to_string())),
        array(deltas.keys().map(|key| key.topic.to_string())),
    ];
    for stage in 0..5 {
        let mut changes = Vec::with_capacity(deltas.len());
        for delta in deltas.values() {
            changes.push(i32::try_from(delta[stage]).map_err(StoreError::broken)?);
        }
        values.push(Box::new(changes));
    }
    pipeline.send(&writer.statements.count, values).await;
    Ok(())
}

fn time(rows: &[Row]) -> Result<Option<Timestamp>> {
    let at = rows.first().map(|row| row.try_get(0)).transpose().map_err(failure)?;
    Ok(at.map(Timestamp::from_millis))
}
