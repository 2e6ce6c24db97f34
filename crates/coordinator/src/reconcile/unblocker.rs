//! Queues jobs whose deps have shipped. Woken by the feed; asks the store only when something shipped.

use std::sync::Arc;

use crate::Coordinator;

impl Coordinator {
    pub(crate) async fn unblock(self: Arc<Self>) {
        loop {
            // The first pass finds what shipped while nobody was here.
            if let Err(error) = self.unblock_once().await {
                tracing::warn!(%error, "the unblocker could not reach the store");
                tokio::select! {
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(self.options.sweep_every) => continue,
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.shipped.notified() => {}
            }
        }
    }

    /// One sweep: every job that can be queued is, a thousand as easily as one.
    pub async fn unblock_once(&self) -> Result<(), giga_ports::StoreError> {
        while self.store.unblock(self.options.sweep_limit).await?.len() == self.options.sweep_limit {}
        Ok(())
    }
}
