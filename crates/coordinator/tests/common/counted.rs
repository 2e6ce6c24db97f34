//! A store that counts what it is asked, by name.

#[path = "counted/governance.rs"]
mod governance;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
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

pub(crate) struct Counted {
    inner: Arc<dyn Store>,
    asked: Mutex<BTreeMap<&'static str, u32>>,
    to_fail: Mutex<Vec<&'static str>>,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, asked: Mutex::default(), to_fail: Mutex::default() }
    }

    fn note(&self, name: &'static str) {
        *self.asked.lock().unwrap().entry(name).or_default() += 1;
    }

    /// The next call of that name that looks here is answered as if the database were away.
    #[allow(dead_code, reason = "not every test binary breaks things")]
    pub(crate) fn fail_next(&self, name: &'static str) {
        self.to_fail.lock().unwrap().push(name);
    }

    #[allow(dead_code, reason = "not every test binary breaks things")]
    pub(crate) fn is_to_fail(&self, name: &str) -> bool {
        self.to_fail.lock().unwrap().contains(&name)
    }

    fn check(&self, name: &str) -> Result<()> {
        let mut to_fail = self.to_fail.lock().unwrap();
        let Some(place) = to_fail.iter().position(|known| *known == name) else { return Ok(()) };
        to_fail.remove(place);
        Err(StoreError::Unavailable { reason: "a test said so".to_owned(), source: None })
    }

    /// Since the last time.
    pub(crate) fn taken(&self) -> BTreeMap<&'static str, u32> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

#[async_trait]
impl StoreReads for Counted {
    async fn now(&self) -> Result<Timestamp> {
        self.note("now");
        self.inner.read().now().await
    }
    async fn ping(&self) -> Result<()> {
        self.note("ping");
        self.inner.read().ping().await
    }
    async fn job(&self, id: JobId) -> Result<Option<Job>> {
        self.note("job");
        self.inner.read().job(id).await
    }
    async fn jobs_by_id(&self, ids: &[JobId]) -> Result<Vec<Job>> {
        self.note("jobs_by_id");
        self.inner.read().jobs_by_id(ids).await
    }
    async fn job_text(&self, id: JobId) -> Result<Option<JobText>> {
        self.note("job_text");
        self.inner.read().job_text(id).await
    }
    async fn job_by_key(&self, product: &ProductId, key: &str) -> Result<Option<Job>> {
        self.note("job_by_key");
        self.inner.read().job_by_key(product, key).await
    }
    async fn list_jobs(&self, filter: &JobFilter, before: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        self.note("list_jobs");
        self.inner.read().list_jobs(filter, before, limit).await
    }
    async fn subtree(&self, root: JobId, limit: usize) -> Result<Vec<Job>> {
        self.note("subtree");
        self.inner.read().subtree(root, limit).await
    }
    async fn live_jobs(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Job>> {
        self.note("live_jobs");
        self.inner.read().live_jobs(after, limit).await
    }
    async fn grant(&self, factory: &FactoryId, request: &RequestId) -> Result<Option<Job>> {
        self.note("grant");
        self.inner.read().grant(factory, request).await
    }
    async fn runs(&self, job: JobId) -> Result<Vec<Run>> {
        self.note("runs");
        self.inner.read().runs(job).await
    }
    async fn artifacts(&self, job: JobId) -> Result<Vec<Artifact>> {
        self.note("artifacts");
        self.inner.read().artifacts(job).await
    }
    async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>> {
        self.note("artifact");
        self.inner.read().artifact(id).await
    }
    async fn expired_artifacts(&self, before: Timestamp, limit: usize) -> Result<Vec<Artifact>> {
        self.note("expired_artifacts");
        self.inner.read().expired_artifacts(before, limit).await
    }
    async fn retirable(&self, before: Timestamp, limit: usize) -> Result<Vec<JobId>> {
        self.note("retirable");
        self.inner.read().retirable(before, limit).await
    }
    async fn job_events(&self, job: JobId, after: EventSeq, limit: usize) -> Result<Vec<Event>> {
        self.note("job_events");
        self.inner.read().job_events(job, after, limit).await
    }
    async fn feed(&self, after: FeedPos, limit: usize) -> Result<Vec<Event>> {
        self.note("feed");
        self.inner.read().feed(after, limit).await
    }
    async fn feed_head(&self) -> Result<FeedPos> {
        self.note("feed_head");
        self.inner.read().feed_head().await
    }
    async fn queue_state(&self, product: &ProductId) -> Result<QueueState> {
        self.note("queue_state");
        self.inner.read().queue_state(product).await
    }
    async fn queue_states(&self) -> Result<Vec<(ProductId, QueueState)>> {
        self.note("queue_states");
        self.inner.read().queue_states().await
    }
    async fn factory(&self, id: &FactoryId) -> Result<Option<Factory>> {
        self.note("factory");
        self.inner.read().factory(id).await
    }
    async fn factories(&self) -> Result<Vec<Factory>> {
        self.note("factories");
        self.inner.read().factories().await
    }
    async fn token_by_hash(&self, hash: &TokenHash) -> Result<Option<TokenRecord>> {
        self.note("token_by_hash");
        self.inner.read().token_by_hash(hash).await
    }
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.note("tokens");
        self.inner.read().tokens().await
    }
    async fn outbox(&self, limit: usize) -> Result<Vec<Waiting>> {
        self.note("outbox");
        self.inner.read().outbox(limit).await
    }
    async fn leader(&self) -> Result<Option<Leadership>> {
        self.note("leader");
        self.inner.read().leader().await
    }
    async fn flags(&self) -> Result<Vec<(String, Value)>> {
        self.note("flags");
        self.inner.read().flags().await
    }
}

#[async_trait]
impl Store for Counted {
    fn read(&self) -> &dyn StoreReads {
        self
    }
    fn head(&self) -> watch::Receiver<FeedPos> {
        self.inner.head()
    }
    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }
    async fn submit(&self, jobs: Vec<NewJob>, actor: Actor) -> Result<Vec<Submitted>> {
        self.note("submit");
        self.inner.submit(jobs, actor).await
    }
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.note("claim");
        self.inner.claim(claim).await
    }
    async fn hold(&self, write: HolderWrite) -> Result<Job> {
        self.note("hold");
        self.inner.hold(write).await
    }
    async fn steer(&self, write: SteerWrite) -> Result<Job> {
        self.note("steer");
        self.inner.steer(write).await
    }
    async fn take_merge(&self, factory: FactoryId, lease: Duration) -> Result<Option<Job>> {
        self.note("take_merge");
        self.inner.take_merge(factory, lease).await
    }
    async fn settle_merge(&self, settled: SettleMerge) -> Result<Job> {
        self.note("settle_merge");
        self.inner.settle_merge(settled).await
    }
    async fn expire_leases(&self, limit: usize) -> Result<Reaped> {
        self.note("expire_leases");
        self.inner.expire_leases(limit).await
    }
    async fn reconsider(&self, limit: usize) -> Result<Reconsidered> {
        self.note("reconsider");
        self.inner.reconsider(limit).await
    }
    async fn put_artifact(&self, put: PutArtifact) -> Result<ArtifactPut> {
        self.note("put_artifact");
        self.inner.put_artifact(put).await
    }
    async fn delete_artifact(&self, artifact: Artifact, actor: Actor) -> Result<()> {
        self.note("delete_artifact");
        self.inner.delete_artifact(artifact, actor).await
    }
    async fn retire(&self, before: Timestamp, jobs: Vec<JobId>) -> Result<Vec<JobId>> {
        self.note("retire");
        self.inner.retire(before, jobs).await
    }
    async fn enroll(&self, factory: NewFactory, actor: Actor) -> Result<Factory> {
        self.note("enroll");
        self.inner.enroll(factory, actor).await
    }
    async fn advertise(&self, factory: FactoryId, advertised: Advertised) -> Result<Factory> {
        self.note("advertise");
        self.inner.advertise(factory, advertised).await
    }
    async fn stream_lost(&self, factory: FactoryId) -> Result<()> {
        self.note("stream_lost");
        self.inner.stream_lost(factory).await
    }
    async fn touch(&self, seen: Vec<(FactoryId, Timestamp)>) -> Result<()> {
        self.note("touch");
        self.inner.touch(seen).await
    }
    async fn set_factory_state(&self, id: FactoryId, state: FactoryState, actor: Actor) -> Result<Factory> {
        self.note("set_factory_state");
        self.inner.set_factory_state(id, state, actor).await
    }
    async fn deregister(&self, factory: FactoryId, actor: Actor) -> Result<()> {
        self.note("deregister");
        self.inner.deregister(factory, actor).await
    }
    async fn prune(&self, before: Timestamp, actor: Actor) -> Result<Vec<FactoryId>> {
        self.note("prune");
        self.inner.prune(before, actor).await
    }
    async fn rotate_token(
        &self,
        factory: FactoryId,
        token: TokenRecord,
        grace: Duration,
        actor: Actor,
    ) -> Result<()> {
        self.note("rotate_token");
        self.inner.rotate_token(factory, token, grace, actor).await
    }
    async fn revoke_factory_tokens(&self, factory: FactoryId, actor: Actor) -> Result<()> {
        self.note("revoke_factory_tokens");
        self.inner.revoke_factory_tokens(factory, actor).await
    }
    async fn issue_token(&self, token: TokenRecord, actor: Actor) -> Result<()> {
        self.note("issue_token");
        self.inner.issue_token(token, actor).await
    }
    async fn revoke_token(&self, token: TokenId, actor: Actor) -> Result<()> {
        self.note("revoke_token");
        self.inner.revoke_token(token, actor).await
    }
    async fn set_flag(&self, name: String, value: Value, actor: Actor) -> Result<()> {
        self.note("set_flag");
        self.inner.set_flag(name, value, actor).await
    }
    async fn lead(&self, node: NodeId, lease: Duration) -> Result<Leadership> {
        self.note("lead");
        self.inner.lead(node, lease).await
    }
    async fn step_down(&self, node: NodeId, term: Term) -> Result<()> {
        self.note("step_down");
        self.inner.step_down(node, term).await
    }
    async fn offer(&self, term: Term, chosen: Vec<NewOffer>, pickup: Duration) -> Result<Vec<Option<Offer>>> {
        self.note("offer");
        self.inner.offer(term, chosen, pickup).await
    }
    async fn sent(&self, offers: Vec<(JobId, DispatchSeq)>) -> Result<()> {
        self.note("sent");
        self.inner.sent(offers).await
    }
    async fn diverged(&self, divergences: Vec<Divergence>) -> Result<()> {
        self.note("diverged");
        self.inner.diverged(divergences).await
    }
    async fn note(&self, event: NewEvent, actor: Actor) -> Result<()> {
        self.note("note");
        self.inner.note(event, actor).await
    }
}
