//! Topic jobs on PostgreSQL, shared by several coordinators.
//!
//! A round is one transaction. What does not depend on an answer is sent in one go, the commit included: a round of
//! enqueues, successes and claims is a single round trip. Locks are waited for in the order of ids, everything else
//! skips what is locked, so that coordinators neither wait for each other nor deadlock.

mod answers;
mod claims;
mod enqueues;
mod retire;
mod round;
mod statements;
mod values;

use std::collections::HashMap;

use async_trait::async_trait;
use giga_domain::JobId;
use giga_domain::topic::{TopicJob, TopicKey, TopicStage};
use giga_ports::StoreError;
use giga_ports::topics::{PauseScope, TopicCounts, TopicOwner, TopicPause};
use tokio::sync::Mutex;
use tokio_postgres::Client;

use self::statements::Statements;
use super::command::{Round, SetPause};
use super::cursor::Cursors;
use super::grouped::{Grouped, TopicBackend};
use super::reads::{self, Reader};
use crate::grouping::Tuning;
use crate::postgres::ClockSource;
use crate::postgres::connect::{self, Connector};
use crate::postgres::error::failure;
use crate::postgres::pipeline::{Pipeline, Value};
use crate::postgres::readers::Readers;
use crate::sql::{Decode, Query};

type Result<T> = std::result::Result<T, StoreError>;

pub(super) struct Postgres {
    connector: Connector,
    clock: ClockSource,
    /// Taken out while a round is under way, so that one which is given up closes its connection.
    writer: Mutex<Option<Writer>>,
    cursors: Cursors,
    readers: Readers,
}

/// Connects, and brings the schema up to date; whoever else starts at the same time waits for it.
pub(super) async fn open(url: &str, clock: ClockSource, tuning: Tuning) -> Result<Grouped<Postgres>> {
    let connector = Connector::new(url)?;
    let mut client = connector.connect().await?;
    connect::migrate(&mut client).await?;
    let writer = Mutex::new(Some(Writer::on(client).await?));
    let (cursors, readers) = (Cursors::default(), Readers::default());
    Ok(Grouped::start(Postgres { connector, clock, writer, cursors, readers }, tuning))
}

struct Writer {
    client: Client,
    statements: Statements,
    /// Topics are never deleted, so what was found once stays true for as long as this connection lives.
    ids: HashMap<TopicKey, i32>,
    keys: HashMap<i32, TopicKey>,
    /// Rounds since counts were folded.
    unfolded: u32,
    /// How far retirement has walked.
    walked: JobId,
}

impl Writer {
    async fn on(client: Client) -> Result<Self> {
        let statements = Statements::prepare(&client).await?;
        let (ids, keys) = (HashMap::new(), HashMap::new());
        Ok(Self { client, statements, ids, keys, unfolded: 0, walked: JobId::MIN })
    }

    fn pipeline(&self) -> Pipeline<'_> {
        Pipeline::new(&self.client)
    }

    /// `None` for a topic that nobody has used yet.
    async fn topic(&mut self, key: &TopicKey, make: bool) -> Result<Option<i32>> {
        if let Some(id) = self.ids.get(key) {
            return Ok(Some(*id));
        }
        let names: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
            [&key.product.as_str(), &key.topic.as_str()];
        if make {
            self.client.execute(&self.statements.make_topic, &names).await.map_err(failure)?;
        }
        let row = self.client.query_opt(&self.statements.topic, &names).await.map_err(failure)?;
        let Some(row) = row else { return Ok(None) };
        let id: i32 = row.try_get(0).map_err(failure)?;
        self.ids.insert(key.clone(), id);
        self.keys.insert(id, key.clone());
        Ok(Some(id))
    }

    /// Of a topic that this round has looked for already.
    fn known(&self, key: &TopicKey) -> Result<i32> {
        let id = self.ids.get(key).copied();
        id.ok_or_else(|| StoreError::broken_because(format!("topic {key} was not looked for")))
    }

    fn key(&self, id: i32) -> Result<TopicKey> {
        let known = self.keys.get(&id).cloned();
        known.ok_or_else(|| StoreError::broken_because(format!("topics has lost its row {id}")))
    }

    /// The names of topics that other coordinators made.
    async fn learn(&mut self, ids: impl Iterator<Item = i32>) -> Result<()> {
        let mut unknown: Vec<i32> = ids.filter(|id| !self.keys.contains_key(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        let rows = self.client.query(&self.statements.names, &[&unknown]).await.map_err(failure)?;
        for row in rows {
            let id: i32 = row.try_get(0).map_err(failure)?;
            let product = row.try_get::<_, &str>(1).map_err(failure)?.parse().map_err(StoreError::broken)?;
            let topic = row.try_get::<_, &str>(2).map_err(failure)?.parse().map_err(StoreError::broken)?;
            let key = TopicKey { product, topic };
            self.ids.insert(key.clone(), id);
            self.keys.insert(id, key);
        }
        Ok(())
    }

    async fn set_pause(&mut self, clock: &ClockSource, set: &SetPause) -> Result<()> {
        let topic = match &set.scope {
            PauseScope::Everything => 0,
            PauseScope::Topic(key) => match self.topic(key, set.paused).await? {
                Some(topic) => topic,
                None => return Ok(()),
            },
        };
        let s = &self.statements;
        let mut pipeline = self.pipeline();
        pipeline.send_plain("BEGIN").await;
        pipeline.send(&s.hold_pauses, Vec::new()).await;
        if set.paused {
            let actor = serde_json::to_string(&set.actor).map_err(StoreError::broken)?;
            let values: Vec<Value> = vec![values::now(clock), Box::new(topic), Box::new(actor)];
            pipeline.send(&s.put_pause, values).await;
        } else {
            pipeline.send(&s.lift_pause, vec![Box::new(topic)]).await;
        }
        pipeline.send_plain("COMMIT").await;
        pipeline.finish().await.map(drop)
    }

    /// On an error a transaction may still be open.
    async fn run(&mut self, clock: &ClockSource, cursors: &Cursors, round: &mut Round) -> Result<()> {
        for asked in &mut round.pauses {
            self.set_pause(clock, &asked.ask).await?;
            asked.reply(Ok(()));
        }
        for asked in &mut round.retirements {
            let retired = retire::retire(self, &asked.ask).await?;
            asked.reply(Ok(retired));
        }
        round::run(self, clock, cursors, round).await
    }
}

impl Postgres {
    async fn connected(&self, writer: Option<Writer>) -> Result<Writer> {
        match writer.filter(|writer| !writer.client.is_closed()) {
            Some(writer) => Ok(writer),
            None => Writer::on(self.connector.connect().await?).await,
        }
    }
}

#[async_trait]
impl TopicBackend for Postgres {
    async fn run(&self, mut round: Round) -> (Round, Result<()>) {
        let mut slot = self.writer.lock().await;
        let mut writer = match self.connected(slot.take()).await {
            Ok(writer) => writer,
            Err(error) => return (round, Err(error)),
        };
        let result = writer.run(&self.clock, &self.cursors, &mut round).await;
        // Whatever went wrong, the transaction is over before its connection is used again.
        if result.is_ok() || writer.client.batch_execute("ROLLBACK").await.is_ok() {
            *slot = Some(writer);
        }
        (round, result)
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

    fn ready_below(&self, key: &TopicKey, lowest: JobId) {
        self.cursors.lower_all(key, lowest);
    }
}

impl Reader for Postgres {
    const ID_OUT: &'static str = statements::ID_OUT;
    const COUNTS: &'static str = "\
        SELECT topics.product_id, topics.name, sum(scheduled)::bigint, sum(ready)::bigint, sum(running)::bigint, \
            sum(done)::bigint, sum(dead)::bigint \
        FROM (SELECT * FROM topic_counts UNION ALL SELECT * FROM topic_deltas) AS counted \
        JOIN topics ON topics.id = counted.topic_id \
        GROUP BY topics.product_id, topics.name ORDER BY topics.product_id, topics.name";

    fn id_in(place: &str) -> String {
        format!("encode({place}, 'hex')::uuid")
    }

    async fn query<T: Send + 'static>(&self, query: Query, decode: Decode<T>) -> Result<Vec<T>> {
        self.readers.query(&self.connector, query, decode).await
    }
}
