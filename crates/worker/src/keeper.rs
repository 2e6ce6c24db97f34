//! Keeps leases alive: one call per interval for all jobs that have been held for more than a third of theirs. Jobs that
//! are done sooner cost nothing here. What cannot be renewed in time is taken for lost, by our own clock's measure of the
//! lease and never by the coordinator's time of day.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use crate::client::BATCH;
use crate::desk::Desk;
use crate::error::is_final;
use crate::{Client, Error};

/// Looks so many times in the life of a lease; the first look after a third of it renews, the others are second chances.
const LOOKS: u32 = 6;
const SHORTEST: Duration = Duration::from_millis(10);

/// Runs until it is refused; whoever started it ends it.
pub(crate) async fn keep(client: Client, worker_id: String, desk: Arc<Desk>) -> Result<(), Error> {
    let mut leases = desk.leases();
    let mut last_look = Instant::now();
    loop {
        let lease = *leases.borrow_and_update();
        let interval = (lease / LOOKS).max(SHORTEST);
        let next_look = if lease.is_zero() { None } else { Some(last_look + interval) };
        tokio::select! {
            // Leases became longer or shorter: the next look is due at another time.
            Ok(()) = leases.changed() => continue,
            () = sleep_until(next_look.unwrap_or(last_look)), if next_look.is_some() => {}
        }
        last_look = Instant::now();
        for held in desk.due().chunks(BATCH) {
            let request = v1::HeartbeatRequest { worker_id: worker_id.clone(), held: held.to_vec() };
            let asked_at = Instant::now();
            match timeout(interval, client.heartbeat(request)).await {
                Ok(Ok(answer)) => desk.renewed(held, asked_at, &answer),
                Ok(Err(status)) if is_final(status.code()) => {
                    return Err(Error::from_status("Heartbeat", &status));
                }
                Ok(Err(status)) => debug!(%status, held = held.len(), "a heartbeat failed; trying again"),
                Err(_) => debug!(held = held.len(), "a heartbeat was not answered in time; trying again"),
            }
        }
        desk.expire();
    }
}
