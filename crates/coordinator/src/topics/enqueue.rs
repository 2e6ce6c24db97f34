//! New topic jobs: checked whole, stored whole, and whoever waits for them is woken.

use giga_domain::job::RetryPolicy;
use giga_domain::topic::TopicKey;
use giga_domain::{JobId, Priority, ProductId, Timestamp, TopicName, limits};
use giga_ports::broker::Hint;
use giga_ports::topics::{Enqueued, NewTopicJob};
use parking_lot::Mutex;

use super::Topics;
use crate::{Error, FieldProblem};

const RETRY_MOST: u32 = 1_000;
const BACKOFF_MOST_MS: u64 = 3_600_000;

/// A topic job before it has an id.
#[derive(Debug, Clone)]
pub struct NewTopicWork {
    pub topic: TopicName,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub idempotency_key: Option<String>,
    pub run_at: Option<Timestamp>,
    pub retry: RetryPolicy,
}

impl NewTopicWork {
    /// `place` is where the job stands in the request, such as `jobs[3].`.
    pub fn check(&self, place: &str) -> Result<(), FieldProblem> {
        let wrong = |field: &str, message: String| Err(FieldProblem::new(format!("{place}{field}"), message));
        let most = limits::TOPIC_PAYLOAD_BYTES;
        if self.payload.len() > most {
            let size = self.payload.len();
            return wrong(
                "payload",
                format!("it may have at most {most} bytes, not {size}; send a reference instead"),
            );
        }
        if let Some(key) = &self.idempotency_key {
            let most = limits::IDEMPOTENCY_KEY_CHARS;
            let unfit =
                key.trim().is_empty() || key.chars().any(char::is_control) || key.chars().count() > most;
            if unfit {
                return wrong(
                    "idempotencyKey",
                    format!("it must be 1 to {most} printable characters on one line"),
                );
            }
        }
        if self.retry.max > RETRY_MOST {
            return wrong("retry.max", format!("it must be from 0 to {RETRY_MOST}, not {}", self.retry.max));
        }
        if self.retry.backoff_ms > BACKOFF_MOST_MS {
            return wrong(
                "retry.backoffMs",
                format!("it must be at most {BACKOFF_MOST_MS}, which is an hour"),
            );
        }
        Ok(())
    }
}

/// Ids that rise within this process also inside one millisecond and when the clock is set back, so that what was
/// enqueued first is first in line.
#[derive(Default)]
pub(super) struct RisingIds(Mutex<Option<JobId>>);

impl RisingIds {
    fn rise(&self, fresh: JobId) -> JobId {
        let mut last = self.0.lock();
        let id = match *last {
            Some(last) if fresh <= last => JobId::from_u128(last.as_u128().saturating_add(1)),
            _ => fresh,
        };
        *last = Some(id);
        id
    }
}

impl Topics {
    /// All of the jobs or none; durable when it is answered, in the order given.
    pub async fn enqueue(
        &self,
        product: &ProductId,
        jobs: Vec<NewTopicWork>,
    ) -> Result<Vec<Enqueued>, Error> {
        let count = jobs.len();
        if count == 0 || count > limits::TOPIC_BATCH {
            let most = limits::TOPIC_BATCH;
            return Err(
                FieldProblem::new("jobs", format!("send 1 to {most} jobs in one call, not {count}")).into()
            );
        }
        for (index, job) in jobs.iter().enumerate() {
            job.check(&format!("jobs[{index}]."))?;
        }
        let now = self.core.clock.now();
        let new: Vec<NewTopicJob> = jobs
            .into_iter()
            .map(|job| NewTopicJob {
                id: self.ids.rise(self.core.random.job_id(now)),
                key: TopicKey { product: product.clone(), topic: job.topic },
                priority: job.priority,
                payload: job.payload,
                idempotency_key: job.idempotency_key,
                run_at: job.run_at,
                retry: job.retry,
            })
            .collect();
        let keys: Vec<TopicKey> = new.iter().map(|job| job.key.clone()).collect();
        let per_second = self.fleet.flag("enqueues_per_second").as_u64().unwrap_or(u64::MAX);
        self.core.admission.enqueue(product, per_second, new.len(), self.core.clock.now())?;
        let enqueued = self.store.enqueue(new).await?;
        self.after_enqueuing(&keys, &enqueued);
        Ok(enqueued)
    }

    fn after_enqueuing(&self, keys: &[TopicKey], enqueued: &[Enqueued]) {
        let mut ready = Vec::new();
        let mut first_due = None;
        for (key, enqueued) in keys.iter().zip(enqueued) {
            match enqueued {
                Enqueued::Created { id, due: None } => ready.push((key, *id)),
                Enqueued::Created { due: Some(due), .. } => {
                    first_due = Some(first_due.map_or(*due, |first: Timestamp| first.min(*due)));
                }
                Enqueued::Existing(_) => {}
            }
        }
        self.core.metrics.topics.enqueued(keys, enqueued);
        self.ready(ready, true);
        if let Some(at) = first_due {
            self.learn_due(at);
            self.hints.send(Hint::Due { at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_whatever_the_clock_and_the_dice_say() {
        let ids = RisingIds::default();
        let at = |millis, random| ids.rise(JobId::from_parts(Timestamp::from_millis(millis), random));
        let drawn =
            [at(50, 900), at(50, 3), at(50, 901), at(49, 7), at(51, 0), at(51, u128::MAX >> 48), at(51, 1)];
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "{drawn:?}");
        assert_eq!(
            drawn[0],
            JobId::from_parts(Timestamp::from_millis(50), 900),
            "a fresh one is taken as it is"
        );
    }

    #[test]
    fn what_is_wrong_with_a_job_is_named_with_its_place_and_a_remedy() {
        let good = NewTopicWork {
            topic: "mail".parse().unwrap(),
            priority: Priority::Normal,
            payload: vec![0; limits::TOPIC_PAYLOAD_BYTES],
            idempotency_key: Some("k".repeat(200)),
            run_at: None,
            retry: RetryPolicy { max: 1_000, backoff_ms: 3_600_000 },
        };
        assert_eq!(good.check(""), Ok(()));
        let error_of = |job: NewTopicWork| job.check("jobs[2].").unwrap_err().to_string();
        let text =
            error_of(NewTopicWork { payload: vec![0; limits::TOPIC_PAYLOAD_BYTES + 1], ..good.clone() });
        assert!(text.starts_with("jobs[2].payload: it may have at most 262144 bytes, not 262145"), "{text}");
        for key in ["", " ", "a\nb", &"k".repeat(201)] {
            let text = error_of(NewTopicWork { idempotency_key: Some(key.to_owned()), ..good.clone() });
            assert_eq!(text, "jobs[2].idempotencyKey: it must be 1 to 200 printable characters on one line");
        }
        let retry = RetryPolicy { max: 1_001, backoff_ms: 0 };
        assert!(error_of(NewTopicWork { retry, ..good.clone() }).starts_with("jobs[2].retry.max: "));
        let retry = RetryPolicy { max: 0, backoff_ms: 3_600_001 };
        assert!(error_of(NewTopicWork { retry, ..good }).starts_with("jobs[2].retry.backoffMs: "));
    }
}
