//! Queues jobs whose deps have shipped. Woken by commits; asks the store only when one of them shipped something.

use std::sync::Arc;

use giga_domain::{EventKind, FeedPos};

use crate::Coordinator;

const PAGE: usize = 1_000;

impl Coordinator {
    pub(crate) async fn unblock(self: Arc<Self>) {
        let mut head = self.head();
        // What shipped before the start is found by the first sweep.
        let mut look = true;
        let mut cursor = *head.borrow_and_update();
        loop {
            if look && let Err(error) = self.unblock_all().await {
                tracing::warn!(%error, "the unblocker could not reach the store");
                tokio::time::sleep(self.options.sweep_every).await;
                continue;
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                changed = head.changed() => if changed.is_err() { return },
            }
            (cursor, look) = match self.shipped_since(cursor).await {
                Ok(found) => found,
                Err(_) => (cursor, true),
            };
        }
    }

    async fn unblock_all(&self) -> Result<(), giga_ports::StoreError> {
        while self.store.unblock(self.options.sweep_limit).await?.len() == self.options.sweep_limit {}
        Ok(())
    }

    /// Reads on from the cursor and says whether anything shipped.
    async fn shipped_since(&self, mut cursor: FeedPos) -> Result<(FeedPos, bool), giga_ports::StoreError> {
        let mut shipped = false;
        loop {
            let events = self.store.read().feed(cursor, PAGE).await?;
            shipped |= events.iter().any(|event| {
                event.to == Some(giga_domain::Stage::Shipped) || event.kind == EventKind::Shipped
            });
            match events.last() {
                Some(last) => cursor = last.pos,
                None => return Ok((cursor, shipped)),
            }
            if events.len() < PAGE {
                return Ok((cursor, shipped));
            }
        }
    }
}
