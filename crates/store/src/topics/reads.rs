//! Reads of topic jobs, the same on both databases. Each is one statement outside of any transaction, so it never waits
//! for a writer and never sees half a write.

use std::collections::HashMap;
use std::future::Future;

use giga_domain::JobId;
use giga_domain::topic::{TopicJob, TopicKey, TopicStage};
use giga_ports::StoreError;
use giga_ports::topics::{TopicCounts, TopicOwner, TopicPause};

use crate::rows::{self, Cell};
use crate::sql::{Decode, Query};

type Result<T> = std::result::Result<T, StoreError>;

/// What differs between the databases.
pub(super) trait Reader: Sync {
    /// An id on its way out, as 16 bytes.
    const ID_OUT: &'static str;
    /// Counts of every topic that ever had a job.
    const COUNTS: &'static str;

    /// An id on its way in, as 16 bytes.
    fn id_in(place: &str) -> String;

    fn query<T: Send + 'static>(
        &self,
        query: Query,
        decode: Decode<T>,
    ) -> impl Future<Output = Result<Vec<T>>> + Send;
}

/// The columns of [`rows::TOPIC_JOBS`] that a decision needs, of `job` joined to `topics`.
pub(super) fn row_columns(id_out: &str) -> String {
    format!(
        "{id_out}, topics.product_id, topics.name, CAST(job.priority AS BIGINT), CAST(job.state AS BIGINT), job.at, \
         job.epoch, CAST(job.attempts AS BIGINT), CAST(job.retry_max AS BIGINT), job.backoff_ms, job.worker, \
         job.last_error"
    )
}

fn select_jobs(id_out: &str, tail: &str) -> String {
    format!(
        "SELECT {}, job.idempotency_key, job.created_at, job.payload FROM topic_jobs AS job \
         JOIN topics ON topics.id = job.topic_id {tail}",
        row_columns(id_out)
    )
}

pub(super) fn bytes(id: JobId) -> Cell {
    Cell::Bytes(id.as_u128().to_be_bytes().to_vec())
}

pub(super) async fn pauses<R: Reader>(reader: &R) -> Result<Vec<TopicPause>> {
    let sql = "SELECT topics.product_id, topics.name, topic_gates.since, topic_gates.closed_by FROM topic_gates \
               LEFT JOIN topics ON topics.id = topic_gates.topic_id";
    let query = Query { sql: sql.to_owned(), values: Vec::new(), table: &rows::TOPIC_GATES };
    let mut pauses = reader.query(query, rows::topic_pause).await?;
    pauses.sort_by(|one, other| one.scope.cmp(&other.scope));
    Ok(pauses)
}

pub(super) async fn topics<R: Reader>(reader: &R) -> Result<Vec<TopicCounts>> {
    let query = Query { sql: R::COUNTS.to_owned(), values: Vec::new(), table: &rows::TOPIC_COUNTS };
    reader.query(query, rows::topic_counts).await
}

pub(super) async fn job<R: Reader>(reader: &R, id: JobId) -> Result<Option<TopicJob>> {
    let sql = select_jobs(R::ID_OUT, &format!("WHERE job.id = {}", R::id_in("$1")));
    let query = Query { sql, values: vec![bytes(id)], table: &rows::TOPIC_JOBS };
    Ok(reader.query(query, rows::topic_job).await?.pop())
}

pub(super) async fn owners_of<R: Reader>(reader: &R, ids: &[JobId]) -> Result<HashMap<JobId, TopicOwner>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let places: Vec<String> = (1..=ids.len()).map(|n| R::id_in(&format!("${n}"))).collect();
    let sql = format!(
        "SELECT {}, topics.product_id, job.epoch, CASE WHEN job.state = 2 THEN job.worker END FROM topic_jobs AS job JOIN topics ON topics.id = job.topic_id \
         WHERE job.id IN ({})",
        R::ID_OUT,
        places.join(", ")
    );
    let values = ids.iter().map(|id| bytes(*id)).collect();
    let query = Query { sql, values, table: &rows::TOPIC_OWNERS };
    Ok(reader.query(query, rows::topic_owner).await?.into_iter().collect())
}

/// Dead and ready jobs come by an index of their own. Scheduled and running ones are looked through, as many as there
/// are; done ones by id, through whatever else lies between them.
pub(super) async fn list<R: Reader>(
    reader: &R,
    key: &TopicKey,
    stage: TopicStage,
    before: Option<JobId>,
    limit: usize,
) -> Result<Vec<TopicJob>> {
    let topic = "(SELECT id FROM topics WHERE product_id = $1 AND name = $2)";
    let before_id = R::id_in("$3");
    let tail = if stage == TopicStage::Ready {
        // The index has them by priority first.
        let of_rank = |rank: u8| {
            format!(
                "SELECT id FROM (SELECT id FROM topic_jobs WHERE topic_id = {topic} AND state = 1 \
                 AND priority = {rank} AND id < {before_id} ORDER BY id DESC LIMIT $4) AS rank_{rank}"
            )
        };
        let ranks = [0, 1, 2, 3].map(of_rank).join(" UNION ALL ");
        format!("WHERE job.id IN ({ranks}) ORDER BY job.id DESC LIMIT $4")
    } else {
        format!(
            "WHERE job.topic_id = {topic} AND job.state = {} AND job.id < {before_id} ORDER BY job.id DESC LIMIT $4",
            stage as u8
        )
    };
    let values = vec![
        key.product.as_str().into(),
        key.topic.as_str().into(),
        bytes(before.unwrap_or(JobId::MAX)),
        limit.into(),
    ];
    let query = Query { sql: select_jobs(R::ID_OUT, &tail), values, table: &rows::TOPIC_JOBS };
    reader.query(query, rows::topic_job).await
}
