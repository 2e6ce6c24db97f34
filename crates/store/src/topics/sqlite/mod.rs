//! Topic jobs in one file, in this process, beside everything else that is in it.
//!
//! A writer connection of its own: it and the job store's take turns at the file, and neither looks before it has its
//! turn. All SQL runs on blocking threads and never awaits.

mod round;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::JobId;
use giga_domain::topic::{TopicJob, TopicKey, TopicStage};
use giga_ports::topics::{TopicCounts, TopicOwner, TopicPause};
use giga_ports::{Clock, StoreError};
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};

use super::command::Round;
use super::grouped::{Grouped, TopicBackend};
use super::reads::{self, Reader};
use crate::grouping::Tuning;
use crate::sql::{Decode, Query};
use crate::sqlite::blocking;
use crate::sqlite::connection::{self, failure};
use crate::sqlite::readers::Readers;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) struct Sqlite {
    clock: Arc<dyn Clock>,
    writer: Arc<Mutex<Connection>>,
    readers: Readers,
}

pub(super) async fn open(path: &Path, clock: Arc<dyn Clock>, tuning: Tuning) -> Result<Grouped<Sqlite>> {
    let (path, now) = (path.to_owned(), clock.now());
    let readers = Readers::new(path.clone());
    let writer = blocking(move || connection::open_writer(&path, now)).await?;
    let sqlite = Sqlite { clock, writer: Arc::new(Mutex::new(writer)), readers };
    Ok(Grouped::start(sqlite, tuning))
}

fn run(writer: &Mutex<Connection>, clock: &dyn Clock, round: &mut Round) -> Result<()> {
    // A transaction that a panic interrupted was rolled back on the way out: the connection is whole.
    let mut connection = writer.lock();
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    round::run(&transaction, clock.now(), round)?;
    transaction.commit().map_err(failure)
}

#[async_trait]
impl TopicBackend for Sqlite {
    async fn run(&self, mut round: Round) -> (Round, Result<()>) {
        let (writer, clock) = (self.writer.clone(), self.clock.clone());
        blocking(move || {
            let result = run(&writer, &*clock, &mut round);
            (round, result)
        })
        .await
    }

    async fn pauses(&self) -> Result<Vec<TopicPause>> {
        reads::pauses(self).await
    }

    async fn topics(&self) -> Result<Vec<TopicCounts>> {
        reads::topics(self).await
    }

    async fn job(&self, id: JobId) -> Result<Option<TopicJob>> {
        reads::job(self, id).await
    }

    async fn owners_of(&self, ids: &[JobId]) -> Result<HashMap<JobId, TopicOwner>> {
        reads::owners_of(self, ids).await
    }

    async fn list(
        &self,
        key: &TopicKey,
        stage: TopicStage,
        before: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<TopicJob>> {
        reads::list(self, key, stage, before, limit).await
    }

    /// Nothing to lower: entries of claimed jobs leave the index at once.
    fn ready_below(&self, _: &TopicKey, _: JobId) {}
}

impl Reader for Sqlite {
    const ID_OUT: &'static str = "job.id";
    const COUNTS: &'static str = "\
        SELECT topics.product_id, topics.name, scheduled, ready, running, done, dead FROM topic_counts \
        JOIN topics ON topics.id = topic_counts.topic_id ORDER BY topics.product_id, topics.name";

    fn id_in(place: &str) -> String {
        place.to_owned()
    }

    async fn query<T: Send + 'static>(&self, query: Query, decode: Decode<T>) -> Result<Vec<T>> {
        self.readers.query(query, decode).await
    }
}
