//! Closes questions that nobody answered in time: with their default, or by failing the job. Sleeps until the next deadline,
//! and for as long as nothing is asked.

use std::sync::Arc;
use std::time::Duration;

use crate::Coordinator;

impl Coordinator {
    pub(crate) async fn close_questions(self: Arc<Self>) {
        loop {
            let pause = match self.close_questions_once().await {
                // A millisecond past the deadline, so that it has passed by the store's clock too.
                Ok(Some(until)) => until + Duration::from_millis(1),
                Ok(None) => self.core.options.idle_sweep_every,
                Err(error) => {
                    tracing::warn!(%error, "questions could not be looked at");
                    self.core.options.sweep_every
                }
            };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.fleet.asked.notified() => {}
                () = tokio::time::sleep(pause.min(self.core.options.idle_sweep_every)) => {}
            }
        }
    }
}
