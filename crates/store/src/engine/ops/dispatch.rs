//! The commands of the dispatcher: who leads, what is offered to whom, what the broker has published, and who is asked to
//! let go.
//!
//! A term is judged where it is used, in the transaction of the offers themselves. Nothing here believes a dispatcher
//! that it still leads.

use std::time::Duration;

use giga_domain::{Actor, CapabilitySet, Command, Evict, Job, Leadership, NewEvent, Offer, Term, limits};
use giga_ports::StoreError;
use giga_ports::store::{
    Divergence, EvictJobs, MakeOffers, NewEviction, NewOffer, RecordDivergences, Sent, StepDown, TakeLead,
};

use super::super::{Backend, Needs, Op, Working};

fn dispatcher() -> Actor {
    Actor::system("dispatcher")
}

impl Op for TakeLead {
    /// Whoever only waits for the leader to fail neither writes nor locks.
    async fn look<B: Backend>(&self, backend: &B) -> Result<Option<Leadership>, StoreError> {
        let Some(leader) = backend.leader().await?.filter(|leader| leader.node != self.node) else {
            return Ok(None);
        };
        Ok((leader.expires_at > backend.now().await?).then_some(leader))
    }

    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Leadership, StoreError> {
        let now = working.now();
        let expires_at = now.plus(self.lease);
        let last = working.leader().cloned();
        if let Some(current) = last.as_ref().filter(|leader| leader.expires_at > now) {
            if current.node != self.node || current.expires_at >= expires_at {
                return Ok(current.clone());
            }
            let renewed = Leadership { expires_at, ..current.clone() };
            working.put_leader(renewed.clone());
            return Ok(renewed);
        }
        // Also where the same node led last: it was away for so long that its plans are of another time.
        let term = last.map_or(Term::ZERO, |leader| leader.term).next();
        let leader = Leadership { node: self.node.clone(), term, expires_at };
        working.append(None, None, dispatcher(), NewEvent::leader_changed(&self.node, term));
        working.put_leader(leader.clone());
        Ok(leader)
    }
}

impl Op for StepDown {
    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let now = working.now();
        let own = |leader: &&Leadership| leader.node == self.node && leader.term == self.term;
        if let Some(leader) = working.leader().filter(own).filter(|leader| leader.expires_at > now).cloned() {
            working.put_leader(Leadership { expires_at: now, ..leader });
        }
        Ok(())
    }
}

/// Whether the dispatcher of this term still leads.
pub(super) fn check_term(working: &Working, given: Term) -> Result<(), StoreError> {
    let current = working.leader().map_or(Term::ZERO, |leader| leader.term);
    if current != given || working.leader().is_none_or(|leader| leader.expires_at <= working.now()) {
        return Err(StoreError::StaleTerm { given, current });
    }
    Ok(())
}

impl Op for MakeOffers {
    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
        needs.jobs.extend(self.chosen.iter().map(|new| new.job));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<Option<Offer>>, StoreError> {
        // Also when this very call was carried out before its term ended and only the answer was lost: its offers are in
        // the store, for the next leader to send.
        check_term(working, self.term)?;
        Ok(self.chosen.iter().map(|new| place(new, self.pickup, working)).collect())
    }
}

/// `None` for a job that is gone, was claimed or changed in any other way since it was looked at.
fn place(new: &NewOffer, pickup: Duration, working: &mut Working) -> Option<Offer> {
    let NewOffer { job: id, rev, factory } = new;
    let job = working.job(*id).ok()?;
    // The same call after a lost reply. Whether the broker has the offer by then is not judged here.
    if job.rev == rev.next() && job.target().is_some_and(|target| target.factory == *factory) {
        return offer_of(job);
    }
    let pickup_deadline = working.now().plus(pickup);
    let command = Command::Target { rev: *rev, factory: factory.clone(), pickup_deadline };
    let offer = offer_of(working.apply(*id, &command, &dispatcher()).ok()?)?;
    working.put_offer(offer.clone());
    Some(offer)
}

/// What the job's target gets. The capabilities are there for whoever filters offers on the broker; where they are too
/// many for a small message they stay out, and the claim judges by the job itself as it always does.
fn offer_of(job: &Job) -> Option<Offer> {
    let offer = Offer {
        job_id: job.id,
        dispatch_seq: job.dispatch_seq,
        product_id: job.product.clone(),
        repo: job.spec.repo.clone(),
        caps: job.spec.capabilities.clone(),
        priority: job.spec.priority,
        target_factory_id: job.target()?.factory.clone(),
    };
    let bytes = serde_json::to_vec(&offer).map_or(usize::MAX, |json| json.len());
    Some(if bytes < limits::OFFER_BYTES { offer } else { Offer { caps: CapabilitySet::default(), ..offer } })
}

impl Op for Sent {
    /// Not even the jobs: what the broker has says nothing about them.
    fn needs(&self, _: &mut Needs) {}

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        for (job, seq) in &self.offers {
            working.delete_offer(*job, *seq);
        }
        Ok(())
    }
}

impl Op for RecordDivergences {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.extend(self.divergences.iter().map(|divergence| divergence.job));
    }

    /// After a lost reply of the database one may be recorded twice; it is a remark, and nothing acts on it.
    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        for Divergence { job, routed_to, claimed_by, lag_ms } in &self.divergences {
            let command = Command::Diverged {
                routed_to: routed_to.clone(),
                claimed_by: claimed_by.clone(),
                lag_ms: *lag_ms,
            };
            match working.apply(*job, &command, &dispatcher()) {
                // One that is gone has no history any more to write this into.
                Ok(_) | Err(StoreError::NoSuchJob(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Op for EvictJobs {
    fn needs(&self, needs: &mut Needs) {
        needs.leader |= self.term.is_some();
        needs.jobs.extend(self.asked.iter().map(|asked| asked.job));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<bool>, StoreError> {
        if let Some(term) = self.term {
            check_term(working, term)?;
        }
        self.asked.iter().map(|asked| ask_to_let_go(self, asked, working)).collect()
    }
}

/// False for a job that is gone, was let go or changed in any other way since it was looked at.
fn ask_to_let_go(
    command: &EvictJobs,
    asked: &NewEviction,
    working: &mut Working,
) -> Result<bool, StoreError> {
    let NewEviction { job: id, rev, for_job } = *asked;
    let Ok(job) = working.job(id) else { return Ok(false) };
    // The same call after a lost reply.
    let marked = job.lease().and_then(|lease| lease.evict);
    if job.rev == rev.next() && marked.is_some_and(|evict| evict.for_job == for_job) {
        return Ok(true);
    }
    let evict = Evict::new(for_job, working.now().plus(command.grace));
    match working.apply(id, &Command::Evict { rev, evict }, &command.actor) {
        Ok(_) => Ok(true),
        Err(StoreError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
