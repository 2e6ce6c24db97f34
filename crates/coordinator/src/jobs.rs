//! Use cases about single jobs: submit, dry run, explain, accept, and what holders and operators say.

use std::collections::HashMap;

use giga_domain::manifest::{Dep, Manifest};
use giga_domain::transition::was_cancelled;
use giga_domain::{
    Actor, Command, DispatchSeq, FactoryId, FactoryState, Holder, HolderAction, Job, JobId, OperatorAction,
    ProductId, RequestId, Rev, Stage, Timestamp, Verdict,
};
use giga_ports::StoreError;
use giga_ports::store::{Claim, Claimed, HolderWrite, Lost, NewJob, SteerWrite, Submitted};
use giga_scheduler::{Explanation, JobView, Policy, Unroutable, explain, routable};

use crate::view::{Whom, job_view};
use crate::{Coordinator, Error, FieldProblem};

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
}

/// What a submit would do, without doing it.
#[derive(Debug)]
pub struct DryRun {
    pub explanation: Explanation,
    pub routable: Result<(), Unroutable>,
    /// In millionths of a dollar: the job's own cap, for each attempt that its retry policy allows.
    pub worst_case_usd_micros: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Accept {
    pub job: JobId,
    pub factory: FactoryId,
    pub dispatch_seq: DispatchSeq,
    pub request: RequestId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// An operator cancelled the job: stop the engine.
    Cancel,
    /// Checkpoint and release: a more urgent job needs the seat.
    Preempt,
    /// Take nothing new.
    Drain,
}

impl Directive {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Preempt => "preempt",
            Self::Drain => "drain",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Renewal {
    pub expires_at: Timestamp,
    pub directives: Vec<Directive>,
}

impl Coordinator {
    /// Durable when it returns. A job that nobody could run is accepted with a warning, or refused under `strict`.
    pub async fn submit(&self, request: SubmitRequest) -> Result<SubmitAnswer, Error> {
        let SubmitRequest { product, manifest, body, actor } = request;
        let new = self.new_job(product, &manifest, body)?;
        let preview = preview(&new, self.store_now());
        let mut routable = self.routable(&preview);
        if routable.is_err() {
            // Before anyone is warned: the view may be older than a factory that has just joined.
            self.refresh().await?;
            routable = self.routable(&preview);
        }
        if let Err(unroutable) = &routable
            && self.flag("strict") == true
        {
            return Err(Error::Unroutable(unroutable.clone()));
        }
        let mut answers = self.store.submit(vec![new], actor).await?;
        let (job, created) = match answers.pop() {
            Some(Submitted::Created(job)) => (job, true),
            Some(Submitted::Existing(job)) => (job, false),
            None => return Err(StoreError::broken_because("a submit was not answered").into()),
        };
        if created {
            self.metrics.submitted(&job);
        }
        Ok(SubmitAnswer { job, created, routable })
    }

    fn new_job(&self, product: ProductId, manifest: &Manifest, body: String) -> Result<NewJob, Error> {
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
        let id = self.random.job_id(self.clock.now());
        let snapshot = serde_json::to_value(manifest).map_err(StoreError::broken)?;
        Ok(NewJob {
            id,
            product,
            spec: manifest.to_spec(deps, None),
            fingerprint: manifest.fingerprint(&body),
            manifest: snapshot,
            body,
        })
    }

    fn routable(&self, job: &JobView) -> Result<(), Unroutable> {
        let state = self.view.lock();
        let snapshot = self.snapshot(&state, self.store_now(), Whom::Everyone);
        routable(job, &snapshot)
    }

    /// Where the job would run and why, or why it would wait.
    pub async fn dry_run(&self, product: ProductId, manifest: &Manifest) -> Result<DryRun, Error> {
        let new = self.new_job(product, manifest, String::new())?;
        self.refresh().await?;
        let now = self.store_now();
        let view = preview(&new, now);
        let attempts = u64::from(new.spec.retry.max) + 1;
        Ok(DryRun {
            routable: self.routable(&view),
            explanation: self.explain_view(&view, now),
            worst_case_usd_micros: new.spec.budget.usd_micros.map(|cap| cap.saturating_mul(attempts)),
        })
    }

    fn explain_view(&self, view: &JobView, now: Timestamp) -> Explanation {
        let state = self.view.lock();
        let snapshot = self.snapshot(&state, now, Whom::Everyone);
        explain(view, &state.queue, &snapshot, now, &Policy::default())
    }

    /// Why the job is where it is, and what would move it.
    pub async fn explain(&self, id: JobId) -> Result<(Job, Explanation), Error> {
        self.refresh().await?;
        self.ask_after_the_silent().await?;
        let job = self.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        let now = self.store_now();
        let explanation = match job_view(&job, &HashMap::new(), self.flag_millis("pickup_ms")) {
            Some(view) => self.explain_view(&view, now),
            None => self.explain_not_queued(&job).await?,
        };
        Ok((job, explanation))
    }

    /// A job that waits for no factory waits for something else, or for nothing any more.
    async fn explain_not_queued(&self, job: &Job) -> Result<Explanation, Error> {
        let (summary, blockers, remedies) = match job.stage() {
            Stage::Blocked => self.explain_blocked(job).await?,
            stage => crate::fleet::standing(job, stage),
        };
        Ok(Explanation { summary, blockers, remedies, factories: Vec::new() })
    }

    /// Takes an offered job. Repeating a request returns what it was granted.
    pub async fn accept(&self, accept: Accept) -> Result<Job, Error> {
        let claim = Claim {
            job: accept.job,
            rev: None,
            dispatch_seq: Some(accept.dispatch_seq),
            factory: accept.factory,
            request: accept.request,
            lease: self.flag_millis("lease_ms"),
        };
        let offered_at = self.offered_at(claim.job);
        match self.store.claim(claim).await? {
            Claimed::Granted(job) => {
                self.metrics.picked_up(&job, offered_at);
                Ok(job)
            }
            Claimed::Lost(lost) => {
                self.metrics.claim_conflicts.inc();
                Err(Error::NotYours(match lost {
                    Lost::Gone(why) | Lost::NotAllowed(why) => why,
                    Lost::NoSeat => "the factory has no free seat",
                    Lost::KeyBusy => "its concurrency key is at its limit",
                }))
            }
        }
    }

    /// Every write by a holder but a renewal.
    pub async fn hold(&self, job: JobId, holder: Holder, actions: Vec<HolderAction>) -> Result<Job, Error> {
        let job = self.store.hold(HolderWrite { job, holder, actions }).await?;
        self.metrics.settled(&job);
        Ok(job)
    }

    pub async fn renew(&self, job: JobId, holder: Holder) -> Result<Renewal, Error> {
        self.presence.touch(&holder.factory, self.store_now());
        let lease = self.flag_millis("lease_ms");
        let epoch = holder.epoch;
        let draining = {
            let state = self.view.lock();
            state.factories.get(&holder.factory).is_some_and(|f| f.state == FactoryState::Draining)
        };
        let write = HolderWrite { job, holder, actions: vec![HolderAction::Renew { lease }] };
        let job = self.store.hold(write).await?;
        let mut directives = Vec::new();
        if was_cancelled(&job, epoch) {
            directives.push(Directive::Cancel);
        }
        if draining {
            directives.push(Directive::Drain);
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
        verdict: Verdict,
        reviewer: String,
        comment: Option<String>,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Job, Error> {
        self.steer(job, Command::Review { verdict, reviewer, comment }, if_rev, actor).await
    }

    async fn steer(
        &self,
        job: JobId,
        command: Command,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Job, Error> {
        let request = self.new_request();
        Ok(self.store.steer(SteerWrite { job, request, command, if_rev, actor }).await?)
    }
}

/// The job as it would stand in the queue, deps aside.
fn preview(new: &NewJob, now: Timestamp) -> JobView {
    let ready_at = new.spec.run_at.unwrap_or(now).max(now);
    JobView {
        id: new.id,
        rev: Rev(1),
        product: new.product.clone(),
        priority: new.spec.priority,
        enqueued_at: ready_at,
        ready_at,
        capabilities: new.spec.capabilities.clone(),
        repo: new.spec.repo.clone(),
        concurrency: new.spec.concurrency.clone(),
        cost_cap_usd_micros: new.spec.budget.usd_micros,
        last_factory: None,
        offered_to: None,
        excluded: Vec::new(),
    }
}
