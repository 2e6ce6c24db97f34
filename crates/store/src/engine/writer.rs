//! The store over any backend: every write is a command in the one group, every read goes straight to the backend.

use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::FeedPos;
use giga_ports::store::{Execute, StoreStats};
use giga_ports::{Store, StoreError, StoreReads};
use tokio::sync::{oneshot, watch};

use super::{Asked, Backend, Batch, Op, Pending};
use crate::grouping::{Command, Group, Transact, Tuning, shutting_down};

/// A store over any backend. Dropping the last handle ends the writer after what it has taken on.
#[derive(Debug)]
pub struct BatchStore<B> {
    backend: Arc<B>,
    group: Group<Box<dyn Pending>>,
    head: watch::Receiver<FeedPos>,
}

impl<B: Backend> BatchStore<B> {
    /// Starts the writer on the current runtime.
    pub async fn start(backend: B, tuning: Tuning) -> Result<Self, StoreError> {
        let backend = Arc::new(backend);
        let (head_sender, head) = watch::channel(backend.feed_head().await?);
        let writer = Writer { backend: backend.clone(), head: head_sender };
        Ok(Self { backend, group: Group::start(Arc::new(writer), tuning), head })
    }
}

struct Writer<B> {
    backend: Arc<B>,
    head: watch::Sender<FeedPos>,
}

#[async_trait]
impl<B: Backend> Transact<Box<dyn Pending>> for Writer<B> {
    async fn transact(&self, ops: Vec<Box<dyn Pending>>) -> (Vec<Box<dyn Pending>>, Result<(), StoreError>) {
        let (batch, result) = self.backend.transact(Batch { ops }).await;
        let result = result.map(|committed| {
            if let Some(head) = committed.head {
                self.head.send_replace(head);
            }
        });
        (batch.ops, result)
    }
}

impl Command for Box<dyn Pending> {
    fn answer(self) {
        Pending::answer(self);
    }

    fn fail(self, error: StoreError) {
        Pending::fail(self, error);
    }
}

impl<B: Backend, C: Op> Execute<C> for BatchStore<B> {
    async fn execute(&self, command: C) -> Result<C::Reply, StoreError> {
        if let Ok(Some(reply)) = command.look(&*self.backend).await {
            return Ok(reply);
        }
        let (caller, answer) = oneshot::channel();
        self.group.send(Box::new(Asked { op: command, decided: None, caller })).await?;
        answer.await.map_err(|_| shutting_down())?
    }
}

impl<B: Backend> Store for BatchStore<B> {
    fn read(&self) -> &dyn StoreReads {
        &*self.backend
    }

    fn head(&self) -> watch::Receiver<FeedPos> {
        self.head.clone()
    }

    fn stats(&self) -> StoreStats {
        self.group.stats()
    }
}
