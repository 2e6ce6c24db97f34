//! What a case works with: a fresh store, its clock, and short words for what most cases have to do first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::job::{ReviewGate, ShipMode};
use giga_domain::token::{Permission, Role, TokenRecord, TokenSecret};
use giga_domain::{
    Actor, CapabilitySet, Command, Event, EventSeq, FactoryId, FeedPos, Holder, HolderAction, Job, JobId,
    JobSpec, OperatorAction, ProductId, RequestId, Run, RunReport, Stage, Timestamp, TokenId, TreeLimits,
};
use giga_ports::store::{Advertise, Claim, Claimed, Enroll, Hold, NewJob, QueueState, Retire, Steer, Submit};
use giga_ports::{Clock, Randomness, Store, StoreError};
use serde_json::json;

use super::StoreFixture;
use crate::{ManualClock, SeededRandomness};

/// How long leases last where a case does not care.
pub(super) const LEASE: Duration = Duration::from_mins(1);

pub struct World {
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    fixture: Box<dyn StoreFixture>,
    random: SeededRandomness,
    named: AtomicU64,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// Everything that a refused write must leave alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub job: Option<Job>,
    pub runs: Vec<Run>,
    pub events: Vec<Event>,
    pub queue: Vec<(ProductId, QueueState)>,
    pub feed_head: FeedPos,
}

impl World {
    pub async fn open(fixture: impl StoreFixture + 'static) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = fixture.open(clock.clone()).await;
        let random = SeededRandomness::default();
        Self { store, clock, fixture: Box::new(fixture), random, named: AtomicU64::new(0) }
    }

    /// A second handle where the store has processes, so that a race is one between processes too.
    pub(super) async fn handles(&self) -> Vec<Arc<dyn Store>> {
        let mut handles = vec![self.store.clone()];
        handles.extend(self.fixture.reopen(self.clock.clone()).await);
        handles
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn number(&self) -> u64 {
        self.named.fetch_add(1, Ordering::Relaxed)
    }

    /// A job to be made, default in everything that `change` leaves alone. Ids rise with every call.
    pub(super) fn new_job(&self, change: impl FnOnce(&mut JobSpec)) -> NewJob {
        let number = self.number();
        let name = format!("job-{number}");
        let mut spec: JobSpec = serde_json::from_value(json!({ "name": name })).unwrap();
        change(&mut spec);
        let id = JobId::from_parts(self.now(), u128::from(number));
        let manifest = json!({ "name": spec.name });
        let body = format!("body of {number}");
        NewJob {
            id,
            product: product("demo"),
            spec,
            manifest,
            fingerprint: body.clone(),
            body,
            persona: None,
            under: None,
            tree: TreeLimits::default(),
        }
    }

    pub(super) async fn submit(&self, new: NewJob) -> Job {
        self.store.submit(Submit { jobs: vec![new], actor: user() }).await.unwrap().remove(0).job().clone()
    }

    /// A job in the queue, or wherever `change` sends it.
    pub(super) async fn submitted(&self, change: impl FnOnce(&mut JobSpec)) -> Job {
        self.submit(self.new_job(change)).await
    }

    /// An enrolled factory with many seats, all products and the common capabilities.
    pub(super) async fn factory(&self, name: &str) -> FactoryId {
        self.factory_with(name, FactoryScope::default(), 10_000).await
    }

    pub(super) async fn factory_with(&self, name: &str, scope: FactoryScope, seat_limit: u32) -> FactoryId {
        let id = factory(name);
        let token = self.factory_token(name);
        let new = Enroll { id: id.clone(), scope, token, actor: user() };
        self.store.enroll(new).await.unwrap();
        self.store
            .advertise(Advertise { factory: id.clone(), advertised: advertised(seat_limit) })
            .await
            .unwrap();
        id
    }

    pub(super) fn factory_token(&self, name: &str) -> TokenRecord {
        self.token(Permission::Factory { factory: factory(name), scope: FactoryScope::default() })
    }

    pub(super) fn user_token(&self) -> TokenRecord {
        self.token(Permission::User { role: Role::Operator, products: vec![product("demo")] })
    }

    fn token(&self, permission: Permission) -> TokenRecord {
        let id: TokenId = format!("token-{}", self.number()).parse().unwrap();
        let hash = TokenSecret::from_random("user", self.random.bytes()).hash();
        let label = format!("label of {id}");
        TokenRecord {
            id,
            hash,
            permission,
            label,
            created_at: Timestamp::ZERO,
            expires_at: None,
            revoked_at: None,
        }
    }

    pub(super) fn claim_of(&self, job: JobId, factory: &FactoryId) -> Claim {
        Claim {
            job,
            rev: None,
            dispatch_seq: None,
            factory: factory.clone(),
            request: request(self.number()),
            lease: LEASE,
        }
    }

    pub(super) async fn claim(&self, job: JobId, factory: &FactoryId) -> Claimed {
        self.store.claim(self.claim_of(job, factory)).await.unwrap()
    }

    pub(super) async fn granted(&self, job: JobId, factory: &FactoryId) -> Job {
        granted(self.claim(job, factory).await)
    }

    /// A fresh job that the factory has claimed.
    pub(super) async fn assigned(
        &self,
        factory: &FactoryId,
        change: impl FnOnce(&mut JobSpec),
    ) -> (Job, Holder) {
        let job = self.submitted(change).await;
        let job = self.granted(job.id, factory).await;
        let holder = holder(&job);
        (job, holder)
    }

    /// A fresh job that the factory has claimed and started.
    pub(super) async fn building(
        &self,
        factory: &FactoryId,
        change: impl FnOnce(&mut JobSpec),
    ) -> (Job, Holder) {
        let (job, holder) = self.assigned(factory, change).await;
        let job = self.hold(job.id, &holder, [HolderAction::Start]).await.unwrap();
        (job, holder)
    }

    /// A fresh job in the stage, brought there by the ordinary way.
    pub(super) async fn in_stage(&self, stage: Stage, factory: &FactoryId) -> Job {
        let reported = [HolderAction::Start, HolderAction::Report(RunReport::default())];
        match stage {
            Stage::Queued => self.submitted(|_| ()).await,
            Stage::Blocked => {
                let dep = self.submitted(|_| ()).await.id;
                self.submitted(|spec| spec.deps = vec![dep]).await
            }
            Stage::Assigned => self.assigned(factory, |_| ()).await.0,
            Stage::Building => self.building(factory, |_| ()).await.0,
            Stage::Review => {
                let gate = ReviewGate { quorum: 1, reviewers: Vec::new() };
                let (job, holder) = self.assigned(factory, |spec| spec.review = gate).await;
                self.hold(job.id, &holder, reported).await.unwrap()
            }
            Stage::Testing => {
                let (job, holder) = self.assigned(factory, |_| ()).await;
                self.hold(job.id, &holder, reported).await.unwrap()
            }
            Stage::Shipping => {
                let in_a_repository = |spec: &mut JobSpec| {
                    spec.ship = ShipMode::Auto;
                    spec.repo = Some("hello".to_owned());
                };
                let (job, holder) = self.assigned(factory, in_a_repository).await;
                let (branch, commit) = (Some("giga/job/x/1".to_owned()), Some("c0ffee".to_owned()));
                let report = RunReport { branch, commit, ..RunReport::default() };
                let actions = [HolderAction::Start, HolderAction::Report(report)];
                self.hold(job.id, &holder, actions).await.unwrap()
            }
            Stage::Shipped => {
                let (job, holder) = self.assigned(factory, |spec| spec.ship = ShipMode::Auto).await;
                self.hold(job.id, &holder, reported).await.unwrap()
            }
            Stage::Failed => {
                let (job, holder) = self.assigned(factory, |_| ()).await;
                self.hold(job.id, &holder, [fail(false)]).await.unwrap()
            }
            Stage::DeadLetter => {
                let (job, holder) = self.assigned(factory, |spec| spec.retry.max = 0).await;
                self.hold(job.id, &holder, [fail(true)]).await.unwrap()
            }
            Stage::Cancelled => {
                let job = self.submitted(|_| ()).await;
                self.operate(job.id, OperatorAction::Cancel).await.unwrap()
            }
        }
    }

    pub(super) async fn hold(
        &self,
        job: JobId,
        holder: &Holder,
        actions: impl IntoIterator<Item = HolderAction>,
    ) -> Result<Job, StoreError> {
        let actions = actions.into_iter().collect();
        self.store.hold(Hold { job, holder: holder.clone(), actions }).await
    }

    pub(super) async fn steer(&self, job: JobId, command: Command) -> Result<Job, StoreError> {
        self.store
            .steer(Steer { job, request: super::steer_request(), command, if_rev: None, actor: user() })
            .await
    }

    pub(super) async fn operate(&self, job: JobId, action: OperatorAction) -> Result<Job, StoreError> {
        self.steer(job, Command::Operator { action, reason: None }).await
    }

    pub(super) async fn job(&self, id: JobId) -> Job {
        self.store.read().job(id).await.unwrap().expect("the job exists")
    }

    pub(super) async fn events(&self, id: JobId) -> Vec<Event> {
        self.store.read().job_events(id, EventSeq::ZERO, 10_000).await.unwrap()
    }

    pub(super) async fn feed(&self) -> Vec<Event> {
        self.store.read().feed(FeedPos::ZERO, 100_000).await.unwrap()
    }

    pub(super) async fn count(&self, stage: Stage) -> u64 {
        self.store.read().queue_state(&product("demo")).await.unwrap().count(stage)
    }

    /// Retires up to `limit` jobs that ended before `before`; returns how many that were.
    pub(super) async fn retire(&self, before: Timestamp, limit: usize) -> usize {
        let mut old = self.store.read().retirable(before, limit).await.unwrap();
        let mut retired = self.store.retire(Retire { before, jobs: old.clone() }).await.unwrap();
        old.sort_unstable();
        retired.sort_unstable();
        assert_eq!(retired, old, "what can be retired is what is retired");
        retired.len()
    }

    pub(super) async fn snapshot(&self, id: JobId) -> Snapshot {
        let read = self.store.read();
        Snapshot {
            job: read.job(id).await.unwrap(),
            runs: read.runs(id).await.unwrap(),
            events: self.events(id).await,
            queue: read.queue_states().await.unwrap(),
            feed_head: read.feed_head().await.unwrap(),
        }
    }
}

pub(super) fn product(name: &str) -> ProductId {
    name.parse().unwrap()
}

pub(super) fn factory(name: &str) -> FactoryId {
    name.parse().unwrap()
}

pub(super) fn request(number: u64) -> RequestId {
    format!("request-{number}").parse().unwrap()
}

pub(super) fn user() -> Actor {
    Actor::Token("ana".parse().unwrap())
}

pub(super) fn advertised(seat_limit: u32) -> Advertised {
    let capabilities = CapabilitySet::parse(["os:linux", "has:git"]).unwrap();
    Advertised { capabilities, seat_limit, ..Advertised::default() }
}

pub(super) fn holder(job: &Job) -> Holder {
    let lease = job.lease().expect("the job is held");
    Holder { factory: lease.factory.clone(), epoch: job.epoch }
}

pub(super) fn granted(claimed: Claimed) -> Job {
    match claimed {
        Claimed::Granted(job) => job,
        Claimed::Lost(why) => panic!("the claim should have won but lost: {why:?}"),
    }
}

pub(super) fn fail(retryable: bool) -> HolderAction {
    let failure = giga_domain::Failure {
        reason: giga_domain::FailReason::VerifyFailed,
        detail: Some("2 tests failed".to_owned()),
    };
    HolderAction::Fail { failure, retryable }
}
