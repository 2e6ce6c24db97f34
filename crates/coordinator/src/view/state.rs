//! The live jobs and the factories as the view has them: what is queued, what runs where, what is on offer.
//!
//! Nothing here asks anybody. A job that is put in replaces what was known of it, unless that is newer.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use giga_domain::flag::{DELIVERY, FlagDef, delivery_of};
use giga_domain::{
    CapabilitySet, Delivery, DispatchSeq, Evict, Factory, FactoryId, FeedPos, Job, JobId, Member, Offer,
    Pool, PoolName, Priority, ProductId, RequestId, Rev, Stage, State, Timestamp, UnitsInUse,
};
use giga_ports::{StoreError, StoreReads};
use giga_scheduler::{Earlier, JobView, ReadyQueue};
use serde_json::Value;

use crate::policies::Tenants;

#[derive(Default)]
pub(crate) struct ViewState {
    /// `None` until the first load.
    pub(super) cursor: Option<FeedPos>,
    pub(crate) queue: ReadyQueue,
    /// Of queued jobs that were offered to somebody, whether that still holds or not.
    pub(super) offers: HashMap<JobId, DispatchSeq>,
    pub(crate) running: HashMap<JobId, Running>,
    pub(super) grants: HashMap<(FactoryId, RequestId), JobId>,
    pub(crate) seats: HashMap<FactoryId, u32>,
    /// Of factories whose jobs use what can be counted.
    pub(super) units: HashMap<FactoryId, UnitsInUse>,
    pub(super) by_product: HashMap<ProductId, u32>,
    pub(super) by_key: HashMap<(ProductId, String), u32>,
    pub(crate) factories: BTreeMap<FactoryId, Factory>,
    /// When a factory last let a lease end. Until it is heard again it is taken for frozen: its stream may still be
    /// open, and every job that went down it would lose an attempt.
    pub(super) let_go: HashMap<FactoryId, Timestamp>,
    pub(super) flags: HashMap<String, Value>,
    /// Shares, weights, budgets.
    pub(crate) tenants: Tenants,
    /// Queued jobs that somebody gave a seat up for, and when.
    pub(crate) promised: HashMap<JobId, Timestamp>,
    /// When jobs went to dead letters lately, for the alert.
    pub(crate) dead_letters: VecDeque<Timestamp>,
    /// Live jobs with open questions.
    pub(crate) asking: BTreeMap<JobId, Asking>,
    pub(crate) pools: BTreeMap<PoolName, Pool>,
    pub(crate) members: BTreeMap<FactoryId, Member>,
    /// Results that could not be merged lately and that nobody has done anything about.
    pub(crate) failed_merges: BTreeMap<JobId, FailedMerge>,
}

/// The oldest open question of a job.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) product: ProductId,
    pub(crate) text: String,
    pub(crate) since: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) struct FailedMerge {
    pub(crate) at: Timestamp,
    pub(crate) cause: String,
    pub(crate) product: Option<ProductId>,
}

#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) rev: Rev,
    pub(crate) factory: FactoryId,
    pub(crate) product: ProductId,
    pub(crate) priority: Priority,
    pub(crate) granted_at: Timestamp,
    pub(crate) evictions: u32,
    pub(crate) evict: Option<Evict>,
    request: RequestId,
    key: Option<String>,
    pub(crate) capabilities: CapabilitySet,
}

/// Where the parents of new jobs last ran, for affinity. Jobs that ran before have their own warmth.
pub(crate) async fn parents_of(
    reads: &dyn StoreReads,
    jobs: &[Job],
) -> Result<HashMap<JobId, FactoryId>, StoreError> {
    let cold = jobs.iter().filter(|job| job.stage() == Stage::Queued && job.last_factory.is_none());
    let parents: BTreeSet<JobId> = cold.filter_map(|job| job.spec.parent).collect();
    if parents.is_empty() {
        return Ok(HashMap::new());
    }
    let parents = reads.jobs_by_id(&parents.into_iter().collect::<Vec<_>>()).await?;
    Ok(parents.into_iter().filter_map(|job| Some((job.id, job.last_factory?))).collect())
}

/// A job as the scheduler sees it; `None` when it is not queued. `pickup` is the span that factories have for picking
/// up what is offered to them.
pub(crate) fn job_view(job: &Job, parents: &HashMap<JobId, FactoryId>, pickup: Duration) -> Option<JobView> {
    let State::Queued { ready_at, target, .. } = &job.state else { return None };
    let parent_ran_at = || job.spec.parent.and_then(|parent| parents.get(&parent).cloned());
    Some(JobView {
        id: job.id,
        rev: job.rev,
        product: job.product.clone(),
        priority: job.spec.priority,
        enqueued_at: job.enqueued_at,
        ready_at: *ready_at,
        engine: job.spec.engine.clone(),
        capabilities: job.spec.capabilities.clone(),
        repo: job.spec.repo.clone(),
        more_repos: job.spec.more_repos.clone(),
        concurrency: job.spec.concurrency.clone(),
        cost_cap: job.spec.budget.usd,
        last_factory: job.last_factory.clone().or_else(parent_ran_at),
        offered_to: target.as_ref().map(|t| (t.factory.clone(), t.pickup_deadline)),
        // Known from the job alone, so that every leader leaves out the same.
        excluded: target
            .iter()
            .flat_map(|t| t.left_out(pickup))
            .map(|(factory, until)| (factory.clone(), until))
            .collect(),
        earlier: job.setback.as_ref().map(|setback| {
            Box::new(Earlier {
                next: job.attempts.saturating_add(1),
                of: job.spec.retry.attempts(),
                failure: setback.failure.words(),
                unfit: setback.unfit.clone(),
            })
        }),
    })
}

impl ViewState {
    pub(crate) fn put(&mut self, job: &Job, parents: &HashMap<JobId, FactoryId>) {
        if self.known_rev(job.id).is_some_and(|known| known > job.rev) {
            return;
        }
        self.drop_job(job.id);
        if let Some(question) = job.open_questions().next() {
            let (product, text, since) = (job.product.clone(), question.text.clone(), question.asked_at);
            self.asking.insert(job.id, Asking { product, text, since });
        }
        if let Some(view) = job_view(job, parents, self.flag_millis("pickup_ms")) {
            if view.offered_to.is_some() {
                self.offers.insert(job.id, job.dispatch_seq);
            }
            self.queue.upsert(view);
        } else if let Some(lease) = job.lease() {
            let running = Running {
                rev: job.rev,
                factory: lease.factory.clone(),
                product: job.product.clone(),
                priority: job.spec.priority,
                granted_at: lease.granted_at,
                evictions: job.evictions,
                evict: lease.evict,
                request: lease.request.clone(),
                key: job.spec.concurrency.as_ref().map(|c| c.key.clone()),
                capabilities: job.spec.capabilities.clone(),
            };
            self.count(&running, 1);
            self.grants.insert((running.factory.clone(), running.request.clone()), job.id);
            self.running.insert(job.id, running);
        }
    }

    /// The answer to a claim, which may have been overtaken: a job that went on, or is over, by now is left as it is.
    pub(crate) fn put_claimed(&mut self, job: &Job) {
        if self.known_rev(job.id).is_some() {
            self.put(job, &HashMap::new());
        }
    }

    pub(super) fn known_rev(&self, id: JobId) -> Option<Rev> {
        let queued = self.queue.get(id).map(|job| job.rev);
        queued.or_else(|| self.running.get(&id).map(|running| running.rev))
    }

    pub(crate) fn drop_job(&mut self, id: JobId) {
        self.queue.remove(id);
        self.asking.remove(&id);
        self.offers.remove(&id);
        if let Some(running) = self.running.remove(&id) {
            self.count(&running, -1);
            self.grants.remove(&(running.factory, running.request));
        }
    }

    fn count(&mut self, running: &Running, by: i32) {
        add(&mut self.seats, running.factory.clone(), by);
        add(&mut self.by_product, running.product.clone(), by);
        if let Some(key) = &running.key {
            add(&mut self.by_key, (running.product.clone(), key.clone()), by);
        }
        if running.capabilities.countable().next().is_some() {
            let used = self.units.entry(running.factory.clone()).or_default();
            if by > 0 { used.take(&running.capabilities) } else { used.give_back(&running.capabilities) }
        }
    }

    pub(crate) fn granted(&self, factory: &FactoryId, request: &RequestId) -> Option<JobId> {
        self.grants.get(&(factory.clone(), request.clone())).copied()
    }

    pub(crate) fn held_by(&self, factory: &FactoryId) -> impl Iterator<Item = JobId> {
        self.running.iter().filter(move |(_, running)| running.factory == *factory).map(|(id, _)| *id)
    }

    /// Jobs on offer to the factory now, with the number of each offer.
    pub(crate) fn on_offer_to(&self, factory: &FactoryId, now: Timestamp) -> Vec<(JobId, DispatchSeq)> {
        let live = |job: &&JobView| job.offered_to.as_ref().is_some_and(|(_, deadline)| *deadline > now);
        let jobs = self.queue.offered_to(factory).filter(live);
        jobs.filter_map(|job| Some((job.id, self.current_offer(job.id)?))).collect()
    }

    /// Whether this very offer can still be picked up.
    pub(crate) fn stands(&self, offer: &Offer, now: Timestamp) -> bool {
        self.current_offer(offer.job_id) == Some(offer.dispatch_seq)
            && self
                .queue
                .get(offer.job_id)
                .and_then(|job| job.offered_to.as_ref())
                .is_some_and(|(_, deadline)| *deadline > now)
    }

    /// The number of the offer that the queued job was last put on.
    pub(super) fn current_offer(&self, job: JobId) -> Option<DispatchSeq> {
        self.offers.get(&job).copied()
    }

    /// How jobs are meant to reach the factory: what is set for it, else what is set for the fleet.
    pub(crate) fn wished_delivery(&self, factory: &FactoryId) -> Delivery {
        let own = self.flags.get(&delivery_of(factory)).cloned();
        let wished = own.unwrap_or_else(|| self.flag(DELIVERY));
        wished.as_str().and_then(|mode| mode.parse().ok()).unwrap_or_default()
    }

    /// Whether the dispatcher may choose it: it works the way that it is meant to, and that way takes offers.
    pub(crate) fn is_targeted(&self, factory: &Factory) -> bool {
        let actual = factory.advertised.delivery.unwrap_or(Delivery::Poll);
        actual.is_targeted() && actual == self.wished_delivery(&factory.id)
    }

    pub(crate) fn flag(&self, name: &str) -> Value {
        let default = || FlagDef::named(name).map_or(Value::Null, FlagDef::default_value);
        self.flags.get(name).cloned().unwrap_or_else(default)
    }

    pub(crate) fn flag_millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.flag(name).as_u64().unwrap_or_default())
    }

    pub(super) fn stale_after(&self) -> Duration {
        self.flag_millis("heartbeat_interval_ms") * 3
    }

    pub(crate) fn set_flag(&mut self, name: &str, value: Value) {
        if value.is_null() {
            self.flags.remove(name);
        } else {
            self.flags.insert(name.to_owned(), value);
        }
    }
}

fn add<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: K, by: i32) {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add_signed(by);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(rev: u64, state: State) -> Job {
        let spec = serde_json::json!({ "name": "one" });
        let spec = serde_json::from_value(spec).unwrap();
        Job {
            rev: Rev(rev),
            epoch: giga_domain::Epoch(rev),
            last_event: giga_domain::EventSeq(rev),
            ..Job::new(JobId::from_u128(1), "demo".parse().unwrap(), spec, state, Timestamp::ZERO)
        }
    }

    fn queued(rev: u64) -> Job {
        job(rev, State::Queued { since: Timestamp::ZERO, ready_at: Timestamp::ZERO, target: None })
    }

    fn held(rev: u64) -> Job {
        let lease = giga_domain::Lease {
            factory: "mac-1".parse().unwrap(),
            request: "r1".parse().unwrap(),
            granted_at: Timestamp::ZERO,
            expires_at: Timestamp::ZERO,
            reserved: giga_domain::Usd::ZERO,
            spent: giga_domain::Spend::default(),
            evict: None,
        };
        job(rev, State::Assigned { lease })
    }

    #[test]
    fn the_answer_to_a_claim_never_brings_back_what_the_feed_has_overtaken() {
        let nobody = HashMap::new();
        let (id, mut state) = (queued(1).id, ViewState::default());
        state.put_claimed(&held(2));
        assert!(state.running.is_empty(), "it was over before the answer came");

        state.put(&queued(1), &nobody);
        state.put_claimed(&held(2));
        assert!(state.running.contains_key(&id));

        state.put(&queued(3), &nobody);
        state.put_claimed(&held(2));
        assert!(state.running.is_empty() && state.queue.get(id).is_some(), "it was released meanwhile");
        state.put(&queued(1), &nobody);
        assert_eq!(state.queue.get(id).map(|job| job.rev), Some(Rev(3)), "an old look changes nothing");
    }
}
