//! Closes questions that nobody answered in time: with their default, or by failing the job. Sleeps until the next deadline,
//! and for as long as nothing is asked.

use std::sync::Arc;
use std::time::Duration;

use crate::Coordinator;

impl Coordinator {
    pub(crate) async fn close_questions(self: Arc<Self>) {
        loop {
            // Whoever asks is in the view, and wakes this: an idle fleet costs no look at the store.
            let asks = !self.fleet.view.lock().asking.is_empty();
            let looked = if asks { self.close_questions_once().await } else { Ok(None) };
            let pause = match looked {
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
