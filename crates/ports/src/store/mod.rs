//! The store: the only truth. It speaks in use cases, not in rows.
//!
//! Every write is one atomic step that is durable when it is answered, is judged by the store's own clock, and is
//! safe to repeat: the same command after a lost reply finds its own effect and is answered the same way.
//! Implementations share transactions between callers where nobody can tell.

mod commands;
mod error;
mod governance;
mod reads;

pub use commands::*;
pub use error::StoreError;
pub use governance::*;
pub use reads::*;

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::factory::Advertised;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Artifact, DispatchSeq, Factory, FactoryId, FactoryState, FeedPos, Job, JobId, Leadership,
    NewEvent, NodeId, Offer, Term, Timestamp, TokenId,
};
use serde_json::Value;
use tokio::sync::watch;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
pub trait Store: Governance {
    /// Everything that only looks.
    fn read(&self) -> &dyn StoreReads;

    /// The newest feed position that this process committed. A hint to look, never the truth: other processes
    /// write too.
    fn head(&self) -> watch::Receiver<FeedPos>;

    fn stats(&self) -> StoreStats;

    /// All or none of the jobs. A job whose product and idempotency key are known is not made again. A parent must not
    /// be over, and nothing may come to wait for itself, through deps or through children.
    async fn submit(&self, jobs: Vec<NewJob>, actor: Actor) -> Result<Vec<Submitted>>;

    /// One compare-and-set: lease, epoch and run in the same transaction. Losing is not an error.
    async fn claim(&self, claim: Claim) -> Result<Claimed>;

    /// Every write by the holder of a lease: fenced by its epoch, all of its actions or none.
    async fn hold(&self, write: HolderWrite) -> Result<Job>;

    /// An operator's or a reviewer's word.
    async fn steer(&self, write: SteerWrite) -> Result<Job>;

    /// The first due order to merge that the factory may carry out: the job, with the order taken by it.
    async fn take_merge(&self, factory: FactoryId, lease: Duration) -> Result<Option<Job>>;

    /// What came of it. An order that is no longer the factory's is refused as `NotClaimable`.
    async fn settle_merge(&self, settled: SettleMerge) -> Result<Job>;

    /// Requeues jobs whose lease has ended, or whose holder was asked to let go in vain, longest due first.
    async fn expire_leases(&self, limit: usize) -> Result<Reaped>;

    /// Looks again at jobs because something that they hang on has moved: deps, children, a parent. At most so many.
    async fn reconsider(&self, limit: usize) -> Result<Reconsidered>;

    /// Points to a file of the holder's run: fenced by its epoch. A name that the run has used before gets the new
    /// file.
    async fn put_artifact(&self, put: PutArtifact) -> Result<ArtifactPut>;

    /// Points to it no more. One that is gone or was replaced is fine: it may be the same call again.
    async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<()>;

    /// Removes those of `jobs` that are [`StoreReads::retirable`], with all that belongs to them; says which.
    async fn retire(&self, before: Timestamp, jobs: Vec<JobId>) -> Result<Vec<JobId>>;

    /// A new factory with its first token. A known id is refused, except for a repetition of the same call.
    async fn enroll(&self, factory: NewFactory, actor: Actor) -> Result<Factory>;

    /// What the factory says it has. Appends an event only when something changed.
    async fn advertise(&self, factory: FactoryId, advertised: Advertised) -> Result<Factory>;

    /// Nobody listens at the end of its stream any more: it counts as polling until it says otherwise. No sign of life.
    async fn stream_lost(&self, factory: FactoryId) -> Result<()>;

    /// Signs of life of many factories in one write. Unknown ones are passed over.
    async fn touch(&self, seen: Vec<(FactoryId, Timestamp)>) -> Result<()>;

    async fn set_factory_state(
        &self,
        factory: FactoryId,
        state: FactoryState,
        actor: Actor,
    ) -> Result<Factory>;

    /// Forgets the factory and revokes its tokens. What it holds comes back when its leases end. One that is not
    /// there is fine: it may be the same call again.
    async fn deregister(&self, factory: FactoryId, actor: Actor) -> Result<()>;

    /// Deregisters every factory that was not seen since `before` and holds nothing.
    async fn prune(&self, before: Timestamp, actor: Actor) -> Result<Vec<FactoryId>>;

    /// Adds a token for the factory and lets its older ones end after `grace`.
    async fn rotate_token(
        &self,
        factory: FactoryId,
        token: TokenRecord,
        grace: Duration,
        actor: Actor,
    ) -> Result<()>;

    /// Ends every token of the factory at once.
    async fn revoke_factory_tokens(&self, factory: FactoryId, actor: Actor) -> Result<()>;

    async fn issue_token(&self, token: TokenRecord, actor: Actor) -> Result<()>;

    async fn revoke_token(&self, token: TokenId, actor: Actor) -> Result<()>;

    /// The caller has checked name and value against the flag's type. `null` unsets it.
    async fn set_flag(&self, name: String, value: Value, actor: Actor) -> Result<()>;

    /// Takes the lead where nobody has it, keeps it where this node has it, and says who has it. A new leader gets a
    /// new term.
    async fn lead(&self, node: NodeId, lease: Duration) -> Result<Leadership>;

    /// Gives the lead up, so that another need not wait for its end. Fine where the term is over anyway.
    async fn step_down(&self, node: NodeId, term: Term) -> Result<()>;

    /// Targets of the dispatcher, each by compare-and-set on what it saw, with its outbox row in the same transaction.
    /// In the order given: the offer, or `None` for a job that changed since. A term that is over is refused whole, as
    /// [`StoreError::StaleTerm`].
    async fn offer(&self, term: Term, chosen: Vec<NewOffer>, pickup: Duration) -> Result<Vec<Option<Offer>>>;

    /// The broker has these; their outbox rows can go. Those that are gone are fine.
    async fn sent(&self, offers: Vec<(JobId, DispatchSeq)>) -> Result<()>;

    /// Records what shadow mode would have done differently, in the history of the jobs that are not over yet.
    async fn diverged(&self, divergences: Vec<Divergence>) -> Result<()>;

    /// An event of the fleet: something was done that has no row of its own here.
    async fn note(&self, event: NewEvent, actor: Actor) -> Result<()>;
}
