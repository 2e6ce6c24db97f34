//! What opens by the clock alone: budgets whose day, week or month has ended, and accounts of engines whose window is
//! over. Nobody commits anything then, so nobody would look.
//!
//! Asks the store nothing. While nothing is closed until a time it only waits for that.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::ProductId;

use super::Dispatch;

impl Dispatch {
    pub(crate) async fn watch_periods(self: Arc<Self>) {
        let mut moved = self.fleet.view.budgets_moved.subscribe();
        loop {
            moved.mark_unchanged();
            let pause = self.until_something_opens();
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

    fn until_something_opens(&self) -> Option<Duration> {
        let now = self.core.store_now();
        let state = self.fleet.view.lock();
        let account = state.closed_accounts(now).next_opening();
        let opens = state.tenants.next_reopening(now).into_iter().chain(account).min()?;
        Some(opens.since(now) + Duration::from_millis(1))
    }

    /// Whoever waits for work may find some now: this budget, or any, may be open that was closed.
    pub(crate) fn budgets_moved(&self, product: Option<&ProductId>) {
        let now = self.core.store_now();
        self.fleet.view.lock().forgive_pickups(now, product);
        self.fleet.view.budgets_moved.send_replace(());
        self.look_at_offers_again();
    }
}
