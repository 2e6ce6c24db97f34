//! The commands that make, take and change single jobs.

use std::collections::HashMap;

use giga_domain::job::DepsMode;
use giga_domain::{
    Actor, Command, DispatchSeq, Epoch, EventKind, EventSeq, FactoryState, Job, JobId, JobSpec, NewEvent,
    Refusal, Rev, Stage, State,
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
        // Everything is checked before anything is made.
        let mut stands_for = HashMap::new();
        for (place, new) in self.jobs.iter().enumerate() {
            stands_for.insert(new.id, self.same_as(place, working)?);
            self.check_deps(new, working)?;
        }
        let mut answers = Vec::with_capacity(self.jobs.len());
        for new in &self.jobs {
            let id = stands_for[&new.id];
            answers.push(match working.job(id) {
                // The same id is this very command, repeated after its reply was lost.
                Ok(job) if id == new.id => Submitted::Created(job.clone()),
                Ok(job) => Submitted::Existing(job.clone()),
                Err(_) => Submitted::Created(self.make(new, &stands_for, working)),
            });
        }
        Ok(answers)
    }
}

impl Submit {
    /// The job that the one at `place` stands for: its own, or the one that its key made before, be it earlier in
    /// this very command.
    fn same_as(&self, place: usize, working: &Working) -> Result<JobId, StoreError> {
        let new = &self.jobs[place];
        let Some(key) = new.spec.idempotency_key.as_ref().filter(|_| working.job(new.id).is_err()) else {
            return Ok(new.id);
        };
        let same_key = |other: &&NewJob| {
            other.product == new.product && other.spec.idempotency_key.as_ref() == Some(key)
        };
        let known = working.job_by_key(&new.product, key).map(|(job, fingerprint)| (job.id, fingerprint));
        let earlier = self.jobs[..place].iter().find(same_key).map(|new| (new.id, &*new.fingerprint));
        match known.or(earlier) {
            Some((job, fingerprint)) if fingerprint != new.fingerprint => {
                Err(StoreError::KeyReused { key: key.clone(), job })
            }
            Some((job, _)) => Ok(job),
            None => Ok(new.id),
        }
    }

    fn check_deps(&self, new: &NewJob, working: &Working) -> Result<(), StoreError> {
        if working.job(new.id).is_ok() {
            return Ok(());
        }
        for dep in &new.spec.deps {
            let known = working.job(*dep).is_ok_and(|job| job.product == new.product);
            let beside = || self.jobs.iter().any(|other| other.id == *dep && other.product == new.product);
            if !known && !beside() {
                return Err(StoreError::UnknownDep(*dep));
            }
        }
        Ok(())
    }

    fn make(&self, new: &NewJob, stands_for: &HashMap<JobId, JobId>, working: &mut Working) -> Job {
        let mut spec = new.spec.clone();
        // A dep beside it may turn out to be a job that its key made before.
        for dep in &mut spec.deps {
            *dep = stands_for.get(dep).copied().unwrap_or(*dep);
        }
        let (job, event) = first_state(new, spec, working);
        working.insert_job(job.clone(), new.manifest.clone(), new.body.clone(), new.fingerprint.clone());
        let (product, place) = (job.product.clone(), (job.id, job.last_event));
        working.append(Some(product), Some(place), self.actor.clone(), event);
        job
    }
}

fn first_state(new: &NewJob, spec: JobSpec, working: &Working) -> (Job, NewEvent) {
    let now = working.now();
    let shipped = |dep: &JobId| working.job(*dep).is_ok_and(|job| job.stage() == Stage::Shipped);
    let mut deps = spec.deps.iter();
    let free = match spec.deps_mode {
        DepsMode::All => deps.all(shipped),
        DepsMode::Any => spec.deps.is_empty() || deps.any(shipped),
    };
    let ready_at = spec.run_at.unwrap_or(now).max(now);
    let (state, cause) = if free {
        (State::Queued { since: now, ready_at, target: None }, "submitted".to_owned())
    } else {
        (State::Blocked, format!("submitted; waits for {} of {} deps", mode(&spec), spec.deps.len()))
    };
    let mut event = NewEvent::new(EventKind::Submitted, cause).with("name", spec.name.as_str());
    event.to = Some(state.stage());
    let job = Job {
        id: new.id,
        product: new.product.clone(),
        spec,
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
        last_steer: None,
        result: None,
        merge: None,
    };
    (job, event)
}

fn mode(spec: &JobSpec) -> &'static str {
    match spec.deps_mode {
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
            // An accept names the one job it is about; a claim takes whatever its request has won before.
            return Ok(if claim.dispatch_seq.is_some() && job.id != claim.job {
                Claimed::Lost(Lost::Gone("its request id has won another job"))
            } else {
                Claimed::Granted(job.clone())
            });
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
        let SteerWrite { job: id, request, command, if_rev, actor } = &self.0;
        let job = working.job(*id)?;
        if job.last_steer.as_ref() == Some(request) {
            return Ok(job.clone());
        }
        let before = job.rev;
        if let Some(given) = if_rev.filter(|given| *given != before) {
            return Err(StoreError::RevMismatch { given, current: before });
        }
        if working.apply(*id, command, actor)?.rev != before {
            working.steered(*id, request.clone());
        }
        working.job(*id).cloned()
    }
}
