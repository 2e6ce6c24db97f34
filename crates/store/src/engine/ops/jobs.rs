//! The commands that take and change single jobs.

use giga_domain::{Actor, Command, FactoryState, HolderAction, Job, OperatorAction, Refusal, Stage, Usd};
use giga_ports::StoreError;
use giga_ports::store::{Claim, Claimed, HolderWrite, Lost, SteerWrite};

use super::super::{Needs, Op, Working};

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
        let reserve = match self.share(working)? {
            Ok(share) => share,
            Err(lost) => return Ok(Claimed::Lost(lost)),
        };
        let command = Command::Claim {
            factory: claim.factory.clone(),
            request: claim.request.clone(),
            rev: claim.rev,
            dispatch_seq: claim.dispatch_seq,
            lease: claim.lease,
            reserve,
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

    /// What the product's budget sets aside for the job.
    fn share(&self, working: &mut Working) -> Result<Result<Usd, Lost>, StoreError> {
        let job = working.job(self.0.job)?;
        if job.stage() != Stage::Queued {
            // Whoever is too late need not know how the product stands; the transition says what is to be said.
            return Ok(Ok(Usd::ZERO));
        }
        let (product, cap) = (job.product.clone(), job.spec.budget.usd);
        Ok(working.admit(&product, cap)?.map_err(Lost::Budget))
    }
}

/// Whether the write may end the lease or change what it has spent.
fn moves_money(actions: &[HolderAction]) -> bool {
    actions.iter().any(|action| match action {
        HolderAction::Spend(_)
        | HolderAction::Report(_)
        | HolderAction::Fail { .. }
        | HolderAction::Release { .. } => true,
        HolderAction::Start | HolderAction::Renew { .. } | HolderAction::Checkpoint(_) => false,
    })
}

pub(in crate::engine) struct Hold(pub(in crate::engine) HolderWrite);

impl Op for Hold {
    type Reply = Job;

    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.0.job);
        if moves_money(&self.0.actions) {
            needs.money.insert(self.0.job);
        }
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
        // The one word that can end a lease.
        if matches!(self.0.command, Command::Operator { action: OperatorAction::Cancel, .. }) {
            needs.money.insert(self.0.job);
        }
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
