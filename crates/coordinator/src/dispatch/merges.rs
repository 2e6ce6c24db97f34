//! Factories hear of merges when they are due: of new ones, of those that are to be tried again, and of those whose holder
//! went silent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{FactoryId, Job, JobId, Stage, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Dispatch;

/// What is due and stays so is mentioned again: whoever heard of it may have had no time, or a merge of its own.
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct DueMerges {
    jobs: Mutex<BTreeMap<JobId, Due>>,
    changed: Notify,
}

struct Due {
    at: Timestamp,
    /// Has the result's files at hand.
    made_by: Option<FactoryId>,
    /// Nobody has had it yet.
    is_new: bool,
}

impl Dispatch {
    pub(super) fn see_merges(&self, jobs: &[Job]) {
        let mut due = self.merges.jobs.lock();
        for job in jobs {
            let merge = job.merge.as_ref().filter(|_| job.stage() == Stage::Shipping);
            match merge.and_then(|merge| Some((merge.due()?, merge.attempt == 0))) {
                Some((at, is_new)) => {
                    due.insert(job.id, Due { at, made_by: job.last_factory.clone(), is_new });
                }
                None => drop(due.remove(&job.id)),
            }
        }
        drop(due);
        self.merges.changed.notify_one();
    }

    pub(super) async fn watch_merges(self: Arc<Self>) {
        loop {
            let next = self.tell_of_merges();
            let timer = async {
                match next {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.merges.changed.notified() => {}
                () = timer => {}
            }
        }
    }

    /// How long until there is something more to tell; `None` while nothing is shipping.
    fn tell_of_merges(&self) -> Option<Duration> {
        let now = self.core.store_now();
        let mut due = self.merges.jobs.lock();
        for job in due.values_mut().filter(|job| job.at <= now) {
            self.streams.tell_of_merge(job.made_by.as_ref(), job.is_new);
            (job.at, job.is_new) = (now.plus(AGAIN), false);
        }
        due.values().map(|job| job.at.since(now)).min()
    }
}
