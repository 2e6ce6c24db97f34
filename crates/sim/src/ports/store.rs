//! One coordinator's store: the product's own batch engine, with every answer written down for the checkers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use giga_domain::{
    AccountState, Actor, Budget, BudgetChange, Command, Factory, FailReason, Failure, Holder, HolderAction,
    Job, JobId, Leadership, Offer, Refusal, State, Usd,
};
use giga_ports::store::{
    Advertise, ChangeBudget, Claim, Claimed, EvictJobs, ExpireLeases, FanOut, Hold, MakeOffers, NewJob,
    Reaped, Reconsider, Reconsidered, Steer, StepDown, Submit, Submitted, TakeLead,
};
use giga_ports::{Clock, Intercept, InterceptReads, Store, StoreError, StoreReads};
use giga_store::BatchStore;

use super::NodeBackend;
use crate::bug::Bug;
use crate::history::{Record, Word};
use crate::turnstile::Node;
use crate::world::World;

type Result<T> = std::result::Result<T, StoreError>;

pub(crate) struct NodeStore {
    pub node: Node,
    pub world: Arc<World>,
    pub inner: Arc<dyn Store>,
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
        call: impl FnOnce(Arc<dyn Store>) -> Fut,
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

    /// The job as it is now, past every turnstile: only for bugs.
    async fn peek(&self, job: JobId) -> Option<Job> {
        self.world.reads().job(job).await.ok().flatten()
    }

    /// Only for a bug.
    async fn charge_again(&self, job: &Job, reported: Usd) {
        let request = format!("bug-{}-{}", job.id, job.epoch);
        let write = ChangeBudget {
            product: job.product.clone(),
            change: BudgetChange::Correct { usd: reported, reason: "bug".to_owned() },
            if_rev: None,
            request: request.parse().expect("ids, digits and dashes make a request id"),
            actor: Actor::system("bug"),
        };
        let _ = self.inner.change_budget(write).await;
    }

    /// A job that looks as if it had been kept.
    fn pretended(&self, new: &NewJob) -> Job {
        let now = self.world.clock.now();
        let state = State::Queued { since: now, ready_at: now, target: None };
        Job::new(new.id, new.product.clone(), new.spec.clone(), state, now)
    }
}

/// What the holder says to have spent so far.
fn reported_by(actions: &[HolderAction]) -> Usd {
    let reported = |action: &HolderAction| match action {
        HolderAction::Spend(spend) => spend.usd,
        HolderAction::Report(report) => report.cost.unwrap_or_default(),
        _ => Usd::ZERO,
    };
    actions.iter().map(reported).max().unwrap_or_default()
}

fn word_of(actions: &[HolderAction]) -> Word {
    match actions.last() {
        Some(HolderAction::Report(_)) => Word::Report,
        Some(HolderAction::Fail { failure, .. }) if failure.reason.is_of_the_account() => {
            Word::FailForAccount
        }
        Some(HolderAction::Fail { retryable: true, .. }) => Word::FailForNow,
        Some(HolderAction::Fail { retryable: false, .. }) => Word::FailForGood,
        Some(HolderAction::Release { .. }) => Word::Release,
        _ => Word::On,
    }
}

impl InterceptReads for NodeStore {
    fn inner_reads(&self) -> &dyn StoreReads {
        self.inner.read()
    }
}

impl Intercept for NodeStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn submit(&self, mut command: Submit) -> Result<Vec<Submitted>> {
        for new in &mut command.jobs {
            self.world.history.add(Record::Asked { job: new.id, cap: new.spec.budget.usd });
            if self.world.has(Bug::ReserveForgotten) {
                new.spec.budget.usd = None;
            }
        }
        if self.every(5, Bug::AckBeforeDurable) {
            return Ok(command.jobs.iter().map(|new| Submitted::Created(self.pretended(new))).collect());
        }
        if self.every(3, Bug::KeyForgotten) {
            for new in &mut command.jobs {
                new.spec.idempotency_key = None;
            }
        }
        let answer = self.inner.submit(command).await;
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
            let outcome = brief(&answer, |claimed| match claimed {
                Claimed::Granted(job) => format!("granted {} at epoch {}", job.id, job.epoch),
                Claimed::Lost(lost) => format!("{lost:?}"),
            });
            format!("claim {asked} for {factory} -> {outcome}")
        });
        answer
    }

    async fn hold(&self, mut write: Hold) -> Result<Job> {
        let Hold { job: id, holder: Holder { factory, epoch }, .. } = write.clone();
        let word = word_of(&write.actions);
        let message = self.world.trace.is_kept().then(|| format!("{:?}", write.actions));
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
        if self.world.has(Bug::QuotaCostsAttempt) && word == Word::FailForAccount {
            let failure = Failure { reason: FailReason::Infrastructure, detail: None };
            write.actions = vec![HolderAction::Fail { failure, retryable: true }];
        }
        let reported = reported_by(&write.actions);
        if !reported.is_zero() {
            self.world.history.add(Record::Reporting { job: id, epoch, reported });
        }
        let writer = factory.clone();
        let held =
            move |job: &Job| Some(Record::Held { factory: writer, epoch, word, reported, after: job.into() });
        let answer = self.to_the_end(|inner| async move { inner.hold(write).await }, held).await;
        if matches!(answer, Err(StoreError::Refused(Refusal::Fenced { .. }))) {
            self.world.history.add_fenced();
        }
        if let Ok(job) = &answer
            && word == Word::Report
            && !reported.is_zero()
            && self.every(2, Bug::ChargedTwice)
        {
            self.charge_again(job, reported).await;
        }
        self.note(|| {
            let outcome = brief(&answer, |job| format!("{} at epoch {}", job.stage(), job.epoch));
            let message = message.unwrap_or_default();
            format!("{factory} writes {id} at epoch {epoch}: {message} -> {outcome}")
        });
        answer
    }

    async fn steer(&self, write: Steer) -> Result<Job> {
        let message = self.world.trace.is_kept().then(|| format!("{} {:?}", write.job, write.command));
        if matches!(write.command, Command::Answer { .. })
            && self.every(2, Bug::AnswerForgotten)
            && let Some(job) = self.peek(write.job).await
        {
            return Ok(job);
        }
        let answer = self.inner.steer(write).await;
        self.note(|| {
            let message = message.unwrap_or_default();
            format!("steer {message} -> {}", brief(&answer, |job| job.stage().to_string()))
        });
        answer
    }

    async fn expire_leases(&self, command: ExpireLeases) -> Result<Reaped> {
        if self.world.has(Bug::NoReaper) {
            return Ok(Reaped::default());
        }
        let answer = self.inner.expire_leases(command).await;
        if answer.as_ref().map_or(true, |reaped| !reaped.jobs.is_empty()) {
            self.note(|| format!("reap -> {}", brief(&answer, |reaped| format!("{:?}", reaped.jobs))));
        }
        answer
    }

    async fn reconsider(&self, command: Reconsider) -> Result<Reconsidered> {
        if self.world.has(Bug::ReconsiderLost) {
            return Ok(Reconsidered::default());
        }
        let answer = self.inner.reconsider(command).await;
        if answer.as_ref().map_or(true, |swept| !swept.moved.is_empty()) {
            self.note(|| format!("reconsider -> {}", brief(&answer, |swept| format!("{:?}", swept.moved))));
        }
        answer
    }

    async fn advertise(&self, mut command: Advertise) -> Result<Factory> {
        if self.world.has(Bug::TooManySeats) {
            command.advertised.seat_limit += 3;
        }
        let closed = command.advertised.accounts.iter();
        let closed = closed.filter_map(|account| Some((account.engine.clone(), account.until?))).collect();
        let (at, factory) = (self.world.clock.now(), command.factory.clone());
        if self.world.has(Bug::ClosedAccountForgotten) {
            for account in &mut command.advertised.accounts {
                (account.state, account.until) = (AccountState::Open, None);
            }
        }
        let told = move |_: &Factory| Some(Record::Advertised { at, factory, closed });
        self.to_the_end(|inner| async move { inner.advertise(command).await }, told).await
    }

    async fn lead(&self, command: TakeLead) -> Result<Leadership> {
        let answer = self.inner.lead(command).await;
        self.note(|| {
            format!("lead -> {}", brief(&answer, |led| format!("{} in term {}", led.node, led.term)))
        });
        answer
    }

    async fn step_down(&self, command: StepDown) -> Result<()> {
        self.note(|| format!("steps down from term {}", command.term));
        self.inner.step_down(command).await
    }

    async fn offer(&self, command: MakeOffers) -> Result<Vec<Option<Offer>>> {
        let term = command.term;
        let offered = move |offers: &Vec<Option<Offer>>| {
            let offers = offers.iter().flatten().map(|offer| (offer.job_id, offer.dispatch_seq)).collect();
            Some(Record::Offered { term, offers })
        };
        let again = self.world.has(Bug::OldTermAccepted).then(|| self.world.clone());
        let call = |inner: Arc<dyn Store>| async move {
            let answer = inner.offer(command.clone()).await;
            let (Err(StoreError::StaleTerm { current, .. }), Some(world)) = (&answer, again) else {
                return answer;
            };
            let mut renewed = MakeOffers { term: *current, ..command };
            for new in &mut renewed.chosen {
                if let Ok(Some(job)) = world.reads().job(new.job).await {
                    new.rev = job.rev;
                }
            }
            inner.offer(renewed).await
        };
        let answer = self.to_the_end(call, offered).await;
        if matches!(answer, Err(StoreError::StaleTerm { .. })) {
            self.world.history.add_stale_term();
        }
        self.note(|| {
            let one = |offer: &Offer| format!("{} to {}", offer.message_id(), offer.target_factory_id);
            let outcome = brief(&answer, |offers| {
                offers
                    .iter()
                    .map(|offer| offer.as_ref().map_or("-".into(), one))
                    .collect::<Vec<_>>()
                    .join(", ")
            });
            format!("offer in term {term} -> {outcome}")
        });
        answer
    }

    async fn evict(&self, command: EvictJobs) -> Result<Vec<bool>> {
        let message = self.world.trace.is_kept().then(|| format!("{:?}", command.asked));
        let answer = self.inner.evict(command).await;
        self.note(|| {
            format!(
                "evict {} -> {}",
                message.unwrap_or_default(),
                brief(&answer, |asked| format!("{asked:?}"))
            )
        });
        answer
    }

    async fn change_budget(&self, write: ChangeBudget) -> Result<Budget> {
        let message = self.world.trace.is_kept().then(|| format!("{} {:?}", write.product, write.change));
        let answer = self.inner.change_budget(write).await;
        self.note(|| {
            let message = message.unwrap_or_default();
            let left = |budget: &Budget| format!("{:?}, reserved {}", budget.paused, budget.reserved);
            format!("budget {message} -> {}", brief(&answer, left))
        });
        answer
    }

    async fn fan_out(&self, mut command: FanOut) -> Result<bool> {
        if self.every(3, Bug::EffectLost) {
            command.effects.pop();
        }
        let (from, to, count) = (command.from, command.to, command.effects.len());
        let answer = self.inner.fan_out(command).await;
        self.note(|| {
            format!("fan out {from} to {to}: {count} -> {}", brief(&answer, |moved| format!("{moved}")))
        });
        answer
    }
}

fn brief<T>(answer: &Result<T>, show: impl FnOnce(&T) -> String) -> String {
    match answer {
        Ok(answer) => show(answer),
        Err(error) => format!("error: {error}"),
    }
}
