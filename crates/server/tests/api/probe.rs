//! A store that can be told to fail, hang or panic, and that tells when it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use giga_domain::FeedPos;
use giga_ports::{Intercept, InterceptReads, Store, StoreError, StoreReads};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// Pings, job lists and flags fail for now.
    Unavailable,
    /// They fail for good.
    Broken,
    /// They never answer.
    Silent,
    Panicking,
}

const MOODS: [Mood; 5] = [Mood::Well, Mood::Unavailable, Mood::Broken, Mood::Silent, Mood::Panicking];

pub(crate) struct Probe {
    inner: Arc<dyn Store>,
    mood: AtomicU8,
    /// Set for a store whose commits this process is not told of, as if another one had made them.
    deaf: Option<watch::Sender<FeedPos>>,
    /// How often queue states were read.
    pub(crate) queue_reads: watch::Sender<u64>,
    /// How often the end of the feed was asked for.
    pub(crate) head_reads: watch::Sender<u64>,
    /// How often a token, or all of them, were asked for.
    pub(crate) token_reads: watch::Sender<u64>,
    /// How often it was pinged, how many pings are under way, and how many were at most.
    pub(crate) pings: watch::Sender<u64>,
    pings_now: AtomicU8,
    pub(crate) most_pings: watch::Sender<u8>,
}

impl Probe {
    pub(crate) fn new(inner: Arc<dyn Store>, deaf: bool) -> Self {
        Self {
            inner,
            mood: AtomicU8::new(0),
            deaf: deaf.then(|| watch::Sender::new(FeedPos::ZERO)),
            queue_reads: watch::Sender::new(0),
            head_reads: watch::Sender::new(0),
            token_reads: watch::Sender::new(0),
            pings: watch::Sender::new(0),
            pings_now: AtomicU8::new(0),
            most_pings: watch::Sender::new(0),
        }
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    async fn feel(&self) -> Result<()> {
        match MOODS[usize::from(self.mood.load(Ordering::SeqCst))] {
            Mood::Well => Ok(()),
            Mood::Unavailable => {
                Err(StoreError::Unavailable { reason: "secret-host refused".to_owned(), source: None })
            }
            Mood::Broken => Err(StoreError::broken_because("secret-table is damaged")),
            Mood::Silent => std::future::pending().await,
            Mood::Panicking => panic!("secret-invariant"),
        }
    }
}

impl InterceptReads for Probe {
    fn inner_reads(&self) -> &dyn StoreReads {
        self.inner.read()
    }

    async fn around<T: Send>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match call {
            "ping" | "list_jobs" | "flags" => self.feel().await?,
            "token_by_hash" | "tokens" => self.token_reads.send_modify(|count| *count += 1),
            "feed_head" => self.head_reads.send_modify(|count| *count += 1),
            _ => {}
        }
        if call == "ping" {
            self.pings.send_modify(|count| *count += 1);
            let now = self.pings_now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_pings.send_modify(|most| *most = now.max(*most));
            tokio::task::yield_now().await;
        }
        let answer = answer.await;
        if call == "ping" {
            self.pings_now.fetch_sub(1, Ordering::SeqCst);
        }
        if matches!(call, "queue_state" | "queue_states") {
            self.queue_reads.send_modify(|count| *count += 1);
        }
        answer
    }
}

impl Intercept for Probe {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn head(&self) -> watch::Receiver<FeedPos> {
        self.deaf.as_ref().map_or_else(|| self.inner.head(), watch::Sender::subscribe)
    }
}
