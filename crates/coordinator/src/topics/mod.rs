//! Topics: plain jobs for handlers in other people's processes.
//!
//! The hub knows which workers are connected here and how much each can still take. A topic is claimed only when
//! something may be ready *and* somebody has room, so an idle stream causes no queries. What the hub remembers is a
//! copy that may be old: the store alone decides who gets what, and a lease covers whatever gets lost on the way.
//!
//! ```text
//!   enqueue, report, hints, timers ──mark──▶ books ──plan──▶ claimer ──claim──▶ store
//!                                             ▲                 │ deal
//!                          report, heartbeat ─┘ free slots      ▼
//!                                                         worker streams
//! ```

mod books;
mod chores;
mod claimer;
mod enqueue;
pub(crate) mod metrics;
mod operate;
mod results;
mod stream;
mod timers;

pub use enqueue::NewTopicWork;
pub use operate::{TopicGates, TopicOverview};
pub use results::ReportStatus;
pub use stream::{Dealt, OpenStream, WorkerStream};

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{JobId, Timestamp};
use giga_ports::broker::{DeadLetter, Hint, ReadyTopic};
use tokio::sync::Notify;

use crate::Coordinator;
use books::Books;
use chores::Chores;
use enqueue::RisingIds;

/// The timers that look without being told to: what a lost hint can cost at most.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Who is connected, how much each can take, and what has to be done about it.
#[derive(Default)]
pub(crate) struct TopicHub {
    books: Mutex<Books>,
    /// Something may be ready, or somebody may have room.
    wake: Notify,
    chores: Mutex<Chores>,
    chores_wake: Notify,
    letters: Mutex<VecDeque<DeadLetter>>,
    letters_wake: Notify,
    /// The next scheduled job that is known of, by the store's clock.
    due: Mutex<Option<Timestamp>>,
    due_wake: Notify,
    /// The next lease that may end, by this process's clock.
    lease_wake: Notify,
    ids: RisingIds,
    /// How far the store's clock is ahead of this process's, in milliseconds, when it was last asked.
    ahead_ms: AtomicI64,
}

impl TopicHub {
    /// Never held across an await.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chores(&self) -> MutexGuard<'_, Chores> {
        self.chores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn letters(&self) -> MutexGuard<'_, VecDeque<DeadLetter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chore(&self, add: impl FnOnce(&mut Chores)) {
        add(&mut self.chores());
        self.chores_wake.notify_one();
    }

    /// A scheduled job is due then.
    fn learn_due(&self, at: Timestamp) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if due.is_none_or(|known| at < known) {
            *due = Some(at);
            drop(due);
            self.due_wake.notify_one();
        }
    }
}

impl Coordinator {
    pub(crate) fn spawn_topics(self: &Arc<Self>) {
        self.tasks.spawn(self.clone().claim_topics());
        self.tasks.spawn(self.clone().do_topic_chores());
        self.tasks.spawn(self.clone().mirror_dead_topic_jobs());
        self.tasks.spawn(self.clone().promote_topics());
        self.tasks.spawn(self.clone().expire_topics());
        self.tasks.spawn(self.clone().retain_topics());
    }

    /// Another coordinator (or this one) says that something about topics may have changed.
    pub(crate) fn topic_hint(&self, hint: &Hint) {
        match hint {
            Hint::Ready { topics } => {
                let mut books = self.topics.books();
                let news: Vec<(TopicKey, JobId)> = topics
                    .iter()
                    .map(|topic| (topic.key(), topic.lowest))
                    .filter(|(key, lowest)| !books.is_echo(key, *lowest))
                    .collect();
                drop(books);
                // Before any claim for them can be planned, so that it looks far enough back.
                for (key, lowest) in &news {
                    self.topic_store.ready_below(key, *lowest);
                }
                let mut books = self.topics.books();
                for (key, _) in &news {
                    books.mark(key);
                }
                drop(books);
                self.topics.wake.notify_one();
            }
            Hint::Due { at } => self.topics.learn_due(*at),
            Hint::Settled { jobs, .. } => {
                let doubtful = self.topics.books().held_among(jobs);
                if !doubtful.is_empty() {
                    self.topics.chore(|chores| chores.doubtful.extend(doubtful));
                }
            }
            // Also told when hints were missed: look at everything once.
            Hint::Gates => {
                self.topics.chore(|chores| chores.gates_are_old = true);
                self.topics.learn_due(Timestamp::ZERO);
            }
            Hint::Feed { .. } | Hint::Leaderless | Hint::Effects => {}
        }
    }

    /// Jobs became ready here: claim for the streams of this process, and tell the others. Of new jobs the hint is known
    /// again when it comes back.
    fn topics_ready<'a>(&self, jobs: impl IntoIterator<Item = (&'a TopicKey, JobId)>, are_new: bool) {
        let mut lowest: Vec<ReadyTopic> = Vec::new();
        for (key, id) in jobs {
            match lowest.iter_mut().find(|topic| topic.topic == key.topic && topic.product == key.product) {
                Some(topic) => topic.lowest = topic.lowest.min(id),
                None => lowest.push(ReadyTopic {
                    product: key.product.clone(),
                    topic: key.topic.clone(),
                    lowest: id,
                }),
            }
        }
        if lowest.is_empty() {
            return;
        }
        let mut books = self.topics.books();
        for topic in &lowest {
            let key = topic.key();
            books.mark(&key);
            if are_new {
                books.expect_echo(&key, topic.lowest);
            }
        }
        drop(books);
        self.topics.wake.notify_one();
        self.hints.tell(Hint::Ready { topics: lowest });
    }

    /// A transaction was run again since `retries` was read: where its first run was committed without an answer, the
    /// second finds nothing left to do and names no job, so any topic may have something ready. Streams here are looked
    /// after at once; other coordinators find it within [`LOOK_AGAIN`], and such a death is not counted or mirrored.
    fn look_if_retried(&self, retries: u64) {
        if self.topic_store.stats().retries != retries {
            self.topics.books().mark_all();
            self.topics.wake.notify_one();
        }
    }

    fn topic_lease(&self) -> Duration {
        self.flag_millis("topic_lease_ms")
    }

    /// The store's clock, as far as it is known without asking.
    fn about_now(&self) -> Timestamp {
        let ahead = self.topics.ahead_ms.load(Ordering::Relaxed);
        Timestamp::from_millis(self.clock.now().as_millis().saturating_add(ahead))
    }
}
