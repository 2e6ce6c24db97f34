//! The logs of runs: written by holders, read by people, live.

use std::time::Duration;

use giga_domain::{Epoch, Holder, Job, JobId, limits};
use giga_ports::StoreError;

use crate::{Coordinator, Error, FieldProblem};

/// A piece of a run's log as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    pub epoch: Epoch,
    pub offset: u64,
    /// Where the next piece begins.
    pub next_offset: u64,
    pub total: u64,
    /// The run is over and this is its end.
    pub complete: bool,
    pub text: String,
}

impl Coordinator {
    /// Adds to the log of the holder's run. Returns the log's length.
    pub async fn append_log(
        &self,
        id: JobId,
        holder: &Holder,
        offset: u64,
        bytes: &[u8],
    ) -> Result<u64, Error> {
        if bytes.len() > limits::LOG_CHUNK_BYTES {
            let message = format!("a piece of a log has at most {} bytes", limits::LOG_CHUNK_BYTES);
            return Err(FieldProblem::new("body", message).into());
        }
        self.check_disk()?;
        // Only spares the write: what counts is the look after it.
        self.check_holds(id, holder).await?;
        let length = self.blobs.logs.append(id, holder.epoch, offset, bytes).await?;
        if let Err(refused) = self.check_holds(id, holder).await {
            // Whoever lost the lease meanwhile leaves nothing. What it was told of ends at the offset that it gave.
            if !matches!(&refused, Error::Store(error) if error.is_transient())
                && let Err(error) = self.blobs.logs.cut(id, holder.epoch, offset).await
            {
                tracing::warn!(%error, job = %id, "what a fenced holder wrote to its log could not be taken back");
            }
            return Err(refused);
        }
        self.blobs.log_grown.notify_waiters();
        Ok(length)
    }

    async fn check_holds(&self, id: JobId, holder: &Holder) -> Result<(), Error> {
        let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        Ok(giga_domain::transition::check_holder(&job, holder).map_err(StoreError::from)?)
    }

    /// From `offset` on, of the newest run that began or of the one that is named. With nothing new to say it waits up
    /// to `wait` while the run goes on.
    pub async fn read_log(
        &self,
        id: JobId,
        epoch: Option<Epoch>,
        offset: u64,
        limit: usize,
        wait: Duration,
    ) -> Result<LogPiece, Error> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            // Registered before the look, so that nothing written in between is slept through.
            let grown = self.blobs.log_grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            let piece = self.look_at_log(id, epoch, offset, limit).await?;
            if !piece.text.is_empty() || piece.complete || tokio::time::Instant::now() >= until {
                return Ok(piece);
            }
            tokio::select! {
                () = &mut grown => {}
                () = self.core.stop.cancelled() => return Ok(piece),
                // Also looks again now and then: the run may end without another word.
                () = tokio::time::sleep_until(until.min(tokio::time::Instant::now() + Duration::from_secs(1))) => {}
            }
        }
    }

    async fn look_at_log(
        &self,
        id: JobId,
        epoch: Option<Epoch>,
        offset: u64,
        limit: usize,
    ) -> Result<LogPiece, Error> {
        let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        let epoch = match epoch {
            Some(epoch) => epoch,
            None => self.newest_run(&job).await?,
        };
        let over = !(job.stage().is_held() && job.epoch == epoch);
        let slice = self.blobs.logs.read(id, epoch, offset, limit).await?;
        let to_the_end = offset + slice.bytes.len() as u64 >= slice.total;
        let (text, used) = whole_text(&slice.bytes, over && to_the_end);
        let next_offset = offset + used;
        Ok(LogPiece {
            epoch,
            offset,
            next_offset,
            total: slice.total,
            complete: over && next_offset >= slice.total,
            text,
        })
    }

    async fn newest_run(&self, job: &Job) -> Result<Epoch, Error> {
        if job.stage().is_held() {
            return Ok(job.epoch);
        }
        let runs = self.core.store.read().runs(job.id).await?;
        Ok(runs.last().map_or(Epoch::ZERO, |run| run.epoch))
    }
}

/// As much as is whole characters, and how many bytes that is. What never becomes text is replaced.
fn whole_text(bytes: &[u8], last: bool) -> (String, u64) {
    let begun = if last { 0 } else { begun_character(bytes) };
    let end = bytes.len() - begun;
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), end as u64)
}

/// How many bytes at the end are the beginning of a character whose rest is still to come.
fn begun_character(bytes: &[u8]) -> usize {
    let begins = |tail: &usize| {
        let text = std::str::from_utf8(&bytes[bytes.len() - tail..]);
        text.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(begins).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::whole_text;

    #[test]
    fn a_character_that_is_cut_in_two_waits_for_its_rest() {
        let text = "grüße".as_bytes();
        assert_eq!(whole_text(&text[..3], false), ("gr".to_owned(), 2));
        assert_eq!(whole_text(text, false), ("grüße".to_owned(), 7));
        assert_eq!(whole_text(b"a\xffb", false), ("a\u{fffd}b".to_owned(), 3));
        assert_eq!(
            whole_text(b"a\xffb\xf0\x9f\x98", false),
            ("a\u{fffd}b".to_owned(), 3),
            "after a wrong byte too"
        );
        assert_eq!(whole_text(&text[..3], true).1, 3, "at the end nothing is left over");
    }
}
