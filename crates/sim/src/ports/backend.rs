//! One coordinator's connection to the database that all of them share.
//!
//! A transaction may fail before it began, or commit and then lose its answer: the writer above it has to cope with both,
//! as with a real database. Each call waits at the turnstile first.

use std::sync::Arc;

use async_trait::async_trait;
use giga_domain::{Event, FeedPos};
use giga_ports::{InterceptReads, StoreError, StoreReads};
use giga_store::engine::{Backend, Batch, Committed};

use super::{budget_audit, cut_off};
use crate::bug::Bug;
use crate::turnstile::{Kind, Node, Verdict};
use crate::world::World;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug)]
pub(crate) struct NodeBackend {
    pub node: Node,
    pub world: Arc<World>,
}

#[async_trait]
impl Backend for NodeBackend {
    async fn transact(&self, batch: Batch) -> (Batch, Result<Committed>) {
        let verdict = self.world.turnstile.pass(self.node, Kind::Write, "transact").await;
        if verdict == Verdict::FailBefore {
            return (batch, Err(cut_off("a transaction")));
        }
        let (batch, committed) = self.world.database.transact(batch).await;
        budget_audit::look(&self.world).await;
        if verdict == Verdict::GoAndWait {
            self.world.turnstile.pass(self.node, Kind::Answer, "transact").await;
        }
        let answer =
            if verdict == Verdict::FailAfter { Err(cut_off("a commit's answer")) } else { committed };
        (batch, answer)
    }

    async fn any_to_reconsider(&self) -> Result<bool> {
        self.around("any_to_reconsider", self.world.database.any_to_reconsider()).await
    }
}

impl InterceptReads for NodeBackend {
    fn inner_reads(&self) -> &dyn StoreReads {
        self.world.reads()
    }

    async fn around<T: Send>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match self.world.turnstile.pass(self.node, Kind::Read, call).await {
            Verdict::FailBefore | Verdict::FailAfter => Err(cut_off(call)),
            Verdict::Go => answer.await,
            Verdict::GoAndWait => {
                let answer = answer.await;
                self.world.turnstile.pass(self.node, Kind::Answer, call).await;
                answer
            }
        }
    }

    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        let mut page = self.inner_reads().feed(after, limit).await?;
        if self.world.has(Bug::FeedGap) && page.len() > 2 && after.0 % 5 == 3 {
            page.remove(1);
        }
        Ok(page)
    }
}
