//! What must hold of any history, written down without looking at how a store works.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use giga_domain::job::DepsMode;
use giga_domain::stage::PerStage;
use giga_domain::{
    Budget, Charge, Epoch, Factory, FactoryId, Job, JobId, Leadership, Lease, Period, ProductId, RequestId,
    RunOutcome, Stage, Term, Timestamp, Usd,
};
use giga_ports::store::Claim;

use super::call::{Answer, Call};
use super::visible::Visible;

/// Remembers what was seen, so that nothing can be taken back.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    grants: HashMap<JobId, BTreeMap<Epoch, (FactoryId, RequestId)>>,
}

/// All jobs before and after a step.
pub(super) struct Look<'a> {
    pub(super) before: &'a [Job],
    pub(super) after: &'a [Job],
    pub(super) factories: &'a [Factory],
    /// After the step.
    pub(super) budgets: &'a [Budget],
    /// Who led before the step.
    pub(super) leader: Option<&'a Leadership>,
    pub(super) now: Timestamp,
}

impl Look<'_> {
    fn old(&self, id: JobId) -> Option<&Job> {
        self.before.iter().find(|job| job.id == id)
    }
}

impl Ledger {
    pub(super) fn note(&mut self, call: &Call, answer: &Answer, look: &Look<'_>) {
        if answer.refused {
            assert_eq!(look.before, look.after, "refused, and yet something changed: {call:?}");
        }
        self.nothing_goes_backwards(look);
        match call {
            Call::Claim(claim) => {
                if let Some(job) = &answer.granted {
                    self.one_holder_per_epoch(claim, job, look);
                }
            }
            Call::Hold(write) => {
                let held = |job: &Job| {
                    job.lease().is_some_and(|lease| lease.factory == write.holder.factory)
                        && job.epoch == write.holder.epoch
                };
                if !look.old(write.job).is_some_and(held) {
                    assert_eq!(look.before, look.after, "written without a lease: {call:?}");
                }
            }
            Call::Steer(write) => {
                let current = look.old(write.job).map(|job| job.rev);
                let fits = write.if_rev.is_none_or(|rev| current == Some(rev));
                assert!(fits || answer.refused, "steered from another revision: {call:?}");
            }
            Call::Expire(_) => reaped_in_order(&answer.reaped, look),
            Call::Reconsider(_) => nobody_waits_for_nothing(look),
            Call::Evict(term, ..) => {
                let leads = |term: &Term| {
                    look.leader.is_some_and(|leader| leader.term == *term && leader.expires_at > look.now)
                };
                assert_eq!(
                    term.as_ref().is_none_or(leads),
                    !answer.refused,
                    "only a leader evicts: {call:?}"
                );
            }
            Call::Offer(term, ..) => {
                let leads =
                    look.leader.is_some_and(|leader| leader.term == *term && leader.expires_at > look.now);
                assert_eq!(leads, !answer.refused, "only the leader of the current term offers: {call:?}");
            }
            _ => {}
        }
    }

    fn one_holder_per_epoch(&mut self, claim: &Claim, job: &Job, look: &Look<'_>) {
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
        let target = look.old(job.id).and_then(Job::target);
        let elsewhere = target.filter(|target| target.factory != lease.factory);
        assert!(elsewhere.is_none_or(|t| t.pickup_deadline <= look.now), "{}: taken from its target", job.id);
        let offer = look.old(job.id).map(|job| job.dispatch_seq);
        assert!(claim.dispatch_seq.is_none_or(|seq| offer == Some(seq)), "{}: accepted an old offer", job.id);
        let seen = look.old(job.id).map(|job| job.rev);
        assert!(claim.rev.is_none_or(|rev| seen == Some(rev)), "{}: claimed at another revision", job.id);

        never_beyond_a_limit(job, look);
        let held = || look.after.iter().filter_map(|job| Some((job, job.lease()?)));
        let seats = held().filter(|(_, other)| other.factory == lease.factory).count();
        let factory = look.factories.iter().find(|factory| factory.id == lease.factory);
        let limit = factory.expect("only enrolled factories are granted jobs").advertised.seat_limit;
        assert!(seats as u32 <= limit, "{} has no such seat", lease.factory);
        if let Some(concurrency) = &job.spec.concurrency {
            let same = |other: &Job| {
                other.product == job.product
                    && other.spec.concurrency.as_ref().is_some_and(|c| c.key == concurrency.key)
            };
            let used = held().filter(|(other, _)| same(other)).count();
            assert!(
                used as u32 <= concurrency.limit,
                "{}: the key {} is overbooked",
                job.id,
                concurrency.key
            );
        }
    }

    fn nothing_goes_backwards(&mut self, look: &Look<'_>) {
        for old in look.before {
            let Some(new) = look.after.iter().find(|job| job.id == old.id) else {
                assert!(old.stage().is_terminal(), "{} disappeared while {}", old.id, old.stage());
                // Submitted once more after its retirement it is another job.
                self.grants.remove(&old.id);
                continue;
            };
            assert!(new.epoch >= old.epoch && new.rev >= old.rev, "{} went backwards", new.id);
            assert!(new.dispatch_seq >= old.dispatch_seq, "{}: offers are counted backwards", new.id);
            assert!(!old.stage().is_terminal() || new == old, "{} was final and changed", new.id);
            let unmarked = Job { state: old.state.clone(), ..new.clone() };
            assert!(new.rev > old.rev || unmarked == *old, "{} changed without a revision", new.id);
            assert!(new.rev > old.rev || new.stage() == old.stage(), "{} moved without a revision", new.id);
            if let (Some(now), Some(then)) = (new.lease(), old.lease())
                && new.epoch == old.epoch
            {
                assert!(now.expires_at >= then.expires_at, "{}: a lease was shortened", new.id);
                assert!(now.spent.usd >= then.spent.usd, "{}: spent and taken back", new.id);
                assert!(now.evict == then.evict || then.evict.is_none(), "{}: no longer asked", new.id);
            }
        }
        for job in look.after {
            let lease = job.lease();
            let covered = lease.is_none_or(|lease| lease.reserved >= lease.spent.usd);
            assert!(covered, "{}: spends what is not reserved", job.id);
            assert_eq!(
                job.lease().is_some(),
                job.stage().is_held(),
                "{}: a lease exactly while held",
                job.id
            );
        }
    }
}

/// Whoever is let in fits: what is spent and what is reserved stay within every limit at that moment. Only overruns
/// and people lead beyond one.
fn never_beyond_a_limit(granted: &Job, look: &Look<'_>) {
    let Some(budget) = look.budgets.iter().find(|budget| budget.product == granted.product) else { return };
    assert_eq!(budget.pause_now(look.now), None, "{}: let in through a closed door", granted.id);
    for period in Period::ALL {
        let Some(limit) = budget.settings.limits.of(period) else { continue };
        let used = budget.spent_in(period, look.now).usd + budget.reserved;
        assert!(used <= *limit, "{}: {used} of {limit} in the {}", granted.id, period.as_str());
    }
}

/// Whoever is left is due no earlier than those that were taken away.
fn reaped_in_order(reaped: &[JobId], look: &Look<'_>) {
    let ends = |id: &JobId| look.old(*id).and_then(Job::lease).map(Lease::due);
    assert!(reaped.iter().map(ends).is_sorted(), "longest expired first");
    let last = reaped.iter().filter_map(ends).max();
    let left = look.after.iter().filter_map(Job::lease).map(Lease::due).min();
    assert!(last.zip(left).is_none_or(|(last, left)| last <= left), "somebody was passed over");
}

fn nobody_waits_for_nothing(look: &Look<'_>) {
    let shipped = |dep: &JobId| look.after.iter().any(|job| job.id == *dep && job.stage() == Stage::Shipped);
    for job in look.after.iter().filter(|job| job.stage() == Stage::Blocked) {
        let free = match job.spec.deps_mode {
            DepsMode::All => job.spec.deps.iter().all(shipped),
            DepsMode::Any => job.spec.deps.iter().any(shipped),
        };
        assert!(!free, "{} waits for nothing", job.id);
    }
}

/// What is reserved stands on the leases, and what is spent stands in the ledger.
fn check_books(seen: &Visible) {
    let mut on_leases: BTreeMap<&ProductId, Usd> = BTreeMap::new();
    for job in &seen.jobs {
        *on_leases.entry(&job.product).or_default() += job.lease().map_or(Usd::ZERO, |lease| lease.reserved);
    }
    for (budget, charged) in seen.budgets.iter().zip(&seen.charged) {
        let on_leases = on_leases.remove(&budget.product).unwrap_or_default();
        assert_eq!(budget.reserved, on_leases, "{}: reserved", budget.product);
        let usd: Usd = charged.iter().map(|bucket| bucket.usd).sum();
        let tokens: u64 = charged.iter().map(|bucket| bucket.tokens).sum();
        let total = budget.spent_in(Period::Total, Timestamp::ZERO);
        assert_eq!((total.usd, total.tokens), (usd, tokens), "{}: spent", budget.product);
    }
    assert!(
        on_leases.values().all(|reserved| reserved.is_zero()),
        "reserved without a budget: {on_leases:?}"
    );
    for (job, details) in seen.jobs.iter().zip(&seen.details) {
        let ended = |charge: &Charge| {
            let run = charge.run.expect("a charge of a job is one of its run's");
            details.runs.iter().any(|r| (r.job, r.epoch) == run && r.outcome != RunOutcome::Running)
        };
        // Those of a job that was retired and submitted once more stand there too.
        let newer = details.charges.iter().filter(|charge| charge.at >= job.created_at);
        assert!(newer.clone().all(ended), "{}: charged while it runs", job.id);
    }
}

/// What must hold of a single look.
pub(super) fn check(seen: &Visible) {
    check_books(seen);
    let mut counted: BTreeMap<ProductId, PerStage<u64>> = BTreeMap::new();
    let mut requests = BTreeSet::new();
    for (job, details) in seen.jobs.iter().zip(&seen.details) {
        counted.entry(job.product.clone()).or_default()[job.stage()] += 1;
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

        let missing = |dep: &&JobId| !seen.jobs.iter().any(|other| other.id == **dep);
        let gone: Vec<_> = job.spec.deps.iter().filter(missing).collect();
        assert!(job.stage() != Stage::Blocked || gone.is_empty(), "{} waits for {gone:?} for ever", job.id);
    }
    for (product, state) in &seen.queue {
        let recount = counted.remove(product).unwrap_or_default();
        assert_eq!(state.by_stage, recount, "{product}: what is kept differs from what is there");
    }
    assert!(counted.is_empty(), "products without a count: {counted:?}");
    let mut offered = BTreeSet::new();
    for waiting in &seen.offers {
        let offer = &waiting.offer;
        assert!(offered.insert(offer.job_id), "{}: two offers wait", offer.job_id);
        let job = seen.jobs.iter().find(|job| job.id == offer.job_id).expect("offers go with their job");
        assert_eq!(offer.dispatch_seq, job.dispatch_seq, "{}: an old offer waits", job.id);
    }
    let live: Vec<_> = seen.live.iter().map(|job| job.id).collect();
    let waiting_or_held = |job: &&Job| job.stage() == Stage::Queued || job.stage().is_held();
    let expected: Vec<_> = seen.jobs.iter().rev().filter(waiting_or_held).map(|job| job.id).collect();
    assert_eq!(live, expected, "live jobs");
}
