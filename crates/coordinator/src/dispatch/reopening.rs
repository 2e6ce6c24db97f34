//! Budgets that open because a day, a week or a month has ended: nobody commits anything then, so nobody would look.
//!
//! Asks the store nothing. While no budget has such a limit it only waits for one.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::ProductId;

use super::Dispatch;

impl Dispatch {
    pub(crate) async fn watch_periods(self: Arc<Self>) {
        let mut moved = self.fleet.view.budgets_moved.subscribe();
        loop {
            moved.mark_unchanged();
            let pause = self.until_a_period_ends();
            let timer = async {
                match pause {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                _ = moved.changed() => {}
                () = timer => {
                    self.budgets_moved(None);
                    self.moved.notify_one();
                }
            }
        }
    }

    fn until_a_period_ends(&self) -> Option<Duration> {
        let now = self.core.store_now();
        let end = self.fleet.view.lock().tenants.next_reopening(now)?;
        Some(end.since(now) + Duration::from_millis(1))
    }

    /// Whoever waits for work may find some now: this budget, or any, may be open that was closed.
    pub(crate) fn budgets_moved(&self, product: Option<&ProductId>) {
        let now = self.core.store_now();
        self.fleet.view.lock().forgive_pickups(now, product);
        self.fleet.view.budgets_moved.send_replace(());
        self.look_at_offers_again();
    }
}
