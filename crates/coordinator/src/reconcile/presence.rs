//! Writes the signs of life of all factories in one go, once per heartbeat interval and only when there are any.

use std::sync::Arc;

use crate::view::Fleet;

impl Fleet {
    pub(crate) async fn keep_presence(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => {
                    let _ = self.write_presence().await;
                    return;
                }
                () = tokio::time::sleep(self.flag_millis("heartbeat_interval_ms")) => {}
            }
            if let Err(error) = self.write_presence().await {
                tracing::warn!(%error, "signs of life could not be written");
            }
        }
    }
}
