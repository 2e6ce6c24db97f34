//! Topics: plain jobs for handlers in other people's processes.
//!
//! The hub knows which workers are connected here and how much each can still take. A topic is claimed only when
//! something may be ready *and* somebody has room, so an idle stream causes no queries. What the hub remembers is a
//! copy that may be old: the store alone decides who gets what, and a lease covers whatever gets lost on the way.
//!
//! ```text
//!   enqueue, report, hints, timers ──mark──▶ registry ─plan──▶ claimer ──claim──▶ store
//!                                             ▲                 │ deal
//!                          report, heartbeat ─┘ free slots      ▼
//!                                                         worker streams
//! ```

mod claimer;
mod enqueue;
mod follow_ups;
pub(crate) mod metrics;
mod operate;
mod registry;
mod results;
mod stream;
mod timers;

pub use enqueue::NewTopicWork;
pub use operate::{TopicGates, TopicOverview};
pub use results::ReportStatus;
pub use stream::{Dealt, OpenStream, WorkerStream};

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{JobId, Timestamp};
use giga_ports::TopicStore;
use giga_ports::broker::{DeadLetter, Hint, ReadyTopic};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::core::Core;
use crate::hints::Hints;
use crate::view::Fleet;

use enqueue::RisingIds;
use follow_ups::FollowUps;
use registry::StreamRegistry;

/// The timers that look without being told to: what a lost hint can cost at most.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Who is connected, how much each can take, and what has to be done about it.
pub struct Topics {
    core: Arc<Core>,
    fleet: Arc<Fleet>,
    hints: Arc<Hints>,
    store: Arc<dyn TopicStore>,
    registry: Mutex<StreamRegistry>,
    /// Something may be ready, or somebody may have room.
    wake: Notify,
    follow_ups: Mutex<FollowUps>,
    follow_ups_wake: Notify,
    letters: Mutex<VecDeque<DeadLetter>>,
    letters_wake: Notify,
    /// The next scheduled job that is known of, by the store's clock.
    due: Mutex<Option<Timestamp>>,
    due_wake: Notify,
    /// The next lease that may end, by this process's clock.
    lease_wake: Notify,
    ids: RisingIds,
}

impl Topics {
    pub(crate) fn new(
        core: Arc<Core>,
        fleet: Arc<Fleet>,
        hints: Arc<Hints>,
        store: Arc<dyn TopicStore>,
    ) -> Self {
        Self {
            core,
            fleet,
            hints,
            store,
            registry: Mutex::default(),
            wake: Notify::new(),
            follow_ups: Mutex::default(),
            follow_ups_wake: Notify::new(),
            letters: Mutex::default(),
            letters_wake: Notify::new(),
            due: Mutex::default(),
            due_wake: Notify::new(),
            lease_wake: Notify::new(),
            ids: RisingIds::default(),
        }
    }

    /// Never held across an await.
    fn registry(&self) -> MutexGuard<'_, StreamRegistry> {
        self.registry.lock()
    }

    fn follow_ups(&self) -> MutexGuard<'_, FollowUps> {
        self.follow_ups.lock()
    }

    fn letters(&self) -> MutexGuard<'_, VecDeque<DeadLetter>> {
        self.letters.lock()
    }

    fn follow_up(&self, add: impl FnOnce(&mut FollowUps)) {
        add(&mut self.follow_ups());
        self.follow_ups_wake.notify_one();
    }

    /// A scheduled job is due then.
    fn learn_due(&self, at: Timestamp) {
        let mut due = self.due.lock();
        if due.is_none_or(|known| at < known) {
            *due = Some(at);
            drop(due);
            self.due_wake.notify_one();
        }
    }

    pub(crate) fn spawn(self: &Arc<Self>) {
        self.core.tasks.spawn(self.clone().keep_claiming());
        self.core.tasks.spawn(self.clone().keep_following_up());
        self.core.tasks.spawn(self.clone().keep_mirroring_dead());
        self.core.tasks.spawn(self.clone().keep_promoting());
        self.core.tasks.spawn(self.clone().keep_expiring());
        self.core.tasks.spawn(self.clone().keep_retiring());
    }

    /// Another coordinator (or this one) says that something about topics may have changed.
    pub(crate) fn hear(&self, hint: &Hint) {
        match hint {
            Hint::Ready { topics } => {
                let mut registry = self.registry();
                let news: Vec<(TopicKey, JobId)> = topics
                    .iter()
                    .map(|topic| (topic.key(), topic.lowest))
                    .filter(|(key, lowest)| !registry.is_echo(key, *lowest))
                    .collect();
                drop(registry);
                // Before any claim for them can be planned, so that it looks far enough back.
                for (key, lowest) in &news {
                    self.store.ready_below(key, *lowest);
                }
                let mut registry = self.registry();
                for (key, _) in &news {
                    registry.mark(key);
                }
                drop(registry);
                self.wake.notify_one();
            }
            Hint::Due { at } => self.learn_due(*at),
            Hint::Settled { jobs, .. } => {
                let doubtful = self.registry().held_among(jobs);
                if !doubtful.is_empty() {
                    self.follow_up(|left| left.doubtful.extend(doubtful));
                }
            }
            // Also sent when hints were missed: look at everything once.
            Hint::Pauses => {
                self.follow_up(|left| left.pauses_are_old = true);
                self.learn_due(Timestamp::ZERO);
            }
            Hint::Feed { .. } | Hint::Leaderless | Hint::Effects => {}
        }
    }

    /// Jobs became ready here: claim for the streams of this process, and tell the others. Of new jobs the hint is known
    /// again when it comes back.
    fn ready<'a>(&self, jobs: impl IntoIterator<Item = (&'a TopicKey, JobId)>, are_new: bool) {
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
        let mut registry = self.registry();
        for topic in &lowest {
            let key = topic.key();
            registry.mark(&key);
            if are_new {
                registry.expect_echo(&key, topic.lowest);
            }
        }
        drop(registry);
        self.wake.notify_one();
        self.hints.send(Hint::Ready { topics: lowest });
    }

    /// A transaction was run again since `retries` was read: where its first run was committed without an answer, the
    /// second finds nothing left to do and names no job, so any topic may have something ready. Streams here are looked
    /// after at once; other coordinators find it within [`LOOK_AGAIN`], and such a death is not counted or mirrored.
    fn look_if_retried(&self, retries: u64) {
        if self.store.stats().retries != retries {
            self.registry().mark_all();
            self.wake.notify_one();
        }
    }

    fn lease(&self) -> Duration {
        self.fleet.flag_millis("topic_lease_ms")
    }
}
