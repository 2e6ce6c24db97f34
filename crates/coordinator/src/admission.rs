//! How much a product may bring in: a rate of submits, a rate of enqueues, and a cap on jobs that wait.
//!
//! Each coordinator counts what comes through it. How many jobs wait is read now and then and counted on in between, so
//! the cap may be passed by what other coordinators took in that moment.

use std::collections::HashMap;
use std::time::Duration;

use giga_domain::rate::{Bucket, Rate};
use giga_domain::{ProductId, Stage, Timestamp};
use giga_ports::store::NewJob;
use parking_lot::Mutex;

use crate::{Coordinator, Error};

/// How long a count of waiting jobs is counted on before it is read again.
const COUNTED_FOR: Duration = Duration::from_secs(1);
/// A queue takes its time to get shorter.
const FULL_QUEUE: Duration = Duration::from_secs(10);
const MOST_PRODUCTS: usize = 10_000;
const SUBMIT_BURST_SECONDS: f64 = 600.0;
const ENQUEUE_BURST_SECONDS: f64 = 60.0;

#[derive(Default)]
pub(crate) struct Admission {
    submits: Buckets,
    enqueues: Buckets,
    waiting: Mutex<HashMap<ProductId, (Timestamp, u64)>>,
}

#[derive(Default)]
struct Buckets(Mutex<HashMap<ProductId, Bucket>>);

impl Buckets {
    fn take(&self, product: &ProductId, rate: Rate, count: usize, now: Timestamp) -> Result<(), Duration> {
        let mut buckets = self.0.lock();
        if buckets.len() >= MOST_PRODUCTS {
            buckets.retain(|_, bucket| !bucket.is_full(rate, now));
        }
        let bucket = buckets.entry(product.clone()).or_insert_with(|| Bucket::full(rate, now));
        bucket.take(rate, count as f64, now)
    }
}

impl Admission {
    /// `per_second` is a flag's value.
    pub(crate) fn enqueue(
        &self,
        product: &ProductId,
        per_second: u64,
        count: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let per_second = per_second as f64;
        let rate = Rate { per_second, burst: per_second * ENQUEUE_BURST_SECONDS };
        self.enqueues.take(product, rate, count, now).map_err(|retry_after| Error::TooMany {
            reason: format!(
                "product {product} enqueues more than {per_second} topic jobs per second (flag `enqueues_per_second`); \
                 slow down, or raise the flag"
            ),
            retry_after,
        })
    }

    fn submit(
        &self,
        product: &ProductId,
        per_minute: u64,
        count: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let per_second = per_minute as f64 / 60.0;
        let rate = Rate { per_second, burst: per_second * SUBMIT_BURST_SECONDS };
        self.submits.take(product, rate, count, now).map_err(|retry_after| Error::TooMany {
            reason: format!(
                "product {product} submits more than {per_minute} jobs per minute (flag `submits_per_minute`); slow down, or \
                 raise the flag"
            ),
            retry_after,
        })
    }

    fn counted(&self, product: &ProductId, now: Timestamp) -> Option<u64> {
        let waiting = self.waiting.lock();
        let (at, count) = waiting.get(product)?;
        (*at <= now && now.since(*at) < COUNTED_FOR).then_some(*count)
    }

    fn count(&self, product: &ProductId, now: Timestamp, count: u64) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MOST_PRODUCTS {
            waiting.clear();
        }
        waiting.insert(product.clone(), (now, count));
    }

    fn count_on(&self, product: &ProductId, more: u64) {
        if let Some((_, count)) = self.waiting.lock().get_mut(product) {
            *count += more;
        }
    }
}

impl Coordinator {
    /// May these come in now? What was acknowledged before is answered again, whatever waits.
    pub(crate) async fn admit(&self, jobs: &[NewJob]) -> Result<(), Error> {
        let mut products: Vec<(&ProductId, usize)> = Vec::new();
        for job in jobs {
            match products.iter_mut().find(|(product, _)| *product == &job.product) {
                Some((_, count)) => *count += 1,
                None => products.push((&job.product, 1)),
            }
        }
        for (product, count) in products {
            if let Err(refusal) = self.admit_to(product, count).await {
                return if self.all_made_before(jobs).await? { Ok(()) } else { Err(refusal) };
            }
        }
        Ok(())
    }

    async fn admit_to(&self, product: &ProductId, count: usize) -> Result<(), Error> {
        let (admission, now) = (&self.core.admission, self.core.clock.now());
        let everyone = self.fleet.flag("max_queued_jobs").as_u64().unwrap_or(u64::MAX);
        let own = self.floor_of(product).max_queued_jobs.filter(|own| *own < everyone);
        let most = own.unwrap_or(everyone);
        let mut waiting = admission.counted(product, now);
        if waiting.is_none_or(|waiting| waiting + count as u64 > most) {
            let state = self.core.store.read().queue_state(product).await?;
            let read = state.count(Stage::Queued) + state.count(Stage::Blocked);
            admission.count(product, now, read);
            waiting = Some(read);
        }
        if waiting.is_some_and(|waiting| waiting + count as u64 > most) {
            let waiting = waiting.unwrap_or_default();
            let (rule, remedy) = match own {
                Some(_) => ("its policy", "raise it with `giga product policy --max-queued-jobs`"),
                None => ("flag `max_queued_jobs`", "raise the flag"),
            };
            let reason = format!(
                "product {product} has {waiting} jobs that wait, and {most} are the most there can be ({rule}); let some \
                 finish, cancel some, or {remedy}"
            );
            return Err(Error::TooMany { reason, retry_after: FULL_QUEUE });
        }
        let per_minute = self.fleet.flag("submits_per_minute").as_u64().unwrap_or(u64::MAX);
        admission.submit(product, per_minute, count, now)?;
        admission.count_on(product, count as u64);
        Ok(())
    }

    async fn all_made_before(&self, jobs: &[NewJob]) -> Result<bool, Error> {
        for job in jobs {
            let Some(key) = &job.spec.idempotency_key else { return Ok(false) };
            if self.core.store.read().job_by_key(&job.product, key).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
