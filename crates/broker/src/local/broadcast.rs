//! Sends each hint and dead letter to every reader of this process.
//!
//! A reader that falls behind loses the oldest. Lost hints are replaced by those of [`resync`], so that a reader that was
//! slow or disconnected does not go on believing that nothing happened.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use giga_domain::FeedPos;
use giga_ports::BrokerError;
use giga_ports::broker::{DeadLetter, DeadLetters, Hint, Hints};
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

const HINTS: usize = 4_096;
const LETTERS: usize = 1_024;

/// Replaces any number of lost hints: together they cover everything. The position is the newest that this process has
/// seen, and may be old.
fn resync(newest: FeedPos) -> [Hint; 3] {
    [Hint::Feed { pos: newest }, Hint::Pauses, Hint::Leaderless]
}

#[derive(Debug, Clone)]
pub(crate) struct HintBroadcast {
    sender: Sender<Hint>,
    newest: Arc<AtomicU64>,
}

impl HintBroadcast {
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::channel(HINTS).0, newest: Arc::default() }
    }

    pub(crate) fn send(&self, hint: Hint) {
        if let Hint::Feed { pos } = hint {
            self.newest.fetch_max(pos.0, Ordering::Relaxed);
        }
        // An error means that there are no readers.
        let _ = self.sender.send(hint);
    }

    /// Call this after hints may have been lost.
    pub(crate) fn resync(&self) {
        for hint in resync(FeedPos(self.newest.load(Ordering::Relaxed))) {
            self.send(hint);
        }
    }

    pub(crate) fn subscribe(&self) -> Box<dyn Hints> {
        let newest = Arc::clone(&self.newest);
        Box::new(HintReader { receiver: self.sender.subscribe(), newest, substitutes: VecDeque::new() })
    }
}

struct HintReader {
    receiver: Receiver<Hint>,
    newest: Arc<AtomicU64>,
    substitutes: VecDeque<Hint>,
}

#[async_trait]
impl Hints for HintReader {
    async fn next(&mut self) -> Result<Hint, BrokerError> {
        loop {
            if let Some(hint) = self.substitutes.pop_front() {
                return Ok(hint);
            }
            match self.receiver.recv().await {
                Ok(hint) => return Ok(hint),
                Err(RecvError::Lagged(_)) => {
                    self.substitutes.extend(resync(FeedPos(self.newest.load(Ordering::Relaxed))));
                }
                Err(RecvError::Closed) => return Err(BrokerError::because("it was closed")),
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct DeadLetterBroadcast(Sender<DeadLetter>);

impl DeadLetterBroadcast {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(LETTERS).0)
    }

    pub(crate) fn send(&self, letter: DeadLetter) {
        // An error means that there are no readers.
        let _ = self.0.send(letter);
    }

    pub(crate) fn subscribe(&self) -> Box<dyn DeadLetters> {
        Box::new(DeadLetterReader(self.0.subscribe()))
    }
}

struct DeadLetterReader(Receiver<DeadLetter>);

#[async_trait]
impl DeadLetters for DeadLetterReader {
    async fn next(&mut self) -> Result<DeadLetter, BrokerError> {
        loop {
            match self.0.recv().await {
                Ok(letter) => return Ok(letter),
                // Only a mirror: the store has the dead letters.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err(BrokerError::because("it was closed")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use giga_domain::Timestamp;

    use super::*;

    #[tokio::test]
    async fn a_reader_that_fell_behind_resyncs() {
        let hints = HintBroadcast::new();
        let mut slow = hints.subscribe();
        hints.send(Hint::Feed { pos: FeedPos(7) });
        for at in 0..HINTS {
            hints.send(Hint::Due { at: Timestamp::from_millis(at as i64) });
        }
        assert_eq!(slow.next().await.unwrap(), Hint::Feed { pos: FeedPos(7) });
        assert_eq!(slow.next().await.unwrap(), Hint::Pauses);
        assert_eq!(slow.next().await.unwrap(), Hint::Leaderless);
        assert_eq!(slow.next().await.unwrap(), Hint::Due { at: Timestamp::from_millis(0) });
    }

    #[tokio::test]
    async fn readers_end_when_the_broker_is_gone() {
        let (hints, letters) = (HintBroadcast::new(), DeadLetterBroadcast::new());
        let (mut hint, mut letter) = (hints.subscribe(), letters.subscribe());
        drop((hints, letters));
        assert!(hint.next().await.is_err() && letter.next().await.is_err());
    }
}
