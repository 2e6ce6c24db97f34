//! Keeps the fleet view near the feed, so that whoever looks at it seldom has to catch up first.

use std::sync::Arc;

use giga_domain::FeedPos;
use tokio::sync::watch;

use crate::view::Fleet;

impl Fleet {
    pub(crate) async fn follow(self: Arc<Self>, mut head: watch::Receiver<FeedPos>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                changed = head.changed() => if changed.is_err() { return },
            }
            // What is committed during a refresh is taken together by the next one.
            if let Err(error) = self.refresh().await {
                tracing::warn!(%error, "the feed could not be followed");
                tokio::select! {
                    () = self.core.stop.cancelled() => return,
                    () = tokio::time::sleep(self.core.options.sweep_every) => head.mark_changed(),
                }
            }
        }
    }
}
