//! Receives jobs from the coordinator's stream, and reopens the stream when it breaks. It never drops a job that was sent:
//! jobs that are on their way when the worker stops are received too, and released.

use std::sync::Arc;
use std::time::Duration;

use giga_proto::v1;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};
use tracing::{debug, info, warn};

use crate::backoff::{Backoff, LONGEST};
use crate::error::is_final;
use crate::in_flight::InFlight;
use crate::{Client, Error, Task};

/// After a stop: when nothing has arrived for so long, nothing more is on its way.
const QUIET: Duration = Duration::from_millis(50);
/// After a stop: how long to wait for jobs on their way at most.
const LAST_JOBS: Duration = Duration::from_millis(500);

pub(crate) struct Intake {
    pub(crate) client: Client,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) request: v1::StreamJobsRequest,
    pub(crate) stop: CancellationToken,
}

impl Intake {
    /// Runs until it is stopped or the coordinator refuses it.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let stop = self.stop.clone();
        let mut backoff = Backoff::new();
        loop {
            // The coordinator does not count jobs of the old stream against the new one, so wait until there is room.
            let room = self.in_flight.wait_for_room(self.in_flight.max_in_flight());
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
                        Ended::Broken(why) => info!(why, "the stream ended; reopening it"),
                    }
                }
                Some(Err(status)) if is_final(status.code()) => return Err(refused(&status)),
                Some(Err(status)) => warn!(%status, "cannot open the stream; retrying"),
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
        let max_in_flight = self.in_flight.max_in_flight() as u32;
        v1::StreamJobsRequest { max_in_flight, ..self.request.clone() }
    }

    async fn read(
        &self,
        mut stream: Streaming<v1::StreamJobsResponse>,
        backoff: &mut Backoff,
    ) -> Result<Ended, Error> {
        loop {
            let Some(message) = self.stop.run_until_cancelled(stream.message()).await else {
                self.receive_jobs_on_their_way(stream).await;
                return Ok(Ended::Stopped);
            };
            match message {
                Ok(Some(message)) => {
                    backoff.reset();
                    self.receive(message);
                }
                Ok(None) => return Ok(Ended::Broken("the coordinator closed it".to_owned())),
                Err(status) if is_final(status.code()) => return Err(refused(&status)),
                Err(status) => return Ok(Ended::Broken(status.to_string())),
            }
        }
    }

    /// Jobs that were already assigned to us would otherwise wait until their leases expire, and lose an attempt. As long
    /// as no result is reported, the coordinator has no reason to send more.
    async fn receive_jobs_on_their_way(&self, mut stream: Streaming<v1::StreamJobsResponse>) {
        self.in_flight.stop_starting();
        let until_quiet = async {
            while let Ok(Ok(Some(message))) = timeout(QUIET, stream.message()).await {
                self.receive(message);
            }
        };
        let _ = timeout(LAST_JOBS, until_quiet).await;
    }

    fn receive(&self, message: v1::StreamJobsResponse) {
        self.in_flight.receive(message.assignments.into_iter().map(Task::from_wire));
    }
}

enum Ended {
    Stopped,
    Broken(String),
}

fn refused(status: &Status) -> Error {
    Error::from_status("StreamJobs", status)
}
