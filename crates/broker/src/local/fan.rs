//! One hint or dead letter to every reader of this process.
//!
//! A reader that falls behind loses the oldest. Lost hints are replaced by [`look_again`], so that nobody who was slow,
//! or whose connection was gone for a while, goes on believing that nothing happened.

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

/// What stands for any number of lost hints: those that speak of everything at once. The position is the newest that
/// this process has heard of, and may be old.
fn look_again(newest: FeedPos) -> [Hint; 3] {
    [Hint::Feed { pos: newest }, Hint::Gates, Hint::Leaderless]
}

#[derive(Debug, Clone)]
pub(crate) struct HintFan {
    sender: Sender<Hint>,
    newest: Arc<AtomicU64>,
}

impl HintFan {
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::channel(HINTS).0, newest: Arc::default() }
    }

    pub(crate) fn send(&self, hint: Hint) {
        if let Hint::Feed { pos } = hint {
            self.newest.fetch_max(pos.0, Ordering::Relaxed);
        }
        // An error means that nobody reads.
        let _ = self.sender.send(hint);
    }

    /// After a time in which hints may have been lost.
    pub(crate) fn look_again(&self) {
        for hint in look_again(FeedPos(self.newest.load(Ordering::Relaxed))) {
            self.send(hint);
        }
    }

    pub(crate) fn subscribe(&self) -> Box<dyn Hints> {
        let newest = Arc::clone(&self.newest);
        Box::new(HintReader { receiver: self.sender.subscribe(), newest, instead: VecDeque::new() })
    }
}

struct HintReader {
    receiver: Receiver<Hint>,
    newest: Arc<AtomicU64>,
    instead: VecDeque<Hint>,
}

#[async_trait]
impl Hints for HintReader {
    async fn next(&mut self) -> Result<Hint, BrokerError> {
        loop {
            if let Some(hint) = self.instead.pop_front() {
                return Ok(hint);
            }
            match self.receiver.recv().await {
                Ok(hint) => return Ok(hint),
                Err(RecvError::Lagged(_)) => {
                    self.instead.extend(look_again(FeedPos(self.newest.load(Ordering::Relaxed))));
                }
                Err(RecvError::Closed) => return Err(BrokerError::because("it was closed")),
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct DeadFan(Sender<DeadLetter>);

impl DeadFan {
    pub(crate) fn new() -> Self {
        Self(broadcast::channel(LETTERS).0)
    }

    pub(crate) fn send(&self, letter: DeadLetter) {
        // An error means that nobody reads.
        let _ = self.0.send(letter);
    }

    pub(crate) fn subscribe(&self) -> Box<dyn DeadLetters> {
        Box::new(DeadReader(self.0.subscribe()))
    }
}

struct DeadReader(Receiver<DeadLetter>);

#[async_trait]
impl DeadLetters for DeadReader {
    async fn next(&mut self) -> Result<DeadLetter, BrokerError> {
        loop {
            match self.0.recv().await {
                Ok(letter) => return Ok(letter),
                // A mirror: what is true stands in the store.
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
    async fn a_reader_that_fell_behind_is_told_to_look() {
        let fan = HintFan::new();
        let mut slow = fan.subscribe();
        fan.send(Hint::Feed { pos: FeedPos(7) });
        for at in 0..HINTS {
            fan.send(Hint::Due { at: Timestamp::from_millis(at as i64) });
        }
        assert_eq!(slow.next().await.unwrap(), Hint::Feed { pos: FeedPos(7) });
        assert_eq!(slow.next().await.unwrap(), Hint::Gates);
        assert_eq!(slow.next().await.unwrap(), Hint::Leaderless);
        assert_eq!(slow.next().await.unwrap(), Hint::Due { at: Timestamp::from_millis(0) });
    }

    #[tokio::test]
    async fn readers_are_told_when_the_broker_is_gone() {
        let (hints, letters) = (HintFan::new(), DeadFan::new());
        let (mut hint, mut letter) = (hints.subscribe(), letters.subscribe());
        drop((hints, letters));
        assert!(hint.next().await.is_err() && letter.next().await.is_err());
    }
}
