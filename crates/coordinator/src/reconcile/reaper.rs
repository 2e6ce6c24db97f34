//! Brings back the work of holders that went silent: only because their lease ended, never because they look stale.

use giga_ports::store::ExpireLeases;
use std::sync::Arc;
use std::time::Duration;

use crate::Coordinator;

impl Coordinator {
    /// Sleeps until the next lease ends, and for as long as none is held.
    pub(crate) async fn reap(self: Arc<Self>) {
        let mut head = self.head();
        loop {
            let pause = match self.reap_once().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(%error, "the reaper could not reach the store");
                    Some(self.core.options.sweep_every)
                }
            };
            let timer = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    // Nothing is held: only a commit can change that, here or in another process.
                    None => {
                        if tokio::time::timeout(self.core.options.idle_sweep_every, head.changed())
                            .await
                            .is_ok()
                        {
                            tokio::time::sleep(self.core.options.sweep_every).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = timer => {}
            }
        }
    }

    /// One sweep. Returns how long nothing can expire; `None` when nothing is held.
    pub async fn reap_once(&self) -> Result<Option<Duration>, giga_ports::StoreError> {
        loop {
            let asked = self.fleet.asked_to_let_go();
            let reaped =
                self.core.store.expire_leases(ExpireLeases { limit: self.core.options.sweep_limit }).await?;
            if !reaped.jobs.is_empty() {
                self.core.metrics.jobs.lease_expiries.inc_by(reaped.jobs.len() as u64);
                let forced = reaped.jobs.iter().filter(|job| asked.contains(job)).count();
                self.core.metrics.jobs.evictions_forced.inc_by(forced as u64);
                tracing::warn!(jobs = ?reaped.jobs, "leases expired; the jobs are queued again");
            }
            if reaped.jobs.len() < self.core.options.sweep_limit {
                let Some(next) = reaped.next_expiry else { return Ok(None) };
                let until = next.since(self.core.store.read().now().await?);
                // A millisecond past the end: at the end itself the lease has just not expired.
                return Ok(Some((until + Duration::from_millis(1)).min(self.core.options.sweep_every)));
            }
        }
    }
}
