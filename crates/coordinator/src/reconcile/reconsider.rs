//! Looks again at jobs because something that they hang on has moved: deps, children, a parent. Woken by the feed when
//! something ended, or came to wait; and now and then without a word, for what somebody held who died since.

use std::ops::ControlFlow;
use std::sync::Arc;

use giga_ports::StoreError;
use giga_ports::store::Reconsider;

use crate::Coordinator;

impl Coordinator {
    pub(crate) async fn reconsider(self: Arc<Self>) {
        loop {
            // The first pass finds what ended while nobody was here.
            let later = match self.reconsider_once().await {
                Ok(flow) => flow.is_break(),
                Err(error) => {
                    tracing::warn!(%error, "jobs that wait for others could not be looked at");
                    true
                }
            };
            let pause =
                if later { self.core.options.sweep_every } else { self.core.options.idle_sweep_every };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.fleet.ended.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One sweep: every job that can move does, a thousand as easily as one. Goes on until there is nothing to look at:
    /// what another coordinator held was passed over, and is there again when that one has failed. Breaks where it still
    /// holds what is left, so somebody has to look again.
    pub async fn reconsider_once(&self) -> Result<ControlFlow<()>, StoreError> {
        loop {
            let swept =
                self.core.store.reconsider(Reconsider { limit: self.core.options.sweep_limit }).await?;
            match (swept.looked_at, swept.more) {
                (0, true) => return Ok(ControlFlow::Break(())),
                (0, false) => return Ok(ControlFlow::Continue(())),
                _ => {}
            }
        }
    }
}
