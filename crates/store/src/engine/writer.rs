//! The store over any backend: every write is a command in the one group, every read goes straight to the backend.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::factory::Advertised;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Artifact, DispatchSeq, Factory, FactoryId, FactoryState, FeedPos, Job, JobId, Leadership,
    NewEvent, NodeId, Offer, Term, Timestamp, TokenId,
};
use giga_ports::store::{
    ArtifactPut, Claim, Claimed, Divergence, HolderWrite, NewFactory, NewJob, NewOffer, PutArtifact, Reaped,
    Reconsidered, SettleMerge, SteerWrite, StoreStats, Submitted,
};
use giga_ports::{Store, StoreError, StoreReads};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::{Asked, Backend, Batch, Op, Pending, ops};
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

    pub(super) async fn ask<O: Op>(&self, op: O) -> Result<O::Reply, StoreError> {
        let (caller, answer) = oneshot::channel();
        self.group.send(Box::new(Asked { op, decided: None, caller })).await?;
        answer.await.map_err(|_| shutting_down())?
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

#[async_trait]
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

    async fn submit(&self, jobs: Vec<NewJob>, actor: Actor) -> Result<Vec<Submitted>, StoreError> {
        self.ask(ops::Submit { jobs, actor }).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        self.ask(ops::ClaimJob(claim)).await
    }

    async fn hold(&self, write: HolderWrite) -> Result<Job, StoreError> {
        self.ask(ops::Hold(write)).await
    }

    async fn steer(&self, write: SteerWrite) -> Result<Job, StoreError> {
        self.ask(ops::Steer(write)).await
    }

    async fn take_merge(&self, factory: FactoryId, lease: Duration) -> Result<Option<Job>, StoreError> {
        self.ask(ops::TakeMerge { factory, lease }).await
    }

    async fn settle_merge(&self, settled: SettleMerge) -> Result<Job, StoreError> {
        self.ask(ops::Settle(settled)).await
    }

    async fn expire_leases(&self, limit: usize) -> Result<Reaped, StoreError> {
        self.ask(ops::ExpireLeases { limit }).await
    }

    async fn reconsider(&self, limit: usize) -> Result<Reconsidered, StoreError> {
        // Where there is nothing to do nobody writes. Where the look fails the command decides, with its patience.
        if let Ok(false) = self.backend.any_to_reconsider().await {
            return Ok(Reconsidered::default());
        }
        let found = self.ask(ops::Reconsider { limit }).await?;
        // Somebody else has what was there, and may yet fail.
        let elsewhere = found.looked_at == 0;
        Ok(Reconsidered { more: found.more || elsewhere, ..found })
    }

    async fn put_artifact(&self, put: PutArtifact) -> Result<ArtifactPut, StoreError> {
        self.ask(ops::PutArtifact(put)).await
    }

    async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::DeleteArtifact { artifact, actor }).await
    }

    async fn retire(&self, before: Timestamp, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        self.ask(ops::Retire { before, jobs }).await
    }

    async fn enroll(&self, factory: NewFactory, actor: Actor) -> Result<Factory, StoreError> {
        self.ask(ops::Enroll { factory, actor }).await
    }

    async fn advertise(&self, factory: FactoryId, advertised: Advertised) -> Result<Factory, StoreError> {
        self.ask(ops::Advertise { factory, advertised }).await
    }

    async fn stream_lost(&self, factory: FactoryId) -> Result<(), StoreError> {
        self.ask(ops::StreamLost(factory)).await
    }

    async fn touch(&self, seen: Vec<(FactoryId, Timestamp)>) -> Result<(), StoreError> {
        self.ask(ops::Touch { seen }).await
    }

    async fn set_factory_state(
        &self,
        factory: FactoryId,
        state: FactoryState,
        actor: Actor,
    ) -> Result<Factory, StoreError> {
        self.ask(ops::SetFactoryState { factory, state, actor }).await
    }

    async fn deregister(&self, factory: FactoryId, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::Deregister { factory, actor }).await
    }

    async fn prune(&self, before: Timestamp, actor: Actor) -> Result<Vec<FactoryId>, StoreError> {
        self.ask(ops::Prune { before, actor }).await
    }

    async fn rotate_token(
        &self,
        factory: FactoryId,
        token: TokenRecord,
        grace: Duration,
        actor: Actor,
    ) -> Result<(), StoreError> {
        self.ask(ops::RotateToken { factory, token, grace, actor }).await
    }

    async fn revoke_factory_tokens(&self, factory: FactoryId, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::RevokeFactoryTokens { factory, actor }).await
    }

    async fn issue_token(&self, token: TokenRecord, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::IssueToken { token, actor }).await
    }

    async fn revoke_token(&self, token: TokenId, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::RevokeToken { token, actor }).await
    }

    async fn set_flag(&self, name: String, value: Value, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::SetFlag { name, value, actor }).await
    }

    async fn lead(&self, node: NodeId, lease: Duration) -> Result<Leadership, StoreError> {
        // Whoever only waits for the leader to fail looks, and neither writes nor locks. Where the look fails the command
        // decides, with its patience.
        if let Ok(Some(leader)) = self.backend.leader().await
            && leader.node != node
            && self.backend.now().await.is_ok_and(|now| leader.expires_at > now)
        {
            return Ok(leader);
        }
        self.ask(ops::Lead { node, lease }).await
    }

    async fn step_down(&self, node: NodeId, term: Term) -> Result<(), StoreError> {
        self.ask(ops::StepDown { node, term }).await
    }

    async fn offer(
        &self,
        term: Term,
        chosen: Vec<NewOffer>,
        pickup: Duration,
    ) -> Result<Vec<Option<Offer>>, StoreError> {
        self.ask(ops::MakeOffers { term, chosen, pickup }).await
    }

    async fn sent(&self, offers: Vec<(JobId, DispatchSeq)>) -> Result<(), StoreError> {
        self.ask(ops::Sent { offers }).await
    }

    async fn diverged(&self, divergences: Vec<Divergence>) -> Result<(), StoreError> {
        self.ask(ops::Diverged { divergences }).await
    }

    async fn note(&self, event: NewEvent, actor: Actor) -> Result<(), StoreError> {
        self.ask(ops::Note { event, actor }).await
    }
}
