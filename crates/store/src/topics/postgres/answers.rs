//! After the commit: what the server's rows mean to those who asked.

use std::collections::{HashMap, HashSet};

use giga_domain::topic::{TopicKey, TopicStage};
use giga_domain::{Epoch, JobId};
use giga_ports::topics::Settled;
use tokio_postgres::Row;

use super::super::batch::Decided;
use super::super::command::Round;
use super::values::Id;
use super::{Result, Writer};
use crate::postgres::decode_all;
use crate::postgres::error::failure;
use crate::rows::{self, TopicPlace};

/// The jobs that are done by this round, and their topics.
pub(super) fn done(rows: &[Row]) -> Result<HashMap<JobId, i32>> {
    let read = |row: &Row| row.try_get(0).and_then(|Id(id)| Ok((id, row.try_get(1)?)));
    rows.iter().map(read).collect::<std::result::Result<_, _>>().map_err(failure)
}

/// Jobs that the round did not change, as they are by now. A word that had no effect may be judged by any moment
/// between the asking and the answer, so the look needs no lock.
pub(super) async fn places(writer: &Writer, ids: &Vec<Id>) -> Result<HashMap<JobId, TopicPlace>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = writer.client.query(&writer.statements.places, &[ids]).await.map_err(failure)?;
    let places = decode_all(&rows, &rows::TOPIC_PLACES, rows::topic_place)?;
    Ok(places.into_iter().map(|place| (place.id, place)).collect())
}

pub(super) fn settles(
    writer: &Writer,
    round: &mut Round,
    done: &HashMap<JobId, i32>,
    places: &HashMap<JobId, TopicPlace>,
    decided: &mut Decided,
) -> Result<()> {
    for asked in &mut round.settles {
        let mut answers = Vec::with_capacity(asked.ask.len());
        for settle in &asked.ask {
            let in_the_batch = decided.settled(settle.id, settle.epoch);
            answers.push(match (in_the_batch, done.get(&settle.id), places.get(&settle.id)) {
                (Some(answer), ..) => answer,
                (_, Some(topic), _) => done_by(writer.key(*topic)?, false),
                // What does not go through the batch is a success. Its epoch, and it is done: this was reported before.
                (_, _, Some(place)) if place.epoch == settle.epoch && place.stage == TopicStage::Done => {
                    done_by(place.key.clone(), true)
                }
                (_, _, Some(_)) => Settled::Fenced,
                _ => Settled::Unknown,
            });
        }
        asked.reply(Ok(answers));
    }
    Ok(())
}

fn done_by(key: TopicKey, repeated: bool) -> Settled {
    Settled::Applied { key, stage: TopicStage::Done, due: None, repeated }
}

pub(super) fn renewals(round: &mut Round, renewed: &[Row]) -> Result<()> {
    let read = |row: &Row| row.try_get(0).and_then(|Id(id)| Ok((id, row.try_get::<_, i64>(1)?)));
    let read = |row: &Row| read(row).map(|(id, epoch)| (id, Epoch(epoch.cast_unsigned())));
    let kept: HashSet<(JobId, Epoch)> =
        renewed.iter().map(read).collect::<std::result::Result<_, _>>().map_err(failure)?;
    for asked in &mut round.renewals {
        let answers = asked.ask.held.iter().map(|held| kept.contains(held)).collect();
        asked.reply(Ok(answers));
    }
    Ok(())
}
