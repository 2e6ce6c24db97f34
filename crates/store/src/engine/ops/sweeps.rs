//! What the reconcilers do: each finds its own work, so it can run at any time and any number of times.

use giga_domain::{Actor, Command, JobId, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::Reaped;

use super::super::{Needs, Op, Working};

pub(in crate::engine) struct ExpireLeases {
    pub(in crate::engine) limit: usize,
}

impl Op for ExpireLeases {
    type Reply = Reaped;

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

pub(in crate::engine) struct Retire {
    pub(in crate::engine) before: Timestamp,
    pub(in crate::engine) jobs: Vec<JobId>,
}

impl Op for Retire {
    type Reply = Vec<JobId>;

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
