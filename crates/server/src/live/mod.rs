//! Waiting for something to happen, for any number of clients at the cost of one.
//!
//! This process's own commits wake everybody at once. Other coordinators write too, so the end of the feed is looked
//! at now and then, once for all who wait and only while somebody does. A wake is a hint, never the truth.

mod sse;

pub(crate) use sse::{Source, TOGETHER, is_visible, stream};

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::Coordinator;
use giga_domain::{FeedPos, ProductId};
use giga_ports::StoreError;
use giga_ports::store::QueueState;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

pub(crate) struct FeedWatch {
    coordinator: Arc<Coordinator>,
    look_every: Duration,
    looked: Mutex<Option<(Instant, FeedPos)>>,
    states: Mutex<Option<(FeedPos, QueueStates)>>,
}

type QueueStates = Arc<Vec<(ProductId, QueueState)>>;

impl std::fmt::Debug for FeedWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeedWatch").finish_non_exhaustive()
    }
}

impl FeedWatch {
    pub(crate) fn new(coordinator: Arc<Coordinator>, look_every: Duration) -> Self {
        Self { coordinator, look_every, looked: Mutex::default(), states: Mutex::default() }
    }

    /// To be asked for before the first look, so that nothing can happen in between unnoticed.
    pub(crate) fn listen(self: &Arc<Self>) -> Listener {
        let near = self.coordinator.head();
        let seen = *near.borrow();
        Listener { feed_watch: self.clone(), near, seen }
    }

    /// The end of the feed, not older than a moment; whoever comes first asks for all.
    async fn look(&self) -> Result<FeedPos, StoreError> {
        let mut looked = self.looked.lock().await;
        match *looked {
            Some((at, pos)) if at.elapsed() < self.look_every => Ok(pos),
            _ => {
                let pos = self.coordinator.reads().feed_head().await?;
                *looked = Some((Instant::now(), pos));
                Ok(pos)
            }
        }
    }

    /// The state of every queue when the feed had at least come to `at`: one read for all who were woken by it.
    pub(crate) async fn queue_states(&self, at: FeedPos) -> Result<QueueStates, StoreError> {
        let mut states = self.states.lock().await;
        match &*states {
            Some((pos, known)) if *pos >= at => Ok(known.clone()),
            _ => {
                let known = Arc::new(self.coordinator.reads().queue_states().await?);
                *states = Some((at, known.clone()));
                Ok(known)
            }
        }
    }
}

/// One who waits.
pub(crate) struct Listener {
    feed_watch: Arc<FeedWatch>,
    near: watch::Receiver<FeedPos>,
    seen: FeedPos,
}

impl Listener {
    /// Comes back when the feed has grown since it last did, and says how far.
    pub(crate) async fn grown(&mut self) -> Result<FeedPos, StoreError> {
        loop {
            let near = *self.near.borrow_and_update();
            if near > self.seen {
                self.seen = near;
                return Ok(near);
            }
            tokio::select! {
                changed = self.near.changed() => if changed.is_err() {
                    let reason = "the store is shutting down".to_owned();
                    return Err(StoreError::Unavailable { reason, source: None });
                },
                () = tokio::time::sleep(self.feed_watch.look_every) => {
                    let far = self.feed_watch.look().await?;
                    if far > self.seen {
                        self.seen = far;
                        return Ok(far);
                    }
                }
            }
        }
    }
}
