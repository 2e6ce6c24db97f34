//! The commands that make, take and change single jobs.

use giga_domain::job::DepsMode;
use giga_domain::{
    Actor, Command, DispatchSeq, Epoch, EventKind, EventSeq, FactoryState, Job, JobId, NewEvent, Refusal,
    Rev, Stage, State,
};
use giga_ports::StoreError;
use giga_ports::store::{Claim, Claimed, HolderWrite, Lost, NewJob, SteerWrite, Submitted};

use super::super::{Needs, Op, Working};

pub(in crate::engine) struct Submit {
    pub(in crate::engine) jobs: Vec<NewJob>,
    pub(in crate::engine) actor: Actor,
}

impl Op for Submit {
    type Reply = Vec<Submitted>;

    fn needs(&self, needs: &mut Needs) {
        for new in &self.jobs {
            needs.jobs.insert(new.id);
            needs.jobs.extend(new.spec.deps.iter().copied());
            if let Some(key) = &new.spec.idempotency_key {
                needs.keys.insert((new.product.clone(), key.clone()));
            }
        }
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<Submitted>, StoreError> {
        let known = self.jobs.iter().map(|new| self.known(new, working)).collect::<Result<Vec<_>, _>>()?;
        let mut answers = Vec::with_capacity(self.jobs.len());
        for (new, known) in self.jobs.iter().zip(known) {
            if let Some(answer) = known {
                answers.push(answer);
                continue;
            }
            let (job, event) = self.make(new, working);
            answers.push(Submitted::Created(job.clone()));
            let (product, place) = (job.product.clone(), (job.id, job.last_event));
            working.insert_job(job, new.manifest.clone(), new.body.clone(), new.fingerprint.clone());
            working.append(Some(product), Some(place), self.actor.clone(), event);
        }
        Ok(answers)
    }
}

impl Submit {
    /// Refuses what can't be made, and finds what was made before. Changes nothing.
    fn known(&self, new: &NewJob, working: &Working) -> Result<Option<Submitted>, StoreError> {
        // The same id is this very command, repeated after its reply was lost.
        if let Ok(job) = working.job(new.id) {
            return Ok(Some(Submitted::Created(job.clone())));
        }
        if let Some(key) = &new.spec.idempotency_key
            && let Some((job, fingerprint)) = working.job_by_key(&new.product, key)
        {
            return if fingerprint == new.fingerprint {
                Ok(Some(Submitted::Existing(job.clone())))
            } else {
                Err(StoreError::KeyReused { key: key.clone(), job: job.id })
            };
        }
        let in_this_submit = |dep: JobId| self.jobs.iter().any(|other| other.id == dep);
        for dep in &new.spec.deps {
            let exists = working.job(*dep).is_ok_and(|job| job.product == new.product);
            if !exists && !in_this_submit(*dep) {
                return Err(StoreError::UnknownDep(*dep));
            }
        }
        Ok(None)
    }

    fn make(&self, new: &NewJob, working: &Working) -> (Job, NewEvent) {
        let now = working.now();
        let shipped = |dep: &JobId| working.job(*dep).is_ok_and(|job| job.stage() == Stage::Shipped);
        let mut deps = new.spec.deps.iter();
        let free = match new.spec.deps_mode {
            DepsMode::All => deps.all(shipped),
            DepsMode::Any => new.spec.deps.is_empty() || deps.any(shipped),
        };
        let ready_at = new.spec.run_at.unwrap_or(now).max(now);
        let (state, cause) = if free {
            (State::Queued { since: now, ready_at, target: None }, "submitted".to_owned())
        } else {
            (State::Blocked, format!("submitted; waits for {} of {} deps", mode(new), new.spec.deps.len()))
        };
        let mut event = NewEvent::new(EventKind::Submitted, cause).with("name", new.spec.name.as_str());
        event.to = Some(state.stage());
        let job = Job {
            id: new.id,
            product: new.product.clone(),
            spec: new.spec.clone(),
            state,
            rev: Rev(1),
            epoch: Epoch::ZERO,
            last_event: EventSeq(1),
            attempts: 0,
            dispatch_seq: DispatchSeq::ZERO,
            checkpoint: None,
            settled: None,
            created_at: now,
            updated_at: now,
            enqueued_at: ready_at,
            last_factory: None,
        };
        (job, event)
    }
}

fn mode(new: &NewJob) -> &'static str {
    match new.spec.deps_mode {
        DepsMode::All => "all",
        DepsMode::Any => "any",
    }
}

pub(in crate::engine) struct ClaimJob(pub(in crate::engine) Claim);

impl Op for ClaimJob {
    type Reply = Claimed;

    fn needs(&self, needs: &mut Needs) {
        needs.claim(self.0.job, &self.0.factory, &self.0.request);
    }

    fn decide(&self, working: &mut Working) -> Result<Claimed, StoreError> {
        let claim = &self.0;
        if let Some(job) = working.granted(&claim.factory, &claim.request) {
            return Ok(Claimed::Granted(job.clone()));
        }
        if let Err(lost) = self.allowed(working) {
            return Ok(Claimed::Lost(lost));
        }
        let command = Command::Claim {
            factory: claim.factory.clone(),
            request: claim.request.clone(),
            rev: claim.rev,
            dispatch_seq: claim.dispatch_seq,
            lease: claim.lease,
        };
        match working.apply(claim.job, &command, &Actor::Factory(claim.factory.clone())) {
            Ok(job) => Ok(Claimed::Granted(job.clone())),
            Err(StoreError::NoSuchJob(_)) => Ok(Claimed::Lost(Lost::Gone("it is gone"))),
            Err(StoreError::Refused(Refusal::NotClaimable(why))) => Ok(Claimed::Lost(Lost::Gone(why))),
            Err(error) => Err(error),
        }
    }
}

impl ClaimJob {
    /// What the factory may take is judged again here, where nothing can change any more before the commit.
    fn allowed(&self, working: &Working) -> Result<(), Lost> {
        let claim = &self.0;
        let factory =
            working.factory(&claim.factory).map_err(|_| Lost::NotAllowed("the factory is not enrolled"))?;
        if factory.state == FactoryState::Draining {
            return Err(Lost::NotAllowed("the factory is draining"));
        }
        if working.seats_in_use(&factory.id) >= factory.advertised.seat_limit {
            return Err(Lost::NoSeat);
        }
        let job = working.job(claim.job).map_err(|_| Lost::Gone("it is gone"))?;
        if !factory.scope.allows_product(&job.product) {
            return Err(Lost::NotAllowed("the factory's token does not cover the job's product"));
        }
        if !job.spec.capabilities.is_subset(&factory.usable_capabilities()) {
            return Err(Lost::NotAllowed("the factory lacks a capability that the job needs"));
        }
        if let Some(concurrency) = &job.spec.concurrency
            && working.key_in_use(&job.product, &concurrency.key) >= concurrency.limit
        {
            return Err(Lost::KeyBusy);
        }
        Ok(())
    }
}

pub(in crate::engine) struct Hold(pub(in crate::engine) HolderWrite);

impl Op for Hold {
    type Reply = Job;

    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.0.job);
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let HolderWrite { job, holder, actions } = &self.0;
        let actor = Actor::Factory(holder.factory.clone());
        let command = Command::Holder { holder: holder.clone(), actions: actions.clone() };
        working.apply(*job, &command, &actor).cloned()
    }
}

pub(in crate::engine) struct Steer(pub(in crate::engine) SteerWrite);

impl Op for Steer {
    type Reply = Job;

    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.0.job);
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let SteerWrite { job, command, if_rev, actor } = &self.0;
        let current = working.job(*job)?.rev;
        match if_rev {
            Some(given) if *given != current => Err(StoreError::RevMismatch { given: *given, current }),
            _ => working.apply(*job, command, actor).cloned(),
        }
    }
}
