//! Hears of jobs that moved, from the coordinator's feed. It only says whom to ask about: what a job is now is asked
//! of the coordinator, so a late or repeated event does no harm.

use std::time::Duration;

use giga_api::client::{Client, Signal};
use giga_domain::JobId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Between two streams, where the coordinator stayed away for long or refused.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum Heard {
    Moved(JobId),
    /// There may have been a gap.
    Everything,
}

pub(super) async fn listen(client: Client, heard: mpsc::Sender<Heard>, stop: CancellationToken) {
    let listening = async {
        while follow(&client, &heard).await.is_some() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = listening => {}
    }
}

/// Until the stream ends for good. `None` when nobody listens any more.
async fn follow(client: &Client, heard: &mpsc::Sender<Heard>) -> Option<()> {
    let mut feed = client.follow_fleet(None);
    loop {
        match feed.next().await {
            Ok(Signal::Event(event)) if event.to.is_some() => {
                if let Some(job) = event.job_id.as_deref().and_then(|id| id.parse().ok()) {
                    heard.send(Heard::Moved(job)).await.ok()?;
                }
            }
            Ok(Signal::Event(_)) => {}
            Ok(Signal::Lost(error)) => tracing::warn!(%error, "the stream of events was cut off"),
            // A stream that was lost before its first event has nothing to go on from.
            Ok(Signal::Back) => heard.send(Heard::Everything).await.ok()?,
            Err(error) => {
                tracing::warn!(%error, "events cannot be followed");
                return Some(());
            }
        }
    }
}
