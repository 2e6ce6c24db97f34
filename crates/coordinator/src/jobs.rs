//! Use cases about single jobs: submit, and what holders and operators report.

use giga_domain::job::ReviewGate;
use giga_domain::manifest::{Dep, Manifest};
use giga_domain::transition::was_cancelled;
use giga_domain::{
    Actor, Command, FactoryId, FactoryState, Holder, HolderAction, Job, JobId, JobSpec, Judgement,
    OperatorAction, ProductId, Rev, Spend, Timestamp, TreeLimits,
};
use giga_ports::StoreError;
use giga_ports::store::{Hold, NewJob, Steer, Submit, Submitted};
use giga_scheduler::{JobView, Unroutable, routable};

use crate::view::Whom;
use crate::{Coordinator, Error, FieldProblem, ForeignRepo};

#[derive(Debug, Clone)]
pub struct SubmitRequest {
    pub product: ProductId,
    pub manifest: Manifest,
    pub body: String,
    pub actor: Actor,
}

#[derive(Debug)]
pub struct SubmitAnswer {
    pub job: Job,
    /// False when the idempotency key was seen before.
    pub created: bool,
    /// Could any factory of today's fleet ever run it?
    pub routable: Result<(), Unroutable>,
    /// It is for a repository that another product owns, and goes there all the same.
    pub foreign_repo: Option<ForeignRepo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// An operator cancelled the job: stop the engine.
    Cancel,
    /// Checkpoint and release: a more urgent job needs the seat.
    Preempt,
    /// Take nothing new.
    Drain,
    /// People answered or said something that the engine was not given yet.
    Input,
    /// Checkpoint and release: a question has been open for too long to keep the seat for it.
    Park,
}

#[derive(Debug, Clone)]
pub struct Renewal {
    pub expires_at: Timestamp,
    pub directives: Vec<Directive>,
}

/// Where a new job comes from.
#[derive(Debug, Default)]
pub(crate) struct Origin<'a> {
    pub(crate) parent: Option<&'a Job>,
    /// The lease under which what runs inside the parent makes it.
    pub(crate) under: Option<Holder>,
}

impl Coordinator {
    /// Durable when it returns. A job that nobody could run is accepted with a warning, or refused under `strict`.
    pub async fn submit(&self, request: SubmitRequest) -> Result<SubmitAnswer, Error> {
        let SubmitRequest { product, manifest, body, actor } = request;
        let foreign_repo = self.foreign_repo(&product, manifest.repos());
        let new = self.new_job(product, &manifest, body).await?;
        let routable = self.all_routable(std::slice::from_ref(&new)).await?.pop().unwrap_or(Ok(()));
        let foreign_repo = match (foreign_repo, &routable) {
            (Err(refusal), _) => self.unless_made_before(&new, refusal).await.map(|()| None)?,
            (Ok(foreign), Err(unroutable)) if self.fleet.flag("strict") == true => {
                let refusal = Error::Unroutable(unroutable.clone());
                self.unless_made_before(&new, refusal).await.map(|()| foreign)?
            }
            (Ok(foreign), _) => foreign,
        };
        self.admit(std::slice::from_ref(&new)).await?;
        let mut answers = self.core.store.submit(Submit { jobs: vec![new], actor }).await?;
        let (job, created) = match answers.pop() {
            Some(Submitted::Created(job)) => (job, true),
            Some(Submitted::Existing(job)) => (job, false),
            None => return Err(StoreError::broken_because("a submit was not answered").into()),
        };
        if created {
            self.core.metrics.submitted(&job);
        }
        Ok(SubmitAnswer { job, created, routable, foreign_repo })
    }

    /// What was acknowledged once is answered again, whatever the fleet and its rules have become since: only a job that
    /// would be made is refused. Looked up only where one would be.
    pub(crate) async fn unless_made_before(&self, new: &NewJob, refusal: Error) -> Result<(), Error> {
        let known = match &new.spec.idempotency_key {
            Some(key) => self.core.store.read().job_by_key(&new.product, key).await?.is_some(),
            None => false,
        };
        if known { Ok(()) } else { Err(refusal) }
    }

    pub(crate) async fn new_job(
        &self,
        product: ProductId,
        manifest: &Manifest,
        body: String,
    ) -> Result<NewJob, Error> {
        let mut deps = Vec::with_capacity(manifest.deps.len());
        for (index, dep) in manifest.deps.iter().enumerate() {
            match dep {
                Dep::Id(id) => deps.push(*id),
                Dep::Name(name) => {
                    let message = format!(
                        "`{name}` is not a job id; names work only between the jobs of one submit, and this submit has one"
                    );
                    return Err(FieldProblem::new(format!("deps[{index}]"), message).into());
                }
            }
        }
        self.check_secrets(&product, manifest).await?;
        let id = self.core.random.job_id(self.core.clock.now());
        self.make_job(id, product, manifest, body, deps, Origin::default()).await
    }

    pub(crate) async fn make_job(
        &self,
        id: JobId,
        product: ProductId,
        manifest: &Manifest,
        body: String,
        deps: Vec<JobId>,
        origin: Origin<'_>,
    ) -> Result<NewJob, Error> {
        let mut bounded = manifest.clone();
        let bounds = self.bound(&product, &mut bounded, &origin);
        let snapshot = serde_json::to_value(&bounded).map_err(StoreError::broken)?;
        let persona = self.persona_of(&product, bounded.persona.as_ref()).await?;
        let parent = origin.parent.map(|parent| parent.id);
        let mut spec = bounded.to_spec(deps, parent);
        if let Some(known) = self.fleet.view.lock().tenants.product(&product) {
            spec.merge = spec.merge.or(&known.settings.merge);
        }
        if spec.repo.is_some() {
            self.effects.check_merge_by(spec.merge.by)?;
        }
        let new = NewJob {
            id,
            product,
            // Of what was sent: the same text means the same job, also after the rules have changed.
            fingerprint: fingerprint(manifest, &body, parent),
            spec,
            manifest: snapshot,
            body,
            persona,
            under: origin.under,
            tree: *bounds.as_ref().unwrap_or(&TreeLimits::default()),
        };
        match bounds {
            Ok(_) => Ok(new),
            Err(problem) => self.unless_made_before(&new, problem.into()).await.map(|()| new),
        }
    }

    /// Every write by a holder but a renewal.
    pub async fn hold(
        &self,
        job: JobId,
        holder: Holder,
        mut actions: Vec<HolderAction>,
    ) -> Result<Job, Error> {
        if let Some(HolderAction::Fail { failure, retryable }) = actions.last_mut()
            && *retryable
            && failure.reason.is_of_the_machine()
        {
            *retryable = self.others_could_run(job, &holder.factory).await?;
        }
        let job = self.core.store.hold(Hold { job, holder, actions }).await?;
        self.core.metrics.lease_ended(&job);
        Ok(job)
    }

    /// Whether a factory is enrolled that could run the job, those apart that have shown that they cannot.
    async fn others_could_run(&self, id: JobId, holder: &FactoryId) -> Result<bool, Error> {
        let Some(job) = self.core.store.read().job(id).await? else { return Ok(false) };
        self.fleet.refresh().await?;
        let now = self.core.store_now();
        let mut snapshot = {
            let state = self.fleet.view.lock();
            self.fleet.snapshot(&state, now, Whom::Everyone)
        };
        snapshot.factories.retain(|factory| factory.id != *holder && !job.unfit().contains(&factory.id));
        let view = wanting(&job.spec, job.id, job.product.clone(), now);
        Ok(routable(&view, &snapshot).is_ok())
    }

    /// With what its run has used up so far, where the holder knows.
    pub async fn renew(&self, job: JobId, holder: Holder, spent: Option<Spend>) -> Result<Renewal, Error> {
        self.fleet.presence.touch(&holder.factory, self.core.store_now());
        let lease = self.fleet.flag_millis("lease_ms");
        let epoch = holder.epoch;
        let draining = {
            let state = self.fleet.view.lock();
            state.factories.get(&holder.factory).is_some_and(|f| f.state == FactoryState::Draining)
        };
        let spent = spent.map(HolderAction::Spend);
        let actions = spent.into_iter().chain([HolderAction::Renew { lease }]).collect();
        let write = Hold { job, holder, actions };
        let job = self.core.store.hold(write).await?;
        let mut directives = Vec::new();
        if was_cancelled(&job, epoch) {
            directives.push(Directive::Cancel);
        }
        if job.epoch == epoch && job.lease().is_some_and(|lease| lease.evict.is_some()) {
            directives.push(Directive::Preempt);
        }
        if draining {
            directives.push(Directive::Drain);
        }
        if let (Some(talk), true) = (&job.conversation, job.epoch == epoch) {
            directives.extend(talk.has_undelivered().then_some(Directive::Input));
            directives.extend(talk.is_to_park(self.core.store_now()).then_some(Directive::Park));
        }
        let expires_at = job.lease().map_or(job.updated_at, |lease| lease.expires_at);
        Ok(Renewal { expires_at, directives })
    }

    pub async fn operate(
        &self,
        job: JobId,
        action: OperatorAction,
        reason: Option<String>,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Job, Error> {
        self.steer(job, Command::Operator { action, reason }, if_rev, actor).await
    }

    pub async fn review(
        &self,
        job: JobId,
        judgement: Judgement,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Job, Error> {
        self.steer(job, Command::Review(judgement), if_rev, actor).await
    }

    /// Asks for a review before the job goes on.
    pub async fn request_review(
        &self,
        job: JobId,
        gate: ReviewGate,
        may_weaken: bool,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Job, Error> {
        self.steer(job, Command::RequestReview { gate, may_weaken }, if_rev, actor).await
    }

    async fn steer(
        &self,
        job: JobId,
        command: Command,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Job, Error> {
        let request = self.core.new_request();
        Ok(self.core.store.steer(Steer { job, request, command, if_rev, actor }).await?)
    }
}

/// The same key under another parent is another job.
fn fingerprint(manifest: &Manifest, body: &str, parent: Option<JobId>) -> String {
    let own = manifest.fingerprint(body);
    parent.map_or(own.clone(), |parent| format!("{own}@{parent}"))
}

/// The job as it would stand in the queue, deps aside.
pub(crate) fn preview(new: &NewJob, now: Timestamp) -> JobView {
    wanting(&new.spec, new.id, new.product.clone(), now)
}

/// A job that asks for this and has no past.
fn wanting(spec: &JobSpec, id: JobId, product: ProductId, now: Timestamp) -> JobView {
    let ready_at = spec.run_at.unwrap_or(now).max(now);
    JobView {
        id,
        rev: Rev(1),
        product,
        priority: spec.priority,
        enqueued_at: ready_at,
        ready_at,
        capabilities: spec.capabilities.clone(),
        repo: spec.repo.clone(),
        more_repos: spec.more_repos.clone(),
        concurrency: spec.concurrency.clone(),
        cost_cap: spec.budget.usd,
        last_factory: None,
        offered_to: None,
        excluded: Vec::new(),
        earlier: None,
    }
}
