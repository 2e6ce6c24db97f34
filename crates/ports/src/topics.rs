//! The store of topic jobs: tables of their own, hot and narrow, because thousands of them pass each second.
//!
//! Like [`crate::Store`] it is the only truth, judges by its own clock, answers when a write is durable, and shares
//! transactions between callers. What a claim costs depends on the batch, never on the backlog. Implementations pass
//! `giga_testkit::topic_suite`.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::job::RetryPolicy;
use giga_domain::topic::{Outcome, TopicJob, TopicKey, TopicStage};
use giga_domain::{Actor, Epoch, JobId, Priority, ProductId, Timestamp, WorkerId};

use crate::StoreError;
use crate::store::StoreStats;

type Result<T> = std::result::Result<T, StoreError>;

/// One list, from which the port and the place to stand before it are made: nobody writes a forwarding method by hand.
macro_rules! topic_store {
    (
        writes { $($(#[$about_write:meta])* $write:ident($($write_arg:ident: $WriteArg:ty),*) -> $Reply:ty;)* }
        reads { $($(#[$about_read:meta])* $read:ident($($read_arg:ident: $ReadArg:ty),*) -> $Answer:ty;)* }
    ) => {
        #[async_trait]
        pub trait TopicStore: Send + Sync {
            $($(#[$about_write])* async fn $write(&self, $($write_arg: $WriteArg),*) -> Result<$Reply>;)*
            $($(#[$about_read])* async fn $read(&self, $($read_arg: $ReadArg),*) -> Result<$Answer>;)*

            fn stats(&self) -> StoreStats;

            /// Another process made jobs of the topic ready, none of them with a smaller id. Only a hint: it makes their
            /// age count at the next claim; without it they are found a little later.
            fn ready_below(&self, _key: &TopicKey, _lowest: JobId) {}
        }

        /// Stands before a [`TopicStore`], as [`crate::Intercept`] does before a store.
        pub trait InterceptTopics: Send + Sync {
            fn inner(&self) -> &dyn TopicStore;

            /// Every write passes here: its name, and what will answer it when it is awaited.
            fn around<T: Send>(
                &self,
                _call: &'static str,
                answer: impl Future<Output = Result<T>> + Send,
            ) -> impl Future<Output = Result<T>> + Send {
                answer
            }

            /// Every read.
            fn around_read<T: Send>(
                &self,
                call: &'static str,
                answer: impl Future<Output = Result<T>> + Send,
            ) -> impl Future<Output = Result<T>> + Send {
                self.around(call, answer)
            }

            $(fn $write(&self, $($write_arg: $WriteArg),*) -> impl Future<Output = Result<$Reply>> + Send {
                self.inner().$write($($write_arg),*)
            })*
            $(fn $read(&self, $($read_arg: $ReadArg),*) -> impl Future<Output = Result<$Answer>> + Send {
                async move { self.inner().$read($($read_arg),*).await }
            })*

            fn ready_below(&self, key: &TopicKey, lowest: JobId) {
                self.inner().ready_below(key, lowest);
            }
        }

        #[async_trait]
        impl<I: InterceptTopics> TopicStore for I {
            $(async fn $write(&self, $($write_arg: $WriteArg),*) -> Result<$Reply> {
                self.around(
                    concat!("topic ", stringify!($write)),
                    InterceptTopics::$write(self, $($write_arg),*),
                )
                .await
            })*
            $(async fn $read(&self, $($read_arg: $ReadArg),*) -> Result<$Answer> {
                self.around_read(
                    concat!("topic ", stringify!($read)),
                    InterceptTopics::$read(self, $($read_arg),*),
                )
                .await
            })*

            fn stats(&self) -> StoreStats {
                self.inner().stats()
            }

            fn ready_below(&self, key: &TopicKey, lowest: JobId) {
                InterceptTopics::ready_below(self, key, lowest);
            }
        }
    };
}

topic_store! {
    writes {
        /// All or none. A job whose topic and idempotency key are known is not made again; with another payload the whole
        /// call is refused as [`StoreError::KeyReused`]. The same ids again are this very call, repeated.
        enqueue(jobs: Vec<NewTopicJob>) -> Vec<Enqueued>;

        /// Up to as many ready jobs as the workers have free slots: priority, then age (id). Racing claimers, in this
        /// process or another, get disjoint jobs and never wait for each other. A paused topic gives nothing. What was
        /// claimed and never heard of comes back when its lease ends.
        claim(claim: TopicClaim) -> Vec<Assignment>;

        /// Holders' last words, each on its own: one that is fenced does not hurt the others. In the order given.
        settle(results: Vec<Settle>) -> Vec<Settled>;

        /// Keeps leases alive. In the order given: whether the holder still holds it.
        renew(held: Vec<(JobId, Epoch)>, lease: Duration) -> Vec<bool>;

        /// Takes back jobs whose lease has ended, longest ended first.
        expire(limit: usize) -> Swept;

        /// Makes scheduled jobs ready whose time has come, longest due first.
        promote(limit: usize) -> Swept;

        /// Dead jobs of the topic become ready again, oldest first: those named, or all where none is named, at most
        /// `limit`. Answers which.
        ///
        /// This, `expire` and `promote` name what they moved once: where the connection is lost over the commit, the call is
        /// run again, finds nothing left to move, and answers with less than happened. [`StoreStats::retries`] has risen then.
        retry_dead(key: TopicKey, jobs: Vec<JobId>, limit: usize) -> Vec<JobId>;

        /// Pauses or resumes; a pause says since when and by whom. Pausing what is paused changes nothing.
        set_pause(scope: PauseScope, paused: bool, actor: Actor) -> ();

        /// Removes jobs that were done or dead before `before`, at most `limit`; says how many.
        retire(before: Timestamp, limit: usize) -> usize;
    }
    reads {
        pauses() -> Vec<TopicPause>;

        /// Every topic that ever had a job, by product and name. Counts are kept by the writes; nobody counts rows.
        topics() -> Vec<TopicCounts>;

        job(id: JobId) -> Option<TopicJob>;

        /// Whose jobs these are; those that there are not are left out. One look, without payloads.
        owners_of(ids: &[JobId]) -> HashMap<JobId, TopicOwner>;

        /// Newest first. For operators' eyes: in a large store, scheduled, running and done jobs are found by looking through
        /// many others, which may take a while. Dead and ready ones are found at once.
        list(key: &TopicKey, stage: TopicStage, before: Option<JobId>, limit: usize) -> Vec<TopicJob>;
    }
}

#[derive(Debug, Clone)]
pub struct NewTopicJob {
    pub id: JobId,
    pub key: TopicKey,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub idempotency_key: Option<String>,
    pub run_at: Option<Timestamp>,
    pub retry: RetryPolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// `due` is set for a job whose time has not come.
    Created { id: JobId, due: Option<Timestamp> },
    /// The key was seen before; this is the job it made.
    Existing(JobId),
}

impl Enqueued {
    pub const fn id(&self) -> JobId {
        match self {
            Self::Created { id, .. } | Self::Existing(id) => *id,
        }
    }
}

/// Whose a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicOwner {
    pub product: ProductId,
    pub epoch: Epoch,
    /// Who runs it, where somebody does.
    pub worker: Option<WorkerId>,
}

#[derive(Debug, Clone)]
pub struct TopicClaim {
    pub key: TopicKey,
    /// Who has room for how many. Jobs are dealt to them in turn, best first.
    pub workers: Vec<(WorkerId, u32)>,
    /// Payloads of all jobs together, but for a single job that is larger.
    pub most_bytes: u64,
    pub lease: Duration,
}

impl TopicClaim {
    pub fn slots(&self) -> usize {
        self.workers.iter().map(|(_, free)| *free as usize).sum()
    }
}

/// A job with the right to write to it, for one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub id: JobId,
    pub worker: WorkerId,
    pub epoch: Epoch,
    /// 1 for the first.
    pub attempt: u32,
    pub priority: Priority,
    pub payload: Vec<u8>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Settle {
    pub id: JobId,
    pub epoch: Epoch,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// `due` where it is tried again later. `repeated` for a word that was heard before, which changed nothing now: the
    /// job is where it has come to since.
    Applied { key: TopicKey, stage: TopicStage, due: Option<Timestamp>, repeated: bool },
    /// The job is another's by now, or nobody's, or its holder reported something else before.
    Fenced,
    /// There is no such job.
    Unknown,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    pub jobs: Vec<(TopicKey, JobId, TopicStage)>,
    /// When the next one ends or is due, where there is one: nothing has to be looked at before.
    pub next: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PauseScope {
    Everything,
    Topic(TopicKey),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPause {
    pub scope: PauseScope,
    pub since: Timestamp,
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicCounts {
    pub key: TopicKey,
    /// Indexed by `TopicStage as usize`.
    pub by_stage: [u64; 5],
}

impl TopicCounts {
    pub fn count(&self, stage: TopicStage) -> u64 {
        self.by_stage[stage as usize]
    }
}
