//! Keeps the fleet view near the feed, so that whoever looks at it seldom has to catch up first.

use std::sync::Arc;

use crate::Coordinator;

impl Coordinator {
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut head = self.head();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = head.changed() => if changed.is_err() { return },
            }
            // What is committed during a refresh is taken together by the next one.
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "the feed could not be followed");
                tokio::select! {
                    () = self.stop.cancelled() => return,
                    () = tokio::time::sleep(self.options.sweep_every) => head.mark_changed(),
                }
            }
        }
    }
}
