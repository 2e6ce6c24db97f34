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
        let expired = working.loaded().expired.clone();
        let mut reaped = Reaped { jobs: Vec::new(), next_expiry: working.loaded().next_expiry };
        for id in expired {
            let epoch = working.job(id)?.epoch;
            let job = working.apply(id, &Command::Expire, &Actor::system("reaper"))?;
            if job.epoch != epoch || !job.stage().is_held() {
                reaped.jobs.push(id);
            } else if let Some(lease) = job.lease() {
                // Renewed between the look and the lock.
                let ends = lease.expires_at;
                reaped.next_expiry = Some(reaped.next_expiry.map_or(ends, |next| next.min(ends)));
            }
        }
        Ok(reaped)
    }
}

pub(in crate::engine) struct Unblock {
    pub(in crate::engine) limit: usize,
}

impl Op for Unblock {
    type Reply = Vec<JobId>;

    fn needs(&self, needs: &mut Needs) {
        needs.unblockable = needs.unblockable.max(self.limit);
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<JobId>, StoreError> {
        let ids = working.loaded().unblockable.clone();
        for id in &ids {
            working.apply(*id, &Command::Unblock, &Actor::system("unblocker"))?;
        }
        Ok(ids)
    }
}

pub(in crate::engine) struct Retire {
    pub(in crate::engine) before: Timestamp,
    pub(in crate::engine) limit: usize,
}

impl Op for Retire {
    type Reply = usize;

    fn needs(&self, needs: &mut Needs) {
        let limit = needs.retirable.map_or(self.limit, |(_, limit)| limit.max(self.limit));
        let before = needs.retirable.map_or(self.before, |(before, _)| before.min(self.before));
        needs.retirable = Some((before, limit));
    }

    fn decide(&self, working: &mut Working) -> Result<usize, StoreError> {
        let ids = working.loaded().retirable.clone();
        for id in &ids {
            working.retire(*id);
        }
        Ok(ids.len())
    }
}
