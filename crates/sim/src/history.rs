//! What was asked of the store and what it answered, as the checkers see it. They know nothing else of the system.
//!
//! A record is made where the store answers: above the planted bugs and below the lost replies. What a client was told
//! is recorded by the client.

use std::sync::atomic::{AtomicU64, Ordering};

use giga_domain::topic::TopicStage;
use giga_domain::{
    BudgetSettings, DispatchSeq, Epoch, Event, EventSeq, FactoryId, FeedPos, Job, JobId, ProductId,
    RequestId, Term, Timestamp, Usd, WebhookId, WorkerId,
};
use parking_lot::Mutex;

#[derive(Debug, Clone)]
pub(crate) enum Record {
    /// A claim was granted.
    Granted { factory: FactoryId, request: RequestId, job: Seen },
    /// A holder's write was accepted. `epoch` is the one that it named, `reported` what it says to have spent so far.
    Held { factory: FactoryId, epoch: Epoch, word: Word, reported: Usd, after: Seen },
    /// A holder is about to tell what it has spent so far; nobody knows yet whether it gets through.
    Reporting { job: JobId, epoch: Epoch, reported: Usd },
    /// The store is asked to keep a job that may spend so much.
    Asked { job: JobId, cap: Option<Usd> },
    /// After the commit of that time people's settings of a budget are these.
    BudgetSet { at: Timestamp, product: ProductId, settings: BudgetSettings },
    /// After the commit of that time a budget said that so much is reserved, and the leases something else.
    BudgetOff { at: Timestamp, product: ProductId, reserved: Usd, leases: Usd },
    /// The event at that position was delivered, under that id; whether the receiver took it.
    Outside { id: String, webhook: WebhookId, pos: u64, taken: bool },
    /// Somebody was told that the answer to this question of a job is taken.
    Answered { job: JobId, question: u32 },
    /// At that time the store was told which engines of the factory are closed, and until when.
    Advertised { at: Timestamp, factory: FactoryId, closed: Vec<(String, Timestamp)> },
    /// Offers of a term were accepted.
    Offered { term: Term, offers: Vec<(JobId, DispatchSeq)> },
    /// A submitter was answered that its job is kept.
    Kept { key: Option<String>, job: JobId },
    /// A producer was answered so for a topic job.
    TopicKept { key: Option<String>, job: JobId },
    /// A topic job was handed to a worker.
    TopicAssigned { job: JobId, worker: WorkerId, epoch: Epoch },
    /// A worker's word was accepted; `epoch` is the one that it named.
    TopicSettled { job: JobId, epoch: Epoch, success: bool, stage: TopicStage },
    /// A topic job was handed out while it was paused.
    PauseIgnored { job: JobId },
    /// So many jobs were with a worker at once.
    InFlight { worker: WorkerId, running: usize },
    /// A worker opened a stream for at most so many at once. It names itself anew each time.
    Opened { worker: WorkerId, most: u32 },
}

/// How a holder's write ends its lease, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// It goes on.
    On,
    Report,
    FailForGood,
    FailForNow,
    /// Its account ended it.
    FailForAccount,
    Release,
}

/// The job as an answer showed it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub id: JobId,
    pub epoch: Epoch,
    /// How much of its history had been written.
    pub seq: EventSeq,
    pub holder: Option<FactoryId>,
    pub expires_at: Option<Timestamp>,
    pub has_checkpoint: bool,
}

impl From<&Job> for Seen {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id,
            epoch: job.epoch,
            seq: job.last_event,
            holder: job.lease().map(|lease| lease.factory.clone()),
            expires_at: job.lease().map(|lease| lease.expires_at),
            has_checkpoint: job.checkpoint.is_some(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct History {
    records: Mutex<Vec<Record>>,
    /// The feed as a reader got it that always went on from its last position.
    read: Mutex<Vec<Event>>,
    fenced: AtomicU64,
    stale_terms: AtomicU64,
}

impl History {
    /// A holder that was none any more was turned away.
    pub(crate) fn add_fenced(&self) {
        self.fenced.fetch_add(1, Ordering::Relaxed);
    }

    /// A leader that was none any more was turned away.
    pub(crate) fn add_stale_term(&self) {
        self.stale_terms.fetch_add(1, Ordering::Relaxed);
    }

    /// How many of the two there were.
    pub(crate) fn turned_away(&self) -> (u64, u64) {
        (self.fenced.load(Ordering::Relaxed), self.stale_terms.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, record: Record) {
        self.records.lock().push(record);
    }

    pub(crate) fn add_read(&self, page: Vec<Event>) {
        self.read.lock().extend(page);
    }

    /// How far the reader has come.
    pub(crate) fn read_until(&self) -> FeedPos {
        let read = self.read.lock();
        read.last().map_or(FeedPos::ZERO, |event| event.pos)
    }

    pub(crate) fn take(&self) -> (Vec<Record>, Vec<Event>) {
        let records = std::mem::take(&mut *self.records.lock());
        let read = std::mem::take(&mut *self.read.lock());
        (records, read)
    }
}
