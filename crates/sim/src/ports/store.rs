//! One coordinator's store: the product's own batch engine, with every answer written down for the checkers.

mod governance;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use giga_domain::factory::Advertised;
use giga_domain::token::TokenRecord;
use giga_domain::{
    Actor, Artifact, BudgetChange, DispatchSeq, Epoch, EventSeq, Factory, FactoryId, FactoryState,
    FailReason, Failure, FeedPos, Holder, HolderAction, Job, JobId, Leadership, NewEvent, NodeId, Offer,
    Refusal, Rev, State, Term, Timestamp, TokenId, Usd,
};
use giga_ports::store::{
    ArtifactPut, BudgetWrite, Claim, Claimed, Divergence, HolderWrite, NewFactory, NewJob, NewOffer,
    PutArtifact, Reaped, Reconsidered, SettleMerge, SteerWrite, StoreStats, Submitted,
};
use giga_ports::{Clock, Governance, Store, StoreError, StoreReads};
use giga_store::BatchStore;
use serde_json::Value;
use tokio::sync::watch;

use super::NodeBackend;
use crate::bug::Bug;
use crate::gate::Node;
use crate::history::{Record, Word};
use crate::world::World;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Debug)]
pub(crate) struct NodeStore {
    pub node: Node,
    pub world: Arc<World>,
    pub inner: Arc<BatchStore<NodeBackend>>,
    /// What planted bugs count by.
    calls: AtomicU64,
}

impl NodeStore {
    pub(crate) fn new(node: Node, world: Arc<World>, inner: BatchStore<NodeBackend>) -> Self {
        Self { node, world, inner: Arc::new(inner), calls: AtomicU64::new(0) }
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.world.trace.note(|| format!("n{} {}", self.node.0, line()));
    }

    /// True for one call in `n`, where the bug is planted.
    fn every(&self, n: u64, bug: Bug) -> bool {
        self.world.has(bug) && self.calls.fetch_add(1, Ordering::Relaxed) % n == n - 1
    }

    /// Carries a call to its end also when its caller goes away in the meantime, as the writer does with whatever it was
    /// given, so that no answer is missing from the history.
    async fn to_the_end<T, Fut>(
        &self,
        call: impl FnOnce(Arc<BatchStore<NodeBackend>>) -> Fut,
        record: impl FnOnce(&T) -> Option<Record> + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        let (world, call) = (self.world.clone(), call(self.inner.clone()));
        let task = tokio::spawn(async move {
            let answer = call.await;
            if let Some(record) = answer.as_ref().ok().and_then(record) {
                world.history.add(record);
            }
            answer
        });
        task.await.map_err(StoreError::broken)?
    }

    /// The job as it is now, past every gate: only for bugs.
    async fn peek(&self, job: JobId) -> Option<Job> {
        self.world.database.job(job).await.ok().flatten()
    }

    /// Only for a bug.
    async fn charge_again(&self, job: &Job, told: Usd) {
        let request = format!("bug-{}-{}", job.id, job.epoch);
        let write = BudgetWrite {
            product: job.product.clone(),
            change: BudgetChange::Correct { usd: told, reason: "bug".to_owned() },
            if_rev: None,
            request: request.parse().expect("ids, digits and dashes make a request id"),
            actor: Actor::system("bug"),
        };
        let _ = self.inner.change_budget(write).await;
    }

    /// A job that looks as if it had been kept.
    fn pretended(&self, new: &NewJob) -> Job {
        let now = self.world.clock.now();
        Job {
            id: new.id,
            product: new.product.clone(),
            spec: new.spec.clone(),
            state: State::Queued { since: now, ready_at: now, target: None },
            rev: Rev(1),
            epoch: Epoch::ZERO,
            last_event: EventSeq(1),
            attempts: 0,
            dispatch_seq: DispatchSeq::ZERO,
            checkpoint: None,
            settled: None,
            created_at: now,
            updated_at: now,
            enqueued_at: now,
            last_factory: None,
            last_steer: None,
            result: None,
            merge: None,
            evictions: 0,
            gate: None,
            reviews: Vec::new(),
        }
    }
}

/// What the holder says to have spent so far.
fn told_by(actions: &[HolderAction]) -> Usd {
    let told = |action: &HolderAction| match action {
        HolderAction::Spend(spend) => spend.usd,
        HolderAction::Report(report) => report.cost.unwrap_or_default(),
        _ => Usd::ZERO,
    };
    actions.iter().map(told).max().unwrap_or_default()
}

fn word_of(actions: &[HolderAction]) -> Word {
    match actions.last() {
        Some(HolderAction::Report(_)) => Word::Report,
        Some(HolderAction::Fail { retryable: true, .. }) => Word::FailForNow,
        Some(HolderAction::Fail { retryable: false, .. }) => Word::FailForGood,
        Some(HolderAction::Release { .. }) => Word::Release,
        _ => Word::On,
    }
}

#[async_trait]
impl Store for NodeStore {
    fn read(&self) -> &dyn StoreReads {
        self.inner.read()
    }

    fn head(&self) -> watch::Receiver<FeedPos> {
        self.inner.head()
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }

    async fn submit(&self, mut jobs: Vec<NewJob>, actor: Actor) -> Result<Vec<Submitted>> {
        for new in &mut jobs {
            self.world.history.add(Record::Asked { job: new.id, cap: new.spec.budget.usd });
            if self.world.has(Bug::ReserveForgotten) {
                new.spec.budget.usd = None;
            }
        }
        if self.every(5, Bug::AckBeforeDurable) {
            return Ok(jobs.iter().map(|new| Submitted::Created(self.pretended(new))).collect());
        }
        if self.every(3, Bug::KeyForgotten) {
            for new in &mut jobs {
                new.spec.idempotency_key = None;
            }
        }
        let answer = self.inner.submit(jobs, actor).await;
        self.note(|| format!("submit -> {}", brief(&answer, |jobs| format!("{}", jobs[0].job().id))));
        answer
    }

    async fn claim(&self, mut claim: Claim) -> Result<Claimed> {
        let (factory, request) = (claim.factory.clone(), claim.request.clone());
        if self.world.has(Bug::RequestForgotten) {
            let call = self.calls.fetch_add(1, Ordering::Relaxed);
            let another = format!("n{}-{call}", self.node.0);
            claim.request = another.parse().expect("letters, digits and dashes make a request id");
        }
        let asked = claim.job;
        let (claimer, asked_by) = (factory.clone(), request.clone());
        let granted = |claimed: &Claimed| match claimed {
            Claimed::Granted(job) => {
                Some(Record::Granted { factory: claimer, request: asked_by, job: job.into() })
            }
            Claimed::Lost(_) => None,
        };
        let mut answer = self.to_the_end(|inner| async move { inner.claim(claim).await }, granted).await;
        if self.world.has(Bug::DoubleGrant)
            && matches!(answer, Ok(Claimed::Lost(_)))
            && let Some(held) = self.peek(asked).await.filter(|job| job.lease().is_some())
        {
            self.world.history.add(Record::Granted {
                factory: factory.clone(),
                request,
                job: (&held).into(),
            });
            answer = Ok(Claimed::Granted(held));
        }
        self.note(|| {
            let told = brief(&answer, |claimed| match claimed {
                Claimed::Granted(job) => format!("granted {} at epoch {}", job.id, job.epoch),
                Claimed::Lost(lost) => format!("{lost:?}"),
            });
            format!("claim {asked} for {factory} -> {told}")
        });
        answer
    }

    async fn hold(&self, mut write: HolderWrite) -> Result<Job> {
        let HolderWrite { job: id, holder: Holder { factory, epoch }, .. } = write.clone();
        let word = word_of(&write.actions);
        let said = self.world.trace.is_kept().then(|| format!("{:?}", write.actions));
        if self.world.has(Bug::FenceOff)
            && let Some(now) = self.peek(id).await
            && let Some(lease) = now.lease()
        {
            write.holder = Holder { factory: lease.factory.clone(), epoch: now.epoch };
        }
        if self.world.has(Bug::AttemptsForgotten) && word == Word::FailForNow {
            write.actions = vec![HolderAction::Release { checkpoint: None }];
        }
        if self.world.has(Bug::EvictionCostsAttempt)
            && word == Word::Release
            && let Some(now) = self.peek(id).await
            && now.lease().is_some_and(|lease| lease.evict.is_some())
        {
            let failure = Failure { reason: FailReason::Infrastructure, detail: None };
            write.actions = vec![HolderAction::Fail { failure, retryable: true }];
        }
        let told = told_by(&write.actions);
        if !told.is_zero() {
            self.world.history.add(Record::Telling { job: id, epoch, told });
        }
        let writer = factory.clone();
        let held =
            move |job: &Job| Some(Record::Held { factory: writer, epoch, word, told, after: job.into() });
        let answer = self.to_the_end(|inner| async move { inner.hold(write).await }, held).await;
        if matches!(answer, Err(StoreError::Refused(Refusal::Fenced { .. }))) {
            self.world.history.add_fenced();
        }
        if let Ok(job) = &answer
            && word == Word::Report
            && !told.is_zero()
            && self.every(2, Bug::ChargedTwice)
        {
            self.charge_again(job, told).await;
        }
        self.note(|| {
            let told = brief(&answer, |job| format!("{} at epoch {}", job.stage(), job.epoch));
            let said = said.unwrap_or_default();
            format!("{factory} writes {id} at epoch {epoch}: {said} -> {told}")
        });
        answer
    }

    async fn steer(&self, write: SteerWrite) -> Result<Job> {
        let told = self.world.trace.is_kept().then(|| format!("{} {:?}", write.job, write.command));
        let answer = self.inner.steer(write).await;
        self.note(|| {
            let told = told.unwrap_or_default();
            format!("steer {told} -> {}", brief(&answer, |job| job.stage().to_string()))
        });
        answer
    }

    async fn take_merge(&self, factory: FactoryId, lease: Duration) -> Result<Option<Job>> {
        self.inner.take_merge(factory, lease).await
    }

    async fn settle_merge(&self, settled: SettleMerge) -> Result<Job> {
        self.inner.settle_merge(settled).await
    }

    async fn expire_leases(&self, limit: usize) -> Result<Reaped> {
        if self.world.has(Bug::NoReaper) {
            return Ok(Reaped::default());
        }
        let answer = self.inner.expire_leases(limit).await;
        if answer.as_ref().map_or(true, |reaped| !reaped.jobs.is_empty()) {
            self.note(|| format!("reap -> {}", brief(&answer, |reaped| format!("{:?}", reaped.jobs))));
        }
        answer
    }

    async fn reconsider(&self, limit: usize) -> Result<Reconsidered> {
        if self.world.has(Bug::ReconsiderLost) {
            return Ok(Reconsidered::default());
        }
        let answer = self.inner.reconsider(limit).await;
        if answer.as_ref().map_or(true, |swept| !swept.moved.is_empty()) {
            self.note(|| format!("reconsider -> {}", brief(&answer, |swept| format!("{:?}", swept.moved))));
        }
        answer
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

    async fn advertise(&self, factory: FactoryId, mut advertised: Advertised) -> Result<Factory> {
        if self.world.has(Bug::TooManySeats) {
            advertised.seat_limit += 3;
        }
        self.inner.advertise(factory, advertised).await
    }

    async fn stream_lost(&self, factory: FactoryId) -> Result<()> {
        self.inner.stream_lost(factory).await
    }

    async fn touch(&self, seen: Vec<(FactoryId, Timestamp)>) -> Result<()> {
        self.inner.touch(seen).await
    }

    async fn set_factory_state(
        &self,
        factory: FactoryId,
        state: FactoryState,
        actor: Actor,
    ) -> Result<Factory> {
        self.inner.set_factory_state(factory, state, actor).await
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
        let answer = self.inner.lead(node, lease).await;
        self.note(|| {
            format!("lead -> {}", brief(&answer, |led| format!("{} in term {}", led.node, led.term)))
        });
        answer
    }

    async fn step_down(&self, node: NodeId, term: Term) -> Result<()> {
        self.note(|| format!("steps down from term {term}"));
        self.inner.step_down(node, term).await
    }

    async fn offer(&self, term: Term, chosen: Vec<NewOffer>, pickup: Duration) -> Result<Vec<Option<Offer>>> {
        let offered = move |offers: &Vec<Option<Offer>>| {
            let offers = offers.iter().flatten().map(|offer| (offer.job_id, offer.dispatch_seq)).collect();
            Some(Record::Offered { term, offers })
        };
        let again = self.world.has(Bug::OldTermAccepted).then(|| self.world.clone());
        let call = |inner: Arc<BatchStore<NodeBackend>>| async move {
            let answer = inner.offer(term, chosen.clone(), pickup).await;
            let (Err(StoreError::StaleTerm { current, .. }), Some(world)) = (&answer, again) else {
                return answer;
            };
            let mut renewed = chosen;
            for new in &mut renewed {
                if let Ok(Some(job)) = world.database.job(new.job).await {
                    new.rev = job.rev;
                }
            }
            inner.offer(*current, renewed, pickup).await
        };
        let answer = self.to_the_end(call, offered).await;
        if matches!(answer, Err(StoreError::StaleTerm { .. })) {
            self.world.history.add_stale_term();
        }
        self.note(|| {
            let one = |offer: &Offer| format!("{} to {}", offer.message_id(), offer.target_factory_id);
            let told = brief(&answer, |offers| {
                offers
                    .iter()
                    .map(|offer| offer.as_ref().map_or("-".into(), one))
                    .collect::<Vec<_>>()
                    .join(", ")
            });
            format!("offer in term {term} -> {told}")
        });
        answer
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

fn brief<T>(answer: &Result<T>, show: impl FnOnce(&T) -> String) -> String {
    match answer {
        Ok(answer) => show(answer),
        Err(error) => format!("error: {error}"),
    }
}
