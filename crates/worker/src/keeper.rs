//! Renews leases: one heartbeat per interval for all jobs that have been held for more than a third of theirs. Jobs that
//! finish sooner need none. A lease that cannot be renewed in time counts as lost, measured by our own clock and never by
//! the coordinator's time of day.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use crate::client::BATCH;
use crate::error::is_final;
use crate::in_flight::InFlight;
use crate::{Client, Error};

/// Checks so many times during a lease; the first check after a third of it renews, the others are second chances.
const CHECKS: u32 = 6;
const SHORTEST: Duration = Duration::from_millis(10);

/// Runs until the coordinator refuses it or the caller drops it.
pub(crate) async fn keep(client: Client, worker_id: String, in_flight: Arc<InFlight>) -> Result<(), Error> {
    let mut leases = in_flight.leases();
    let mut last_check = Instant::now();
    loop {
        let lease = *leases.borrow_and_update();
        let interval = (lease / CHECKS).max(SHORTEST);
        let next_check = if lease.is_zero() { None } else { Some(last_check + interval) };
        tokio::select! {
            // Leases became longer or shorter: the next check is due at another time.
            Ok(()) = leases.changed() => continue,
            () = sleep_until(next_check.unwrap_or(last_check)), if next_check.is_some() => {}
        }
        last_check = Instant::now();
        for held in in_flight.due().chunks(BATCH) {
            let request = v1::HeartbeatRequest { worker_id: worker_id.clone(), held: held.to_vec() };
            let asked_at = Instant::now();
            match timeout(interval, client.heartbeat(request)).await {
                Ok(Ok(answer)) => in_flight.renewed(held, asked_at, &answer),
                Ok(Err(status)) if is_final(status.code()) => {
                    return Err(Error::from_status("Heartbeat", &status));
                }
                Ok(Err(status)) => debug!(%status, held = held.len(), "a heartbeat failed; retrying"),
                Err(_) => debug!(held = held.len(), "a heartbeat timed out; retrying"),
            }
        }
        in_flight.expire();
    }
}
