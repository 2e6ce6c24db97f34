//! Reports results to the coordinator, many in one call and without a timer: results that finish during a call go into the
//! next one. A report is retried unchanged until it is answered or its leases have expired, so retrying is safe.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use tokio::time::{Instant, timeout};
use tracing::debug;

use crate::backoff::Backoff;
use crate::error::is_final;
use crate::in_flight::{Finished, InFlight};
use crate::{Client, Error};

/// Concurrent calls: one on the wire while the coordinator writes down the other.
pub(crate) const REPORT_LOOPS: usize = 2;
/// A call that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs until nothing is in flight and nothing more will be.
pub(crate) async fn report_loop(
    client: Client,
    worker_id: String,
    in_flight: Arc<InFlight>,
) -> Result<(), Error> {
    while let Some(batch) = in_flight.take_results().await {
        report(&client, &worker_id, &in_flight, batch).await?;
    }
    Ok(())
}

async fn report(
    client: &Client,
    worker_id: &str,
    in_flight: &InFlight,
    mut batch: Vec<Finished>,
) -> Result<(), Error> {
    let mut backoff = Backoff::new();
    let max_in_flight = in_flight.adjust_prefetch(batch.len());
    loop {
        let results = batch.iter().map(|finished| finished.result.clone()).collect();
        let request = v1::ReportResultRequest { worker_id: worker_id.to_owned(), results, max_in_flight };
        match timeout(PATIENCE, client.report(request)).await {
            Ok(Ok(answer)) => {
                in_flight.reported(&batch, &answer);
                return Ok(());
            }
            Ok(Err(status)) if is_final(status.code()) => {
                return Err(Error::from_status("ReportResult", &status));
            }
            Ok(Err(status)) => debug!(%status, results = batch.len(), "a report failed; retrying"),
            Err(_) => debug!(results = batch.len(), "a report timed out; retrying"),
        }
        backoff.wait().await;
        let before = batch.len();
        let now = Instant::now();
        batch.retain(|finished| finished.lease_ends > now);
        if batch.len() < before {
            in_flight.unreported(before - batch.len());
        }
        if batch.is_empty() {
            return Ok(());
        }
    }
}
