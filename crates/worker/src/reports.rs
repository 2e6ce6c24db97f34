//! Tells the coordinator what became of jobs, many in one call and without a timer: while a call is under way, what
//! finishes meanwhile collects for the next. A report is repeated until it is answered or its leases are over; it never
//! changes on the way, so the repetition is safe.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use tokio::time::{Instant, timeout};
use tracing::debug;

use crate::backoff::Backoff;
use crate::desk::{Desk, Finished};
use crate::error::is_final;
use crate::{Client, Error};

/// So many calls are under way at most: one on the wire while the other is being written down over there.
pub(crate) const CLERKS: usize = 2;
/// A call that takes longer is taken for lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reports until the desk is closed and empty.
pub(crate) async fn clerk(client: Client, worker_id: String, desk: Arc<Desk>) -> Result<(), Error> {
    while let Some(batch) = desk.take_results().await {
        report(&client, &worker_id, &desk, batch).await?;
    }
    Ok(())
}

async fn report(
    client: &Client,
    worker_id: &str,
    desk: &Desk,
    mut batch: Vec<Finished>,
) -> Result<(), Error> {
    let mut backoff = Backoff::new();
    let max_in_flight = desk.appetite(batch.len());
    loop {
        let results = batch.iter().map(|finished| finished.result.clone()).collect();
        let request = v1::ReportResultRequest { worker_id: worker_id.to_owned(), results, max_in_flight };
        match timeout(PATIENCE, client.report(request)).await {
            Ok(Ok(answer)) => {
                desk.settled(&batch, &answer);
                return Ok(());
            }
            Ok(Err(status)) if is_final(status.code()) => {
                return Err(Error::from_status("ReportResult", &status));
            }
            Ok(Err(status)) => debug!(%status, results = batch.len(), "a report failed; trying again"),
            Err(_) => debug!(results = batch.len(), "a report was not answered in time; trying again"),
        }
        backoff.wait().await;
        let before = batch.len();
        let now = Instant::now();
        batch.retain(|finished| finished.lease_ends > now);
        if batch.len() < before {
            desk.unheard(before - batch.len());
        }
        if batch.is_empty() {
            return Ok(());
        }
    }
}
