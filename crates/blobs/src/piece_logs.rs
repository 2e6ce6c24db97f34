//! Logs where nothing can be added to a file: a row of pieces, each written once, each named by where it begins.
//!
//! A piece is put only where there is none, so of two coordinators that add at one place one wins, and the other looks
//! again. Many small pieces become one: it replaces the first of them, if that is still as it was, and the others go
//! afterwards. So pieces may overlap for a while; the bytes of a place are those of the first piece that covers it, and
//! nothing that was acknowledged is ever missing.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::{Epoch, JobId, limits};
use giga_ports::blobs::LogSlice;
use giga_ports::{BlobError, Logs};
use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use parking_lot::Mutex;

use crate::bucket::Bucket;

/// So many small pieces at the end of a log become one; a piece that has grown to this size is left alone.
const MANY: usize = 32;
const LARGE: u64 = 1024 * 1024;
/// How often somebody else may get in between before the call is given up; whoever made it tries again.
const TRIES: usize = 8;
/// Lengths that are remembered; past that all are forgotten, and asked for again.
const REMEMBERED: usize = 10_000;

#[derive(Debug, Clone)]
pub struct PieceLogs {
    bucket: Bucket,
    /// How long a log was when it was last looked at: it may be longer by now, never shorter.
    lengths: Arc<Mutex<HashMap<(JobId, Epoch), Known>>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    length: u64,
    /// Small pieces at its end, by this process's count.
    small: usize,
}

#[derive(Debug, Clone)]
struct Piece {
    key: Key,
    start: u64,
    end: u64,
}

/// Small pieces in one, which takes the place of the first of them if that is still as it was.
struct Merged {
    key: Key,
    version: UpdateVersion,
    whole: Vec<u8>,
    covered: Vec<Key>,
}

impl PieceLogs {
    pub(crate) fn new(bucket: Bucket) -> Self {
        Self { bucket, lengths: Arc::default() }
    }

    fn known(&self, log: (JobId, Epoch)) -> Option<Known> {
        self.lengths.lock().get(&log).copied()
    }

    fn remember(&self, log: (JobId, Epoch), known: Known) {
        let mut lengths = self.lengths.lock();
        if lengths.len() >= REMEMBERED {
            lengths.clear();
        }
        lengths.insert(log, known);
    }

    fn forget(&self, job: JobId) {
        let mut lengths = self.lengths.lock();
        lengths.retain(|(of, _), _| *of != job);
    }

    async fn look(&self, log: (JobId, Epoch)) -> Result<Known, BlobError> {
        let pieces = self.pieces(log).await?;
        let known = Known { length: length(&pieces), small: small_ones(&pieces).len() };
        self.remember(log, known);
        Ok(known)
    }

    /// In order, each with something that those before it lack, and none that nothing leads up to.
    async fn pieces(&self, log: (JobId, Epoch)) -> Result<Vec<Piece>, BlobError> {
        let found = self.bucket.list(&folder(log)).await?;
        let piece = |object: object_store::ObjectMeta| {
            let start = object.location.filename()?.strip_suffix(".log")?.parse().ok()?;
            Some(Piece { key: object.location, start, end: start + object.size })
        };
        let mut pieces: Vec<Piece> = found.into_iter().filter_map(piece).collect();
        pieces.sort_by_key(|piece| (piece.start, piece.end));
        let mut covered = 0;
        pieces.retain(|piece| {
            let adds = piece.start <= covered && piece.end > covered;
            covered = if adds { piece.end } else { covered };
            adds
        });
        Ok(pieces)
    }

    /// `false` where somebody else was there first.
    async fn put_new(&self, log: (JobId, Epoch), start: u64, bytes: &[u8]) -> Result<bool, BlobError> {
        let name = format!("{}/{start:012}.log", folder(log));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let payload = PutPayload::from(bytes.to_vec());
        match self.bucket.store.put_opts(&self.bucket.key(&name), payload, options).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(other) => Err(self.bucket.error(&name, other)),
        }
    }

    /// Small pieces at the end become one. Whatever goes wrong leaves a log that reads the same.
    async fn merge(&self, log: (JobId, Epoch)) -> Result<(), BlobError> {
        match self.gather(log).await? {
            Some(merged) => self.replace(merged).await,
            None => Ok(()),
        }
    }

    async fn gather(&self, log: (JobId, Epoch)) -> Result<Option<Merged>, BlobError> {
        let pieces = self.pieces(log).await?;
        let small = small_ones(&pieces);
        if small.len() < MANY {
            return Ok(None);
        }
        let (key, begin) = (&small[0].key, small[0].start);
        // Before the bytes are read, so that whatever is written over it from here on is noticed.
        let first =
            self.bucket.store.head(key).await.map_err(|error| self.bucket.error(key.as_ref(), error))?;
        let mut whole = Vec::new();
        for piece in small {
            let at = begin + whole.len() as u64;
            whole.extend_from_slice(&self.bytes_of(piece, at..piece.end).await?);
        }
        let version = UpdateVersion { e_tag: first.e_tag, version: first.version };
        let covered = small[1..].iter().map(|piece| piece.key.clone()).collect();
        Ok(Some(Merged { key: key.clone(), version, whole, covered }))
    }

    /// Refused where another coordinator did the same: its piece may cover more, and the others are its to delete.
    async fn replace(&self, merged: Merged) -> Result<(), BlobError> {
        let Merged { key, version, whole, covered } = merged;
        let options = PutOptions { mode: PutMode::Update(version), ..PutOptions::default() };
        let put = self.bucket.store.put_opts(&key, PutPayload::from(whole), options).await;
        put.map_err(|error| self.bucket.error(key.as_ref(), error))?;
        for piece in covered {
            let deleted = self.bucket.store.delete(&piece).await;
            deleted.map_err(|error| self.bucket.error(piece.as_ref(), error))?;
        }
        Ok(())
    }

    async fn bytes_of(&self, piece: &Piece, range: std::ops::Range<u64>) -> Result<Vec<u8>, BlobError> {
        let within = range.start - piece.start..range.end - piece.start;
        let got = self.bucket.store.get_range(&piece.key, within).await;
        got.map(Vec::from).map_err(|error| self.bucket.error(piece.key.as_ref(), error))
    }

    async fn read_once(&self, log: (JobId, Epoch), offset: u64, limit: usize) -> Result<LogSlice, BlobError> {
        let pieces = self.pieces(log).await?;
        let total = length(&pieces);
        let until = total.min(offset.saturating_add(limit as u64));
        let mut bytes = Vec::new();
        for piece in &pieces {
            let at = offset + bytes.len() as u64;
            if piece.start <= at && at < piece.end.min(until) {
                bytes.extend_from_slice(&self.bytes_of(piece, at..piece.end.min(until)).await?);
            }
        }
        Ok(LogSlice { bytes, offset, total })
    }
}

fn folder((job, epoch): (JobId, Epoch)) -> String {
    format!("{job}/{epoch}")
}

fn length(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.end).max().unwrap_or(0)
}

fn small_ones(pieces: &[Piece]) -> &[Piece] {
    let large = |piece: &Piece| piece.end - piece.start >= LARGE;
    let first = pieces.iter().rposition(large).map_or(0, |last| last + 1);
    &pieces[first..]
}

#[async_trait]
impl Logs for PieceLogs {
    async fn append(&self, job: JobId, epoch: Epoch, offset: u64, bytes: &[u8]) -> Result<u64, BlobError> {
        let log = (job, epoch);
        for _ in 0..TRIES {
            let mut known = match self.known(log) {
                // Shorter than what the writer was told: another coordinator has added since.
                Some(known) if offset <= known.length => known,
                _ => self.look(log).await?,
            };
            if offset > known.length {
                return Err(BlobError::Gap { expected: known.length, given: offset });
            }
            let skipped = usize::try_from(known.length - offset).unwrap_or(usize::MAX).min(bytes.len());
            let new = &bytes[skipped..];
            if new.is_empty() {
                return Ok(known.length);
            }
            if known.length + new.len() as u64 > limits::LOG_BYTES {
                return Err(BlobError::TooLarge { what: "the log", limit: limits::LOG_BYTES, remedy: None });
            }
            if self.put_new(log, known.length, new).await? {
                known = Known { length: known.length + new.len() as u64, small: known.small + 1 };
                self.remember(log, known);
                if known.small >= MANY {
                    // Pieces that stay many cost time and nothing else; the next piece tries again.
                    let _ = self.merge(log).await;
                    let _ = self.look(log).await;
                }
                return Ok(known.length);
            }
            self.look(log).await?;
        }
        let reason = "other writers were faster every time; try again".to_owned();
        Err(BlobError::Unavailable { reason, source: None })
    }

    /// A piece that was merged with earlier ones stays.
    async fn cut(&self, job: JobId, epoch: Epoch, from: u64) -> Result<(), BlobError> {
        let log = (job, epoch);
        for piece in self.pieces(log).await?.into_iter().rev().take_while(|piece| piece.start >= from) {
            match self.bucket.store.delete(&piece.key).await {
                Err(Error::NotFound { .. }) | Ok(()) => {}
                Err(other) => return Err(self.bucket.error(piece.key.as_ref(), other)),
            }
        }
        self.forget(job);
        Ok(())
    }

    async fn read(&self, job: JobId, epoch: Epoch, offset: u64, limit: usize) -> Result<LogSlice, BlobError> {
        let mut tries = 0;
        loop {
            match self.read_once((job, epoch), offset, limit).await {
                // It has become part of another one since it was listed.
                Err(BlobError::NotFound(_)) if tries < TRIES => tries += 1,
                other => return other,
            }
        }
    }

    async fn remove(&self, job: JobId) -> Result<(), BlobError> {
        self.forget(job);
        self.bucket.delete_below(&job.to_string()).await
    }
}

#[cfg(test)]
mod tests {
    use giga_domain::Timestamp;
    use object_store::memory::InMemory;

    use super::*;

    const E: Epoch = Epoch(1);

    fn id() -> JobId {
        JobId::from_parts(Timestamp::from_millis(1), 1)
    }

    async fn add(logs: &PieceLogs, from: u64, to: u64) {
        for offset in from..to {
            logs.append(id(), E, offset, &[offset as u8]).await.unwrap();
        }
    }

    /// The slower of two must not write its shorter piece over the longer one whose pieces are deleted already.
    #[tokio::test]
    async fn of_two_coordinators_that_merge_at_once_one_is_refused() {
        let bucket = Bucket::folder(InMemory::new());
        let (slow, fast) = (PieceLogs::new(bucket.clone()), PieceLogs::new(bucket));
        add(&fast, 0, MANY as u64 - 1).await;
        fast.put_new((id(), E), MANY as u64 - 1, &[MANY as u8 - 1]).await.unwrap();
        let gathered = slow.gather((id(), E)).await.unwrap().expect("enough small pieces");
        add(&fast, MANY as u64, MANY as u64 + 8).await;
        fast.merge((id(), E)).await.unwrap();
        assert!(slow.replace(gathered).await.is_err());
        let log = slow.read(id(), E, 0, 1_000).await.unwrap();
        let expected: Vec<u8> = (0..MANY as u8 + 8).collect();
        assert_eq!((log.bytes, log.total), (expected, MANY as u64 + 8));
    }
}
