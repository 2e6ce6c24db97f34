//! Taking and changing jobs, and what the reconcilers do with them: those find their own work, so they can run at any
//! time and any number of times.

use giga_domain::{
    Actor, Command, FactoryState, HolderAction, Job, JobId, OperatorAction, Refusal, Stage, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{Claim, Claimed, ExpireLeases, Hold, Lost, Reaped, Retire, Steer};

use super::super::{Needs, Op, Working};

impl Op for Claim {
    fn needs(&self, needs: &mut Needs) {
        needs.claim(self.job, &self.factory, &self.request);
    }

    fn decide(&self, working: &mut Working) -> Result<Claimed, StoreError> {
        if let Some(job) = working.granted(&self.factory, &self.request) {
            // An accept names the one job it is about; a claim takes whatever its request has won before.
            return Ok(if self.dispatch_seq.is_some() && job.id != self.job {
                Claimed::Lost(Lost::Gone("its request id has won another job"))
            } else {
                Claimed::Granted(job.clone())
            });
        }
        if let Err(lost) = allowed(self, working) {
            return Ok(Claimed::Lost(lost));
        }
        let reserve = match share(self, working)? {
            Ok(share) => share,
            Err(lost) => return Ok(Claimed::Lost(lost)),
        };
        let command = Command::Claim {
            factory: self.factory.clone(),
            request: self.request.clone(),
            rev: self.rev,
            dispatch_seq: self.dispatch_seq,
            lease: self.lease,
            reserve,
        };
        match working.apply(self.job, &command, &Actor::Factory(self.factory.clone())) {
            Ok(job) => Ok(Claimed::Granted(job.clone())),
            Err(StoreError::NoSuchJob(_)) => Ok(Claimed::Lost(Lost::Gone("it is gone"))),
            Err(StoreError::Refused(Refusal::NotClaimable(why))) => Ok(Claimed::Lost(Lost::Gone(why))),
            Err(error) => Err(error),
        }
    }
}

/// What the factory may take is judged again here, where nothing can change any more before the commit.
fn allowed(claim: &Claim, working: &Working) -> Result<(), Lost> {
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
    if !factory.has_what_it_needs(&job.spec) {
        return Err(Lost::NotAllowed("the factory lacks a capability that the job needs"));
    }
    let in_use = working.units_in_use(&factory.id);
    if job.spec.capabilities.short_of(&factory.usable_capabilities(), &in_use).next().is_some() {
        return Err(Lost::InUse);
    }
    if let Some(concurrency) = &job.spec.concurrency
        && working.key_in_use(&job.product, &concurrency.key) >= concurrency.limit
    {
        return Err(Lost::KeyBusy);
    }
    Ok(())
}

/// What the product's budget reserves for the job.
fn share(claim: &Claim, working: &mut Working) -> Result<Result<Usd, Lost>, StoreError> {
    let job = working.job(claim.job)?;
    if job.stage() != Stage::Queued {
        // Whoever is too late need not know how the product stands; the transition says what is to be said.
        return Ok(Ok(Usd::ZERO));
    }
    let (product, cap) = (job.product.clone(), job.spec.budget.usd);
    Ok(working.admit(&product, cap)?.map_err(Lost::Budget))
}

/// Whether the write may end the lease or change what it has spent.
fn moves_money(actions: &[HolderAction]) -> bool {
    actions.iter().any(|action| match action {
        HolderAction::Spend(_)
        | HolderAction::Report(_)
        | HolderAction::Fail { .. }
        | HolderAction::Release { .. } => true,
        HolderAction::Start
        | HolderAction::StartWith(_)
        | HolderAction::Renew { .. }
        | HolderAction::Checkpoint(_)
        | HolderAction::Assumed
        | HolderAction::Ask(_)
        | HolderAction::Delivered(_) => false,
    })
}

impl Op for Hold {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.job);
        if moves_money(&self.actions) {
            needs.money.insert(self.job);
        }
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let Self { job, holder, actions } = self;
        let actor = Actor::Factory(holder.factory.clone());
        let command = Command::Holder { holder: holder.clone(), actions: actions.clone() };
        working.apply(*job, &command, &actor).cloned()
    }
}

impl Op for Steer {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.job);
        // The one word that can end a lease.
        if matches!(self.command, Command::Operator { action: OperatorAction::Cancel, .. }) {
            needs.money.insert(self.job);
        }
    }

    fn decide(&self, working: &mut Working) -> Result<Job, StoreError> {
        let Self { job: id, request, command, if_rev, actor } = self;
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

impl Op for ExpireLeases {
    fn needs(&self, needs: &mut Needs) {
        needs.expired = needs.expired.max(self.limit);
    }

    fn decide(&self, working: &mut Working) -> Result<Reaped, StoreError> {
        let mut reaped = Reaped { jobs: Vec::new(), next_expiry: working.loaded().next_expiry };
        for id in working.loaded().expired.clone() {
            let before = working.job(id)?.rev;
            // Silent where a command before it in the batch renewed or ended the lease.
            if working.apply(id, &Command::Expire, &Actor::system("reaper"))?.rev != before {
                reaped.jobs.push(id);
            }
        }
        // Leases that this batch granted or renewed count too.
        let here = working.loaded().jobs.values().filter_map(|job| Some(job.lease()?.due()));
        reaped.next_expiry = here.chain(reaped.next_expiry).min();
        Ok(reaped)
    }
}

impl Op for Retire {
    fn needs(&self, needs: &mut Needs) {
        let limit = needs.retirable.map_or(self.jobs.len(), |(_, limit)| limit.max(self.jobs.len()));
        let before = needs.retirable.map_or(self.before, |(before, _)| before.min(self.before));
        needs.retirable = Some((before, limit));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<JobId>, StoreError> {
        let awaited = working.awaited();
        let mut ids = working.loaded().retirable.clone();
        // Only what the caller named: it has removed what belongs to those elsewhere.
        ids.retain(|id| self.jobs.contains(id) && !awaited.contains(id) && working.retire(*id));
        Ok(ids)
    }
}
