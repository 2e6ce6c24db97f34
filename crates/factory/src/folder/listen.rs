//! Follows the coordinator's feed for jobs that changed. It only names them: their state is read from the coordinator,
//! so a late or repeated event does no harm.

use std::time::Duration;

use giga_api::client::{Client, Signal};
use giga_domain::JobId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Between two streams, where the coordinator stayed away for long or refused.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum Change {
    Job(JobId),
    /// There may have been a gap.
    Resync,
}

pub(super) async fn listen(client: Client, changes: mpsc::Sender<Change>, stop: CancellationToken) {
    let listening = async {
        while follow(&client, &changes).await.is_some() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = listening => {}
    }
}

/// Until the stream ends for good. `None` when nobody listens any more.
async fn follow(client: &Client, changes: &mpsc::Sender<Change>) -> Option<()> {
    let mut feed = client.follow_fleet(None);
    loop {
        match feed.next().await {
            Ok(Signal::Event(event)) if event.to.is_some() => {
                if let Some(job) = event.job_id.as_deref().and_then(|id| id.parse().ok()) {
                    changes.send(Change::Job(job)).await.ok()?;
                }
            }
            Ok(Signal::Event(_)) => {}
            Ok(Signal::Lost(error)) => tracing::warn!(%error, "the event stream was lost; reconnecting"),
            // A stream that was lost before its first event has nothing to go on from.
            Ok(Signal::Back) => changes.send(Change::Resync).await.ok()?,
            Err(error) => {
                tracing::warn!(%error, "cannot follow events; retrying");
                return Some(());
            }
        }
    }
}
