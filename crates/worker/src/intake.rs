//! Takes jobs from the coordinator's stream onto the desk, and opens the stream again when it breaks. It never drops what
//! was sent: also when it stops, what is on its way is put onto the desk, to be given back.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use crate::backoff::{Backoff, LONGEST};
use crate::desk::Desk;
use crate::error::is_final;
use crate::{Client, Error, Task};

/// When nothing came for so long after the stop, nothing more is on its way; and this is how long to listen at most.
const QUIET: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_millis(500);

pub(crate) struct Intake {
    pub(crate) client: Client,
    pub(crate) desk: Arc<Desk>,
    pub(crate) request: v1::StreamJobsRequest,
    pub(crate) stop: CancellationToken,
}

impl Intake {
    /// Runs until it is stopped or refused.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let stop = self.stop.clone();
        let mut backoff = Backoff::new();
        loop {
            // A new stream does not count what came over the old one; with full hands, another load would be too much.
            let room = self.desk.room(self.desk.max_in_flight());
            if stop.run_until_cancelled(room).await.is_none() {
                return Ok(());
            }
            let opened = Instant::now();
            match stop.run_until_cancelled(self.client.stream(self.request())).await {
                None => return Ok(()),
                Some(Ok(stream)) => {
                    debug!("the stream is open");
                    match self.read(stream, &mut backoff).await? {
                        Ended::Stopped => return Ok(()),
                        Ended::Broken(why) => info!(why, "the stream ended; opening it again"),
                    }
                }
                Some(Err(status)) if is_final(status.code()) => return Err(refused(&status)),
                Some(Err(status)) => warn!(%status, "the stream cannot be opened; trying again"),
            }
            if opened.elapsed() > LONGEST {
                backoff.reset();
            }
            if stop.run_until_cancelled(backoff.wait()).await.is_none() {
                return Ok(());
            }
        }
    }

    fn request(&self) -> v1::StreamJobsRequest {
        let max_in_flight = self.desk.max_in_flight() as u32;
        v1::StreamJobsRequest { max_in_flight, ..self.request.clone() }
    }

    async fn read(
        &self,
        mut stream: Streaming<v1::StreamJobsResponse>,
        backoff: &mut Backoff,
    ) -> Result<Ended, Error> {
        loop {
            let Some(message) = self.stop.run_until_cancelled(stream.message()).await else {
                self.take_what_is_on_its_way(stream).await;
                return Ok(Ended::Stopped);
            };
            match message {
                Ok(Some(message)) => {
                    backoff.reset();
                    self.put(message);
                }
                Ok(None) => return Ok(Ended::Broken("the coordinator closed it".to_owned())),
                Err(status) if is_final(status.code()) => return Err(refused(&status)),
                Err(status) => return Ok(Ended::Broken(status.to_string())),
            }
        }
    }

    /// Jobs that were claimed for us when we stopped would wait for the end of their leases, and lose an attempt, if nobody
    /// gave them back. As long as no result is reported the coordinator has no reason to send more than those.
    async fn take_what_is_on_its_way(&self, mut stream: Streaming<v1::StreamJobsResponse>) {
        self.desk.stop_starting();
        let until_quiet = async {
            while let Ok(Ok(Some(message))) = timeout(QUIET, stream.message()).await {
                self.put(message);
            }
        };
        let _ = timeout(LAST_LOOK, until_quiet).await;
    }

    fn put(&self, message: v1::StreamJobsResponse) {
        self.desk.arrive(message.assignments.into_iter().map(Task::from_wire));
    }
}

enum Ended {
    Stopped,
    Broken(String),
}

fn refused(status: &Status) -> Error {
    Error::from_status("StreamJobs", status)
}
