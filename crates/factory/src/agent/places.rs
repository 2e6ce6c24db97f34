//! Who works where: all runs of a job use one path on this machine, so a later one waits until an earlier one has left.
//!
//! The earlier one has lost its lease by then and is on its way out: its engine is being ended, its work put aside.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Place = Arc<tokio::sync::Mutex<()>>;

#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<String, Place>>);

impl Places {
    /// Held until everything of the run is cleared away.
    pub(super) async fn enter(&self, job: &str) -> OwnedMutexGuard<()> {
        let place = {
            let mut places = self.0.lock();
            // Those that nobody is in or waits for.
            places.retain(|_, place| Arc::strong_count(place) > 1);
            Arc::clone(places.entry(job.to_owned()).or_default())
        };
        place.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_later_run_of_a_job_waits_for_the_earlier_one() {
        let places = Places::default();
        let first = places.enter("a").await;
        let _other = places.enter("b").await;
        let mut second = Box::pin(places.enter("a"));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        let second = second.await;
        assert!(futures::poll!(Box::pin(places.enter("a"))).is_pending(), "it is known while somebody is in");
        drop(second);
        places.enter("c").await;
        assert_eq!(places.0.lock().len(), 2, "what nobody uses is forgotten");
    }
}
