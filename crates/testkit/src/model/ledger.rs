//! What must hold of any history, written down without looking at how a store works.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use giga_domain::{Epoch, FactoryId, Job, JobId, ProductId, RequestId, Rev, RunOutcome, Stage};
use giga_ports::store::Claimed;

use super::visible::Visible;

/// Remembers what was seen, so that nothing can be taken back.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    grants: HashMap<JobId, BTreeMap<Epoch, (FactoryId, RequestId)>>,
    last: HashMap<JobId, (Epoch, Rev, Stage)>,
}

impl Ledger {
    /// One holder per epoch, and epochs only rise.
    pub(super) fn note_claim(&mut self, claimed: &Claimed, jobs: &[Job], seat_limit: Option<u32>) {
        let Claimed::Granted(job) = claimed else { return };
        let lease = job.lease().expect("a granted job is held");
        let holder = (lease.factory.clone(), lease.request.clone());
        let grants = self.grants.entry(job.id).or_default();
        if let Some(before) = grants.get(&job.epoch) {
            assert_eq!(*before, holder, "{}: two holders of epoch {}", job.id, job.epoch);
            return;
        }
        let newest = grants.last_key_value().map(|(epoch, _)| *epoch);
        assert!(newest.is_none_or(|newest| newest < job.epoch), "{}: epoch {} came late", job.id, job.epoch);
        grants.insert(job.epoch, holder);
        let held = |other: &&Job| other.lease().is_some();
        let seats = jobs.iter().filter(held).filter(|other| other.lease().unwrap().factory == lease.factory);
        assert!(seats.count() as u32 <= seat_limit.unwrap_or(0), "{} has no such seat", lease.factory);
        if let Some(concurrency) = &job.spec.concurrency {
            let same = |other: &&Job| {
                other.product == job.product
                    && other.spec.concurrency.as_ref().is_some_and(|c| c.key == concurrency.key)
            };
            let used = jobs.iter().filter(held).filter(same).count();
            assert!(
                used as u32 <= concurrency.limit,
                "{}: the key {} is overbooked",
                job.id,
                concurrency.key
            );
        }
    }

    /// After every step: nothing goes backwards, nothing final is left, only final jobs disappear.
    pub(super) fn note_jobs(&mut self, jobs: &[Job]) {
        let mut now = HashMap::new();
        for job in jobs {
            let (epoch, rev, stage) = (job.epoch, job.rev, job.stage());
            if let Some((old_epoch, old_rev, old_stage)) = self.last.remove(&job.id) {
                assert!(epoch >= old_epoch && rev >= old_rev, "{} went backwards", job.id);
                assert!(stage == old_stage || rev > old_rev, "{} moved without a revision", job.id);
                assert!(!old_stage.is_terminal() || rev == old_rev, "{} was final and changed", job.id);
            }
            assert_eq!(job.lease().is_some(), stage.is_held(), "{}: a lease exactly while held", job.id);
            now.insert(job.id, (epoch, rev, stage));
        }
        for (id, (_, _, stage)) in &self.last {
            assert!(stage.is_terminal(), "{id} disappeared while {stage}");
            // Submitted once more after its retirement it is another job.
            self.grants.remove(id);
        }
        self.last = now;
    }
}

/// What must hold of a single look.
pub(super) fn check(seen: &Visible) {
    let mut counted: BTreeMap<ProductId, [u64; 10]> = BTreeMap::new();
    let mut requests = BTreeSet::new();
    for (job, details) in seen.jobs.iter().zip(&seen.details) {
        counted.entry(job.product.clone()).or_default()[job.stage() as usize] += 1;
        if let Some(lease) = job.lease() {
            let request = (lease.factory.clone(), lease.request.clone());
            assert!(requests.insert(request), "{}: one request holds two jobs", job.id);
        }

        let running: Vec<_> = details.runs.iter().filter(|run| run.outcome == RunOutcome::Running).collect();
        assert_eq!(running.len(), usize::from(job.stage().is_held()), "{}: a run exactly while held", job.id);
        if let (Some(run), Some(lease)) = (running.first(), job.lease()) {
            assert_eq!((run.epoch, &run.factory), (job.epoch, &lease.factory), "{}", job.id);
        }
        assert!(details.runs.is_sorted_by(|a, b| a.epoch < b.epoch), "{}: a run per epoch", job.id);

        let mut stage = None;
        for (event, seq) in details.events.iter().zip(1..) {
            assert_eq!(event.job.map(|(id, seq)| (id, seq.0)), Some((job.id, seq)), "seq without gaps");
            if event.to.is_some() {
                assert_eq!(event.from, stage, "{}: {} does not follow", job.id, event.kind);
                let legal = event.from.zip(event.to).is_none_or(|(from, to)| from.may_become(to));
                assert!(legal, "{}: {:?} -> {:?}", job.id, event.from, event.to);
                stage = event.to;
            }
        }
        assert_eq!(details.events.len() as u64, job.last_event.0, "{}", job.id);
        assert_eq!(stage, Some(job.stage()), "{}: the history ends in its stage", job.id);
    }
    for (product, state) in &seen.queue {
        let recount = counted.remove(product).unwrap_or_default();
        assert_eq!(state.by_stage, recount, "{product}: what is kept differs from what is there");
    }
    assert!(counted.is_empty(), "products without a count: {counted:?}");
    let live: Vec<_> = seen.live.iter().map(|job| job.id).collect();
    let waiting_or_held = |job: &&Job| job.stage() == Stage::Queued || job.stage().is_held();
    let expected: Vec<_> = seen.jobs.iter().rev().filter(waiting_or_held).map(|job| job.id).collect();
    assert_eq!(live, expected, "live jobs");
}
