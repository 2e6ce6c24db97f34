//! A store that can be told to fail, hang or panic, and that tells when it is asked.

mod governance;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::factory::Advertised;
use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{
    Actor, Artifact, ArtifactId, DispatchSeq, Event, EventSeq, Factory, FactoryId, FactoryState, FeedPos,
    Job, JobId, Leadership, NewEvent, NodeId, Offer, ProductId, RequestId, Run, Term, Timestamp, TokenId,
};
use giga_ports::store::{
    ArtifactPut, Claim, Claimed, Divergence, HolderWrite, JobFilter, JobText, NewFactory, NewJob, NewOffer,
    PutArtifact, QueueState, Reaped, Reconsidered, SettleMerge, SteerWrite, StoreStats, Submitted, Waiting,
};
use giga_ports::{Store, StoreError, StoreReads};
use serde_json::Value;
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
}

impl Probe {
    pub(crate) fn new(inner: Arc<dyn Store>, deaf: bool) -> Self {
        Self {
            inner,
            mood: AtomicU8::new(0),
            deaf: deaf.then(|| watch::Sender::new(FeedPos::ZERO)),
            queue_reads: watch::Sender::new(0),
            head_reads: watch::Sender::new(0),
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

#[async_trait]
impl StoreReads for Probe {
    async fn now(&self) -> Result<Timestamp> {
        self.inner.read().now().await
    }
    async fn ping(&self) -> Result<()> {
        self.feel().await?;
        self.inner.read().ping().await
    }
    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.inner.read().job(id).await
    }
    async fn jobs_by_id(&self, ids: &[JobId]) -> Result<Vec<Job>> {
        self.inner.read().jobs_by_id(ids).await
    }
    async fn job_text(&self, id: JobId) -> Result<Option<JobText>> {
        self.inner.read().job_text(id).await
    }
    async fn job_by_key(&self, product: &ProductId, key: &str) -> Result<Option<Job>> {
        self.inner.read().job_by_key(product, key).await
    }
    async fn list_jobs(&self, filter: &JobFilter, before: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        self.feel().await?;
        self.inner.read().list_jobs(filter, before, limit).await
    }
    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>> {
        self.inner.read().subtree(root, limit).await
    }
    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        self.inner.read().live_jobs(after, limit).await
    }
    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>> {
        self.inner.read().grant(factory, request).await
    }
    async fn runs(&self, job: JobId) -> Result<Vec<Run>> {
        self.inner.read().runs(job).await
    }
    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>> {
        self.inner.read().artifacts(job).await
    }
    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>> {
        self.inner.read().artifact(id).await
    }
    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>> {
        self.inner.read().expired_artifacts(before, limit).await
    }
    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>> {
        self.inner.read().retirable(before, limit).await
    }
    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>> {
        self.inner.read().job_events(job, after, limit).await
    }
    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        self.inner.read().feed(after, limit).await
    }
    async fn feed_head(&self) -> Result<FeedPos> {
        self.head_reads.send_modify(|count| *count += 1);
        self.inner.read().feed_head().await
    }
    async fn queue_state(&self, product: &ProductId) -> Result<QueueState> {
        let state = self.inner.read().queue_state(product).await;
        self.queue_reads.send_modify(|count| *count += 1);
        state
    }
    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>> {
        let states = self.inner.read().queue_states().await;
        self.queue_reads.send_modify(|count| *count += 1);
        states
    }
    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>> {
        self.inner.read().factory(id).await
    }
    async fn factories(&self) -> Result<Vec<Factory>> {
        self.inner.read().factories().await
    }
    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>> {
        self.inner.read().token_by_hash(hash).await
    }
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.inner.read().tokens().await
    }
    async fn outbox(&self, limit: usize) -> Result<Vec<Waiting>> {
        self.inner.read().outbox(limit).await
    }
    async fn leader(&self) -> Result<Option<Leadership>> {
        self.inner.read().leader().await
    }
    async fn flags(&self) -> Result<Vec<(String, Value)>> {
        self.feel().await?;
        self.inner.read().flags().await
    }
}

#[async_trait]
impl Store for Probe {
    fn read(&self) -> &dyn StoreReads {
        self
    }
    fn head(&self) -> watch::Receiver<FeedPos> {
        self.deaf.as_ref().map_or_else(|| self.inner.head(), watch::Sender::subscribe)
    }
    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }
    async fn submit(&self, jobs: Vec<NewJob>, actor: Actor) -> Result<Vec<Submitted>> {
        self.inner.submit(jobs, actor).await
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.inner.claim(claim).await
    }
    async fn hold(&self, write: HolderWrite) -> Result<Job> {
        self.inner.hold(write).await
    }
    async fn steer(&self, write: SteerWrite) -> Result<Job> {
        self.inner.steer(write).await
    }
    async fn take_merge(&self, factory: FactoryId, lease: Duration) -> Result<Option<Job>> {
        self.inner.take_merge(factory, lease).await
    }
    async fn settle_merge(&self, settled: SettleMerge) -> Result<Job> {
        self.inner.settle_merge(settled).await
    }
    async fn expire_leases(&self, limit: usize) -> Result<Reaped> {
        self.inner.expire_leases(limit).await
    }
    async fn reconsider(&self, limit: usize) -> Result<Reconsidered> {
        self.inner.reconsider(limit).await
    }
    async fn put_artifact(&self, put: PutArtifact) -> Result<ArtifactPut> {
        self.inner.put_artifact(put).await
    }
    async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<()> {
        self.inner.delete_artifact(artifact, actor).await
    }
    async fn retire(&self, before: Timestamp, jobs: Vec<JobId>) -> Result<Vec<JobId>> {
        self.inner.retire(before, jobs).await
    }
    async fn enroll(&self, factory: NewFactory, actor: Actor) -> Result<Factory> {
        self.inner.enroll(factory, actor).await
    }
    async fn advertise(&self, factory: FactoryId, advertised: Advertised) -> Result<Factory> {
        self.inner.advertise(factory, advertised).await
    }
    async fn stream_lost(&self, factory: FactoryId) -> Result<()> {
        self.inner.stream_lost(factory).await
    }
    async fn touch(&self, seen: Vec<(FactoryId, Timestamp)>) -> Result<()> {
        self.inner.touch(seen).await
    }
    async fn set_factory_state(&self, id: FactoryId, state: FactoryState, actor: Actor) -> Result<Factory> {
        self.inner.set_factory_state(id, state, actor).await
    }
    async fn deregister(&self, factory: FactoryId, actor: Actor) -> Result<()> {
        self.inner.deregister(factory, actor).await
    }
    async fn prune(&self, before: Timestamp, actor: Actor) -> Result<Vec<FactoryId>> {
        self.inner.prune(before, actor).await
    }
    async fn rotate_token(
        &self,
        factory: FactoryId,
        token: TokenRecord,
        grace: Duration,
        actor: Actor,
    ) -> Result<()> {
        self.inner.rotate_token(factory, token, grace, actor).await
    }
    async fn revoke_factory_tokens(&self, factory: FactoryId, actor: Actor) -> Result<()> {
        self.inner.revoke_factory_tokens(factory, actor).await
    }
    async fn issue_token(&self, token: TokenRecord, actor: Actor) -> Result<()> {
        self.inner.issue_token(token, actor).await
    }
    async fn revoke_token(&self, token: TokenId, actor: Actor) -> Result<()> {
        self.inner.revoke_token(token, actor).await
    }
    async fn set_flag(&self, name: String, value: Value, actor: Actor) -> Result<()> {
        self.inner.set_flag(name, value, actor).await
    }
    async fn lead(&self, node: NodeId, lease: Duration) -> Result<Leadership> {
        self.inner.lead(node, lease).await
    }
    async fn step_down(&self, node: NodeId, term: Term) -> Result<()> {
        self.inner.step_down(node, term).await
    }
    async fn offer(&self, term: Term, chosen: Vec<NewOffer>, pickup: Duration) -> Result<Vec<Option<Offer>>> {
        self.inner.offer(term, chosen, pickup).await
    }
    async fn sent(&self, offers: Vec<(JobId, DispatchSeq)>) -> Result<()> {
        self.inner.sent(offers).await
    }
    async fn diverged(&self, divergences: Vec<Divergence>) -> Result<()> {
        self.inner.diverged(divergences).await
    }
    async fn note(&self, event: NewEvent, actor: Actor) -> Result<()> {
        self.inner.note(event, actor).await
    }
}
